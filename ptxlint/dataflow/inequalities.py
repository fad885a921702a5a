"""Whether inequalities between integers can hold together.

Each is `polynomial >= 0`. Terms are eliminated one by one (Fourier and Motzkin): of two in which a
term has opposite signs a sum is made that does not have it. Where a sum can only be negative the
inequalities contradict each other. Quotients, minima and maxima are bound to what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Final

from ptxlint.dataflow.polynomial import INFINITY, Atom, Monomial, Polynomial

_MOST: Final = 48
"""So many inequalities are kept at a time; past that nothing is found."""


def contradict(inequalities: Iterable[Polynomial]) -> bool:
    """True if the inequalities certainly do not hold together."""
    given: dict[Polynomial, None] = {}
    for poly in inequalities:
        given.setdefault(_tightened(poly))
    for atom in sorted({a for poly in given for a in poly.all_atoms()}, key=lambda a: a.number):
        for poly in _about(atom):
            given.setdefault(_tightened(poly))
    known = list(given)
    while True:
        if any(poly.range()[1] < 0 for poly in known):
            return True
        term = _next_term(known)
        if term is None:
            return False
        known = _without(known, term)
        if len(known) > _MOST:
            return False


def _about(atom: Atom) -> list[Polynomial]:
    """What holds of a quotient, a minimum or a maximum, as polynomials that are not negative."""
    kind, data = atom.kind, atom.data
    if kind == "fdiv":
        part, divisor = data
        left = part - part.table.plain(atom) * divisor
        return [left, -left + (divisor - 1)]
    if kind in ("min", "max"):
        parts = [part for part in data if isinstance(part, Polynomial)]
        whole = parts[0].table.plain(atom)
        return [part - whole if kind == "min" else whole - part for part in parts]
    return []


def _tightened(poly: Polynomial) -> Polynomial:
    """The same inequality, divided by what its coefficients have in common."""
    divisor = poly.gcd()
    if divisor <= 1:
        return poly
    terms = {m: c // divisor for m, c in poly.terms.items()}
    return Polynomial(poly.table, {m: c for m, c in terms.items() if c})


def _next_term(known: list[Polynomial]) -> Monomial | None:
    """The term that is eliminated with the fewest sums; None if none occurs with both signs."""
    signs: dict[Monomial, list[int]] = {}
    for poly in known:
        for monomial, coefficient in poly.terms.items():
            if monomial:
                signs.setdefault(monomial, [0, 0])[coefficient > 0] += 1
    best: Monomial | None = None
    fewest = 0
    for monomial, (below, above) in signs.items():
        if below and above and (best is None or below * above - below - above < fewest):
            best, fewest = monomial, below * above - below - above
    return best


def _without(known: list[Polynomial], term: Monomial) -> list[Polynomial]:
    """What follows of the inequalities without a term."""
    out: dict[Polynomial, None] = {}
    above: list[Polynomial] = []
    below: list[Polynomial] = []
    for poly in known:
        coefficient = poly.terms.get(term, 0)
        if not coefficient:
            out.setdefault(poly)
        else:
            (above if coefficient > 0 else below).append(poly)
    table = known[0].table
    low, high = table.monomial_range(term)
    plain = Polynomial(table, {term: 1})
    if low > -INFINITY:
        above.append(plain - low)
    if high < INFINITY:
        below.append(-plain + high)
    for first in above:
        for second in below:
            a, b = first.terms[term], -second.terms[term]
            common = gcd(a, b)
            total = _tightened(first * (b // common) + second * (a // common))
            if total.range()[0] < 0:
                out.setdefault(total)
    return list(out)


__all__ = ["contradict"]
