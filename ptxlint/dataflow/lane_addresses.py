"""What address each thread of a CTA touches, as numbers.

Bits of the thread's number are put into an offset; parameters, the size of the grid and what is
made of them stay symbols, each monomial of them an axis of its own. Two addresses are the same for
sure if they agree along every axis.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow.access import is_varying
from ptxlint.dataflow.guards import Conjunction
from ptxlint.dataflow.polynomial import LANES, Atom, Monomial, Polynomial

_AXIS_BITS: Final = 64
"""Room for the coordinates along one axis."""
_MAX_INNER: Final = 40
"""A quotient of more atoms than this is not followed into."""


def is_of_lanes(atom: Atom) -> bool:
    """True for a bit of the thread's number, and for what bits are divided to."""
    if atom.kind == "bit":
        return True
    if atom.kind != "fdiv":
        return False
    inner: Polynomial = atom.data[0]
    return len(atom.inner) <= _MAX_INNER and all(map(is_of_lanes, inner.atoms()))


class Split(NamedTuple):
    """An offset: `lanes` by thread, `fixed` by parameters alone, `moving` by CTA and iteration."""

    lanes: Polynomial
    fixed: Polynomial
    moving: Polynomial


def split(offset: Polynomial) -> Split | None:
    """The parts of an offset; None where lanes are multiplied with CTA numbers or iterations."""
    atoms = offset.table.atoms
    parts: tuple[dict[Monomial, int], ...] = ({}, {}, {})
    for monomial, coefficient in offset.terms.items():
        members = [atoms[n] for n in monomial]
        if any(a.depends & LANES for a in members):
            if not all(is_of_lanes(a) or not is_varying(a) for a in members):
                return None
            parts[0][monomial] = coefficient
        else:
            parts[2 if any(map(is_varying, members)) else 1][monomial] = coefficient
    return Split(*(Polynomial(offset.table, part) for part in parts))


class Threads:
    """The threads of a CTA with extents (x, y, z), numbered as the hardware does."""

    def __init__(self, extents: tuple[int, int, int]) -> None:
        x, y, z = extents
        self.count = x * y * z
        self._coordinates = {
            "x": [t % x for t in range(self.count)],
            "y": [t // x % y for t in range(self.count)],
            "z": [t // (x * y) for t in range(self.count)],
        }
        self._atoms: dict[Atom, list[int]] = {}
        self._axes: dict[Monomial, int] = {(): 0}
        self._values: dict[Polynomial, list[int]] = {}

    def atom(self, atom: Atom) -> list[int]:
        """An atom that lanes alone determine, in each thread."""
        found = self._atoms.get(atom)
        if found is None:
            if atom.kind == "bit":
                axis, place = atom.data
                found = [c >> place & 1 for c in self._coordinates[axis]]
            else:
                inner, divisor = atom.data
                found = [value // divisor for value in self.values(inner)]
            self._atoms[atom] = found
        return found

    def values(self, poly: Polynomial) -> list[int]:
        """The polynomial in each thread, one number in which every axis has its own digits."""
        known = self._values.get(poly)
        if known is None:
            atoms = poly.table.atoms
            known = [0] * self.count
            for monomial, coefficient in poly.terms.items():
                scale = tuple(n for n in monomial if not is_of_lanes(atoms[n]))
                weight = coefficient << self._place(scale)
                values = [weight] * self.count
                for number in monomial:
                    if is_of_lanes(atoms[number]):
                        factor = self.atom(atoms[number])
                        values = [v * f for v, f in zip(values, factor, strict=True)]
                known = [v + w for v, w in zip(known, values, strict=True)]
            self._values[poly] = known
        return known

    def number(self, poly: Polynomial) -> int:
        """A polynomial without lanes in the same digits."""
        return sum(c << self._place(m) for m, c in poly.terms.items())

    def _place(self, scale: Monomial) -> int:
        return _AXIS_BITS * self._axes.setdefault(scale, len(self._axes))

    def where(self, guard: Conjunction) -> list[bool] | None:
        """The threads for which the conjuncts on bits alone hold; None if some conjunct is not
        understood. Conjuncts with a parameter are taken for bounds that the data can meet."""
        holds = [True] * self.count
        for conjunct in guard:
            poly = conjunct.polynomial
            if poly is None:
                return None
            if all(map(is_of_lanes, poly.atoms())):
                holds = [h and v >= 0 for h, v in zip(holds, self.values(poly), strict=True)]
            elif not _can_be_met(poly):
                return None
        return holds


def _can_be_met(poly: Polynomial) -> bool:
    """True for `size - index >= 0`: a large size meets it for all threads at once."""
    atoms = poly.table.atoms
    return any(
        len(monomial) == 1 and coefficient > 0 and atoms[monomial[0]].kind in ("param", "load")
        for monomial, coefficient in poly.terms.items()
    ) and not any(
        coefficient < 0 and any(atoms[n].kind in ("param", "load") for n in monomial)
        for monomial, coefficient in poly.terms.items()
    )
