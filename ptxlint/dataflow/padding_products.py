"""Padding in the factors of tensor-core products.

A product sums over k. Padding that lies along k must add nothing: one of the two elements that meet
there is 0 and the other one finite. Padding along rows or columns stays in its own row or column of
the result, to be judged where that is combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.fragments import Element, Fragments, carry, depends_on, elements_of
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.padding_chains import Chains
from ptxlint.dataflow.padding_marks import IN_TENSORS, Mark, Marks
from ptxlint.dataflow.padding_values import UNKNOWN, Word, as_float, is_finite_word
from ptxlint.dataflow.padding_words import FACTORS, Words
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.word_table import told
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import BITS

_ZERO: Final = "padding lanes hold 0 when they reach the product"
_APART: Final = "rows and columns of a product stay apart"
_EVERYWHERE: Final = "the padding is the same for the whole block"
_UNKNOWN: Final = "the layout of `{}` is not known"
_NOT_ZERO: Final = "padding lanes may not hold 0 when they reach the product"
_NOT_FINITE: Final = "padding lanes may meet an infinity or NaN in the product"
_BOTH: Final = "the padding lies along both axes of a product"


class Judged(NamedTuple):
    """What holds of a mark in a product: whether nothing is added, and why.

    `infinite` says in words what the padding certainly is where it lies along k, if that is an
    infinity or NaN: then so is the result.
    """

    mark: Mark
    holds: bool
    reason: str
    infinite: str = ""


class _Part(NamedTuple):
    """An element of a factor: a part of a register's value, or (`side` >= 0) one in memory."""

    value: int | None
    part: int
    parts: int
    side: int = -1


class _Other(NamedTuple):
    """An element that one meets, and its coordinate along k."""

    part: _Part
    across: LaneMap


class Products:
    """Judges the factors of the products of one function."""

    def __init__(
        self,
        conditions: Conditions,
        reductions: Reductions,
        marks: Marks,
        words: Words,
        chains: Chains,
    ) -> None:
        self._conditions = conditions
        self._reductions = reductions
        self._marks = marks
        self._words = words
        self._across: dict[tuple[int, int, int], Condition | None] = {}
        self._stored: dict[frozenset[int] | None, list[Judged]] = {}
        self._axes: dict[tuple[int, int, int], bool] = {}
        self._chains = chains
        self._of_all: dict[tuple[int, int, int, bool], bool] = {}
        self._nothing: dict[object, int] = {}
        self._met: dict[object, dict[LaneMap | None, tuple[_Other, ...]]] = {}
        self._judged: dict[object, Judged] = {}
        self._parts: dict[object, tuple[bool, bool]] = {}

    def judge(self, instr: Instr) -> Iterator[Judged]:
        """What holds of the marks on the factors of a product."""
        fragments = self._marks.fragments_of(instr)
        if fragments is None:
            yield from self._unknown(instr)
            return
        for side in (0, 1):
            if fragments[side] is None and self._marks.in_memory(instr, side) is None:
                yield from self._in_memory(instr)
                break
        for side, elements in ((0, fragments.first), (1, fragments.second)):
            partners = self._partners(instr, fragments, side)
            done = 0
            for element, bits in self._marks.of_factor(instr, side, elements):
                if not bits & ~done:
                    continue
                own = self._part(instr, side, element, elements is None)
                across = element.first if side else element.second
                met = partners.get(None) or partners.get(across, ())
                lanes = self._lanes(instr, fragments, side)
                nothing = self._adding_nothing(instr, own, across, bits, met, lanes)
                for mark in self._marks.each(nothing & ~done):
                    yield Judged(mark, True, _ZERO)
                done |= nothing
                if not bits & ~nothing:
                    continue
                # What is said of an element says it of all products that are summed with this one.
                chain = id(self._chains.of(instr))
                which = own, side, id(element), lanes[0], chain, self._marks.factor_type(instr)
                for mark in self._marks.each(bits & ~nothing):
                    key = which, mark.condition.number, mark.load
                    judged = self._judged.get(key)
                    if judged is None:
                        judged = self._judge(instr, side, element, own, mark, lanes[0])
                        self._judged[key] = judged
                    yield judged

    def _lanes(self, instr: Instr, fragments: Fragments, side: int) -> tuple[int, int]:
        """The bits of the indices that the layouts of a factor and of the other one use."""
        lanes_of = self._marks.lanes_of
        return lanes_of(instr, side, fragments)[0], lanes_of(instr, 1 - side, fragments)[0]

    def _unknown(self, instr: Instr) -> Iterator[Judged]:
        reason = _UNKNOWN.format(instr.shape.mnemonic)
        if instr.opcode == "tcgen05":
            reason = IN_TENSORS
        for mark in self._marks.each(self._marks.of_all(instr)):
            yield Judged(mark, False, reason)

    # Factors of an unknown layout -------------------------------------------------------------
    def _in_memory(self, instr: Instr) -> list[Judged]:
        """A factor that lies in shared memory in an unknown layout: what is put there must be 0."""
        key = self._marks.stores_behind(instr)
        found = self._stored.get(key)
        if found is None:
            found = self._stored[key] = list(self._find_stored(instr))
        return found

    def _find_stored(self, instr: Instr) -> Iterator[Judged]:
        kind = self._marks.factor_type(instr)
        is_finite = kind not in FACTORS or self._is_stored_finite(instr)
        for store, value, _ in self._marks.stored(instr):
            parts = 1
            if value is not None:
                parts = max(1, self._words.width(value) // BITS.get(kind, 32))
            for part in range(parts):
                for mark in self._marks.each(self._put(store, value, part, parts)):
                    word = self._words.put(store, value, part, parts, mark.condition)
                    if not told(word, FACTORS.get(kind))[0]:
                        reason = "padding lanes may not hold 0 when they reach shared memory"
                        yield Judged(mark, False, mark.condition.lost or reason)
                    elif not is_finite:
                        reason = "padding lanes may meet an infinity in the product"
                        yield Judged(mark, False, reason)
                    else:
                        yield Judged(mark, True, _ZERO)

    def _put(self, store: Instr, value: int | None, part: int, parts: int) -> int:
        """The marks of an element that goes to shared memory."""
        marks = self._marks
        return marks.of_copy(store) if value is None else marks.of(value, part, parts)

    def _is_stored_finite(self, instr: Instr) -> bool:
        """True if a product finds nothing but finite numbers in shared memory."""
        free = self._words.free
        return all(
            value is None or is_finite_word(free(value))
            for _, value, _ in self._marks.stored(instr)
        )

    # Along k ----------------------------------------------------------------------------------
    def _judge(
        self, instr: Instr, side: int, element: Element, own: _Part, mark: Mark, lanes: int
    ) -> Judged:
        """What holds of a mark by the axes that it lies along, where it may add something."""
        condition = mark.condition
        if condition.lost:
            return Judged(mark, False, condition.lost)
        if not condition.bits and not self._conditions.is_carried(condition):
            if self._is_of_all(instr, side, condition):
                return Judged(mark, True, _EVERYWHERE)
            return self._not_nothing(instr, own, mark)
        along, across = element.first, element.second
        if side:
            along, across = across, along
        if condition.map is not None and self._depends(condition, along, lanes):
            if self._depends(condition, across, lanes):
                return Judged(mark, False, _BOTH)
            return Judged(mark, True, _APART)
        # It may tell warps apart, or CTAs.
        no_lane = condition.map is not None and not self._depends(condition, across, lanes)
        if no_lane and self._is_of_all(instr, side, condition, True):
            return Judged(mark, True, _APART)
        return self._not_nothing(instr, own, mark)

    def _not_nothing(self, instr: Instr, own: _Part, mark: Mark) -> Judged:
        """What holds of a mark along k whose element may add something."""
        condition = mark.condition
        is_zero, is_finite = self._told(instr, own, condition)
        reason = _NOT_FINITE if is_zero or not is_finite else _NOT_ZERO
        return Judged(mark, False, reason, self._infinity(instr, own, condition))

    def _is_of_all(
        self, instr: Instr, side: int, condition: Condition, with_start: bool = False
    ) -> bool:
        """True if a condition is that of all elements on one side of all products that are added
        to one another, and of what they start from if that is asked for."""
        chain = self._chains.of(instr)
        if chain is None:
            return not with_start
        key = id(chain), side, condition.number, with_start
        found = self._of_all.get(key)
        if found is None:
            found = not self._conditions.varies_in_any(condition, chain.headers) and all(
                self._has_side(product, side, condition) for product in chain.products
            )
            if found and with_start:
                found = all(self._starts(value, condition) for value in chain.starts)
            self._of_all[key] = found
        return found

    def _has_side(self, product: Instr, side: int, condition: Condition) -> bool:
        fragments = self._marks.fragments_of(product)
        if fragments is None or (
            fragments[side] is None and self._marks.in_memory(product, side) is None
        ):
            return False
        elements = fragments.second if side else fragments.first
        return all(
            condition in self._marks.conditions_in(bits)
            for _, bits in self._marks.of_factor(product, side, elements)
        )

    def _starts(self, value: int, condition: Condition) -> bool:
        """True for a sum's start that is 0, or that a condition is about as well."""
        word = self._words.free(value)
        if isinstance(word, int) and not word:
            return True
        return condition in self._marks.conditions_of(value)

    def _depends(self, condition: Condition, coordinate: LaneMap, lanes: int) -> bool:
        """True if a condition tells apart elements along a coordinate."""
        assert condition.map is not None
        key = condition.number, id(coordinate), lanes
        found = self._axes.get(key)
        if found is None:
            found = self._axes[key] = depends_on(condition.map, coordinate, lanes)
        return found

    def _infinity(self, instr: Instr, own: _Part, condition: Condition) -> str:
        """What an element certainly is under a condition, if that is no finite number."""
        form = FACTORS.get(self._marks.factor_type(instr))
        if form is None or condition.map is None:
            return ""
        value = as_float(self._word(instr, own, condition), form)
        point = value.point
        if value.finite or point is None:
            return ""
        return f"{point:g}" if point == point else "NaN"

    def _part(self, instr: Instr, side: int, element: Element, in_memory: bool) -> _Part:
        if in_memory:
            return _Part(instr.index, 0, 1, side)
        register = elements_of(instr.operands[1 + side])[element.register]
        return _Part(self._reductions.read(instr, register), element.part, element.parts)

    def _partners(
        self, instr: Instr, fragments: Fragments, side: int
    ) -> dict[LaneMap | None, tuple[_Other, ...]]:
        """What the elements of a factor meet, by their place along k; by None what all meet."""
        elements = fragments.first if side else fragments.second
        values = instr.index if elements is None else self._values(instr, 1 - side)
        key = values, side, id(fragments)
        found = self._met.get(key)
        if found is None:
            found = self._met[key] = self._find_partners(instr, fragments, side)
        return found

    def _values(self, instr: Instr, side: int) -> tuple[int | None, ...]:
        """The values of a factor's registers."""
        read = self._reductions.read
        return tuple([read(instr, r) for r in elements_of(instr.operands[1 + side])])

    def _find_partners(
        self, instr: Instr, fragments: Fragments, side: int
    ) -> dict[LaneMap | None, tuple[_Other, ...]]:
        elements = fragments.first if side else fragments.second
        found: dict[LaneMap | None, tuple[_Other, ...]] = {}
        if elements is None:
            factor = self._marks.in_memory(instr, 1 - side)
            if factor is None:
                return {None: (_Other(_Part(None, 0, 1), LaneMap(0, ())),)}
            part = self._part(instr, 1 - side, factor.element, True)
            k = factor.element.second if side else factor.element.first
            return {None: (_Other(part, k),)}
        everything = fragments[side] is None
        for other in elements:
            k = other.second if side else other.first
            part = self._part(instr, 1 - side, other, False)
            place = None if everything else k
            found[place] = (*found.get(place, ()), _Other(part, k))
        return found

    def _adding_nothing(
        self,
        instr: Instr,
        own: _Part,
        across: LaneMap,
        bits: int,
        met: tuple[_Other, ...],
        lanes: tuple[int, int],
    ) -> int:
        """The marks under whose conditions an element adds nothing.

        It is 0 there and what it meets is finite, or it is finite and what it meets is 0.
        """
        # What is met is kept, so that its identity says what it is.
        key = own, id(met), bits, id(across), lanes, self._marks.factor_type(instr)
        found = self._nothing.get(key)
        if found is None:
            found = 0
            free = [self._told(instr, other.part, None) for other in met]
            for mark in self._marks.each(bits):
                zero, finite = self._told(instr, own, mark.condition)
                if finite and self._meets_nothing(
                    instr, mark.condition, zero, met, free, across, lanes
                ):
                    found |= 1 << self._marks.number(*mark)
            self._nothing[key] = found
        return found

    def _meets_nothing(
        self,
        instr: Instr,
        condition: Condition,
        zero: bool,
        met: tuple[_Other, ...],
        free: list[tuple[bool, bool]],
        across: LaneMap,
        lanes: tuple[int, int],
    ) -> bool:
        """True if all that a finite element meets makes it add nothing."""
        for other, (_, is_finite) in zip(met, free, strict=True):
            if zero and is_finite:
                continue
            there = self._there(condition, across, other.across, lanes)
            found = self._told(instr, other.part, there)
            if not (found[0] or (zero and found[1])):
                return False
        return True

    def _word(self, instr: Instr, part: _Part, condition: Condition | None) -> Word:
        if part.side >= 0:
            return self._words.in_memory(instr, part.side, condition)
        if part.value is None:
            return UNKNOWN
        return self._words.part(part.value, part.part, part.parts, condition)

    def _told(self, instr: Instr, part: _Part, condition: Condition | None) -> tuple[bool, bool]:
        """Whether an element is 0, and whether it is finite."""
        narrow = self._marks.factor_type(instr)
        key = part, -1 if condition is None else condition.number, narrow
        found = self._parts.get(key)
        if found is None:
            word = self._word(instr, part, condition)
            found = self._parts[key] = self._words.told(word, FACTORS.get(narrow))
        return found

    def _there(
        self, condition: Condition, across: LaneMap, theirs: LaneMap, lanes: tuple[int, int]
    ) -> Condition | None:
        """A condition along k in terms of the other factor's elements."""
        if condition.map is None or not theirs.basis:
            return None
        key = condition.number, id(across), id(theirs)
        if key not in self._across:
            there = None
            carried = carry(condition.map, across, theirs, *lanes)
            if carried is not None and carried.map is not None:
                there = self._conditions.estranged(self._conditions.moved(condition, carried.map))
            self._across[key] = there
        return self._across[key]


__all__ = ["Judged", "Products"]
