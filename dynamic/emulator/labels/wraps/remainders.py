"""Which differences are remainders: what is left of a number when a multiple of its quotient is
taken away. A remainder is in its range whatever the number was, so a hash may wrap before it.

Compilers make `x % n` of this where they know n or need the quotient, too: the quotient comes from
`div`, from the upper half of a product (T. Granlund and P. Montgomery, "Division by invariant
integers using multiplication", PLDI 1994), from a shift or a mask. What is not multiplied again
is no multiple of the quotient: a quotient that is rounded toward zero adds bits of the sign to the
number first.
"""

from __future__ import annotations

from typing import Final

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register

_DEPTH: Final = 8
_PASSED: Final = frozenset("mul mad shl shr add sub cvt and neg div mov".split())
_SCALING: Final = frozenset(("mul", "mad", "shl"))


class Remainders:
    """The remainders of one function."""

    def __init__(self, function: Function) -> None:
        self._instrs = function.instrs
        self._defs: dict[str, list[int]] = {}
        for instr in function.instrs:
            for register in instr.defs:
                self._defs.setdefault(register.name, []).append(instr.index)
        self._known: dict[int, bool] = {}

    def is_one(self, instr: Instr) -> bool:
        """True if an instruction takes away from a number what its own quotient makes."""
        found = self._known.get(instr.index)
        if found is None:
            found = self._known[instr.index] = self._looked_at(instr)
        return found

    def defined(self, register: Register, before: int) -> Instr | None:
        """What gave a register its value: the last write above an instruction, in the text."""
        places = [at for at in self._defs.get(register.name, ()) if at < before]
        return self._instrs[places[-1]] if places else None

    def _looked_at(self, instr: Instr) -> bool:
        if instr.opcode == "sub":
            number, taken = instr.operands[1], [instr.operands[2]]
        elif instr.opcode in ("mad", "add"):
            number, taken = instr.operands[-1], list(instr.operands[1:-1])
        else:
            return False
        if not isinstance(number, Register):
            return False
        is_scaled = instr.opcode == "mad"
        found = any(
            self._comes_from(o, number, instr.index, _DEPTH, False, is_scaled) for o in taken
        )
        if not found and instr.opcode == "add":
            other = instr.operands[1]
            return isinstance(other, Register) and self._comes_from(
                number, other, instr.index, _DEPTH, False, False
            )
        return found

    def _comes_from(
        self,
        operand: Operand,
        number: Register,
        before: int,
        depth: int,
        is_cut: bool,
        is_scaled: bool,
    ) -> bool:
        """True if an operand is a number of which a part was dropped; what is left is in its place
        still, or was multiplied (`is_scaled`)."""
        if not isinstance(operand, Register) or not depth:
            return False
        if operand.name == number.name:
            return is_cut
        instr = self.defined(operand, before)
        if instr is None or instr.opcode not in _PASSED:
            return False
        if instr.opcode in ("shr", "div") or instr.shape.has("hi"):
            if not is_scaled:
                return False
            is_cut = True
        is_cut = is_cut or instr.opcode == "and"
        is_scaled = is_scaled or instr.opcode in _SCALING
        return any(
            self._comes_from(o, number, instr.index, depth - 1, is_cut, is_scaled)
            for o in instr.operands[1:]
        )


__all__ = ["Remainders"]
