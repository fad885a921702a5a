"""Aliasing: tensors that are parts of larger memory."""

from __future__ import annotations

from collections.abc import Sequence

from .kit import Family, Known


class Aliasing(Family):
    id = "aliasing"
    summary = (
        "Views into larger buffers, run twice: what lies between their elements stays, and so do "
        "inputs."
    )
    why = (
        "A kernel that works in place, or that writes whole tiles, changes memory that belongs to "
        "somebody else; a second run then reads what the first has left."
    )
    decides = ("sync", "stride")
    checks = ("reference", "canaries", "sanitizer", "repeat")

    @classmethod
    def layouts(cls, known: Known) -> Sequence[str]:
        """Views first, where the spec allows them."""
        return (*known.described.layouts, "contiguous")
