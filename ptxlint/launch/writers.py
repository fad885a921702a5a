"""What a kernel writes to in global memory."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses
from ptxlint.dataflow.hidden_writes import hidden_writes
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr

_PLAIN: Final = frozenset({"st", "atom", "red"})


class Writers(NamedTuple):
    """All that writes to global memory: accesses through a pointer parameter, and `loose`
    instructions of which it is not known through which."""

    located: tuple[Access, ...]
    loose: tuple[Instr, ...]

    @property
    def bases(self) -> frozenset[str]:
        """The pointer parameters that are certainly written through."""
        return frozenset(access.base for access in self.located)


def writers_of(facts: Facts) -> Writers | None:
    """What writes to global memory; None if that cannot be told."""
    accesses: Accesses = facts.get(AccessAnalysis)
    if accesses.symbolic.exhausted:
        return None
    loose = list(hidden_writes(facts.function, accesses))
    if any(i.opcode not in _PLAIN or i.shape.space != "global" for i in loose):
        return None
    declared = {parameter.name for parameter in facts.function.params}
    unlocated = {instr.index for instr in loose}
    located = tuple(
        access
        for access in accesses.in_global
        if access.kind in ("store", "atomic") and access.instr.index not in unlocated
    )
    if any(access.base not in declared for access in located):
        return None
    return Writers(located, tuple(loose))


__all__ = ["Writers", "writers_of"]
