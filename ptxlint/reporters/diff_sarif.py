"""A comparison as SARIF: its changes as results, errors where `--fail-on` names them."""

from __future__ import annotations

import json

from ptxlint.comparison.findings import KINDS, findings
from ptxlint.comparison.report import DiffReport
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.reporters.diff_words import unknown
from ptxlint.reporters.sarif import sarif_log


def render_sarif(report: DiffReport) -> str:
    """The comparison as a SARIF log of one run."""
    found = findings(report)
    kernels = len(report.differences)
    summary = Summary(kernels, kernels, *count_severities(found), report.seconds)
    log = sarif_log(Report(found, (), (), summary), KINDS)
    told = [*report.faults, *(f"not known: {unknown(*pair)}" for pair in report.undecided)]
    if told:
        notes = [{"level": "error", "message": {"text": text}} for text in told]
        log["runs"][0]["invocations"] = [
            {"executionSuccessful": False, "toolExecutionNotifications": notes}
        ]
    return json.dumps(log, indent=1) + "\n"


__all__ = ["render_sarif"]
