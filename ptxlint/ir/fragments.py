"""How many registers the fragments of matrix instructions take.

A warp (`mma`) or four warps (`wgmma`) hold each matrix between them without copies, so the number
follows from shape and type. Source: PTX ISA, "Matrix Fragments for mma", "Register Fragments"
for `wgmma`.
"""

from __future__ import annotations

import re
from typing import Final

from ptxlint.ir.instruction import Shape

_DIMENSIONS: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS: Final[dict[str, int]] = {
    "f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16,
    "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
_PADDED: Final = ("kind::f8f6f4", "kind::mxf8f6f4")
"""Kinds in which also narrower elements take eight bits each."""


def fragment_length(shape: Shape, operand: int) -> int:
    """Elements of the vector that operand 0 … 3 (d, a, b, c) is; 0 when it cannot be told."""
    found = next((m for m in map(_DIMENSIONS.fullmatch, shape.modifiers) if m), None)
    if found is None or shape.opcode not in ("mma", "wgmma"):
        return 0
    m, n, k = (int(part) for part in found.groups())
    types = [t for t in shape.types if not t.startswith("ue")]
    wide = shape.opcode == "wgmma"
    if len(types) != (3 if wide else 4) or ((m, n, k) == (8, 8, 4) and types[1] != "f64"):
        return 0
    bits = _element_bits(shape, types[operand] if operand < len(types) else "")
    elements = {0: m * n, 1: m * k, 2: n * k, 3: m * n}[operand]
    if operand == 1 and any(word in ("sp", "sp::ordered_metadata") for word in shape.modifiers):
        elements //= 2
    register = 64 if bits == 64 else 32
    return elements * bits // (register * 32 * (4 if wide else 1))


def _element_bits(shape: Shape, type_name: str) -> int:
    if type_name == "e2m1":
        return 8 if any(word in _PADDED for word in shape.modifiers) else 4
    return _BITS.get(type_name, 0)
