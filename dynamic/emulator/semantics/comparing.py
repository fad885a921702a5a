"""Comparisons and choices (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.formats import Array, dtype
from ptxlint.dynamic.emulator.rounding import flushed, from_bf16
from ptxlint.dynamic.emulator.semantics.lanewise import (
    Computation,
    Lanewise,
    Maker,
    UnsupportedError,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Pair
from ptxlint.ir.types import FLOATS

_ORDERED: Final[dict[str, Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED: Final = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_PAIRS: Final = {"f16x2": "f16", "bf16x2": "bf16"}
_JOINS: Final[dict[str, Any]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def comparison(name: str, is_float: bool) -> Computation:
    """The comparison that PTX calls so. Of numbers one of which is NaN only the unordered ones
    (`equ`, …, `nan`) hold."""
    if name in ("num", "nan"):
        wants = name == "nan"
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == wants
    if name in _UNORDERED:
        ordered = _ORDERED[_UNORDERED[name]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    compare = _ORDERED[name]
    if name == "ne" and is_float:
        return lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)
    return lambda a, b: compare(a, b)


def _compared(instr: Instr, kind: str) -> Computation:
    """The comparison of an instruction, and what it is joined with."""
    shape = instr.shape
    names = [*_ORDERED, *_UNORDERED, "num", "nan"]
    name = next(m for m in shape.modifiers if m in names)
    compare: Any = comparison(name, kind in FLOATS)
    flushes = shape.has("ftz") and kind in ("f32", "f16")

    def compared(a: Array, b: Array) -> Array:
        if kind == "bf16":
            a, b = from_bf16(a), from_bf16(b)
        elif flushes:
            a, b = flushed(a, kind), flushed(b, kind)
        out: Array = compare(a, b)
        return out

    return compared


def _setp(instr: Instr) -> Lanewise:
    kind = instr.shape.types[-1]
    join = next((_JOINS[m] for m in instr.shape.modifiers if m in _JOINS), None)
    if kind in _PAIRS:
        return _setp_of_pairs(instr, kind, join)
    compare: Any = _compared(instr, kind)
    results = ("pred", "pred") if isinstance(instr.operands[0], Pair) else ("pred",)

    def compute(a: Array, b: Array, *other: Array) -> Array | tuple[Array, ...]:
        holds = compare(a, b)
        first = holds if join is None else join(holds, other[0])
        if len(results) == 1:
            return first
        return first, ~holds if join is None else join(~holds, other[0])

    sources = (kind, kind) if join is None else (kind, kind, "pred")
    return Lanewise(compute, sources, results)


def _setp_of_pairs(instr: Instr, kind: str, join: Any) -> Lanewise:
    """The first predicate is that of the lower halves, the second that of the upper ones."""
    if not isinstance(instr.operands[0], Pair):
        raise UnsupportedError(instr, f"setp of {kind} into one predicate")
    compare: Any = _compared(instr, _PAIRS[kind])
    part = np.float16 if kind == "f16x2" else np.uint16

    def halves(word: Array) -> tuple[Array, Array]:
        low, high = (np.asarray(word >> np.uint32(at), dtype=np.uint16) for at in (0, 16))
        return low.view(part), high.view(part)

    def compute(a: Array, b: Array, *other: Array) -> tuple[Array, ...]:
        pairs = zip(halves(a), halves(b), strict=True)
        holds = [compare(x, y) for x, y in pairs]
        return tuple(each if join is None else join(each, other[0]) for each in holds)

    return Lanewise(compute, (kind, kind, *(() if join is None else ("pred",))), ("pred", "pred"))


def _set(instr: Instr) -> Lanewise:
    result, kind = instr.shape.types[:2]
    compare: Any = _compared(instr, kind)
    join = next((_JOINS[m] for m in instr.shape.modifiers if m in _JOINS), None)
    if result in ("f16x2", "bf16x2") or kind in ("f16x2", "bf16x2"):
        raise UnsupportedError(instr, f"set of {kind}")

    def compute(a: Array, b: Array, *other: Array) -> Array:
        holds = compare(a, b) if join is None else join(compare(a, b), other[0])
        if result in ("f16", "f32"):
            return holds.astype(dtype(result))
        if result == "bf16":
            return np.where(holds, np.uint16(0x3F80), np.uint16(0))
        return np.where(holds, np.uint32(0xFFFFFFFF), np.uint32(0))

    sources = (kind, kind) if join is None else (kind, kind, "pred")
    return Lanewise(compute, sources, (result,))


def _bits_of(kind: str) -> str:
    """The type of as many bits: a choice looks at no value."""
    from ptxlint.ir.types import bits

    return f"b{bits(kind)}"


def _selp(instr: Instr) -> Lanewise:
    kind = _bits_of(instr.shape.types[0])
    return Lanewise(lambda a, b, c: np.where(c, a, b), (kind, kind, "pred"), (kind,))


def _slct(instr: Instr) -> Lanewise:
    kind, by = _bits_of(instr.shape.types[0]), instr.shape.types[1]
    flushes = instr.shape.has("ftz")

    def choose(a: Array, b: Array, c: Array) -> Array:
        # A NaN takes the second, minus zero the first (PTX ISA, "slct").
        return np.where((flushed(c) if flushes else c) >= 0, a, b)

    return Lanewise(choose, (kind, kind, by), (kind,))


ROWS: Final[dict[str, Maker]] = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
"""By opcode."""


__all__ = ["ROWS", "comparison"]
