"""Which findings of a run are those of a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ptxlint.diagnostics import SEVERITY_ORDER, Finding
from ptxlint.engine.baseline.entries import Baseline, FindingEntry, Strange, base
from ptxlint.engine.baseline.observed import LineOf, is_kept
from ptxlint.engine.fingerprint import normalise

_Key = tuple[str, str, str, str]
"""Kernel, architecture, rule, fingerprint."""


class Parted(NamedTuple):
    """Findings that the baseline does not have, those that it has as less grave, the others."""

    new: list[Finding]
    graver: list[Finding]
    held: list[Finding]


def part(findings: Sequence[Finding], baseline: Baseline, line_of: LineOf) -> Parted:
    """Part the findings of a run by whether the baseline has them."""
    known = _by_key(baseline)
    out = Parted([], [], [])
    for finding in findings:
        entry = known.get(key_of(finding)) if is_kept(finding) else None
        if entry is None:
            out.new.append(finding)
        elif SEVERITY_ORDER[finding.severity] < SEVERITY_ORDER[entry.severity]:
            out.graver.append(finding)
        else:
            out.held.append(finding)
    return _exchanged(_counted_otherwise(out, known), known, line_of)


def strangers(held: Iterable[Finding], baseline: Baseline, line_of: LineOf) -> frozenset[Strange]:
    """The kernels and rules with held findings at lines of which the baseline knows none, though it
    knows lines."""
    known: dict[Strange, set[str]] = {}
    for entry in baseline.findings:
        for arch in entry.archs:
            known.setdefault((entry.kernel, base(arch), entry.rule), set()).add(entry.line)
    out = set()
    for finding in held:
        key = finding.kernel, base(finding.arch), finding.rule
        line, lines = line_of(finding), known.get(key, set())
        if line and lines and "" not in lines and line not in lines:
            out.add(key)
    return frozenset(out)


def key_of(finding: Finding) -> _Key:
    """What identifies a finding from build to build."""
    arch = base(finding.arch) if finding.kernel else ""
    return finding.kernel, arch, finding.rule, finding.fingerprint


def _by_key(baseline: Baseline) -> dict[_Key, FindingEntry]:
    """The entries; of several severities the gravest."""
    known: dict[_Key, FindingEntry] = {}
    for entry in baseline.findings:
        for arch in {base(arch) for arch in entry.archs} or {""}:
            key = (entry.kernel, arch, entry.rule, entry.fingerprint)
            other = known.get(key)
            if other is None or SEVERITY_ORDER[entry.severity] < SEVERITY_ORDER[other.severity]:
                known[key] = entry
    return known


def _counted_otherwise(parted: Parted, known: dict[_Key, FindingEntry]) -> Parted:
    """Rules tell what happens at one Python line once. In a build without line information the
    same is told of each instruction, and one entry with a line stands for all of them."""
    lined = {_alike(f) for f in parted.held if f.kernel and known[key_of(f)].is_lined}
    new: list[Finding] = []
    held = list(parted.held)
    for finding in parted.new:
        is_known = finding.place.source is None and _alike(finding) in lined
        (held if is_known else new).append(finding)
    return parted._replace(new=new, held=held)


def _exchanged(parted: Parted, known: dict[_Key, FindingEntry], line_of: LineOf) -> Parted:
    """Fingerprints number equal findings in the order of the text, so of three where two were the
    last is new by its number. The text of its Python line tells better which one it is."""
    groups: dict[tuple[str, ...], tuple[list[Finding], list[Finding]]] = {}
    for at, findings in enumerate((parted.new, parted.held)):
        for finding in findings:
            groups.setdefault(_alike(finding), ([], []))[at].append(finding)
    swap: dict[int, Finding] = {}
    for new, held in groups.values():
        if not new or not held:
            continue
        lines = Counter(known[key_of(f)].line for f in held if key_of(f) in known)
        # Lines that the baseline has not, and that a held finding stands in.
        strangers = _beyond(held, lines.copy(), line_of)
        at_home = [f for f in new if lines[line_of(f)] > 0 and line_of(f)]
        for one, other in zip(strangers, at_home, strict=False):
            swap[id(one)], swap[id(other)] = other, one
    if not swap:
        return parted
    return parted._replace(
        new=[swap.get(id(f), f) for f in parted.new],
        held=[swap.get(id(f), f) for f in parted.held],
    )


def _alike(finding: Finding) -> tuple[str, ...]:
    return (
        finding.kernel, finding.arch, finding.place.path, finding.rule, finding.severity,
        normalise(finding.message),
    )  # fmt: skip


def _beyond(findings: list[Finding], lines: Counter[str], line_of: LineOf) -> list[Finding]:
    """The findings whose lines are not among these, each counted once."""
    out = []
    for finding in findings:
        line = line_of(finding)
        if lines[line] > 0:
            lines[line] -= 1
        elif line:
            out.append(finding)
    return out


__all__ = ["Parted", "key_of", "part", "strangers"]
