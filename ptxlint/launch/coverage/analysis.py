"""Coverage of the outputs of a kernel, under each of its launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow.access import AccessAnalysis, Accesses
from ptxlint.facts import Analysis, Facts
from ptxlint.launch.analysis import LaunchAnalysis

if TYPE_CHECKING:
    # What looks at launches is loaded when there is one.
    from ptxlint.launch.analysis import Launches, LaunchOutcomes
    from ptxlint.launch.coverage.apart import Apart
    from ptxlint.launch.coverage.missed import Missed
    from ptxlint.launch.coverage.runs import Runs


class Coverage:
    """What one launch writes."""

    def __init__(self, found: LaunchOutcomes, accesses: Accesses) -> None:
        from ptxlint.launch.coverage.apart import apart
        from ptxlint.launch.coverage.missed import Looking
        from ptxlint.launch.coverage.writes import writes_of

        self.found = found
        self.writes = writes_of(found)
        self._runs: Runs | None = None
        self.apart: list[Apart] = list(apart(found.under, self.writes, self._running))
        """By output, whether programs write apart."""
        looking = Looking(found.under, self.writes, accesses, self._running)
        self.missed: list[Missed] = list(looking.missed())
        """By tensor, where there is something to say, whether all of it is written."""

    @property
    def premises(self) -> tuple[str, ...]:
        """What tensors of numbers must hold for these proofs to hold, as the launch tells."""
        promises = self.found.under.promises
        ran = promises.words(dict.fromkeys(promises.told)) if self._runs is not None else ()
        return tuple(dict.fromkeys((*self.found.premises, *ran)))

    def _running(self) -> Runs:
        if self._runs is None:
            # Arrays are needed for what is left alone.
            from ptxlint.launch.coverage.runs import Runs

            self._runs = Runs(self.found.under)
        return self._runs


class Coverages:
    """The coverage of each launch of a kernel, looked at when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: list[Coverage] = []

    def __iter__(self) -> Iterator[Coverage]:
        if not self._facts.launches:
            return
        launches: Launches = self._facts.get(LaunchAnalysis)
        for number, found in enumerate(launches):
            if number == len(self._found):
                self._found.append(Coverage(found, self._facts.get(AccessAnalysis)))
            yield self._found[number]


class CoverageAnalysis(Analysis[Coverages]):
    """Which cells each launch writes, and how often."""

    name: ClassVar[str] = "coverage"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        LaunchAnalysis,
        AccessAnalysis,
        ControlDependenceAnalysis,
        PostDominatorsAnalysis,
    )

    def run(self, facts: Facts) -> Coverages:
        """Nothing is looked at yet."""
        return Coverages(facts)


__all__ = ["Coverage", "CoverageAnalysis", "Coverages"]
