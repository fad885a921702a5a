"""Two sets of kernels compared: every pair, what stands on one side alone, what fails."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from ptxlint.comparison.difference import Comparer, Difference
from ptxlint.comparison.levels import UnlikeError
from ptxlint.comparison.pairing import pair
from ptxlint.comparison.records import KernelRecord, load
from ptxlint.comparison.tolerance import Limit, failed, undecided
from ptxlint.comparison.verdicts import Opinions

_NOTHING_IN_COMMON: Final = (
    "no kernel of one side has the name and architecture of one of the other, or does the same; "
    "`ptxlint compare` holds architectures against each other"
)


class NothingError(ValueError):
    """A side without a kernel: the text says which, and why."""


class DiffReport(NamedTuple):
    """`differences` are of all pairs, in the order of the old side; `failures` name the pairs that
    fail, and on which words, `undecided` those of which that is not known; `missing` are kernels of
    one side alone on which it fails. `faults` say what could not be read or compared."""

    differences: tuple[Difference, ...]
    removed: tuple[KernelRecord, ...]
    added: tuple[KernelRecord, ...]
    faults: tuple[str, ...]
    failures: tuple[tuple[Difference, tuple[str, ...]], ...]
    seconds: float
    undecided: tuple[tuple[Difference, tuple[str, ...]], ...] = ()
    missing: tuple[tuple[KernelRecord, str], ...] = ()

    @property
    def fails(self) -> bool:
        """True if something fails on a word."""
        return bool(self.failures or self.missing)

    def count(self, kind: str) -> int:
        """How many pairs are of a kind."""
        return sum(d.kind == kind for d in self.differences)

    @property
    def changed(self) -> list[Difference]:
        """The pairs that are neither identical nor renamed, as PTX and as machine code, or have
        other resources."""
        return [d for d in self.differences if d.is_changed]

    @property
    def exit_code(self) -> int:
        """2 if something could not be compared or decided, else 1 if something fails, else 0."""
        return 2 if self.faults or self.undecided else 1 if self.fails else 0


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
    if not pairing.pairs:
        unlike.append(_NOTHING_IN_COMMON)
    words = {limit.name for limit in limits}
    refused = dict.fromkeys(fault for d in differences for fault in d.faults)
    return DiffReport(
        tuple(differences),
        tuple(pairing.removed),
        tuple(pairing.added),
        (*ours.faults, *theirs.faults, *unlike, *refused),
        tuple((d, tuple(w)) for d in differences if (w := failed(d, limits))),
        time.perf_counter() - start,
        tuple((d, tuple(w)) for d in differences if (w := undecided(d, limits))),
        tuple(
            (kernel, word)
            for word, kernels in (("removed", pairing.removed), ("added", pairing.added))
            for kernel in kernels
            if word in words
        ),
    )


__all__ = ["DiffReport", "NothingError", "compare"]
