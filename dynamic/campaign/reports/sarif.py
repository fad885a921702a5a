"""Verdicts as SARIF 2.1.0: failures as errors at their Python line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from ptxlint.diagnostics import Finding, Severity
from ptxlint.diagnostics import Place as Spot
from ptxlint.engine.fingerprint import digest
from ptxlint.engine.pseudo import PseudoRule
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.reporters.sarif import sarif_log
from ptxlint.source import SourceFrame

from ..verdict import Failure, Place, Verdict
from .words import details, headline


def _kind(id: str, name: str, severity: str, summary: str, why: str, fix: str) -> PseudoRule:
    return PseudoRule(id, name, severity, summary, why, fix, category="stress", family="semantics")


FAILED: Final = _kind(
    "GAT901",
    "failing-run",
    "error",
    "A run of the operator was wrong: against its reference, or against itself.",
    "The inputs are within what the spec allows, so that a user may meet them.",
    "Replay the file that the message names; the line is that of the property that was open, or of "
    "the kernel.",
)
UNDECIDED: Final = _kind(
    "GAT902",
    "undecided",
    "note",
    "A property was left open and no run could decide it.",
    "What was not decided may hold or not.",
    "Run it on a GPU, or give the spec what is missing; the message says what.",
)
PROBLEM: Final = _kind(
    "GAT903",
    "not-tested",
    "error",
    "An operator could not be put to the test.",
    "Nothing is known of it, and a clean report would claim something else.",
    "Correct the spec or its reference as the message says.",
)
KINDS: Final = (FAILED, UNDECIDED, PROBLEM)


def render_sarif(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as a SARIF log of one run."""
    found = [finding for verdict in verdicts for finding in _findings(verdict)]
    seconds = sum(verdict.seconds for verdict in verdicts)
    summary = Summary(len(verdicts), len(verdicts), *count_severities(found), seconds)
    log = sarif_log(Report(found, (), (), summary), KINDS)
    log["runs"][0]["invocations"] = [
        {"executionSuccessful": not any(verdict.problem for verdict in verdicts)}
    ]
    return json.dumps(log, indent=1) + "\n"


def _findings(verdict: Verdict) -> Iterator[Finding]:
    for failure in verdict.failures:
        yield _of_failure(verdict, failure)
    if verdict.problem:
        yield _finding(verdict, PROBLEM, "error", verdict.problem, None)
    elif verdict.verdict == "undecided":
        yield _finding(verdict, UNDECIDED, "note", verdict.reason, None)


def _of_failure(verdict: Verdict, failure: Failure) -> Finding:
    message = "\n".join([f"{verdict.name}: {headline(failure)}", *details(failure)])
    finding = _finding(verdict, FAILED, "error", message, failure.place, failure.kernel)
    # The rule's own description goes with what the rule itself found.
    return finding._replace(rule=failure.rule) if failure.rule else finding


def _finding(
    verdict: Verdict,
    kind: PseudoRule,
    severity: Severity,
    message: str,
    place: Place | None,
    kernel: str = "",
) -> Finding:
    frame = SourceFrame(place.path, place.line, max(place.column, 1)) if place else None
    at = Spot(verdict.path or verdict.name, 1, 1)
    if frame is not None:
        at = Spot(frame.path, frame.line, frame.column)
    return Finding(
        kind.id,
        kind.name,
        severity,
        "high",
        kind.family,
        message,
        kernel or verdict.name,
        "",
        at,
        fingerprint=digest(kind.id, verdict.name, kernel),
    )


__all__ = ["KINDS", "render_sarif"]
