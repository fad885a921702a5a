"""What `tcgen05.mma` multiplies: the instruction descriptor says it in place of a type suffix.

See PTX ISA, "Instruction descriptor" (the table for .kind::tf32, .kind::f16, .kind::f8f6f4 and
.kind::i8) and "Data movement shape" of `tcgen05`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

_TYPES: Final[dict[str, dict[int, str]]] = {
    "kind::f16": {0: "f16", 1: "bf16"},
    "kind::tf32": {2: "tf32"},
    "kind::f8f6f4": {0: "e4m3", 1: "e5m2"},
    "kind::i8": {0: "u8", 1: "s8"},
}
"""Types of elements by what the descriptor says; those of 4 and 6 bits are not followed."""
_UNKNOWN: Final = frozenset({"sp", "ws", "block_scale", "cta_group::2"})


class TensorInstruction(NamedTuple):
    """A product of `rows` by `columns`. By factor (first, second): the elements' type, and whether
    neighbours in memory have the same place along k ("transposed")."""

    rows: int
    columns: int
    types: tuple[str, str]
    across: tuple[bool, bool]


def is_tensor_product(instr: Instr) -> bool:
    """True for `tcgen05.mma` in any form."""
    return instr.opcode == "tcgen05" and instr.shape.modifiers[:1] == ("mma",)


def descriptor_register(instr: Instr) -> Register | None:
    """The register that holds the instruction descriptor of a form that is followed."""
    if not is_tensor_product(instr) or not _UNKNOWN.isdisjoint(instr.shape.modifiers):
        return None
    if len(instr.operands) != 5:
        # Masks of lanes that are left as they were, or a scale of the accumulator.
        return None
    found = instr.operands[3]
    return found if isinstance(found, Register) else None


def described(instr: Instr, descriptor: int) -> TensorInstruction | None:
    """What an instruction descriptor says; None for what is not followed."""
    names = next((_TYPES[m] for m in instr.shape.modifiers if m in _TYPES), None)
    if names is None or descriptor & 7:
        return None
    first, second = names.get(descriptor >> 7 & 7, ""), names.get(descriptor >> 10 & 7, "")
    if not first or not second:
        return None
    rows, columns = (descriptor >> 24 & 31) << 4, (descriptor >> 17 & 63) << 3
    across = bool(descriptor >> 15 & 1), bool(descriptor >> 16 & 1)
    return TensorInstruction(rows, columns, (first, second), across)


__all__ = ["TensorInstruction", "described", "descriptor_register", "is_tensor_product"]
