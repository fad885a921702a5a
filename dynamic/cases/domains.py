"""Numbers brought into the domain of an input and rounded to its type."""

from __future__ import annotations

from math import ceil, floor, isinf
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.cases.number_types import NUMBER_TYPES
from ptxlint.dynamic.cases.seeds import F64, I64, Draws, Shape
from ptxlint.dynamic.cases.values import STRATEGIES, first_of_three
from ptxlint.dynamic.emulator.elements import kept_as, to_elements, to_numbers
from ptxlint.dynamic.operators.spec import Dims, Domain, SpecError, size_of

Elements: TypeAlias = NDArray[Any]
_SMALL: Final = 8.0
"""Integers reach so far where their domain does not say."""


def filled(
    draws: Draws, shape: Shape, dtype: str, values: str, domain: Domain, dims: Dims
) -> Elements:
    """The elements of a tensor in the strategy `values`, as a kernel finds them in memory.

    Arrays are of the type itself, or of unsigned integers with its bits where numpy has none.
    Raises `SpecError` for a strategy or a type that is none, and for a domain without numbers.
    """
    if values not in STRATEGIES:
        raise SpecError(f"values {values!r} is none of {', '.join(STRATEGIES)}")
    if dtype in NUMBER_TYPES:
        return _floats(draws, shape, dtype, values, domain)
    try:
        kind = kept_as(dtype)
    except KeyError:
        raise SpecError(f"tensors of {dtype} cannot be filled: numbers of it are unknown") from None
    low, high = _integer_range(kind, domain, dims, shape)
    out: Elements = to_elements(_integers(draws, shape, values, low, high), dtype)
    return out


# Floating point -------------------------------------------------------------------------------
def _floats(draws: Draws, shape: Shape, dtype: str, values: str, domain: Domain) -> Elements:
    kind, strategy = NUMBER_TYPES[dtype], STRATEGIES[values]
    numbers = strategy.fill(draws, shape, kind)
    inside = _clipped(numbers, domain) if strategy.is_edge else _folded(numbers, domain)
    if strategy.is_finite or not kind.has_infinity:
        inside = np.clip(inside, -kind.largest, kind.largest)
    rounded = _rounded(inside, dtype, domain)
    if domain.nonzero:
        rounded = np.where(rounded == 0, _some_number(domain), rounded)
    out: Elements = to_elements(rounded, dtype)
    return out


def _clipped(numbers: F64, domain: Domain) -> F64:
    """What lies outside becomes the edge; NaN stays where the domain is all numbers."""
    if not isinf(domain.low) or not isinf(domain.high):
        numbers = np.where(np.isnan(numbers), _some_number(domain), numbers)
    out: F64 = np.clip(numbers, domain.low, domain.high)
    return out


def _folded(numbers: F64, domain: Domain) -> F64:
    """What lies outside is mirrored at the edge; a narrow or far domain is moved to and spread
    over, so that it is not its edges alone that are met."""
    low, high = domain.low, domain.high
    if isinf(low) and isinf(high):
        return numbers
    width = high - low
    if low <= 0.0 <= high:
        moved = numbers * min(1.0, width / 4)
    else:
        moved = _some_number(domain) + numbers * (1.0 if isinf(width) else width / 4)
    if isinf(high):
        return low + np.abs(moved - low)
    if isinf(low):
        return high - np.abs(moved - high)
    if width == 0:
        return np.full(numbers.shape, low)
    there = np.mod(moved - low, 2 * width)
    out: F64 = np.clip(low + np.minimum(there, 2 * width - there), low, high)
    return out


def _rounded(numbers: F64, dtype: str, domain: Domain) -> F64:
    """Rounded to the type, toward the inside where the edge of the domain is passed by it."""
    out: F64 = to_numbers(to_elements(numbers, dtype), dtype)
    step = NUMBER_TYPES[dtype].spacing(np.where(np.isfinite(out), out, 0.0))
    out = np.where(out > domain.high, out - step, out)
    out = np.where(out < domain.low, out + step, out)
    if (out > domain.high).any():
        raise SpecError(f"no {dtype} lies from {domain.low} to {domain.high}")
    return out


def _some_number(domain: Domain) -> float:
    """A number of the domain that is not 0: the middle, 1, or next to an edge."""
    low, high = float(domain.low), float(domain.high)
    if not isinf(low) and not isinf(high):
        middle = low + (high - low) / 2
        return middle if middle != 0 or not domain.nonzero else high
    if low <= 1.0 <= high:
        return 1.0
    return low + 1.0 if isinf(high) else high - 1.0


# Integers -------------------------------------------------------------------------------------
def _integer_range(
    kind: np.dtype[Any], domain: Domain, dims: Dims, shape: Shape
) -> tuple[int, int]:
    """The least and the greatest integer that a tensor may hold; small where nothing is said."""
    if kind.kind == "b":
        return 0, 1
    limits = np.iinfo(kind)
    if domain.below is not None:
        least, most = 0.0, float(size_of(domain.below, dims) - 1)
    else:
        least = min(-_SMALL, domain.high - _SMALL) if isinf(domain.low) else domain.low
        most = max(_SMALL, domain.low + _SMALL) if isinf(domain.high) else domain.high
    low = int(max(ceil(max(least, domain.low)), limits.min))
    high = int(min(floor(min(most, domain.high)), limits.max))
    if low > high and 0 not in shape:
        raise SpecError(f"no integer of {kind.name} lies in its domain for {dict(dims)}")
    return low, max(low, high)


def _integers(draws: Draws, shape: Shape, values: str, low: int, high: int) -> I64:
    """Random ones; their ends where a strategy is about edges, the least where it is of zeros, or
    of rows without an entry: a mask has none in these."""
    zero = min(max(0, low), high)
    if values in ("zeros", "constant"):
        return np.full(shape, zero, dtype=np.int64)
    some = draws.integers(low, high, shape)
    if values in ("masked-rows", "zero-rows"):
        return np.where(first_of_three(shape), zero, some)
    if STRATEGIES[values].is_edge:
        ends = np.where(draws.signs(shape) > 0, low, high)
        return np.where(draws.uniform(shape) < 0.5, ends, some)
    return some


__all__ = ["Elements", "filled"]
