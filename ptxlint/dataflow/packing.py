"""What integer operations make of words, above all those that pack elements into registers.

Bytes and halves that are moved as wholes, by `prmt`, shifts, masks, bit fields, or by adding words
of which one is 0 wherever the other one is not, keep what is known of them. What takes a byte
apart leaves that byte unknown. Semantics: PTX ISA, "Integer Arithmetic Instructions", "Logic and
Shift Instructions", "Data Movement and Conversion Instructions: prmt".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import BF16, F32, AbstractFloat
from ptxlint.dataflow.integer_words import Span, bounds
from ptxlint.dataflow.register_words import (
    BYTE,
    UNKNOWN,
    Data,
    Either,
    Number,
    Unknown,
    Word,
    halves,
    packed,
    parts_of,
    whole_of,
)
from ptxlint.ir.instruction import Shape
from ptxlint.ir.types import BITS

_HALF: Final = 16


def integer(shape: Shape, words: list[Word]) -> Word:
    """The result of an integer operation on words."""
    opcode, kind = shape.opcode, shape.type
    words = [bits_of(w) if isinstance(w, Number) else w for w in words]
    if kind[-2:] in ("x2", "x4"):
        return UNKNOWN
    rule = _EXACT.get(opcode)
    if rule is not None:
        numbers = [w for w in words if isinstance(w, int)]
        if len(numbers) == len(words):
            return _exactly(shape, rule, numbers)
    packing = _PACKING.get(opcode)
    return UNKNOWN if packing is None else packing(shape, words, BITS.get(kind, 32))


def bits_of(word: Word) -> Word:
    """The bits of a number that is known exactly."""
    if not isinstance(word, Number):
        return word
    bits = floats.encode(word.form, word.value)
    return word if bits is None else bits


def widened(word: Word) -> Word:
    """A bf16 number as the f32 whose high half it is."""
    if isinstance(word, int):
        return (word & 0xFFFF) << 16
    if isinstance(word, Number) and word.form is BF16:
        return Number(F32, word.value)
    if isinstance(word, Either):
        return Either(word.data, tuple((c & 0xFFFF) << 16 for c in word.constants))
    return word if isinstance(word, Data) else packed(0, word, _HALF)


# Exact bits ------------------------------------------------------------------------------------


def _exactly(shape: Shape, rule: Callable[..., int], numbers: list[int]) -> Word:
    kind = shape.type
    width = BITS.get(kind, 32)
    if shape.has("hi") or shape.has("sat"):
        return UNKNOWN
    if shape.has("wide"):
        width *= 2
        numbers[:2] = [bounds(number, kind)[0] for number in numbers[:2]]
    elif kind.startswith("s") and shape.opcode in ("shr", "abs"):
        numbers[0] = bounds(numbers[0], kind)[0]
    return rule(*numbers) & (1 << width) - 1


_EXACT: Final[dict[str, Callable[..., int]]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "neg": lambda a: -a,
    "abs": lambda a: abs(a),
    "shl": lambda a, n: a << min(n, 64),
    "shr": lambda a, n: a >> min(n, 64),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: a * b + c,
}


# Bytes -----------------------------------------------------------------------------------------


def _permute(shape: Shape, words: list[Word], width: int) -> Word:
    selector = words[2]
    if len(shape.modifiers) != 1 or not isinstance(selector, int):
        return UNKNOWN
    return permuted(words[0], words[1], selector)


def permuted(first: Word, second: Word, selector: int) -> Word:
    """`prmt` in its default mode: each nibble of the selector chooses a byte, or its sign."""
    for word, same in ((first, 0x3210), (second, 0x7654)):
        if selector & 0xFFFF == same:
            return word
    chosen: list[Word] = []
    sources: list[Word] | None = None
    for shift in (0, 8):
        low, high = selector >> shift & 15, selector >> shift + 4 & 15
        if high == low + 1 and not low & 1 and high < 8:
            chosen.append(halves(second if low & 4 else first, 32)[low >> 1 & 1])
            continue
        if sources is None:
            sources = parts_of(first, 32, BYTE) + parts_of(second, 32, BYTE)
        chosen.append(packed(_chosen(sources, low), _chosen(sources, high), BYTE))
    return packed(chosen[0], chosen[1], _HALF)


def _chosen(sources: list[Word], nibble: int) -> Word:
    byte = sources[nibble & 7]
    if not nibble & 8:
        return byte
    if not isinstance(byte, int):
        return UNKNOWN
    return 0xFF if byte & 0x80 else 0


def _shift_left(shape: Shape, words: list[Word], width: int) -> Word:
    word, amount = words
    if not isinstance(amount, int):
        return UNKNOWN
    return shifted_left(word, width, amount)


def shifted_left(word: Word, width: int, amount: int) -> Word:
    """A word of which the lowest `amount` bits have become zeros."""
    if not amount:
        return word
    if amount >= width:
        return 0
    if isinstance(word, int):
        return word << amount & (1 << width) - 1
    if isinstance(word, Span) and not word.high << amount >> width:
        return Span(word.low << amount, word.high << amount)
    if amount == _HALF and width == 32:
        return widened(halves(word, 32)[0])
    if amount % BYTE:
        return UNKNOWN
    grain = BYTE if amount % _HALF else _HALF
    parts = parts_of(word, width, grain)
    empty: list[Word] = [0] * (amount // grain)
    return whole_of(empty + parts[: -len(empty)], grain)


def _shift_right(shape: Shape, words: list[Word], width: int) -> Word:
    word, amount = words
    if not isinstance(amount, int):
        return UNKNOWN
    return shifted_right(word, width, amount, shape.type.startswith("s"))


def shifted_right(word: Word, width: int, amount: int, signed: bool) -> Word:
    """A word without its lowest `amount` bits: with zeros, or copies of its sign, above."""
    if not amount:
        return word
    if amount >= width:
        return UNKNOWN if signed else 0
    if isinstance(word, Span) and not word.high >> width - 1:
        return Span(word.low >> amount, word.high >> amount)
    if amount % BYTE:
        return UNKNOWN if signed else Span(0, (1 << width - amount) - 1)
    grain = BYTE if amount % _HALF else _HALF
    parts = parts_of(word, width, grain)
    count = amount // grain
    filler = _sign(parts[-1], grain) if signed else 0
    return whole_of(parts[count:] + [filler] * count, grain)


def _sign(part: Word, bits: int) -> Word:
    """`bits` copies of the highest bit of a word of as many bits."""
    top = parts_of(part, bits, BYTE)[-1]
    if not isinstance(top, int):
        return UNKNOWN
    return (1 << bits) - 1 if top >> BYTE - 1 & 1 else 0


# Bits ------------------------------------------------------------------------------------------


def _mask(shape: Shape, words: list[Word], width: int) -> Word:
    a, b = words
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int) and width == 32 and b == 0xFFFF0000:
        return widened(halves(a, 32)[1])
    if isinstance(b, int) and not b >> width - 1 and isinstance(a, (Unknown, Span)):
        return Span(0, min(a.high, b) if isinstance(a, Span) else b)
    return masked(a, b, width)


def masked(a: Word, b: Word, width: int) -> Word:
    """The `and` of two words."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int):
            if x == 0:
                return 0
            if x == (1 << width) - 1:
                return y
            if isinstance(y, int):
                return x & y
            if isinstance(y, Span) and width <= BYTE:
                return Span(0, min(x, y.high))
            if x == (1 << width - 1) - 1:
                found = _with_sign(y, width, floats.absolute)
                if found is not None:
                    return found
    if width <= BYTE or (isinstance(a, Unknown) and isinstance(b, Unknown)):
        return UNKNOWN
    (al, ah), (bl, bh) = halves(a, width), halves(b, width)
    width //= 2
    return packed(masked(al, bl, width), masked(ah, bh, width), width)


def _with_sign(
    word: Word, width: int, rule: Callable[[AbstractFloat], AbstractFloat]
) -> Word | None:
    """A number with another sign, which is its highest bit; None for a word that is no number."""
    if isinstance(word, Number) and word.form.bits == width:
        return Number(word.form, rule(word.value))
    return word if isinstance(word, Data) and word.sample is None else None


def _negative(value: AbstractFloat) -> AbstractFloat:
    return floats.negate(floats.absolute(value))


def _united(shape: Shape, words: list[Word], width: int) -> Word:
    return united(words[0], words[1], width, shape.opcode == "or")


def united(a: Word, b: Word, width: int, is_or: bool) -> Word:
    """The `or` or `xor` of two words."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int):
            if x == 0:
                return y
            if isinstance(y, int):
                return x | y if is_or else x ^ y
            if is_or and x == (1 << width) - 1:
                return x
            if x == 1 << width - 1:
                found = _with_sign(y, width, _negative if is_or else floats.negate)
                if found is not None:
                    return found
    if width <= BYTE or (isinstance(a, Unknown) and isinstance(b, Unknown)):
        return UNKNOWN
    (al, ah), (bl, bh) = halves(a, width), halves(b, width)
    width //= 2
    return packed(united(al, bl, width, is_or), united(ah, bh, width, is_or), width)


def _added(shape: Shape, words: list[Word], width: int) -> Word:
    a, b = words
    if shape.has("sat"):
        return UNKNOWN
    if isinstance(a, (int, Span)) and isinstance(b, (int, Span)):
        (al, ah), (bl, bh) = _ends(a), _ends(b)
        return UNKNOWN if ah + bh >> width else Span(al + bl, ah + bh)
    found = summed(a, b, width)
    return UNKNOWN if found is None else found


def _ends(word: int | Span) -> tuple[int, int]:
    return (word, word) if isinstance(word, int) else (word.low, word.high)


def summed(a: Word, b: Word, width: int) -> Word | None:
    """The sum of two words of which one is 0 in each byte; None if there may be a carry."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int):
            if x == 0:
                return y
            if isinstance(y, int):
                return x + y if not x + y >> width else None
    if width <= BYTE or isinstance(a, Unknown) or isinstance(b, Unknown):
        return None
    (al, ah), (bl, bh) = halves(a, width), halves(b, width)
    width //= 2
    low = summed(al, bl, width)
    high = None if low is None else summed(ah, bh, width)
    return None if low is None or high is None else packed(low, high, width)


def _multiplied(shape: Shape, words: list[Word], width: int) -> Word:
    """A product with a power of two, plus a third word if there is one."""
    a, b = words[:2]
    if not shape.has("lo"):
        return UNKNOWN
    found: Word
    if isinstance(a, int) and isinstance(b, int):
        found = a * b & (1 << width) - 1
    else:
        if isinstance(a, int):
            a, b = b, a
        if not isinstance(b, int) or b & b - 1:
            return UNKNOWN
        found = 0 if b == 0 else shifted_left(a, width, b.bit_length() - 1)
    if len(words) == 2:
        return found
    total = summed(found, words[2], width)
    return UNKNOWN if total is None else total


def _insert(shape: Shape, words: list[Word], width: int) -> Word:
    """`bfi`: bits of the first word put into the second one."""
    a, b, start, count = words
    if not isinstance(start, int) or not isinstance(count, int):
        return UNKNOWN
    start, count = start & 0xFF, count & 0xFF
    count = max(0, min(count, width - start))
    if isinstance(a, int) and isinstance(b, int):
        ones = (1 << count) - 1
        return b & ~(ones << start) & (1 << width) - 1 | (a & ones) << start
    if start % BYTE or count % BYTE:
        return UNKNOWN
    out = parts_of(b, width, BYTE)
    first = start // BYTE
    out[first : first + count // BYTE] = parts_of(a, width, BYTE)[: count // BYTE]
    return whole_of(out, BYTE)


def _extract(shape: Shape, words: list[Word], width: int) -> Word:
    """`bfe`: some bits of a word, with zeros or copies of the highest one above."""
    word, start, count = words
    if not isinstance(start, int) or not isinstance(count, int):
        return UNKNOWN
    start, count = start & 0xFF, count & 0xFF
    if not count:
        return 0
    signed = shape.type.startswith("s")
    if start + count > width:
        return UNKNOWN if signed else shifted_right(word, width, start, False)
    if isinstance(word, int):
        field = word >> start & (1 << count) - 1
        negative = signed and field >> count - 1
        return field | (1 << width) - (1 << count) if negative else field
    if start % BYTE or count % BYTE:
        return UNKNOWN if signed else Span(0, (1 << count) - 1)
    grain = BYTE if start % _HALF or count % _HALF else _HALF
    parts = parts_of(word, width, grain)[start // grain : (start + count) // grain]
    filler = _sign(parts[-1], grain) if signed else 0
    return whole_of(parts + [filler] * (width // grain - len(parts)), grain)


def _funnel(shape: Shape, words: list[Word], width: int) -> Word:
    """`shf`: 32 bits out of two words side by side."""
    low, high, amount = words
    if not isinstance(amount, int):
        return UNKNOWN
    amount = amount & 31 if shape.has("wrap") else min(amount, 32)
    if amount % BYTE:
        return UNKNOWN
    at = amount // BYTE
    parts = parts_of(low, 32, BYTE) + parts_of(high, 32, BYTE)
    start = 4 - at if shape.has("l") else at
    return whole_of(parts[start : start + 4], BYTE)


def _clamped(shape: Shape, words: list[Word], width: int) -> Word:
    """The larger or smaller of two integers."""
    kind = shape.type
    if len(words) != 2:
        return UNKNOWN
    (a, b), (c, d) = (bounds(word, kind) for word in words)
    choose = max if shape.opcode == "max" else min
    low, high = choose(a, c), choose(b, d)
    if low == high:
        return low & (1 << BITS.get(kind, 32)) - 1
    return Span(low, high) if low >= 0 else UNKNOWN


_PACKING: Final[dict[str, Callable[[Shape, list[Word], int], Word]]] = {
    "prmt": _permute,
    "shl": _shift_left,
    "shr": _shift_right,
    "and": _mask,
    "or": _united,
    "xor": _united,
    "add": _added,
    "mul": _multiplied,
    "mad": _multiplied,
    "bfi": _insert,
    "bfe": _extract,
    "shf": _funnel,
    "max": _clamped,
    "min": _clamped,
}
