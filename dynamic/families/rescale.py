"""Rescaling: running sums whose scale moves."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import growing


class Rescale(Family):
    id = "rescale"
    summary = "Several tiles with maxima that move from tile to tile."
    why = (
        "An online softmax that does not rescale what it has is right while the running maximum "
        "stays. Graded values move it."
    )
    decides = ("rescale",)
    values = ("graded", "shifted", "negative")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """Three, five and two tiles and a part."""
        yield from growing(known.described, known.kernels)
