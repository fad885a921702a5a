"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions", and those of "Integer
Arithmetic Instructions" that look at bits).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.formats import RAW, Array, dtype
from ptxlint.dynamic.emulator.semantics.lanewise import (
    Computation,
    Lanewise,
    Maker,
    UnsupportedError,
    alike,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import bits


def _type(instr: Instr) -> str:
    return instr.shape.types[0]


def _unsigned(kind: str) -> str:
    return f"u{bits(kind)}"


def _unary(compute: Computation) -> Maker:
    return lambda instr: alike(compute, _type(instr), 1)


def _binary(compute: Computation) -> Maker:
    return lambda instr: alike(compute, _type(instr), 2)


def _population(a: Array) -> Array:
    return np.bitwise_count(a).astype(np.uint32)


def _filled(a: Array) -> Array:
    """With all bits below the highest one set."""
    shift = 1
    while shift < 8 * a.dtype.itemsize:
        a = a | a >> a.dtype.type(shift)
        shift *= 2
    return a


def _counted(compute: Computation) -> Maker:
    """A computation on bits whose result is a 32-bit number."""
    return lambda instr: Lanewise(compute, (_unsigned(_type(instr)),), ("u32",))


def _leading_zeros(a: Array) -> Array:
    return np.uint32(8 * a.dtype.itemsize) - _population(_filled(a))


def _find(instr: Instr) -> Lanewise:
    kind, wants_shift = _type(instr), instr.shape.has("shiftamt")
    width = np.uint32(bits(kind))

    def compute(a: Array) -> Array:
        word = np.where(a < 0, ~a, a).view(RAW[int(width)]) if kind[0] == "s" else a
        found = width - _leading_zeros(word) - np.uint32(1)
        none = np.uint32(0xFFFFFFFF)
        out = width - np.uint32(1) - found if wants_shift else found
        return np.where(word == 0, none, out).astype(np.uint32)

    return Lanewise(compute, (kind,), ("u32",))


def _find_set(mask: Array, base: Array, offset: Array) -> Array:
    """`fns`: the place of the n-th bit that is set, from a base on up or, for negative n, down; of
    the base itself for 0. All ones if there is none."""
    place = base.astype(np.int64)
    wanted = np.abs(offset.astype(np.int64))
    up, down = np.zeros_like(wanted + place), np.zeros_like(wanted + place)
    out = np.full((mask + base + offset.view(np.uint32)).shape, 0xFFFFFFFF, dtype=np.uint32)
    for step in range(32):
        for count, at, goes in ((up, place + step, offset > 0), (down, place - step, offset < 0)):
            inside = (at >= 0) & (at < 32)
            bit = mask.astype(np.int64) >> np.where(inside, at, 0) & 1
            is_set = inside & (bit == 1)
            count += is_set
            hit = is_set & goes & (count == wanted)
            out = np.where(hit, at, out)
    at_base = (offset == 0) & (mask >> (base & np.uint32(31)) & np.uint32(1) == 1)
    return np.where(at_base, base, out).astype(np.uint32)


def _reverse(a: Array) -> Array:
    kind = a.dtype.type
    for shift, pattern in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = kind(int.from_bytes(bytes([pattern]) * a.dtype.itemsize, "little"))
        a = (a & mask) << kind(shift) | (a >> kind(shift)) & mask
    return a.byteswap()


def shift_left(a: Array, count: Array) -> Array:
    """Zeros come in; a count beyond the width counts as the width."""
    return _shifted(a, count, lambda x, by: x << by)


def shift_right(a: Array, count: Array) -> Array:
    """The sign or zeros come in; a count beyond the width counts as the width."""
    width = 8 * a.dtype.itemsize
    if a.dtype.kind == "i":
        return a >> np.minimum(count, count.dtype.type(width - 1)).astype(a.dtype)
    return _shifted(a, count, lambda x, by: x >> by)


def _shifted(a: Array, count: Array, shift: Any) -> Array:
    width = 8 * a.dtype.itemsize
    by = count.astype(a.dtype)
    if count.size == 1:
        # A count that is written in the instruction is the usual case.
        return np.zeros_like(a) if count.item() >= width else shift(a, by)
    return np.where(count >= width, a.dtype.type(0), shift(a, by))


def _shl(instr: Instr) -> Lanewise:
    word = _unsigned(_type(instr))
    return Lanewise(shift_left, (word, "u32"), (word,))


def _shr(instr: Instr) -> Lanewise:
    kind = _type(instr)
    return Lanewise(shift_right, (kind, "u32"), (kind,))


def _shf(instr: Instr) -> Lanewise:
    shape, full = instr.shape, np.uint32(32)
    is_left, wraps = shape.has("l"), shape.has("wrap")

    def compute(a: Array, b: Array, c: Array) -> Array:
        both = b.astype(np.uint64) << np.uint64(32) | a
        count = (c & np.uint32(31) if wraps else np.minimum(c, full)).astype(np.uint64)
        moved = both << count >> np.uint64(32) if is_left else both >> count
        if is_left and not wraps:
            moved = np.where(c >= full, a, moved)
        return moved.astype(np.uint32)

    return Lanewise(compute, ("u32", "u32", "u32"), ("u32",))


def _ones(count: Array, kind: Any) -> Array:
    """A word with so many low bits set."""
    return ~shift_left(np.broadcast_to(~kind(0), count.shape), count)


def _bfe(instr: Instr) -> Lanewise:
    """A signed field is extended by its top bit (PTX ISA, "bfe")."""
    kind = _type(instr)
    word = RAW[bits(kind)].type
    width = np.uint32(bits(kind))

    def compute(a: Array, b: Array, c: Array) -> Array:
        position, length = b & np.uint32(255), c & np.uint32(255)
        plain = a.view(word)
        field = shift_right(plain, position) & _ones(length, word)
        if kind[0] == "u":
            return field
        top = np.minimum(position + length - np.minimum(length, np.uint32(1)), width - np.uint32(1))
        inside = np.minimum(length, width - np.minimum(position, width))
        is_negative = (shift_right(plain, top) & word(1) != 0) & (length != 0)
        return np.where(is_negative, field | ~_ones(inside, word), field)

    return Lanewise(compute, (kind, "u32", "u32"), (_unsigned(kind),))


def _bfi(instr: Instr) -> Lanewise:
    word = _unsigned(_type(instr))
    kind = dtype(word).type

    def compute(a: Array, b: Array, c: Array, d: Array) -> Array:
        position, length = c & np.uint32(255), d & np.uint32(255)
        place = shift_left(_ones(length, kind), position)
        return b & ~place | shift_left(a, position) & place

    return Lanewise(compute, (word, word, "u32", "u32"), (word,))


def _szext(instr: Instr) -> Lanewise:
    kind, clamps = _type(instr), instr.shape.has("clamp")

    def compute(a: Array, b: Array) -> Array:
        count = np.minimum(b, np.uint32(32)) if clamps else b & np.uint32(31)
        field = a.view(np.uint32) & _ones(count, np.uint32)
        if kind[0] == "u":
            return field
        sign = shift_right(field, count - np.uint32(1)) & np.uint32(1)
        return np.where((sign == 1) & (count > 0), field | ~_ones(count, np.uint32), field)

    return Lanewise(compute, (kind, "u32"), ("u32",))


def _bmsk(instr: Instr) -> Lanewise:
    clamps = instr.shape.has("clamp")

    def compute(a: Array, b: Array) -> Array:
        if clamps:
            return shift_left(_ones(np.minimum(b, np.uint32(32)), np.uint32), a)
        return shift_left(_ones(b & np.uint32(31), np.uint32), a & np.uint32(31))

    return Lanewise(compute, ("u32", "u32"), ("u32",))


def _lop3(instr: Instr) -> Lanewise:
    shape = instr.shape
    has_predicate = shape.has("and") or shape.has("or")
    if has_predicate:
        raise UnsupportedError(instr, "lop3 with a predicate")
    table = fold(instr.operands[4])
    assert table is not None

    def compute(a: Array, b: Array, c: Array, _: Array) -> Array:
        out = np.zeros((1, 1), dtype=np.uint32)
        for at in range(8):
            if table >> at & 1:
                out = out | (a if at & 4 else ~a) & (b if at & 2 else ~b) & (c if at & 1 else ~c)
        return out

    return alike(compute, "u32", 4)._replace(results=("u32",))


_MODES: Final = {
    "f4e": [[(n + at) % 8 for at in range(4)] for n in range(4)],
    "b4e": [[(n - at) % 8 for at in range(4)] for n in range(4)],
    "rc8": [[n] * 4 for n in range(4)],
    "ecl": [[max(n, at) for at in range(4)] for n in range(4)],
    "ecr": [[min(n, at) for at in range(4)] for n in range(4)],
    "rc16": [[0, 1, 0, 1] if n % 2 == 0 else [2, 3, 2, 3] for n in range(4)],
}
"""Which of eight bytes go where, by the two low bits of the selector (PTX ISA, "prmt")."""


def _prmt(instr: Instr) -> Lanewise:
    mode = next((m for m in instr.shape.modifiers if m in _MODES), "")

    def by_mode(a: Array, b: Array, c: Array) -> Array:
        both = b.astype(np.uint64) << np.uint64(32) | a
        selectors = np.array(_MODES[mode], dtype=np.uint64)[c & np.uint32(3)]
        out = np.zeros((1, 1), dtype=np.uint64)
        for at in range(4):
            byte = both >> selectors[..., at] * np.uint64(8) & np.uint64(255)
            out = out | byte << np.uint64(8 * at)
        return out.astype(np.uint32)

    def by_nibbles(a: Array, b: Array, c: Array) -> Array:
        both = b.astype(np.uint64) << np.uint64(32) | a
        selector = c.astype(np.uint64)
        out = np.zeros((1, 1), dtype=np.uint64)
        for at in range(4):
            nibble = selector >> np.uint64(4 * at) & np.uint64(15)
            byte = both >> (nibble & np.uint64(7)) * np.uint64(8) & np.uint64(255)
            sign = (byte >> np.uint64(7)) * np.uint64(255)
            out = out | np.where(nibble & np.uint64(8) != 0, sign, byte) << np.uint64(8 * at)
        return out.astype(np.uint32)

    return alike(by_mode if mode else by_nibbles, "u32", 3)


ROWS: Final[dict[str, Maker]] = {
    "and": _binary(lambda a, b: a & b),
    "or": _binary(lambda a, b: a | b),
    "xor": _binary(lambda a, b: a ^ b),
    "not": _unary(lambda a: ~a),
    "cnot": _unary(lambda a: (a == 0).astype(a.dtype)),
    "popc": _counted(_population),
    "clz": _counted(_leading_zeros),
    "bfind": _find,
    "brev": _unary(_reverse),
    "shl": _shl,
    "shr": _shr,
    "shf": _shf,
    "bfe": _bfe,
    "bfi": _bfi,
    "szext": _szext,
    "bmsk": _bmsk,
    "lop3": _lop3,
    "prmt": _prmt,
    "fns": lambda instr: Lanewise(_find_set, ("u32", "u32", "s32"), ("u32",)),
}
"""By opcode."""


__all__ = ["ROWS", "shift_left", "shift_right"]
