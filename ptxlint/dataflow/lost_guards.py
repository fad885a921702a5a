"""Accesses of machine code that run whatever the guard says which they have in the PTX.

Both are tied by the line of the source that the line table names: `ptxas` copies it from the
`.loc` in front of each instruction. Of a line that is inlined at several places it may name the
wrong one (measured), so these are taken together. An access of machine code comes from one or more
accesses of its kind on its line, and runs only where one of these does. So it has to depend on all
inputs that the guard of one of these depends on for certain; if it does for none, the guard is
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.dataflow.access import Access, AccessAnalysis
from ptxlint.dataflow.guard_inputs import GuardInputs
from ptxlint.dataflow.inputs import ANY, Input
from ptxlint.dataflow.machine_deciders import MachineDecidersAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Negated, SpecialRegister
from ptxlint.source import Loc

_KINDS: Final = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy",
    "LDG": "load", "STG": "store", "ATOMG": "atomic", "RED": "atomic", "REDG": "atomic",
    "LDGSTS": "copy", "UTMALDG": "copy", "UTMASTG": "copy", "UTMAREDG": "copy", "UBLKCP": "copy",
    "UBLKRED": "copy",
}  # fmt: skip
_HIDDEN: Final = ("opaque", "load", "select")
"""Atoms of which two may be the same value."""
_Line: TypeAlias = tuple[str, int]
_Place: TypeAlias = tuple[_Line, str]


class LostGuard(NamedTuple):
    """An access of machine code, one of the PTX that it comes from, and the inputs that decide
    whether that one runs and do not decide here."""

    instr: Instr
    access: Instr
    inputs: tuple[Input, ...]


class Survival(NamedTuple):
    """What became of guards: the accesses to global memory in the machine code, how many of them
    depend on all that their guard in the PTX depends on, and those that do not. Of the others
    nothing is known: the PTX has no guard, or one that is not understood, or the lines do not say
    where they come from."""

    accesses: int
    kept: int
    lost: tuple[LostGuard, ...]


def survival(ptx: Facts, machine: Facts) -> Survival:
    """Hold a kernel's machine code to its PTX."""
    accesses = list(_accesses(machine))
    deciders = machine.get(MachineDecidersAnalysis)
    if deciders is None or not accesses:
        return Survival(len(accesses), 0, ())
    origins = _Origins(ptx, machine.module.arch)
    kept = 0
    lost = []
    for place, instr in accesses:
        guards = origins.guards(place)
        if not guards:
            continue
        found = deciders.of(instr)
        if ANY in found:
            continue
        if any(needed <= found for _, needed in guards):
            kept += 1
            continue
        access, needed = min(guards, key=lambda guard: len(guard[1] - found))
        if not origins.is_merged(place, found):
            lost.append(LostGuard(instr, access, tuple(sorted(needed - found))))
    return Survival(len(accesses), kept, tuple(lost))


class _Origins:
    """The accesses of a PTX kernel by line and kind."""

    def __init__(self, facts: Facts, arch: str) -> None:
        self._facts = facts
        self._inputs = GuardInputs(facts, arch)
        self._by_place: dict[_Place, list[Instr]] = {}
        self._by_kind: dict[str, list[Instr]] = {}
        for place, instr in _accesses(facts):
            self._by_place.setdefault(place, []).append(instr)
            self._by_kind.setdefault(place[1], []).append(instr)

    def guards(self, place: _Place) -> list[tuple[Instr, frozenset[Input]]]:
        """The accesses that may have come to a place, with what their guards depend on; nothing
        if one of them has no guard that is known to depend on anything."""
        found = []
        for instr in self._by_place.get(place, ()):
            needed = self._inputs.of(instr)
            if needed is not None:
                if not needed:
                    return []
                found.append((instr, needed))
        return found

    def is_merged(self, place: _Place, found: frozenset[Input]) -> bool:
        """True if what stands at a place and depends on no more than `found` may be several
        accesses to one address in one, as the stores of an `if` and its `else`: these together may
        run whatever their guards say. They do not if none of them runs at a point at which one
        would for another value of an input that is missing."""
        known = {a.instr.index: a for a in self._facts.get(AccessAnalysis).in_global}
        for instr in self._by_place[place]:
            mine = known.get(instr.index)
            points = self._inputs.failing(instr, found)
            for other in self._by_kind[place[1]]:
                if other is not instr and _may_be_one(mine, known.get(other.index)):
                    points = {p for p in points if self._inputs.fails(other, p)}
            if not points:
                return True
        return False


def _may_be_one(one: Access | None, other: Access | None) -> bool:
    """True if two accesses may be seen to have the same address."""
    if one is None or other is None or one.base != other.base:
        return one is None or other is None or not one.base or not other.base
    gap = one.offset - other.offset
    if gap.is_constant:
        return not gap.constant
    atoms = one.offset.table.atoms
    inside = {number for atom in gap.atoms() for number in atom.inner}
    return any(atoms[number].kind in _HIDDEN for number in inside)


def _accesses(facts: Facts) -> Iterator[tuple[_Place, Instr]]:
    """The reachable accesses to global memory that name a line, or to memory of any space in PTX,
    in program order."""
    cfg = facts.get(CfgAnalysis)
    loc: Loc | None = None
    has_own = False
    for item in facts.function.items:
        if isinstance(item, Loc):
            # The assembler takes every `.loc`, also one inside of inline assembly.
            loc, has_own = item, True
        elif isinstance(item, Instr):
            kind = _KINDS.get(item.opcode, "")
            place = _line(facts.module, loc if has_own else item.loc)
            if not kind or place is None or not cfg.is_reachable(item):
                continue
            if _is_global(item) and not _never_runs(item):
                yield (place, kind), item


def _is_global(instr: Instr) -> bool:
    effect = memory_of(instr.shape)
    spaces = (*effect.reads, *effect.writes)
    return "global" in spaces or "" in spaces


def _never_runs(instr: Instr) -> bool:
    """True for a copy that only fills with zeros: `LDGSTS …, !PT` reads nothing."""
    return instr.opcode == "LDGSTS" and any(
        isinstance(o, Negated) and o.operand == SpecialRegister("PT") for o in instr.operands
    )


def _line(module: Module, loc: Loc | None) -> _Line | None:
    """The innermost line of a place."""
    entry = None if loc is None else module.files.get(loc.file)
    return None if loc is None or entry is None else (entry.name, loc.line)


__all__ = ["LostGuard", "Survival", "survival"]
