"""`--statistics`: findings by rule, processor time by analysis and rule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlint.engine.report import Report


def render_statistics(report: Report) -> str:
    """Two small tables, the largest numbers first."""
    counts = Counter((f.rule, f.name, f.severity) for f in report.findings)
    lines = ["findings by rule:"]
    for (rule, name, severity), number in sorted(counts.items(), key=lambda i: (-i[1], i[0])):
        lines.append(f"  {number:>8}  {rule:<9}{severity:<9}{name}")
    if not counts:
        lines.append("         0")
    lines.append("milliseconds by stage:")
    for stage, seconds in sorted(report.timings.items(), key=lambda item: -item[1]):
        lines.append(f"  {seconds * 1000:>8.1f}  {stage}")
    s = report.summary
    if s.seconds > 0:
        lines.append(f"  {s.seconds * 1000:>8.1f}  in all: {s.lines} lines")
    return "\n".join(lines) + "\n"
