"""PTX fundamental types and state spaces (PTX ISA, "State Spaces, Types, and Variables")."""

from __future__ import annotations

from typing import Final

BITS: Final[dict[str, int]] = {
    "pred": 1,
    "b8": 8, "u8": 8, "s8": 8,
    "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "tf32": 32, "f16x2": 32, "bf16x2": 32,
    "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "f32x2": 64, "b32x2": 64,
    "b128": 128,
    "e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "e4m3x4": 32, "e5m2x4": 32,
    "e2m3x2": 16, "e3m2x2": 16, "e2m3x4": 32, "e3m2x4": 32, "e2m1x2": 8, "e2m1x4": 16,
    "ue8m0x2": 16, "ue8m0": 8,
    "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip
"""Width in bits of each type name (without its dot); opaque handles count as 64."""

FUNDAMENTAL: Final[frozenset[str]] = frozenset(
    "pred b8 u8 s8 b16 u16 s16 f16 b32 u32 s32 f32 f16x2 b64 u64 s64 f64 b128".split()
)
"""Types that a register or variable may be declared with."""

SPACES: Final[frozenset[str]] = frozenset("reg sreg const global local param shared tex".split())

FLOATS: Final[frozenset[str]] = frozenset(
    "f16 f16x2 bf16 bf16x2 f32 f32x2 tf32 f64 e4m3 e5m2".split()
)


def bits(type_name: str) -> int:
    """Width in bits of a type name; 32 for one we do not know."""
    return BITS.get(type_name, 32)


def words(type_name: str) -> int:
    """How many 32-bit physical registers a value of this type takes; 0 for a predicate."""
    return 0 if type_name == "pred" else max(1, BITS.get(type_name, 32) // 32)
