"""Divisibility: sizes that are whole tiles, and those that are not."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import distinct, fitted, rich, tiles, told


class BlockDivisibility(Family):
    id = "block-divisibility"
    summary = "Whole tiles, the tiles next to them, and a single element."
    why = (
        "Code that leaves a mask out where a size divides by the tile, or takes a branch of its "
        "own for size 1, is right for one kind of size and wrong for the other."
    )
    decides = ("tail-mask",)

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """One tile, several, one element more than each, one element."""
        ran = rich(known.described)
        moving = told(known.described, known.kernels, ran) or tuple(ran)
        ends = (*tiles(known.kernels), 16)
        counts = (count for tile in ends for count in (tile, 2 * tile, 2 * tile + 1))
        yield from distinct(
            (),
            (
                fitted(known.described, {**ran, **dict.fromkeys(moving, size)})
                for size in (*counts, 1)
            ),
        )
