"""NaN and inf parity, and errors in several units."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from ptxlint.dynamic.oracle.compare import ShapesDisagreeError, compare
from ptxlint.dynamic.oracle.compared import Compared


def one(got: float, expected: float, allowed: float = 1e-3, dtype: str = "float32") -> Compared:
    return compare("y", dtype, np.array([got]), np.array([expected]), np.array([allowed]))


@pytest.mark.parametrize(
    ("got", "expected", "wrong", "nonfinite"),
    [
        (nan, nan, 0, 0),
        (nan, 1.0, 1, 1),
        (1.0, nan, 1, 1),
        (nan, inf, 1, 1),
        (inf, nan, 1, 1),
        (inf, inf, 0, 0),
        (-inf, -inf, 0, 0),
        (-inf, inf, 1, 1),
        (inf, 1.0, 1, 1),
        (3e38, inf, 1, 1),
        (1.0009, 1.0, 0, 0),
        (1.0011, 1.0, 1, 0),
        (-0.0, 0.0, 0, 0),
    ],
)
def test_parity(got: float, expected: float, wrong: int, nonfinite: int) -> None:
    told = one(got, expected)
    assert (told.wrong, told.nonfinite) == (wrong, nonfinite)
    assert told.got == got or np.isnan(got)
    assert told.worst == (0,)


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        (inf, 65520.0, 0),  # from here on numbers round to infinity
        (inf, 65519.0, 1),
        (inf, 70000.0, 0),
        (-inf, 70000.0, 1),
        (-inf, -1e300, 0),
        (65504.0, 65519.9, 0),
        (65504.0, 70000.0, 1),
    ],
)
def test_overflow_of_the_output_type(got: float, expected: float, wrong: int) -> None:
    # An allowance of 0 for infinities: they are right from where the type itself overflows.
    allowed = 0.0 if np.isinf(got) else 16.0
    assert one(got, expected, allowed, "float16").wrong == wrong
    # What is allowed widens that.
    assert one(inf, 65519.0, 2.0, "float16").wrong == 0


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [(nan, 500.0, 0), (448.0, 500.0, 0), (-448.0, 500.0, 1), (nan, 300.0, 1), (448.0, inf, 0),
     (2.0, inf, 1), (nan, nan, 0)],
)  # fmt: skip
def test_a_type_without_infinity_saturates_or_is_nan(
    got: float, expected: float, wrong: int
) -> None:
    assert one(got, expected, 100.0, "float8_e4m3fn").wrong == wrong


def test_statistics() -> None:
    expected = np.array([[1.0, 2.0, nan], [4.0, inf, 1e-3]])
    got = expected + np.array([[0, 2.0**-9, 0], [-(2.0**-8), 0, 2.0**-12]])
    told = compare("y", "float16", got, expected, np.full((2, 3), 2.0**-10))
    assert (told.output, told.elements, told.wrong, told.nonfinite) == ("y", 6, 2, 0)
    assert told.max_abs == 2.0**-8
    assert told.max_rel == pytest.approx(2.0**-12 / 1e-3)
    # 1e-3 lies from 2^-10 on, where float16's numbers are 2^-20 apart.
    assert told.max_ulp == pytest.approx(2.0**8)
    assert told.worst == (1, 0)
    assert (told.got, told.expected, told.allowed) == (4.0 - 2.0**-8, 4.0, 2.0**-10)


def test_the_worst_is_what_is_furthest_beyond_its_own_allowance() -> None:
    got, expected = np.array([1.5, 1.1, 1.0]), np.ones(3)
    told = compare("y", "float32", got, expected, np.array([1.0, 0.01, 0.0]))
    assert (told.wrong, told.worst) == (1, (1,))
    got[2] = nan
    assert compare("y", "float32", got, expected, np.array([1.0, 0.01, 0.0])).worst == (2,)


def test_what_is_not_judged() -> None:
    told = compare("y", "float32", np.array([nan, 7.0, 1.0]), np.ones(3), np.full(3, inf))
    assert (told.wrong, told.max_abs, told.elements) == (0, 0.0, 3)


def test_integers_are_exact() -> None:
    big = np.array([2**62, 2**62 + 1, 3])
    told = compare("y", "int64", big, big.copy(), np.zeros(3))
    assert (told.wrong, told.max_abs) == (0, 0.0)
    told = compare("y", "int64", big + np.array([1, 0, 0]), big, np.zeros(3))
    assert (told.wrong, told.max_abs, told.worst) == (1, 1.0, (0,))


def test_empty_and_scalar_outputs() -> None:
    empty = np.zeros((0, 3))
    assert compare("y", "float32", empty, empty, empty) == Compared("y", 0, 0, 0.0, 0.0, 0.0)
    told = compare("y", "float32", np.array(2.0), np.array(1.0), np.array(0.5))
    assert (told.wrong, told.worst, told.expected) == (1, (), 1.0)


def test_shapes() -> None:
    with pytest.raises(
        ShapesDisagreeError, match=r"y has the shape \(3,\), the reference \(3, 1\)"
    ):
        compare("y", "float32", np.zeros(3), np.zeros((3, 1)), np.zeros((3, 1)))
