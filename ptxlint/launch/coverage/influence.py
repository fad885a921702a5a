"""Which axes of the grid a value depends on, and whether programs may wait for each other.

Dependence spreads through data, through the branches that choose between the operands of a phi,
and through memory of the CTA: all that is read there may depend on all that is written there. What
a launch reads from a storage that it writes to may depend on everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import SpecialRegister
from ptxlint.launch.under import UnderLaunch

X: Final = 1
Y: Final = 2
Z: Final = 4
GRID: Final = X | Y | Z
OTHERS: Final = 8
"""What other programs do, by way of an atomic update or of memory that is read again."""
EVERYTHING: Final = GRID | OTHERS
_AXES: Final = {"x": X, "y": Y, "z": Z}
_OF_THREAD: Final = frozenset({"%tid", "%ntid", "%nctaid", "%laneid", "%warpid", "WARP_SZ"})
_INSIDE: Final = frozenset({"shared", "local", "tmem", "param"})
_ORDERING: Final = frozenset({"volatile", "acquire", "relaxed", "mmio"})


class Influence:
    """What the values of one kernel depend on, under one launch."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._ssa = under.ssa
        self._cfg = under.ssa.cfg
        self._instrs = under.facts.function.instrs
        self._control = under.facts.get(ControlDependenceAnalysis)
        self._written = self._storages_written()
        self._sources = {
            judged.access.instr.index: judged.region
            for judged in under.judged
            if judged.access.kind in ("load", "copy")
        }
        self._of = [0] * len(self._ssa.kind)
        self._inside = 0
        """What anything in the memory of a CTA may depend on."""
        self._ways: dict[int, list[int]] = {}
        self._solve()

    def of_store(self, instr: Instr) -> int:
        """What decides whether a store takes place, where, and what it writes."""
        return self._read(instr) | self._of_ways([self._cfg.block_of[instr.index]])

    @property
    def is_ordered(self) -> bool:
        """True if a branch depends on what other programs do: they may wait for each other."""
        for block in self._cfg.blocks:
            branch = self._cfg.terminator(block.index)
            predicate = None if branch is None else self._ssa.guard_value(branch)
            if predicate is not None and self._of[predicate] & OTHERS:
                return True
        return False

    # Spreading ----------------------------------------------------------------------------------
    def _solve(self) -> None:
        ssa = self._ssa
        changed = True
        while changed:
            changed = False
            before = self._inside
            for instr in self._instrs:
                if not {"", *_INSIDE}.isdisjoint(memory_of(instr.shape).writes):
                    self._inside |= self.of_store(instr) | self._from_memory(instr)
            changed = before != self._inside
            for value, kind in enumerate(ssa.kind):
                found = self._of[value]
                if kind == RESULT:
                    found |= self._of_result(self._instrs[ssa.instr[value]])
                else:
                    for operand in ssa.operands[value]:
                        found |= self._of[operand]
                    if kind == PHI:
                        found |= self._of_ways(self._cfg.blocks[ssa.phi_block[value]].preds)
                    elif kind == MERGE:
                        found |= self._of[ssa.operands[value][0]]
                if found != self._of[value]:
                    self._of[value] = found
                    changed = True

    def _of_result(self, instr: Instr) -> int:
        return self._read(instr) | self._from_memory(instr)

    def _read(self, instr: Instr) -> int:
        """What the registers that an instruction reads depend on."""
        found = 0
        for value in self._ssa.use_values[instr.index]:
            found |= self._of[value]
        if any(isinstance(part, SpecialRegister) for part in instr.args):
            # Only whole operands have the component, the axis of `%ctaid.y`.
            named = [o for o in instr.operands if isinstance(o, SpecialRegister)]
            for operand in named or (SpecialRegister(""),):
                found |= _of_special(operand.name)
        return found

    def _from_memory(self, instr: Instr) -> int:
        """What the memory that an instruction reads depends on, its address aside."""
        shape = instr.shape
        if shape.row.is_call or not shape.row.known or instr.opcode in ("atom", "red"):
            return EVERYTHING
        spaces = set(memory_of(shape).reads)
        if not spaces:
            return 0
        if not _ORDERING.isdisjoint(shape.modifiers):
            return EVERYTHING
        found = self._inside if not _INSIDE.isdisjoint(spaces) else 0
        if "param" in spaces and instr.opcode == "ld":
            found = 0
        if "global" in spaces and self._may_be_written(instr):
            found |= GRID
        return EVERYTHING if "" in spaces else found

    def _may_be_written(self, load: Instr) -> bool:
        """True if the launch may write to what it loads."""
        region = self._sources.get(load.index)
        if self._written is None or region is None:
            return self._written is None or bool(self._written)
        return region.storage in self._written

    def _storages_written(self) -> Collection[int] | None:
        """The storages that the launch writes to; None if they may be any."""
        found: set[int] = set()
        for judged in self._under.judged:
            if judged.access.kind in ("store", "atomic") and not judged.never:
                if judged.region is None:
                    return None
                found.add(judged.region.storage)
        located = {judged.access.instr.index for judged in self._under.judged}
        for instr in self._instrs:
            if instr.index not in located and not {"", "global"}.isdisjoint(
                memory_of(instr.shape).writes
            ):
                return None
        return found

    def _of_ways(self, blocks: Iterable[int]) -> int:
        """What decides whether control comes by some blocks, and where it goes from them."""
        found = 0
        for block in blocks:
            branches = self._ways.get(block)
            if branches is None:
                edges = self._control.closure(block)
                branches = sorted({edge.branch for edge in edges} | {block})
                self._ways[block] = branches
            for branch in branches:
                instr = self._cfg.terminator(branch)
                if instr is not None:
                    found |= self._read(instr)
        return found


def _of_special(name: str) -> int:
    base, _, axis = name.partition(".")
    if base == "%ctaid":
        return _AXES.get(axis, GRID)
    return 0 if base in _OF_THREAD else EVERYTHING


__all__ = ["EVERYTHING", "GRID", "OTHERS", "Influence", "X", "Y", "Z"]
