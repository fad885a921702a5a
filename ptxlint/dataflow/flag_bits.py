"""Predicates packed into the bits of a word, and what a bit of it is then.

Where many masks are alive the compiler keeps them in words: `selp` makes 1 or -1 of a predicate,
shifts, masks and ors put these together, and a later `and` with a single bit asks for one again.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

Flag: TypeAlias = "tuple[int, bool] | bool | None"
"""A predicate and whether the bit is set where it holds (True) or where it does not; a constant; or
None for what is not known."""
_DEEP: Final = 64
"""So many operations are looked through one behind the other."""


class FlagBits:
    """Answers for the words of one function."""

    def __init__(self, ssa: Ssa) -> None:
        self._ssa = ssa
        self._instrs = ssa.cfg.function.instrs
        self._known: dict[tuple[int, int], Flag] = {}

    def tested(self, value: int) -> Flag:
        """When a word is not 0 that is another one's single bit."""
        instr = self._definition(self._ssa.resolve(value))
        if instr is None or instr.opcode != "and" or instr.shape.type == "pred":
            return None
        mask = fold(instr.operands[2])
        if mask is None or mask <= 0 or mask & mask - 1:
            return None
        return self._bit(instr, instr.operands[1], mask.bit_length() - 1, _DEEP)

    def _definition(self, value: int) -> Instr | None:
        ssa = self._ssa
        if ssa.kind[value] != RESULT or ssa.result[value]:
            return None
        instr = self._instrs[ssa.instr[value]]
        return instr if instr.guard is None else None

    def _bit(self, instr: Instr, operand: Operand, place: int, depth: int) -> Flag:
        """A bit of what an instruction reads."""
        if not isinstance(operand, Register):
            constant = fold(operand)
            return None if constant is None else bool(constant >> place & 1)
        values = self._ssa.use_values[instr.index]
        value = self._ssa.resolve(values[instr.uses.index(operand)])
        if place >= BITS.get(self._ssa.register[value].type, 64):
            return None
        key = value, place
        if key not in self._known:
            # Round a loop it is not known.
            self._known[key] = None
            self._known[key] = self._find(value, place, depth - 1) if depth else None
        return self._known[key]

    def _find(self, value: int, place: int, depth: int) -> Flag:
        instr = self._definition(value)
        if instr is None:
            return None
        opcode, operands = instr.opcode, instr.operands
        if opcode in ("or", "and", "xor") and instr.shape.type != "pred":
            return _joined(opcode, *(self._bit(instr, o, place, depth) for o in operands[1:3]))
        if opcode in ("shl", "shr") and not instr.shape.type.startswith("s"):
            return self._shifted(instr, place, depth)
        if opcode == "mov" and len(operands) == 2:
            return self._bit(instr, operands[1], place, depth)
        if opcode == "cvt" and len(instr.shape.types) == 2:
            source = instr.shape.types[1]
            if source[0] not in "bu" or instr.shape.types[0][0] not in "bus":
                return None
            inside = place < BITS.get(source, 0)
            return self._bit(instr, operands[1], place, depth) if inside else False
        if opcode == "selp" and isinstance(operands[3], Register):
            arms = [fold(operand) for operand in operands[1:3]]
            if None in arms:
                return None
            yes, no = (bool((arm or 0) >> place & 1) for arm in arms)
            values = self._ssa.use_values[instr.index]
            return yes if yes == no else (values[instr.uses.index(operands[3])], yes)
        return None

    def _shifted(self, instr: Instr, place: int, depth: int) -> Flag:
        amount = fold(instr.operands[2])
        bits = BITS.get(instr.shape.type, 0)
        if amount is None or amount < 0:
            return None
        source = place - amount if instr.opcode == "shl" else place + amount
        if not 0 <= source < bits:
            return False
        return self._bit(instr, instr.operands[1], source, depth)


def _joined(opcode: str, a: Flag, b: Flag) -> Flag:
    """What a bit is of two that are joined, where one of them is a constant."""
    if isinstance(b, bool):
        return _joined_with(opcode, b, a)
    if isinstance(a, bool):
        return _joined_with(opcode, a, b)
    return a if opcode != "xor" and a is not None and a == b else None


def _joined_with(opcode: str, constant: bool, other: Flag) -> Flag:
    if opcode == "or":
        return True if constant else other
    if opcode == "and":
        return other if constant else False
    if not constant or other is None:
        return other
    return not other if isinstance(other, bool) else (other[0], not other[1])
