"""Sums of multiples of given polynomials, by Gaussian elimination over the rationals."""

from __future__ import annotations

from fractions import Fraction

from ptxlint.dataflow.polynomial import Monomial, Polynomial


class Span:
    """All that can be put together from some polynomials, constants aside."""

    def __init__(self) -> None:
        self._rows: list[tuple[Monomial, dict[Monomial, Fraction]]] = []
        """Each with the term that it alone of the later rows has, whose factor is one."""

    def add(self, poly: Polynomial) -> bool:
        """Take one in; false if it was in the span before."""
        row = self._reduced(poly)
        if not row:
            return False
        pivot = min(row)
        scale = row[pivot]
        self._rows.append((pivot, {m: c / scale for m, c in row.items()}))
        return True

    def holds(self, poly: Polynomial) -> bool:
        """True if a polynomial is a sum of multiples of those taken in, and a constant."""
        return not self._reduced(poly)

    def _reduced(self, poly: Polynomial) -> dict[Monomial, Fraction]:
        row = {m: Fraction(c) for m, c in poly.terms.items() if m}
        for pivot, own in self._rows:
            scale = row.get(pivot)
            if not scale:
                continue
            for monomial, factor in own.items():
                left = row.get(monomial, Fraction(0)) - scale * factor
                if left:
                    row[monomial] = left
                else:
                    row.pop(monomial, None)
        return row


__all__ = ["Span"]
