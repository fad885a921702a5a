"""Digits of the place of an element: what they are made of, and what their values add up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxlint.dataflow.polynomial import LANES, AtomTable, Polynomial
from ptxlint.launch.coverage.parting import Place, dividend
from ptxlint.launch.coverage.views import Step


class Digit(NamedTuple):
    """One digit of a place: its number by store, how many values are asked for, how many bytes it
    counts, how many of these a store writes, and of which step of the tensor it is a digit."""

    numbers: tuple[Polynomial, ...]
    extent: int
    weight: int
    width: int
    step: Step

    @property
    def depends(self) -> int:
        """By what it varies; stores with different numbers count as lanes."""
        found = 0
        for number in self.numbers:
            found |= number.depends
        return found | (LANES if len(set(self.numbers)) > 1 else 0)


def digit_of(group: Sequence[Place], count: int, weight: int, step: Step) -> Digit:
    numbers = tuple(place.number for place in group)
    return Digit(numbers, count, weight, max(place.width for place in group), step)


def offset_of(digits: Sequence[Digit], values: Sequence[int]) -> int | None:
    """The first byte of the elements with these values of some digits and 0 for others; None if
    they lie beyond the end of a step."""
    by_step: dict[Step, int] = {}
    for digit, value in zip(digits, values, strict=True):
        by_step[digit.step] = by_step.get(digit.step, 0) + digit.weight * value
    if any(offset >= step.bytes_apart * step.extent for step, offset in by_step.items()):
        return None
    return sum(by_step.values())


class Code:
    """Combinations of values of some digits, each as one number."""

    def __init__(self, table: AtomTable, digits: Sequence[Digit]) -> None:
        self._table = table
        self._places: list[tuple[int, int]] = []
        """By digit, the least value and what a step of it counts."""
        step = 1
        for digit in digits:
            ends = [number.range() for number in digit.numbers]
            low = min(0, *(end[0] for end in ends))
            high = max(digit.extent - 1, *(end[1] for end in ends))
            self._places.append((low, step))
            step *= high - low + 1

    def of(self, numbers: Sequence[Polynomial]) -> Polynomial:
        """The number of a combination of numbers."""
        total = self._table.constant(0)
        for number, (low, step) in zip(numbers, self._places, strict=True):
            total += (number - low) * step
        return total

    def of_all(self, ranges: Sequence[range]) -> list[int]:
        """The numbers of all combinations of values, the last one running first."""
        found = [0]
        for values, (low, step) in zip(ranges, self._places, strict=True):
            steps = [(value - low) * step for value in values]
            found = [number + more for number in found for more in steps]
        return found


def lanes_where(number: Polynomial, own: Sequence[Polynomial], bits: Sequence[int]) -> list[int]:
    """What a number of lanes is in those in which others are not negative."""
    polys = (number, *own)
    rows = [tuple(poly.constant for poly in polys)]
    for bit in bits:
        scales = tuple(poly.terms.get((bit,), 0) for poly in polys)
        rows += [tuple(map(sum, zip(row, scales, strict=True))) for row in rows]
    return [row[0] for row in rows if min(row[1:]) >= 0]


def place_in_axis(number: Polynomial) -> tuple[str, int, int] | None:
    """Of a program's number along which axis a number is a digit: at which weight, and up to which
    number (0 for no bound)."""
    if not number.terms:
        return None
    ((monomial, scale), *more) = number.terms.items()
    if more or scale != 1 or len(monomial) != 1:
        return None
    atom = number.table.atoms[monomial[0]]
    if atom.kind == "ctaid":
        return str(atom.data[0]), 1, 0
    part, weight = dividend(atom) if atom.kind == "fdiv" else (None, 1)
    modulus = 0
    if atom.kind == "rest":
        part, modulus = atom.data
        inner = place_in_axis(part)
        return None if inner is None or inner[2] else (inner[0], inner[1], modulus)
    if part is None:
        return None
    inner = place_in_axis(part)
    return None if inner is None or inner[1] != 1 or inner[2] else (inner[0], weight, 0)


def first_beyond(places: Sequence[tuple[int, int, Digit]], extent: int) -> int | None:
    """The offset of the tile of a program that the grid does not have: the first one, if its number
    has no digits but these. None if none of the tensor's tiles is found to be one."""
    digits = [digit for _, _, digit in places]
    least = places[0][0]
    first = -(-extent // least) * least
    rest = [
        first // weight % modulus if modulus else first // weight for weight, modulus, _ in places
    ]
    for values in (rest, [digit.extent - 1 for digit in digits]):
        number = sum(value * weight for value, (weight, _, _) in zip(values, places, strict=True))
        if number >= extent and all(v < d.extent for v, d in zip(values, digits, strict=True)):
            offset = offset_of(digits, values)
            if offset is not None:
                return offset
    return None


__all__ = ["Code", "Digit", "digit_of", "first_beyond", "lanes_where", "offset_of", "place_in_axis"]
