"""Strides: views whose rows do not follow each other."""

from __future__ import annotations

from collections.abc import Sequence

from .kit import Family, Known


class Strides(Family):
    id = "strides"
    summary = "Tensors with room behind each row, transposed, and with every second element."
    why = (
        "A stride that is left out, or the one of another tensor, is right as long as rows follow "
        "each other."
    )
    decides = ("stride",)

    @classmethod
    def layouts(cls, known: Known) -> Sequence[str]:
        """All that the spec allows beside the contiguous one."""
        return tuple(known.described.layouts)
