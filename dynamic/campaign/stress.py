"""Families of stress tests, run whatever the static half says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ptxlint.dynamic.families.kit import Known
from ptxlint.dynamic.families.registry import FIRST, all_families
from ptxlint.dynamic.runners.knowledge import Described

from .blame import explained
from .gate import Gate
from .verdict import Failure


class Stress(Gate):
    """`options.cases` cases of each family for each dtype; every family that fails is a failure."""

    families: tuple[str, ...] = ()
    """Those to run, by identifier; empty for all."""

    def _failures(self, described: Described) -> Iterator[Failure]:
        """The first failure of each family and dtype."""
        wanted = [
            family
            for family in all_families().values()
            if family.id != FIRST and (not self.families or family.id in self.families)
        ]
        for dtype in described.dtypes:
            ran = False
            for outcome, kernels in self._semantic(described, dtype):
                ran = True
                self._kernels += kernels
                if outcome.status == "fail" and (not self.families or FIRST in self.families):
                    reason = explained(outcome, kernels or self._kernels)
                    yield from self._reduced(described, reason)
            if not ran:
                continue
            known = Known(described, tuple(self._kernels), dtype, self._options.seed)
            for family in wanted:
                cases = islice(self._ledger.cases(family.cases(known)), self._options.cases)
                for case in cases:
                    outcome = self._ledger.run(case)
                    self._undecidable(outcome)
                    if outcome.status == "fail":
                        yield from self._reduced(described, explained(outcome, self._kernels))
                        break


__all__ = ["Stress"]
