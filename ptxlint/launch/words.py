"""Integer instructions on arrays of machine words, wrap included (PTX ISA, "Instruction Set").

A register's bits are kept as unsigned 64-bit numbers with zeros above its width; a predicate is 0
or 1. Which lanes of a word are known is kept beside it: a number from memory is known in none, and
`p ? loaded : 0` where p is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register, Sink, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

Numbers: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]

U: Final = np.uint64
ONES: Final = (1 << 64) - 1
_INTEGERS: Final = frozenset("pred b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64".split())


class Word(NamedTuple):
    """What a value is in each lane. `known` says in which lanes that is known, None for all."""

    bits: Numbers
    known: Flags | None = None


Operation: TypeAlias = Callable[[Sequence["Word | None"]], "Word | None"]
"""What computes a result from the source operands; None is a word that no lane knows."""
_Plain: TypeAlias = Callable[..., Numbers]


def constant(number: int) -> Word:
    """The same number in all lanes, as far as 64 bits hold it."""
    return Word(np.full((1, 1), number & ONES, dtype=np.uint64))


def both_known(a: Flags | None, b: Flags | None) -> Flags | None:
    """Where two words are known."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


def unsigned(bits: Numbers, width: int) -> Numbers:
    """The low bits as unsigned numbers."""
    return bits if width >= 64 else bits & U((1 << width) - 1)


def signed(bits: Numbers, width: int) -> NDArray[np.int64]:
    """The low bits as two's complement numbers."""
    if width >= 64:
        return bits.view(np.int64)
    sign = U(1 << (width - 1))
    return ((unsigned(bits, width) ^ sign) - sign).view(np.int64)


def chosen(predicate: Word | None, yes: Word | None, no: Word | None) -> Word | None:
    """`p ? yes : no`, known where the predicate and the arm that it chooses are."""
    if predicate is None or (yes is None and no is None):
        return None
    holds = predicate.bits != 0
    known = predicate.known
    if yes is None or yes.known is not None:
        known = both_known(known, ~holds if yes is None else ~holds | yes.known)
    if no is None or no.known is not None:
        known = both_known(known, holds if no is None else holds | no.known)
    if yes is None or no is None:
        some = yes if yes is not None else no
        return None if some is None else Word(some.bits, known)
    return Word(np.where(holds, yes.bits, no.bits), known)


def operation(instr: Instr, result: int) -> Operation | None:
    """What computes one result of an instruction; None if that is not followed."""
    shape = instr.shape
    types = shape.types
    if shape.opcode == "cvta":
        return _first if shape.has("global") else None
    if not types or shape.row.reads_carry or any(t not in _INTEGERS for t in types):
        return None
    if any(m in shape.modifiers for m in ("cc", "sat", "relu")):
        return None
    if shape.opcode == "mov":
        return _move(instr, result)
    if isinstance(instr.operands[0], Vector) or shape.partial:
        return None
    if shape.opcode == "setp":
        return _comparison(instr, result)
    if result or not isinstance(instr.operands[0], Register):
        return None
    if shape.opcode == "cvt":
        return _conversion(instr)
    width = BITS[types[-1]]
    if shape.opcode == "selp":
        return lambda words: _cut(chosen(words[2], words[0], words[1]), width)
    if width == 1:
        return _LOGIC.get(shape.opcode)
    make = _MAKERS.get(shape.opcode)
    if make is None or len(instr.operands) - 1 != _ARITIES.get(shape.opcode, 2):
        return None
    plain = make(instr, width, types[-1][0] == "s")
    if plain is None:
        return None
    strict = _strict(plain)
    return _unless_zero(strict, width) if shape.opcode in ("div", "rem") else strict


def _cut(word: Word | None, width: int) -> Word | None:
    return None if word is None else Word(unsigned(word.bits, width), word.known)


def _unless_zero(divide: Operation, width: int) -> Operation:
    """A division: what it gives by zero is not specified."""

    def apply(words: Sequence[Word | None]) -> Word | None:
        found, by = divide(words), words[1]
        if found is None or by is None:
            return None
        is_zero = unsigned(by.bits, width) == 0
        return Word(found.bits, both_known(found.known, ~is_zero)) if is_zero.any() else found

    return apply


def _first(words: Sequence[Word | None]) -> Word | None:
    return words[0]


def _strict(plain: _Plain) -> Operation:
    """An operation that is known where all its operands are."""

    def apply(words: Sequence[Word | None]) -> Word | None:
        known: Flags | None = None
        bits = []
        for word in words:
            if word is None:
                return None
            known = both_known(known, word.known)
            bits.append(word.bits)
        return Word(plain(*bits), known)

    return apply


# Moves and conversions ------------------------------------------------------------------------
def _move(instr: Instr, result: int) -> Operation | None:
    if len(instr.operands) != 2:
        return None
    target, source = instr.operands
    width = BITS[instr.shape.type]
    if isinstance(target, Vector):
        return None if isinstance(source, Vector) else _unpacked(instr, target, result, width)
    if isinstance(source, Vector):
        part = width // len(source.elements)
        return _strict(lambda *parts: _packed(parts, part))
    if width == 1:
        return _strict(lambda a: (a != 0).astype(np.uint64))
    return _strict(lambda a: unsigned(a, width))


def _packed(parts: Sequence[Numbers], width: int) -> Numbers:
    out = unsigned(parts[0], width)
    for at, part in enumerate(parts[1:], 1):
        out = out | unsigned(part, width) << U(at * width)
    return out


def _unpacked(instr: Instr, target: Vector, result: int, width: int) -> Operation | None:
    part = width // len(target.elements)
    places = [at for at, e in enumerate(target.elements) if not isinstance(e, Sink)]
    if result >= len(places):
        return None
    shift = U(part * places[result])
    return _strict(lambda a: unsigned(a >> shift, part))


def _conversion(instr: Instr) -> Operation | None:
    """`cvt`: the source is cut or extended by its type, the result by the type written."""
    types, target = instr.shape.types, instr.operands[0]
    if len(types) != 2 or len(instr.operands) != 2 or not isinstance(target, Register):
        return None
    if instr.shape.has("pack"):
        return None
    return _strict(extension(types[1], types[0], BITS.get(target.type, 64)))


def extension(source: str, written: str, register: int) -> _Plain:
    """A word of one type as another, in a register that may be wider than that."""

    def convert(a: Numbers) -> Numbers:
        width = BITS[source]
        a = signed(a, width).view(np.uint64) if source[0] == "s" else unsigned(a, width)
        width = BITS[written]
        a = signed(a, width).view(np.uint64) if written[0] == "s" else unsigned(a, width)
        return unsigned(a, register)

    return convert


def loaded(number: int, type_name: str, register_type: str) -> Word:
    """A number of a type, as `ld` puts it into a register that may be wider."""
    extend = extension(type_name, type_name, BITS.get(register_type, 64))
    return Word(extend(constant(number).bits))


# Predicates -----------------------------------------------------------------------------------
_RELATIONS: Final[dict[str, Callable[..., Flags]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip


def _comparison(instr: Instr, result: int) -> Operation | None:
    """`setp`; the second result is of the opposite comparison (PTX ISA, "setp")."""
    shape = instr.shape
    relation = _RELATIONS.get(shape.modifiers[0])
    combine = next((_LOGIC[m] for m in shape.modifiers[1:] if m in _LOGIC), None)
    count = len(instr.operands) - 1
    if relation is None or len(shape.types) != 1 or count != (2 if combine is None else 3):
        return None
    width, is_signed = BITS[shape.type], shape.type[0] == "s"
    if is_signed and shape.modifiers[0] in ("lo", "ls", "hi", "hs"):
        return None
    read = signed if is_signed else unsigned

    def compare(a: Numbers, b: Numbers) -> Numbers:
        met: Flags = relation(read(a, width), read(b, width))
        out: Numbers = (met != bool(result)).astype(np.uint64)
        return out

    compared = _strict(compare)
    if combine is None:
        return compared
    joined = combine
    return lambda words: joined((compared(words[:2]), words[2]))


def _with_zero(words: Sequence[Word | None], decisive: int) -> Word | None:
    """`and` (0 decides) and `or` (1 does): known, too, where one operand decides."""
    left, right = words
    if left is None or right is None:
        some = left if right is None else right
        if some is None:
            return None
        decided = some.bits == decisive
        return Word(some.bits, both_known(some.known, decided))
    bits = left.bits & right.bits if decisive == 0 else left.bits | right.bits
    if left.known is None and right.known is None:
        return Word(bits)
    known = np.zeros((1, 1), dtype=bool)
    for word in (left, right):
        decided = word.bits == decisive
        known = known | (decided if word.known is None else decided & word.known)
    both = both_known(left.known, right.known)
    assert both is not None
    decided_bits = np.where(known & ~both, U(decisive), bits)
    return Word(decided_bits, known | both)


_LOGIC: Final[dict[str, Operation]] = {
    "and": lambda words: _with_zero(words, 0),
    "or": lambda words: _with_zero(words, 1),
    "xor": _strict(lambda a, b: a ^ b),
    "not": _strict(lambda a: a ^ U(1)),
}


# Arithmetic -----------------------------------------------------------------------------------
_Maker: TypeAlias = Callable[[Instr, int, bool], "_Plain | None"]


def _read(bits: Numbers, width: int, is_signed: bool) -> Numbers:
    """The low bits, extended to 64 by their type; as the bits of that number."""
    return signed(bits, width).view(np.uint64) if is_signed else unsigned(bits, width)


def _ring(apply: Callable[..., Numbers]) -> _Maker:
    """Operations whose low bits depend on the operands' low bits alone."""

    def make(instr: Instr, width: int, is_signed: bool) -> _Plain:
        return lambda *operands: unsigned(apply(*operands), width)

    return make


def _multiply(instr: Instr, width: int, is_signed: bool) -> _Plain | None:
    shape = instr.shape
    if shape.has("wide"):
        return lambda a, b: unsigned(
            _read(a, width, is_signed) * _read(b, width, is_signed), 2 * width
        )
    if shape.has("hi"):
        return lambda a, b: _high(a, b, width, is_signed)
    return lambda a, b: unsigned(a * b, width)


def _multiply_add(instr: Instr, width: int, is_signed: bool) -> _Plain | None:
    product = _multiply(instr, width, is_signed)
    if product is None or not any(instr.shape.has(m) for m in ("lo", "hi", "wide")):
        return None
    multiply, written = product, 2 * width if instr.shape.has("wide") else width
    return lambda a, b, c: unsigned(multiply(a, b) + c, written)


def _high(a: Numbers, b: Numbers, width: int, is_signed: bool) -> Numbers:
    """The upper half of a product."""
    if width < 64:
        product = _read(a, width, is_signed) * _read(b, width, is_signed)
        return unsigned(product >> U(width), width)
    half, low = U(32), U(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low)
    high = a_high * b_high + (middle >> half) + (other >> half)
    if is_signed:
        zero = U(0)
        high = high - np.where(a.view(np.int64) < 0, b, zero)
        high = high - np.where(b.view(np.int64) < 0, a, zero)
    return unsigned(high, 64)


def _divide(instr: Instr, width: int, is_signed: bool) -> _Plain:
    return lambda a, b: unsigned(_divided(a, b, width, is_signed)[0], width)


def _remainder(instr: Instr, width: int, is_signed: bool) -> _Plain:
    return lambda a, b: unsigned(_divided(a, b, width, is_signed)[1], width)


def _divided(a: Numbers, b: Numbers, width: int, is_signed: bool) -> tuple[Numbers, Numbers]:
    """Quotient, rounded towards zero, and remainder, with the sign of the dividend."""
    a, b = _read(a, width, is_signed), _read(b, width, is_signed)
    if not is_signed:
        by = np.where(b == 0, U(1), b)
        return a // by, a % by
    a_below, b_below = a.view(np.int64) < 0, b.view(np.int64) < 0
    size_a, size_b = np.where(a_below, -a, a), np.where(b_below, -b, b)
    size_b = np.where(size_b == 0, U(1), size_b)
    quotient, rest = size_a // size_b, size_a % size_b
    return np.where(a_below != b_below, -quotient, quotient), np.where(a_below, -rest, rest)


def _extreme(is_first: Callable[..., Flags]) -> _Maker:
    """`min` and `max`: the operand that compares so with the other one."""

    def make(instr: Instr, width: int, is_signed: bool) -> _Plain:
        read = signed if is_signed else unsigned

        def apply(a: Numbers, b: Numbers) -> Numbers:
            return unsigned(np.where(is_first(read(a, width), read(b, width)), a, b), width)

        return apply

    return make


def _absolute(instr: Instr, width: int, is_signed: bool) -> _Plain:
    def apply(a: Numbers) -> Numbers:
        a = _read(a, width, True)
        return unsigned(np.where(a.view(np.int64) < 0, -a, a), width)

    return apply


# Shifts and bit fields ------------------------------------------------------------------------
def _count(bits: Numbers) -> Numbers:
    """A shift's count, which is an unsigned 32-bit number."""
    return unsigned(bits, 32)


def _up(a: Numbers, count: Numbers) -> Numbers:
    """Shifted up, with nothing left from 64 on."""
    return np.where(count < 64, a << np.minimum(count, U(63)), U(0))


def _down(a: Numbers, count: Numbers) -> Numbers:
    return np.where(count < 64, a >> np.minimum(count, U(63)), U(0))


def _ones(count: Numbers) -> Numbers:
    """So many ones from the lowest bit on."""
    return np.where(count < 64, (U(1) << np.minimum(count, U(63))) - U(1), U(ONES))


def _shift_left(instr: Instr, width: int, is_signed: bool) -> _Plain:
    return lambda a, b: unsigned(_up(a, _count(b)), width)


def _shift_right(instr: Instr, width: int, is_signed: bool) -> _Plain:
    if not is_signed:
        return lambda a, b: _down(unsigned(a, width), _count(b))
    last = U(width - 1)

    def apply(a: Numbers, b: Numbers) -> Numbers:
        count = np.minimum(_count(b), last).view(np.int64)
        return unsigned((signed(a, width) >> count).view(np.uint64), width)

    return apply


def _funnel(instr: Instr, width: int, is_signed: bool) -> _Plain | None:
    """`shf`: a window of 32 bits in two words (PTX ISA, "shf")."""
    shape = instr.shape
    if width != 32 or not (shape.has("l") or shape.has("r")):
        return None
    wraps, left, half = shape.has("wrap"), shape.has("l"), U(32)

    def apply(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        count = _count(c) & U(31) if wraps else np.minimum(_count(c), half)
        both = unsigned(b, 32) << half | unsigned(a, 32)
        return unsigned((both << count) >> half if left else both >> count, 32)

    return apply


def _extract(instr: Instr, width: int, is_signed: bool) -> _Plain:
    """`bfe`: a signed field is extended by its top bit (PTX ISA, "bfe")."""
    full = U(width)

    def apply(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        a, position, length = unsigned(a, width), b & U(255), c & U(255)
        field = _down(a, position) & _ones(length)
        if not is_signed:
            return field
        top = np.minimum(position + length - np.minimum(length, U(1)), U(width - 1))
        inside = np.minimum(length, full - np.minimum(position, full))
        is_negative = (_down(a, top) & U(1) != 0) & (length != 0)
        return unsigned(np.where(is_negative, field | ~_ones(inside), field), width)

    return apply


def _insert(instr: Instr, width: int, is_signed: bool) -> _Plain:
    def apply(a: Numbers, b: Numbers, c: Numbers, d: Numbers) -> Numbers:
        position, length = c & U(255), d & U(255)
        place = unsigned(_up(_ones(length), position), width)
        return unsigned(b, width) & ~place | _up(a, position) & place

    return apply


def _permute(instr: Instr, width: int, is_signed: bool) -> _Plain | None:
    """`prmt` in its default mode: four bytes of eight, or their sign bits."""
    if len(instr.shape.modifiers) != 1 or width != 32:
        return None

    def apply(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        both = unsigned(b, 32) << U(32) | unsigned(a, 32)
        out = np.zeros((1, 1), dtype=np.uint64)
        for at in range(4):
            selector = c >> U(4 * at) & U(15)
            byte = both >> (selector & U(7)) * U(8) & U(255)
            sign = (byte >> U(7)) * U(255)
            out = out | np.where(selector & U(8) != 0, sign, byte) << U(8 * at)
        return out

    return apply


def _lookup(instr: Instr, width: int, is_signed: bool) -> _Plain | None:
    """`lop3`: a bit for each combination of three."""
    table = fold(instr.operands[4])
    if table is None or width != 32:
        return None

    def apply(a: Numbers, b: Numbers, c: Numbers, _: Numbers) -> Numbers:
        out = np.zeros((1, 1), dtype=np.uint64)
        for at in range(8):
            if table >> at & 1:
                out = out | (a if at & 4 else ~a) & (b if at & 2 else ~b) & (c if at & 1 else ~c)
        return unsigned(out, 32)

    return apply


def _population(a: Numbers) -> Numbers:
    out: Numbers = np.zeros((1, 1), dtype=np.uint64)
    for at in range(64):
        out = out + (a >> U(at) & U(1))
    return out


def _filled(a: Numbers) -> Numbers:
    """With all bits below the highest one set."""
    for at in (1, 2, 4, 8, 16, 32):
        a = a | a >> U(at)
    return a


def _leading_zeros(instr: Instr, width: int, is_signed: bool) -> _Plain:
    return lambda a: U(width) - _population(_filled(unsigned(a, width)))


def _reverse(instr: Instr, width: int, is_signed: bool) -> _Plain:
    def apply(a: Numbers) -> Numbers:
        out = np.zeros((1, 1), dtype=np.uint64)
        for at in range(width):
            out = out | (a >> U(at) & U(1)) << U(width - 1 - at)
        return out

    return apply


_MAKERS: Final[dict[str, _Maker]] = {
    "add": _ring(lambda a, b: a + b),
    "sub": _ring(lambda a, b: a - b),
    "neg": _ring(lambda a: -a),
    "and": _ring(lambda a, b: a & b),
    "or": _ring(lambda a, b: a | b),
    "xor": _ring(lambda a, b: a ^ b),
    "not": _ring(lambda a: ~a),
    "mul": _multiply,
    "mad": _multiply_add,
    "div": _divide,
    "rem": _remainder,
    "min": _extreme(np.less),
    "max": _extreme(np.greater),
    "abs": _absolute,
    "cnot": lambda i, width, s: lambda a: np.where(unsigned(a, width) == 0, U(1), U(0)),
    "shl": _shift_left,
    "shr": _shift_right,
    "shf": _funnel,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "lop3": _lookup,
    "popc": lambda i, width, s: lambda a: _population(unsigned(a, width)),
    "clz": _leading_zeros,
    "brev": _reverse,
}
_ARITIES: Final = {
    **dict.fromkeys(("not", "neg", "abs", "cnot", "popc", "clz", "brev"), 1),
    **dict.fromkeys(("mad", "shf", "bfe", "prmt"), 3),
    **dict.fromkeys(("bfi", "lop3"), 4),
}


__all__ = [
    "Flags",
    "Numbers",
    "Operation",
    "Word",
    "both_known",
    "chosen",
    "constant",
    "extension",
    "loaded",
    "operation",
    "signed",
    "unsigned",
]
