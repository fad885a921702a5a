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
from itertools import pairwise
from math import gcd
from typing import Final, NamedTuple

from ptxlint.dataflow.extremes import nested_quotients
from ptxlint.dataflow.guards import ALWAYS, Conjunction
from ptxlint.dataflow.polynomial import CTAS, Atom, Monomial, Polynomial
from ptxlint.launch.coverage.linear_span import Span
from ptxlint.launch.under import UnderLaunch

_DEEPEST: Final = 24
"""Parts within parts."""


class Place(NamedTuple):
    """Where a store writes: `width` units from a number on, where a guard holds."""

    number: Polynomial
    width: int
    guard: Conjunction


class Known:
    """The numbers that are the same in any two programs whose places meet.

    `numbers` are those found; all that follows from them is in `span`.
    """

    def __init__(self, under: UnderLaunch, places: Iterable[Place]) -> None:
        self._under = under
        self._table = under.symbolic.table
        self._rests: dict[int, Polynomial] = {}
        """What a remainder that was made an atom is, by the atom's number."""
        self.numbers: list[Polynomial] = []
        self.span = Span()
        group = list(dict.fromkeys(places))
        parted = [p._replace(number=self._with_remainders(p.number)) for p in group]
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
        for radix in _radices(group):
            parts = self._parted(group, radix)
            if parts is not None:
                for part in parts:
                    self._look_into(part, depth - 1)
                return

    def _parted(self, group: Sequence[Place], radix: int) -> tuple[list[Place], list[Place]] | None:
        """A group as `radix * H + L`, with all of L and its bytes from 0 up to the radix."""
        upper: list[Place] = []
        lower: list[Place] = []
        for number, width, guard in group:
            high: dict[Monomial, int] = {}
            low: dict[Monomial, int] = {}
            for monomial, scale in number.terms.items():
                if monomial:
                    if scale % radix:
                        low[monomial] = scale
                    else:
                        high[monomial] = scale // radix
            rest = Polynomial(self._table, low)
            least, most = rest.range()
            shift, start = divmod(least + number.constant, radix)
            if start + (most - least) + width > radix:
                bounds = self._bounds(rest, guard)
                shift, start = divmod(bounds + number.constant, radix)
                limit = radix - width - start + bounds
                if not self._is_at_most(rest, guard, limit):
                    return None
            constant = number.constant - radix * shift
            if shift:
                high[()] = shift
            upper.append(Place(Polynomial(self._table, high), 1, guard))
            lower.append(Place(rest + constant, width, guard))
        if radix == 1 and not any(place.number.depends for place in lower):
            return None
        return upper, lower

    def _bounds(self, number: Polynomial, guard: Conjunction) -> int:
        """The least that a number can be where a guard holds."""
        plain = self._plain(number)
        return max(number.range()[0], self._under.box(guard, (plain,)).range(plain)[0])

    def _is_at_most(self, number: Polynomial, guard: Conjunction, bound: int) -> bool:
        return self._under.is_at_most(self._plain(number), guard, bound)

    def _add(self, number: Polynomial) -> None:
        plain = self._plain(number)
        if self.span.add(plain):
            self.numbers.append(plain)

    # Quotients and remainders -------------------------------------------------------------------
    def _with_remainders(self, number: Polynomial) -> Polynomial:
        """A number in which x - d floor(x / d) is one atom, from the finest quotient on.

        With `s * x + (t - s * d) * floor(x / d)`, an index split in two, that is
        `s * rest + t * floor(x / d)`.
        """
        number = nested_quotients(number)
        quotients = sorted(
            (a for a in number.atoms() if a.kind == "fdiv"),
            key=lambda a: (_whole(a)[1], a.number),
        )
        for quotient in quotients:
            for part, divisor in self._divided(quotient, quotients):
                times = _times(number, part)
                if times and divisor > 1:
                    rest = self._rest(quotient, part, divisor)
                    whole = self._table.plain(quotient) * divisor + rest
                    number = number - part * times + whole * times
                    break
        return number

    def _divided(
        self, quotient: Atom, quotients: Sequence[Atom]
    ) -> Iterable[tuple[Polynomial, int]]:
        """What a quotient is a quotient of: its dividend, or a finer quotient of that."""
        part, divisor = _whole(quotient)
        for finer in reversed(quotients):
            same, by = _whole(finer)
            if same == part and by < divisor and not divisor % by:
                yield self._table.plain(finer), divisor // by
        yield part, divisor

    def _rest(self, quotient: Atom, part: Polynomial, divisor: int) -> Polynomial:
        own = part - self._table.plain(quotient) * divisor
        atom = self._table.atom("rest", (part, divisor), 0, divisor - 1, quotient.block)
        self._rests[atom.number] = own
        return self._table.plain(atom)

    def _plain(self, number: Polynomial) -> Polynomial:
        """A number without the atoms that stand for remainders."""
        mapping = {
            atom: self._rests[atom.number] for atom in number.atoms() if atom.number in self._rests
        }
        return number.substitute(mapping) if mapping else number

    def _look_into_guards(self, group: Sequence[Place]) -> None:
        """Numbers that the guards of all places leave one value are the same, too."""
        shared = frozenset.intersection(*(place.guard for place in group)) if group else ALWAYS
        for conjunct in sorted(shared, key=repr):
            poly = conjunct.polynomial
            if poly is None:
                continue
            if self._with_remainders(poly).range()[1] == 0:
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
                    place = Place(self._with_remainders(part), 1, ALWAYS)
                    self._look_into([place], _DEEPEST)


def _whole(quotient: Atom) -> tuple[Polynomial, int]:
    """What a quotient of a quotient is a quotient of, and by how much."""
    part, divisor = quotient.data
    while len(part.terms) == 1:
        ((monomial, scale),) = part.terms.items()
        inner = part.table.atoms[monomial[0]] if len(monomial) == 1 and scale == 1 else None
        if inner is None or inner.kind != "fdiv":
            break
        part, divisor = inner.data[0], divisor * inner.data[1]
    return part, divisor


def _times(number: Polynomial, part: Polynomial) -> int:
    """How often a number holds another one, with all of its terms; 0 if it does not."""
    found: int | None = None
    for monomial, scale in part.terms.items():
        if not monomial:
            continue
        times, left = divmod(number.terms.get(monomial, 0), scale)
        if left or not times or (found is not None and times != found):
            return 0
        found = times
    return found or 0


def _radices(group: Sequence[Place]) -> list[int]:
    """The steps of the terms, those from one place to the next and the one that all programs share,
    the largest first."""
    steps: set[int] = set()
    of_programs = 0
    for number, _, _ in group:
        depends = number.table.depends
        for monomial, scale in number.terms.items():
            if monomial:
                steps.add(abs(scale))
            if depends[monomial] & CTAS:
                of_programs = gcd(of_programs, scale)
    constants = sorted({place.number.constant for place in group})
    steps.update(b - a for a, b in pairwise(constants))
    return sorted({*steps, of_programs} - {0}, reverse=True)


__all__ = ["Known", "Place"]
