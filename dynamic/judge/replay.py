"""One launch run in the emulator, and all that the static half says of it held to what happened.

A *criterion* says of one property what a run must do, or must not: it goes through the words of the
static half on one launch and tells, for each, whether the run kept it. A proof that a run violates
is a contradiction, and so is a refutation that a whole run kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.inputs import Inputs
from ptxlint.dynamic.emulator.launched import Ran, run_launch
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.dynamic.judge.tuning import Tuned
from ptxlint.engine.analyse import find_arch
from ptxlint.engine.registry import default_registry
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.binding import Bound, bind
from ptxlint.launch.bound import BoundLaunches
from ptxlint.launches import Extent, Launch
from ptxlint.rulekit import Hit, Verdict

MOST_TURNS: Final = 20_000
MOST_CTAS: Final = 4096
"""CTAs up to which a grid is run whole."""

KEPT: Final = "kept"
VIOLATED: Final = "violated"
UNKNOWN: Final = "unknown"


class Judgement(NamedTuple):
    """What is said of the property `name` and what a run did: `kept`, `violated`, or `unknown`
    where the run does not tell. `what` says it in words."""

    name: str
    verdict: str
    happened: str
    what: str = ""

    @property
    def is_contradiction(self) -> bool:
        """True if the run disproves the verdict."""
        return (self.verdict, self.happened) in (("proved", VIOLATED), ("refuted", KEPT))


class Contradiction(NamedTuple):
    """A verdict that a run disproves."""

    kernel: str
    launch: Launch
    property: str
    verdict: str
    met: str


class Replay(NamedTuple):
    """One launch, judged. `counts` are of judgements by (property, verdict, what happened)."""

    counts: Counter[tuple[str, str, str]]
    contradictions: list[Contradiction]


class Played:
    """One launch, analysed and run."""

    def __init__(
        self, emulator: Emulator, facts: Facts, bound: Bound, inputs: Inputs, seed: int
    ) -> None:
        self.emulator = emulator
        self.facts = facts
        self.bound = bound
        self.contents = inputs
        """What tensors hold, the autotuner left aside."""
        self.seed = seed
        """Of the order in which CTAs begin."""
        self.order = self._order()
        self._said: dict[str, tuple[list[Verdict], list[Hit]]] = {}

    @cached_property
    def found(self) -> LaunchOutcomes:
        """The accesses under the launch."""
        (found,) = self.facts.get(LaunchAnalysis)
        return found

    @cached_property
    def record(self) -> Record:
        """What the run did lane by lane: its stores, its atomics and its meetings, and its loads
        where BND306 says something of the launch."""
        return self._ran_with_record[1]

    @property
    def ran(self) -> Ran:
        """The run of the whole grid, or of a sample of a large one."""
        return self._ran_with_record[0]

    @cached_property
    def _ran_with_record(self) -> tuple[Ran, Record]:
        record = Record(loads=self._needs_loads)
        return self.run(record=record, only=self.order), record

    @property
    def _needs_loads(self) -> bool:
        """True if something is said of all accesses to the elements of a tensor."""
        return any(v.launch and v.status != "open" for v in self.said("BND306")[0])

    @property
    def is_whole(self) -> bool:
        """True if every program was run to its end."""
        return self.ran.outcome.is_complete and not self.ran.sampled

    @cached_property
    def faults(self) -> dict[tuple[str, int], Fault]:
        """What was done wrong, by kind and instruction."""
        return {(fault.kind, fault.instr.index): fault for fault in self.ran.outcome.faults}

    def run(
        self,
        *,
        inputs: Inputs | None = None,
        record: Record | None = None,
        only: Sequence[Extent] | None = None,
        sanitize: Sanitize = MEMORY,
    ) -> Ran:
        """Run it once more, on the same contents or on others."""
        return run_launch(
            self.emulator,
            self.bound,
            Tuned(self.bound, self.contents) if inputs is None else inputs,
            most_turns=MOST_TURNS,
            record=record,
            only=only,
            sanitize=sanitize,
        )

    def said(self, rule: str) -> tuple[list[Verdict], list[Hit]]:
        """The verdicts and the findings of a rule, given by its identifier."""
        if rule not in self._said:
            self._said[rule] = said(self.facts, rule)
        return self._said[rule]

    def _order(self) -> list[Extent] | None:
        """The CTAs in an order of their own: a device may begin them in any. None for too many."""
        x, y, z = self.bound.grid
        if x * y * z > MOST_CTAS:
            return None
        numbers = np.random.default_rng(self.seed).permutation(x * y * z).tolist()
        return [(n % x, n // x % y, n // (x * y)) for n in numbers]


def said(facts: Facts, rule: str) -> tuple[list[Verdict], list[Hit]]:
    """The verdicts and the findings of a rule on what is known of a kernel."""
    verdicts: list[Verdict] = []
    hits: list[Hit] = []
    for one in default_registry().rules[rule]().check(facts.function, facts):
        if isinstance(one, Verdict):
            verdicts.append(one)
        else:
            hits.append(one)
    return verdicts, hits


Criterion: TypeAlias = Callable[[Played], Iterator[Judgement]]
"""What is said of one property of a launch, and whether the run kept it."""


class Judge:
    """One kernel, with all that is known of it without a launch."""

    def __init__(self, emulator: Emulator, metadata: KernelMetadata | None) -> None:
        self.emulator = emulator
        self._metadata = metadata
        module, kernel = emulator.module, emulator.kernel
        self._facts = Facts(module, kernel, find_arch(module.arch), metadata)

    def played(self, launch: Launch, inputs: Inputs, seed: int = 0) -> Played:
        """A launch of it. Raises `BindingError` for one that does not fit."""
        bound = bind(self.emulator.kernel, launch, {}, self._metadata)
        facts = self._facts.instead(BoundLaunches, lambda other: (bound,))
        facts.launches = (launch,)
        return Played(self.emulator, facts, bound, inputs, seed)

    def replay(
        self, launch: Launch, inputs: Inputs, criteria: Sequence[Criterion], seed: int = 0
    ) -> Replay:
        """Judge what is said of a launch.

        Raises `BindingError` for one that does not fit and `InputError` for one that cannot be laid
        out.
        """
        played = self.played(launch, inputs, seed)
        counts: Counter[tuple[str, str, str]] = Counter()
        wrong: list[Contradiction] = []
        name = self.emulator.kernel.name
        for criterion in criteria:
            for one in criterion(played):
                counts[one.name, one.verdict, one.happened] += 1
                if one.is_contradiction:
                    wrong.append(Contradiction(name, launch, one.name, one.verdict, one.what))
        return Replay(counts, wrong)


__all__ = [
    "KEPT", "UNKNOWN", "VIOLATED", "Contradiction", "Criterion", "Judge", "Judgement", "Played",
    "Replay", "said",
]  # fmt: skip
