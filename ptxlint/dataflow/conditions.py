"""Conditions on elements of a tile: "this one lies beyond the bound".

Where a conjunct of a load's mask is false its element is padding. What moves with the element is
the condition: `rest + map(t) > 0`, with a part that no lane has (sizes, CTA indices, iterations)
and a lane map for the thread that holds the element now. Moving an element to other threads
changes the map alone. A condition is arithmetic about indices, so that it may be asked of any other
value as well, once it is put in terms of that value's threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, TypeAlias

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.lane_map import LaneMap, assemble, split
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.uniformity import Uniformity

ANY_INDEX: Final = LANE | WARP_BITS
"""All bits of the linear thread index."""
Rounds: TypeAlias = "tuple[tuple[int, int], ...]"
_DEEP: Final = 3
"""How many iterations back a condition is followed."""


class Condition:
    """One condition, made and numbered by `Conditions`.

    `conjunct` is what the mask says; the condition is that it does not hold. `map` is None where
    its lanes are not known in the form of a map; `lost` then may say where they were lost, and
    nothing can be asked of the condition any more. `bits` are the bits of the thread index that
    have a say. It holds for the threads t with `t & fixed == at`.

    What was stored in an unknown round of a loop has a condition about that round: `store` is then
    the instruction that stored it, and `origin` is `rest` as it was there. `rounds` says of loops,
    by header, which round it is: what was stored before a loop is read in a certain one.
    """

    __slots__ = (
        "at", "bits", "conjunct", "excluded", "fixed", "group", "lanes", "lost", "map", "number",
        "origin", "rest", "rounds", "steps", "store",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        conjunct: Conjunct | None,
        bits: int,
        rest: Polynomial | None = None,
        map_: LaneMap | None = None,
        lost: str = "",
        steps: int = 0,
        store: int = -1,
        origin: Polynomial | None = None,
        rounds: Rounds = (),
    ) -> None:
        self.number = number
        self.conjunct = conjunct
        self.bits = bits
        self.rest = rest
        self.map = map_
        self.lost = lost
        self.steps = steps
        self.store = store
        self.origin = origin
        self.rounds = rounds
        self.lanes = 0 if map_ is None else bits | map_.fixed
        """The bits of the thread index on which the map depends, and perhaps some more."""
        self.fixed = 0 if map_ is None else map_.fixed
        self.at = 0 if map_ is None else map_.at
        self.group = -1
        """A number for what it has in common with conditions that differ in `map` alone; -1 while
        nobody has asked."""
        self.excluded: dict[Conjunct, bool] = {}
        """What `excludes` has found."""

    def __repr__(self) -> str:
        if self.lost:
            return f"lost: {self.lost}"
        where = f" where tid & {self.fixed:#x} == {self.at:#x}" if self.fixed else ""
        where += "".join(f" in round {n} of {h}" for h, n in self.rounds)
        return f"not {self.conjunct}{where}"


class Conditions:
    """The conditions of one function."""

    def __init__(self, width: int | None, uniformity: Uniformity, loops: LoopForest) -> None:
        self.width = width
        self.all: list[Condition] = []
        self._uniformity = uniformity
        self._loops = loops
        self._known: dict[object, Condition] = {}
        self._moved: dict[tuple[int, LaneMap], Condition] = {}
        self._possible: dict[tuple[int, int, int], bool] = {}
        self._families: dict[int, object] = {}
        self._bounds: dict[int, object] = {}
        self._earlier: dict[tuple[int, int], Condition] = {}
        self._varying: dict[tuple[int, int], bool] = {}
        self._replacements: dict[tuple[Polynomial, int, int | None, int], Polynomial | None] = {}
        self._renames: dict[tuple[Polynomial, int], Polynomial] = {}
        self._changing: dict[int, bool] = {}
        self._changing_in: dict[Polynomial, frozenset[int]] = {}
        self._all_loops: dict[tuple[int, ...], bool] = {}
        self._varying_in: dict[tuple[int, tuple[int, ...]], bool] = {}
        self._spelled: dict[LaneMap, Polynomial] = {}
        self._groups: dict[tuple[Polynomial, Rounds, int], int] = {}

    def of(self, conjunct: Conjunct, bits: int) -> Condition:
        """The condition that a conjunct does not hold; `bits` as for the conjunct."""
        found = self._known.get(conjunct)
        if found is None:
            rest: Polynomial | None = None
            lane_map: LaneMap | None = None
            if conjunct.polynomial is not None and self.width is not None:
                parts = split(-conjunct.polynomial, self.width, self._uniformity)
                if parts is not None:
                    rest, lane_map = parts
            found = self._known[conjunct] = self._new(conjunct, bits, rest, lane_map)
            if lane_map is not None:
                found.lanes |= lane_map.lanes
        return found

    def lost(self, reason: str) -> Condition:
        """The condition of which nothing is known but how that came about."""
        found = self._known.get(reason)
        if found is None:
            found = self._known[reason] = self._new(None, ANY_INDEX, lost=reason)
        return found

    def moved(self, condition: Condition, to: LaneMap) -> Condition:
        """A condition with a map, in terms of other threads."""
        if to == condition.map:
            return condition
        key = condition.number, to
        found = self._moved.get(key)
        if found is None:
            assert condition.rest is not None
            found = self._moved[key] = self._like(condition, condition.rest, to)
        return found

    def raised(self, condition: Condition, by: Polynomial, to: LaneMap) -> Condition:
        """A condition in terms of other threads, its element's number raised by what no lane has a
        part in."""
        assert condition.rest is not None
        return self._like(condition, condition.rest + by, to)

    def _like(self, condition: Condition, rest: Polynomial, to: LaneMap) -> Condition:
        return self._with(
            rest, to, condition.steps, condition.store, condition.origin, condition.rounds
        )

    def stored(self, condition: Condition, store: int) -> Condition:
        """The condition of what an instruction stored, for who reads it in another round.

        What changes from round to round is that of the round in which it was stored.
        """
        rest, to = condition.rest, condition.map
        if rest is None or to is None or condition.store >= 0:
            return self.lost("the padding is stored in one round of a loop and read in another")
        key = condition.number, ~store
        found = self._earlier.get(key)
        if found is None:
            found = self._earlier[key] = self._with(
                self._renamed(rest, store), to, condition.steps, store, rest
            )
        return found

    def as_stored(self, condition: Condition, to: LaneMap) -> Condition:
        """The condition as it was in the round of its store, with another map."""
        assert condition.origin is not None
        return self._with(condition.origin, to, condition.steps)

    def summed_up(
        self, conditions: list[Condition]
    ) -> tuple[list[Condition], dict[int, tuple[int, ...]]]:
        """The same in fewer conditions: pieces are put together where they are one for all threads,
        and what is said of one round only is left out where it is said of all rounds.

        With them, by number, what each condition has become.
        """
        groups: dict[int, dict[LaneMap, list[Condition]]] = {}
        out: dict[int, Condition] = {}
        became: dict[int, tuple[int, ...]] = {}
        for condition in conditions:
            rest, to = condition.rest, condition.map
            if rest is None or to is None:
                out[condition.number] = condition
                became[condition.number] = (condition.number,)
                continue
            group = condition.group
            if group < 0:
                key = rest, condition.rounds, condition.store
                group = condition.group = self._groups.setdefault(key, len(self._groups))
            groups.setdefault(group, {}).setdefault(to, []).append(condition)
        for maps in groups.values():
            whole = assemble(list(maps))
            first = next(iter(maps.values()))[0]
            for to, parts in maps.items():
                moved = self.moved(first, to if whole is None else whole)
                out[moved.number] = moved
                for part in parts:
                    became[part.number] = (moved.number,)
        general = [c for c in out.values() if c.map is not None and not c.rounds]
        said = {}
        for condition in out.values():
            if condition.rounds:
                by = self._said_by(condition, general)
                if by is not None:
                    said[condition.number] = by.number
        for number, to_numbers in became.items():
            became[number] = tuple([said.get(n, n) for n in to_numbers])
        return [c for c in out.values() if c.number not in said], became

    def _said_by(self, condition: Condition, general: list[Condition]) -> Condition | None:
        """The one of the general conditions that says this of the round that it is about."""
        for other in general:
            to, found = other.map, other.rest
            if to is None or (to.fixed, to.at) != (condition.fixed, condition.at):
                continue
            for header, number in condition.rounds:
                found = None if found is None else self._replaced(found, header, None, number)
            # A part that is constant may be in the map of one and in the rest of the other.
            if found is not None and self._with(found, to, 0).conjunct == condition.conjunct:
                return other
        return None

    def estranged(self, condition: Condition) -> Condition:
        """The condition about a round of which nobody knows any more which one it was."""
        rest, to = condition.rest, condition.map
        if condition.store < 0 or condition.origin is None or to is None or rest is None:
            return condition
        rest = self._renamed(condition.origin, ~condition.store)
        return self._with(rest, to, condition.steps, -1, None, condition.rounds)

    def _renamed(self, rest: Polynomial, round_: int) -> Polynomial:
        key = rest, round_
        found = self._renames.get(key)
        if found is None:
            found = self._renames[key] = self._rename(rest, round_)
        return found

    def _rename(self, rest: Polynomial, round_: int) -> Polynomial:
        table = rest.table
        mapping = {}
        for atom in rest.atoms():
            if self._changes(atom):
                other = table.atom("round", (atom.number, round_), atom.low, atom.high)
                mapping[atom] = table.plain(other)
        return rest.substitute(mapping)

    def _changes(self, atom: Atom) -> bool:
        """True if an atom may change from round to round of some loop."""
        found = self._changing.get(atom.number)
        if found is None:
            found = self._changing[atom.number] = self._find_changing(atom)
        return found

    def _find_changing(self, atom: Atom) -> bool:
        if atom.kind == "index" or (atom.block >= 0 and self._loops.in_cycle(atom.block)):
            return True
        parts = [p for p in atom.data if isinstance(p, Polynomial)]
        return any(self._changes(a) for p in parts for a in p.atoms())

    def _with(
        self,
        rest: Polynomial,
        to: LaneMap,
        steps: int,
        store: int = -1,
        origin: Polynomial | None = None,
        rounds: Rounds = (),
    ) -> Condition:
        spelled = self._spelled.get(to)
        if spelled is None:
            spelled = self._spelled[to] = spelled_out(to, rest)
        conjunct = Conjunct(-(rest + spelled))
        plain = not to.fixed and not rounds and store < 0
        key = conjunct if plain else (conjunct, to.fixed, to.at, rounds, store)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._new(
                conjunct, to.lanes | to.fixed, rest, to, steps=steps, store=store, origin=origin,
                rounds=rounds,
            )  # fmt: skip
        return found

    def in_round(self, condition: Condition, header: int, number: int) -> Condition | None:
        """The condition, and that a loop is in this round; None if it cannot be."""
        for known, value in condition.rounds:
            if known == header:
                return condition if value == number else None
        rest, to = condition.rest, condition.map
        if rest is None or to is None:
            return self.lost("the padding is stored before a loop and read in it")
        rounds = tuple(sorted((*condition.rounds, (header, number))))
        return self._with(rest, to, condition.steps, condition.store, condition.origin, rounds)

    def pieces(self, condition: Condition, bits: int) -> Iterator[Condition]:
        """A condition with a map for the threads of each value of some bits of their number."""
        to = condition.map
        assert to is not None
        at = bits
        while True:
            part = to.restrict(bits, at)
            if part is not None:
                yield self.moved(condition, part)
            if not at:
                return
            at = at - 1 & bits

    def least(self, condition: Condition, lanes: int) -> Condition | None:
        """What holds wherever a condition does in all of the threads that differ in these bits;
        None if that is not known."""
        rest, to = condition.rest, condition.map
        if rest is None or to is None or condition.store >= 0:
            return None
        basis = list(to.basis)
        constant = to.constant
        for place, entry in enumerate(to.basis):
            if entry and lanes >> place & 1:
                if any(entry & other for at, other in enumerate(to.basis) if at != place):
                    return None
                basis[place] = 0
                constant = min(constant, constant ^ entry)
        fixed = to.fixed & ~lanes
        return self.moved(condition, LaneMap(constant, tuple(basis), fixed, to.at & fixed))

    def bound(self, condition: Condition) -> object:
        """What conditions about one bound have in common, however their elements are counted."""
        found = self._bounds.get(condition.number)
        if found is None:
            rest = condition.rest
            terms = None if rest is None else frozenset((m, c) for m, c in rest.terms.items() if m)
            found = self._bounds[condition.number] = terms, condition.rounds, condition.store
        return found

    @staticmethod
    def may_hold(condition: Condition) -> bool:
        """False if a condition certainly holds for no element."""
        conjunct = condition.conjunct
        return conjunct is None or conjunct.polynomial is None or conjunct.polynomial.range()[0] < 0

    def family(self, condition: Condition) -> object:
        """What conditions about one bound have in common: the terms that no lane has a part in."""
        found = self._families.get(condition.number)
        if found is None:
            rest = condition.rest
            terms = () if rest is None else (m for m in rest.terms if m)
            found = self._families[condition.number] = frozenset(terms)
        return found

    def may_hold_in(self, condition: Condition, header: int, number: int) -> bool:
        """False if a condition certainly does not hold in round `number` of a loop."""
        key = condition.number, header, number
        found = self._possible.get(key)
        if found is None:
            found = self._possible[key] = self._find_possible(condition, header, number)
        return found

    def _find_possible(self, condition: Condition, header: int, number: int) -> bool:
        if condition.rest is None or condition.map is None:
            return True
        fixed = self._replaced(condition.rest, header, None, number)
        if fixed is None:
            return True
        return self.may_hold(self._with(fixed, condition.map, condition.steps))

    def before(self, condition: Condition, header: int, number: int) -> Condition | None:
        """What a condition in round `number` of a loop says outside of it; None if it is about
        another round, or not known."""
        rounds = dict(condition.rounds)
        if rounds.pop(header, number) != number:
            return None
        rest, to = condition.rest, condition.map
        if rest is None or to is None:
            return None if self.varies(condition, header) else condition
        fixed = self._replaced(rest, header, None, number)
        if fixed is None:
            return None
        return self._with(
            fixed, to, condition.steps, condition.store, condition.origin, tuple(rounds.items())
        )

    def later(self, condition: Condition, header: int, rounds: int) -> Condition | None:
        """What a condition says of the round so many rounds earlier than the one it is about.

        With a negative number of rounds, later. None if that is not known or there is none.
        """
        if not rounds:
            return condition
        return self._later(condition, header, rounds, condition.steps)

    def _later(
        self, condition: Condition, header: int, rounds: int, steps: int
    ) -> Condition | None:
        rest, to = condition.rest, condition.map
        if rest is None or to is None:
            if not self.varies(condition, header):
                return condition
            return self._later_of_all(condition, header, rounds)
        moved = self._replaced(rest, header, rounds, 0)
        known = tuple((h, n - rounds if h == header else n) for h, n in condition.rounds)
        if moved is None or any(n < 0 for _, n in known):
            return None
        return self._with(moved, to, steps, condition.store, condition.origin, known)

    def _later_of_all(self, condition: Condition, header: int, rounds: int) -> Condition | None:
        """The same of a condition that no thread has a part in, and that is no bound."""
        conjunct = condition.conjunct
        if conjunct is None or conjunct.polynomial is not None or condition.bits:
            return None
        if conjunct.key[0] not in ("unequal", "unsigned") or condition.rounds:
            return None
        parts: list[object] = []
        for part in conjunct.key:
            moved = part
            if isinstance(part, Polynomial):
                moved = self._replaced(part, header, rounds, 0)
                if moved is None:
                    return None
            parts.append(moved)
        return self.of(Conjunct(None, tuple(parts)), 0)

    def _replaced(
        self, rest: Polynomial, header: int, by: int | None, constant: int
    ) -> Polynomial | None:
        """A polynomial with a loop's iteration number raised, or replaced by a constant."""
        key = rest, header, by, constant
        if key not in self._replacements:
            self._replacements[key] = self._replace(rest, header, by, constant)
        return self._replacements[key]

    def _replace(
        self, rest: Polynomial, header: int, by: int | None, constant: int
    ) -> Polynomial | None:
        index = next((a for a in rest.atoms() if a.kind == "index" and a.data[0] == header), None)
        without = rest
        if index is not None:
            table = rest.table
            without = rest.substitute({index: table.constant(constant if by is None else 0)})
        if self.is_changing(without, header):
            return None
        if index is None or by is None:
            return without
        return rest.substitute({index: table.plain(index) + by})

    def earlier(self, condition: Condition, header: int) -> Condition | None:
        """What the condition of an iteration of a loop is in the next one, None if unknown.

        One that was about a certain round, and does not change with the rounds otherwise, is then
        about any of them.
        """
        if not self.varies(condition, header):
            return condition
        general = self._of_any_round(condition, header)
        if general is not None:
            return general
        key = condition.number, header
        found = self._earlier.get(key)
        if found is None:
            moved = self._shifted(condition, header)
            if moved is None:
                return None
            found = self._earlier[key] = moved
        return found

    def _of_any_round(self, condition: Condition, header: int) -> Condition | None:
        rest, to = condition.rest, condition.map
        others = tuple([known for known in condition.rounds if known[0] != header])
        if others == condition.rounds or rest is None or to is None:
            return None
        if self.is_changing(rest, header):
            return None
        return self._with(rest, to, condition.steps, condition.store, condition.origin, others)

    def _shifted(self, condition: Condition, header: int) -> Condition | None:
        if condition.map is None or condition.steps >= _DEEP or condition.store >= 0:
            return None
        return self._later(condition, header, -1, condition.steps + 1)

    def varies(self, condition: Condition, header: int) -> bool:
        """True if a condition may change from one iteration of a loop to the next."""
        key = condition.number, header
        found = self._varying.get(key)
        if found is None:
            conjunct = condition.conjunct
            found = True
            if any(h == header for h, _ in condition.rounds):
                pass
            elif conjunct is not None and conjunct.polynomial is not None:
                found = self.is_changing(conjunct.polynomial, header)
            elif conjunct is not None and conjunct.key[0] in ("unsigned", "unequal"):
                parts = [p for p in conjunct.key if isinstance(p, Polynomial)]
                found = any(self.is_changing(p, header) for p in parts)
            self._varying[key] = found
        return found

    def is_changing(self, poly: Polynomial, header: int) -> bool:
        """True if a polynomial may change from one iteration of a loop to the next."""
        if self._loops.with_header(header) is None:
            # A cycle with several entries is no loop: what is made anywhere may change in it.
            return any(self._may_change(atom, header) for atom in poly.atoms())
        return header in self._changing_with(poly)

    def _changing_with(self, poly: Polynomial) -> frozenset[int]:
        """The headers of the loops with whose iterations a polynomial may change."""
        found = self._changing_in.get(poly)
        if found is None:
            headers: set[int] = set()
            for atom in poly.all_atoms():
                if atom.kind == "index":
                    headers.add(atom.data[0])
                loop = self._loops.innermost(atom.block) if atom.block >= 0 else None
                while loop is not None:
                    headers.add(loop.header)
                    loop = loop.parent
            found = self._changing_in[poly] = frozenset(headers)
        return found

    def _may_change(self, atom: Atom, header: int) -> bool:
        if atom.block >= 0 or (atom.kind == "index" and atom.data[0] == header):
            return True
        parts = [p for p in atom.data if isinstance(p, Polynomial)]
        return any(self._may_change(a, header) for p in parts for a in p.atoms())

    def varies_in_any(self, condition: Condition, headers: tuple[int, ...]) -> bool:
        """True if a condition may change from one iteration to the next of any of some loops."""
        if not headers:
            return False
        key = condition.number, headers
        found = self._varying_in.get(key)
        if found is None:
            poly = None if condition.conjunct is None else condition.conjunct.polynomial
            if poly is None or condition.rounds or not self._are_loops(headers):
                found = any(self.varies(condition, header) for header in headers)
            else:
                found = not self._changing_with(poly).isdisjoint(headers)
            self._varying_in[key] = found
        return found

    def _are_loops(self, headers: tuple[int, ...]) -> bool:
        found = self._all_loops.get(headers)
        if found is None:
            found = all(self._loops.with_header(header) is not None for header in headers)
            self._all_loops[headers] = found
        return found

    def is_carried(self, condition: Condition) -> bool:
        """True if a condition may change from iteration to iteration of any loop."""
        conjunct = condition.conjunct
        if conjunct is None or conjunct.polynomial is None or condition.rounds:
            return True
        return any(map(self._changes, conjunct.polynomial.atoms()))

    def in_loop(self, block: int, header: int) -> bool:
        """True if a block is in the loop with this header."""
        loop = self._loops.with_header(header)
        return loop is None or self._loops.contains(loop, block)

    def _new(
        self,
        conjunct: Conjunct | None,
        bits: int,
        rest: Polynomial | None = None,
        lane_map: LaneMap | None = None,
        lost: str = "",
        steps: int = 0,
        store: int = -1,
        origin: Polynomial | None = None,
        rounds: Rounds = (),
    ) -> Condition:
        found = Condition(
            len(self.all), conjunct, bits, rest, lane_map, lost, steps, store, origin, rounds
        )
        self.all.append(found)
        return found


def spelled_out(lane_map: LaneMap, beside: Polynomial) -> Polynomial:
    """A lane map as a polynomial over the bits of the thread index.

    A bit of the number that several bits of the thread flip is their exclusive or: a + b - 2ab.
    """
    table = beside.table
    total = table.constant(0)
    constant = lane_map.constant
    moving = lane_map.moving
    size = 1
    still = constant & ~moving
    total = total + still
    # Entries that share no bit with others are taken whole, so that sums stay short.
    shared = 0
    seen = 0
    for entry in lane_map.basis:
        shared |= seen & entry
        seen |= entry
    shared |= constant & moving
    for place, entry in enumerate(lane_map.basis):
        whole = entry & ~shared
        if whole:
            total = total + table.plain(table.atom("bit", ("x", place), 0, 1)) * whole
    while size <= shared:
        if shared & size:
            bit = table.constant(1 if constant & size else 0)
            for place, entry in enumerate(lane_map.basis):
                if entry & size:
                    other = table.plain(table.atom("bit", ("x", place), 0, 1))
                    bit = bit + other - bit * other * 2
            total = total + bit * size
        size <<= 1
    return total


def excludes(condition: Condition, conjunct: Conjunct) -> bool:
    """True if a conjunct cannot hold where the condition does.

    The condition says `p <= -1` of its own conjunct's polynomial, so that `q >= 0` is excluded if
    `r q - s p < s` for some positive numbers r and s: that allows for another unit of the same
    bound.
    """
    found = condition.excluded.get(conjunct)
    if found is None:
        found = condition.excluded[conjunct] = _find_excluded(condition, conjunct)
    return found


def _find_excluded(condition: Condition, conjunct: Conjunct) -> bool:
    own = condition.conjunct
    if own is None or own.polynomial is None or conjunct.polynomial is None:
        return False
    p, q = own.polynomial, conjunct.polynomial
    if condition.fixed or condition.rounds:
        p, q = _settled(condition, p), _settled(condition, q)
    return q.range()[1] < 0 or _are_apart(p, q)


def _are_apart(p: Polynomial, q: Polynomial) -> bool:
    """True if p is negative nowhere that q is not: see `excludes`."""
    known = p.table.scaled
    key = p.body, q.body
    found = known.get(key)
    if found is None:
        own_scale, scale = _scales(p, q)
        greatest = 0
        if own_scale > 0 and scale > 0:
            greatest = (q * own_scale - p * scale).range()[1]
            greatest -= q.constant * own_scale - p.constant * scale
        found = known[key] = own_scale, scale, greatest
    own_scale, scale, greatest = found
    if own_scale <= 0 or scale <= 0:
        return False
    return greatest + q.constant * own_scale - p.constant * scale < scale


def negative_beyond(condition: Condition, bound: Polynomial) -> Polynomial | None:
    """What is negative where a condition holds and a bound is not: indices that lie beyond those
    which stay within the bound. None if the two are not about one size."""
    own = condition.conjunct
    if own is None or own.polynomial is None:
        return None
    p, f = own.polynomial, bound
    if condition.fixed or condition.rounds:
        p, f = _settled(condition, p), _settled(condition, f)
    atoms = p.table.atoms
    size = next((m for m in p.terms if m and all(atoms[n].kind != "bit" for n in m)), None)
    if size is None:
        return None
    own_scale, scale = _ratio(p.terms[size], f.terms.get(size, 0))
    if not scale:
        return None
    # With -p - 1 >= 0 and f >= 0 the sum of so many of both is not negative.
    return p * scale - f * own_scale + (scale - 1)


def excludes_beyond(condition: Condition, negative: Polynomial, conjunct: Conjunct) -> bool:
    """True if a conjunct cannot hold where a condition does and `negative_beyond` found this."""
    q = conjunct.polynomial
    if q is None:
        return False
    if condition.fixed or condition.rounds:
        q = _settled(condition, q)
    return _are_apart(negative, q)


def _settled(condition: Condition, poly: Polynomial) -> Polynomial:
    """A polynomial with the thread's bits and the rounds put in that a condition fixes."""
    atoms = poly.table.atoms
    rounds = dict(condition.rounds)
    fixed = condition.fixed
    terms: dict[tuple[int, ...], int] = {}
    changed = False
    for monomial, coefficient in poly.terms.items():
        kept: list[int] = []
        for number in monomial:
            atom = atoms[number]
            kind = atom.kind
            if kind == "bit" and atom.data[0] == "x" and fixed >> atom.data[1] & 1:
                coefficient *= atom_bit(condition, atom)
            elif kind == "index" and atom.data[0] in rounds:
                coefficient *= rounds[atom.data[0]]
            else:
                kept.append(number)
        if len(kept) != len(monomial):
            changed = True
            monomial = tuple(kept)
        terms[monomial] = terms.get(monomial, 0) + coefficient
    if not changed:
        return poly
    return Polynomial(poly.table, {m: c for m, c in terms.items() if c})


def atom_bit(condition: Condition, atom: Atom) -> int:
    """What a bit of the thread index is where a condition holds, if that is fixed."""
    place: int = atom.data[1]
    return condition.at >> place & 1


def _scales(p: Polynomial, q: Polynomial) -> tuple[int, int]:
    """Numbers r and s with which r q and s p agree in a term: one that no lane has a part in, or
    else the one that counts most; 0 where there is none."""
    atoms = p.table.atoms
    largest: tuple[int, ...] = ()
    for monomial, coefficient in p.terms.items():
        if not monomial:
            continue
        if all(atoms[n].kind != "bit" for n in monomial):
            return _ratio(coefficient, q.terms.get(monomial, 0))
        if monomial in q.terms and abs(coefficient) > abs(
            p.terms.get(largest, 0) if largest else 0
        ):
            largest = monomial
    if not largest:
        return 1, 1
    return _ratio(p.terms[largest], q.terms[largest])


def _ratio(a: int, b: int) -> tuple[int, int]:
    """The least positive r and s with r b = s a; 0 if there are none."""
    if not b or (a > 0) != (b > 0):
        return 0, 0
    divisor = gcd(a, b)
    return abs(a) // divisor, abs(b) // divisor


__all__ = [
    "ANY_INDEX",
    "Condition",
    "Conditions",
    "excludes",
    "excludes_beyond",
    "negative_beyond",
    "spelled_out",
]
