"""Padding in the factors of tensor-core products.

A product sums over k. Padding that lies along k must add nothing: one of the two elements that meet
there is 0 and the other one finite. Padding along rows or columns stays in its own row or column of
the result, to be judged where that is combined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple, TypeAlias

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.fragments import Element, Fragments, carry, depends_on
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements
from ptxlint.dataflow.padding_marks import Mark, Marks
from ptxlint.dataflow.padding_moves import Mover, Term, is_zero_where
from ptxlint.dataflow.padding_values import (
    UNKNOWN,
    Evaluator,
    Found,
    Word,
    is_finite_word,
)
from ptxlint.dataflow.padding_words import FACTORS as FORMATS
from ptxlint.dataflow.padding_words import Words, told
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import BITS

_ZERO: Final = "padding lanes hold 0 when they reach the product"
_APART: Final = "rows and columns of a product stay apart"
_EVERYWHERE: Final = "the padding is the same for the whole block"
Partners: TypeAlias = "tuple[tuple[int | None, int, int], ...]"
"""Parts of registers: value, part, parts."""
_UNKNOWN: Final = "the layout of `{}` is not known"


class Judged(NamedTuple):
    """What holds of a mark in a product: whether nothing is added, and why.

    `term` is what the padding adds where it lies along k and may add something.
    """

    mark: Mark
    holds: bool
    reason: str
    term: Term | None = None


class Products:
    """Judges the factors of the products of one function."""

    def __init__(
        self,
        conditions: Conditions,
        movements: Movements,
        marks: Marks,
        mover: Mover,
        words: Words,
    ) -> None:
        self._conditions = conditions
        self._movements = movements
        self._marks = marks
        self._mover = mover
        self._words = words
        self._known: dict[tuple[int | None, int, int, int], Found] = {}
        self._across: dict[tuple[int, int, int], Condition | None] = {}
        self._stored: dict[frozenset[int] | None, list[Judged]] = {}
        self._axes: dict[tuple[int, int, int], bool] = {}
        self._nothing: dict[object, int] = {}
        self._parts: dict[object, tuple[bool, bool]] = {}

    def judge(
        self, instr: Instr, evaluator: Evaluator, undecided: Collection[int]
    ) -> Iterator[Judged]:
        """What holds of the marks on the factors of a product.

        Of loads that are `undecided` no more is told than what takes no evaluation: they cannot be
        proved any more, and no product refutes them.
        """
        fragments = self._marks.fragments_of(instr)
        if fragments is None:
            yield from self._unknown(instr)
            return
        if fragments.first is None or fragments.second is None:
            yield from self._in_memory(instr, evaluator)
        for side, elements in ((0, fragments.first), (1, fragments.second)):
            partners = self._partners(instr, fragments, side)
            done = 0
            for element, bits in self._marks.of_factor(instr, side, elements):
                if not bits & ~done:
                    continue
                nothing = self._adding_nothing(instr, fragments, side, element, bits, partners)
                for mark in self._marks.each(nothing & ~done):
                    yield Judged(mark, True, _ZERO)
                done |= nothing
                for mark in self._marks.each(bits & ~nothing):
                    judged = self._along(fragments, side, element, mark)
                    if judged is None and mark.load not in undecided:
                        judged = self._judge(instr, evaluator, fragments, side, element, mark)
                    if judged is not None:
                        yield judged

    def _unknown(self, instr: Instr) -> Iterator[Judged]:
        reason = _UNKNOWN.format(instr.shape.mnemonic)
        for mark in self._marks.each(self._marks.of_all(instr)):
            yield Judged(mark, False, reason)

    def _in_memory(self, instr: Instr, evaluator: Evaluator) -> list[Judged]:
        """A factor that lies in shared memory: what is put there must be 0."""
        key = self._movements.behind_matrices(instr)
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = list(self._find_stored(instr, evaluator))
        return found

    def _find_stored(self, instr: Instr, evaluator: Evaluator) -> Iterator[Judged]:
        kind = instr.shape.types[1]
        form = FORMATS.get(kind)
        is_finite = form is None or self._is_stored_finite(instr, evaluator)
        for store, value, _ in self._marks.stored(instr):
            parts = 1
            if value is not None:
                parts = max(1, self._words.width(value) // BITS.get(kind, 32))
            for part in range(parts):
                for mark in self._marks.each(self._put(store, value, part, parts)):
                    if mark.condition.lost:
                        yield Judged(mark, False, mark.condition.lost)
                    elif not self._is_put_as_zero(evaluator, kind, store, value, part, parts, mark):
                        reason = "padding lanes may not hold 0 when they reach shared memory"
                        yield Judged(mark, False, reason)
                    elif not is_finite:
                        reason = "padding lanes may meet an infinity in the product"
                        yield Judged(mark, False, reason)
                    else:
                        yield Judged(mark, True, _ZERO)

    def _put(self, store: Instr, value: int | None, part: int, parts: int) -> int:
        """The marks of an element that goes to shared memory."""
        marks = self._marks
        return marks.of_copy(store) if value is None else marks.of(value, part, parts)

    def _is_put_as_zero(
        self,
        evaluator: Evaluator,
        kind: str,
        store: Instr,
        value: int | None,
        part: int,
        parts: int,
        mark: Mark,
    ) -> bool:
        """True if an element that goes to shared memory is 0 where it is padding."""
        if value is not None:
            word = self._words.part(value, part, parts, mark.condition)
            if told(word, FORMATS.get(kind))[0]:
                return True
        found = self._mover.put(evaluator, store, value, mark.condition)
        return is_zero_where(found.word, found.touched)

    def _is_stored_finite(self, instr: Instr, evaluator: Evaluator) -> bool:
        """True if a product finds nothing but finite numbers in shared memory."""
        free = self._words.free
        return all(
            value is None or is_finite_word(free(value))
            for _, value, _ in self._marks.stored(instr)
        ) or self._mover.is_stored_finite(evaluator)

    def _along(
        self, fragments: Fragments, side: int, element: Element, mark: Mark
    ) -> Judged | None:
        """What holds of a mark by the axes that it lies along; None if it lies along k."""
        condition = mark.condition
        if condition.lost:
            return Judged(mark, False, condition.lost)
        if not condition.bits and not self._conditions.is_carried(condition):
            return Judged(mark, True, _EVERYWHERE)
        if condition.map is None:
            return None
        along, across = element.first, element.second
        if side:
            along, across = across, along
        if not self._depends(condition, along, fragments.lanes):
            return None
        if self._depends(condition, across, fragments.lanes):
            return Judged(mark, False, "the padding lies along both axes of a product")
        return Judged(mark, True, _APART)

    def _depends(self, condition: Condition, coordinate: LaneMap, lanes: int) -> bool:
        """True if a condition tells apart elements along a coordinate."""
        assert condition.map is not None
        key = condition.number, id(coordinate), lanes
        found = self._axes.get(key)
        if found is None:
            found = self._axes[key] = depends_on(condition.map, coordinate, lanes)
        return found

    def _judge(
        self,
        instr: Instr,
        evaluator: Evaluator,
        fragments: Fragments,
        side: int,
        element: Element,
        mark: Mark,
    ) -> Judged:
        """What holds of a mark along k, by evaluating what meets there."""
        terms = list(self._meeting(instr, evaluator, fragments, side, element, mark.condition))
        if all(term.is_zero for term in terms):
            return Judged(mark, True, _ZERO)
        worst = next(term for term in terms if not term.is_zero)
        reason = "padding lanes may not hold 0 when they reach the product"
        if worst.is_finite is False:
            reason = "padding lanes may meet an infinity or NaN in the product"
        return Judged(mark, False, reason, worst)

    def _partners(self, instr: Instr, fragments: Fragments, side: int) -> dict[LaneMap, Partners]:
        """What the elements of a factor meet, by their place along k."""
        others = fragments.second if side == 0 else fragments.first
        found: dict[LaneMap, Partners] = {}
        for other in others or ():
            value = self._mover.factor_value(instr, 1 - side, other)
            k = other.second if side else other.first
            found[k] = (*found.get(k, ()), (value, other.part, other.parts))
        return found

    def _adding_nothing(
        self,
        instr: Instr,
        fragments: Fragments,
        side: int,
        element: Element,
        bits: int,
        partners: dict[LaneMap, Partners],
    ) -> int:
        """The marks under whose conditions an element adds nothing.

        It is 0 there and what it meets is finite, or it is finite and what it meets is 0.
        """
        if (fragments.second if side == 0 else fragments.first) is None:
            return 0
        across = element.first if side else element.second
        own = self._mover.factor_value(instr, side, element), element.part, element.parts
        met, narrow = partners.get(across, ()), instr.shape.types[1]
        key = own, met, bits, id(across), fragments.lanes, narrow
        found = self._nothing.get(key)
        if found is None:
            found = 0
            free = [self._told(other, None, narrow) for other in met]
            for mark in self._marks.each(bits):
                zero, finite = self._told(own, mark.condition, narrow)
                if finite and self._meets_nothing(
                    mark.condition, zero, met, free, across, fragments.lanes, narrow
                ):
                    found |= 1 << self._marks.number(*mark)
            self._nothing[key] = found
        return found

    def _meets_nothing(
        self,
        condition: Condition,
        zero: bool,
        met: Partners,
        free: list[tuple[bool, bool]],
        across: LaneMap,
        lanes: int,
        narrow: str,
    ) -> bool:
        """True if all that a finite element meets makes it add nothing."""
        there: Condition | None = None
        is_moved = False
        for other, (_, is_finite) in zip(met, free, strict=True):
            if zero and is_finite:
                continue
            if not is_moved:
                there = self._there(condition, across, across, lanes)
                is_moved = True
            found = self._told(other, there, narrow)
            if not (found[0] or (zero and found[1])):
                return False
        return True

    def _told(
        self, part: tuple[int | None, int, int], condition: Condition | None, narrow: str
    ) -> tuple[bool, bool]:
        """Whether a part of a register is 0, and whether it is finite."""
        key = part, -1 if condition is None else condition.number, narrow
        found = self._parts.get(key)
        if found is None:
            value, number, parts = part
            word: Word = UNKNOWN
            if value is not None:
                word = self._words.part(value, number, parts, condition)
            found = self._parts[key] = told(word, FORMATS.get(narrow))
        return found

    def _meeting(
        self,
        instr: Instr,
        evaluator: Evaluator,
        fragments: Fragments,
        side: int,
        element: Element,
        condition: Condition,
    ) -> Iterator[Term]:
        """The products of an element with those of the other factor that it meets."""
        others = fragments.second if side == 0 else fragments.first
        own = self._factor(instr, evaluator, side, element, condition)
        across = element.first if side else element.second
        for other in others or ():
            theirs = other.second if side else other.first
            if theirs == across:
                there = self._there(condition, across, theirs, fragments.lanes)
                found = self._factor(instr, evaluator, 1 - side, other, there)
                yield self._mover.multiplied(instr, own, found)

    def _there(
        self, condition: Condition, across: LaneMap, theirs: LaneMap, lanes: int
    ) -> Condition | None:
        """A condition along k in terms of the other factor's elements."""
        if condition.map is None:
            return None
        key = condition.number, id(across), id(theirs)
        if key not in self._across:
            there = None
            carried = carry(condition.map, across, theirs, lanes)
            if carried is not None and carried.map is not None:
                there = self._conditions.estranged(self._conditions.moved(condition, carried.map))
            self._across[key] = there
        return self._across[key]

    def _factor(
        self,
        instr: Instr,
        evaluator: Evaluator,
        side: int,
        element: Element,
        condition: Condition | None,
    ) -> Found:
        """An element of a factor, kept for the products that share it."""
        value = self._mover.factor_value(instr, side, element)
        number = -1 if condition is None else condition.number
        key = value, element.part, element.parts, number
        found = self._known.get(key)
        if found is None:
            found = self._mover.factor(evaluator, instr, side, element, condition)
            self._known[key] = found
        return found


__all__ = ["Judged", "Products"]
