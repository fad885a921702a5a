"""Abstract floating-point values: which numbers a register may hold.

A value is a closed interval of finite numbers, each infinity or not, and NaN or not. A zero is of
either sign. The transfer functions contain every result of IEEE 754 arithmetic, and of PTX's
approximate instructions within their documented errors (PTX ISA, "Floating Point Instructions"),
with one assumption that whoever proves something must name: *finite operands do not overflow*. A
result that must overflow is an infinity; one that only might is taken to stay finite. Poles are no
overflow: `rcp(0)` and `lg2(0)` are infinite.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

INF: Final = math.inf


class Format(NamedTuple):
    """A binary floating-point format: significand bits, exponents of the normal numbers."""

    name: str
    bits: int
    precision: int
    least: int
    greatest: int

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return math.ldexp(2.0 - math.ldexp(1.0, 1 - self.precision), self.greatest)

    @property
    def smallest(self) -> float:
        """The smallest positive number, a subnormal one."""
        return math.ldexp(1.0, self.least - self.precision + 1)

    @property
    def normal(self) -> float:
        """The smallest positive normal number."""
        return math.ldexp(1.0, self.least)


F16: Final = Format("f16", 16, 11, -14, 15)
BF16: Final = Format("bf16", 16, 8, -126, 127)
F32: Final = Format("f32", 32, 24, -126, 127)
F64: Final = Format("f64", 64, 53, -1022, 1023)
FORMATS: Final = {f.name: f for f in (F16, BF16, F32, F64)}
E4M3: Final = Format("e4m3", 8, 4, -6, 8)
E5M2: Final = Format("e5m2", 8, 3, -14, 15)
BYTES: Final = {f.name: f for f in (E4M3, E5M2)}
"""Formats of 8 bits, which products take but arithmetic does not. E4M3 has no infinity, and NaN
where its largest number would be."""


class AbstractFloat:
    """A set of floating-point values: finite ones from `lo` to `hi`, `ninf`, `pinf`, `nan`.

    `lo > hi` says that there is no finite one.
    """

    __slots__ = ("hi", "lo", "nan", "ninf", "pinf")

    def __init__(
        self, lo: float, hi: float, ninf: bool = False, pinf: bool = False, nan: bool = False
    ) -> None:
        self.lo = lo
        self.hi = hi
        self.ninf = ninf
        self.pinf = pinf
        self.nan = nan

    @property
    def finite(self) -> bool:
        """True if some finite number is among the values."""
        return self.lo <= self.hi

    @property
    def is_finite(self) -> bool:
        """True if all values are finite numbers."""
        return not (self.ninf or self.pinf or self.nan)

    @property
    def low(self) -> float:
        """The least number, infinities included; +inf if there is only NaN."""
        return -INF if self.ninf else self.lo if self.finite else INF

    @property
    def high(self) -> float:
        """The greatest number, infinities included; -inf if there is only NaN."""
        return INF if self.pinf else self.hi if self.finite else -INF

    @property
    def may_be_zero(self) -> bool:
        """True if a zero is among the values."""
        return self.lo <= 0.0 <= self.hi

    @property
    def is_zero(self) -> bool:
        """True for zero alone."""
        return self.lo == self.hi == 0.0 and self.is_finite

    @property
    def is_negative_infinity(self) -> bool:
        """True for -inf alone."""
        return self.ninf and not (self.finite or self.pinf or self.nan)

    @property
    def is_positive_infinity(self) -> bool:
        """True for +inf alone."""
        return self.pinf and not (self.finite or self.ninf or self.nan)

    @property
    def point(self) -> float | None:
        """The one value, if it is one (a NaN or a zero of either sign count as one)."""
        count = self.ninf + self.pinf + self.nan + self.finite
        if count != 1 or (self.finite and self.lo != self.hi):
            return None
        return self.lo if self.finite else INF if self.pinf else -INF if self.ninf else math.nan

    def contains(self, value: float) -> bool:
        """True if the value is among these."""
        if math.isnan(value):
            return self.nan
        if math.isinf(value):
            return self.pinf if value > 0 else self.ninf
        return self.lo <= value <= self.hi

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractFloat) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> tuple[float, float, bool, bool, bool]:
        lo, hi = (self.lo, self.hi) if self.finite else (INF, -INF)
        return lo, hi, self.ninf, self.pinf, self.nan

    def __repr__(self) -> str:
        parts = []
        if self.ninf:
            parts.append("-inf")
        if self.finite:
            parts.append(f"{self.lo:g}" if self.lo == self.hi else f"{self.lo:g}..{self.hi:g}")
        if self.pinf:
            parts.append("+inf")
        if self.nan:
            parts.append("nan")
        return " or ".join(parts) or "nothing"


def exactly(value: float) -> AbstractFloat:
    """The one value."""
    if math.isnan(value):
        return AbstractFloat(INF, -INF, nan=True)
    if math.isinf(value):
        return AbstractFloat(INF, -INF, ninf=value < 0, pinf=value > 0)
    return AbstractFloat(value, value)


def finite(form: Format, lo: float = -INF, hi: float = INF) -> AbstractFloat:
    """Any finite number of the format between the bounds."""
    return AbstractFloat(max(lo, -form.largest), min(hi, form.largest))


def anything(form: Format) -> AbstractFloat:
    """Any value, NaN included."""
    return AbstractFloat(-form.largest, form.largest, True, True, True)


ZERO: Final = exactly(0.0)
ONE: Final = exactly(1.0)


def join(a: AbstractFloat, b: AbstractFloat) -> AbstractFloat:
    """What may be either."""
    if not a.finite:
        lo, hi = b.lo, b.hi
    elif not b.finite:
        lo, hi = a.lo, a.hi
    else:
        lo, hi = min(a.lo, b.lo), max(a.hi, b.hi)
    return AbstractFloat(lo, hi, a.ninf or b.ninf, a.pinf or b.pinf, a.nan or b.nan)


def assume_finite(a: AbstractFloat, form: Format) -> AbstractFloat:
    """The finite values among these; any finite one if there are none."""
    return AbstractFloat(a.lo, a.hi) if a.finite else finite(form)


# Bits ------------------------------------------------------------------------------------------


def decode(form: Format, word: int) -> AbstractFloat:
    """The value of a bit pattern."""
    if form is F64:
        return exactly(struct.unpack("<d", struct.pack("<Q", word & (1 << 64) - 1))[0])
    if form is BF16:
        return decode(F32, (word & 0xFFFF) << 16)
    if form is F16:
        return exactly(struct.unpack("<e", struct.pack("<H", word & 0xFFFF))[0])
    if form.bits == 8:
        return decode_byte(form.name, word & 0xFF)
    return exactly(struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0])


def decode_byte(form: str, byte: int) -> AbstractFloat:
    """The value of 8 bits as `e5m2` or `e4m3` (PTX ISA, "Alternate Floating Point Formats")."""
    if form == "e5m2":
        return decode(F16, byte << 8)
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, fraction = byte >> 3 & 15, byte & 7
    if byte & 0x7F == 0x7F:
        return exactly(math.nan)
    if not exponent:
        return exactly(sign * math.ldexp(fraction, -9))
    return exactly(sign * math.ldexp(8 + fraction, exponent - 10))


def encode(form: Format, a: AbstractFloat) -> int | None:
    """The bit pattern of the one value; None for several, for NaN and for a zero of either sign."""
    value = a.point
    if value is None or value != value or value == 0.0 or form.bits == 8:
        return None
    if form is BF16:
        word = encode(F32, a)
        return None if word is None or word & 0xFFFF else word >> 16
    code, integer = {"f64": ("<d", "<Q"), "f32": ("<f", "<I"), "f16": ("<e", "<H")}[form.name]
    packed = struct.pack(code, value)
    exact: bool = struct.unpack(code, packed)[0] == value
    return int(struct.unpack(integer, packed)[0]) if exact else None


# Rounding --------------------------------------------------------------------------------------


def _round(form: Format, value: float, towards: int) -> float:
    """A finite double rounded to the format: down (-1), to the nearest (0), up (1).

    The format has no greatest number here; overflow is the caller's to see.
    """
    if form is F64 or value == 0.0 or math.isinf(value):
        return value
    exponent = max(math.frexp(value)[1] - 1, form.least) - form.precision + 1
    scaled = math.ldexp(value, -exponent)
    if towards == 0:
        whole = round(scaled)
    else:
        whole = math.floor(scaled) if towards < 0 else math.ceil(scaled)
    try:
        return math.ldexp(float(whole), exponent)
    except OverflowError:
        # Rounded up past the greatest double.
        return math.copysign(INF, value)


def _step(form: Format, value: float, up: bool) -> float:
    """The next number of the format."""
    if form is F64 or math.isinf(value):
        return math.nextafter(value, INF if up else -INF)
    if value == 0.0:
        return form.smallest if up else -form.smallest
    exponent = max(math.frexp(value)[1] - 1, form.least) - form.precision + 1
    unit = math.ldexp(1.0, exponent)
    return value + unit if up else value - unit


class Mode(NamedTuple):
    """How an instruction rounds: `nearest` or some other way; `flush`: subnormals become 0."""

    form: Format
    nearest: bool = True
    flush: bool = False


def _bounded(
    mode: Mode, lo: float, hi: float, exact: bool, ninf: bool, pinf: bool, nan: bool
) -> AbstractFloat:
    """The result whose finite part is the rounded interval.

    `exact` says that the bounds are the exact results, so that rounding to the nearest needs no
    further allowance.
    """
    form = mode.form
    if lo > hi:
        return AbstractFloat(INF, -INF, ninf, pinf, nan)
    if exact and mode.nearest and form is not F64:
        lo, hi = _round(form, lo, 0), _round(form, hi, 0)
    else:
        down, up = _round(form, lo, -1), _round(form, hi, 1)
        if not exact:
            down, up = _step(form, down, False), _step(form, up, True)
        # A sign that was certain stays so: no operation rounds across zero.
        lo = 0.0 if down < 0.0 <= lo else down
        hi = 0.0 if hi <= 0.0 < up else up
    if mode.flush:
        lo, hi = _flushed(form, lo, hi)
    if lo > form.largest:
        # With another rounding the largest number may stand for the overflow.
        return AbstractFloat(form.largest, form.largest if not mode.nearest else -INF, ninf, True,
                             nan)  # fmt: skip
    if hi < -form.largest:
        return AbstractFloat(-form.largest, -form.largest if not mode.nearest else -INF, True,
                             pinf, nan)  # fmt: skip
    return AbstractFloat(max(lo, -form.largest), min(hi, form.largest), ninf, pinf, nan)


def _flushed(form: Format, lo: float, hi: float) -> tuple[float, float]:
    """The interval with its subnormal numbers replaced by zero."""
    if 0.0 < lo < form.normal:
        lo = 0.0
    if -form.normal < hi < 0.0:
        hi = 0.0
    if lo == 0.0 and 0.0 < hi < form.normal:
        hi = 0.0
    if hi == 0.0 and -form.normal < lo < 0.0:
        lo = 0.0
    return lo, hi


def flushed(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """An operand as an instruction with `.ftz` reads it."""
    if not mode.flush or not a.finite:
        return a
    lo, hi = _flushed(mode.form, a.lo, a.hi)
    return AbstractFloat(lo, hi, a.ninf, a.pinf, a.nan)


def _sum(a: float, b: float) -> tuple[float, bool]:
    """a + b and whether it is exact (Knuth's error-free sum)."""
    total = a + b
    if math.isinf(total):
        return total, False
    part = total - a
    return total, (a - (total - part)) + (b - part) == 0.0


# Arithmetic ------------------------------------------------------------------------------------


def add(a: AbstractFloat, b: AbstractFloat, mode: Mode) -> AbstractFloat:
    """a + b."""
    nan = a.nan or b.nan or (a.pinf and b.ninf) or (a.ninf and b.pinf)
    pinf = (a.pinf and (b.finite or b.pinf)) or (b.pinf and a.finite)
    ninf = (a.ninf and (b.finite or b.ninf)) or (b.ninf and a.finite)
    if not (a.finite and b.finite):
        return AbstractFloat(INF, -INF, ninf, pinf, nan)
    lo, exact_low = _sum(a.lo, b.lo)
    hi, exact_high = _sum(a.hi, b.hi)
    return _bounded(mode, lo, hi, exact_low and exact_high, ninf, pinf, nan)


def negate(a: AbstractFloat) -> AbstractFloat:
    """-a."""
    return AbstractFloat(-a.hi, -a.lo, a.pinf, a.ninf, a.nan)


def absolute(a: AbstractFloat) -> AbstractFloat:
    """|a|."""
    infinite = a.ninf or a.pinf
    if not a.finite:
        return AbstractFloat(INF, -INF, False, infinite, a.nan)
    low = 0.0 if a.may_be_zero else min(abs(a.lo), abs(a.hi))
    return AbstractFloat(low, max(abs(a.lo), abs(a.hi)), False, infinite, a.nan)


def _product(a: AbstractFloat, b: AbstractFloat) -> AbstractFloat:
    """a * b, unrounded: exact in doubles for the formats up to f32."""
    nan = a.nan or b.nan
    pinf = ninf = False
    for x, y in ((a, b), (b, a)):
        if not (x.pinf or x.ninf):
            continue
        nan = nan or y.may_be_zero
        above = y.pinf or (y.finite and y.hi > 0.0)
        below = y.ninf or (y.finite and y.lo < 0.0)
        pinf = pinf or (x.pinf and above) or (x.ninf and below)
        ninf = ninf or (x.pinf and below) or (x.ninf and above)
    if not (a.finite and b.finite):
        return AbstractFloat(INF, -INF, ninf, pinf, nan)
    ends = (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)
    return AbstractFloat(min(ends), max(ends), ninf, pinf, nan)


def multiply(a: AbstractFloat, b: AbstractFloat, mode: Mode) -> AbstractFloat:
    """a * b; a square is never negative, see `square`."""
    p = _product(a, b)
    exact = mode.form is not F64 or p.is_zero
    return _bounded(mode, p.lo, p.hi, exact, p.ninf, p.pinf, p.nan)


def _square(a: AbstractFloat) -> AbstractFloat:
    magnitude = absolute(a)
    return _product(magnitude, magnitude)


def square(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """a * a of one value."""
    p = _square(a)
    return _bounded(mode, p.lo, p.hi, mode.form is not F64, p.ninf, p.pinf, p.nan and a.nan)


def multiply_add(
    a: AbstractFloat, b: AbstractFloat, c: AbstractFloat, mode: Mode, same: bool = False
) -> AbstractFloat:
    """a * b + c with one rounding; `same` says that a and b are one value."""
    p = _square(a) if same else _product(a, b)
    if same:
        p = AbstractFloat(p.lo, p.hi, p.ninf, p.pinf, a.nan)
    nan = p.nan or c.nan or (p.pinf and c.ninf) or (p.ninf and c.pinf)
    pinf = (p.pinf and (c.finite or c.pinf)) or (c.pinf and p.finite)
    ninf = (p.ninf and (c.finite or c.ninf)) or (c.ninf and p.finite)
    if not (p.finite and c.finite):
        return AbstractFloat(INF, -INF, ninf, pinf, nan)
    lo, exact_low = _sum(p.lo, c.lo)
    hi, exact_high = _sum(p.hi, c.hi)
    exact = exact_low and exact_high and mode.form is not F64
    return _bounded(mode, lo, hi, exact, ninf, pinf, nan)


def maximum(a: AbstractFloat, b: AbstractFloat, keep_nan: bool = False) -> AbstractFloat:
    """The larger; a NaN gives way to a number unless `keep_nan` (`max.NaN`)."""
    low = max(a.low, b.low) if not (_only_nan(a) or _only_nan(b)) else INF
    high = max(a.high, b.high) if not (_only_nan(a) or _only_nan(b)) else -INF
    ninf, pinf = low == -INF, high == INF
    if ninf:
        low = min([x.lo for x in (a, b) if x.finite], default=INF)
    if pinf:
        high = max([x.hi for x in (a, b) if x.finite], default=-INF)
    if low == INF and not ninf:
        low, high = INF, -INF
    result = AbstractFloat(low, high, ninf, pinf, False)
    if keep_nan:
        return AbstractFloat(low, high, ninf, pinf, a.nan or b.nan)
    if a.nan:
        result = join(result, b)
    if b.nan:
        result = join(result, a)
    return AbstractFloat(result.lo, result.hi, result.ninf, result.pinf, a.nan and b.nan)


def minimum(a: AbstractFloat, b: AbstractFloat, keep_nan: bool = False) -> AbstractFloat:
    """The smaller; see `maximum`."""
    return negate(maximum(negate(a), negate(b), keep_nan))


def _only_nan(a: AbstractFloat) -> bool:
    return not (a.finite or a.ninf or a.pinf)


def reciprocal(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """1 / a."""
    return divide(ONE, a, mode)


def divide(a: AbstractFloat, b: AbstractFloat, mode: Mode) -> AbstractFloat:
    """a / b."""
    infinite_a, infinite_b = a.ninf or a.pinf, b.ninf or b.pinf
    nan = a.nan or b.nan or (infinite_a and infinite_b) or (a.may_be_zero and b.may_be_zero)
    nonzero = a.finite and (a.lo < 0.0 or a.hi > 0.0)
    pole = b.may_be_zero and (nonzero or infinite_a)
    above = b.finite and b.hi > 0.0
    below = b.finite and b.lo < 0.0
    pinf = pole or (a.pinf and above) or (a.ninf and below)
    ninf = pole or (a.pinf and below) or (a.ninf and above)
    out = AbstractFloat(INF, -INF, ninf, pinf, nan)
    if a.finite and infinite_b:
        out = join(out, ZERO)
    if not (a.finite and b.finite):
        return out
    if b.lo < 0.0 < b.hi or b.lo == b.hi == 0.0:
        quotient = ZERO if a.is_zero else AbstractFloat(-INF, INF)
        if b.lo == b.hi:
            return out
        if quotient is ZERO:
            return join(out, ZERO)
        return join(out, finite(mode.form))
    ends = [_quotient(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    if b.may_be_zero:
        # The quotient is taken towards the side of zero that the divisors lie on.
        sign = 1.0 if b.hi > 0.0 else -1.0
        ends = [_quotient(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi) if y]
        ends += [math.copysign(INF, x * sign) for x in (a.lo, a.hi) if x]
    exact = a.is_zero
    return join(out, _bounded(mode, min(ends), max(ends), exact, False, False, False))


def _quotient(x: float, y: float) -> float:
    if y == 0.0:
        return 0.0
    return x / y


# Functions -------------------------------------------------------------------------------------


def _widened(
    mode: Mode, lo: float, hi: float, relative: float, absolute_error: float = 0.0
) -> tuple[float, float]:
    """The interval of an approximation with this error."""
    if math.isfinite(lo):
        lo -= abs(lo) * relative + absolute_error
    if math.isfinite(hi):
        hi += abs(hi) * relative + absolute_error
    return lo, hi


def exp2(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """2 ** a, within 2 ** -21 of the result (half formats: within 2 ** -7)."""
    out = ZERO if a.ninf else None
    base = AbstractFloat(INF, -INF, False, a.pinf, a.nan)
    if a.finite:
        error = 2.0**-21 if mode.form.bits > 16 else 2.0**-7
        lo, hi = (_power_of_two(x) for x in (a.lo, a.hi))
        if a.lo == a.hi == 0.0:
            base = join(base, ONE)
        else:
            lo, hi = _widened(mode, lo, hi, error)
            base = join(base, _bounded(mode, lo, hi, False, False, False, False))
    return join(base, out) if out is not None else base


def _power_of_two(x: float) -> float:
    if x > 1023:
        return INF
    return 2.0**x if x > -1070 else 0.0


def log2(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """The binary logarithm, within 2 ** -20 absolutely or relatively."""
    negative = a.ninf or (a.finite and a.lo < 0.0)
    base = AbstractFloat(INF, -INF, a.may_be_zero, a.pinf, a.nan or negative)
    if not a.finite or a.hi <= 0.0:
        return base
    smallest = F32.smallest if mode.form is not F64 else F64.smallest
    lo = math.log2(max(a.lo, smallest))
    hi = math.log2(max(a.hi, smallest))
    if lo == hi and a.lo == 1.0:
        return join(base, ZERO)
    lo, hi = _widened(mode, lo, hi, 2.0**-20, 2.0**-20)
    return join(base, _bounded(mode, lo, hi, False, False, False, False))


def square_root(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """The square root; of a negative number, NaN."""
    negative = a.ninf or (a.finite and a.lo < 0.0)
    base = AbstractFloat(INF, -INF, False, a.pinf, a.nan or negative)
    if not a.finite or a.hi < 0.0:
        return base
    lo, hi = math.sqrt(max(a.lo, 0.0)), math.sqrt(a.hi)
    if hi == 0.0:
        return join(base, ZERO)
    lo, hi = _widened(mode, lo, hi, 2.0**-22)
    return join(base, _bounded(mode, max(lo, 0.0), hi, False, False, False, False))


def reciprocal_root(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """1 / sqrt(a)."""
    root = square_root(a, Mode(F64))
    return _approximate(divide(ONE, root, mode), mode)


def _approximate(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """A result that an instruction gives within 2 ** -21."""
    if not a.finite or a.is_zero:
        return a
    lo, hi = _widened(mode, a.lo, a.hi, 2.0**-21)
    return _bounded(mode, lo, hi, False, a.ninf, a.pinf, a.nan)


def approximate_quotient(a: AbstractFloat, b: AbstractFloat, mode: Mode) -> AbstractFloat:
    """`div.full` and `div.approx`: within 2 units in the last place; 0 for a huge divisor."""
    quotient = _approximate(divide(a, b, mode), mode)
    if b.finite and max(abs(b.lo), abs(b.hi)) >= 2.0**126:
        quotient = join(quotient, ZERO)
        if a.ninf or a.pinf:
            quotient = join(quotient, exactly(math.nan))
    return quotient


def approximate_reciprocal(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """`rcp.approx`: within 1 unit in the last place, results below the normal ones flushed."""
    return _approximate(divide(ONE, a, mode), mode)


def tangent(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """The hyperbolic tangent, within 2 ** -10 of the result (half formats: 2 ** -7)."""
    base = AbstractFloat(INF, -INF, nan=a.nan)
    for there, value in ((a.ninf, -1.0), (a.pinf, 1.0)):
        if there:
            base = join(base, exactly(value))
    if a.finite:
        if a.is_zero or a.lo == a.hi == 0.0:
            return join(base, ZERO)
        error = 2.0**-10 if mode.form.bits > 16 else 2.0**-7
        lo, hi = _widened(mode, math.tanh(a.lo), math.tanh(a.hi), error)
        found = _bounded(mode, lo, hi, False, False, False, False)
        base = join(base, AbstractFloat(max(found.lo, -1.0), min(found.hi, 1.0)))
    return base


def wave(a: AbstractFloat, at_zero: float) -> AbstractFloat:
    """Sine (`at_zero` 0) and cosine (1): from -1 to 1 and an allowance; NaN of an infinity."""
    base = AbstractFloat(INF, -INF, nan=a.nan or a.ninf or a.pinf)
    if not a.finite:
        return base
    if a.lo == a.hi == 0.0:
        return join(base, exactly(at_zero))
    return join(base, AbstractFloat(-1.001, 1.001))


def convert(a: AbstractFloat, mode: Mode) -> AbstractFloat:
    """The value rounded to another format."""
    exact = mode.form is not F64
    if mode.form is F64:
        return a
    return _bounded(mode, a.lo, a.hi, exact, a.ninf, a.pinf, a.nan)


def saturate(a: AbstractFloat) -> AbstractFloat:
    """`.sat`: clamped to 0 and 1, NaN gives 0."""
    out = minimum(maximum(a, ZERO), ONE)
    return join(out, ZERO) if a.nan else out


def rectified(a: AbstractFloat) -> AbstractFloat:
    """`.relu`: negative numbers give 0, NaN stays."""
    return maximum(a, ZERO, keep_nan=True)


# Comparisons -----------------------------------------------------------------------------------

_TESTS: Final[dict[str, Callable[[float, float, float, float], bool | None]]] = {
    "lt": lambda al, ah, bl, bh: True if ah < bl else False if al >= bh else None,
    "le": lambda al, ah, bl, bh: True if ah <= bl else False if al > bh else None,
    "eq": lambda al, ah, bl, bh: (
        True if al == ah == bl == bh else False if ah < bl or bh < al else None
    ),
}
_OPPOSITE: Final = {"ge": "lt", "gt": "le", "ne": "eq"}


def compare(relation: str, a: AbstractFloat, b: AbstractFloat) -> bool | None:
    """What a comparison gives for all values; None if it may be either.

    Ordered relations are false with a NaN, `ltu` and the like true, `num` and `nan` test for it.
    """
    possible = a.nan or b.nan
    only = _only_nan(a) or _only_nan(b)
    if relation in ("num", "nan"):
        if possible and not only:
            return None
        return only == (relation == "nan")
    unordered = len(relation) == 3 and relation.endswith("u")
    if only:
        return unordered
    base = relation[:2]
    test = _TESTS.get(_OPPOSITE.get(base, base))
    if test is None:
        return None
    found = test(a.low, a.high, b.low, b.high)
    if found is not None and base in _OPPOSITE:
        found = not found
    if found is None or (possible and found != unordered):
        return None
    return found
