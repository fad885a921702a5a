"""How far off a right kernel may be, from its reference alone.

Rounding an operand somewhere on the way is, to first order, as if inputs had been rounded. So the
reference is evaluated a few times on inputs that are off by up to one rounding each, at random, and
what that changes is what one rounding an operand does to a result, cancellation and all. A sum of
`n` terms in an unknown order rounds `growth(n)` times. What is allowed is

    growth(n) * spread(unit of the arithmetic)      sums in float32 (float64 for float64)
    + KEPT * spread(unit of the dtype)              operands rounded to the dtype on the way
    + (FINAL * unit of the arithmetic + 2 * unit of the output) * |expected|
                                                    approximate functions, rounding of the result
    + ONE * unit of the arithmetic                  a term of size 1, cancelled (exp(x) - 1)
    + the smallest number of the output's type

Constants are measured (docs/gate.md). A right kernel may overflow where its inputs are so large
that their squares are beyond the range of its arithmetic: elements for which infinite inputs in
their place give another result are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.cases.number_types import NUMBER_TYPES, NumberType
from ptxlint.dynamic.cases.seeds import Draws
from ptxlint.dynamic.operators.spec import Operator, Tensor
from ptxlint.dynamic.oracle.reference import Array, Evaluate, Outputs

_PROBES: Final = 4
"""Evaluations on inputs that are off at random."""
KEPT: Final = 2.0
FINAL: Final = 8.0
ONE: Final = 8.0
_HEADROOM: Final = 64.0
"""So many squares may be added before a sum is beyond the range."""
_LONG: Final = 16
"""Elements of a row that has a median of its own."""
_SAME: Final = 1e-3
"""Results that differ by less, relative to their size, are the same."""


def growth(terms: int) -> float:
    """How many roundings the sum of so many terms amounts to, in any order.

    At most one a term; with rounding errors that are independent of each other, 6 times the square
    root (N. J. Higham and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis",
    SIAM J. Sci. Comput. 41(5), 2019).
    """
    return min(float(terms), 6 * sqrt(terms))


def allowance(
    operator: Operator,
    dtype: str,
    arguments: Mapping[str, Any],
    evaluate: Evaluate,
    expected: Outputs,
    output_types: Sequence[str] = (),
) -> Outputs:
    """How far off each element of each output may be; infinite for one that is not judged.

    `arguments` are the reference's, `expected` what `evaluate` makes of them; `output_types` are
    the types that a kernel's outputs have (that of the case where they are not given). A tolerance
    that the spec gives takes the place of the bound. Raises `ReferenceFailedError` as `evaluate`.
    """
    exact = NUMBER_TYPES["float64" if dtype == "float64" else "float32"]
    kept = NUMBER_TYPES[operator.arithmetic.get(dtype, dtype)]
    tensors = _floats(operator, arguments)
    given = operator.tolerance_for(dtype)
    if given is not None:
        errors = [given.absolute + given.relative * _size(value) for value in expected]
    else:
        spread = _spread(tensors, arguments, evaluate, expected, kept.unit)
        factor = growth(_terms(tensors, arguments, expected)) * exact.unit / kept.unit + KEPT
        types = [*output_types, *[dtype] * (len(expected) - len(output_types))]
        errors = [
            _error(value, moved, factor, types[number], exact)
            for number, (value, moved) in enumerate(zip(expected, spread, strict=True))
        ]
    judged = _judged(tensors, arguments, evaluate, expected, exact)
    return tuple(np.where(is_, error, np.inf) for is_, error in zip(judged, errors, strict=True))


def _error(expected: Array, spread: Array, factor: float, dtype: str, exact: NumberType) -> Array:
    """What is allowed to each element of an output of this type; integers are exact, or not judged
    where rounding decides on them."""
    if dtype not in NUMBER_TYPES or expected.dtype.kind != "f":
        return np.where(spread > 0, np.inf, 0.0)
    kind = NUMBER_TYPES[dtype]
    # Below the smallest normal number of float32 results may be flushed; all numbers of narrower
    # ranges are normal in float32.
    least = kind.smallest if kind.lowest > exact.lowest else exact.smallest_normal
    final = (FINAL * exact.unit + 2 * kind.unit) * _size(expected)
    out: Array = factor * _levelled(spread) + final + ONE * exact.unit + least
    return out


def _size(values: Array) -> Array:
    out: Array = np.abs(np.where(np.isfinite(values), values, 0).astype(np.float64))
    return out


def _floats(operator: Operator, arguments: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of floating-point numbers, as the spec has them."""
    return {
        name: given
        for name, given in operator.inputs.items()
        if isinstance(given, Tensor) and arguments[name].dtype.kind == "f"
    }


def _terms(tensors: Mapping[str, Tensor], arguments: Mapping[str, Any], expected: Outputs) -> int:
    """At most how many terms a sum has: the longest axis of an input, or as many elements of an
    input as there are to an element of the smallest output."""
    least = min((value.size for value in expected if value.size), default=1)
    arrays = [arguments[name] for name in tensors]
    axes = [int(size) for array in arrays for size in array.shape]
    return max([1, *axes, *(-(-int(array.size) // least) for array in arrays)])


# What rounding operands does ------------------------------------------------------------------
def _spread(
    tensors: Mapping[str, Tensor],
    arguments: Mapping[str, Any],
    evaluate: Evaluate,
    expected: Outputs,
    unit: float,
) -> Outputs:
    """How far results move when each input is off by up to `unit`, relative to its size."""
    squares = [np.zeros(value.shape) for value in expected]
    for probe in range(_PROBES):
        moved = evaluate(_moved(tensors, arguments, unit, probe))
        for total, off in zip(squares, _distances(moved, expected), strict=True):
            total += off**2 / _PROBES
    upward = _distances(evaluate(_moved(tensors, arguments, unit, None)), expected)
    pairs = zip(squares, upward, strict=True)
    return tuple(np.maximum(np.sqrt(square), off) for square, off in pairs)


def _moved(
    tensors: Mapping[str, Tensor], arguments: Mapping[str, Any], unit: float, probe: int | None
) -> dict[str, Any]:
    """Inputs off by between half a unit and one, with random signs; all upward without a probe,
    which adds up in sums whose terms differ in sign."""
    out = dict(arguments)
    for name, given in tensors.items():
        array = arguments[name]
        if probe is None:
            by = np.sign(array)
        else:
            draws = Draws("probe", probe, name)
            by = draws.signs(array.shape) * (0.5 + 0.5 * draws.uniform(array.shape))
        with np.errstate(all="ignore"):
            moved = array * (1 + unit * by)
        out[name] = np.clip(moved, given.domain.low, given.domain.high)
    return out


def _distances(moved: Outputs, expected: Outputs) -> list[Array]:
    """How far each element has moved; 0 for what was not finite before."""
    out = []
    for after, before in zip(moved, expected, strict=True):
        with np.errstate(all="ignore"):
            distance = np.abs(after.astype(np.float64) - before.astype(np.float64))
        distance = np.where(np.isnan(distance), np.inf, distance)
        out.append(np.where(np.isfinite(before), distance, 0.0))
    return out


def _levelled(spread: Array) -> Array:
    """At least the median of an element's row: a few probes may cancel by chance. Short rows are
    taken together."""
    if not spread.size:
        return spread
    rows = spread if spread.ndim and spread.shape[-1] >= _LONG else spread.reshape(1, -1)
    finite = np.where(np.isfinite(rows), rows, 0.0)
    out: Array = np.maximum(rows, np.median(finite, axis=-1, keepdims=True))
    return out.reshape(spread.shape)


# Overflow on the way --------------------------------------------------------------------------
def _judged(
    tensors: Mapping[str, Tensor],
    arguments: Mapping[str, Any],
    evaluate: Evaluate,
    expected: Outputs,
    exact: NumberType,
) -> list[Array]:
    """False for elements that depend on inputs so large that their squares may overflow."""
    limit = sqrt(exact.largest) / _HEADROOM
    far = {}
    for name in tensors:
        array = arguments[name]
        is_far = np.isfinite(array) & (np.abs(array) >= limit)
        if is_far.any():
            far[name] = np.where(is_far, np.copysign(np.inf, array), array)
    if not far:
        return [np.ones(value.shape, dtype=np.bool_) for value in expected]
    beyond = evaluate({**arguments, **far})
    pairs = zip(beyond, expected, strict=True)
    return [np.isclose(a, b, rtol=_SAME, atol=0.0, equal_nan=True) for a, b in pairs]


__all__ = ["FINAL", "KEPT", "ONE", "allowance", "growth"]
