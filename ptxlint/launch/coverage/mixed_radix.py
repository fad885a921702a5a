"""What an address tells of the program that made it: digits of a number in a mixed radix.

Two accesses meet only if their addresses differ by less than they are wide. Where an address is
`s * H + L`, and `L` with all of its bytes stays from 0 up to s, addresses that meet have the same
`H`, and their `L` meet. Done again on both parts this leaves numbers that are the same in both
programs; they say which program it is if its number along each axis is a sum of multiples of them.
The atoms of the two sides are not otherwise related: nothing is assumed of lanes, of rounds or of
what is not known. So it holds for any two accesses of a group, by one instruction or by two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ptxlint.dataflow.extremes import nested_quotients
from ptxlint.dataflow.guards import ALWAYS
from ptxlint.dataflow.polynomial import CTAS, Polynomial
from ptxlint.launch.coverage.linear_span import Span
from ptxlint.launch.coverage.parting import Parting, Place, radices
from ptxlint.launch.under import UnderLaunch

_DEEPEST: Final = 24
"""Parts within parts."""


class Known:
    """The numbers that are the same in any two programs whose places meet.

    `numbers` are those found; all that follows from them is in `span`.
    """

    def __init__(self, under: UnderLaunch, places: Iterable[Place]) -> None:
        self._table = under.symbolic.table
        self._parting = Parting(under)
        self.numbers: list[Polynomial] = []
        self.span = Span()
        group = list(dict.fromkeys(places))
        parted = [p._replace(number=self._parting.with_remainders(p.number)) for p in group]
        self._look_into(parted, _DEEPEST)
        self._look_into_guards(group)
        self._look_into_quotients()

    def tells(self, axis: str) -> bool:
        """True if the number of a program along an axis of the grid is one of them."""
        for atom in self._table.atoms:
            if atom.kind == "ctaid" and atom.data[0] == axis:
                return self.span.holds(self._table.plain(atom))
        return False

    # Parting ------------------------------------------------------------------------------------
    def _look_into(self, group: Sequence[Place], depth: int) -> None:
        group = list(dict.fromkeys(group))
        if depth <= 0 or not any(place.number.depends & CTAS for place in group):
            return
        first = group[0].number
        step = first.gcd()
        if all(place.number == first and place.width <= step for place in group):
            self._add(first)
            if len(first.terms) == 1:
                return
        for radix in radices(group):
            parts = self._parting.parted(group, radix)
            if parts is not None:
                for part in parts:
                    self._look_into(part, depth - 1)
                return

    def _add(self, number: Polynomial) -> None:
        plain = self._parting.plain(number)
        if self.span.add(plain):
            self.numbers.append(plain)

    # Quotients and remainders -------------------------------------------------------------------
    def _look_into_guards(self, group: Sequence[Place]) -> None:
        """Numbers that the guards of all places leave one value are the same, too."""
        shared = frozenset.intersection(*(place.guard for place in group)) if group else ALWAYS
        for conjunct in sorted(shared, key=repr):
            poly = conjunct.polynomial
            if poly is None:
                continue
            if self._parting.with_remainders(poly).range()[1] == 0:
                self._add(nested_quotients(poly))

    def _look_into_quotients(self) -> None:
        """Where what a quotient is of is known, look what that tells."""
        seen: set[Polynomial] = set()
        found = True
        while found:
            found = False
            for number in list(self.numbers):
                for atom in sorted(number.atoms(), key=lambda a: a.number):
                    part = atom.data[0] if atom.kind == "fdiv" else None
                    if part is None or part in seen or not self.span.holds(part):
                        continue
                    seen.add(part)
                    found = True
                    place = Place(self._parting.with_remainders(part), 1, ALWAYS)
                    self._look_into([place], _DEEPEST)


__all__ = ["Known"]
