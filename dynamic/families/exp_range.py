"""Overflow and underflow of exponentials."""

from __future__ import annotations

from .kit import Family


class ExpRange(Family):
    id = "exp-range"
    summary = (
        "Numbers whose exponential overflows or vanishes, and numbers at the ends of the type."
    )
    why = (
        "An exponential without its maximum taken off overflows to infinity, one that underflows "
        "leaves 0/0; both look fine on normal numbers."
    )
    decides = ("nonfinite",)
    values = ("overflow", "underflow", "finite-extremes", "shifted")
