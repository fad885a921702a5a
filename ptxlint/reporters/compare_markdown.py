"""A comparison over architectures as Markdown."""

from __future__ import annotations

from html import escape

from ptxlint.comparison.architectures import ArchitectureReport, Family
from ptxlint.reporters.compare_words import partings, rows, summary, surprise, title


def render_markdown(report: ArchitectureReport) -> str:
    """The surprises first, then a folded table of each kernel."""
    verdict = "**fails**" if report.failures else "not all is known" if report.faults else "passes"
    out = [f"### ptxlint compare: {verdict}", ""]
    out.append(escaped(summary(report)))
    if any(f.surprises for f in report.families):
        out += ["", "| kernel | architectures | surprise |", "|---|---|---|"]
        out += [
            f"| {escaped(f.name)} | {', '.join(s.archs)} | {escaped(surprise(s))} |"
            for f in report.families
            for s in f.surprises
        ]
    for family in report.families:
        out += _family(family)
    if report.alone:
        out += ["", "On one architecture alone: "
                + ", ".join(f"{escaped(k.name)} ({k.arch})" for k in report.alone)]  # fmt: skip
    out += [f"\nNot compared: {escaped(fault)}" for fault in report.faults]
    return "\n".join(out) + "\n"


def _family(family: Family) -> list[str]:
    # Nothing of a line that starts with a tag is Markdown.
    heading = escape(f"{title(family)}: {', '.join(family.archs)}")
    out = ["", f"<details><summary>{heading}</summary>", ""]
    out += [f"| | {' | '.join(family.archs)} |", f"|---|{'---|' * len(family.archs)}"]
    for row in rows(family):
        cells = (escaped(cell) for cell in row.cells)
        out.append(f"| {escaped(row.name)} | {' | '.join(cells)} |")
    details = [*partings(family), *(f"note: {note}" for note in family.notes)]
    if details:
        out += ["", *(f"- {escaped(text)}" for text in details)]
    return [*out, "", "</details>"]


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]|#" else c for c in " ".join(text.split()))


__all__ = ["render_markdown"]
