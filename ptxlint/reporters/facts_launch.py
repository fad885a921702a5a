"""What `ptxlint show facts` says of a kernel under a launch: numbers, guards, where accesses go."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses
from ptxlint.dataflow.guards import Guards, GuardsAnalysis
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.engine.under_launch import launch_to_dict
from ptxlint.facts import Facts
from ptxlint.launch.analysis import LaunchAnalysis, Launches, LaunchOutcomes, Outcome
from ptxlint.launch.questions import element_of, thread_of, touched
from ptxlint.reporters.wording import launch_line


class FactsUnderLaunch:
    """The first of a kernel's launches, as `show facts` has it."""

    def __init__(self, facts: Facts) -> None:
        launches: Launches = facts.get(LaunchAnalysis)
        self._found: LaunchOutcomes = next(iter(launches))
        seen = self._found.under.facts
        self.symbolic: Symbolic = seen.get(SymbolicAnalysis)
        self.guards: Guards = seen.get(GuardsAnalysis)
        self.accesses: Accesses = seen.get(AccessAnalysis)
        number = len(facts.launches)
        line = launch_line(launch_to_dict(self._found.bound))
        self.text = f"launch 1 of {number}: {line}" if number > 1 else f"launch {line}"
        self._by_instr: dict[int, list[Outcome]] = {}
        for outcome in self._found.outcomes:
            self._by_instr.setdefault(outcome.judged.access.instr.index, []).append(outcome)

    def of(self, access: Access) -> Iterator[tuple[str, str]]:
        """The words on one access, each with its status."""
        for outcome in self._by_instr.get(access.instr.index, ()):
            if outcome.judged.access.base == access.base:
                yield self._word(outcome)

    def _word(self, outcome: Outcome) -> tuple[str, str]:
        judged, witness = outcome.judged, outcome.witness
        if witness is not None:
            what = {"above": "beyond its end", "below": "before its start"}.get(witness.kind)
            if witness.wrap is not None:
                what = f"where an index comes to {witness.value:,}"
            what = what or "misaligned"
            place = f"{thread_of(outcome)} {touched(outcome)}{element_of(outcome)}"
            return "refuted", f"{place} {what}"
        if outcome.shown:
            return "refuted", "as another access shows"
        if judged.never:
            return "proved", "never takes place"
        if not judged.is_inside or judged.region is None:
            return "open", judged.reason
        box = self._found.under.box(judged.access.guard or frozenset(), (judged.access.offset,))
        low, high = box.range(judged.access.offset)
        region = judged.region
        size = region.high - region.low
        if judged.access.base and region.low <= low and high + judged.access.width <= region.high:
            last = high + judged.access.width - 1
            return (
                "proved",
                f"within bytes {low:,} to {last:,} of {region.name}, which has {size:,}",
            )
        return "proved", f"inside {region.name}, which has {size:,} bytes"


__all__ = ["FactsUnderLaunch"]
