"""What is said of two builds of a kernel: which property got worse, which better.

Properties are told apart by rule and by the Python line (or the words of the source) that they
stand at; where lines have moved, by rule and number. So a kernel that is said the same of, on other
lines, is not called changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

from ptxlint.comparison.records import KernelRecord
from ptxlint.diagnostics import Finding
from ptxlint.engine.analyse import Checker
from ptxlint.engine.baseline.entries import Counts
from ptxlint.engine.baseline.worse import is_worse
from ptxlint.obligations import SEMANTICS, Obligation

_WORSE: Final = {"proved": 0, "open": 1, "refuted": 2}


class Said(NamedTuple):
    """All that the check says of one kernel."""

    findings: tuple[Finding, ...]
    obligations: tuple[Obligation, ...]

    def counts(self) -> dict[str, Counter[str]]:
        """Verdicts by rule: how many are proved, open, refuted."""
        out: dict[str, Counter[str]] = {}
        for verdict in self.obligations:
            out.setdefault(verdict.rule or verdict.family, Counter())[verdict.status] += 1
        return dict(sorted(out.items()))


class VerdictChange(NamedTuple):
    """One rule's verdicts on both sides; `is_worse` if more is refuted, or less is proved and more
    is open. `example` is a verdict of the new side that shows it."""

    rule: str
    old: Counter[str]
    new: Counter[str]
    is_worse: bool
    example: Obligation | None


class Opinions:
    """What the check says of files, each checked once."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._files: dict[Hashable, tuple[tuple[Finding, ...], tuple[Obligation, ...]]] = {}

    def of(self, kernel: KernelRecord) -> Said:
        """All that is said of one kernel."""
        # A listing may hold code for several architectures.
        key = kernel.path, kernel.level, kernel.item.target
        found = self._files.get(key)
        if found is None:
            result = self._checker.check(kernel.item)
            found = self._files[key] = result.findings, result.obligations
        findings, obligations = found
        return Said(
            tuple(f for f in findings if f.kernel == kernel.name),
            tuple(o for o in obligations if o.kernel == kernel.name and o.family != SEMANTICS),
        )


def changes(old: Said, new: Said) -> list[VerdictChange]:
    """The rules whose verdicts are others."""
    ours, theirs = old.counts(), new.counts()
    out = []
    for rule in sorted({*ours, *theirs}):
        before, after = ours.get(rule, Counter()), theirs.get(rule, Counter())
        if +before == +after:
            continue
        # A refutation of something that is new is worse, too: nothing else in a diff tells it.
        worse = after["refuted"] > before["refuted"] or is_worse(_counts(before), _counts(after))
        out.append(VerdictChange(rule, before, after, worse, _example(rule, new, worse)))
    return out


def _counts(statuses: Counter[str]) -> Counts:
    return statuses["proved"], statuses["refuted"], statuses["open"]


def _example(rule: str, said: Said, is_worse: bool) -> Obligation | None:
    """The worst verdict of a rule."""
    mine = [o for o in said.obligations if (o.rule or o.family) == rule]
    if not mine or not is_worse:
        return None
    return max(mine, key=lambda o: _WORSE[o.status])


__all__ = ["Opinions", "Said", "VerdictChange", "changes"]
