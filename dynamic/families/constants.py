"""Constants: slopes, factors and offsets."""

from __future__ import annotations

from .kit import Family


class Constants(Family):
    id = "constants"
    summary = (
        "Numbers on both sides of 0 and on it, of every magnitude that the type takes without "
        "overflow."
    )
    why = (
        "A slope for negative numbers shows on negative ones alone, a factor in an argument of "
        "tanh or exp where that is neither saturated nor near 0, an epsilon next to 0."
    )
    decides = ("semantics",)
    values = ("regular", "negative", "tiny", "boundary")
