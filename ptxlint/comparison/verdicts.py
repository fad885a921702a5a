"""What is said of two builds of a kernel: which property got worse, which better.

Properties are told apart by rule, and by the line of the source that they stand at: the line of
the old side that most of the same instructions come from. So what got worse at one line is told
though as much got better at another, and a kernel that is said the same of, on other lines, is not
called changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Final, NamedTuple

from ptxlint.comparison.places import Where, where
from ptxlint.comparison.records import KernelRecord
from ptxlint.diagnostics import Finding, Place
from ptxlint.engine.analyse import Checker
from ptxlint.engine.baseline.entries import Counts
from ptxlint.engine.baseline.worse import is_worse
from ptxlint.ir.instruction import Instr
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

    def found(self) -> dict[str, list[Finding]]:
        """Errors and warnings by rule, one a line."""
        lines: dict[str, dict[Hashable, Finding]] = {}
        for finding in self.findings:
            if finding.severity != "note":
                place = finding.place
                at = (place.source or place)[:2]
                lines.setdefault(finding.rule, {}).setdefault(at, finding)
        return {rule: list(found.values()) for rule, found in lines.items()}


class Example(NamedTuple):
    """What shows that something got worse, in words, and where."""

    reason: str
    place: Place | None


class VerdictChange(NamedTuple):
    """One rule's verdicts on both sides; `is_worse` if more is refuted, or less is proved and more
    is open. `example` is a verdict of the new side that shows it. Rules that give no verdicts count
    the lines on which they find an error or a warning, as `found`. With `at` they are those of one
    line alone, of the new side: over the kernel they balance."""

    rule: str
    old: Counter[str]
    new: Counter[str]
    is_worse: bool
    example: Example | None
    at: Where | None = None


LineOf = Callable[[Obligation], Where | None]
"""The line of the new side that a verdict belongs to; None if it is of the kernel as a whole."""


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


def changes(
    old: Said, new: Said, line_before: LineOf | None = None, line_now: LineOf | None = None
) -> list[VerdictChange]:
    """The rules whose verdicts are others; with both `LineOf` also those of which something got
    worse at one line and better at another."""
    ours, theirs = old.counts(), new.counts()
    out = []
    for rule in sorted({*ours, *theirs}):
        before, after = ours.get(rule, Counter()), theirs.get(rule, Counter())
        there = _at_lines(rule, old, new, line_before, line_now)
        # A refutation of something that is new is worse, too: nothing else in a diff tells it.
        worse = after["refuted"] > before["refuted"] or is_worse(_counts(before), _counts(after))
        if worse:
            example = next((change.example for change in there), None) or _example(rule, new)
            out.append(VerdictChange(rule, before, after, True, example))
            continue
        if +before != +after:
            out.append(VerdictChange(rule, before, after, False, None))
        out += there
    return [*out, *_found(old, new, {*ours, *theirs})]


def _found(old: Said, new: Said, judged: set[str]) -> list[VerdictChange]:
    """What rules that give no verdicts find on more lines, or on fewer."""
    ours, theirs = old.found(), new.found()
    out = []
    for rule in sorted({*ours, *theirs} - judged):
        before, after = ours.get(rule, []), theirs.get(rule, [])
        if len(before) != len(after):
            is_more = len(after) > len(before)
            example = Example(after[-1].message, after[-1].place) if is_more else None
            was, now = (Counter({"found": len(found)}) for found in (before, after))
            out.append(VerdictChange(rule, was, now, is_more, example))
    return out


def _at_lines(
    rule: str, old: Said, new: Said, line_before: LineOf | None, line_now: LineOf | None
) -> list[VerdictChange]:
    """The lines at which a rule's verdicts got worse."""
    if line_before is None or line_now is None:
        return []
    before = _by_line(rule, old, line_before)
    out = []
    for at, verdicts in _by_line(rule, new, line_now).items():
        was: Counter[str] = Counter(o.status for o in before.get(at, ()))
        now: Counter[str] = Counter(o.status for o in verdicts)
        if at is not None and is_worse(_counts(was), _counts(now)):
            out.append(VerdictChange(rule, was, now, True, _worst(verdicts), at))
    return out


def _by_line(rule: str, said: Said, line: LineOf) -> dict[Where | None, list[Obligation]]:
    out: dict[Where | None, list[Obligation]] = {}
    for verdict in _of_rule(rule, said):
        out.setdefault(line(verdict), []).append(verdict)
    return out


def lines_of(
    old: KernelRecord, new: KernelRecord, both: Iterable[tuple[Instr, Instr]]
) -> tuple[LineOf, LineOf]:
    """The line of the new side for verdicts of the old one and of the new one; `both` are the
    instructions that both have."""
    met: dict[Where, Counter[Where]] = {}
    for ours, theirs in both:
        met.setdefault(where(old.module, ours), Counter())[where(new.module, theirs)] += 1
    partner = {line: found.most_common(1)[0][0] for line, found in met.items()}
    before, now = _lines(old), _lines(new)

    def line_before(verdict: Obligation) -> Where | None:
        at = None if verdict.place is None else before.get(verdict.place.line)
        # What has no partner stands for itself: no line of the new side is its own.
        return None if at is None else partner.get(at, Where(f"old:{at.path}", at.line))

    def line_now(verdict: Obligation) -> Where | None:
        return None if verdict.place is None else now.get(verdict.place.line)

    return line_before, line_now


def _lines(kernel: KernelRecord) -> dict[int, Where]:
    """The source's line behind each line of the text that an instruction stands in."""
    module = kernel.module
    return {
        module.source.position(instr.offset).line: where(module, instr)
        for instr in kernel.function.instrs
    }


def _counts(statuses: Counter[str]) -> Counts:
    return statuses["proved"], statuses["refuted"], statuses["open"]


def _example(rule: str, said: Said) -> Example | None:
    """The worst verdict of a rule."""
    mine = _of_rule(rule, said)
    return _worst(mine) if mine else None


def _of_rule(rule: str, said: Said) -> list[Obligation]:
    return [o for o in said.obligations if (o.rule or o.family) == rule]


def _worst(verdicts: list[Obligation]) -> Example:
    found = max(verdicts, key=lambda o: _WORSE[o.status])
    return Example(found.reason, found.place)


__all__ = ["Opinions", "Said", "VerdictChange", "changes", "lines_of"]
