"""Padding in the factors of tensor-core products.

A product sums over k. Padding that lies along k must add nothing: one of the two elements that meet
there is 0 and the other one finite. Padding along rows or columns stays in its own row or column of
the result, to be judged where that is combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

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

    def judge(self, instr: Instr, evaluator: Evaluator) -> Iterator[Judged]:
        """What holds of the marks on the factors of a product."""
        fragments = self._marks.fragments_of(instr)
        if fragments is None:
            yield from self._unknown(instr)
            return
        if fragments.first is None or fragments.second is None:
            yield from self._in_memory(instr, evaluator)
        for side, elements in ((0, fragments.first), (1, fragments.second)):
            marks = self._marks.of_factor(instr, side, elements)
            for element, bits in marks:
                for mark in self._marks.each(bits):
                    yield self._judge(instr, evaluator, fragments, side, element, mark, marks)

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

    def _judge(
        self,
        instr: Instr,
        evaluator: Evaluator,
        fragments: Fragments,
        side: int,
        element: Element,
        mark: Mark,
        marks: list[tuple[Element, int]],
    ) -> Judged:
        condition = mark.condition
        if self._adds_nothing(instr, fragments, side, element, condition):
            return Judged(mark, True, _ZERO)
        if condition.lost:
            return Judged(mark, False, condition.lost)
        if not condition.bits and not self._conditions.is_carried(condition):
            return Judged(mark, True, _EVERYWHERE)
        along, across = element.first, element.second
        if side:
            along, across = across, along
        lanes = fragments.lanes
        if condition.map is not None and depends_on(condition.map, along, lanes):
            if depends_on(condition.map, across, lanes):
                return Judged(mark, False, "the padding lies along both axes of a product")
            return Judged(mark, True, _APART)
        terms = list(self._meeting(instr, evaluator, fragments, side, element, condition))
        if all(term.is_zero for term in terms):
            return Judged(mark, True, _ZERO)
        worst = next(term for term in terms if not term.is_zero)
        reason = "padding lanes may not hold 0 when they reach the product"
        if worst.is_finite is False:
            reason = "padding lanes may meet an infinity or NaN in the product"
        return Judged(mark, False, reason, worst)

    def _adds_nothing(
        self,
        instr: Instr,
        fragments: Fragments,
        side: int,
        element: Element,
        condition: Condition,
    ) -> bool:
        """True if an element adds nothing where a condition holds.

        It is 0 there and what it meets is finite, or it is finite and what it meets is 0.
        """
        others = fragments.second if side == 0 else fragments.first
        form = FORMATS.get(instr.shape.types[1])
        if others is None:
            return False
        zero, finite = told(self._word(instr, side, element, condition), form)
        if not finite:
            return False
        across = element.first if side else element.second
        for other in others:
            theirs = other.second if side else other.first
            if theirs != across:
                continue
            if zero and told(self._word(instr, 1 - side, other, None), form)[1]:
                continue
            there = self._there(condition, across, theirs, fragments.lanes)
            found = told(self._word(instr, 1 - side, other, there), form)
            if not (found[0] or (zero and found[1])):
                return False
        return True

    def _word(self, instr: Instr, side: int, element: Element, condition: Condition | None) -> Word:
        value = self._mover.factor_value(instr, side, element)
        if value is None:
            return UNKNOWN
        return self._words.part(value, element.part, element.parts, condition)

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
