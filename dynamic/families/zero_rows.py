"""Rows that are zero as a whole."""

from __future__ import annotations

from .kit import Family


class ZeroRows(Family):
    id = "zero-rows"
    summary = "Rows of zeros among others, then zeros alone."
    why = (
        "A scale that is taken from the data (a norm, a largest magnitude) is 0 for such a row, "
        "and 0/0 is NaN."
    )
    decides = ("nonfinite",)
    values = ("zero-rows", "zeros", "tiny")
