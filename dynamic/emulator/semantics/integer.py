"""Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions").

Arrays of numpy's integers wrap as PTX's registers do.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.formats import RAW, Array, dtype
from ptxlint.dynamic.emulator.semantics.lanewise import (
    Computation,
    Lanewise,
    Maker,
    alike,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits

_WIDER: Final = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_HALVES: Final = {"u16x2": "u16", "s16x2": "s16"}


def _type(instr: Instr) -> str:
    return instr.shape.types[0]


def _unsigned(kind: str) -> str:
    return f"u{bits(kind)}"


def _elementwise(compute: Computation, kind: str, arity: int) -> Lanewise:
    """The computation on a type; on both halves of a packed pair."""
    half = _HALVES.get(kind)
    if half is None:
        return alike(compute, kind, arity)
    parts = dtype(half)

    def on_halves(*args: Array) -> Array:
        split = [np.ascontiguousarray(a).view(parts).reshape(*a.shape, 2) for a in args]
        return np.ascontiguousarray(compute(*split)).view(np.uint32)[..., 0]

    return alike(on_halves, kind, arity)


# Sums -----------------------------------------------------------------------------------------
def _add(instr: Instr) -> Lanewise:
    kind, shape = _type(instr), instr.shape
    if shape.has("sat"):
        return alike(_saturating(lambda a, b: a + b), kind, 2)
    if not shape.has("cc"):
        return _elementwise(lambda a, b: a + b, kind, 2)
    word = _unsigned(kind)
    return Lanewise(_add_out, (word, word), (word,), writes_carry=True)


def _add_out(a: Array, b: Array) -> tuple[Array, Array]:
    out = a + b
    return out, out < a


def _sub(instr: Instr) -> Lanewise:
    kind, shape = _type(instr), instr.shape
    if shape.has("sat"):
        return alike(_saturating(lambda a, b: a - b), kind, 2)
    if not shape.has("cc"):
        return _elementwise(lambda a, b: a - b, kind, 2)
    word = _unsigned(kind)
    return Lanewise(lambda a, b: (a - b, a < b), (word, word), (word,), writes_carry=True)


def _saturating(compute: Computation) -> Computation:
    def clipped(a: Array, b: Array) -> Array:
        info = np.iinfo(a.dtype)
        wide: Any = compute(a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, info.min, info.max).astype(a.dtype)

    return clipped


def _addc(instr: Instr) -> Lanewise:
    word = _unsigned(_type(instr))
    if not instr.shape.has("cc"):
        plain: Computation = lambda a, b, carry: a + b + carry.astype(a.dtype)  # noqa: E731
        return Lanewise(plain, (word, word), (word,), reads_carry=True)

    def add(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
        first = a + b
        out = first + carry.astype(a.dtype)
        return out, (first < a) | (out < first)

    return Lanewise(add, (word, word), (word,), reads_carry=True, writes_carry=True)


def _subc(instr: Instr) -> Lanewise:
    word = _unsigned(_type(instr))

    def subtract(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
        first = a - b
        out = first - borrow.astype(a.dtype)
        return out, (a < b) | (first < borrow.astype(a.dtype))

    if instr.shape.has("cc"):
        return Lanewise(subtract, (word, word), (word,), reads_carry=True, writes_carry=True)
    return Lanewise(lambda *x: subtract(*x)[0], (word, word), (word,), reads_carry=True)


# Products -------------------------------------------------------------------------------------
def high_half(a: Array, b: Array) -> Array:
    """The upper half of a product of two words, signed or not as they are."""
    width = 8 * a.dtype.itemsize
    if width < 64:
        wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(width)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    out = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        out = out - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return out.view(a.dtype)


def _product(instr: Instr) -> Computation:
    shape = instr.shape
    if shape.has("wide"):
        wide = dtype(_WIDER[_type(instr)])
        return lambda a, b: a.astype(wide) * b.astype(wide)
    return high_half if shape.has("hi") else lambda a, b: a * b


def _mul(instr: Instr) -> Lanewise:
    kind = _type(instr)
    result = _WIDER[kind] if instr.shape.has("wide") else kind
    return Lanewise(_product(instr), (kind, kind), (result,))


def _mad(instr: Instr) -> Lanewise:
    kind, shape = _type(instr), instr.shape
    result = _WIDER[kind] if shape.has("wide") else kind
    product: Any = _product(instr)
    if shape.has("sat"):
        add: Any = _saturating(lambda a, b: a + b)
        return Lanewise(lambda a, b, c: add(product(a, b), c), (kind, kind, result), (result,))
    if not shape.has("cc"):
        return Lanewise(lambda a, b, c: product(a, b) + c, (kind, kind, result), (result,))
    word = RAW[bits(result)]

    def out(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
        total, carry = _add_out(product(a, b).view(word), c.view(word))
        return total, carry

    return Lanewise(out, (kind, kind, result), (_unsigned(result),), writes_carry=True)


def _madc(instr: Instr) -> Lanewise:
    kind = _type(instr)
    product: Any = _product(instr)
    word = RAW[bits(kind)]

    def compute(a: Array, b: Array, c: Array, carry: Array) -> tuple[Array, Array]:
        first = product(a, b).view(word)
        total = first + c.view(word)
        out = total + carry.astype(word)
        return out, (total < first) | (out < total)

    sources, results = (kind, kind, kind), (_unsigned(kind),)
    if instr.shape.has("cc"):
        return Lanewise(compute, sources, results, reads_carry=True, writes_carry=True)
    return Lanewise(lambda *x: compute(*x)[0], sources, results, reads_carry=True)


def _mul24(instr: Instr) -> Lanewise:
    kind, is_high = _type(instr), instr.shape.has("hi")
    return alike(lambda a, b: _product24(a, b, is_high), kind, 2)


def _mad24(instr: Instr) -> Lanewise:
    kind, is_high = _type(instr), instr.shape.has("hi")
    add: Any = lambda a, b: a + b  # noqa: E731
    if instr.shape.has("sat"):
        add = _saturating(add)
    return alike(lambda a, b, c: add(_product24(a, b, is_high), c), kind, 3)


def _product24(a: Array, b: Array, is_high: bool) -> Array:
    wide = np.dtype(f"{a.dtype.kind}8")
    shift = wide.type(40)
    x, y = (v.astype(wide) << shift >> shift for v in (a, b))
    return (x * y >> wide.type(16 if is_high else 0)).astype(a.dtype)


def _divide(a: Array, b: Array) -> Array:
    """Toward zero; all ones for a division by zero, as the hardware gives (unspecified in PTX)."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~np.zeros_like(b), a // np.where(b == 0, b.dtype.type(1), b))
    safe = np.where(b == 0, b.dtype.type(1), b)
    down = a // safe
    # numpy rounds down: a quotient of opposite signs that has a rest is one too low.
    is_low = (a - down * safe != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, b.dtype.type(-1), down + is_low.astype(a.dtype))


def _remainder(a: Array, b: Array) -> Array:
    """All ones for a division by zero, as devices give (unspecified in PTX)."""
    return np.where(b == 0, ~np.zeros_like(b), a - _divide(a, b) * b)


# Others ---------------------------------------------------------------------------------------
def _minmax(pick: Any) -> Maker:
    def make(instr: Instr) -> Lanewise:
        if instr.shape.has("relu"):
            return _elementwise(
                lambda a, b: np.maximum(pick(a, b), a.dtype.type(0)), _type(instr), 2
            )
        return _elementwise(pick, _type(instr), 2)

    return make


def _unary(compute: Computation) -> Maker:
    return lambda instr: alike(compute, _type(instr), 1)


def _binary(compute: Computation) -> Maker:
    return lambda instr: alike(compute, _type(instr), 2)


def _sad(instr: Instr) -> Lanewise:
    kind = _type(instr)
    return alike(lambda a, b, c: c + np.where(a < b, b - a, a - b), kind, 3)


def _dot(instr: Instr) -> Lanewise:
    """`dp4a` and `dp2a`: products of bytes with bytes, or of two halves with two bytes."""
    shape = instr.shape
    first, second = shape.types[:2]
    is_four = instr.opcode == "dp4a"
    shift = 2 if shape.has("hi") and not is_four else 0

    def part(word: Array, at: int, width: int, is_signed: bool) -> Array:
        up = np.uint32(32 - width * (at + 1))
        moved = (word << up).view(np.int32 if is_signed else np.uint32)
        return (moved >> moved.dtype.type(32 - width)).astype(np.int64)

    def compute(a: Array, b: Array, c: Array) -> Array:
        out = c.astype(np.int64)
        for at in range(4 if is_four else 2):
            x = part(a.view(np.uint32), at, 8 if is_four else 16, first[0] == "s")
            out = out + x * part(b.view(np.uint32), at + shift, 8, second[0] == "s")
        return out.astype(np.uint32)

    result = "s32" if "s" in first[0] + second[0] else "u32"
    return Lanewise(compute, (first, second, result), ("u32",))


def _absolute(a: Array) -> Array:
    return np.where(a < 0, -a, a)


ROWS: Final[dict[str, Maker]] = {
    "add": _add,
    "sub": _sub,
    "addc": _addc,
    "subc": _subc,
    "mul": _mul,
    "mad": _mad,
    "madc": _madc,
    "mul24": _mul24,
    "mad24": _mad24,
    "div": _binary(_divide),
    "rem": _binary(_remainder),
    "min": _minmax(np.minimum),
    "max": _minmax(np.maximum),
    "sad": _sad,
    "neg": lambda instr: _elementwise(lambda a: -a, _type(instr), 1),
    "abs": _unary(_absolute),
    "dp4a": _dot,
    "dp2a": _dot,
}
"""By opcode, for operands that are no floating-point numbers."""


__all__ = ["ROWS", "high_half"]
