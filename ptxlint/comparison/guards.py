"""Global accesses that a guard keeps inside, by line of the source.

In PTX a guard is a predicate, a size at run time or a tensor map; in machine code it is what
`ptxlint.structure.guards` says.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.comparison.changes import Where
from ptxlint.comparison.records import KernelRecord
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.structure.guards import MachineGuards
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
    is_guarded = MachineGuards(facts).is_guarded if kernel.is_machine else _is_guarded
    for instr in kernel.function.instrs:
        kind = class_of(instr)
        effect = memory_of(instr.shape)
        if kind == "barrier" or "global" not in (*effect.reads, *effect.writes):
            continue
        key = line(kernel, instr), kind
        guarded, total = found.get(key, (0, 0))
        found[key] = Guarded(guarded + is_guarded(instr), total + 1)
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


__all__ = ["NOWHERE", "Guarded", "guards", "line"]
