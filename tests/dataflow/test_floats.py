"""Abstract floats against concrete arithmetic: the abstract result holds the concrete one.

The reference computes with fractions and rounds by itself; infinities and NaN are IEEE 754's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import (
    BF16,
    F16,
    F32,
    F64,
    FORMATS,
    INF,
    AbstractFloat,
    Format,
    Mode,
    exactly,
)

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def rounded(form: Format, exact: Fraction) -> float:
    """The nearest number of the format, ties to even; infinite on overflow."""
    if exact == 0:
        return 0.0
    exponent = form.least
    magnitude = abs(exact)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - form.precision + 1)
    whole = round(magnitude / unit)
    value = whole * unit
    if value > Fraction(form.largest):
        return math.copysign(INF, exact)
    return math.copysign(float(value), exact)


@st.composite
def numbers(draw: Any, form: Format) -> Any:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([0.0, -0.0, 1.0, -1.0, form.largest, -form.largest]))
    if kind == 1:
        return draw(st.sampled_from([form.smallest, -form.smallest, form.normal]))
    exponent = draw(st.integers(form.least - 3, form.greatest - 1) if kind < 4 else
                    st.integers(-8, 8))  # fmt: skip
    value = draw(st.integers(-255, 255)) / 128 * 2.0**exponent
    return rounded(form, Fraction(value))


@st.composite
def sets(draw: Any, form: Format) -> tuple[AbstractFloat, float]:
    """A set of values and one of them."""
    a, b = draw(numbers(form)), draw(numbers(form))
    lo, hi = min(a, b), max(a, b)
    if draw(st.booleans()):
        hi = lo
    flags = [draw(st.integers(0, 5)) == 0 for _ in range(3)]
    inside = min(max(draw(numbers(form)), lo), hi)
    choices = [lo, hi, inside]
    choices += [x for x, there in zip((-INF, INF, math.nan), flags, strict=True) if there]
    chosen = draw(st.sampled_from(choices))
    return AbstractFloat(lo, hi, *flags), chosen


def special(function: Callable[..., float], *args: float) -> float:
    try:
        return function(*args)
    except (OverflowError, ValueError):
        return math.nan


def concrete(form: Format, op: str, *args: float) -> float:
    """IEEE 754's result of one operation."""
    if any(math.isnan(x) for x in args):
        return math.nan
    if any(math.isinf(x) for x in args):
        a, b = args[0], args[1]
        if op == "add":
            return a + b
        if op == "multiply":
            return a * b
        if op == "multiply_add":
            # Finite factors may overflow in doubles, but not here.
            return a * b + args[2]
        return a / b if b else math.nan if math.isnan(a) else math.copysign(INF, a)
    exact = [Fraction(x) for x in args]
    if op == "add":
        return rounded(form, exact[0] + exact[1])
    if op == "multiply":
        return rounded(form, exact[0] * exact[1])
    if op == "multiply_add":
        return rounded(form, exact[0] * exact[1] + exact[2])
    if not exact[1]:
        sign = math.copysign(1, args[0]) * math.copysign(1, args[1])
        return math.nan if not exact[0] else sign * INF
    return rounded(form, exact[0] / exact[1])


def overflowed(result: float, args: tuple[float, ...], op: str) -> bool:
    """True where the domain assumes that this does not happen."""
    pole = op == "divide" and args[1] == 0
    return math.isinf(result) and not any(map(math.isinf, args)) and not pole


def check(form: Format, op: str, drawn: list[tuple[AbstractFloat, float]]) -> None:
    values = tuple(value for _, value in drawn)
    result = concrete(form, op, *values)
    abstract = getattr(floats, op)(*(a for a, _ in drawn), Mode(form))
    assume(not overflowed(result, values, op))
    assert abstract.contains(result), (op, drawn, result, abstract)


@pytest.mark.parametrize("form", [F32, F16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("op", ["add", "multiply", "divide", "multiply_add"])
@SETTINGS
@given(data=st.data())
def test_arithmetic_contains_the_concrete_result(form: Format, op: str, data: Any) -> None:
    count = 3 if op == "multiply_add" else 2
    check(form, op, [data.draw(sets(form)) for _ in range(count)])


@SETTINGS
@given(data=st.data())
def test_a_square_contains_the_concrete_result(data: Any) -> None:
    a, value = data.draw(sets(F32))
    c, addend = data.draw(sets(F32))
    result = concrete(F32, "multiply", value, value)
    if not overflowed(result, (value,), "multiply"):
        assert floats.square(a, Mode(F32)).contains(result)
    fused = concrete(F32, "multiply_add", value, value, addend)
    assume(not overflowed(fused, (value, addend), "multiply_add"))
    assert floats.multiply_add(a, a, c, Mode(F32), same=True).contains(fused)


@pytest.mark.parametrize("keep_nan", [False, True])
@SETTINGS
@given(data=st.data())
def test_extremes_contain_the_concrete_result(keep_nan: bool, data: Any) -> None:
    (a, x), (b, y) = data.draw(sets(F32)), data.draw(sets(F32))
    for function, pick in ((floats.maximum, max), (floats.minimum, min)):
        if math.isnan(x) or math.isnan(y):
            result = math.nan if keep_nan else (y if math.isnan(x) else x)
        else:
            result = pick(x, y)
        assert function(a, b, keep_nan).contains(result), (a, x, b, y)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp2": lambda x: INF if x > 1023 else 2.0**x,
    "log2": lambda x: -INF if x == 0 else math.log2(x) if x > 0 else math.nan,
    "square_root": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "tangent": math.tanh,
    "negate": lambda x: -x,
    "absolute": abs,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@SETTINGS
@given(data=st.data())
def test_functions_contain_the_concrete_result(name: str, data: Any) -> None:
    a, x = data.draw(sets(F32))
    function = getattr(floats, name)
    abstract = function(a) if name in ("negate", "absolute") else function(a, Mode(F32))
    exact = math.nan if math.isnan(x) else FUNCTIONS[name](x)
    result = exact if not math.isfinite(exact) else rounded(F32, Fraction(exact))
    assume(not (math.isinf(result) and not math.isinf(x) and name == "exp2"))
    assert abstract.contains(result), (a, x, result, abstract)


@SETTINGS
@given(data=st.data())
def test_reciprocal_root_contains_the_concrete_result(data: Any) -> None:
    a, x = data.draw(sets(F32))
    abstract = floats.reciprocal_root(a, Mode(F32))
    if math.isnan(x) or x < 0:
        result = math.nan
    elif x == 0:
        result = math.copysign(INF, x)
    else:
        result = 0.0 if x == INF else rounded(F32, Fraction(1 / math.sqrt(x)))
    assert abstract.contains(result), (a, x, result, abstract)


@pytest.mark.parametrize("relation", ["lt", "le", "gt", "ge", "eq", "ne", "ltu", "neu", "num"])
@SETTINGS
@given(data=st.data())
def test_a_decided_comparison_is_the_concrete_one(relation: str, data: Any) -> None:
    (a, x), (b, y) = data.draw(sets(F32)), data.draw(sets(F32))
    found = floats.compare(relation, a, b)
    unordered = math.isnan(x) or math.isnan(y)
    tests = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}
    if relation == "num":
        truth = not unordered
    elif len(relation) == 3:
        truth = unordered or tests[relation[:2]]
    else:
        truth = tests[relation] and not unordered
    assert found in (None, truth), (relation, a, x, b, y)


@pytest.mark.parametrize("form", [F16, BF16], ids=lambda f: f.name)
@SETTINGS
@given(data=st.data())
def test_a_conversion_contains_the_concrete_result(form: Format, data: Any) -> None:
    a, x = data.draw(sets(F32))
    result = x if not math.isfinite(x) else rounded(form, Fraction(x))
    assume(not (math.isinf(result) and not math.isinf(x)))
    assert floats.convert(a, Mode(form)).contains(result)


@SETTINGS
@given(data=st.data())
def test_flushing_contains_zero_for_a_subnormal_result(data: Any) -> None:
    (a, x), (b, y) = data.draw(sets(F32)), data.draw(sets(F32))
    result = concrete(F32, "multiply", x, y)
    assume(not overflowed(result, (x, y), "multiply"))
    if math.isfinite(result) and abs(result) < F32.normal:
        result = 0.0
    assert floats.multiply(a, b, Mode(F32, flush=True)).contains(result)


def test_points_stay_points() -> None:
    mode = Mode(F32)
    assert floats.add(exactly(0.1), exactly(0.0), mode).point == rounded(F32, Fraction(0.1))
    assert floats.multiply(exactly(3.0), exactly(0.5), mode).point == 1.5
    assert floats.exp2(exactly(-INF), mode).is_zero
    assert floats.multiply(exactly(0.0), floats.finite(F32), mode).is_zero
    assert floats.multiply(exactly(0.0), floats.anything(F32), mode).nan


def test_what_must_overflow_is_infinite() -> None:
    assert floats.exp2(exactly(200.0), Mode(F32)).is_positive_infinity
    assert floats.convert(exactly(1e30), Mode(F16)).is_positive_infinity


@pytest.mark.parametrize("form", [F16, BF16, F32])
def test_the_largest_doubles_convert(form: Format) -> None:
    most = F64.largest
    assert floats.convert(floats.finite(F64), Mode(form)) == floats.finite(form)
    assert floats.convert(exactly(most), Mode(form)).is_positive_infinity
    assert floats.convert(exactly(-most), Mode(form)).is_negative_infinity
    assert floats.convert(exactly(most), Mode(form, nearest=False)).contains(form.largest)


def test_bit_patterns_decode() -> None:
    assert floats.decode(F32, 0xFF800000).is_negative_infinity
    assert floats.decode(BF16, 0xFF80).is_negative_infinity
    assert floats.decode(F16, 0x3C00).point == 1.0
    assert floats.decode(F32, 0x7FC00000).nan
    assert sorted(FORMATS) == ["bf16", "f16", "f32", "f64"]


@pytest.mark.parametrize("form", list(FORMATS.values()), ids=lambda form: form.name)
@pytest.mark.parametrize("value", [1.0, -2.5, math.inf, -math.inf])
def test_bits_and_back(form: Format, value: float) -> None:
    word = floats.encode(form, floats.exactly(value))
    assert word is not None
    assert floats.decode(form, word).point == value


def test_no_one_bit_pattern() -> None:
    for value in (0.0, math.nan, 0.1):
        assert floats.encode(floats.BF16, floats.exactly(value)) is None
    assert floats.encode(floats.F32, floats.AbstractFloat(1.0, 2.0)) is None


@pytest.mark.parametrize(
    ("form", "byte", "value"),
    [
        ("e5m2", 0, 0.0), ("e5m2", 0x3C, 1.0), ("e5m2", 0x7C, math.inf), ("e5m2", 0x7B, 57344.0),
        ("e4m3", 0x38, 1.0), ("e4m3", 0x7E, 448.0), ("e4m3", 0x01, 2.0**-9), ("e4m3", 0xB8, -1.0),
    ],
)  # fmt: skip
def test_numbers_of_eight_bits(form: str, byte: int, value: float) -> None:
    assert floats.decode_byte(form, byte).point == value
