"""Conversions between all pairs of types that `cvt` takes (PTX ISA, "cvt")."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, floor, trunc

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.elements import to_elements, to_numbers
from ptxlint.dynamic.emulator.rounding import FORMATS, decoded, encoded, narrowed

Apply = Callable[..., NDArray[np.generic]]
FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
INTEGERS = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
INFINITY = float("inf")
VALUES = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.49999997, 1.0, -1.0, 100.25, -100.75, 127.5,
    128.0, -128.5, -129.0, 255.5, 256.0, 32767.5, -32768.5, 65535.5, 2147483520.0, 2147483648.0,
    -2147483904.0, 4294967040.0, 4294967296.0, 9.2e18, 9.3e18, -9.3e18, 1.8e19, 1.9e19, 1e30,
    -1e30, INFINITY, -INFINITY, float("nan"), 2.0**-126, 2.0**-140, -(2.0**-149), 1e-7, 65504.0,
    65519.0, 65520.0, 3.4e38,
]  # fmt: skip


def width(kind: str) -> int:
    return 16 if kind == "bf16" else int(kind[1:])


def register(kind: str) -> int:
    """Registers have 16 bits at least."""
    return max(16, width(kind))


def span(kind: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    size = width(kind)
    return (-(1 << size - 1), (1 << size - 1) - 1) if kind[0] == "s" else (0, (1 << size) - 1)


def words(kind: str) -> NDArray[np.generic]:
    """Values of a floating-point type as the bits of registers."""
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal(200) * 10.0 ** rng.integers(-6, 12, 200)
    kept = to_elements(np.array([*VALUES, *drawn.tolist()]), FLOATS[kind])
    return kept.view(f"u{width(kind) // 8}")


def whole(kind: str) -> NDArray[np.generic]:
    """Integers of a type, as registers hold them."""
    size, is_signed = width(kind), kind[0] == "s"
    low, high = span(kind)
    rng = np.random.default_rng(4)
    edges = [low, low + 1, -1, 0, 1, 2, high - 1, high, high // 2, high // 2 + 1]
    steps = [sign * (1 << at) + by for at in range(size) for by in (-1, 0, 1) for sign in (1, -1)]
    drawn = [int(rng.integers(low, high, endpoint=True, dtype=np.int64 if is_signed else np.uint64))
             for _ in range(150)]  # fmt: skip
    chosen = [v for v in [*edges, *steps, *drawn] if low <= v <= high]
    mask = (1 << register(kind)) - 1
    return np.array([v & mask for v in chosen], dtype=f"u{register(kind) // 8}")


def signed(word: int, kind: str) -> int:
    size = width(kind)
    word &= (1 << size) - 1
    return word - (1 << size) if kind[0] == "s" and word >> size - 1 else word


ROUND: dict[str, Callable[[Fraction], int]] = {
    "rni": round, "rzi": trunc, "rmi": floor, "rpi": ceil,
}  # fmt: skip


@pytest.mark.parametrize(("source", "to"), [*product(FLOATS, INTEGERS)])
def test_to_integers(apply: Apply, source: str, to: str) -> None:
    a = words(source)
    size = width(to)
    low, high = span(to)
    for mode, turn in ROUND.items():
        got = apply(f"cvt.{mode}.{to}.{source} $0, $1;", f"b{register(to)}", a)
        view = a if source == "bf16" else a.view(FLOATS[source])
        for value, word in zip(
            to_numbers(view, FLOATS[source]).tolist(), got.tolist(), strict=True
        ):
            if np.isnan(value):
                want = 1 << size - 1 if source == "f64" or size == 64 else 0
            elif np.isinf(value):
                want = high if value > 0 else low
            else:
                want = min(max(turn(Fraction(value)), low), high)
            assert word & (1 << size) - 1 == want & (1 << size) - 1, (value, mode, word, want)
            if size < register(to):
                # A wider register gets the sign.
                assert word == signed(word, to) & (1 << register(to)) - 1


@pytest.mark.parametrize(("source", "to"), [*product(INTEGERS, FLOATS)])
def test_from_integers(apply: Apply, source: str, to: str) -> None:
    a = whole(source)
    modes = ("rn", "rz", "rm", "rp")
    for mode in modes:
        got = apply(f"cvt.{mode}.{to}.{source} $0, $1;", f"b{register(to)}", a)
        view = got if to == "bf16" else got.view(FLOATS[to])
        for word, value in zip(a.tolist(), to_numbers(view, FLOATS[to]).tolist(), strict=True):
            exact = signed(word, source)
            assert value == integer_rounded(exact, to, mode), (exact, mode, value)


def integer_rounded(exact: int, to: str, mode: str) -> float:
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[to]
    size = abs(exact)
    spare = max(0, size.bit_length() - digits)
    kept, rest = size >> spare, size & ((1 << spare) - 1)
    half = 1 << spare - 1 if spare else 0
    outward = {"rz": False, "rp": exact > 0, "rm": exact < 0}.get(mode)
    if outward is None:
        kept += bool(spare) and (rest > half or (rest == half and kept & 1 == 1))
    else:
        kept += bool(rest) and outward
    value = kept << spare
    if to == "f16" and value > 65504:
        number = 65504.0 if outward is False else INFINITY
    else:
        number = float(value)
    return number if exact >= 0 else -number


@pytest.mark.parametrize(("source", "to"), [*product(INTEGERS, INTEGERS)])
def test_between_integers(apply: Apply, source: str, to: str) -> None:
    a = whole(source)
    for saturates in (False, True):
        size = width(to)
        low, high = (
            (-(1 << size - 1), (1 << size - 1) - 1) if to[0] == "s" else (0, (1 << size) - 1)
        )
        sat = ".sat" if saturates else ""
        got = apply(f"cvt{sat}.{to}.{source} $0, $1;", f"b{register(to)}", a)
        for word, out in zip(a.tolist(), got.tolist(), strict=True):
            value = signed(word, source)
            want = min(max(value, low), high) if saturates else value
            assert out == signed(want, to) & (1 << register(to)) - 1


NARROWING = [
    ("f64", "f32"), ("f64", "f16"), ("f64", "bf16"), ("f32", "f16"), ("f32", "bf16"),
    ("f16", "bf16"), ("bf16", "f16"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "to"), NARROWING)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_to_narrower_formats(apply: Apply, source: str, to: str, mode: str) -> None:
    a = words(source)
    got = apply(f"cvt.{mode}.{to}.{source} $0, $1;", f"b{width(to)}", a)
    view = a if source == "bf16" else a.view(FLOATS[source])
    exact = to_numbers(view, FLOATS[source])
    want = narrowed(exact, FORMATS[to], mode)
    seen = got if to == "bf16" else got.view(FLOATS[to])
    values = to_numbers(seen, FLOATS[to])
    assert ((values == want) | (np.isnan(values) & np.isnan(want))).all()
    assert (np.signbit(values) == np.signbit(want))[~np.isnan(want)].all()
    nan = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}[to]
    assert set(got[np.isnan(exact)].tolist()) == {nan}


@pytest.mark.parametrize(("to", "source"), [p for p in product(FLOATS, FLOATS) if p[0] != p[1]])
def test_to_wider_formats(apply: Apply, source: str, to: str) -> None:
    if (source, to) in NARROWING:
        return
    a = words(source)
    got = apply(f"cvt.{to}.{source} $0, $1;", f"b{width(to)}", a)
    view = a if source == "bf16" else a.view(FLOATS[source])
    want, values = to_numbers(view, FLOATS[source]), to_numbers(got.view(FLOATS[to]), FLOATS[to])
    assert ((values == want) | (np.isnan(values) & np.isnan(want))).all()


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_to_whole_numbers_of_the_same_format(apply: Apply, kind: str) -> None:
    a = words(kind)
    view = a if kind == "bf16" else a.view(FLOATS[kind])
    values = to_numbers(view, FLOATS[kind])
    for mode, turn in {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.items():
        got = apply(f"cvt.{mode}.{kind}.{kind} $0, $1;", f"b{width(kind)}", a)
        seen = to_numbers(got if kind == "bf16" else got.view(FLOATS[kind]), FLOATS[kind])
        want = turn(values)
        assert ((seen == want) | (np.isnan(seen) & np.isnan(want))).all()


def singles(*values: float) -> NDArray[np.uint32]:
    return np.array(values, dtype=np.float32).view(np.uint32)


def test_modifiers(apply: Apply) -> None:
    a = singles(-2.0, 0.25, 3.0, np.nan, 2.0**-140, np.inf, -np.inf)
    sat = apply("cvt.sat.f32.f32 $0, $1;", "b32", a).view(np.float32)
    assert sat.tolist() == [0.0, 0.25, 1.0, 0.0, 2.0**-140, 1.0, 0.0]
    flushed = apply("cvt.ftz.f64.f32 $0, $1;", "b64", a).view(np.float64)
    assert flushed[4] == 0
    relu = apply("cvt.rn.relu.bf16.f32 $0, $1;", "b16", a)
    assert relu.tolist() == [0, 0x3E80, 0x4040, 0x7FFF, 0, 0x7F80, 0]
    finite = apply("cvt.rn.satfinite.f16.f32 $0, $1;", "b16", a)
    assert finite[[5, 6, 3]].tolist() == [0x7BFF, 0xFBFF, 0x7FFF]


@pytest.mark.parametrize("mode", ["rn", "rna", "rz"])
def test_tf32_keeps_ten_bits(apply: Apply, mode: str) -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal(500).astype(np.float32)
    a[:4] = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12]
    got = apply(f"cvt.{mode}.tf32.f32 $0, $1;", "b32", a.view(np.uint32)).view(np.float32)
    want = narrowed(a.astype(np.float64), FORMATS["tf32"], mode)
    assert (got == want).all()
    assert not (got.view(np.uint32) & np.uint32(0x1FFF)).any()


@pytest.mark.parametrize("to", ["f16x2", "bf16x2"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_pairs_take_the_first_into_the_upper_half(apply: Apply, to: str, mode: str) -> None:
    part = to[:-2]
    a, b = words("f32"), words("f32")[::-1].copy()
    got = apply(f"cvt.{mode}.{to}.f32 $0, $1, $2;", "b32", a, b)
    upper = apply(f"cvt.{mode}.{part}.f32 $0, $1;", "b16", a)
    lower = apply(f"cvt.{mode}.{part}.f32 $0, $1;", "b16", b)
    assert got.tolist() == [int(u) << 16 | int(v) for u, v in zip(upper, lower, strict=True)]


@pytest.mark.parametrize("to", ["e4m3", "e5m2"])
def test_pairs_of_eight_bits(apply: Apply, to: str) -> None:
    form = FORMATS[to]
    a, b = words("f32"), words("f32")[::-1].copy()
    got = apply(f"cvt.rn.satfinite.{to}x2.f32 $0, $1, $2;", "b16", a, b)
    parts = []
    for x in (a, b):
        exact = x.view(np.float32).astype(np.float64)
        parts.append(encoded(narrowed(exact, form, "rn", saturates=True), form).astype(np.uint16))
    assert got.tolist() == (parts[0] << np.uint16(8) | parts[1]).tolist()
    # NaN stays NaN, infinity is cut off at the largest number.
    top = {"e4m3": 0x7E, "e5m2": 0x7B}[to]
    x, y = singles(np.nan, np.inf), singles(-np.inf, 1e9)
    pair = apply(f"cvt.rn.satfinite.{to}x2.f32 $0, $1, $2;", "b16", x, y).tolist()
    assert pair == [0x7F00 | 0x80 | top, top << 8 | top]


@pytest.mark.parametrize("source", ["e4m3", "e5m2"])
def test_pairs_of_eight_bits_widened(apply: Apply, source: str) -> None:
    a = np.arange(0, 65536, 97, dtype=np.uint16)
    got = apply(f"cvt.rn.f16x2.{source}x2 $0, $1;", "b32", a)
    values = got.view(np.uint16).reshape(-1, 2).view(np.float16).astype(np.float64)
    for at, shift in ((0, 0), (1, 8)):
        want = decoded((a >> np.uint16(shift)).astype(np.uint8), FORMATS[source])
        seen = values[:, at]
        assert ((seen == want) | (np.isnan(seen) & np.isnan(want))).all()


def test_pairs_of_four_bits_widened(apply: Apply) -> None:
    a = np.arange(256, dtype=np.uint8)
    got = apply("cvt.rn.f16x2.e2m1x2 $0, $1;", "b32", a)
    # OCP Microscaling Formats 1.0, table 4: a sign, two bits of exponent, one of mantissa.
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    values = got.view(np.uint16).reshape(-1, 2).view(np.float16)
    assert values[:, 0].tolist() == numbers[a & 15].tolist()
    assert values[:, 1].tolist() == numbers[a >> 4].tolist()


def test_pairs_of_halves_to_eight_bits(apply: Apply) -> None:
    rng = np.random.default_rng(8)
    halves = (rng.standard_normal(600) * 100).astype(np.float16)
    got = apply("cvt.rn.satfinite.e4m3x2.f16x2 $0, $1;", "b16", halves.view(np.uint32))
    form = FORMATS["e4m3"]
    bytes_ = encoded(narrowed(halves.astype(np.float64), form, "rn", saturates=True), form)
    assert got.view(np.uint8).tolist() == bytes_.tolist()
