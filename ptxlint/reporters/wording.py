"""Phrases that several formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding
    from ptxlint.engine.report import Report

_SHOWN_FILES = 3


def counts_line(report: Report, proved: str = "") -> str:
    """How many findings in how much code. `proved` says how much is, when that is all."""
    s = report.summary
    kinds = ((s.errors, "error"), (s.warnings, "warning"), (s.notes, "note"))
    found = ", ".join(counted(number, noun) for number, noun in kinds if number) or "no findings"
    line = f"{found} in {counted(s.kernels, 'kernel')} of {counted(s.files, 'file')}"
    extras = [proved] if proved else []
    if s.suppressed:
        extras.append(f"{s.suppressed} suppressed")
    if s.skipped:
        extras.append(f"{counted(s.skipped, 'file')} of other architectures left out")
    return f"{line} ({'; '.join([*extras, f'{s.seconds:.2f} s'])})"


def plain(text: str) -> str:
    """On one line and without control characters, whatever the checked file put into it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def spread(finding: Finding) -> str:
    """Over which architectures and files one finding was met; "" when it was met once."""
    if len(finding.archs) < 2 and len(finding.paths) < 2 and not finding.occurrences:
        return ""
    parts = [finding.kernel] if finding.kernel else []
    if len(finding.archs) > 1:
        parts.append(f"on {', '.join(finding.archs)}")
    text = " ".join(parts)
    details = []
    if len(finding.paths) > 1:
        names = ", ".join(finding.paths[:_SHOWN_FILES])
        more = len(finding.paths) - _SHOWN_FILES
        details.append(f"{names} and {more} more files" if more > 0 else names)
    if finding.occurrences:
        details.append(counted(len(finding.occurrences) + 1, "place") + " in PTX")
    return f"{text} ({'; '.join(details)})" if details else text
