"""Divisions by constants and what they leave, against plain arithmetic."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ptxlint.dataflow.bitwise import floor_divide, modulo
from ptxlint.dataflow.polynomial import Atom, AtomTable, Polynomial

SIZES = st.integers(2, 3000)


def number(poly: Polynomial, known: dict[Atom, int]) -> int:
    """A polynomial's value where atoms have these numbers."""
    total = 0
    for monomial, coefficient in poly.terms.items():
        term = coefficient
        for place in monomial:
            atom = poly.table.atoms[place]
            if atom.kind == "fdiv":
                term *= number(atom.data[0], known) // int(atom.data[1])
            else:
                term *= known[atom]
        total += term
    return total


@given(
    st.integers(-40, 40), st.integers(-9, 9), st.integers(-9, 9), SIZES, st.integers(2, 9),
    st.integers(-4, 4), st.lists(st.integers(-5, 300), min_size=9),
)  # fmt: skip
def test_bounds_of_remainders(
    start: int, a: int, b: int, size: int, ratio: int, scale: int, samples: list[int]
) -> None:
    table = AtomTable()
    x, y = (table.atom("param", (name,), -5, 300) for name in "xy")
    inner = table.sum([(a, x), (b, y)]) + start
    whole = [
        modulo(inner, size) * scale,
        modulo(inner, size) * scale + table.sum([(3, x)]),
        modulo(floor_divide(inner, size), ratio) * scale,
        (floor_divide(inner, size) - floor_divide(inner, size * ratio) * ratio) * scale + 1,
        modulo(inner, size) - modulo(inner, size * ratio),
    ]
    for poly in whole:
        low, high = poly.range()
        for first, second in pairwise(samples):
            assert low <= number(poly, {x: first, y: second}) <= high


def test_bounds_are_close() -> None:
    table = AtomTable()
    x = table.plain(table.atom("ctaid", ("x",), 0, 1 << 31))
    assert modulo(x * 32, 64).range() == (0, 32)
    assert (modulo(x * 32 + 3, 64) + 5).range() == (8, 40)
    blocks = floor_divide(x * 16, 32) * 32 - floor_divide(x * 16, 64) * 64
    assert blocks.range() == (0, 32)
    assert modulo(x, 7).range() == (0, 6)
