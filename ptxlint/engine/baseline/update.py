"""A baseline without what no longer occurs, and with nothing that is worse."""

from __future__ import annotations

from ptxlint.diagnostics import SEVERITY_ORDER
from ptxlint.engine.baseline.entries import Baseline, FindingEntry, KernelEntry, Strange, base
from ptxlint.engine.baseline.observed import ordered
from ptxlint.engine.baseline.outcome import Outcome
from ptxlint.engine.baseline.worse import growths, losses, partners


def pruned(old: Baseline, outcome: Outcome) -> Baseline:
    """The entries of a baseline that still occur. Kernels are as they are now, but those that got
    worse stay as they were, so that this goes on being told."""
    found = outcome.observed
    pairs = partners(old.kernels, found.kernels)
    kernels = ordered(_better(pairs.get(entry), entry, outcome.strange) for entry in found.kernels)
    met = {entry.key for entry in found.kernels}
    now: dict[tuple[str, str, str], list[FindingEntry]] = {}
    for entry in found.findings:
        now.setdefault(_key(entry), []).append(entry)
    gone = set(outcome.absent)
    findings = [
        _current(entry, now.get(_key(entry), []))
        for entry in old.findings
        if entry not in gone and _is_met(entry, met)
    ]
    return Baseline(kernels, tuple(findings))


def _better(old: KernelEntry | None, new: KernelEntry, strange: frozenset[Strange]) -> KernelEntry:
    if old is not None and (losses(old, new, strange) or growths(old, new)):
        return old
    return new


def _key(entry: FindingEntry) -> tuple[str, str, str]:
    return entry.kernel, entry.rule, entry.fingerprint


def _is_met(entry: FindingEntry, met: set[tuple[str, str]]) -> bool:
    return not entry.kernel or any(
        (entry.kernel, base(arch)) in met for arch in entry.archs or ("",)
    )


def _current(entry: FindingEntry, now: list[FindingEntry]) -> FindingEntry:
    """An entry on the architectures where it still occurs, as it is unless that is graver. A rule
    that did not run leaves its entries as they are."""
    if not now:
        return entry
    archs = {base(arch) for other in now for arch in other.archs}
    mildest = max((entry, *now), key=lambda e: SEVERITY_ORDER[e.severity])
    return entry._replace(
        archs=tuple(arch for arch in entry.archs if base(arch) in archs),
        severity=mildest.severity,
        line=now[0].line or entry.line,
    )


__all__ = ["pruned"]
