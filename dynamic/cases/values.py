"""What the tensors of a case hold: one strategy a function, before it is fitted to domain and type.

Strategies draw the same numbers for every dtype. They see the shape and the type's limits; what
they make is brought into the input's domain (`domains`) and then rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.cases.number_types import NumberType
from ptxlint.dynamic.cases.seeds import F64, Draws, Shape

Fill: TypeAlias = Callable[[Draws, Shape, NumberType], F64]


class Strategy(NamedTuple):
    """`is_edge` says that its numbers are meant as they are, so that those outside a domain become
    the domain's edges; others are folded back into it. `is_finite` is false for strategies with
    NaN or infinities, where the domain has any."""

    fill: Fill
    is_edge: bool = False
    is_finite: bool = True

    @property
    def summary(self) -> str:
        """The first line of what is written at the function."""
        return (self.fill.__doc__ or "").splitlines()[0]


# Numbers as people have them ------------------------------------------------------------------
def regular(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Normal numbers: mean 0, variance 1."""
    return draws.normal(shape)


def graded(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Normal numbers whose magnitude differs from row to row and rises along a row.

    From 0.25 to 2.25: no row has a mean square of 1 but by chance, so a missing root, scale or
    rescaling shows, and exponentials are not saturated. Maxima move to the right of a row, and from
    row to row.
    """
    return draws.normal(shape) * _rising(shape) * _by_row(shape)


def negative(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """All below -2: a 0 in place of an element is larger than each of them."""
    return -2.0 - np.abs(draws.normal(shape))


def shifted(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Normal numbers around 16: a 0 in place of an element is far from the mean."""
    return 16.0 + draws.normal(shape)


def varied(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Rows of several kinds by turns.

    Graded; below -1/4; multiples of 1/2, 0 among them; around 2^-8; around 3/4. What one kind hides
    another shows: a fill, a comparison with 0, an epsilon in the wrong place. Of a tensor with
    further axes, every third item of the first is around 2^-8 throughout. Products of rows stay so
    small that float16 holds their exponentials.
    """
    plain = draws.normal(shape)
    small = plain * 2.0**-8
    which = _row_numbers(shape) % 5
    kinds = (
        graded(draws, shape, kind), -0.25 - 0.75 * np.abs(plain), np.round(2 * plain) / 2, small,
        0.75 + plain / 4,
    )  # fmt: skip
    out = np.asarray(np.choose(np.broadcast_to(which, shape).astype(np.int64), kinds))
    if len(shape) > 2:
        out[1::3] = small[1::3]
    return out


# Numbers at which something changes -----------------------------------------------------------
def boundary(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Half of them normal; the others zeros of both signs, 1, its neighbours, and the smallest."""
    gap = 2 * kind.unit
    ends = [0.0, 1.0, 1.0 + gap, 1.0 - gap / 2, gap, kind.smallest_normal, kind.smallest, 10.0]
    return _mixed(draws, shape, ends, 0.5)


def overflow(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Half of them normal; the others large enough, of both signs, that `exp` overflows."""
    plain = draws.normal(shape)
    far = draws.signs(shape) * (_exp_overflows(kind) + 30.0 * draws.uniform(shape))
    return np.where(draws.uniform(shape) < 0.5, plain, far)


def underflow(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """All so far below 0 that `exp` comes to nothing."""
    return -1.2 * _exp_overflows(kind) - 30.0 * draws.uniform(shape)


def tiny(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Around the smallest normal number: squares and products come to nothing."""
    return draws.normal(shape) * (4.0 * kind.smallest_normal)


def finite_extremes(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Three of four normal; the others the largest numbers, their halves, and the smallest."""
    ends = [kind.largest, kind.largest / 2, kind.smallest_normal, kind.smallest]
    return _mixed(draws, shape, ends, 0.25)


def nonfinite(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Normal, but one of sixteen is NaN or infinite; the last element always."""
    plain = draws.normal(shape)
    which = draws.integers(0, 2, shape)
    odd = np.array([np.nan, np.inf, -np.inf])[which]
    is_odd = draws.uniform(shape) < 1 / 16
    is_odd.reshape(-1)[-1:] = True
    return np.where(is_odd, odd, plain)


# Rows that say nothing ------------------------------------------------------------------------
def zeros(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """All zero."""
    return np.zeros(shape)


def zero_rows(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Graded numbers; the first row of each three is zero."""
    return np.where(first_of_three(shape), 0.0, graded(draws, shape, kind))


def masked_rows(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Graded numbers; the first row of each three is minus infinity, or the least there is."""
    return np.where(first_of_three(shape), -np.inf, graded(draws, shape, kind))


def constant(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """The same number throughout, one with few bits: 0.75 to 2.5, or below 0."""
    size = 0.25 * float(draws.integers(3, 10, ())) * float(draws.signs(()))
    return np.full(shape, size)


def integers(draws: Draws, shape: Shape, kind: NumberType) -> F64:
    """Integers from -3 to 3: sums and products are exact."""
    return draws.integers(-3, 3, shape).astype(np.float64)


STRATEGIES: Final[dict[str, Strategy]] = {
    "regular": Strategy(regular),
    "graded": Strategy(graded),
    "varied": Strategy(varied),
    "negative": Strategy(negative),
    "shifted": Strategy(shifted),
    "boundary": Strategy(boundary, is_edge=True),
    "overflow": Strategy(overflow, is_edge=True),
    "underflow": Strategy(underflow, is_edge=True),
    "tiny": Strategy(tiny),
    "finite-extremes": Strategy(finite_extremes, is_edge=True),
    "nonfinite": Strategy(nonfinite, is_edge=True, is_finite=False),
    "zeros": Strategy(zeros, is_edge=True),
    "zero-rows": Strategy(zero_rows, is_edge=True),
    "masked-rows": Strategy(masked_rows, is_edge=True, is_finite=False),
    "constant": Strategy(constant),
    "integers": Strategy(integers),
}
"""By the name that a case gives (`Case.values`)."""


def _exp_overflows(kind: NumberType) -> float:
    """Above where `exp` overflows in float32, which narrower types are computed in, or float64."""
    return 720.0 if kind.fraction > 23 else 90.0


def _rising(shape: Shape) -> F64:
    """From 0.5 to 1.5 along the last axis."""
    if not shape:
        return np.ones(())
    return 0.5 + np.arange(shape[-1], dtype=np.float64) / max(shape[-1] - 1, 1)


def _by_row(shape: Shape) -> F64:
    """From 0.5 to 1.5, another for each row, neighbours far apart; 1 for what has no rows.

    Multiples of the golden section, of which the integers are left out, lie evenly.
    """
    if len(shape) < 2:
        return np.ones(())
    rows = _row_numbers(shape).astype(np.float64)
    out: F64 = 0.5 + np.mod(0.25 + rows * 0.6180339887498949, 1.0)
    return out


def _row_numbers(shape: Shape) -> F64:
    """The number of each row, with a last axis of 1; of a tensor with one axis, of each element."""
    lead = shape[:-1] if len(shape) > 1 else shape
    count = int(np.prod(lead, dtype=np.int64))
    numbers: F64 = np.arange(count).reshape(lead)
    return numbers[..., None] if len(shape) > 1 else numbers


def first_of_three(shape: Shape) -> NDArray[np.bool_]:
    """True for the first row of each three, with a last axis of 1."""
    out: NDArray[np.bool_] = _row_numbers(shape) % 3 == 0
    return out


def _mixed(draws: Draws, shape: Shape, ends: list[float], share: float) -> F64:
    """Normal numbers, and a share of them replaced by ends of both signs."""
    plain = draws.normal(shape)
    ended = np.array(ends)[draws.integers(0, len(ends) - 1, shape)] * draws.signs(shape)
    return np.where(draws.uniform(shape) < share, ended, plain)


__all__ = ["STRATEGIES", "Fill", "Strategy", "first_of_three"]
