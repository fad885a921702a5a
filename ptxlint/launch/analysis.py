"""A kernel under each of its launches: what is proved, what a thread shows, and what is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import DominatorsAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.guards import GuardsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.launch.binding import Bound, BoundLaunches
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.witness import Witness, Witnesses

_ALIKE: Final = 3
"""So many of the accesses that are open for the same reason are run."""


class Outcome(NamedTuple):
    """One access under a launch. With a witness it is refuted; without one, and if nothing of
    `judged` is missing, it is proved."""

    judged: Judged
    witness: Witness | None = None


class LaunchOutcomes:
    """All global accesses of a kernel under one launch, in program order."""

    def __init__(self, under: UnderLaunch) -> None:
        self.under = under
        self.bound: Bound = under.bound
        self.outcomes: list[Outcome] = []
        witnesses = Witnesses(under)
        tried: dict[object, int] = {}
        for judged in under.judged:
            witness = None
            if judged.reason:
                group = _alike(judged)
                if tried.get(group, 0) < _ALIKE:
                    witness = witnesses.of(judged)
                    tried[group] = 0 if witness else tried.get(group, 0) + 1
            self.outcomes.append(Outcome(judged, witness))


def _alike(judged: Judged) -> object:
    wraps = tuple(wrap.instr for wrap in judged.wraps)
    access = judged.access
    return access.base, access.kind, wraps, judged.below, judged.above, judged.aligned


class Launches:
    """A kernel under each of its launches, looked at when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: list[LaunchOutcomes] = []

    def __iter__(self) -> Iterator[LaunchOutcomes]:
        bounds = self._facts.get(BoundLaunches)
        for number, bound in enumerate(bounds):
            if number == len(self._found):
                self._found.append(LaunchOutcomes(UnderLaunch(self._facts, bound)))
            yield self._found[number]

    def release(self) -> None:
        """Drop what was found for the launches."""
        for found in self._found:
            found.under.release()
        self._found.clear()


class LaunchAnalysis(Analysis[Launches]):
    """A kernel under its launches."""

    name: ClassVar[str] = "launch"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        BoundLaunches,
        DominatorsAnalysis,
        LoopsAnalysis,
        SsaAnalysis,
        SymbolicAnalysis,
        GuardsAnalysis,
        AccessAnalysis,
    )

    def run(self, facts: Facts) -> Launches:
        """Nothing is looked at yet."""
        return Launches(facts)


__all__ = ["LaunchAnalysis", "LaunchOutcomes", "Launches", "Outcome"]
