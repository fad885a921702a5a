"""Launches that are run again."""

from __future__ import annotations

from ptxlint.dynamic.operators.spec import TRITON

from .kit import Family


class AutotuneRerun(Family):
    id = "autotune-rerun"
    summary = "Each launch twice, as an autotuner does while it measures."
    why = (
        "A launch that adds to what its output held, or works in place, leaves another result "
        "each time. Autotuners run every configuration many times on the same memory."
    )
    decides = ("rerun",)
    checks = ("rerun", "reference")
    runs_on = (TRITON,)
