"""Two sets of kernels compared: every pair, what stands on one side alone, what fails."""

from __future__ import annotations

import time
from typing import NamedTuple

from ptxlint.comparison.difference import Comparer, Difference
from ptxlint.comparison.levels import UnlikeError
from ptxlint.comparison.pairing import pair
from ptxlint.comparison.records import KernelRecord, load
from ptxlint.comparison.tolerance import Limit, failed
from ptxlint.comparison.verdicts import Opinions


class NothingError(ValueError):
    """A side without a kernel: the text says which, and why."""


class DiffReport(NamedTuple):
    """`differences` are of all pairs, in the order of the old side; `failures` name the pairs that
    fail, and on which words. `faults` say what could not be read or compared."""

    differences: tuple[Difference, ...]
    removed: tuple[KernelRecord, ...]
    added: tuple[KernelRecord, ...]
    faults: tuple[str, ...]
    failures: tuple[tuple[Difference, tuple[str, ...]], ...]
    seconds: float

    def count(self, kind: str) -> int:
        """How many pairs are of a kind."""
        return sum(d.kind == kind for d in self.differences)

    @property
    def changed(self) -> list[Difference]:
        """The pairs that are neither identical nor renamed, as PTX and as machine code."""
        return [d for d in self.differences if d.is_changed]

    @property
    def exit_code(self) -> int:
        """2 if something could not be compared, else 1 if a pair fails, else 0."""
        return 2 if self.faults else 1 if self.failures else 0


def compare(
    old: list[str],
    new: list[str],
    *,
    opinions: Opinions | None = None,
    ptxas: str | None = "",
    limits: tuple[Limit, ...] = (),
) -> DiffReport:
    """Compare the kernels of two sides. `ptxas` is as in `Comparer`. Raises `NothingError` if a
    side has no kernel."""
    start = time.perf_counter()
    ours, theirs = load(old), load(new)
    for paths, side in ((old, ours), (new, theirs)):
        if not side.kernels:
            reason = "; ".join(side.faults) or "no kernel is in it"
            raise NothingError(f"{', '.join(paths)}: there is nothing to compare: {reason}")
    pairing = pair(ours.kernels, theirs.kernels)
    comparer = Comparer(opinions, ptxas)
    differences = []
    unlike = []
    for a, b in pairing.pairs:
        try:
            differences.append(comparer.difference(a, b))
        except UnlikeError as error:
            unlike.append(f"{a.name} ({a.arch}): {error}")
    failures = tuple((d, tuple(w)) for d in differences if (w := failed(d, limits)))
    return DiffReport(
        tuple(differences),
        tuple(pairing.removed),
        tuple(pairing.added),
        (*ours.faults, *theirs.faults, *unlike),
        failures,
        time.perf_counter() - start,
    )


__all__ = ["DiffReport", "NothingError", "compare"]
