"""Scales and normalisation: roots, means and 1/sqrt(D)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.operators.spec import Dims

from .kit import Family, Known
from .shapes import distinct, fitted, rich


class Scale(Family):
    id = "scale"
    summary = "Sizes far from 1 along each axis that a mean or a scale may divide by."
    why = (
        "A missing root is nothing where the mean square is 1, and a missing 1/sqrt(D) nothing "
        "where D is 1 or the softmax is saturated: so D is large and not square, and magnitudes "
        "are graded."
    )
    decides = ("semantics",)
    values = ("graded", "shifted")

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """Sizes without knowledge, then half and a quarter of them."""
        ran = rich(known.described)
        parts = ({name: size // share | 1 for name, size in ran.items()} for share in (2, 4))
        yield from distinct([ran], (fitted(known.described, sizes) for sizes in parts))
