"""How far off a right kernel may be, from its reference alone.

Rounding an operand somewhere on the way is, to first order, as if inputs had been rounded. So the
reference is evaluated a few times on inputs that are off by up to one rounding each (`probing`),
and what that changes, the *spread*, is what one rounding does to a result, cancellation and all
(where tensor cores drop bits, all operands are off toward 0, one unit in the mean: that, too). A
sum of `n` terms in an unknown order rounds `growth(n)` times. An exponent of size `e` rounds as `e`
factors do, which normalisation hides from the probes unless a compiler computes the numerator and
the denominator by different instructions. What is allowed is

    (max(growth(n), EXPONENT * e) + OTHERS) * spread(unit of the arithmetic)
    + KEPT * spread(unit of the dtype)              operands rounded to the dtype on the way;
                                                    CUT times where all are cut off
    + (FINAL * unit of the arithmetic + 2 * unit of the output) * |expected|
                                                    approximate functions, rounding of the result
    + ONE * unit of the arithmetic * size           a term of the size of results, 1 at most, that
                                                    cancels; of size 1 where all results are 0, and
                                                    in element-wise functions, which may go through
                                                    it: exp(x) - 1
    + the smallest number of the output's type

Constants are measured (docs/gate.md). A right kernel may overflow where its inputs are so large
that their squares are beyond the range of its arithmetic: elements for which infinite inputs in
their place give another result are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.cases.number_types import NUMBER_TYPES, NumberType
from ptxlint.dynamic.operators.spec import Operator
from ptxlint.dynamic.oracle.probing import Probes
from ptxlint.dynamic.oracle.reference import Array, Evaluate, Outputs

EXPONENT: Final = 4.0
OTHERS: Final = 4.0
KEPT: Final = 2.0
FINAL: Final = 8.0
ONE: Final = 8.0
_CUT: Final = frozenset({"tf32"})
"""Types that tensor cores make of their operands by dropping bits: up to two units, toward 0."""
CUT: Final = 4.0
"""In place of `KEPT` for these: all operands are off, so of many elements the worst is far from the
root mean square that a few probes show."""
_LONG: Final = 16
"""Elements of a row that has a median of its own."""


class _Function(NamedTuple):
    """What the bound takes of a function: `factor` times its spread, and that a term of size 1 may
    cancel in it. `exact` is the type of its arithmetic."""

    factor: float
    is_elementwise: bool
    exact: NumberType


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
    that the spec gives takes the place of the bound; one that was calibrated scales it. Raises
    `ReferenceFailedError` as `evaluate`.
    """
    exact = NUMBER_TYPES["float64" if dtype == "float64" else "float32"]
    probes = Probes(operator, arguments, evaluate, expected)
    given = operator.tolerance_for(dtype)
    if given is not None:
        errors = [given.absolute + given.relative * _size(value) for value in expected]
    else:
        form = operator.arithmetic.get(dtype, dtype)
        kept = NUMBER_TYPES[form]
        is_cut = form in _CUT
        function = _function(probes, kept, exact, is_cut)
        scale = operator.calibrated.get(dtype, 1.0)
        types = [*output_types, *[dtype] * (len(expected) - len(output_types))]
        errors = [
            _error(value, spread, types[number], function, scale)
            for number, (value, spread) in enumerate(
                zip(expected, probes.spread(kept.unit, is_cut=is_cut), strict=True)
            )
        ]
    pairs = zip(probes.judged(exact), errors, strict=True)
    return tuple(np.where(is_judged, error, np.inf) for is_judged, error in pairs)


def _function(probes: Probes, kept: NumberType, exact: NumberType, is_cut: bool) -> _Function:
    is_elementwise = probes.is_elementwise()
    terms = 1 if is_elementwise else probes.terms()
    rounded = max(growth(terms), EXPONENT * probes.exponent(terms, exact)) + OTHERS
    times = CUT if is_cut else KEPT
    return _Function(rounded * exact.unit / kept.unit + times, is_elementwise, exact)


def _error(expected: Array, spread: Array, dtype: str, function: _Function, scale: float) -> Array:
    """What is allowed to each element of an output of this type: the bound times `scale`, and at
    least what rounding the result does. Integers are exact, or not judged where rounding decides on
    them."""
    if dtype not in NUMBER_TYPES or expected.dtype.kind != "f":
        return np.where(spread > 0, np.inf, 0.0)
    kind, exact, size = NUMBER_TYPES[dtype], function.exact, _size(expected)
    # Below the smallest normal number of float32 results may be flushed; all numbers of narrower
    # ranges are normal in float32.
    least = kind.smallest if kind.lowest > exact.lowest else exact.smallest_normal
    # Where all results are 0, what cancels may have had any size.
    greatest = float(size.max(initial=0.0)) or 1.0
    largest = 1.0 if function.is_elementwise else min(1.0, greatest)
    final = (FINAL * exact.unit + 2 * kind.unit) * size + ONE * exact.unit * largest
    bound = function.factor * _levelled(spread) + final + least
    out: Array = np.maximum(scale * bound, kind.unit * size + least)
    return out


def _size(values: Array) -> Array:
    out: Array = np.abs(np.where(np.isfinite(values), values, 0).astype(np.float64))
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


__all__ = ["CUT", "EXPONENT", "FINAL", "KEPT", "ONE", "OTHERS", "allowance", "growth"]
