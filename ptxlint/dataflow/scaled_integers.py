"""Integers that are scaled in floating point on their way: `(k * 0.125).to(int32)`.

Quantised matrix products find the group of a row so: the number of a block times block size over
group size, a constant. It is converted, multiplied and converted back, and if no step rounds this
is a quotient of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ptxlint.dataflow.bitwise import floor_divide
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Operand, Register

_EXACT: Final = 1 << 24
"""Up to here every integer is a number of 32 bits in floating point (IEEE 754)."""
_STEPS: Final = 40
"""More powers of two than that are no ratio of sizes."""


class Scaled(NamedTuple):
    """An integer, the operand of its conversion, times `numerator / 2 ** shift`."""

    instr: Instr
    operand: Operand
    numerator: int
    shift: int


def scaled(ssa: Ssa, instrs: Sequence[Instr], instr: Instr) -> Scaled | None:
    """What a conversion to an integer converts back, None if it is anything else."""
    types = instr.shape.types
    if not _is_back(instr) or len(types) != 2 or types[1] != "f32":
        return None
    made = _behind(ssa, instrs, instr, instr.operands[1])
    numerator, shift = 1, 0
    if made is not None and made.shape.opcode == "mul" and made.shape.type == "f32":
        if made.shape.has("sat"):
            return None
        a, b = made.operands[1:3]
        factor, other = (a, b) if isinstance(a, Immediate) else (b, a)
        ratio = _ratio(factor)
        if ratio is None:
            return None
        numerator, shift = ratio
        made = _behind(ssa, instrs, made, other)
    if made is None or made.shape.opcode != "cvt" or len(made.shape.types) != 2:
        return None
    target, source = made.shape.types
    if target != "f32" or source[0] not in "us":
        return None
    return Scaled(made, made.operands[1], numerator, shift)


def quotient(of: Polynomial, by: Scaled) -> Polynomial | None:
    """The integer below the product; None if a step on the way may have rounded."""
    low, high = of.range()
    if low < 0 or high * by.numerator >= _EXACT:
        return None
    return floor_divide(of * by.numerator, 1 << by.shift)


def _is_back(instr: Instr) -> bool:
    """True for a conversion that truncates or takes the floor: the same for what is positive."""
    return instr.shape.opcode == "cvt" and (instr.shape.has("rzi") or instr.shape.has("rmi"))


def _behind(ssa: Ssa, instrs: Sequence[Instr], instr: Instr, operand: Operand) -> Instr | None:
    """The instruction that an operand comes from."""
    if not isinstance(operand, Register):
        return None
    value = ssa.resolve(ssa.use_values[instr.index][instr.uses.index(operand)])
    if ssa.kind[value] != RESULT or ssa.result[value]:
        return None
    return instrs[ssa.instr[value]]


def _ratio(factor: Operand) -> tuple[int, int] | None:
    """A positive constant as an integer over a power of two."""
    if not isinstance(factor, Immediate) or factor.kind == "int":
        return None
    number = factor.as_float("f32")
    if not 0 < number < _EXACT:
        return None
    numerator, denominator = number.as_integer_ratio()
    shift = denominator.bit_length() - 1
    return (numerator, shift) if shift <= _STEPS and numerator < _EXACT else None


__all__ = ["Scaled", "quotient", "scaled"]
