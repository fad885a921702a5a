"""Rows and columns of the factors of products: whether they are 0, and whether finite.

An element of a product's result is made of a row of one factor and a column of the other. Which
elements those have is found out once; what these hold is looked at again when it has changed.
"""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import Format
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.register_words import DATA, Number, Word
from ptxlint.dataflow.word_table import Cell, WordTable

Told = tuple[bool, bool]
"""Whether all that is looked at is 0, and whether it is finite."""
_NEVER: Final = -1


class Place:
    """One element of a line: where its word is, freely and by condition of the result."""

    __slots__ = ("cell", "part", "parts", "under", "value", "width")

    def __init__(
        self,
        value: int,
        cell: Cell,
        width: int,
        part: int,
        parts: int,
        under: list[tuple[int, Cell]],
    ) -> None:
        self.value = value
        self.cell = cell
        self.width = width
        self.part = part
        self.parts = parts
        self.under = under


class Line:
    """A row or a column of a factor. `free` is what it holds in any lane, None while that is not
    known; `under` what it holds by condition of the result."""

    __slots__ = (
        "_form",
        "_is_known",
        "_others",
        "_places",
        "_seen",
        "free",
        "is_of_memory",
        "under",
    )

    def __init__(self, form: Format | None, places: list[Place], is_known: bool) -> None:
        self._form = form
        self._places = places
        self._is_known = is_known
        """False if there are elements of which nothing is known."""
        self.is_of_memory = False
        self._seen = _NEVER
        about: dict[int, set[int]] = {}
        for at, place in enumerate(places):
            for number, _ in place.under:
                about.setdefault(number, set()).add(at)
        every = range(len(places))
        self._others = {n: [at for at in every if at not in own] for n, own in about.items()}
        """By condition: the elements that are not about it, by their place."""
        self.free: Told | None = None
        self.under: dict[int, Told] = {}

    @classmethod
    def of_memory(cls) -> Line:
        """A line whose words others look at."""
        line = cls(None, [], True)
        line.is_of_memory = True
        return line

    def refresh(self, table: WordTable, times: dict[int, int], now: int) -> None:
        """Look at the elements again if any changed since that was done."""
        seen = self._seen
        if seen != _NEVER and not any(times.get(p.value, 0) > seen for p in self._places):
            return
        self._seen = now
        self.free = None
        form = self._form
        known = self._is_known
        free: list[Told] = []
        under = dict.fromkeys(self._others, (known, known))
        for place in self._places:
            word = place.cell[0]
            if word is None:
                return
            width, part, parts = place.width, place.part, place.parts
            free.append(table.told(table.part(word, width, part, parts), form))
            for number, cell in place.under:
                word = cell[0]
                if word is None:
                    return
                is_zero, is_finite = table.told(table.part(word, width, part, parts), form)
                before = under[number]
                under[number] = before[0] and is_zero, before[1] and is_finite
        for number, others in self._others.items():
            for at in others:
                found, own = under[number], free[at]
                under[number] = found[0] and own[0], found[1] and own[1]
        self.free = known and all(own[0] for own in free), known and all(own[1] for own in free)
        self.under = under


def meet(own: LaneMap, target: LaneMap) -> bool:
    """True if threads with elements of a factor have rows (or columns) of the result's element."""
    still = ~(own.moving | target.moving)
    return not (own.constant ^ target.constant) & still


def added(table: WordTable, before: Word, form: Format, a: Told, b: Told) -> Word:
    """What an element holds once the products of a row and a column were added."""
    if (a[0] and b[1]) or (b[0] and a[1]):
        return before
    if a[1] and b[1] and table.told(before, form)[1]:
        return DATA
    return table.of(Number(form, floats.anything(form)))


__all__ = ["Line", "Place", "Told", "added", "meet"]
