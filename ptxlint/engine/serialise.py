"""The report as plain data: the JSON layout, version 1. Keys are added, never renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ptxlint.diagnostics import Finding, Place, Related
from ptxlint.engine.result import KernelSummary
from ptxlint.obligations import Evidence, Generalisation, Obligation
from ptxlint.source import SourceFrame

if TYPE_CHECKING:
    from ptxlint.engine.baseline.outcome import Outcome
    from ptxlint.engine.report import Report

VERSION: Final = 1


def report_to_dict(report: Report) -> dict[str, Any]:
    """All of a report."""
    out: dict[str, Any] = {
        "version": VERSION,
        "findings": [finding_to_dict(finding) for finding in report.findings],
        "obligations": [obligation_to_dict(item) for item in report.obligations],
        "kernels": [kernel_to_dict(kernel) for kernel in report.kernels],
        "summary": {**report.summary._asdict(), "seconds": round(report.summary.seconds, 6)},
    }
    if report.baseline is not None:
        out["baseline"] = _baseline_to_dict(report.baseline)
    if report.timings:
        out["timings"] = {name: round(spent, 6) for name, spent in report.timings.items()}
    return out


def _baseline_to_dict(outcome: Outcome) -> dict[str, Any]:
    from ptxlint.engine.baseline.layout import finding_to_dict as entry_to_dict

    return {
        "path": outcome.path,
        "unchanged": [finding_to_dict(finding) for finding in outcome.held],
        "updated": sorted({fingerprint for _, _, fingerprint in outcome.graver}),
        "absent": [entry_to_dict(entry) for entry in outcome.absent],
        "unmet": [{"kernel": entry.kernel, "arch": entry.arch} for entry in outcome.unmet],
    }


def finding_to_dict(finding: Finding) -> dict[str, Any]:
    """One finding."""
    place = finding.place
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "family": finding.family,
        "message": finding.message,
        "kernel": finding.kernel,
        "arch": finding.arch,
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "source": frame_to_dict(place.source),
        "chain": [frame_to_dict(frame) for frame in place.chain],
        "label": finding.label,
        "related": [_related_to_dict(related) for related in finding.related],
        "breaks_when": finding.breaks_when,
        "help": finding.help,
        "witness": finding.witness,
        "launch": finding.launch,
        "fingerprint": finding.fingerprint,
        "exact": finding.exact,
        "archs": list(finding.archs),
        "paths": list(finding.paths),
        "occurrences": [place_to_dict(other) for other in finding.occurrences],
    }


def place_to_dict(place: Place) -> dict[str, Any]:
    """A place in PTX with the Python place behind it."""
    return {
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "source": frame_to_dict(place.source),
    }


def frame_to_dict(frame: SourceFrame | None) -> dict[str, Any] | None:
    """A place in Python; the function's name only where it is known."""
    if frame is None:
        return None
    out: dict[str, Any] = {"path": frame.path, "line": frame.line, "column": frame.column}
    if frame.function:
        out["function"] = frame.function
    return out


def _related_to_dict(related: Related) -> dict[str, Any]:
    return {"message": related.message, **place_to_dict(related.place)}


def obligation_to_dict(item: Obligation) -> dict[str, Any]:
    """One verdict."""
    place = item.place
    return {
        "family": item.family,
        "kernel": item.kernel,
        "status": item.status,
        "reason": item.reason,
        "rule": item.rule,
        "arch": item.arch,
        "archs": list(item.archs),
        "path": place.path if place else None,
        "line": place.line if place else None,
        "source": frame_to_dict(place.source) if place else None,
        "suggest": item.suggest,
        "assumes": list(item.assumes),
        "evidence": [_evidence_to_dict(part) for part in item.evidence],
        "launch": item.launch,
        "generalises": [_generalisation_to_dict(part) for part in item.generalises],
    }


def _generalisation_to_dict(part: Generalisation) -> dict[str, Any]:
    return {
        "text": part.text,
        "name": part.name,
        "here": part.here,
        "from": part.low,
        "to": part.high,
        "step": part.step,
        "with": list(part.premises),
        "only": part.only,
        "fails_at": part.fails_at,
    }


def _evidence_to_dict(part: Evidence) -> dict[str, Any]:
    place = part.place
    return {
        "status": part.status,
        "reason": part.reason,
        "line": place.line if place else None,
        "source": frame_to_dict(place.source) if place else None,
        "details": part.details,
    }


def kernel_to_dict(kernel: KernelSummary) -> dict[str, Any]:
    """One kernel's summary; `metadata` holds what is known from beside the PTX,
    `resources` what an assembler, a log or a cubin says."""
    return {
        "name": kernel.name,
        "arch": kernel.arch,
        "path": kernel.path,
        "line": kernel.line,
        "instructions": kernel.instructions,
        "registers": dict(kernel.registers),
        "metadata": dict(kernel.metadata),
        "launches": kernel.launches,
        "left_out": [{"reason": reason, "count": count} for reason, count in kernel.left_out],
        "spent": list(kernel.spent),
        "resources": dict(kernel.resources),
    }
