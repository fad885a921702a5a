"""An output held to what it should be, element by element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.cases.number_types import NUMBER_TYPES, NumberType
from ptxlint.dynamic.oracle.compared import Compared
from ptxlint.dynamic.oracle.reference import Array

Flags = NDArray[np.bool_]
_EXACT = NumberType(52, -1022, float("inf"))
"""Stands for integers: nothing of them overflows on the way."""


class ShapesDisagreeError(ValueError):
    """An output that has another shape than the reference has."""


def compare(output: str, dtype: str, got: Array, expected: Array, allowed: Array) -> Compared:
    """Hold an output to its reference.

    `got` are its numbers, exactly (float64, or integers), `dtype` the type that it had; `expected`
    is not rounded to that; `allowed` is how far an element may be off, infinite for one that is not
    judged. An element is right if it is

    - NaN where the reference is NaN, and nowhere else,
    - infinite where the reference is, with its sign, and where the reference plus what is allowed
      is beyond the largest number of `dtype`,
    - else no further off than allowed.

    Raises `ShapesDisagreeError`.
    """
    if got.shape != expected.shape:
        raise ShapesDisagreeError(
            f"{output} has the shape {_told(got.shape)}, the reference {_told(expected.shape)}"
        )
    kind = NUMBER_TYPES.get(dtype, _EXACT)
    allowed = np.broadcast_to(np.asarray(allowed, dtype=np.float64), expected.shape)
    finite = np.isfinite(got) & np.isfinite(expected)
    error = _error(got, expected, finite)
    judged = ~np.isposinf(allowed)
    odd = _odd(got, expected, allowed, kind) & judged
    wrong = (finite & (error > allowed) & judged) | odd
    share = _share(error, allowed, judged)
    worst = _worst(share, odd)
    sizes = np.abs(np.where(finite, expected, 0).astype(np.float64))
    counted = finite & judged
    with np.errstate(over="ignore"):
        relative = error[counted] / np.maximum(sizes[counted], kind.smallest_normal)
        ulp = error[counted] / kind.spacing(np.minimum(sizes[counted], kind.largest))
    return Compared(
        output,
        int(got.size),
        int(np.count_nonzero(wrong)),
        _most(error[counted]),
        _most(relative),
        _most(ulp),
        int(np.count_nonzero(odd)),
        worst,
        *((float(got[worst]), float(expected[worst]), float(allowed[worst])) if got.size else ()),
    )._replace(share=max(0.0, _most(share[finite])))


def _error(got: Array, expected: Array, finite: Flags) -> Array:
    """How far off finite elements are; exactly 0 for integers that are the same."""
    with np.errstate(all="ignore"):
        distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    out: Array = np.where(finite & (got != expected), distance, 0.0)
    # Integers that differ beyond the 53 bits of a float64 differ.
    if got.dtype.kind in "iu" and expected.dtype.kind in "iu":
        out = np.where((got != expected) & (out == 0), 1.0, out)
    return out


def _odd(got: Array, expected: Array, allowed: Array, kind: NumberType) -> Flags:
    """True where an element is NaN or infinite and should not be, or the other way round."""
    out: Flags
    if got.dtype.kind != "f":
        out = ~np.isfinite(expected)
        return out
    size = np.abs(np.where(np.isfinite(expected), expected, 0.0)) + np.where(
        np.isfinite(allowed), allowed, 0.0
    )
    may_overflow = np.isfinite(expected) & (size >= kind.overflows_at)
    same_sign = np.signbit(got) == np.signbit(expected)
    if not kind.has_infinity:
        # Beyond the largest number such types have NaN, or that number.
        beyond = may_overflow | np.isinf(expected)
        is_right = beyond & (np.isnan(got) | (same_sign & (np.abs(got) == kind.largest)))
        out = ((np.isnan(got) != np.isnan(expected)) | np.isinf(expected)) & ~is_right
        return out
    is_right = np.where(
        np.isnan(expected),
        np.isnan(got),
        np.where(np.isinf(got), same_sign & (np.isinf(expected) | may_overflow), True),
    )
    lost = np.isfinite(got) & ~np.isfinite(expected)
    stray = np.isnan(got) & ~np.isnan(expected)
    out = ~is_right.astype(np.bool_) | lost | stray
    return out


def _share(error: Array, allowed: Array, judged: Flags) -> Array:
    """Errors as shares of what is allowed; -1 for what is not judged."""
    with np.errstate(all="ignore"):
        share = np.where(error > 0, error / np.where(judged, allowed, 1.0), 0.0)
    return np.where(judged, share, -1.0)


def _worst(share: Array, odd: Flags) -> tuple[int, ...]:
    """Where a NaN or an infinity is wrong first, else the largest error against what is allowed."""
    if not share.size:
        return ()
    first = int(np.argmax(np.where(odd, np.inf, share)))
    return tuple(int(i) for i in np.unravel_index(first, share.shape))


def _most(values: Array) -> float:
    return float(values.max()) if values.size else 0.0


def _told(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


__all__ = ["ShapesDisagreeError", "compare"]
