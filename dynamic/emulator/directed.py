"""Directed rounding of float64: toward zero, down and up (PTX ISA, `.rz`, `.rm`, `.rp`).

A result is rounded to nearest first; the sign of what that misses says whether the neighbour is to
be taken. It comes from an error-free transformation where that is exact, else from fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from ptxlint.dynamic.emulator.rounding import F64, fma64, two_product, two_sum

Operation = Callable[..., F64]
_USUAL: Final = 2.0**400
"""Between this and its reciprocal products of two, and what they miss, neither overflow nor lose
bits."""


def _sum_missed(out: F64, a: F64, b: F64) -> F64:
    # Exact also for subnormal numbers; infinities are looked at by the caller.
    return two_sum(a, b)[1]


def _product_missed(out: F64, a: F64, b: F64) -> F64:
    return two_product(a, b)[1]


def _quotient_missed(out: F64, a: F64, b: F64) -> F64:
    product, rest = two_product(out, b)
    found: F64 = ((a - product) - rest) * np.copysign(1.0, b)
    return found


def _root_missed(out: F64, a: F64) -> F64:
    product, rest = two_product(out, out)
    found: F64 = (a - product) - rest
    return found


def _nothing_known(out: F64, *args: F64) -> F64:
    return np.zeros_like(out)


_EXACTLY: Final[dict[str, Callable[..., Fraction]]] = {
    "mul": lambda out, a, b: a * b - out,
    "div": lambda out, a, b: (a - out * b) * (1 if b > 0 else -1),
    "sqrt": lambda out, a: a - out * out,
    "fma": lambda out, a, b, c: a * b + c - out,
}
_MISSED: Final[dict[str, Operation]] = {
    "add": _sum_missed, "mul": _product_missed, "div": _quotient_missed, "sqrt": _root_missed,
    "fma": _nothing_known,
}  # fmt: skip
_NEAREST: Final[dict[str, Operation]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "sqrt": np.sqrt, "fma": fma64,
}  # fmt: skip


def directed64(name: str, mode: str, *given: F64) -> F64:
    """`add`, `mul`, `div`, `sqrt` or `fma` of float64, rounded once by `rz`, `rm` or `rp`."""
    args = np.broadcast_arrays(*given)
    out = _NEAREST[name](*args)
    is_finite = np.logical_and.reduce([np.isfinite(x) for x in args])
    missed = _missed(name, out, is_finite, args)
    if mode == "rz":
        moves = (missed > 0) & (out < 0) | (missed < 0) & (out > 0)
        moved = np.nextafter(out, 0.0)
    else:
        moves = missed < 0 if mode == "rm" else missed > 0
        moved = np.nextafter(out, -np.inf if mode == "rm" else np.inf)
    rounded: F64 = np.where(moves, moved, out)
    if mode == "rm" and name in ("add", "fma"):
        first = args[0] if name == "add" else args[0] * args[1]
        # What cancels is minus zero (IEEE 754, 6.3).
        cancels = (rounded == 0) & (missed == 0) & (np.signbit(first) | np.signbit(args[-1]))
        rounded = np.where(cancels, -0.0, rounded)
    return rounded


def _missed(name: str, out: F64, is_finite: np.ndarray, args: tuple[F64, ...]) -> F64:
    """What has the sign of the exact result less the rounded one."""
    found: F64 = np.where(is_finite & np.isfinite(out), _MISSED[name](out, *args), 0.0)
    divides_by_zero = (args[1] == 0) if name == "div" else np.False_
    # Too large for a number: infinity misses it on the far side.
    found = np.where(is_finite & np.isinf(out) & ~divides_by_zero, -np.sign(out), found)
    if name == "add":
        return found
    sizes = [np.abs(x) for x in (out, *args)]
    is_usual = np.logical_and.reduce([(s < _USUAL) & (s > 1 / _USUAL) for s in sizes])
    is_exact = np.logical_or.reduce([x == 0 for x in args])
    if name == "fma":
        is_usual = is_exact = np.zeros(out.shape, dtype=bool)
    found = np.where(is_exact & np.isfinite(out), 0.0, found)
    doubtful = is_finite & np.isfinite(out) & ~is_usual & ~is_exact
    exactly = _EXACTLY[name]
    for at in zip(*np.nonzero(doubtful), strict=True):
        rest = exactly(Fraction(float(out[at])), *(Fraction(float(x[at])) for x in args))
        found[at] = (rest > 0) - (rest < 0)
    return found


__all__ = ["directed64"]
