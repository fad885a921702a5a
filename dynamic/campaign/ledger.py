"""Runs of one operator, each made once: what has run before is looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.checks import possible
from ptxlint.dynamic.runners.knowledge import KernelKnowledge
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.worker import Worker, WorkerError

from .store import Store


class Ledger:
    """All runs of an operator for one verdict.

    `runner` says which checks can be made at all; `outcomes` are what has been asked for here, in
    order, whether it ran now or before.
    """

    def __init__(self, worker: Worker, runner: str, store: Store, scope: str) -> None:
        self.worker = worker
        self.runner = runner
        self.outcomes: dict[str, Outcome] = {}
        self._seen: list[KernelKnowledge] = []
        self._store = store
        self._scope = scope

    def cases(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Each at sizes that the operator takes together, once, with the checks that the runner
        can make."""
        seen = set()
        for case in cases:
            checks = possible(case.checks, self.runner)
            dims = self.worker.nearest(case.dims) if checks else None
            if dims is not None:
                taken = case._replace(dims=dims, checks=checks)
                if taken.key not in seen:
                    seen.add(taken.key)
                    yield taken

    def first(self, cases: Iterable[Case]) -> Case | None:
        """The first of the cases that can be run."""
        return next(islice(self.cases(cases), 1), None)

    def run(self, case: Case) -> Outcome:
        """What a case comes to. A run that passed with the same inputs and at least these checks
        says it, too."""
        passed = self.covered(case)
        if passed is not None:
            return passed
        outcome = self.run_aside(case)
        self.outcomes[case.key] = outcome
        return outcome

    def run_aside(self, case: Case) -> Outcome:
        """What a case comes to, without counting it among those that led to the verdict."""
        outcome = self._store.outcome(self._scope, case.key)
        if outcome is None:
            outcome = self.worker.run(case)
            self._store.add(self._scope, outcome)
        return outcome

    def run_and_check(self, case: Case) -> tuple[Outcome, tuple[KernelKnowledge, ...]]:
        """What a case comes to, and what the static half says of the kernels that it launched, as
        far as that is new; nothing where they were lost with the process that launched them."""
        outcome = self._store.outcome(self._scope, case.key)
        kernels = self._store.kernels(self._scope, case.key)
        if outcome is None or kernels is None:
            outcome = self.worker.run(case)
            try:
                kernels = tuple(k for k in self.worker.check() if k not in self._seen)
            except WorkerError:
                kernels = ()
            self._store.add(self._scope, outcome, kernels)
        self._seen += kernels
        self.outcomes[case.key] = outcome
        return outcome, kernels

    def covered(self, case: Case) -> Outcome | None:
        """A run that passed and says what this case would."""
        for outcome in self.outcomes.values():
            same = outcome.case.inputs_key == case.inputs_key
            if same and outcome.status == "pass" and set(case.checks) <= set(outcome.case.checks):
                return outcome
        return None

    @property
    def launches(self) -> int:
        """Kernel launches of all runs."""
        return sum(outcome.launches for outcome in self.outcomes.values())


__all__ = ["Ledger"]
