"""Tail masks: what lanes beyond the end contribute."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import around_tiles


class TailMask(Family):
    id = "tail-mask"
    summary = "Sizes around the tiles, so that some lanes lie beyond the end."
    why = (
        "A fill that is not neutral (0 where a maximum or an exponential follows) counts only in "
        "tiles that are not full, and shows where the data are far from the fill."
    )
    decides = ("tail-mask", "guard")
    values = ("graded", "negative", "shifted")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """One more and one less than a tile, and few elements."""
        yield from around_tiles(known.described, known.kernels, known.sizes)
