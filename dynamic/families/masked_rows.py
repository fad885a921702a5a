"""Rows that are masked as a whole."""

from __future__ import annotations

from .kit import Family


class MaskedRows(Family):
    id = "masked-rows"
    summary = "Rows of minus infinity, or of the least number that the input may hold."
    why = (
        "In a row without any entry the maximum is minus infinity, and minus infinity less itself "
        "is NaN. Where the reference has NaN, too, that is right."
    )
    decides = ("nonfinite",)
    values = ("masked-rows",)
