"""A failing case made smaller: the same failure at the smallest sizes that a search finds.

The least sizes of all are tried first. Then, size by size, the least that is allowed, and the space
between it and the failing size is halved, at odd sizes, as whole tiles hide what goes wrong in
parts. Then the layout is made the plain one, and of a few kinds of values the one is taken that
errs most. What comes out has been run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Final

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.families.shapes import least
from ptxlint.dynamic.operators.spec import Dim, Dims
from ptxlint.dynamic.runners.knowledge import Described
from ptxlint.dynamic.runners.outcome import Outcome

RUNS: Final = 24
"""That a reduction may take."""
_SLOW: Final = ("hang", "memory", "output")
"""Kinds of failures that take a time limit, or much memory, each time: these get one try."""
_LOUDER: Final = ("regular", "negative")


class Reduction:
    """The search from one failing outcome. `smallest` is the best so far, `runs` what it took."""

    def __init__(
        self,
        described: Described,
        failing: Outcome,
        run: Callable[[Case], Outcome],
        allowed: Callable[[Dims], bool],
        budget: int = RUNS,
    ) -> None:
        self.smallest = failing
        self.runs = 0
        self._dims = described.dims
        self._run = run
        self._allowed = allowed
        self._budget = min(budget, 1) if failing.kind in _SLOW else budget
        self._tried = {failing.case.key}

    def search(self) -> Outcome:
        """The smallest failing outcome that the budget finds."""
        self._fails(self.smallest.case._replace(dims=least(self._dims)))
        before = None
        while before != self.smallest.case.key:
            before = self.smallest.case.key
            for name in self._by_size():
                self._shrink(name)
        self._fails(self.smallest.case._replace(layout="contiguous"))
        self._make_louder()
        return self.smallest

    def _make_louder(self) -> None:
        """Other values at the same sizes, kept where the largest error is larger."""
        quietest = self.smallest
        for values in _LOUDER:
            best = self.smallest
            if self._fails(quietest.case._replace(values=values)) and error(best) >= error(
                self.smallest
            ):
                self.smallest = best

    def _by_size(self) -> Iterator[str]:
        """Dimensions, the largest of the failing case first."""
        sizes = self.smallest.case.dims
        yield from sorted(self._dims, key=lambda name: -sizes[name])

    def _shrink(self, name: str) -> None:
        dim: Dim = self._dims[name]
        low = least(self._dims)[name]
        high = self.smallest.case.dims[name]
        if low >= high or self._fails_at(name, low):
            return
        while True:
            middle = _odd_between(dim, low, high)
            if middle is None:
                return
            middle = self._taken(name, middle, low)
            if self._fails_at(name, middle):
                high = middle
            else:
                low = middle

    def _taken(self, name: str, size: int, low: int) -> int:
        """A size; the power of two below where the operator takes that alone."""
        sizes, rounded = self.smallest.case.dims, 1 << (size.bit_length() - 1)
        if rounded <= low or self._allowed({**sizes, name: size}):
            return size
        return rounded if self._allowed({**sizes, name: rounded}) else size

    def _fails_at(self, name: str, size: int) -> bool:
        case = self.smallest.case
        return self._fails(case._replace(dims={**case.dims, name: size}))

    def _fails(self, case: Case) -> bool:
        """Runs a case, and keeps it if it fails in the same way."""
        if case.key in self._tried or self.runs >= self._budget or not self._allowed(case.dims):
            return False
        self._tried.add(case.key)
        self.runs += 1
        outcome = self._run(case)
        if not alike(outcome, self.smallest):
            return False
        self.smallest = outcome
        return True


def alike(outcome: Outcome, other: Outcome) -> bool:
    """True if it fails as the other does: for the same check, and with a NaN or an infinity that
    the reference has not if the other has one."""
    if outcome.status != "fail" or outcome.kind != other.kind:
        return False
    return _nonfinite(outcome) or not _nonfinite(other)


def _nonfinite(outcome: Outcome) -> bool:
    return any(compared.nonfinite for compared in outcome.compared)


def error(outcome: Outcome) -> float:
    """The largest finite error of an outcome; 0 where nothing was compared."""
    return max((c.max_abs for c in outcome.compared if isfinite(c.max_abs)), default=0.0)


def _odd_between(dim: Dim, low: int, high: int) -> int | None:
    """An allowed size between two, an odd number of multiples if there is one; None for none."""
    least, most = low // dim.multiple + 1, (high - 1) // dim.multiple
    if least > most:
        return None
    middle: int = (least + most) // 2
    middle = middle | 1 if middle | 1 <= most else middle
    return middle * int(dim.multiple)


__all__ = ["RUNS", "Reduction"]
