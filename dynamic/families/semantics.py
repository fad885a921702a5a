"""Semantics: what only a reference can tell."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.operators.spec import FREE

from .kit import Family, Known


class Semantics(Family):
    id = "semantics"
    summary = (
        "The operator computes what its reference computes, at sizes with several rows, tiles and "
        "a part of one."
    )
    why = (
        "No kernel can say by itself that a constant is wrong or an operation missing, so one run "
        "per dtype is always made. Its values are graded: no root, scale or rescaling is 1 by "
        "chance, and no exponential is saturated. One more for all dtypes is what that one is not: "
        "rows of several kinds, and tensors that lie as freely as the spec says."
    )
    decides = ("semantics",)
    values = ("graded", "varied")

    @classmethod
    def cases(cls, known: Known) -> Iterator[Case]:
        """At each of the sizes, graded values in plain layout, then all that is different: where
        inputs are changed in place also the order of programs."""
        layouts = ("contiguous", FREE if known.described.layouts else "contiguous")
        checks = (cls.checks, (*cls.checks, *(("programs",) if known.described.in_place else ())))
        for dims in cls.sizes(known):
            for values, layout, looked_at in zip(cls.values, layouts, checks, strict=True):
                yield Case(
                    known.described.name, known.dtype, dict(dims), values, known.seed, layout,
                    looked_at, cls.id,
                )  # fmt: skip
