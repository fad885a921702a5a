"""Verdicts on warps that work in place, held to races within a program (HAZ602).

*Proved*: with a program run alone, no two warps access one byte of the array, one of them writing
another number to it, without a barrier between them. *Refuted* is said of what barriers allow, not
of one order in which warps come: a run that sees the race counts as one, and one that does not
tells nothing.

The rule is about reads that are used: where a warp reads the array and stores nothing, a race tells
nothing. Nor are judged arrays whose storage other arguments share, as the rule speaks of one array,
and proofs that assume strides which keep elements apart. Programs of one launch are for HAZ601.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import numpy as np

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dynamic.emulator.record import Record, Touched
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.ir.instruction import Instr
from ptxlint.launches import Extent

NAME = "in place"
_WARP: Final = 32
_PROGRAMS: Final = 3
"""So many programs of a launch are run, each alone."""


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each array that is read and written."""
    verdicts, _ = played.said("HAZ602")
    if not verdicts:
        return
    base_of = {access.instr: access.base for access in played.facts.get(AccessAnalysis).in_global}
    programs = _programs(played)
    for verdict in verdicts:
        base = "" if verdict.at is None else base_of.get(verdict.at, "")
        if not base or verdict.assumes or _is_shared(played, base):
            yield Judgement(NAME, verdict.status, UNKNOWN)
            continue
        own = {instr for instr, name in base_of.items() if name == base}
        happened = _happened(own, programs)
        if happened == KEPT and verdict.status == "refuted":
            happened = UNKNOWN
        what = f"warps race in {base}: {verdict.reason}"
        yield Judgement(NAME, verdict.status, happened, what)


def _is_shared(played: Played, base: str) -> bool:
    """True if other arguments lie in the storage of an array."""
    region = played.bound.regions.get(base)
    others = [r for r in played.bound.regions.values() if region and r.storage == region.storage]
    return len(others) != 1


class _Program(NamedTuple):
    """A program that was run alone: where warps race, and what was touched."""

    racing: frozenset[Instr]
    touched: list[Touched]

    def warps(self, instrs: Collection[Instr] | None, reads: bool) -> frozenset[int]:
        """The warps that read, or that write, by some instructions (all without them)."""
        return frozenset(
            warp
            for one in self.touched
            if (one.reads if reads else one.writes) and (instrs is None or one.instr in instrs)
            for warp in np.unique(one.thread // _WARP).tolist()
        )


def _happened(own: Collection[Instr], programs: list[_Program]) -> str:
    """Whether warps race in the array that some instructions access."""
    happened: str = KEPT
    for program in programs:
        if not program.racing.isdisjoint(own):
            idle = program.warps(own, reads=True) - program.warps(None, reads=False)
            happened = UNKNOWN if idle else VIOLATED
            break
    return happened


def _programs(played: Played) -> list[_Program]:
    x, y, z = played.bound.grid
    drawn = np.random.default_rng(played.seed).integers(x * y * z, size=_PROGRAMS)
    found = []
    for n in dict.fromkeys([0, *drawn.tolist()]):
        program: Extent = n % x, n // x % y, n // (x * y)
        record = Record(loads=True)
        ran = played.run(only=[program], sanitize=Sanitize(races=True), record=record)
        racing = frozenset(fault.instr for fault in ran.outcome.faults if fault.kind == "race")
        found.append(_Program(racing, record.touched))
    return found


__all__ = ["judge"]
