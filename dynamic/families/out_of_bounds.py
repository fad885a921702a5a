"""Reads and writes beyond tensors."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import around_tiles


class OutOfBounds(Family):
    id = "out-of-bounds"
    summary = (
        "Sizes around tiles, with NaN around inputs and marks around all that a kernel may write."
    )
    why = (
        "A read beyond the end is harmless until what lies there matters, a write beyond it until "
        "somebody reads that."
    )
    decides = ("bounds", "guard", "overflow")
    checks = ("sanitizer", "canaries", "reference")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """One more and one less than a tile, and few elements."""
        yield from around_tiles(known.described, known.kernels, known.sizes)
