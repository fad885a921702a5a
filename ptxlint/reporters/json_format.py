"""JSON, version 1: the layout of `ptxlint.engine.serialise`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlint.engine.report import Report


def render_json(report: Report) -> str:
    """The report as one JSON object."""
    return report.to_json() + "\n"
