"""Whether all elements of a tensor are written, by the digits of addresses.

The place of an element in its tensor is a number with digits: one for each step of the tensor
(`views`), each parted further at the steps of the stores until a digit is made of lanes alone, or
of programs and rounds alone. If each kind can be all that the elements ask for, whatever the other
one is, and the conditions of the stores follow from the place being that of an element, every
element is written. If one kind lacks a combination, the elements with it are written by no thread
at all: a place has its digits in one way only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from ptxlint.dataflow.extremes import Box, nested_quotients
from ptxlint.dataflow.polynomial import CTAS, LANES, ROUNDS, Polynomial
from ptxlint.facts import Budget
from ptxlint.launch.binding import Region
from ptxlint.launch.coverage.conditions import Condition, Conditions
from ptxlint.launch.coverage.digits import (
    Code,
    Digit,
    digit_of,
    first_beyond,
    lanes_where,
    offset_of,
    place_in_axis,
)
from ptxlint.launch.coverage.parting import Parting, Place, radices, without_turns
from ptxlint.launch.coverage.views import Step, steps_of
from ptxlint.launch.coverage.writes import Write
from ptxlint.launch.under import UnderLaunch

if TYPE_CHECKING:
    from ptxlint.launch.coverage.program_map import ProgramMap

_DEEPEST: Final = 12
_MOST_VALUES: Final = 1 << 14
"""Values of lanes that are listed."""
_MOST_TILES: Final = 1 << 22
"""Tiles that programs are held against one by one."""
_STEPS: Final = 4_000
"""Steps of the proofs about one tensor."""
_TOO_MANY: Final = "its tiles have too many cells to list"
_CONDITION: Final = "a condition of a store is not one on the place that it writes"
_KINDS: Final = frozenset({"bit", "ctaid", "index", "fdiv", "rest"})
_OF_MAPS: Final = _KINDS | {"min", "max", "div"}


class Missing(NamedTuple):
    """An element that is not written: its first byte in the tensor, and of which digits it has
    values that nothing has (`programs`, `rounds`, `lanes`; `map` where there are programs enough).

    `axis` is the axis of the grid that ends too early, "" if none does; `is_tail` says that with
    one more program along it, for a part of a tile, nothing would be missing.
    """

    offset: int
    by: str
    axis: str = ""
    is_tail: bool = False


class Found(NamedTuple):
    """Whether all is written: `is_complete`, or what is `missing`, or why it is not known."""

    is_complete: bool = False
    missing: Missing | None = None
    reason: str = ""


def completeness(
    under: UnderLaunch, region: Region, stores: Sequence[Write], conditions: Conditions
) -> Found:
    """Whether some stores, which are all that may write to a tensor, write all of it."""
    steps = steps_of(region.tensor)
    if steps is None or not stores:
        return Found(reason="its elements share bytes or their size is not known")
    return _Work(under, region, stores, conditions).look_at(steps)


class _Work:
    def __init__(
        self,
        under: UnderLaunch,
        region: Region,
        stores: Sequence[Write],
        conditions: Conditions,
    ) -> None:
        self._under = under
        self._stores = stores
        self._conditions = conditions
        self._parting = Parting(under)
        self._grid = dict(zip("xyz", under.bound.grid, strict=True))
        self._group = [
            Place(self._parting.with_remainders(s.place + region.low), s.width, s.guard)
            for s in stores
        ]
        self._whole: list[Digit] = []
        """One digit for each step of the tensor."""
        self._facts: list[Digit] = []
        """These, and the digits that they were parted into, at any depth."""

    def look_at(self, steps: Sequence[Step]) -> Found:
        if len({store.width for store in self._stores}) > 1:
            return Found(reason="its stores are of different widths")
        digits = self._digits(steps)
        if digits is None:
            return Found(reason="its places are no digits of programs and lanes")
        for digit in digits:
            for number in digit.numbers:
                if any(atom.kind not in _OF_MAPS for atom in number.all_atoms()):
                    return Found(reason="its places are not made of programs and lanes alone")
        of_lanes = [digit for digit in digits if not digit.depends & (CTAS | ROUNDS)]
        of_grid = [digit for digit in digits if digit.depends & (CTAS | ROUNDS)]
        found = self._of_grid(of_grid)
        if found is None or found.missing is not None:
            return found or Found(reason="which tiles programs write is not known")
        return self._of_lanes(of_lanes)

    # Digits -------------------------------------------------------------------------------------
    def _digits(self, steps: Sequence[Step]) -> list[Digit] | None:
        left: Sequence[Place] = self._group
        found: list[Digit] = []
        for step in steps[:-1]:
            apart, extent = step
            parts = self._parting.parted(left, apart)
            if parts is None:
                return None
            upper, left = parts
            self._whole.append(digit_of(upper, extent, apart, step))
            finer = self._finer(upper, extent, apart, step, _DEEPEST)
            if finer is None:
                return None
            found += finer
        self._whole.append(digit_of(left, steps[-1].extent, 1, steps[-1]))
        finer = self._finer(left, steps[-1].extent, 1, steps[-1], _DEEPEST)
        return None if finer is None else found + finer

    def _finer(
        self, group: Sequence[Place], count: int, weight: int, step: Step, depth: int
    ) -> list[Digit] | None:
        """A digit as digits of lanes and digits of the grid; None if it is not made so."""
        digit = digit_of(group, count, weight, step)
        depends = digit.depends
        known = len(self._facts)
        self._facts.append(digit)
        if not depends & LANES and _is_plain(digit.numbers[0]):
            return [digit]
        if not depends & (CTAS | ROUNDS):
            return [digit]
        if depth <= 0:
            return None
        for radix in radices(group):
            if 1 < radix < count:
                parts = self._parting.parted(group, radix)
                if parts is None:
                    continue
                upper, lower = parts
                outer = self._finer(upper, -(-count // radix), weight * radix, step, depth - 1)
                inner = self._finer(lower, radix, weight, step, depth - 1)
                if outer is not None and inner is not None:
                    return outer + inner
                del self._facts[known + 1 :]
        return [digit] if not depends & LANES else None

    # Programs and rounds ------------------------------------------------------------------------
    def _of_grid(self, digits: Sequence[Digit]) -> Found | None:
        """Whether programs and rounds have all values of their digits; None if not known."""
        of_rounds = [digit for digit in digits if digit.depends & ROUNDS]
        of_programs = [digit for digit in digits if not digit.depends & ROUNDS]
        read: set[int] = set()
        for digit in of_rounds:
            found = self._of_rounds(digit)
            if found is None or found.missing is not None:
                return found
            atoms = {atom.number for atom in digit.numbers[0].all_atoms()}
            if not read.isdisjoint(atoms):
                return None
            read |= atoms
        for digit in of_programs:
            if any(atom.number in read for atom in digit.numbers[0].all_atoms()):
                return None
        return self._of_programs(of_programs)

    def _of_rounds(self, digit: Digit) -> Found | None:
        """A digit that is the round of a loop, counted from either end, or
        `program + programs * round`."""
        number = digit.numbers[0]
        rounds = [a for a in number.atoms() if a.kind == "index"]
        if len(rounds) != 1 or any(len(m) > 1 for m in number.terms):
            return None
        scale, last = number.coefficient(rounds[0]), rounds[0].high
        programs = [a for a in number.atoms() if a is not rounds[0]]
        width = 1
        if programs:
            if len(programs) > 1 or programs[0].kind != "ctaid" or scale < 0:
                return None
            width = self._grid[programs[0].data[0]]
            if number.coefficient(programs[0]) != 1:
                return None
        if abs(scale) != width:
            return None
        ends = number.constant, number.constant + scale * last
        low, high = min(ends), max(ends) + width - 1
        if low > 0:
            return Found(missing=Missing(0, "rounds"))
        if high < digit.extent - 1:
            return Found(missing=Missing((high + 1) * digit.weight, "rounds"))
        return Found(is_complete=True)

    def _of_programs(self, digits: Sequence[Digit]) -> Found | None:
        """Whether some program has each combination of values."""
        found = self._by_weights(digits)
        return found if found is not None else self._by_map(digits)

    def _by_weights(self, digits: Sequence[Digit]) -> Found | None:
        """Digits that are digits of the program's number along an axis, each at a weight."""
        by_axis: dict[str, list[tuple[int, int, Digit]]] = {}
        for digit in digits:
            place = place_in_axis(digit.numbers[0])
            if place is None:
                return None
            axis, weight, modulus = place
            if modulus and digit.extent > modulus:
                return None
            by_axis.setdefault(axis, []).append((weight, modulus, digit))
        for axis, places in by_axis.items():
            places.sort(key=lambda place: place[0])
            for (weight, modulus, _), (above, _, _) in pairwise(places):
                if not modulus or above % (weight * modulus):
                    return None
            extent = self._grid[axis]
            if sum((digit.extent - 1) * weight for weight, _, digit in places) >= extent:
                beyond = first_beyond(places, extent)
                if beyond is None:
                    return None
                is_tail = self._is_tail(places, extent)
                return Found(missing=Missing(beyond, "programs", axis, is_tail))
        return Found(is_complete=True)

    def _is_tail(self, places: Sequence[tuple[int, int, Digit]], extent: int) -> bool:
        """True if only the last tile along an axis is missing, and that is smaller than others."""
        ((_, _, digit), *more) = places
        if more or digit.extent != extent + 1:
            return False
        step = max((d for d in self._whole if d.weight <= digit.weight), key=lambda d: d.weight)
        return bool(step.extent * step.weight % digit.weight)

    def _by_map(self, digits: Sequence[Digit]) -> Found | None:
        """Digits that are worked out for each program."""
        counts = [digit.extent for digit in digits]
        numbers = [self._parting.plain(digit.numbers[0]) for digit in digits]
        axes = {a.data[0] for n in numbers for a in n.all_atoms() if a.kind == "ctaid"}
        if prod(counts) > _MOST_TILES:
            return None
        # Arrays are needed for what is left alone.
        from ptxlint.launch.coverage.program_map import program_map

        found: ProgramMap | None = program_map(self._under, numbers, axes)
        if found is None:
            return None
        steps = {digit.step for digit in digits}
        limits = [
            ([d.weight if d.step == step else 0 for d in digits], step.bytes_apart * step.extent)
            for step in steps
        ]
        missed, tiles = found.first_missing(counts, limits)
        offset = None if missed is None else offset_of(digits, missed)
        if offset is None:
            return Found(is_complete=True)
        by = "map" if len(found.programs) >= tiles else "programs"
        return Found(missing=Missing(offset, by))

    # Lanes --------------------------------------------------------------------------------------
    def _of_lanes(self, digits: Sequence[Digit]) -> Found:
        """Whether some lane and store has each combination of values, and stores it."""
        conditions = self._of_lanes_alone()
        if isinstance(conditions, str):
            return Found(reason=conditions)
        found = self._by_values(digits, conditions)
        if found.missing is None:
            return found
        # In other programs and rounds other lanes may store: only what holds in all is held to.
        own = [
            [poly for conjunct in store.guard if _is_of_lanes(poly := conjunct.polynomial)]
            for store in self._stores
        ]
        anew = self._by_values(digits, own)
        return anew if anew.missing is not None else Found(reason=_CONDITION)

    def _by_values(
        self, digits: Sequence[Digit], conditions: Sequence[Sequence[Polynomial]]
    ) -> Found:
        """Whether lanes that meet conditions, by store, have each combination of values."""
        ranges = [range(0, digit.extent, digit.width) for digit in digits]
        if prod(map(len, ranges)) > _MOST_VALUES:
            return Found(reason=_TOO_MANY)
        code = Code(self._under.symbolic.table, digits)
        values = self._values(digits, conditions, code)
        if values is None:
            return Found(reason=_TOO_MANY)
        wanted = code.of_all(ranges)
        if not values.issuperset(wanted):
            for combination, number in zip(product(*ranges), wanted, strict=True):
                offset = None if number in values else offset_of(digits, combination)
                if offset is not None:
                    return Found(missing=Missing(offset, "lanes"))
        return Found(is_complete=True)

    def _values(
        self, digits: Sequence[Digit], conditions: Sequence[Sequence[Polynomial]], code: Code
    ) -> set[int] | None:
        """The combinations of values that lanes have, each as one number."""
        found: set[int] = set()
        known: dict[tuple[tuple[int, int], ...], list[int]] = {}
        work = 0
        for at, own in enumerate(conditions):
            number = code.of([digit.numbers[at] for digit in digits])
            bits = sorted({n for poly in (number, *own) for m in poly.terms for n in m})
            work += 1 << len(bits)
            if work > 4 * _MOST_VALUES or any(len(m) > 1 for p in (number, *own) for m in p.terms):
                return None
            if own:
                found.update(lanes_where(number, own, bits))
                continue
            # Stores of one tile mostly differ by a constant.
            scales = tuple((bit, number.terms[bit,]) for bit in bits)
            rows = known.get(scales)
            if rows is None:
                rows = [0]
                for _, scale in scales:
                    rows += [row + scale for row in rows]
                known[scales] = rows
            constant = number.constant
            found.update([row + constant for row in rows])
        return found

    # Conditions ---------------------------------------------------------------------------------
    def _of_lanes_alone(self) -> list[list[Polynomial]] | str:
        """By store, the conditions that are about lanes alone, once all others are seen to hold
        where a place is one of an element; else why they are not."""
        width, height, depth = self._under.bound.block
        if any(extent & (extent - 1) for extent in (width, height, depth)):
            return "its blocks are no power of two"
        out: list[list[Polynomial]] = []
        seen: dict[object, list[Polynomial] | str] = {}
        for at, store in enumerate(self._stores):
            conditions = self._conditions.of(store.instr)
            if conditions is None:
                return "more decides about a store than comparisons"
            key = tuple(conditions), tuple(fact.numbers[at] for fact in self._facts)
            if key not in seen:
                seen[key] = self._left_of(at, conditions)
            left = seen[key]
            if isinstance(left, str):
                return left
            out.append(left)
        return out

    def _left_of(self, at: int, conditions: Iterable[Condition]) -> list[Polynomial] | str:
        read = {
            number
            for fact in self._facts
            for atom in fact.numbers[at].all_atoms()
            for number in atom.inner
        }
        zero = self._under.symbolic.table.constant(0)
        needed: list[Polynomial] = []
        for condition, header in conditions:
            poly = without_turns(nested_quotients(condition))
            # What the place does not depend on may be anything: the first program, the first round.
            rounds = {a for a in poly.all_atoms() if a.kind == "index" and a.data == (header,)}
            if rounds and all(atom.number not in read for atom in rounds):
                continue
            free = {a: zero for a in poly.atoms() if a.kind in ("ctaid", "index")}
            free = {atom: zero for atom in free if atom.number not in read}
            needed.append(poly.substitute(free))
        box: Box | None = None
        facts: list[Polynomial] = []
        left: list[Polynomial] = []
        for poly in needed:
            if poly.range()[0] >= 0:
                continue
            facts = facts or self._inside(at)
            if any(_follows(poly, fact) for fact in facts):
                continue
            if box is None:
                budget = Budget(max(1, int(_STEPS * self._under.facts.effort)))
                box = Box(self._under.symbolic.table, facts, lambda predicate, holds: (), budget)
            if box.is_at_least(poly, 0):
                continue
            if not _is_of_lanes(poly):
                return _CONDITION
            left.append(poly)
        return left

    def _inside(self, at: int) -> list[Polynomial]:
        """What is not negative where the place of a store is that of an element."""
        facts: list[Polynomial] = []
        for digit in self._facts:
            number = self._parting.plain(digit.numbers[at])
            facts += [number, -number + (digit.extent - 1)]
        return facts


def _follows(poly: Polynomial, fact: Polynomial) -> bool:
    """True if a number is not negative where another one is not, by their difference."""
    pivot = max((m for m in poly.terms if m), key=lambda m: (abs(poly.terms[m]), m), default=())
    scale, other = poly.terms.get(pivot, 0), fact.terms.get(pivot, 0)
    if scale * other <= 0:
        return False
    # poly * |other| is at least this much more than fact * |scale|.
    return (poly * abs(other) - fact * abs(scale)).range()[0] > -abs(other)


def _is_of_lanes(poly: Polynomial | None) -> TypeGuard[Polynomial]:
    """True for what bits of the thread's number alone decide."""
    return poly is not None and all(atom.kind == "bit" for atom in poly.all_atoms())


def _is_plain(number: Polynomial) -> bool:
    """True for one atom of the grid, alone."""
    return len(number.terms) == 1 and next(iter(number.terms.values())) == 1


__all__ = ["Found", "Missing", "completeness"]
