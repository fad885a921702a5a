"""A comparison for the terminal."""

from __future__ import annotations

from ptxlint.comparison.report import DiffReport
from ptxlint.reporters.diff_words import kind, level, lines, tally, title, unknown
from ptxlint.wording import counted


def render_text(report: DiffReport, *, shows_all: bool = False) -> str:
    """Each pair that has changed (with `shows_all` the others, too), then what stands on one side
    alone, what fails, and a summary."""
    out = []
    for difference in report.differences:
        if not difference.is_changed and not shows_all:
            continue
        out.append(f"{title(difference)}: {kind(difference)}")
        out.append(f"  {difference.old.path} → {difference.new.path}")
        heading = ""
        for name, text in lines(difference):
            out.append(f"  {'' if name == heading else name:<13}{text}")
            heading = name
    out += [f"{k.name} ({level(k)}): only old, {k.path}" for k in report.removed]
    out += [f"{k.name} ({level(k)}): only new, {k.path}" for k in report.added]
    out += [f"not compared: {fault}" for fault in report.faults]
    out += [f"not known: {unknown(*pair)}" for pair in report.undecided]
    out += [f"fails on {word}: {k.name} ({level(k)})" for k, word in report.missing]
    for difference, words in report.failures:
        out.append(f"fails on {', '.join(words)}: {title(difference)}")
    out.append(
        f"{counted(len(report.differences), 'pair')}: {tally(report)}; {len(report.removed)} "
        f"removed, {len(report.added)} added ({report.seconds:.2f} s)"
    )
    return "\n".join(out) + "\n"


__all__ = ["render_text"]
