"""A comparison as a comment on a pull request."""

from __future__ import annotations

from html import escape

from ptxlint.comparison.report import DiffReport
from ptxlint.reporters.diff_words import kind, level, lines, tally, title, unknown
from ptxlint.wording import counted


def render_markdown(report: DiffReport) -> str:
    """A table of the pairs that have changed, and the details of each, folded."""
    verdict = "**fails**" if report.fails else "passes"
    if report.faults or report.undecided:
        verdict = f"{verdict}, but not all is known" if report.fails else "not all is known"
    out = [
        f"### ptxlint diff: {verdict}",
        "",
        f"{counted(len(report.differences), 'pair')} of kernels: {tally(report)}; "
        f"{len(report.removed)} removed, {len(report.added)} added.",
    ]
    if report.changed:
        words = {id(d): w for d, w in report.failures}
        out += ["", "| kernel | change | fails on |", "|---|---|---|"]
        out += [
            f"| {_cell(title(d))} | {kind(d)} | {', '.join(words.get(id(d), ()))} |"
            for d in report.changed
        ]
    for difference in report.changed:
        out += ["", f"<details><summary>{escape(title(difference))}</summary>", ""]
        out += [f"- {name}: {_escaped(text)}" for name, text in lines(difference)]
        out += ["", "</details>"]
    for heading, kernels in (("Removed", report.removed), ("Added", report.added)):
        if kernels:
            out += [
                "",
                f"{heading}: " + ", ".join(f"{_cell(k.name)} ({level(k)})" for k in kernels),
            ]
    out += [f"\nFails on {word}: {_cell(k.name)} ({level(k)})" for k, word in report.missing]
    out += [f"\nNot known: {_escaped(unknown(*pair))}" for pair in report.undecided]
    out += [f"\nNot compared: {_escaped(fault)}" for fault in report.faults]
    return "\n".join(out) + "\n"


def _escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]|#" else c for c in text.replace("\n", " "))


def _cell(name: str) -> str:
    """A name as code, in a table or elsewhere."""
    return "`" + name.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


__all__ = ["render_markdown"]
