"""The gate of one operator: run it once, check what was captured, stress what is left open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.dynamic.families.kit import Known
from ptxlint.dynamic.families.registry import FIRST, all_families, deciding
from ptxlint.dynamic.operators.spec import NUMPY
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.worker import Worker, WorkerError

from . import adequacy
from .blame import explained, found
from .ledger import Ledger
from .plan import Open, by_turns, errors, open_obligations, place_of, proved
from .reduce import RUNS, Reduction
from .store import Store
from .strategies import full_cost
from .verdict import Failure, Stressed, Verdict, Word

CASES: Final = 3
"""For one open obligation and dtype."""
UNSUPPORTED: Final = "unsupported"
"""The kind of an outcome that says that a runner cannot run it."""


class Options(NamedTuple):
    """How much a verdict may cost."""

    runner: str = "emulator"
    seed: int = 0
    cases: int = CASES
    reducing: int = RUNS


class ProblemError(Exception):
    """Why an operator cannot be put to the test."""


class Gate:
    """The way to one verdict; `decide` goes it."""

    def __init__(
        self, worker: Worker, options: Options, store: Store | None = None, scope: str = ""
    ) -> None:
        self._worker = worker
        self._options = options
        self._store = store or Store()
        self._ledger = Ledger(worker, options.runner, self._store, scope)
        self._kernels: list[KernelKnowledge] = []
        self._tested: list[Stressed] = []
        self._notes: dict[str, None] = {}
        self._undecided: dict[str, None] = {}
        self._reducing = 0
        self._done: set[tuple[object, ...]] = set()
        """What was stressed: a dtype, or what was compiled; a kernel, a family, a place."""
        self._contrasted = False
        """True once a run was made that is what the minimum run is not."""

    def decide(self, name: str = "", path: str = "") -> Verdict:
        """The verdict. `name` and `path` are told where the operator cannot say them itself."""
        started = time.perf_counter()
        verdict = Verdict(name, "undecided", path, runner=self._options.runner)
        try:
            described = self._worker.describe()
            verdict = verdict._replace(
                name=described.name, path=described.path or path, runs_on=described.runs_on
            )
            failures = tuple(self._failures(described))
            verdict = verdict._replace(
                verdict="fail" if failures else "undecided" if self._undecided else "pass",
                failures=failures,
                reason="" if failures else "; ".join(self._undecided),
            )
            saved = full_cost(described) - len(self._ledger.outcomes)
            verdict = verdict._replace(saved=max(saved, 0))
        except (ProblemError, WorkerError) as problem:
            verdict = verdict._replace(problem=str(problem))
        return verdict._replace(
            obligations=tuple(self._tested),
            proved=proved(self._kernels),
            cases=len(self._ledger.outcomes),
            reducing=self._reducing,
            launches=self._ledger.launches,
            kernels=tuple(sorted({kernel.name for kernel in self._kernels})),
            notes=tuple(self._notes),
            seconds=time.perf_counter() - started,
        )

    def _failures(self, described: Described) -> Iterator[Failure]:
        """What is wrong, of the first dtype for which something is."""
        for dtype in described.dtypes:
            failed = False
            for failure in self._of_dtype(described, dtype):
                failed = True
                yield failure
            if failed:
                return

    def _of_dtype(self, described: Described, dtype: str) -> Iterator[Failure]:
        for outcome, kernels in self._semantic(described, dtype):
            failures = list(self._judged(described, dtype, outcome, kernels))
            if failures:
                yield from failures
                return

    def _judged(
        self,
        described: Described,
        dtype: str,
        outcome: Outcome,
        kernels: tuple[KernelKnowledge, ...],
    ) -> Iterator[Failure]:
        """What is wrong by a run, by what the static half says of its kernels, and by stress tests
        of what that leaves open."""
        self._kernels += kernels
        if outcome.status == "fail":
            # What was known before says the line where the process was lost with its kernels.
            yield from self._reduced(described, explained(outcome, kernels or self._kernels))
            return
        refuted = list(errors(kernels))
        for kernel, said in refuted:
            yield from self._reduced(described, (self._confirmed(described, dtype, kernel, said),))
        if refuted:
            return
        for one in open_obligations(kernels):
            place = (one.kernel.name, one.said["family"], place_of(one.said, one.kernel))
            told = {(dtype, *place), (one.kernel.hash, *place)}
            if not told.isdisjoint(self._done):
                continue
            self._done |= told
            failing = self._stressed(described, dtype, one)
            if failing is not None:
                yield from self._reduced(described, explained(failing, kernels, one))
                return

    # The minimum run ---------------------------------------------------------------------------
    def _semantic(
        self, described: Described, dtype: str
    ) -> Iterator[tuple[Outcome, tuple[KernelKnowledge, ...]]]:
        """The minimum run, a second one where the sizes of the first could not speak, and what is
        known of the kernels that they launched; then, once for all dtypes, runs that are what that
        one was not. Ends behind one that fails or teaches nothing."""
        family = all_families()[FIRST]
        known = Known(described, tuple(self._kernels), dtype, self._options.seed)
        cases = self._ledger.cases(family.cases(known))
        case, other = next(cases, None), next(cases, None)
        if case is None:
            raise ProblemError(
                "no sizes were found that the spec's `where` takes; give the dimensions ranges, "
                "or `typical` sizes, that go together"
            )
        outcome, kernels = self._ledger.run_and_check(case)
        if self._undecidable(outcome) is not None:
            return
        if outcome.status == "fail":
            yield outcome, kernels
            return
        others = [] if self._contrasted or other is None else [other._replace(dims=case.dims)]
        raised = adequacy.better(described, kernels, case.dims)
        again = self._ledger.first([case._replace(dims=raised)]) if raised else None
        if again is not None:
            case = again
            # The second run may as well be the one that is different.
            second = others.pop()._replace(dims=case.dims) if others else case
            self._contrasted = True
            outcome, more = self._ledger.run_and_check(second)
            kernels = (*kernels, *more)
            if self._undecidable(outcome) is not None:
                return
        if outcome.compared and not any(one.elements for one in outcome.compared):
            raise ProblemError(
                f"{dtype}: the outputs hold no elements at {dict(case.dims)}, so that nothing was "
                "held to the reference; let dimensions begin at 1"
            )
        self._notes |= dict.fromkeys(adequacy.notes(described, kernels, case.dims))
        if described.runs_on != NUMPY and not outcome.launches:
            self._notes[f"{dtype}: no kernel was launched, so that nothing was checked"] = None
        yield outcome, kernels
        whole = (
            adequacy.whole(described, kernels, case.dims) if dtype == described.dtypes[0] else None
        )
        others += [case._replace(dims=whole)] if whole else []
        for further in self._ledger.cases(others):
            self._contrasted = True
            if outcome.status == "fail" or further.key in self._ledger.outcomes:
                continue
            outcome, kernels = self._ledger.run_and_check(further)
            if self._undecidable(outcome) is not None:
                return
            # What is compiled for whole tiles is launched for no others: what would become of
            # padding there says nothing.
            is_whole = further.dims == whole and outcome.status == "pass"
            yield outcome, () if is_whole else kernels

    def _undecidable(self, outcome: Outcome) -> str | None:
        """Why a run taught nothing; None if it did. Raises `ProblemError` where no other run
        would either."""
        if outcome.status != "undecided":
            return None
        why = f"{outcome.case.dtype}: {outcome.reason or outcome.kind}"
        if outcome.kind != UNSUPPORTED:
            raise ProblemError(why)
        self._undecided[why] = None
        return why

    # What the static half says -----------------------------------------------------------------
    def _confirmed(
        self, described: Described, dtype: str, kernel: KernelKnowledge, said: dict[str, object]
    ) -> Failure:
        """A refuted property, with a run that shows it if one does."""
        failure = found(kernel, said)
        one = Open(said, kernel, deciding(failure.family))
        failing = next(
            (outcome for outcome in self._runs(described, dtype, one) if outcome.status == "fail"),
            None,
        )
        return failure if failing is None else failure._replace(seen=failing, confirmed=True)

    def _stressed(self, described: Described, dtype: str, one: Open) -> Outcome | None:
        """The first failing run for an open obligation; None if none fails. Keeps what became of
        it."""
        count, why = 0, ""
        by: dict[str, None] = {}
        failing = None
        for outcome in self._runs(described, dtype, one):
            if outcome.status == "undecided":
                why = outcome.reason
                continue
            count += 1
            by[outcome.case.family] = None
            if outcome.status == "fail":
                failing = outcome
                break
        became: Word = "fail" if failing else "pass" if count else "undecided"
        if became == "undecided":
            why = why or f"no stress test that this runner can make decides {one.said['family']}"
            self._undecided[f"{one.said['rule'] or one.said['family']}: {why}"] = None
        self._tested.append(
            Stressed(
                one.said["family"], one.said["rule"], one.kernel.name, one.said["reason"],
                place_of(one.said, one.kernel), became, tuple(by), count, "" if count else why,
            )
        )  # fmt: skip
        return failing

    def _runs(self, described: Described, dtype: str, one: Open) -> Iterator[Outcome]:
        """Runs for an obligation: the first of each family that decides it, then the second ones,
        as far as the budget goes. What a run has shown before costs nothing."""
        known = Known(described, tuple(self._kernels), dtype, self._options.seed, one.sizes)
        left = self._options.cases
        for case in by_turns(self._ledger.cases(family.cases(known)) for family in one.families):
            if not left:
                return
            left -= self._ledger.covered(case) is None
            outcome = self._ledger.run(case)
            self._problem_of(outcome)
            yield outcome

    def _problem_of(self, outcome: Outcome) -> None:
        """Raises `ProblemError` for a run that says that the spec is wrong."""
        if outcome.status == "undecided" and outcome.kind != UNSUPPORTED:
            raise ProblemError(f"{outcome.case.dtype}: {outcome.reason or outcome.kind}")

    # Smaller -----------------------------------------------------------------------------------
    def _reduced(self, described: Described, failures: tuple[Failure, ...]) -> Iterator[Failure]:
        """Failures with the smallest run that fails alike."""
        done: dict[str, Outcome] = {}
        for failure in failures:
            seen = failure.seen
            if seen is None:
                yield failure
                continue
            if seen.case.key not in done:
                reduction = Reduction(
                    described,
                    seen,
                    self._ledger.run_aside,
                    lambda dims: self._worker.allowed([dims])[0],
                    self._options.reducing,
                )
                done[seen.case.key] = reduction.search()
                self._reducing += reduction.runs
            yield failure.made_smaller(done[seen.case.key])


__all__ = ["CASES", "Gate", "Options", "ProblemError"]
