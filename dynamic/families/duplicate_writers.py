"""Programs that write the same, and results that depend on order."""

from __future__ import annotations

from ptxlint.dynamic.operators.spec import TRITON

from .kit import Family


class DuplicateWriters(Family):
    id = "duplicate-writers"
    summary = (
        "The same run again, with programs in another order, and with other numbers of warps and "
        "stages."
    )
    why = (
        "Where two programs or warps write or read one cell without order between them, the "
        "result depends on who comes first."
    )
    decides = ("coverage", "sync", "rerun")
    values = ("graded",)
    checks = ("reference", "sanitizer", "repeat", "programs", "warps")
    runs_on = (TRITON,)
