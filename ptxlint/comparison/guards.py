"""Global accesses that a guard keeps inside, by line of the source.

In PTX a guard is a predicate, a size at run time or a tensor map. An assembler makes branches and
early exits of predicates and the other way round, so in machine code it is whatever decides whether
the access runs, but for the branches of the loops around it.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.comparison.changes import Where
from ptxlint.comparison.records import KernelRecord
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.structure.profile import class_of

NOWHERE = Where("", 0)
"""The line of what has none in the source."""


class Guarded(NamedTuple):
    """Global accesses of one kind on one line: how many a guard keeps inside, of how many."""

    guarded: int
    total: int

    @property
    def word(self) -> str:
        """`all`, `some` or `none` of them are guarded."""
        return "all" if self.guarded == self.total else "some" if self.guarded else "none"


def guards(kernel: KernelRecord, facts: Facts) -> dict[tuple[Where, str], Guarded]:
    """The global accesses of a kernel by line and kind (`load`, `store`, `atomic`, `async`)."""
    found: dict[tuple[Where, str], Guarded] = {}
    decided = _Decided(facts) if kernel.is_machine else None
    for instr in kernel.function.instrs:
        kind = class_of(instr)
        effect = memory_of(instr.shape)
        if kind == "barrier" or "global" not in (*effect.reads, *effect.writes):
            continue
        key = line(kernel, instr), kind
        guarded, total = found.get(key, (0, 0))
        is_guarded = _is_guarded(instr) if decided is None else decided.is_guarded(instr)
        found[key] = Guarded(guarded + is_guarded, total + 1)
    return found


def line(kernel: KernelRecord, instr: Instr) -> Where:
    """The line of the source behind an instruction; `NOWHERE` where none is known, since lines of
    the PTX are others on each architecture."""
    frame = kernel.module.python_frame(instr.loc)
    if frame is None or frame.line < 1:
        return NOWHERE
    return Where(frame.path, frame.line)


def _is_guarded(instr: Instr) -> bool:
    """True if a predicate, a size at run time or a tensor map keeps an access of PTX inside."""
    if instr.shape.guard:
        return True
    # cp.async with a source size reads that many bytes only; a tensor map has bounds of its own.
    words = instr.shape.modifiers
    if "tensor" in words:
        return True
    return instr.opcode == "cp" and "bulk" not in words and len(instr.operands) > 3


class _Decided:
    """Which instructions of machine code do not run for every thread."""

    def __init__(self, facts: Facts) -> None:
        self._cfg = facts.get(CfgAnalysis)
        self._loops = facts.get(LoopsAnalysis)
        self._dependence = facts.get(ControlDependenceAnalysis)
        self._blocks: dict[int, bool] = {}

    def is_guarded(self, instr: Instr) -> bool:
        """True if a predicate (`LDGSTS` takes it as an operand), a branch that is no loop's, or a
        tensor map keeps an access inside."""
        if any(register.type == "pred" for register in instr.uses):
            return True
        if instr.opcode.startswith("UTMA"):
            return True
        block = self._cfg.block_at(instr).index
        known = self._blocks.get(block)
        if known is None:
            known = self._blocks[block] = self._is_decided(block)
        return known

    def _is_decided(self, block: int) -> bool:
        around = set()
        loop = self._loops.innermost(block)
        while loop is not None:
            around.update(loop.blocks)
            loop = loop.parent
        return any(edge.branch not in around for edge in self._dependence.closure(block))


__all__ = ["NOWHERE", "Guarded", "guards", "line"]
