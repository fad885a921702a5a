"""Phrases that several formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding
    from ptxlint.engine.report import Report
    from ptxlint.obligations import Obligation

_SHOWN_FILES = 3
_SHOWN_OPEN = 3


def counts_line(report: Report) -> str:
    """How many findings in how much code."""
    s = report.summary
    kinds = ((s.errors, "error"), (s.warnings, "warning"), (s.notes, "note"))
    found = ", ".join(counted(number, noun) for number, noun in kinds if number) or "no findings"
    line = f"{found} in {counted(s.kernels, 'kernel')} of {counted(s.files, 'file')}"
    extras = []
    if s.suppressed:
        extras.append(f"{s.suppressed} suppressed")
    if s.skipped:
        extras.append(f"{counted(s.skipped, 'file')} of other architectures left out")
    return f"{line} ({'; '.join([*extras, f'{s.seconds:.2f} s'])})"


def verdicts_line(obligations: tuple[Obligation, ...]) -> str:
    """How many checked properties were decided, and which are open; "" without any."""
    if not obligations:
        return ""
    counts = {
        status: sum(o.status == status for o in obligations)
        for status in ("proved", "refuted", "open")
    }
    line = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    open_ones = [o for o in obligations if o.status == "open"]
    if open_ones:
        shown = [f"{o.family} in {o.kernel} ({o.reason})" for o in open_ones[:_SHOWN_OPEN]]
        if len(open_ones) > _SHOWN_OPEN:
            shown.append(f"and {len(open_ones) - _SHOWN_OPEN} more")
        line += ": " + "; ".join(shown)
    return line


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
