"""Reads whose numbers count in those lanes alone that store what is computed with them.

Where a tile has fewer elements than a program has threads, Triton lets several threads load and
compute the same, and one of them store. What the others read may as well be changed meanwhile, as
kernels that work in place do: nobody sees it. So such a read is noted when its lane comes to the
store. That is left to where it makes no other difference: in a straight line in which lanes wait
for nobody and order nothing, from the load to the last store.
"""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.dynamic.emulator.semantics import UnsupportedError, lanewise
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module

_MOVES: Final = frozenset({"mov", "cvta"})
_ORDERED: Final = frozenset({"relaxed", "acquire", "release", "volatile", "mmio"})
"""Qualifiers that no plain access has."""
_STEPS: Final = 64
"""So many values are looked at for each instruction of a kernel; reads that are left then count at
once."""


class StoredReads:
    """The loads of a kernel from global memory whose numbers go to stores alone. `stores` are these
    by load, in program order, `loads` the other way round."""

    def __init__(self, module: Module, kernel: Function) -> None:
        self._ssa: Ssa = Facts(module, kernel).get(SsaAnalysis)
        self._instrs = kernel.instrs
        self._steps = _STEPS * len(kernel.instrs)
        self._is_computation = [_is_computation(instr) for instr in kernel.instrs]
        self.stores: dict[Instr, list[Instr]] = {}
        self.loads: dict[Instr, list[Instr]] = {}
        ends = self._ends()
        for load in kernel.instrs:
            if load.opcode == "ld" and load.shape.space == "global":
                for store in self._reached(load, ends[load.index]):
                    self.stores.setdefault(load, []).append(store)
                    self.loads.setdefault(store, []).append(load)

    def _ends(self) -> list[int]:
        """By instruction, where the straight line ends that it lies in: in which a block goes on
        with nothing but computations and plain accesses."""
        block_of = self._ssa.cfg.block_of
        ends = list(range(len(self._instrs)))
        for instr in reversed(self._instrs):
            index = instr.index
            if self._is_computation[index] or _is_plain(instr):
                has_next = index + 1 < len(ends) and block_of[index + 1] == block_of[index]
                ends[index] = ends[index + 1] if has_next else index + 1
        return ends

    def _reached(self, load: Instr, end: int) -> list[Instr]:
        """The stores that a load's numbers go to, all in front of an instruction; none if they go
        somewhere else, too."""
        ssa = self._ssa
        found: set[int] = set()
        work, seen = list(ssa.def_values[load.index]), set[int]()
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            self._steps -= 1
            for joined in ssa.value_users(value):
                if ssa.kind[joined] != MERGE:
                    return []
                work.append(joined)
            for user in ssa.instr_users(value):
                is_there = load.index < user.index < end and self._steps > 0
                if is_there and user.opcode == "st" and value != ssa.guard_value(user):
                    found.add(user.index)
                elif is_there and self._is_computation[user.index]:
                    work += ssa.def_values[user.index]
                else:
                    return []
        return [self._instrs[index] for index in sorted(found)]


def _is_plain(instr: Instr) -> bool:
    """True for an access that orders nothing."""
    return instr.opcode in ("ld", "st") and _ORDERED.isdisjoint(instr.shape.modifiers)


def _is_computation(instr: Instr) -> bool:
    """True for what each lane does by itself, in registers."""
    if instr.opcode in _MOVES:
        return True
    try:
        return lanewise(instr) is not None
    except UnsupportedError:
        return False


__all__ = ["StoredReads"]
