"""A comparison over architectures for the terminal."""

from __future__ import annotations

from ptxlint.comparison.architectures import ArchitectureReport, Family
from ptxlint.reporters.compare_words import partings, rows, summary, surprise, title


def render_text(report: ArchitectureReport, *, shows_all: bool = False) -> str:
    """Each kernel: its table, where the code parts, its surprises. Rows in which all architectures
    are alike are left out, unless `shows_all`."""
    out: list[str] = []
    for family in report.families:
        out += [*_family(family, shows_all), ""]
    out += [f"{k.name}: only on {k.arch}, {k.path}" for k in report.alone]
    out += [f"not compared: {fault}" for fault in report.faults]
    for family, found in report.failures:
        out.append(f"fails on {found.kind}: {family.name} on {', '.join(found.archs)}")
    return "\n".join([*out, summary(report)]) + "\n"


def _family(family: Family, shows_all: bool) -> list[str]:
    out = [f"{title(family)}: {', '.join(family.archs)}"]
    found = rows(family)
    shown = [row for row in found if shows_all or not row.is_even]
    if shown:
        table = [("", *family.archs), *((row.name, *row.cells) for row in shown)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            out.append(("  " + "  ".join(cells)).rstrip())
    even = [row.name.removeprefix("· ") for row in found if row.is_even]
    if even and not shows_all:
        out.append(f"  alike: {', '.join(even)}")
    out += [f"  {text}" for text in partings(family)]
    out += [f"  note: {note}" for note in family.notes]
    out += [f"  surprise: {surprise(s)}" for s in family.surprises]
    return out


__all__ = ["render_text"]
