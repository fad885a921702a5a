"""Numbers of stores parted at a radix: `s * H + L`, with all of L and its bytes from 0 up to s."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from ptxlint.dataflow.extremes import nested_quotients, replaced
from ptxlint.dataflow.guards import Conjunction
from ptxlint.dataflow.polynomial import CTAS, Atom, Monomial, Polynomial, remembered
from ptxlint.launch.under import UnderLaunch


class Place(NamedTuple):
    """Where a store writes: `width` units from a number on, where a guard holds."""

    number: Polynomial
    width: int
    guard: Conjunction


class Parting:
    """Parts numbers under one launch, with remainders as atoms of their own (kind `rest`, made of
    what is divided and the divisor)."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._table = under.symbolic.table
        self._rests: dict[int, Polynomial] = {}
        """What a remainder that was made an atom is, by the atom's number."""

    def parted(self, group: Sequence[Place], radix: int) -> tuple[list[Place], list[Place]] | None:
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
        plain = self.plain(number)
        return max(number.range()[0], self._under.box(guard, (plain,)).range(plain)[0])

    def _is_at_most(self, number: Polynomial, guard: Conjunction, bound: int) -> bool:
        return self._under.is_at_most(self.plain(number), guard, bound)

    def with_remainders(self, number: Polynomial) -> Polynomial:
        """A number in which x - d floor(x / d) is one atom, from the finest quotient on.

        With `s * x + (t - s * d) * floor(x / d)`, an index split in two, that is
        `s * rest + t * floor(x / d)`.
        """
        number = without_turns(nested_quotients(number))
        quotients = sorted(
            (a for a in number.atoms() if a.kind == "fdiv"),
            key=lambda a: (dividend(a)[1], a.number),
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
        part, divisor = dividend(quotient)
        for finer in reversed(quotients):
            same, by = dividend(finer)
            if same == part and by < divisor and not divisor % by:
                yield self._table.plain(finer), divisor // by
        yield part, divisor

    def _rest(self, quotient: Atom, part: Polynomial, divisor: int) -> Polynomial:
        own = part - self._table.plain(quotient) * divisor
        atom = self._table.atom("rest", (part, divisor), 0, divisor - 1, quotient.block)
        self._rests[atom.number] = own
        return self._table.plain(atom)

    def plain(self, number: Polynomial) -> Polynomial:
        """A number without the atoms that stand for remainders."""
        mapping = {
            atom: self._rests[atom.number] for atom in number.atoms() if atom.number in self._rests
        }
        return number.substitute(mapping) if mapping else number


@remembered
def without_turns(poly: Polynomial) -> Polynomial:
    """The same with floor(p / c) written as a sum where p is a multiple of c and what stays below.

    Fields of a word that are taken from a difference leave such quotients, of p with terms that are
    just short of c.
    """
    values: dict[int, Polynomial] = {}
    for atom in poly.all_atoms():
        if atom.kind != "fdiv" or values.keys() & set(atom.inner):
            continue
        part, divisor = atom.data
        turns = {m: (scale + divisor // 2) // divisor for m, scale in part.terms.items() if m}
        whole = Polynomial(poly.table, {m: times for m, times in turns.items() if times})
        low, high = (part - whole * divisor).range()
        if whole.terms and low >= 0 and high < divisor:
            values[atom.number] = whole
    return without_turns(replaced(poly, values)) if values else poly


def dividend(quotient: Atom) -> tuple[Polynomial, int]:
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


def radices(group: Sequence[Place]) -> list[int]:
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


__all__ = ["Parting", "Place", "dividend", "radices", "without_turns"]
