"""Words: what is known of the bits of a register.

A word is exact bits, an abstract float of a format, finite data, a span of integers, nothing at
all, or a plain pair of its low and its high half, each of which is a word again: so a register of
four elements of 8 bits is a pair of pairs. How wide a word is its register says. Halves and bytes
that move as wholes keep what is known of them, and what several of them make up together is no
number of a wider format.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import BF16, E5M2, F32, AbstractFloat, Format
from ptxlint.dataflow.integer_words import Span, joined
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import BITS

BYTE: Final = 8


class Data(NamedTuple):
    """A finite number in whatever format it is read; a certain one if `sample` is not None."""

    sample: float | None = None


class Either(NamedTuple):
    """Data, or one of a few constants, in whatever format it is read."""

    data: Data
    constants: tuple[int, ...]


class Unknown(NamedTuple):
    """Any bits."""


class Number(NamedTuple):
    """An abstract float of a format."""

    form: Format
    value: AbstractFloat


Word: TypeAlias = "int | Span | Data | Either | Unknown | Number | tuple[Any, Any]"
"""What a register holds; a plain pair is its low and its high half."""
DATA: Final = Data()
UNKNOWN: Final = Unknown()
_UPPER: Final = {"f32": BF16, "f16": E5M2}
"""By format: the one whose numbers are the upper halves of its own, with zeros below."""
_MOST: Final = 3
"""So many constants are told apart."""


def loaded_bits(load: Instr, width: int) -> int:
    """How many bits a load brings into each of its registers of `width` bits; the rest is made."""
    return width if load.opcode == "ldmatrix" else min(width, BITS.get(load.shape.type, width))


def is_pair(word: Word) -> bool:
    """True for a word that is known by its halves."""
    return type(word) is tuple


def as_float(word: Word, form: Format) -> AbstractFloat:
    """A word read as a number."""
    if isinstance(word, Number):
        return word.value if word.form is form else floats.anything(form)
    if isinstance(word, Data):
        return floats.finite(form) if word.sample is None else floats.exactly(word.sample)
    if isinstance(word, int):
        return floats.decode(form, word)
    if isinstance(word, Either):
        found = as_float(word.data, form)
        for constant in word.constants:
            found = floats.join(found, floats.decode(form, constant))
        return found
    if isinstance(word, Span):
        return _between(word, form)
    upper = _UPPER.get(form.name)
    if upper is not None and type(word) is tuple:
        pair: tuple[Any, ...] = word
        if isinstance(pair[0], int) and not pair[0]:
            return as_float(pair[1], upper)
    return floats.anything(form)


def _between(word: Span, form: Format) -> AbstractFloat:
    """The numbers whose bits lie between two others, of which those of one sign are in order."""
    sign = 1 << form.bits - 1
    if word.high >> form.bits or (word.low ^ word.high) & sign:
        return floats.anything(form)
    first, last = floats.decode(form, word.low), floats.decode(form, word.high)
    if not last.is_finite:
        return floats.anything(form)
    return AbstractFloat(last.lo, first.hi) if word.low & sign else AbstractFloat(first.lo, last.hi)


def is_finite_word(word: Word) -> bool:
    """True if a word is no infinity and no NaN in the format that it is made for.

    As this is not known of a constant, it must be none in any.
    """
    if type(word) is tuple:
        pair: tuple[Any, ...] = word
        return is_finite_word(pair[0]) and is_finite_word(pair[1])
    if isinstance(word, int):
        return _is_finite_constant(word)
    if isinstance(word, Number):
        return word.value.is_finite
    if isinstance(word, Either):
        return all(map(_is_finite_constant, word.constants))
    return isinstance(word, Data)


def _is_finite_constant(bits: int) -> bool:
    """True if no exponent in a word is all ones, whether of 32, 16 or 8 bits."""
    while bits:
        if bits & 0x7F800000 == 0x7F800000:
            return False
        if any(bits >> at & 0x7C00 == 0x7C00 for at in (0, 16)):
            return False
        if any(bits >> at & 0x7C == 0x7C for at in (0, 8, 16, 24)):
            return False
        bits >>= 32
    return True


def halves(word: Word, width: int) -> tuple[Word, Word]:
    """The low and the high half of a word of `width` bits."""
    if type(word) is tuple:
        pair: tuple[Any, ...] = word
        return pair[0], pair[1]
    if isinstance(word, int):
        half = width // 2
        return word & (1 << half) - 1, word >> half & (1 << half) - 1
    if isinstance(word, Data):
        return word, word
    if isinstance(word, Either):
        parts = [halves(constant, width) for constant in word.constants]
        data = word.data
        return _either(data, [a for a, _ in parts]), _either(data, [b for _, b in parts])
    if isinstance(word, Span) and word.high < 1 << width // 2:
        return word, 0
    if isinstance(word, Number) and word.form is F32 and width == 32 and word.value.is_zero:
        return 0, Number(BF16, word.value)
    return UNKNOWN, UNKNOWN


def packed(low: Word, high: Word, bits: int) -> Word:
    """The word of two parts of `bits` bits each."""
    if isinstance(high, int):
        if isinstance(low, int):
            return low & (1 << bits) - 1 | high << bits
    elif isinstance(low, Unknown) and isinstance(high, Unknown):
        return UNKNOWN
    return low, high


def parts_of(word: Word, width: int, bits: int) -> list[Word]:
    """The parts of `bits` bits of a word, lowest first."""
    parts = [word]
    while width > bits:
        split: list[Word] = []
        for part in parts:
            split += halves(part, width)
        parts = split
        width //= 2
    return parts


def whole_of(parts: list[Word], bits: int) -> Word:
    """The word whose parts of `bits` bits these are, lowest first, a power of two of them."""
    while len(parts) > 1:
        parts = [packed(parts[at], parts[at + 1], bits) for at in range(0, len(parts), 2)]
        bits *= 2
    return parts[0]


def lowest(word: Word, width: int, bits: int) -> Word:
    """The low `bits` bits of a word."""
    while width > bits:
        word = halves(word, width)[0]
        width //= 2
    return word


def extended(word: Word, bits: int, width: int, signed: bool = False) -> Word:
    """A word of `bits` bits as one of `width` bits: with zeros, or copies of its sign."""
    if bits >= width:
        return word
    if isinstance(word, int):
        word &= (1 << bits) - 1
        if signed and word >> bits - 1:
            word |= (1 << width) - (1 << bits)
        return word
    if not signed:
        while bits < width:
            word = packed(word, 0, bits)
            bits *= 2
        return word
    top = parts_of(word, bits, BYTE)[-1]
    filler: Word = UNKNOWN
    if isinstance(top, int):
        filler = (1 << width) - 1 if top >> 7 & 1 else 0
    while bits < width:
        high = filler & (1 << bits) - 1 if isinstance(filler, int) else filler
        word = packed(word, high, bits)
        bits *= 2
    return word


def _either(data: Data, others: Iterable[Word]) -> Word:
    """Data or one of some constants, among which 0 is data like others."""
    constants: set[int] = set()
    for other in others:
        if isinstance(other, Either):
            constants.update(other.constants)
        elif isinstance(other, int):
            constants.add(other)
        else:
            return UNKNOWN
    if data.sample is None:
        constants.discard(0)
    if not constants:
        return data
    return Either(data, tuple(sorted(constants))) if len(constants) <= _MOST else UNKNOWN


def join(a: Word, b: Word) -> Word:
    """What may be either."""
    if a is b or (a == b and type(a) is type(b)):
        return a
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    if type(a) is tuple or type(b) is tuple:
        for x in (a, b):
            # How wide a constant is that stands beside halves is not known, unless it is a byte.
            if type(x) is tuple or isinstance(x, Data):
                continue
            if not isinstance(x, int) or x >> BYTE:
                return UNKNOWN
        (al, ah), (bl, bh) = halves(a, 32), halves(b, 32)
        low, high = join(al, bl), join(ah, bh)
        return UNKNOWN if low is UNKNOWN and high is UNKNOWN else (low, high)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Number):
            if isinstance(y, Number) and y.form is not x.form:
                return UNKNOWN
            return Number(x.form, floats.join(x.value, as_float(y, x.form)))
    if isinstance(a, (int, Span)) and isinstance(b, (int, Span)):
        return joined(a, b)
    data = {x.data if isinstance(x, Either) else x for x in (a, b) if isinstance(x, (Data, Either))}
    if len(data) == 1:
        # A finite number in each format stays data; bits of an infinity would not.
        return _either(data.pop(), [x for x in (a, b) if not isinstance(x, Data)])
    return UNKNOWN


def widened_word(held: Word, found: Word) -> Word:
    """A word that grew from one round to the next, with bounds that growth does not move."""
    if type(held) is tuple and type(found) is tuple:
        (a, b), (c, d) = halves(held, 32), halves(found, 32)
        return (a if a == c else widened_word(a, c)), (b if b == d else widened_word(b, d))
    if not isinstance(found, Number):
        return found
    old = as_float(held, found.form)
    value, largest = found.value, found.form.largest
    if not value.finite:
        return found
    lo, hi = value.lo, value.hi
    if not old.finite or lo < old.lo:
        lo = 0.0 if lo >= 0.0 else -largest
    if not old.finite or hi > old.hi:
        hi = 0.0 if hi <= 0.0 else largest
    return Number(found.form, floats.AbstractFloat(lo, hi, value.ninf, value.pinf, value.nan))


__all__ = [
    "DATA", "UNKNOWN", "Data", "Either", "Number", "Unknown", "Word", "as_float", "extended",
    "halves", "is_finite_word", "is_pair", "join", "loaded_bits", "lowest", "packed", "parts_of",
    "whole_of", "widened_word",
]  # fmt: skip
