"""Renderers: one report, one text, one module a format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlint.engine.report import Report

FORMATS = ("text", "json", "sarif", "github")


def render(
    report: Report,
    format: str,
    *,
    colour: bool = False,
    statistics: bool = False,
    obligations: bool = False,
) -> str:
    """The report in one of `FORMATS`, ending in a newline unless empty.

    `colour`, `statistics` and `obligations` (list all verdicts) matter to the text format only.
    Raises `ValueError` for an unknown format.
    """
    if format == "text":
        from ptxlint.reporters.text import render_text

        return render_text(report, colour=colour, statistics=statistics, obligations=obligations)
    return _renderer(format)(report)


def _renderer(format: str) -> Callable[[Report], str]:
    if format == "json":
        from ptxlint.reporters.json_format import render_json

        return render_json
    if format == "sarif":
        from ptxlint.reporters.sarif import render_sarif

        return render_sarif
    if format == "github":
        from ptxlint.reporters.github import render_github

        return render_github
    raise ValueError(f"unknown format {format!r}; choose from {', '.join(FORMATS)}")
