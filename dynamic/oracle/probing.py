"""What can be learnt of a function by evaluating it on inputs that are not quite those."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.cases.number_types import NumberType
from ptxlint.dynamic.cases.seeds import Draws
from ptxlint.dynamic.operators.spec import Operator, Tensor
from ptxlint.dynamic.oracle.reference import Array, Evaluate, Outputs

_PROBES: Final = 4
"""Evaluations on inputs that are off at random."""
_UPWARD, _TOWARD_ZERO = -1, -2
"""In place of the number of an evaluation: all inputs are off in this direction."""
_HEADROOM: Final = 64.0
"""So many squares may be added before a sum is beyond the range."""
_SAME: Final = 1e-3
"""Results that differ by less, relative to their size, are the same."""


class Probes:
    """A reference, and what it makes of some arguments."""

    def __init__(
        self,
        operator: Operator,
        arguments: Mapping[str, Any],
        evaluate: Evaluate,
        expected: Outputs,
    ) -> None:
        """`expected` is what `evaluate` makes of the arguments. Methods raise as it does."""
        self._arguments = arguments
        self._evaluate = evaluate
        self._expected = expected
        self._tensors = {
            name: given
            for name, given in operator.inputs.items()
            if isinstance(given, Tensor) and arguments[name].dtype.kind == "f"
        }

    def spread(self, unit: float, *, is_cut: bool = False) -> Outputs:
        """How far results move when each input is off by up to `unit`, relative to its size; 0 for
        those that are not finite, infinite where they become so.

        Some random errors, and all inputs upward: that adds up in sums whose terms differ in sign.
        With `is_cut`, all toward 0, too, as hardware that drops bits takes them: that adds up in
        every sum.
        """
        squares = [np.zeros(value.shape) for value in self._expected]
        for number in range(_PROBES):
            for total, off in zip(squares, self._distances(self._moved(unit, number)), strict=True):
                total += off**2 / _PROBES
        found = [np.sqrt(square) for square in squares]
        for toward in (_UPWARD, _TOWARD_ZERO) if is_cut else (_UPWARD,):
            together = self._distances(self._moved(unit, toward))
            found = [np.maximum(far, off) for far, off in zip(found, together, strict=True)]
        return tuple(found)

    def is_elementwise(self) -> bool:
        """True if each element of each output seems to depend on one element of each input: a NaN
        in the middle of an input of the output's shape spoils no other."""
        shapes = {value.shape for value in self._expected}
        alike = [name for name in self._tensors if {self._array(name).shape} == shapes]
        if not alike:
            return False
        for name in alike:
            spoiled = self._array(name).copy()
            if spoiled.size:
                spoiled.reshape(-1)[spoiled.size // 2] = np.nan
            after = self._evaluate({**self._arguments, name: spoiled})
            for value, before in zip(after, self._expected, strict=True):
                # Infinities times zero and the like were NaN before.
                if np.count_nonzero(np.isnan(value) & ~np.isnan(before)) > 1:
                    return False
        return True

    def terms(self) -> int:
        """At most how many terms a sum has: the longest axis of an input, or as many elements of an
        input as there are to an element of the smallest output."""
        least = min((value.size for value in self._expected if value.size), default=1)
        arrays = [self._array(name) for name in self._tensors]
        axes = [int(size) for array in arrays for size in array.shape]
        return max([1, *axes, *(-(-int(array.size) // least) for array in arrays)])

    def exponent(self, terms: int, kind: NumberType) -> float:
        """How large a number is that an exponential may be taken of: the largest input, or a sum of
        products of the two largest ones whose signs are mixed. Those that are `too_large` do not
        count."""
        sizes = [0.0]
        for name in self._tensors:
            size = np.abs(self._array(name))
            counted = np.isfinite(size) & ~too_large(size, kind)
            sizes.append(float(np.max(size, where=counted, initial=0.0)))
        *_, second, first = sorted([0.0, *sizes])
        return first * second * sqrt(terms) if len(self._tensors) > 1 else first

    def judged(self, kind: NumberType) -> list[Array]:
        """False for elements that depend on inputs that are `too_large`: they change when infinite
        ones take their place."""
        far = {}
        for name in self._tensors:
            array = self._array(name)
            is_far = np.isfinite(array) & too_large(array, kind)
            if is_far.any():
                far[name] = np.where(is_far, np.copysign(np.inf, array), array)
        if not far:
            return [np.ones(value.shape, dtype=np.bool_) for value in self._expected]
        beyond = self._evaluate({**self._arguments, **far})
        pairs = zip(beyond, self._expected, strict=True)
        return [np.isclose(a, b, rtol=_SAME, atol=0.0, equal_nan=True) for a, b in pairs]

    def _array(self, name: str) -> Array:
        array: Array = self._arguments[name]
        return array

    def _moved(self, unit: float, number: int) -> dict[str, Any]:
        """Inputs off by between half a unit and one, with random signs, other ones for each number
        from 0 on; or all by one unit upward, or toward 0."""
        out = dict(self._arguments)
        for name, given in self._tensors.items():
            array = self._array(name)
            if number == _UPWARD:
                by = np.sign(array)
            elif number == _TOWARD_ZERO:
                by = np.full(array.shape, -1.0)
            else:
                draws = Draws("probe", number, name)
                by = draws.signs(array.shape) * (0.5 + 0.5 * draws.uniform(array.shape))
            with np.errstate(all="ignore"):
                moved = array * (1 + unit * by)
            out[name] = np.clip(moved, given.domain.low, given.domain.high)
        return out

    def _distances(self, arguments: Mapping[str, Any]) -> list[Array]:
        """How far each element is from where it was; 0 for what was not finite before."""
        out = []
        for after, before in zip(self._evaluate(arguments), self._expected, strict=True):
            with np.errstate(all="ignore"):
                distance = np.abs(after.astype(np.float64) - before.astype(np.float64))
            distance = np.where(np.isnan(distance), np.inf, distance)
            out.append(np.where(np.isfinite(before), distance, 0.0))
        return out


def too_large(values: Array, kind: NumberType) -> Array:
    """True for numbers whose squares, some of them added, may be beyond the range of a type."""
    out: Array = np.abs(values) >= sqrt(kind.largest) / _HEADROOM
    return out


__all__ = ["Probes", "too_large"]
