"""Floating-point instructions, against exact fractions and float64 (PTX ISA, "Floating-Point
Instructions", "Half Precision Floating Point Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.elements import to_elements, to_numbers

Apply = Callable[..., NDArray[np.generic]]
WORDS = {"f32": np.uint32, "f64": np.uint64, "f16": np.uint16, "bf16": np.uint16}
TORCH = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}
DIGITS = {"f32": (24, -149), "f64": (53, -1074), "f16": (11, -24), "bf16": (8, -133)}
LARGEST = {"f32": 2.0**128, "f64": float("inf"), "f16": 65536.0, "bf16": 2.0**128}
"""The power of two that is beyond the format."""
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, 3.0, float("inf"), float("-inf"), float("nan"), 2.0**-126,
    -(2.0**-126), 2.0**-130, -(2.0**-140), 2.0**-149, 65504.0, 1e-7, 3.4e38, -3.4e38, 1e30, 1e-30,
]  # fmt: skip


def bits(values: list[float], kind: str) -> NDArray[np.generic]:
    return to_elements(np.array(values), TORCH[kind]).view(WORDS[kind])


def numbers(words: NDArray[np.generic], kind: str) -> NDArray[np.float64]:
    view = words if kind == "bf16" else words.view(np.dtype(TORCH[kind]))
    return to_numbers(view, TORCH[kind])


def samples(kind: str, count: int, seed: int, spread: int = 8) -> NDArray[np.generic]:
    """Special numbers and random ones, as words."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(count) * 10.0 ** rng.integers(-spread, spread, count)
    return bits([*SPECIAL, *drawn.tolist()], kind)


def pairs(kind: str, count: int = 300, spread: int = 8) -> tuple[NDArray[np.generic], ...]:
    """Each special number with each, and random ones with each other."""
    special = bits(SPECIAL, kind)
    a = np.concatenate([np.repeat(special, len(special)), samples(kind, count, 1, spread)])
    b = np.concatenate([np.tile(special, len(special)), samples(kind, count, 2, spread)[::-1]])
    return a, b


def rounded(exact: Fraction, kind: str, mode: str = "rn") -> float:
    """An exact number in a format."""
    digits, smallest = DIGITS[kind]
    if not exact:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    scale = max(exponent - digits + 1, smallest)
    units = size / Fraction(2) ** scale
    whole, rest = units.numerator // units.denominator, units - units.numerator // units.denominator
    outward = {"rz": False, "rp": exact > 0, "rm": exact < 0}.get(mode)
    if outward is None:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    else:
        up = outward and rest > 0
    value = (whole + up) * Fraction(2) ** scale
    limit = LARGEST[kind]
    if limit != float("inf") and value >= Fraction(limit):
        largest = float((2**digits - 1) * Fraction(limit) / 2**digits)
        number = float("inf") if outward is not False else largest
    else:
        number = float(value)
    return number if exact > 0 else -number


def same(got: float, want: float) -> bool:
    """Equal, signs of zeros as well; NaN is NaN."""
    if np.isnan(want):
        return bool(np.isnan(got))
    return got == want and np.signbit(got) == np.signbit(want)


def check(
    got: NDArray[np.generic],
    kind: str,
    mode: str,
    operands: list[NDArray[np.float64]],
    plain: Callable[..., float],
    exact: Callable[..., Fraction],
) -> None:
    """Each result is the exact one rounded; where no exact one exists or it is zero, what IEEE
    says, which numpy knows."""
    values = numbers(got, kind)
    for at, row in enumerate(zip(*(o.tolist() for o in operands), strict=True)):
        with np.errstate(all="ignore"):
            ieee = float(plain(*(np.float64(x) for x in row)))
        if all(np.isfinite(row)):
            try:
                true = exact(*(Fraction(x) for x in row))
            except ZeroDivisionError:
                true = Fraction(0)
            if true:
                want = rounded(true, kind, mode)
                # What is rounded to zero keeps the sign of the true result.
                want = np.copysign(want, float(np.sign(float(true > 0) - 0.5)))
                assert same(values[at], float(want)), (row, values[at], want)
                continue
        if ieee == 0 and all(np.isfinite(row)) and mode == "rm" and plain in ADDENDS:
            # Opposite numbers cancel to minus zero when rounding down.
            is_negative = any(np.signbit(x) for x in ADDENDS[plain](*row))
            ieee = -0.0 if is_negative else 0.0
        assert same(values[at], ieee), (row, values[at], ieee)


def ADD(a: float, b: float) -> float:  # noqa: N802
    return a + b


def SUB(a: float, b: float) -> float:  # noqa: N802
    return a - b


def FMA(a: float, b: float, c: float) -> float:  # noqa: N802
    return a * b + c


ADDENDS: dict[Callable[..., float], Callable[..., tuple[float, float]]] = {
    ADD: lambda a, b: (a, b),
    SUB: lambda a, b: (a, -b),
    FMA: lambda a, b, c: (a * b, c),
}
BINARY = {
    "add": (ADD, lambda a, b: a + b),
    "sub": (SUB, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (lambda a, b: a / b, lambda a, b: a / b),
}


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_and_products_are_rounded_once(apply: Apply, name: str, kind: str) -> None:
    a, b = pairs(kind, spread=8 if kind != "f16" else 3)
    rn = ".rn" if kind in ("f32", "f64", "bf16") else ""
    got = apply(f"{name}{rn}.{kind} $0, $1, $2;", f"b{8 * a.dtype.itemsize}", a, b)
    check(got, kind, "rn", [numbers(a, kind), numbers(b, kind)], *BINARY[name])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_directed_rounding(apply: Apply, name: str, mode: str) -> None:
    a, b = pairs("f32")
    got = apply(f"{name}.{mode}.f32 $0, $1, $2;", "b32", a, b)
    check(got, "f32", mode, [numbers(a, "f32"), numbers(b, "f32")], *BINARY[name])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fused_products_are_rounded_once(apply: Apply, mode: str) -> None:
    a, b = pairs("f32", spread=4)
    c = np.resize(samples("f32", 350, 3, 4), len(a))
    # Of some the product is taken away again, so that its rest decides.
    with np.errstate(all="ignore"):
        near = -(a.view(np.float32) * b.view(np.float32))
    c[::3] = near.view(np.uint32)[::3]
    got = apply(f"fma.{mode}.f32 $0, $1, $2, $3;", "b32", a, b, c)
    operands = [numbers(x, "f32") for x in (a, b, c)]
    check(got, "f32", mode, operands, FMA, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64"])
def test_fused_products_of_other_formats(apply: Apply, kind: str) -> None:
    a, b = pairs(kind, spread=3)
    c = np.resize(samples(kind, 350, 3, 3), len(a))
    got = apply(f"fma.rn.{kind} $0, $1, $2, $3;", f"b{8 * a.dtype.itemsize}", a, b, c)
    operands = [numbers(x, kind) for x in (a, b, c)]
    check(got, kind, "rn", operands, FMA, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_reciprocals_and_roots(apply: Apply, mode: str) -> None:
    a = samples("f32", 400, 5)
    got = apply(f"rcp.{mode}.f32 $0, $1;", "b32", a)
    check(got, "f32", mode, [numbers(a, "f32")], lambda a: 1 / a, lambda a: 1 / a)
    root = numbers(apply(f"sqrt.{mode}.f32 $0, $1;", "b32", a), "f32")
    for x, y in zip(numbers(a, "f32").tolist(), root.tolist(), strict=True):
        if not np.isfinite(x) or x <= 0:
            with np.errstate(all="ignore"):
                assert same(y, float(np.sqrt(np.float32(x))))
            continue
        below = np.nextafter(np.float32(y), np.float32(0))
        above = np.nextafter(np.float32(y), np.float32(np.inf))
        exact = Fraction(x)
        if mode in ("rz", "rm"):
            assert Fraction(y) ** 2 <= exact < Fraction(float(above)) ** 2
        elif mode == "rp":
            assert Fraction(float(below)) ** 2 < exact <= Fraction(y) ** 2
        else:
            low = (Fraction(y) + Fraction(float(below))) / 2
            high = (Fraction(y) + Fraction(float(above))) / 2
            assert low**2 <= exact <= high**2


@pytest.mark.parametrize("name", ["div", "sqrt", "rcp"])
def test_doubles(apply: Apply, name: str) -> None:
    a, b = pairs("f64", spread=60)
    with np.errstate(all="ignore"):
        x, y = numbers(a, "f64"), numbers(b, "f64")
        want = {"div": x / y, "sqrt": np.sqrt(x), "rcp": 1 / x}[name]
    operands = (a, b) if name == "div" else (a,)
    text = "$0, $1, $2;" if name == "div" else "$0, $1;"
    got = numbers(apply(f"{name}.rn.f64 {text}", "b64", *operands), "f64")
    assert all(same(g, w) for g, w in zip(got.tolist(), want.tolist(), strict=True))


# Modifiers ------------------------------------------------------------------------------------
def test_flush_takes_operands_and_results_to_signed_zeros(apply: Apply) -> None:
    a = bits([2.0**-130, -(2.0**-130), 2.0**-126, 2.0**-100, -(2.0**-100)], "f32")
    b = bits([1.0, 1.0, 0.5, 2.0**-40, 2.0**-40], "f32")
    got = numbers(apply("mul.ftz.f32 $0, $1, $2;", "b32", a, b), "f32")
    want = [0.0, -0.0, 0.0, 0.0, -0.0]
    assert all(same(g, w) for g, w in zip(got.tolist(), want, strict=True))
    kept = numbers(apply("mul.f32 $0, $1, $2;", "b32", a, b), "f32")
    assert kept.tolist() == [2.0**-130, -(2.0**-130), 2.0**-127, 2.0**-140, -(2.0**-140)]
    # An operand that is flushed is a zero that is divided by.
    quotient = numbers(apply("div.rn.ftz.f32 $0, $2, $1;", "b32", a, b), "f32")
    assert quotient[:2].tolist() == [float("inf"), float("-inf")]


def test_saturation(apply: Apply) -> None:
    values = [-2.0, -0.0, 0.25, 1.0, 7.0, float("inf"), float("-inf"), float("nan")]
    a, zero = bits(values, "f32"), bits([0.0] * len(values), "f32")
    got = numbers(apply("add.sat.f32 $0, $1, $2;", "b32", a, zero), "f32")
    assert got.tolist() == [0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0, 0.0]
    half = bits(values, "f16")
    got = numbers(apply("fma.rn.sat.f16 $0, $1, $1, $1;", "b16", half), "f16")
    assert got.tolist() == [1.0, 0.0, 0.3125, 1.0, 1.0, 1.0, 0.0, 0.0]


def test_relu_keeps_nan(apply: Apply) -> None:
    values = [-2.0, 0.5, 3.0, float("nan"), float("-inf"), float("inf")]
    one = [1.0] * len(values)
    for kind in ("f16", "bf16"):
        a, b = bits(values, kind), bits(one, kind)
        got = apply(f"fma.rn.relu.{kind} $0, $1, $2, $1;", "b16", a, b)
        seen = numbers(got, kind)
        assert seen[[0, 1, 2, 4, 5]].tolist() == [0.0, 1.0, 6.0, 0.0, float("inf")]
        assert int(got[3]) == NAN[kind]


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_there_is_one_nan(apply: Apply, kind: str) -> None:
    infinity = bits([float("inf"), float("-inf")], kind)
    got = apply(f"sub.{'rn.' if kind != 'f16' else ''}{kind} $0, $1, $1;",
                f"b{8 * infinity.dtype.itemsize}", infinity)  # fmt: skip
    assert got.tolist() == [NAN[kind]] * 2


# Smaller and larger ---------------------------------------------------------------------------
def pick(a: float, b: float, largest: bool, keeps_nan: bool) -> float:
    if np.isnan(a) or np.isnan(b):
        if keeps_nan or (np.isnan(a) and np.isnan(b)):
            return float("nan")
        return b if np.isnan(a) else a
    if a == b == 0:
        signs = [np.signbit(a), np.signbit(b)]
        return -0.0 if (all(signs) if largest else any(signs)) else 0.0
    return max(a, b) if largest else min(a, b)


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("keeps_nan", [False, True])
def test_smaller_and_larger(apply: Apply, name: str, kind: str, keeps_nan: bool) -> None:
    if kind == "f64" and keeps_nan:
        return
    a, b = pairs(kind, 50)
    text = f"{name}{'.NaN' if keeps_nan else ''}.{kind} $0, $1, $2;"
    got = apply(text, f"b{8 * a.dtype.itemsize}", a, b)
    values, rows = numbers(got, kind), zip(numbers(a, kind), numbers(b, kind), strict=True)
    for value, word, (x, y) in zip(values, got.tolist(), rows, strict=True):
        want = pick(float(x), float(y), name == "max", keeps_nan)
        assert same(float(value), want), (x, y, value)
        if np.isnan(want) and kind in NAN:
            assert word == NAN[kind]


def test_sign_of_the_product_of_signs(apply: Apply) -> None:
    a, b = bits([1.0, -1.0, -2.0, 3.0], "f32"), bits([-2.0, -4.0, 1.0, 2.0], "f32")
    got = numbers(apply("min.xorsign.abs.f32 $0, $1, $2;", "b32", a, b), "f32")
    assert got.tolist() == [-1.0, 1.0, -1.0, 2.0]


def test_three_operands(apply: Apply) -> None:
    a, b, c = (bits(v, "f32") for v in ([1.0, np.nan], [5.0, 2.0], [-3.0, 7.0]))
    assert numbers(apply("max.f32 $0, $1, $2, $3;", "b32", a, b, c), "f32").tolist() == [5.0, 7.0]
    assert numbers(apply("min.f32 $0, $1, $2, $3;", "b32", a, b, c), "f32").tolist() == [-3.0, 2.0]
    kept = numbers(apply("max.NaN.f32 $0, $1, $2, $3;", "b32", a, b, c), "f32")
    assert kept[0] == 5.0
    assert np.isnan(kept[1])


def test_signs_are_changed_and_nan_is_the_canonical_one(apply: Apply) -> None:
    words = np.array([0x7FC00001, 0xFFC00001, 0x80000000, 0x3F800000], dtype=np.uint32)
    negated = apply("neg.f32 $0, $1;", "b32", words)
    assert negated.tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0, 0xBF800000]
    positive = apply("abs.f32 $0, $1;", "b32", words)
    assert positive.tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0, 0x3F800000]
    packed = np.array([0xBC003C00, 0x3C00BC00], dtype=np.uint32)
    assert apply("neg.f16x2 $0, $1;", "b32", packed).tolist() == [0x3C00BC00, 0xBC003C00]
    assert apply("abs.bf16x2 $0, $1;", "b32", packed).tolist() == [0x3C003C00, 0x3C003C00]


def test_sign_is_copied_from_the_first(apply: Apply) -> None:
    a, b = bits([-1.0, 1.0, -0.0], "f32"), bits([5.0, -6.0, 7.0], "f32")
    got = numbers(apply("copysign.f32 $0, $1, $2;", "b32", a, b), "f32")
    assert got.tolist() == [-5.0, 6.0, -7.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("finite", [1, 1, 1, 0, 0]),
        ("infinite", [0, 0, 0, 1, 0]),
        ("number", [1, 1, 1, 1, 0]),
        ("notanumber", [0, 0, 0, 0, 1]),
        ("normal", [1, 0, 1, 0, 0]),
        ("subnormal", [0, 1, 0, 0, 0]),
    ],
)
def test_properties(apply: Apply, name: str, expected: list[int]) -> None:
    a = bits([1.5, 2.0**-140, -0.0, float("-inf"), float("nan")], "f32")
    assert apply(f"testp.{name}.f32 $0, $1;", "pred", a).tolist() == [bool(e) for e in expected]


def test_pairs_are_computed_part_by_part(apply: Apply) -> None:
    rng = np.random.default_rng(4)
    for kind in ("f16", "bf16"):
        a, b, c = (bits(rng.standard_normal(200).tolist(), kind).view(np.uint32) for _ in range(3))
        got = apply(f"fma.rn.{kind}x2 $0, $1, $2, $3;", "b32", a, b, c).view(np.uint16)
        parts = [x.view(np.uint16) for x in (a, b, c)]
        single = apply(f"fma.rn.{kind} $0, $1, $2, $3;", "b16", *parts)
        assert got.tolist() == single.tolist()


# Approximations -------------------------------------------------------------------------------
def units(kind: str, want: NDArray[np.float64]) -> NDArray[np.float64]:
    """A unit in the last place of each number."""
    digits, smallest = DIGITS[kind]
    _, exponent = np.frexp(want)
    return np.ldexp(1.0, np.maximum(exponent - digits, smallest))


def relative(power: float) -> Callable[[NDArray[np.float64], NDArray[np.float64]], object]:
    return lambda x, want: np.abs(want) * 2.0**power + 2.0**-149


def in_units(count: int) -> Callable[[NDArray[np.float64], NDArray[np.float64]], object]:
    return lambda x, want: count * units("f32", want)


def absolute(power: float) -> Callable[[NDArray[np.float64], NDArray[np.float64]], object]:
    return lambda x, want: 2.0**power


TAU = 2 * np.pi
APPROXIMATE = [
    ("ex2.approx.f32", "f32", (-160, 130), np.exp2, in_units(2)),
    ("ex2.approx.ftz.f32", "f32", (-120, 127), np.exp2, in_units(2)),
    ("lg2.approx.f32", "f32", (0.5, 2), np.log2, absolute(-22)),
    ("lg2.approx.f32", "f32", (2, 1e30), np.log2, relative(-22)),
    ("rsqrt.approx.f32", "f32", (1e-30, 1e30), lambda x: 1 / np.sqrt(x), relative(-22.9)),
    ("sqrt.approx.f32", "f32", (1e-30, 1e30), np.sqrt, relative(-23)),
    ("rcp.approx.f32", "f32", (-1e3, 1e3), lambda x: 1 / x, in_units(1)),
    ("sin.approx.f32", "f32", (-TAU, TAU), np.sin, absolute(-20.5)),
    ("cos.approx.f32", "f32", (-TAU, TAU), np.cos, absolute(-20.5)),
    ("sin.approx.f32", "f32", (-50 * TAU, 50 * TAU), np.sin, absolute(-14.7)),
    ("cos.approx.f32", "f32", (-50 * TAU, 50 * TAU), np.cos, absolute(-14.7)),
    ("tanh.approx.f32", "f32", (-20, 20), np.tanh, relative(-11)),
    ("ex2.approx.f16", "f16", (-14, 15), np.exp2, relative(-9.9)),
    ("ex2.approx.ftz.bf16", "bf16", (-100, 100), np.exp2, relative(-7)),
    ("tanh.approx.f16", "f16", (-8, 8), np.tanh, absolute(-10.987)),
    ("tanh.approx.bf16", "bf16", (-8, 8), np.tanh, absolute(-8)),
]


@pytest.mark.parametrize(
    ("name", "kind", "span", "function", "bound"),
    APPROXIMATE,
    ids=[f"{row[0]}-{row[2][1]:.4g}" for row in APPROXIMATE],
)
def test_approximations_are_within_the_error_that_the_manual_states(
    apply: Apply,
    name: str,
    kind: str,
    span: tuple[float, float],
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    bound: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> None:
    rng = np.random.default_rng(17)
    a = bits(rng.uniform(*span, 900).tolist(), kind)
    got = numbers(apply(f"{name} $0, $1;", f"b{8 * a.dtype.itemsize}", a), kind)
    x = numbers(a, kind)
    want = function(x)
    fits = np.abs(want) < LARGEST[kind]
    assert fits.sum() > 800
    assert (np.abs(got - want) <= bound(x, want))[fits].all()
    assert np.isinf(got[~fits]).all()


@pytest.mark.parametrize("form", ["approx", "full"])
def test_approximate_quotients(apply: Apply, form: str) -> None:
    rng = np.random.default_rng(18)
    a, b = (bits((rng.standard_normal(900) * 1e3).tolist(), "f32") for _ in range(2))
    got = numbers(apply(f"div.{form}.f32 $0, $1, $2;", "b32", a, b), "f32")
    want = numbers(a, "f32") / numbers(b, "f32")
    assert (np.abs(got - want) <= 2 * units("f32", want)).all()


def test_quotients_by_very_large_numbers(apply: Apply) -> None:
    # The reciprocal of what is larger than 2^126 is taken for zero; div.full scales it first.
    a = bits([2.0**126, -(2.0**126), float("inf"), 2.0**126], "f32")
    b = bits([2.0**127, 2.0**127, -(2.0**127), 2.0**126], "f32")
    fast = numbers(apply("div.approx.f32 $0, $1, $2;", "b32", a, b), "f32")
    assert same(float(fast[0]), 0.0)
    assert same(float(fast[1]), -0.0)
    assert np.isnan(fast[2])
    assert fast[3] == 1.0
    full = numbers(apply("div.full.f32 $0, $1, $2;", "b32", a, b), "f32")
    assert full.tolist() == [0.5, -0.5, float("-inf"), 1.0]


CORNERS = [
    ("ex2.approx.f32", [-np.inf, -0.0, 0.0, np.inf, np.nan], [0.0, 1.0, 1.0, np.inf, np.nan]),
    ("lg2.approx.f32", [-np.inf, -1.0, -0.0, 0.0, np.inf, np.nan],
     [np.nan, np.nan, -np.inf, -np.inf, np.inf, np.nan]),
    ("rsqrt.approx.f32", [-np.inf, -1.0, -0.0, 0.0, np.inf, np.nan],
     [np.nan, np.nan, -np.inf, np.inf, 0.0, np.nan]),
    ("sqrt.approx.f32", [-np.inf, -1.0, -0.0, 0.0, np.inf, np.nan],
     [np.nan, np.nan, -0.0, 0.0, np.inf, np.nan]),
    ("rcp.approx.f32", [-np.inf, -0.0, 0.0, np.inf, np.nan],
     [-0.0, -np.inf, np.inf, 0.0, np.nan]),
    ("sin.approx.f32", [-np.inf, -0.0, 0.0, np.inf, np.nan], [np.nan, -0.0, 0.0, np.nan, np.nan]),
    ("cos.approx.f32", [-np.inf, -0.0, 0.0, np.inf, np.nan], [np.nan, 1.0, 1.0, np.nan, np.nan]),
    ("tanh.approx.f32", [-np.inf, -0.0, 0.0, np.inf, np.nan], [-1.0, -0.0, 0.0, 1.0, np.nan]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "expected"), CORNERS, ids=[c[0] for c in CORNERS])
def test_corners(apply: Apply, name: str, inputs: list[float], expected: list[float]) -> None:
    got = numbers(apply(f"{name} $0, $1;", "b32", bits(inputs, "f32")), "f32")
    assert all(same(float(g), w) for g, w in zip(got, expected, strict=True)), got


MIXED = [("add", 2), ("sub", 2), ("fma", 3)]


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize(("name", "arity"), MIXED)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm.sat"])
def test_mixed_precision_is_that_of_the_widened_operands(
    apply: Apply, narrow: str, name: str, arity: int, mode: str
) -> None:
    a, b = pairs(narrow, spread=3)
    c = np.resize(samples("f32", 300, 5, 3), len(a))
    first = [a, b][: arity - 1]
    wide = [bits(numbers(x, narrow).tolist(), "f32") for x in first]
    listed = ", ".join(f"${at}" for at in range(arity + 1))
    mixed = apply(f"{name}.{mode}.f32.{narrow} {listed};", "b32", *first, c)
    plain = apply(f"{name}.{mode}.f32 {listed};", "b32", *wide, c)
    assert (mixed == plain).all()
    assert len(np.unique(mixed)) > 20
