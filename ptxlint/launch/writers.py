"""What a kernel writes to in global memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses
from ptxlint.dataflow.hidden_writes import hidden_writes
from ptxlint.dataflow.tensor_maps import led_to, uses_map
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.launch.binding import Bound

_PLAIN: Final = frozenset({"st", "atom", "red"})


class Writers(NamedTuple):
    """All that writes to global memory: accesses through a pointer parameter, `loose` instructions
    of which it is not known through which, and tensor maps that lead to parameters (`mapped`)."""

    located: tuple[Access, ...]
    loose: tuple[Instr, ...]
    mapped: frozenset[str] = frozenset()

    @property
    def bases(self) -> frozenset[str]:
        """The pointer parameters that may be written through, but for what is loose."""
        return self.mapped.union(access.base for access in self.located)


def writers_of(facts: Facts) -> Writers | None:
    """What writes to global memory; None if that cannot be told."""
    accesses: Accesses = facts.get(AccessAnalysis)
    if accesses.symbolic.exhausted:
        return None
    hidden = list(hidden_writes(facts.function, accesses))
    through_maps = [instr for instr in hidden if uses_map(instr)]
    mapped = led_to(facts.function, accesses, through_maps) if through_maps else frozenset()
    if mapped is None:
        return None
    loose = [instr for instr in hidden if not uses_map(instr)]
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
    return Writers(located, tuple(loose), mapped)


def storages_of(bases: Iterable[str], bound: Bound) -> set[int] | None:
    """The storages behind some parameters; None if the launch does not tell."""
    out = set()
    for base in bases:
        region = bound.regions.get(base) or bound.descriptors.get(base)
        if region is None:
            return None
        out.add(region.storage)
    return out


__all__ = ["Writers", "storages_of", "writers_of"]
