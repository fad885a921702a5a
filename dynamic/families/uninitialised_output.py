"""Elements of outputs that nothing writes."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import around_tiles


class UninitialisedOutput(Family):
    id = "uninitialised-output"
    summary = "Outputs in memory that is filled with a pattern before."
    why = (
        "Fresh memory is often zero by chance, so that elements that no program writes, or a sum "
        "that starts from what was there, look right."
    )
    decides = ("coverage", "rerun")
    checks = ("poison", "reference", "sanitizer")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """Sizes around tiles: what is left out is mostly at the end."""
        yield from around_tiles(known.described, known.kernels, known.sizes)
