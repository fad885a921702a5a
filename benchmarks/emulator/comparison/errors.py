"""By how much an approximate instruction may miss the exact result (PTX ISA, each instruction's
page; docs/emulator.md lists the numbers)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.rounding import from_bf16

Array = np.ndarray[Any, Any]

_FORMATS: Final = {"f16": (10, -14), "bf16": (7, -126), "f32": (23, -126), "f64": (52, -1022)}
"""Bits of the fraction, and the exponent of the smallest normal number."""
_NORMAL: Final = 2.0**-126


def scalar(kind: str) -> str:
    """The format of a kind's parts."""
    return kind.removesuffix("x2")


def numbers(words: Array, kind: str) -> Array:
    """Registers of a kind as float64, the parts of pairs side by side."""
    words = np.ascontiguousarray(words)
    types: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    with np.errstate(invalid="ignore"):
        if scalar(kind) == "bf16":
            return from_bf16(words.view(np.uint16)).astype(np.float64)
        return words.view(types[scalar(kind)]).astype(np.float64)


def last_place(values: Array, kind: str) -> Array:
    """One unit in the last place of numbers as a format has them."""
    fraction, lowest = _FORMATS[scalar(kind)]
    _, exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))
    place = np.where(values == 0, lowest, np.maximum(exponent - 1, lowest))
    out: Array = np.ldexp(1.0, place - fraction)
    return out


class Bound(NamedTuple):
    """An exact function, and the error allowed to each of its results (NaN: none is named)."""

    exact: Callable[..., Array]
    allowed: Callable[..., Array]
    words: str


def _ulps(count: float) -> Callable[..., Array]:
    return lambda truth, kind, *x: count * last_place(truth, kind)


def _relative(power: float) -> Callable[..., Array]:
    return lambda truth, kind, *x: np.maximum(
        2.0**power * np.abs(truth), last_place(np.zeros(1), kind)
    )


def _absolute(power: float) -> Callable[..., Array]:
    return lambda truth, kind, *x: np.full(truth.shape, 2.0**power)


def _logarithm(truth: Array, kind: str, x: Array) -> Array:
    return np.where((x > 0.5) & (x < 2), 2.0**-22, 2.0**-22 * np.abs(truth))


def _circular(truth: Array, kind: str, x: Array) -> Array:
    size = np.abs(x)
    near = np.where(size <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)
    return np.where(size <= 100 * np.pi, near, np.nan)


def _quotient(truth: Array, kind: str, a: Array, b: Array) -> Array:
    size = np.abs(b)
    is_named = (size >= _NORMAL) & (size <= 1 / _NORMAL)
    return np.where(is_named, 2 * last_place(truth, kind), np.nan)


def _none(truth: Array, kind: str, *x: Array) -> Array:
    return np.full(truth.shape, np.nan)


BOUNDS: Final[dict[str, Bound]] = {
    "ex2.f32": Bound(np.exp2, _ulps(2), "2 ulp"),
    "lg2.f32": Bound(np.log2, _logarithm, "2^-22 absolute in (0.5, 2), else relative"),
    "rcp.f32": Bound(lambda a: 1 / a, _ulps(1), "1 ulp"),
    "rsqrt.f32": Bound(lambda a: 1 / np.sqrt(a), _relative(-22.9), "2^-22.9 relative"),
    "sqrt.f32": Bound(np.sqrt, _relative(-23), "2^-23 relative"),
    "sin.f32": Bound(np.sin, _circular, "2^-20.5 to 2π, 2^-14.7 to 100π"),
    "cos.f32": Bound(np.cos, _circular, "2^-20.5 to 2π, 2^-14.7 to 100π"),
    "tanh.f32": Bound(np.tanh, _relative(-11), "2^-11 relative"),
    "ex2.f16": Bound(np.exp2, _relative(-9.9), "2^-9.9 relative"),
    "ex2.bf16": Bound(np.exp2, _relative(-7), "2^-7 relative"),
    "tanh.f16": Bound(np.tanh, _absolute(-10.987), "2^-10.987 absolute"),
    "tanh.bf16": Bound(np.tanh, _absolute(-8), "2^-8 absolute"),
    "div.full.f32": Bound(lambda a, b: a / b, _quotient, "2 ulp for |b| in [2^-126, 2^126]"),
    "div.approx.f32": Bound(lambda a, b: a / b, _quotient, "2 ulp for |b| in [2^-126, 2^126]"),
    "rcp.f64": Bound(lambda a: 1 / a, _none, "none"),
    "rsqrt.f64": Bound(lambda a: 1 / np.sqrt(a), _none, "none"),
}  # fmt: skip
"""By what an operation calls its bound."""


__all__ = ["BOUNDS", "last_place", "numbers", "scalar"]
