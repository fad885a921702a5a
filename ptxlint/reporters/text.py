"""The text for people: the Python line, a caret, what breaks it, what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxlint.engine.python_source import PythonSources, is_regular
from ptxlint.reporters.verdicts import all_lines, judged, summary_lines, tally
from ptxlint.reporters.wording import counts_line, launch_lines, plain, spread
from ptxlint.source import SourceText

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding, Place
    from ptxlint.engine.report import Report

_MAX_WIDTH = 160
"""Columns of a quoted line that are shown; a longer one is cut around its caret."""
_TAB = 4
_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36", "bold": "1", "dim": "2"}


def render_text(
    report: Report, *, colour: bool = False, statistics: bool = False, obligations: bool = False
) -> str:
    """All findings, then a line of counts, then the verdicts: what is open, or all of them."""
    writer = _Writer(colour, report.texts)
    blocks = [writer.finding(finding) for finding in report.findings]
    lines = summary_lines(report.obligations)
    proved = "" if lines else tally(judged(report.obligations))
    if obligations:
        # The list tells the rest of the summary, kernel by kernel.
        several = len({item.kernel for item in report.obligations}) > 1
        lines = [*all_lines(report.obligations, writer.paint), *(lines[:1] if several else ())]
    tail = [writer.paint("bold", counts_line(report, proved))]
    tail += lines
    text = "".join(block + "\n" for block in blocks)
    if statistics:
        from ptxlint.reporters.statistics import render_statistics

        tail.insert(0, render_statistics(report))
    return text + "\n".join(tail) + "\n"


class _Mark(NamedTuple):
    """A caret under a quoted line. `path` and `line` say which line."""

    path: str
    line: int
    column: int
    label: str


class _Writer:
    """Renders findings; keeps the files it quotes from."""

    def __init__(self, colour: bool, given: dict[str, SourceText]) -> None:
        self._colour = colour
        self._given = given
        self._sources = PythonSources()
        self._ptx: dict[str, SourceText | None] = {}

    def paint(self, style: str, text: str) -> str:
        """The text in a colour, if colours are on."""
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self._colour else text

    def finding(self, finding: Finding) -> str:
        """One finding with its quotes."""
        place = finding.place
        shown = place.source or place
        kind = self.paint(finding.severity, f"{finding.severity}[{finding.rule}]")
        where = self.paint("bold", plain(f"{shown.path}:{shown.line}:{shown.column}"))
        lines = [f"{where}: {kind} {plain(finding.message)}"]
        lines += self._quotes(finding)
        if finding.breaks_when:
            lines.append(self._footer("breaks when", finding.breaks_when))
        lines += [self._footer(title, text) for title, text in launch_lines(finding)]
        where_else = spread(finding)
        if where_else:
            lines.append(self._footer("in", where_else))
        elif place.source is None and finding.kernel:
            lines.append(self._footer("in", f"{finding.kernel} {finding.arch}".rstrip()))
        if finding.help:
            lines.append(self._footer("help", finding.help))
        return "\n".join(lines)

    def _footer(self, title: str, text: str) -> str:
        return f"   = {self.paint('bold', title)}: {plain(text)}"

    def _quotes(self, finding: Finding) -> list[str]:
        marks = [self._mark(finding.place, finding.label, True)]
        marks += [self._mark(r.place, r.message, False) for r in finding.related]
        width = max(4, *(len(str(mark.line)) for mark in marks))
        path = (finding.place.source or finding.place).path
        quoted: tuple[str, int] | None = None
        lines: list[str] = []
        for mark in marks:
            text = self._line(mark.path, mark.line)
            if mark.path != path:
                lines.append(f" {'':>{width}}--> {plain(mark.path)}:{mark.line}:{mark.column}")
                path, quoted = mark.path, None
            if not text:
                if mark.label:
                    lines.append(f" {'':>{width}} : line {mark.line}: {plain(mark.label)}")
                continue
            quote, caret = _cut(text, mark.column)
            if quoted != (mark.path, mark.line):
                lines.append(f" {mark.line:>{width}} | {quote}".rstrip())
                quoted = (mark.path, mark.line)
            pointer = self.paint("note", plain(f"^ {mark.label}").rstrip())
            lines.append(f" {'':>{width}} | {' ' * caret}{pointer}")
        return lines

    def _mark(self, place: Place, label: str, primary: bool) -> _Mark:
        """The line to quote: the Python one if it can be read, else the PTX one."""
        source = place.source
        if source is None or not self._line(source.path, source.line):
            return _Mark(place.path, place.line, place.column, label)
        if primary:
            label = f"{place.path}:{place.line}  {label}".rstrip()
        return _Mark(source.path, source.line, source.column, label)

    def _line(self, path: str, number: int) -> str:
        """A line of a file; "" when the file is not at hand or the line is blank."""
        text = self._given.get(path) or self._sources.text(path) or self._ptx_text(path)
        line = text.line(number) if text is not None else ""
        return line if line.strip() else ""

    def _ptx_text(self, path: str) -> SourceText | None:
        if path not in self._ptx:
            self._ptx[path] = _read_ptx(path)
        return self._ptx[path]


def _read_ptx(path: str) -> SourceText | None:
    from ptxlint.frontends.discovery import Input, InputFault, read_code

    # What came through a pipe is gone, and reading it again would block.
    if not is_regular(path):
        return None
    code = read_code(Input(path))
    return None if isinstance(code, InputFault) else SourceText(code.text, path)


def _cut(text: str, column: int) -> tuple[str, int]:
    """A printable form of a line and the position of the caret in it.

    Tabs become spaces, control characters become `?`, and a long line is cut around the caret.
    """
    before = text[: column - 1].expandtabs(_TAB)
    whole = text.expandtabs(_TAB)
    if not whole.isprintable():
        whole = "".join(c if c.isprintable() else "?" for c in whole)
    caret = min(len(before), len(whole))
    if len(whole) <= _MAX_WIDTH:
        return whole, caret
    start = max(0, min(caret - _MAX_WIDTH // 2, len(whole) - _MAX_WIDTH))
    cut = whole[start : start + _MAX_WIDTH]
    left = "…" if start else ""
    right = "…" if start + _MAX_WIDTH < len(whole) else ""
    return left + cut + right, caret - start + len(left)
