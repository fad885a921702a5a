"""Words, of which equal ones are one object, and what is made of them.

So identity tells words apart, and what was once worked out for some words is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import Format
from ptxlint.dataflow.register_words import (
    DATA,
    UNKNOWN,
    Data,
    Either,
    Number,
    Unknown,
    Word,
    as_float,
    halves,
    join,
)

Cell: TypeAlias = "list[Word | None]"
"""One place for a word of a table; None while that is not known yet."""


class WordTable:
    """The words of one function."""

    def __init__(self) -> None:
        self._words: dict[object, Word] = {}
        self._joins: dict[tuple[int, ...], Word] = {}
        self._parts: dict[tuple[int, int, int, int], Word] = {}
        self._statistics: dict[int, Word] = {}
        self._told: dict[tuple[int, str], tuple[bool, bool]] = {}
        for word in (DATA, UNKNOWN):
            self._words[type(word), word] = word

    def of(self, word: Word) -> Word:
        """The one object for a word."""
        if isinstance(word, int):
            return self._words.setdefault(word, word)
        key: object
        if isinstance(word, Number):
            key = word.form.name, *word.value.key()
        elif type(word) is tuple:
            pair: tuple[Any, ...] = word
            low, high = self.of(pair[0]), self.of(pair[1])
            key = id(low), id(high)
            word = low, high
        else:
            key = type(word), word
        return self._words.setdefault(key, word)

    def joined(self, words: Iterable[Word | None]) -> Word | None:
        """The join of all words that are known; None if none is. All are of this table."""
        distinct = {id(word): word for word in words if word is not None}
        if len(distinct) < 2:
            return next(iter(distinct.values()), None)
        key = tuple(distinct)
        known = self._joins.get(key)
        if known is None:
            each = iter(distinct.values())
            found: Word = next(each)
            for other in each:
                found = join(found, other)
            known = self._joins[key] = self.of(found)
        return known

    def part(self, word: Word, width: int, part: int, parts: int) -> Word:
        """One of the equal parts of a word of `width` bits of this table."""
        if parts == 1:
            return word
        key = id(word), width, part, parts
        found = self._parts.get(key)
        if found is None:
            found = word
            while parts > 1:
                half = part * 2 // parts
                found = halves(found, width)[half]
                parts //= 2
                part -= half * parts
                width //= 2
            found = self._parts[key] = self.of(found)
        return found

    def statistic(self, word: Word) -> Word:
        """What is the same for many lanes is taken to be finite."""
        found = self._statistics.get(id(word))
        if found is None:
            found = word
            if isinstance(word, Number):
                if word.value.point is None:
                    found = Number(word.form, floats.assume_finite(word.value, word.form))
            elif isinstance(word, (Unknown, Either)) or (type(word) is tuple and _is_vague(word)):
                found = DATA
            found = self._statistics[id(word)] = self.of(found)
        return found

    def told(self, word: Word, form: Format | None) -> tuple[bool, bool]:
        """See `told`, of a word of this table."""
        key = id(word), "" if form is None else form.name
        found = self._told.get(key)
        if found is None:
            found = self._told[key] = told(word, form)
        return found


def _is_vague(word: tuple[Any, ...]) -> bool:
    """True if nothing is known of a part of a word."""
    return any(
        _is_vague(half) if type(half) is tuple else isinstance(half, (Unknown, Either))
        for half in word
    )


def told(word: Word, form: Format | None) -> tuple[bool, bool]:
    """Whether a factor's element is 0, and whether it is finite; without a format an integer."""
    if form is not None:
        if isinstance(word, Data):
            return False, True
        number = as_float(word, form)
        return number.is_zero, number.is_finite
    return isinstance(word, int) and not word, True


__all__ = ["Cell", "WordTable", "told"]
