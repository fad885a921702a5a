"""Rounding against exact arithmetic with fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.dynamic.emulator.rounding import (
    FORMATS,
    Format,
    decoded,
    encoded,
    fma32,
    fma64,
    from_bf16,
    narrowed,
    to_bf16,
)

NARROW = [name for name in FORMATS if name != "f32"]


def every(form: Format) -> list[float]:
    """All numbers of a narrow format, ascending, each once."""
    words = np.arange(1 << (form.width - 1), dtype=np.uint64)
    values = decoded(words, form)
    return [float(v) for v in values if np.isfinite(v)]


def nearest(number: Fraction, grid: list[Fraction], mode: str) -> Fraction:
    """A number between the ends of the grid of non-negative numbers, rounded onto it."""
    below = max(g for g in grid if g <= number)
    above = min(g for g in grid if g >= number)
    if below == above or mode in ("rz", "rm"):
        return below
    if mode == "rp":
        return above
    middle = (below + above) / 2
    if number != middle:
        return below if number < middle else above
    if mode == "rna":
        return above
    return below if grid.index(below) % 2 == 0 else above


@pytest.mark.parametrize("name", ["e5m2", "e4m3", "e2m3", "e3m2", "e2m1"])
@pytest.mark.parametrize("mode", ["rn", "rna", "rz", "rm", "rp"])
def test_narrow_formats_round_as_their_list_of_numbers_says(name: str, mode: str) -> None:
    form = FORMATS[name]
    grid = [Fraction(v) for v in every(form)]
    rng = np.random.default_rng(7)
    picks = rng.uniform(0, form.largest, 200).tolist() + [
        (float(a) + float(b)) / 2 for a, b in pairwise(grid)
    ]
    got = narrowed(np.array(picks), form, mode)
    for value, rounded in zip(picks, got.tolist(), strict=True):
        assert Fraction(rounded) == nearest(Fraction(value), grid, mode), (value, mode)


@pytest.mark.parametrize("name", NARROW)
def test_bits_and_numbers_are_one_to_one(name: str) -> None:
    form = FORMATS[name]
    step = max(1, (1 << form.width) >> 14)
    words = np.arange(0, 1 << form.width, step, dtype=np.uint64)
    values = decoded(words, form)
    told = ~np.isnan(values)
    assert (encoded(values, form)[told] == words[told]).all()


@pytest.mark.parametrize(
    ("value", "mode", "saturates", "expected"),
    [
        (1e6, "rn", False, float("inf")),
        (1e6, "rn", True, 65504.0),
        (1e6, "rz", False, 65504.0),
        (-1e6, "rp", False, -65504.0),
        (-1e6, "rm", False, float("-inf")),
        (float("inf"), "rz", False, float("inf")),
        (65519.99, "rn", False, 65504.0),
        (65520.0, "rn", False, float("inf")),
    ],
)
def test_overflow(value: float, mode: str, saturates: bool, expected: float) -> None:
    assert narrowed(np.array([value]), FORMATS["f16"], mode, saturates)[0] == expected


def test_f16_and_f32_round_as_numpy_does() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(20_000) * 10.0 ** rng.integers(-12, 6, 20_000)
    with np.errstate(over="ignore"):
        assert (narrowed(values, FORMATS["f16"]) == values.astype(np.float16)).all()
    wide = rng.standard_normal(20_000) * 10.0 ** rng.integers(-46, 39, 20_000)
    with np.errstate(over="ignore"):
        assert (narrowed(wide, FORMATS["f32"]) == wide.astype(np.float32)).all()


def test_bf16_is_rounded_to_even_and_has_one_nan() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 32, 50_000, dtype=np.uint32).view(np.float32)
    got = to_bf16(values)
    with np.errstate(invalid="ignore"):
        expected = narrowed(values.astype(np.float64), FORMATS["bf16"])
        same = (from_bf16(got) == expected) | np.isnan(values)
    assert same.all()
    assert (got[np.isnan(values)] == 0x7FFF).all()


bits32 = st.integers(0, (1 << 32) - 1)
bits64 = st.integers(0, (1 << 64) - 1)


def floats32(*words: int) -> list[np.ndarray]:
    return [np.array([w], dtype=np.uint32).view(np.float32) for w in words]


@settings(deadline=None)
@given(bits32, bits32, bits32)
def test_fma32_rounds_the_exact_result_once(a: int, b: int, c: int) -> None:
    x, y, z = floats32(a, b, c)
    with np.errstate(all="ignore"):
        got = float(fma32(x, y, z)[0])
        if not np.isfinite([x[0], y[0], z[0]]).all():
            plain = float(x[0].astype(np.float64) * y[0] + z[0])
            assert got == plain or (np.isnan(got) and np.isnan(plain))
            return
    exact = Fraction(float(x[0])) * Fraction(float(y[0])) + Fraction(float(z[0]))
    assert got == rounded_to(exact, 24, -149, FORMATS["f32"].largest)


def test_fma32_where_rounding_twice_would_go_wrong() -> None:
    # 1 + 2^-24 is half way between two numbers; the product's rest decides, 2^-80 below it.
    one = np.float32(1)
    for sign in (1, -1):
        a = np.array([2.0**-24 * (1 + 2.0**-23)], dtype=np.float32)
        b = np.array([1 - sign * 2.0**-23], dtype=np.float32)
        got = fma32(a, b, np.array([one]))
        exact = Fraction(float(a[0])) * Fraction(float(b[0])) + 1
        assert float(got[0]) == rounded_to(exact, 24, -149, FORMATS["f32"].largest)
    rng = np.random.default_rng(11)
    c = rng.integers(1 << 23, 1 << 24, 3000).astype(np.float32)
    a = rng.integers(1, 1 << 12, 3000).astype(np.float32) * np.float32(2.0**-12)
    b = np.float32(2048.0) / a
    got = fma32(a, b.astype(np.float32) * np.float32(2.0**-12), c)
    for x, y, z, r in zip(a, b.astype(np.float32) * np.float32(2.0**-12), c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(r) == rounded_to(exact, 24, -149, FORMATS["f32"].largest)


@settings(deadline=None)
@given(bits64, bits64, bits64)
def test_fma64_rounds_the_exact_result_once(a: int, b: int, c: int) -> None:
    check64(a, b, c)


@settings(deadline=None)
@given(
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.integers(-3, 3),
)
def test_fma64_under_cancellation(a: float, b: float, ulps: int) -> None:
    product = a * b
    summand = -product
    for _ in range(abs(ulps)):
        summand = float(np.nextafter(summand, np.inf if ulps > 0 else -np.inf))
    words = [int(np.float64(v).view(np.uint64)) for v in (a, b, summand)]
    check64(*words)


def check64(a: int, b: int, c: int) -> None:
    x, y, z = (np.array([w], dtype=np.uint64).view(np.float64) for w in (a, b, c))
    with np.errstate(all="ignore"):
        got = float(fma64(x, y, z)[0])
        if not np.isfinite([x[0], y[0], z[0]]).all():
            plain = float(x[0] * y[0] + z[0])
            assert got == plain or (np.isnan(got) and np.isnan(plain))
            return
    exact = Fraction(float(x[0])) * Fraction(float(y[0])) + Fraction(float(z[0]))
    assert got == rounded_to(exact, 53, -1074, float(np.finfo(np.float64).max))


def rounded_to(exact: Fraction, digits: int, smallest: int, largest: float) -> float:
    """The nearest number of a format, ties to even; infinite beyond the largest one."""
    if not exact:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    scale = max(exponent - digits + 1, smallest)
    units = size / Fraction(2) ** scale
    whole = units.numerator // units.denominator
    rest = units - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2):
        whole += 1
    value = whole * Fraction(2) ** scale
    number = float("inf") if value > Fraction(largest) else float(value)
    return number if exact > 0 else -number
