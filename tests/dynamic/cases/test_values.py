"""What each strategy is there for."""

from __future__ import annotations

import numpy as np
import pytest

from ptxlint.dynamic.cases.number_types import NUMBER_TYPES
from ptxlint.dynamic.cases.seeds import F64, Draws
from ptxlint.dynamic.cases.values import STRATEGIES

F32 = NUMBER_TYPES["float32"]
SHAPE = (24, 301)


def drawn(values: str, dtype: str = "float32", shape: tuple[int, ...] = SHAPE) -> F64:
    return STRATEGIES[values].fill(Draws(3, "x", values), shape, NUMBER_TYPES[dtype])


def test_graded_rows_differ_and_rise() -> None:
    x = drawn("graded")
    squares = (x * x).mean(axis=1)
    assert (np.abs(squares - 1) > 0.1).mean() > 0.7
    assert squares.max() / squares.min() > 3
    left, right = np.abs(x[:, :100]).mean(), np.abs(x[:, -100:]).mean()
    assert right > 1.8 * left
    assert abs((x > 0).mean() - 0.5) < 0.03
    # Exponentials of a row are spread over more than a few elements.
    p = np.exp(x - x.max(axis=1, keepdims=True))
    assert ((p / p.sum(axis=1, keepdims=True)).max(axis=1) < 0.6).all()


def test_graded_says_something_of_a_single_row() -> None:
    assert abs((drawn("graded", shape=(1, 1000)) ** 2).mean() - 1) > 0.2


def test_zero_is_far_from_negative_and_shifted() -> None:
    assert drawn("negative").max() <= -2
    assert drawn("shifted").min() > 10


def test_boundary_holds_what_is_told() -> None:
    x = drawn("boundary")
    for number in (0.0, 1.0, 1 + 2.0**-23, 1 - 2.0**-24, 2.0**-126, 2.0**-149, 10.0, -1.0):
        assert (x == number).any()
    assert np.signbit(x[x == 0]).any()
    assert not np.signbit(x[x == 0]).all()


@pytest.mark.parametrize(("dtype", "kind"), [("float16", np.float32), ("float64", np.float64)])
def test_exponentials_overflow_and_underflow(dtype: str, kind: type[np.floating]) -> None:
    with np.errstate(over="ignore", under="ignore"):
        over, under = (np.exp(drawn(v, dtype).astype(kind)) for v in ("overflow", "underflow"))
    assert 0.15 < np.isinf(over).mean() < 0.35
    assert 0.15 < (over == 0).mean() + (over < np.finfo(kind).tiny).mean() < 0.5
    assert (under == 0).all()
    assert np.abs(drawn("overflow", "float16")).max() < NUMBER_TYPES["float16"].largest


def test_extremes_are_finite_and_nonfinite_are_not() -> None:
    x = drawn("finite-extremes")
    assert np.isfinite(x).all()
    assert {F32.largest, -F32.largest, F32.largest / 2} <= set(x.reshape(-1).tolist())
    odd = drawn("nonfinite")
    assert np.isnan(odd).any()
    assert np.isposinf(odd).any()
    assert np.isneginf(odd).any()
    assert np.isfinite(odd).mean() > 0.9
    assert not np.isfinite(drawn("nonfinite", shape=(1,))).any()


def test_rows_of_zeros_and_masked_rows_start_with_the_first() -> None:
    x, masked = drawn("zero-rows"), drawn("masked-rows")
    assert (x == 0).all(axis=1).tolist() == [row % 3 == 0 for row in range(24)]
    assert np.isneginf(masked).all(axis=1).tolist() == [row % 3 == 0 for row in range(24)]
    # One axis has no rows: elements stand for them, so that a weight does not vanish.
    assert (drawn("zero-rows", shape=(7,)) == 0).tolist() == [i % 3 == 0 for i in range(7)]


def test_sums_of_integers_and_constants_are_exact() -> None:
    x = drawn("integers")
    assert set(np.unique(x).tolist()) == {-3, -2, -1, 0, 1, 2, 3}
    every = {float(STRATEGIES["constant"].fill(Draws(s), (5,), F32).max()) for s in range(40)}
    assert len(every) > 8
    assert all(number * 4 == int(number * 4) and number for number in every)


def test_tiny_squares_vanish() -> None:
    x = drawn("tiny").astype(np.float32)
    assert (x * x == 0).all()
    assert (x != 0).all()


@pytest.mark.parametrize("values", STRATEGIES)
def test_same_draws_for_every_dtype(values: str) -> None:
    """Up to what a strategy takes from the type: its limits."""
    half, single = drawn(values, "float16"), drawn(values, "float32")
    same = (half == single) | (np.isnan(half) & np.isnan(single))
    assert same.mean() > {"tiny": -1, "boundary": 0.6, "finite-extremes": 0.7}.get(values, 0.999)


@pytest.mark.parametrize("values", STRATEGIES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 1, 5)])
def test_every_shape(values: str, shape: tuple[int, ...]) -> None:
    assert drawn(values, shape=shape).shape == shape
    assert STRATEGIES[values].summary.endswith((".", ":"))


def test_varied_rows_are_of_several_kinds() -> None:
    rows = drawn("varied", shape=(5, 200))
    assert (rows[1] <= -0.25).all()
    assert (rows[2] * 2 % 1 == 0).all()
    assert (rows[2] == 0).any()
    assert (np.abs(rows[3]) < 0.03).all()
    assert 0.7 < rows[4].mean() < 0.8
    assert rows[4].std() < 0.3
    q, k = (STRATEGIES["varied"].fill(Draws(3, name), (50, 128), F32) for name in "qk")
    assert np.abs(q @ k.T / 128**0.5).max() < np.log(65504)
    items = np.abs(drawn("varied", shape=(3, 5, 200))).max(axis=(1, 2))
    assert items[1] < 0.03 < items[0]
