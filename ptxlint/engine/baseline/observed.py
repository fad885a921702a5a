"""What a run says of its kernels, as a baseline would keep it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ptxlint.diagnostics import Finding
from ptxlint.engine.baseline.entries import Baseline, Counts, FindingEntry, KernelEntry
from ptxlint.engine.merge import natural
from ptxlint.engine.pseudo import BASELINE_RULES, FAILURES
from ptxlint.engine.result import FileResult
from ptxlint.obligations import SEMANTICS, Obligation

LineOf = Callable[[Finding], str]
"""The text of the Python line of a finding, "" where it is not known."""


def observe(
    results: Iterable[FileResult], findings: Iterable[Finding], line_of: LineOf
) -> Baseline:
    """The baseline of a run: the same for the same kernels, whatever files they are in."""
    kernels = (entry for result in results for entry in kernel_entries(result))
    return Baseline(ordered(kernels), tuple(_finding_entries(findings, line_of)))


def kernel_entries(result: FileResult) -> list[KernelEntry]:
    """The kernels of one file; those of which nothing is known but their names are left out."""
    said: dict[str, list[Obligation]] = {}
    for item in result.obligations:
        if item.family != SEMANTICS:
            said.setdefault(item.kernel, []).append(item)
    return [
        KernelEntry(
            kernel.name,
            kernel.arch,
            kernel.measures,
            _counts(said.get(kernel.name, ())),
            kernel.launches,
            result.is_machine,
            _orders(said.get(kernel.name, ())),
        )
        for kernel in result.kernels
        if kernel.measures is not None
    ]


def _counts(obligations: Iterable[Obligation]) -> tuple[tuple[str, Counts], ...]:
    rules: dict[str, Counter[str]] = {}
    for item in obligations:
        rules.setdefault(item.rule, Counter())[item.status] += 1
    return tuple(
        (rule, (counts["proved"], counts["refuted"], counts["open"]))
        for rule, counts in sorted(rules.items())
    )


def _orders(obligations: Iterable[Obligation]) -> tuple[tuple[str, str], ...]:
    """The statuses of rules that have several, as letters in the order of the text."""
    rules: dict[str, str] = {}
    for item in in_order(obligations):
        rules[item.rule] = rules.get(item.rule, "") + item.status[0]
    return tuple(sorted((rule, order) for rule, order in rules.items() if len(set(order)) > 1))


def in_order(obligations: Iterable[Obligation]) -> list[Obligation]:
    """Verdicts in the order of the text."""
    return sorted(
        obligations,
        key=lambda o: (0, 0) if o.place is None else (o.place.line, o.place.column),
    )


def _finding_entries(findings: Iterable[Finding], line_of: LineOf) -> list[FindingEntry]:
    archs: dict[tuple[str, str, str, str], set[str]] = {}
    lines: dict[tuple[str, str, str, str], str] = {}
    lined: set[tuple[str, str, str, str]] = set()
    for finding in findings:
        if not is_kept(finding):
            continue
        key = (finding.kernel, finding.rule, finding.fingerprint, finding.severity)
        archs.setdefault(key, set()).add(finding.arch if finding.kernel else "")
        line = line_of(finding)
        if finding.place.source is not None or not finding.kernel:
            lined.add(key)
        lines[key] = min(lines.get(key) or line, line or lines.get(key, ""))
    entries = [
        FindingEntry(*key, tuple(sorted(found - {""}, key=natural)), lines[key], key in lined)
        for key, found in archs.items()
    ]
    return sorted(entries, key=lambda e: (e.kernel, e.rule, e.line, e.fingerprint, e.severity))


def is_kept(finding: Finding) -> bool:
    """False for what is never held back: that something was not analysed, and what is said of the
    baseline itself."""
    if finding.rule in FAILURES:
        return finding.severity != "error"
    return all(finding.rule != kind.id for kind in BASELINE_RULES)


def ordered(entries: Iterable[KernelEntry]) -> tuple[KernelEntry, ...]:
    """Each kernel once, by name and architecture."""
    return tuple(sorted(set(entries), key=_order))


def _order(entry: KernelEntry) -> tuple[object, ...]:
    numbers = tuple(-1 if v is None else v for v in entry.measures[2:])
    return (
        entry.kernel, natural(entry.arch), *entry.measures[:2], numbers, entry.verdicts,
        entry.launches, entry.is_machine, entry.orders,
    )  # fmt: skip


__all__ = ["LineOf", "in_order", "is_kept", "kernel_entries", "observe", "ordered"]
