"""How large and how small a polynomial can be where a conjunction holds.

Three steps, each only if those before it do not reach: atoms have bounds; conjuncts tighten them,
to whole numbers; then one conjunct at a time is added, in the multiple that cancels a term. What is
chosen between alternatives is looked at for each of them. All of it is arithmetic over integers:
the size of the grid makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any, Final, TypeAlias

from ptxlint.dataflow.bitwise import floor_divide
from ptxlint.dataflow.guards import undivided
from ptxlint.dataflow.polynomial import INFINITY, Atom, AtomTable, Polynomial, remembered
from ptxlint.facts import Budget

Range: TypeAlias = tuple[int, int]
Arms: TypeAlias = Callable[[int, bool], "Iterable[Polynomial] | None"]
"""What is not negative where a predicate holds or does not; None if that cannot be."""

_SWEEPS: Final = 6
"""So often all conjuncts tighten all atoms."""
_ELIMINATED: Final = 3
"""Conjuncts that are added to a polynomial, one after another."""
_TRIED: Final = 400
"""Sums of a polynomial and conjuncts that are looked at."""
_SPLITS: Final = 5
"""Alternatives within each other."""
_MOST_FACTS: Final = 96


class Box:
    """Bounds of atoms where a conjunction of `polynomial >= 0` holds."""

    __slots__ = ("_arms", "_budget", "_ranges", "_splits", "_table", "facts", "is_empty", "limits")

    def __init__(
        self,
        table: AtomTable,
        facts: Sequence[Polynomial],
        arms: Arms,
        budget: Budget,
        splits: int = _SPLITS,
    ) -> None:
        self._budget = budget
        self._table = table
        self._arms = arms
        self._splits = splits
        self.limits: dict[int, Range] = {}
        """Bounds of atoms that are tighter than the atom's own."""
        self._ranges: dict[int, Range] = {}
        self.is_empty = False
        """True if the conjunction cannot hold."""
        self.facts = list(dict.fromkeys([*facts, *(undivided(f) for f in facts)]))
        self._define()
        self._tighten()

    def fixed(self, number: int, value: int) -> Box:
        """The same where an atom is a number."""
        box = Box(self._table, (), self._arms, self._budget, 0)
        box.facts = self.facts
        box.limits = {**self.limits, number: (value, value)}
        box.is_empty = self.is_empty
        box._tighten()
        return box

    def _define(self) -> None:
        """Add what quotients, minima and maxima in the facts say of what they are made of."""
        seen: set[int] = set()
        for fact in self.facts:
            if len(self.facts) > _MOST_FACTS:
                break
            for atom in fact.atoms():
                if atom.number not in seen:
                    seen.add(atom.number)
                    self.facts += definitions(atom)
        self.facts = list(dict.fromkeys(self.facts))

    def _tighten(self) -> None:
        facts = [f for f in self.facts if f.terms]
        for _ in range(_SWEEPS):
            changed = False
            self._budget.left -= len(facts)
            for fact in facts:
                changed = self._tighten_by(fact) or changed
                if self.is_empty:
                    return
            if not changed:
                return

    def _tighten_by(self, fact: Polynomial) -> bool:
        """Bound the atoms that stand alone in a fact by the most that the rest can be."""
        parts: list[tuple[tuple[int, ...], int, Range]] = []
        low = high = 0
        for monomial, scale in fact.terms.items():
            ends = self._scaled(monomial, scale)
            low, high = low + ends[0], high + ends[1]
            parts.append((monomial, scale, ends))
        if high < 0:
            self.is_empty = True
            return False
        changed = False
        if high >= INFINITY:
            return False
        for monomial, scale, ends in parts:
            if len(monomial) != 1:
                continue
            number = monomial[0]
            rest = high - ends[1]
            # scale * atom >= -rest
            a, b = self.of_atom(number)
            if scale > 0:
                least, most = -(rest // scale), b
            else:
                least, most = a, rest // -scale
            if least > a or most < b:
                least, most = max(least, a), min(most, b)
                if least > most:
                    self.is_empty = True
                    return True
                self.limits[number] = least, most
                self._ranges.clear()
                changed = True
                high += scale * (most - b) if scale > 0 else scale * (least - a)
        return changed

    def _scaled(self, monomial: tuple[int, ...], scale: int) -> Range:
        low, high = scale, scale
        for number in monomial:
            a, b = self._ranges[number] if number in self._ranges else self.of_atom(number)
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
        return low, high

    def of_atom(self, number: int) -> Range:
        """Bounds of an atom, through the quotients and alternatives that it is."""
        found = self._ranges.get(number)
        if found is not None:
            return found
        atom = self._atom(number)
        low, high = self.limits.get(number, (atom.low, atom.high))
        low, high = max(low, atom.low), min(high, atom.high)
        inner = self._of_parts(atom)
        if inner is not None:
            low, high = max(low, inner[0]), min(high, inner[1])
        self._ranges[number] = low, high
        return low, high

    def _atom(self, number: int) -> Atom:
        return self._table.atoms[number]

    def _of_parts(self, atom: Atom) -> Range | None:
        """Bounds of an atom by those of its parts. Atoms within have smaller numbers."""
        data = atom.data
        if atom.kind == "fdiv":
            low, high = self.range(data[0])
            return _floor(low, data[1]), _floor(high, data[1])
        if atom.kind in ("min", "max"):
            (a, b), (c, d) = self.range(data[0]), self.range(data[1])
            return (min(a, c), min(b, d)) if atom.kind == "min" else (max(a, c), max(b, d))
        if atom.kind == "select":
            (a, b), (c, d) = self.range(data[1]), self.range(data[2])
            return min(a, c), max(b, d)
        if atom.kind == "div":
            return _quotient(self.range(data[0]), self.range(data[1]))
        return None

    def range(self, poly: Polynomial) -> Range:
        """Bounds of a polynomial by those of its atoms."""
        low = high = 0
        ranges = self._ranges
        for monomial, scale in poly.terms.items():
            if len(monomial) == 1:
                number = monomial[0]
                a, b = ranges[number] if number in ranges else self.of_atom(number)
                if scale > 0:
                    low, high = low + a * scale, high + b * scale
                else:
                    low, high = low + b * scale, high + a * scale
            elif monomial:
                a, b = self._scaled(monomial, scale)
                low, high = low + a, high + b
            else:
                low, high = low + scale, high + scale
        least, most = poly.range()
        return max(low, least), min(high, most)

    # Bounds -----------------------------------------------------------------------------------
    def is_at_least(self, poly: Polynomial, bound: int) -> bool:
        """True if a polynomial is certainly no less than a number."""
        return self.is_at_most(-poly, -bound)

    def is_at_most(self, poly: Polynomial, bound: int) -> bool:
        """True if a polynomial is certainly no more than a number."""
        if self.is_empty or self.range(poly)[1] <= bound:
            return True
        step = poly.gcd()
        if step > 1:
            # It takes steps of this size: what does not reach the next one stays below.
            bound = bound - (bound - poly.constant) % step + step - 1
        if self._budget.spent:
            return False
        facts = self._about(poly)
        if _Search(self, facts, bound, self._budget).reaches(poly, 1, _ELIMINATED):
            return True
        return self._by_alternatives(poly, bound)

    def _about(self, poly: Polynomial) -> list[Polynomial]:
        """The facts, and what atoms of the polynomial say of themselves."""
        own = [d for a in sorted(poly.atoms(), key=lambda a: a.number) for d in definitions(a)]
        return list(dict.fromkeys([*self.facts, *own]))

    def _by_alternatives(self, poly: Polynomial, bound: int) -> bool:
        """True if a bound holds for each of the values that an atom chooses between."""
        if self._splits <= 0 or self._budget.spent:
            return False
        wanted = alternative(poly)
        if wanted is None:
            wanted = next((a for a in map(alternative, self.facts) if a is not None), None)
        if wanted is None:
            return False
        for value, given in self._cases(wanted):
            chosen = {wanted.number: value}
            facts = [replaced(fact, chosen) for fact in self.facts]
            if not any(f.is_constant and f.constant < 0 for f in facts):
                box = Box(self._table, [*facts, *given], self._arms, self._budget, self._splits - 1)
                if not box.is_at_most(replaced(poly, chosen), bound):
                    return False
        return True

    def _cases(self, atom: Atom) -> list[tuple[Polynomial, list[Polynomial]]]:
        """What an atom can be, and what is not negative where it is that."""
        if atom.kind == "select":
            predicate, yes, no = atom.data
            out = []
            for value, holds in ((yes, True), (no, False)):
                given = self._arms(predicate, holds)
                if given is not None:
                    out.append((value, list(given)))
            return out
        a, b = atom.data
        less = b - a if atom.kind == "min" else a - b
        return [(a, [less]), (b, [-less])]


class _Search:
    """Adds conjuncts to a polynomial until a bound shows, or so many sums have been tried."""

    __slots__ = ("_bound", "_box", "_budget", "_facts", "_left")

    def __init__(self, box: Box, facts: list[Polynomial], bound: int, budget: Budget) -> None:
        self._budget = budget
        self._box = box
        self._facts = facts
        self._bound = bound
        self._left = _TRIED

    def reaches(self, poly: Polynomial, divisor: int, depth: int) -> bool:
        """True if poly / divisor <= bound, where further conjuncts may be added to poly."""
        sums: list[tuple[int, int, Polynomial, int]] = []
        for fact in self._facts:
            for monomial, scale in fact.terms.items():
                own = poly.terms.get(monomial, 0) if monomial else 0
                if own * scale >= 0:
                    continue
                self._left -= 1
                self._budget.left -= 1
                if self._left < 0:
                    return False
                common = gcd(own, scale)
                times, factor = abs(own) // common, abs(scale) // common
                total = poly * factor + fact * times
                high = self._box.range(total)[1]
                if _floor(high, divisor * factor) <= self._bound:
                    return True
                if depth > 1:
                    sums.append((_floor(high, divisor * factor), len(sums), total, factor))
        sums.sort(key=lambda s: s[:2])
        for _, _, total, factor in sums[:8]:
            if self.reaches(total, divisor * factor, depth - 1):
                return True
        return False


def _floor(value: int, divisor: int) -> int:
    return value // divisor if -INFINITY < value < INFINITY else value


def _quotient(a: Range, b: Range) -> Range | None:
    """Bounds of a quotient rounded towards zero; None where the divisor may be 0 or negative."""
    if b[0] <= 0 or a[0] <= -INFINITY or a[1] >= INFINITY:
        return None
    ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(*ends, 0) if a[0] < 0 < a[1] else min(ends), max(*ends, 0) if a[0] < 0 else max(ends)


def definitions(atom: Atom) -> list[Polynomial]:
    """What is not negative because of what an atom is: quotients, minima, maxima."""
    table_of = atom.data[0].table if atom.data and isinstance(atom.data[0], Polynomial) else None
    if table_of is None:
        return []
    own = table_of.plain(atom)
    a = atom.data[0]
    if atom.kind == "fdiv":
        divisor = atom.data[1]
        rest = a - own * divisor
        step = gcd(a.gcd(), divisor)
        # The remainder has the steps of what is divided.
        least = a.constant % step if step else 0
        return [rest - least, -rest + (divisor - step + least)]
    if atom.kind == "min":
        return [a - own, atom.data[1] - own]
    if atom.kind == "umin":
        return [atom.data[1] - own]
    if atom.kind == "max":
        return [own - a, own - atom.data[1]]
    if atom.kind == "div" and a.range()[0] >= 0 and atom.data[1].range()[0] > 0:
        rest = a - own * atom.data[1]
        return [rest, atom.data[1] - rest - 1]
    return []


def alternative(poly: Polynomial) -> Atom | None:
    """The innermost atom in a polynomial that is one of two values."""
    for atom in poly.all_atoms():
        if atom.kind in ("select", "min", "max"):
            return atom
    return None


@remembered
def nested_quotients(poly: Polynomial) -> Polynomial:
    """The same with floor(floor(x / a) / b) written as floor(x / a b), at any depth."""
    table = poly.table
    values: dict[int, Polynomial] = {}
    for atom in poly.all_atoms():
        if atom.kind != "fdiv" or values.keys() & set(atom.inner):
            continue
        part, divisor = atom.data
        if len(part.terms) != 1:
            continue
        ((monomial, scale),) = part.terms.items()
        inner = table.atoms[monomial[0]] if len(monomial) == 1 and scale == 1 else None
        if inner is not None and inner.kind == "fdiv":
            values[atom.number] = floor_divide(inner.data[0], inner.data[1] * divisor)
    return nested_quotients(replaced(poly, values)) if values else poly


def replaced(poly: Polynomial, values: dict[int, Polynomial]) -> Polynomial:
    """A polynomial with atoms replaced, also within other atoms."""
    return _replaced(poly, values, {})


def _replaced(
    poly: Polynomial, values: dict[int, Polynomial], known: dict[int, Polynomial]
) -> Polynomial:
    table = poly.table
    atoms = table.atoms
    wanted = values.keys()
    if not any(not wanted.isdisjoint(atoms[n].inner) for m in poly.terms for n in m):
        return poly
    total = table.constant(0)
    for monomial, scale in poly.terms.items():
        term = table.constant(scale)
        for number in monomial:
            if number not in known:
                known[number] = _remade(atoms[number], values, known)
            term *= known[number]
        total += term
    return total


def _remade(atom: Atom, values: dict[int, Polynomial], known: dict[int, Polynomial]) -> Polynomial:
    """An atom after the replacement of those that it is made of."""
    number = atom.number
    if number in values:
        return values[number]
    first = next((part for part in atom.data if isinstance(part, Polynomial)), None)
    if first is None or values.keys().isdisjoint(atom.inner):
        table = next(iter(values.values())).table
        return table.plain(atom)
    table = first.table
    data: list[Any] = [
        _replaced(part, values, known) if isinstance(part, Polynomial) else part
        for part in atom.data
    ]
    made = _simplified(atom.kind, data)
    if made is not None:
        return made
    return table.plain(table.atom(atom.kind, tuple(data), atom.low, atom.high, atom.block))


def _simplified(kind: str, data: list[Any]) -> Polynomial | None:
    """A quotient, minimum or selection of these parts that need not be an atom of its own."""
    made: Polynomial | None = None
    if kind == "fdiv":
        made = floor_divide(data[0], data[1])
    elif kind in ("min", "max"):
        low, high = (data[0] - data[1]).range()
        if high <= 0 or low >= 0:
            made = data[0] if (high <= 0) == (kind == "min") else data[1]
    elif kind == "select" and data[1] == data[2]:
        made = data[1]
    elif kind == "div" and data[1].is_constant:
        divisor = data[1].constant
        made = floor_divide(data[0], divisor) if data[0].range()[0] >= 0 < divisor else None
    return made


__all__ = ["Arms", "Box", "Range", "alternative", "definitions", "nested_quotients", "replaced"]
