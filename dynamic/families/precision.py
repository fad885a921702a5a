"""Precision: formats narrower than the sum needs."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import growing


class Precision(Family):
    id = "precision"
    summary = "Long sums of graded, of equal and of exactly representable numbers."
    why = (
        "Rounding to 16 bits in each round loses more with each of them; equal numbers add up "
        "until the next one is lost, and small integers must come out exactly."
    )
    decides = ("precision", "accumulation")
    values = ("graded", "constant", "integers")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """As many rounds as can be afforded."""
        yield from growing(known.described, known.kernels, (9, 17, 3))
