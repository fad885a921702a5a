"""Semantics: what only a reference can tell."""

from __future__ import annotations

from .kit import Family


class Semantics(Family):
    id = "semantics"
    summary = (
        "The operator computes what its reference computes, at sizes with several rows, tiles and "
        "a part of one."
    )
    why = (
        "No kernel can say by itself that a constant is wrong or an operation missing, so one run "
        "per dtype is always made. Its values are graded: no root, scale or rescaling is 1 by "
        "chance, and no exponential is saturated."
    )
    decides = ("semantics",)
