"""Rounding to formats that numpy has or has not, once and as PTX says it.

Sources: IEEE 754-2019; PTX ISA, "Floating Point Instructions" and "Alternate Floating Point Data
Formats"; for the exact sum of a product and a number S. Boldo and G. Melquiond, "Emulation of FMA
and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd", IEEE Trans. Computers 57(4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import RAW, Array, some

F64 = NDArray[np.float64]


class Format(NamedTuple):
    """A binary floating-point format: bits of exponent and of fraction, and its bias.

    `largest` is the largest finite number. `has_infinity` is false where overflow has only NaN or
    the largest number to give (e4m3).
    """

    exponent: int
    fraction: int
    largest: float
    has_infinity: bool = True

    @property
    def bias(self) -> int:
        """What is added to an exponent before it is stored."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def width(self) -> int:
        """All bits, the sign among them."""
        return 1 + self.exponent + self.fraction


FORMATS: Final[dict[str, Format]] = {
    "f16": Format(5, 10, 65504.0),
    "bf16": Format(8, 7, float.fromhex("0x1.fep127")),
    "tf32": Format(8, 10, float.fromhex("0x1.ffcp127")),
    "f32": Format(8, 23, float.fromhex("0x1.fffffep127")),
    "e5m2": Format(5, 2, 57344.0),
    "e4m3": Format(4, 3, 448.0, False),
    "e2m3": Format(2, 3, 7.5, False),
    "e3m2": Format(3, 2, 28.0, False),
    "e2m1": Format(2, 1, 6.0, False),
}
"""Formats by PTX's names. tf32 lies in the upper bits of a 32-bit word."""

_ROUND: Final[dict[str, Callable[[F64], F64]]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}


def narrowed(values: F64, form: Format, mode: str = "rn", saturates: bool = False) -> F64:
    """Numbers rounded to a format, still as float64 (which holds them exactly).

    `mode` is `rn` (ties to even), `rna` (ties away from zero), `rz`, `rm` or `rp`; what is beyond
    the largest number becomes infinite, or that number if it `saturates` or the mode rounds toward
    zero there. NaN stays NaN.
    """
    _, exponent = np.frexp(values)
    smallest = 1 - form.bias - form.fraction
    scale = np.maximum(exponent - (form.fraction + 1), smallest)
    rounded: F64 = np.ldexp(_ROUND[mode](np.ldexp(values, -scale)), scale)
    is_over = np.abs(rounded) > form.largest
    if not is_over.any():
        return rounded
    most = np.copysign(form.largest, values)
    if saturates:
        return np.where(is_over, most, rounded)
    toward_zero = (
        np.full_like(is_over, mode == "rz")
        | ((mode == "rm") & (values > 0))
        | ((mode == "rp") & (values < 0))
    ) & np.isfinite(values)
    return np.where(is_over, np.where(toward_zero, most, np.copysign(np.inf, values)), rounded)


def encoded(values: F64, form: Format) -> Array:
    """The bits of numbers that a format holds exactly, right-aligned in the next wider word.

    NaN is the format's canonical NaN (all bits below the sign set; f16 and wider: 0x7fff…).
    """
    word = np.uint64
    sign = np.signbit(values).astype(word)
    magnitude = np.abs(values)
    _, exponent = np.frexp(magnitude)
    lowest = 1 - form.bias
    place = np.maximum(exponent - 1, lowest)
    with np.errstate(invalid="ignore"):
        fraction = np.ldexp(np.where(np.isfinite(magnitude), magnitude, 0), form.fraction - place)
    number = fraction.astype(word)
    one = word(1 << form.fraction)
    stored = (place - lowest + 1).astype(word)
    out = np.where(number >= one, stored * one + (number - one), number)
    out = np.where(np.isinf(magnitude), word(((1 << form.exponent) - 1) << form.fraction), out)
    everything = word((1 << (form.width - 1)) - 1)
    is_nan = np.isnan(values)
    out = np.where(is_nan, everything, out | sign << word(form.width - 1))
    width = next(w for w in RAW if w >= max(form.width, 8))
    return out.astype(RAW[width])


def decoded(bits: Array, form: Format) -> F64:
    """The numbers that bits stand for, exactly."""
    word = bits.astype(np.int64)
    fraction = word & ((1 << form.fraction) - 1)
    exponent = word >> form.fraction & ((1 << form.exponent) - 1)
    is_normal = exponent > 0
    number = np.ldexp(
        (fraction + (is_normal.astype(np.int64) << form.fraction)).astype(np.float64),
        (np.where(is_normal, exponent, 1) - form.bias - form.fraction).astype(np.int32),
    )
    top = (1 << form.exponent) - 1
    if form.has_infinity:
        number = np.where(exponent == top, np.where(fraction == 0, np.inf, np.nan), number)
    elif form.width == 8:
        is_nan = (exponent == top) & (fraction == (1 << form.fraction) - 1)
        number = np.where(is_nan, np.nan, number)
    out: F64 = np.where(word >> (form.width - 1) & 1 == 1, -number, number)
    return out


# bf16, which is the upper half of a float32 ---------------------------------------------------
def from_bf16(bits: Array) -> NDArray[np.float32]:
    """The numbers of bf16 bits."""
    out: NDArray[np.float32] = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return out


def to_bf16(values: NDArray[np.float32]) -> Array:
    """float32 rounded to bf16, ties to even; NaN becomes 0x7fff (PTX ISA, "cvt")."""
    word = values.view(np.uint32)
    half = np.uint32(0x7FFF) + (word >> np.uint32(16) & np.uint32(1))
    out = ((word + half) >> np.uint32(16)).astype(np.uint16)
    is_nan = np.isnan(values)
    return np.where(is_nan, np.uint16(0x7FFF), out) if is_nan.any() else out


# Exact sums and products ----------------------------------------------------------------------
def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """A sum and what its rounding left out (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """A product and what its rounding left out (Dekker, Veltkamp); no factor may pass 2^996."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    left = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, left


def _split(a: F64) -> tuple[F64, F64]:
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def odd_sum(a: F64, b: F64) -> F64:
    """A sum rounded to odd: if it is not exact, the last bit of the result is 1.

    To round that once more to at most 51 bits gives what rounding the exact sum gives.
    """
    total, left = two_sum(a, b)
    word = total.view(np.uint64)
    is_even = (word & np.uint64(1) == 0) & (left != 0) & np.isfinite(total)
    if not is_even.any():
        return total
    # Away from zero if what was left out points there, else one step toward zero.
    outward = (left > 0) == (total > 0)
    moved = np.where(outward, word + np.uint64(1), word - np.uint64(1))
    return np.where(is_even, moved, word).view(np.float64)


_BELOW: Final = np.array([64 - 29], dtype=np.uint64)
"""What shifts all bits of a float64 out but those that a float32 has no room for."""
_HALF: Final = np.array([1 << 63], dtype=np.uint64)
_ONE: Final = np.array([1], dtype=np.uint64)
_SMALL: Final = np.array([(1023 - 125) << 53], dtype=np.uint64) - _ONE
"""The bits of 2^-125, its sign shifted out, less one: what zeros, less one, are not below."""


def fma32(
    a: NDArray[np.float32], b: NDArray[np.float32], c: NDArray[np.float32]
) -> NDArray[np.float32]:
    """`a * b + c` of float32, rounded once to nearest even."""
    product = a.astype(np.float64) * b.astype(np.float64)
    total = product + c.astype(np.float64)
    out = total.astype(np.float32)
    # Rounding twice differs from rounding once only where the first result lies half way between
    # two float32, or where the second one has fewer bits (zeros apart).
    word = total.view(np.uint64)
    doubtful = (word << _BELOW == _HALF) | ((word + word) - _ONE < _SMALL)
    if some(doubtful):
        full = np.broadcast_to(doubtful, total.shape)
        at = np.nonzero(full)
        shape = total.shape
        exact = odd_sum(
            np.broadcast_to(product, shape)[at],
            np.broadcast_to(c, shape)[at].astype(np.float64),
        )
        out[at] = exact.astype(np.float32)
    return out


def fma64(a: F64, b: F64, c: F64) -> F64:
    """`a * b + c` of float64, rounded once to nearest even (Boldo and Melquiond).

    Where a product or its rest would leave the range of float64 the numbers are scaled by Python's
    integers instead.
    """
    high, low = two_product(a, b)
    upper, rest = two_sum(c, low)
    total, middle = two_sum(high, upper)
    out = total + odd_sum(rest, middle)
    plain = a * b + c
    is_plain = (a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    out = np.where(is_plain, plain, out)
    product = np.abs(a * b)
    largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.abs(c))
    is_usual = (product > 2.0**-900) & (product < 2.0**1000) & (largest < 2.0**990)
    is_rare = ~(is_plain | is_usual & ((np.abs(c) > 2.0**-900) | (c == 0)))
    if not is_rare.any():
        return out
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    out = np.array(np.broadcast_to(out, shape))
    parts = [np.broadcast_to(x, shape) for x in (a, b, c)]
    for at in zip(*np.nonzero(np.broadcast_to(is_rare, shape)), strict=True):
        out[at] = _fma_exactly(*(float(part[at]) for part in parts))
    return out


def _fma_exactly(a: float, b: float, c: float) -> float:
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        # Only opposite signs cancel, and then nearest rounding gives plus zero.
        return 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


SMALLEST_NORMAL: Final = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126}
"""What `.ftz` leaves of each format at least."""


def flushed(values: Array, kind: str = "f32") -> Array:
    """Numbers that are subnormal in a format put to zero of the same sign (`.ftz`); float32, or
    float16 for f16."""
    sign, one, smallest = _FLUSHED[kind, values.dtype.itemsize]
    word = values.view(sign.dtype)
    # Zeros, less one, are the greatest of all words.
    tiny = (word + word) - one < smallest
    if not some(tiny):
        return values
    return np.where(tiny, word & sign, word).view(values.dtype)


def is_clear(values: Array, kind: str) -> bool:
    """True if no number but zeros is below the smallest normal one of a format, or it."""
    sign, one, smallest = _FLUSHED[kind, values.dtype.itemsize]
    word = values.view(sign.dtype)
    return not some((word + word) - one <= smallest)


def _limits(smallest: int, kind: Any) -> tuple[Array, Array, Array]:
    """The sign, one, and the bits of a smallest normal number, its sign shifted out, less one."""
    sign = 1 << (8 * np.dtype(kind).itemsize - 1)
    found = [np.array([n], dtype=kind) for n in (sign, 1, 2 * smallest - 1)]
    return found[0], found[1], found[2]


_FLUSHED: Final = {
    ("f32", 4): _limits(0x00800000, np.uint32),
    ("bf16", 4): _limits(0x00800000, np.uint32),
    ("f16", 4): _limits(0x38800000, np.uint32),
    ("f16", 2): _limits(0x0400, np.uint16),
}
"""By the format and the bytes of the numbers."""


__all__ = [
    "FORMATS", "SMALLEST_NORMAL", "Format", "decoded", "encoded", "flushed", "fma32", "fma64",
    "from_bf16", "is_clear", "narrowed", "odd_sum", "to_bf16", "two_product", "two_sum",
]  # fmt: skip
