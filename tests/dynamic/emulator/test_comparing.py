"""Comparisons and choices (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.elements import to_elements

Apply = Callable[..., NDArray[np.generic]]
INFINITY, NAN = float("inf"), float("nan")
NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0**-140, INFINITY, -INFINITY, NAN, 1.5]
FORMATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
ALL = {
    **ORDERED,
    **{
        f"{name}u": lambda a, b, holds=holds: isnan(a) or isnan(b) or holds(a, b)
        for name, holds in ORDERED.items()
    },
    "num": lambda a, b: not (isnan(a) or isnan(b)),
    "nan": lambda a, b: isnan(a) or isnan(b),
}


def words(values: list[float], kind: str) -> NDArray[np.generic]:
    kept = to_elements(np.array(values), FORMATS[kind])
    return kept.view(f"u{kept.dtype.itemsize}")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ALL)
def test_of_floating_point_numbers(apply: Apply, name: str, kind: str) -> None:
    tiny = {"f16": 2.0**-24, "bf16": 2.0**-130}.get(kind, 2.0**-140)
    values = [tiny if v == 2.0**-140 else v for v in NUMBERS]
    rows = [(a, b) for a in values for b in values]
    a, b = (words(list(column), kind) for column in zip(*rows, strict=True))
    got = apply(f"setp.{name}.{kind} $0, $1, $2;", "pred", a, b)
    assert got.tolist() == [ALL[name](x, y) for x, y in rows]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["lt", "ne", "geu", "nan"])
def test_of_pairs(apply: Apply, name: str, kind: str) -> None:
    """The first destination is that of the lower halves, the second that of the upper ones."""
    rows = [(a, b) for a in NUMBERS for b in NUMBERS if 2.0**-140 not in (abs(a), abs(b))]
    a, b = (words(list(column), kind).astype(np.uint32) for column in zip(*rows, strict=True))
    c = np.arange(len(rows)) % 3 == 0
    # The upper halves are the lower ones of the next lane.
    packed = [each | np.roll(each, -1) << np.uint32(16) for each in (a, b)]
    low = [ALL[name](x, y) for x, y in rows]
    high = [*low[1:], low[0]]
    for text, expected in (("$0|%p31", low), ("%p31|$0", high)):
        got = apply(f"setp.{name}.{kind}x2 {text}, $1, $2;", "pred", *packed)
        assert got.tolist() == expected
        got = apply(f"setp.{name}.or.{kind}x2 {text}, $1, $2, $3;", "pred", *packed, c)
        assert got.tolist() == [x or bool(y) for x, y in zip(expected, c, strict=True)]


INTEGER = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64", "b32"])
@pytest.mark.parametrize("name", INTEGER)
def test_of_integers(apply: Apply, name: str, kind: str) -> None:
    if (name in ("lo", "ls", "hi", "hs") and kind[0] != "u") or (
        kind[0] == "b" and name not in ("eq", "ne")
    ):
        return
    size = int(kind[1:])
    edges = [0, 1, (1 << size - 1) - 1, 1 << size - 1, (1 << size) - 1, 77]
    rows = [(a, b) for a in edges for b in edges]
    a, b = (np.array(column, dtype=f"u{size // 8}") for column in zip(*rows, strict=True))

    def number(word: int) -> int:
        return word - (1 << size) if kind[0] == "s" and word >> size - 1 else word

    got = apply(f"setp.{name}.{kind} $0, $1, $2;", "pred", a, b)
    assert got.tolist() == [INTEGER[name](number(x), number(y)) for x, y in rows]


def test_subnormal_numbers_are_zero_where_they_are_flushed(apply: Apply) -> None:
    a, b = words([2.0**-140, -(2.0**-140)], "f32"), words([0.0, 0.0], "f32")
    assert apply("setp.gt.f32 $0, $1, $2;", "pred", a, b).tolist() == [True, False]
    assert apply("setp.eq.ftz.f32 $0, $1, $2;", "pred", a, b).tolist() == [True, True]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("and", lambda holds, c: holds and c),
        ("or", lambda holds, c: holds or c),
        ("xor", lambda holds, c: holds != c),
    ],
)
def test_joined_with_a_predicate(
    apply: Apply, join: str, expected: Callable[[bool, bool], bool]
) -> None:
    a, b = np.array([1, 1, 2, 2], dtype=np.uint32), np.array([1, 2, 1, 2], dtype=np.uint32)
    for flag in (False, True):
        c = np.full(4, flag)
        got = apply(f"setp.lt.{join}.u32 $0, $1, $2, $3;", "pred", a, b, c)
        assert got.tolist() == [expected(x < y, flag) for x, y in zip(a, b, strict=True)]
        # The second destination gets the opposite comparison, joined alike.
        text = f"setp.lt.{join}.u32 %p31|$0, $1, $2, $3;"
        other = apply(text, "pred", a, b, c)
        assert other.tolist() == [expected(not x < y, flag) for x, y in zip(a, b, strict=True)]


def test_results_in_registers(apply: Apply) -> None:
    a, b = words([1.0, NAN, 3.0], "f32"), words([2.0, 2.0, 2.0], "f32")
    assert apply("set.lt.u32.f32 $0, $1, $2;", "b32", a, b).tolist() == [0xFFFFFFFF, 0, 0]
    assert apply("set.lt.f32.f32 $0, $1, $2;", "b32", a, b).tolist() == [0x3F800000, 0, 0]
    assert apply("set.geu.s32.f32 $0, $1, $2;", "b32", a, b).tolist() == [0, *[0xFFFFFFFF] * 2]
    h, k = words([1.0, NAN, 3.0], "f16"), words([2.0, 2.0, 2.0], "f16")
    assert apply("set.lt.f16.f16 $0, $1, $2;", "b16", h, k).tolist() == [0x3C00, 0, 0]
    assert apply("set.lt.u16.f16 $0, $1, $2;", "b16", h, k).tolist() == [0xFFFF, 0, 0]


def test_choices_look_at_no_value(apply: Apply) -> None:
    a = np.array([0x7F800001, 0xFFC00123], dtype=np.uint32)
    b = np.array([5, 6], dtype=np.uint32)
    c = np.array([True, False])
    assert apply("selp.f32 $0, $1, $2, $3;", "b32", a, b, c).tolist() == [0x7F800001, 6]
    negated = apply("selp.b32 $0, $1, $2, !$3;", "b32", a, b, c)
    assert negated.tolist() == [5, 0xFFC00123]


def test_choice_by_sign(apply: Apply) -> None:
    a, b = np.full(5, 10, dtype=np.uint32), np.full(5, 20, dtype=np.uint32)
    c = words([1.0, -1.0, -0.0, NAN, 0.0], "f32")
    assert apply("slct.u32.f32 $0, $1, $2, $3;", "b32", a, b, c).tolist() == [10, 20, 10, 20, 10]
    d = np.array([1, 0, 0xFFFFFFFF, 0x80000000, 7], dtype=np.uint32)
    assert apply("slct.u32.s32 $0, $1, $2, $3;", "b32", a, b, d).tolist() == [10, 10, 20, 20, 10]
