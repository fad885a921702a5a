"""From which size to which one a property is proved, found by dividing and proving again.

Where accesses fail for all sizes together, the ends are looked for on what fails alone, a number or
a side. What is found then is proved once more for all accesses, so that a wrong guess costs a
statement and never makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.guards import Conjunction
from ptxlint.dataflow.symbolic import Wrap
from ptxlint.launch.generalise.under_family import UnderFamily
from ptxlint.launch.questions import ABOVE, BELOW, MISALIGNED, OVERFLOW
from ptxlint.launch.under import Judged

_NARROWINGS: Final = 4
"""So often all accesses are looked at again."""


class Question(NamedTuple):
    """What may not be so for all numbers: `shown` says whether it is between two numbers, `excess`
    by how much it fails there, about; None if that is not to be told."""

    shown: Callable[[int, int], bool]
    excess: Callable[[int, int], int] | None = None


class Span(NamedTuple):
    """Numbers from `low` to `high`, both included."""

    low: int
    high: int


def has(judged: Judged, kind: str) -> bool:
    """Whether an access is proved to have the property that a kind of question asks for."""
    if kind == MISALIGNED:
        return bool(judged.never) or (judged.region is not None and judged.aligned)
    if judged.wraps or kind == OVERFLOW or judged.never:
        return not judged.wraps
    return judged.region is not None and (judged.above if kind == ABOVE else judged.below)


def span_around(
    under: UnderFamily, instrs: Collection[int], kind: str, at: int, inside: Span | None = None
) -> Span | None:
    """The numbers around one for which all accesses of some instructions have a property.

    All are in what is left open, not in the sizes themselves, and looked for `inside` others. None
    if it is not shown for the number itself, or with the steps that there are.
    """
    low, high = inside or Span(1, under.last)
    judged = under.within(low, high)
    for turn in range(_NARROWINGS):
        if under.budget.spent:
            return None
        failing = _failing(judged, instrs, kind)
        if not failing:
            return Span(low, high)
        before = low, high
        questions = list(_questions(under, failing, kind, by_guards=not turn))
        while questions:
            # From both ends of the program: what is hardest lies at one of them, mostly.
            question = questions.pop(-(len(questions) % 2))
            high = _last(question, at, at, high)
            low = _first(question, low, at, high)
            questions = [other for other in questions if not other.shown(low, high)]
        if turn and (low, high) == before:
            return None
        judged = under.within(low, high)
    return None


def span_below(under: UnderFamily, instrs: Collection[int], kind: str, limit: int) -> Span | None:
    """The numbers from 1 on, up to `limit` at most, for which all accesses have a property."""
    high = limit
    for turn in range(_NARROWINGS):
        if high < 1 or under.budget.spent:
            return None
        failing = _failing(under.within(1, high), instrs, kind)
        if not failing:
            return Span(1, high)
        before = high
        questions = list(_questions(under, failing, kind, by_guards=not turn))
        while questions and high:
            question = questions.pop(-(len(questions) % 2))
            high = _last(question, 1, 1, high) if question.shown(1, 1) else 0
            questions = [other for other in questions if high and not other.shown(1, high)]
        if turn and high >= before:
            return None
    return None


def _failing(judged: list[Judged], instrs: Collection[int], kind: str) -> list[Judged]:
    """The accesses that have not the property; one that is not there any more has not."""
    found = {j.access.instr.index for j in judged}
    gone = [judged[0]._replace(region=None)] if judged and not found.issuperset(instrs) else []
    return gone + [j for j in judged if j.access.instr.index in instrs and not has(j, kind)]


def _questions(
    under: UnderFamily, failing: list[Judged], kind: str, *, by_guards: bool
) -> Iterator[Question]:
    """What to ask of accesses that have not a property for all numbers."""
    wraps: dict[Wrap, Conjunction] = {}
    for judged in failing:
        for wrap in judged.wraps[:1]:
            wraps.setdefault(
                wrap, (judged.access.guard or frozenset()) if by_guards else frozenset()
            )
    for wrap, guard in wraps.items():
        yield _of_wrap(under, wrap, guard)
    if kind in (ABOVE, BELOW):
        sides = [judged for judged in failing if not judged.wraps]
        sides.sort(key=lambda j: j.access.offset.constant, reverse=kind == ABOVE)
        for judged in sides:
            yield _of_side(under, judged, kind)


def _of_wrap(under: UnderFamily, wrap: Wrap, guard: Conjunction) -> Question:
    """Whether a number fits its word by what holds on the way to it and by a guard."""

    def fits(low: int, high: int) -> bool:
        under.narrow(low, high)
        return under.fits(wrap, guard)

    def excess(low: int, high: int) -> int:
        under.narrow(low, high)
        return under.excess(wrap, guard)

    return Question(fits, excess)


def _of_side(under: UnderFamily, judged: Judged, kind: str) -> Question:
    """Whether an access stays on the right side of an end of its storage."""

    def stays(low: int, high: int) -> bool:
        under.narrow(low, high)
        below, above = under.sides(judged)
        return above if kind == ABOVE else below

    return Question(stays)


def _last(question: Question, start: int, low: int, high: int) -> int:
    """The largest number with which it is shown from `start` on, taken to be so up to `low`."""
    shown = question.shown
    if low < high and not shown(start, low + 1):
        return low
    guess = _guessed(question, start, low, high)
    # A good guess is right, and the next number is too large.
    for trial in () if guess is None else (guess, guess + 1):
        if low < trial <= high:
            low, high = (trial, high) if shown(start, trial) else (low, trial - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if shown(start, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _guessed(question: Question, start: int, low: int, high: int) -> int | None:
    """Where it ends to be shown if what fails grows evenly; None if that is not to be told."""
    if question.excess is None:
        return None
    before, behind = question.excess(start, low), question.excess(start, high)
    if before > 0 or behind <= 0:
        return None
    return low + (high - low) * -before // (behind - before)


def _first(question: Question, low: int, high: int, end: int) -> int:
    """The least number from which on it is shown up to `end`, taken to be so from `high` on."""
    shown = question.shown
    if low < high and shown(low, end):
        return low
    if low < high and not shown(high - 1, end):
        return high
    while low < high:
        middle = (low + high) // 2
        if shown(middle, end):
            high = middle
        else:
            low = middle + 1
    return low


__all__ = ["Span", "has", "span_around", "span_below"]
