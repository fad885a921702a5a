"""What came of holding an output to its reference, as plain data."""

from __future__ import annotations

from typing import NamedTuple


class Compared(NamedTuple):
    """An output against its reference. Errors are over the elements that are finite in both."""

    output: str
    elements: int
    wrong: int
    """Elements off by more than is allowed, or NaN or infinite where the reference is not, or the
    other way round."""
    max_abs: float
    max_rel: float
    max_ulp: float
    nonfinite: int = 0
    """Of the wrong ones those that are NaN or infinite on one side alone, or of another sign."""
    worst: tuple[int, ...] = ()
    """Where the error is largest against what is allowed."""
    got: float = 0.0
    expected: float = 0.0
    allowed: float = 0.0
    """At the worst place."""
    share: float = 0.0
    """The largest error as a share of what is allowed where it is; above 1 for a wrong element."""


__all__ = ["Compared"]
