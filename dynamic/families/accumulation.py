"""Accumulation: sums over many rounds of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import growing


class Accumulation(Family):
    id = "accumulation"
    summary = "Sums that take several rounds of each loop."
    why = (
        "A sum that a round overwrites, or that leaves the last part out, is right as long as one "
        "round is all there is."
    )
    decides = ("accumulation",)
    values = ("graded", "shifted", "integers")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """Several tiles and a part of one."""
        yield from growing(known.described, known.kernels)
