"""Phrases that several formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding
    from ptxlint.engine.report import Report

_SHOWN_FILES = 3
_SHOWN_ARGUMENTS = 8


def counts_line(report: Report, proved: str = "") -> str:
    """How many findings in how much code. `proved` says how much is, when that is all."""
    s = report.summary
    kinds = ((s.errors, "error"), (s.warnings, "warning"), (s.notes, "note"))
    found = ", ".join(counted(number, noun) for number, noun in kinds if number) or "no findings"
    line = f"{found} in {counted(s.kernels, 'kernel')} of {counted(s.files, 'file')}"
    extras = [proved] if proved else []
    if s.launches or s.left_out:
        extras.append(_launches_line(report))
    if s.suppressed:
        extras.append(f"{s.suppressed} suppressed")
    if report.baseline is not None:
        held = len(report.baseline.held)
        extras.append(f"{counted(held, 'finding')} of the baseline")
    if s.skipped:
        extras.append(f"{counted(s.skipped, 'file')} of other architectures left out")
    return f"{line} ({'; '.join([*extras, f'{s.seconds:.2f} s'])})"


def _launches_line(report: Report) -> str:
    """How many launches were used, of how many of the kernels: `7 launches of 2 of 3 kernels`."""
    s = report.summary
    of_all = f"{s.launched} of " if s.launched < s.kernels else ""
    text = f"{counted(s.launches, 'launch', 'launches')} of {of_all}{counted(s.kernels, 'kernel')}"
    return f"{text}, {s.left_out} left out" if s.left_out else text


def launch_lines(finding: Finding) -> list[tuple[str, str]]:
    """What a finding under a launch adds, as pairs of title and text."""
    if finding.launch is None:
        return []
    seen = [("seen at", _witness_line(finding.witness))] if finding.witness else []
    return [*seen, ("launch", launch_line(finding.launch))]


def launch_line(launch: dict[str, Any]) -> str:
    """A launch in one line: where, the grid, the arguments, how many others."""
    grid = ", ".join(map(str, launch["grid"]))
    given = [f"{name} = {value}" for name, value in launch["arguments"].items()]
    if len(given) > _SHOWN_ARGUMENTS:
        given[_SHOWN_ARGUMENTS:] = [f"and {len(given) - _SHOWN_ARGUMENTS} more"]
    text = "; ".join([f"grid ({grid})", *([", ".join(given)] if given else [])])
    if launch["place"]:
        text = f"{launch['place']}: {text}"
    more = counted(launch["more"], "launch", "launches")
    return f"{text} (and {more} more)" if launch["more"] else text


def _witness_line(witness: dict[str, Any]) -> str:
    """A witness in one line: CTA, thread, values."""
    parts = []
    for key, noun in (("ctaid", "CTA"), ("tid", "thread")):
        if key in witness:
            parts.append(f"{noun} ({', '.join(map(str, witness[key]))})")
    parts += [f"{name} = {value}" for name, value in witness.get("values", {}).items()]
    return ", ".join(parts)


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
