"""Directed rounding of float64, held to exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from math import copysign, inf, isinf, isnan, isqrt, nan, nextafter
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator.directed import directed64

MODES = ("rz", "rm", "rp")
TINY, LARGEST = 5e-324, float.fromhex("0x1.fffffffffffffp1023")
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, TINY, -TINY, 2.0**-1022, -(2.0**-1022), LARGEST, -LARGEST, 0.1, -0.3,
    1 + 2.0**-52, 3.0, 2.0**-600, 2.0**600, -(2.0**500), inf, -inf, nan,
]  # fmt: skip


def below(exact: Fraction) -> float:
    """The largest float64 that is not above a number; minus infinity below all."""
    try:
        near = float(exact)
    except OverflowError:
        near = inf if exact > 0 else -inf
    if isinf(near):
        return LARGEST if near > 0 else -inf
    return near if Fraction(near) <= exact else nextafter(near, -inf)


def expected(exact: Fraction, mode: str) -> float:
    """A number that is not zero, rounded."""
    down, up = below(exact), -below(-exact)
    if mode == "rm" or (mode == "rz" and exact > 0):
        return down
    return up


def root(a: Fraction, mode: str) -> float:
    """The square root of a float64: the integers around it decide."""
    shift = 2 * 1200
    whole = isqrt(int(a * 2**shift))
    exact = Fraction(whole, 2 ** (shift // 2))
    if exact * exact != a:
        exact += Fraction(1, 2 ** (shift // 2 + 2))
    return expected(exact, mode)


CASES: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, lambda a, b: a + b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b),
    "fma": (3, lambda a, b, c: a * b + c),
}


def operands(arity: int) -> list[tuple[float, ...]]:
    random = np.random.default_rng(3)
    special = SPECIAL if arity == 2 else SPECIAL[::2]
    out = list(itertools.product(special, repeat=arity))
    drawn = random.standard_normal((300, arity)) * 10.0 ** random.integers(-3, 4, (300, arity))
    far = np.ldexp(random.uniform(1, 2, (200, arity)), random.integers(-1074, 1023, (200, arity)))
    return out + [tuple(map(float, row)) for row in (*drawn, *far)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_rounded_once(name: str, mode: str) -> None:
    arity, exactly = CASES[name]
    rows = operands(arity)
    with np.errstate(all="ignore"):
        got = directed64(name, mode, *np.array(rows).T)
        nearest = {"add": np.add, "mul": np.multiply, "div": np.divide}.get(name)
    checked = 0
    for row, value in zip(rows, got.tolist(), strict=True):
        if not all(np.isfinite(row)) or (name == "div" and row[1] == 0):
            if nearest is not None:
                with np.errstate(all="ignore"):
                    plain: Any = nearest(*row)
                assert value == plain or (isnan(value) and isnan(plain)), (row, value)
            continue
        exact = exactly(*map(Fraction, row))
        if exact:
            assert value == expected(exact, mode), (row, value)
            checked += 1
        else:
            assert value == 0
    assert checked > 400


@pytest.mark.parametrize("mode", MODES)
def test_square_roots(mode: str) -> None:
    rows = [abs(x) for (x, _) in operands(2) if np.isfinite(x) and x]
    got = directed64("sqrt", mode, np.array(rows))
    assert got.tolist() == [root(Fraction(x), mode) for x in rows]


def test_what_cancels_is_minus_zero_when_rounding_down() -> None:
    one, other = np.array([1.0, 0.0, -0.0]), np.array([-1.0, -0.0, -0.0])
    signs = {m: [copysign(1, x) for x in directed64("add", m, one, other).tolist()] for m in MODES}
    assert signs == {"rz": [1, 1, -1], "rm": [-1, -1, -1], "rp": [1, 1, -1]}
    fused = directed64("fma", "rm", np.array([2.0]), np.array([0.5]), np.array([-1.0]))
    assert np.signbit(fused).all()


def test_instructions_take_their_mode(apply: Callable[..., Any]) -> None:
    one, third = (np.array([x]).view(np.uint64) for x in (1.0, 3.0))
    for mode, last in (("rz", 0x3FD5555555555555), ("rp", 0x3FD5555555555556)):
        assert apply(f"div.{mode}.f64 $0, $1, $2;", "b64", one, third).tolist() == [last]
        assert apply(f"rcp.{mode}.f64 $0, $1;", "b64", third).tolist() == [last]
    tiny = np.array([1], dtype=np.uint64)
    assert apply("sub.rm.f64 $0, $1, $2;", "b64", one, tiny).tolist() == [0x3FEFFFFFFFFFFFFF]
