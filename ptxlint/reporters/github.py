"""GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.reporters.wording import counts_line, launch_lines, spread

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding
    from ptxlint.engine.report import Report

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render_github(report: Report) -> str:
    """One command a finding, and the summary line, which GitHub shows in the log only."""
    lines = [_command(finding) for finding in report.findings]
    return "\n".join([*lines, counts_line(report)]) + "\n"


def _command(finding: Finding) -> str:
    place = finding.place
    shown = place.source or place
    properties = {
        "file": shown.path,
        "line": str(shown.line),
        "col": str(shown.column),
        "title": f"{finding.rule} {finding.name}",
    }
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(_message(finding))}"


def _message(finding: Finding) -> str:
    place = finding.place
    parts = [finding.message]
    if finding.breaks_when:
        parts.append(f"breaks when: {finding.breaks_when}")
    parts += [f"{title}: {text}" for title, text in launch_lines(finding)]
    if finding.help:
        parts.append(f"help: {finding.help}")
    if place.source is not None:
        parts.append(f"PTX: {place.path}:{place.line}")
    where = spread(finding)
    if where:
        parts.append(f"in: {where}")
    return "\n".join(parts)


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command, where `:` and `,` are syntax too."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
