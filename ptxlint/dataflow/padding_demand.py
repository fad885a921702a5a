"""Which values can matter to a verdict on padding: those that something can still combine.

What is loaded from shared memory only to be stored to global memory, as results are in another
layout at a kernel's end, is never judged; then nobody needs to know where it came from.
"""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.ssa_values import PHI, Ssa
from ptxlint.ir.instruction import Instr

_COMBINING: Final = frozenset(
    {"mma", "wgmma", "tcgen05", "wmma", "shfl", "redux", "red", "atom", "bra", "cp", "stmatrix"}
)


class Demand:
    """The values of one function that are followed on, found when asked for."""

    __slots__ = ("_instrs", "_known", "_members", "_ssa")

    def __init__(self, ssa: Ssa, reductions: Reductions) -> None:
        self._ssa = ssa
        self._instrs = ssa.cfg.function.instrs
        self._members = reductions.members
        self._known: dict[int, bool] = {}

    def of(self, value: int) -> bool:
        """True unless all that a value goes to is stored to memory that is not shared.

        What goes into a phi counts as followed on, so that without phis there are no cycles.
        """
        found = self._known.get(value)
        return self._find(value) if found is None else found

    def _find(self, value: int) -> bool:
        known = self._known
        way = [value]
        nexts = [self._after(value)]
        while way:
            after = nexts[-1]
            if after is None:
                known.update(dict.fromkeys(way, True))
                return True
            if not after:
                known[way.pop()] = False
                nexts.pop()
                continue
            value = after.pop()
            is_followed = known.get(value)
            if is_followed is None:
                way.append(value)
                nexts.append(self._after(value))
            elif is_followed:
                nexts[-1] = None
        return False

    def _after(self, value: int) -> list[int] | None:
        """What is made of a value next; None if it is combined or shared there."""
        ssa = self._ssa
        out: list[int] = []
        for user in ssa.users(value):
            if user < 0:
                if ssa.kind[~user] == PHI:
                    return None
                out.append(~user)
                continue
            instr = self._instrs[user]
            if self._is_followed(instr):
                return None
            out += ssa.def_values[user]
        return out

    def _is_followed(self, instr: Instr) -> bool:
        """True for what combines values, shares them or is not known."""
        shape = instr.shape
        if shape.opcode == "st":
            return shape.space not in ("global", "local")
        return (
            shape.opcode in _COMBINING
            or instr.index in self._members
            or shape.row.is_call
            or not shape.row.known
        )


__all__ = ["Demand"]
