"""Conversions (PTX ISA, "cvt", "cvt.pack", "cvta")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.formats import Array, dtype, raw
from ptxlint.dynamic.emulator.rounding import (
    FORMATS,
    decoded,
    encoded,
    flushed,
    from_bf16,
    narrowed,
    to_bf16,
)
from ptxlint.dynamic.emulator.semantics.bits import shift_left
from ptxlint.dynamic.emulator.semantics.lanewise import Lanewise, Maker, UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import FLOATS, bits

_MODES: Final = {
    "rn": "rn", "rz": "rz", "rm": "rm", "rp": "rp", "rna": "rna",
    "rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp",
}  # fmt: skip
_PAIRS: Final = {
    "f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2", "e2m1x2": "e2m1",
    "e2m3x2": "e2m3", "e3m2x2": "e3m2",
}  # fmt: skip
_TF32: Final = np.uint32(0xFFFFE000)
"""The bits of a word that tf32 has."""
_NARROW: Final = frozenset(("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "tf32"))


def numbers(values: Array, kind: str) -> Array:
    """Values of a scalar floating-point type as float32 or float64, exactly."""
    if kind == "bf16":
        return from_bf16(values)
    if kind in _NARROW:
        return decoded(values, FORMATS[kind])
    return values.astype(np.float32) if kind == "f16" else values


def stored(values: Array, kind: str, mode: str, saturates: bool) -> Array:
    """Numbers (float32 or float64) rounded to a scalar floating-point type, as it is kept."""
    if kind == "f64":
        return values.astype(np.float64)
    if mode == "rn" and not saturates and values.dtype == np.float32:
        if kind == "bf16":
            return to_bf16(values)
        if kind in ("f16", "f32"):
            return _one_nan(values.astype(dtype(kind)))
    if mode == "rn" and not saturates and kind in ("f32", "f16"):
        return _one_nan(values.astype(dtype(kind)))
    form = FORMATS[kind]
    rounded = narrowed(values.astype(np.float64), form, mode, saturates)
    if kind in ("f16", "f32"):
        return _one_nan(rounded.astype(dtype(kind)))
    if kind == "bf16":
        return to_bf16(rounded.astype(np.float32))
    if kind == "tf32":
        return _as_tf32(values, rounded, mode == "rna" and not saturates)
    if not form.has_infinity:
        # There is nothing to overflow to but NaN.
        rounded = np.where(np.isinf(rounded), np.nan, rounded)
    return encoded(rounded, form)


def _as_tf32(values: Array, rounded: Array, is_cut: bool) -> Array:
    """NaN is the canonical one, or only cut to the format, which may leave infinity: devices do so
    where ties go away from zero."""
    word = raw(rounded.astype(np.float32))
    is_nan = np.isnan(rounded)
    if not is_nan.any():
        return word
    nan = raw(values.astype(np.float32)) & _TF32 if is_cut else np.uint32(0x7FFFE000)
    return np.where(is_nan, nan, word)


def _positive(values: Array) -> Array:
    """`.relu`: what is negative, minus zero too, is plus zero; NaN stays."""
    return np.where((values > 0) | np.isnan(values), values, values.dtype.type(0))


def _one_nan(values: Array) -> Array:
    is_nan = np.isnan(values)
    if not is_nan.any():
        return values
    word: Any = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF)}[values.dtype.itemsize]
    return np.where(is_nan, word, raw(values)).view(values.dtype)


def _cvt(instr: Instr) -> Lanewise:
    shape = instr.shape
    to, source = shape.types[0], shape.types[-1]
    if shape.has("pack"):
        return _pack(instr)
    if shape.has("rs") or shape.has("scaled::n2::ue8m0"):
        raise UnsupportedError(instr, "this form of cvt")
    if to in _PAIRS:
        return _to_pair(instr, to, source)
    if source in _PAIRS:
        raise UnsupportedError(instr, f"cvt from {source} to {to}")
    mode = next((_MODES[m] for m in shape.modifiers if m in _MODES), "rn")
    saturates = shape.has("sat") or shape.has("satfinite")
    if source in FLOATS:
        if to in FLOATS:
            return _float_to_float(instr, to, source, mode)
        return Lanewise(_to_integer(to, source, mode, shape.has("ftz")), (source,), (to,))
    if to in FLOATS:
        return Lanewise(_from_integer(to, source, mode, saturates), (source,), (to,))
    return Lanewise(_integer_to_integer(to, source, saturates), (source,), (to,))


def _float_to_float(instr: Instr, to: str, source: str, mode: str) -> Lanewise:
    shape = instr.shape
    is_integral = any(m in shape.modifiers for m in ("rni", "rzi", "rmi", "rpi"))
    saturates, relu, flushes = shape.has("sat"), shape.has("relu"), shape.has("ftz")
    finite = shape.has("satfinite")
    rounder: Any = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}.get(mode)

    def compute(a: Array) -> Array:
        values = numbers(a, source)
        if flushes and source == "f32":
            values = flushed(values)
        if is_integral:
            values = rounder(values)
        if saturates:
            values = np.where(values > 0, np.minimum(values, values.dtype.type(1)), 0).astype(
                values.dtype
            )
        if relu:
            values = _positive(values)
        out = stored(values, to, "rn" if is_integral else mode, finite)
        return flushed(out) if flushes and to == "f32" else out

    return Lanewise(compute, (source,), (to,))


def _to_integer(to: str, source: str, mode: str, flushes: bool) -> Any:
    """Clamped to the range of the type; NaN gives 0, or the top bit alone for 64 bits and f64."""
    info = np.iinfo(dtype(to))
    is_wide = source == "f64" or bits(to) == 64
    nan = (info.min or 1 << (bits(to) - 1)) if is_wide else 0
    rounder: Any = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}[mode]
    kind = dtype(to)

    def compute(a: Array) -> Array:
        values = numbers(a, source)
        if flushes and source == "f32":
            values = flushed(values)
        whole = rounder(values.astype(np.float64))
        is_low, is_high = whole <= float(info.min), whole >= float(info.max)
        is_nan = np.isnan(whole)
        out = np.where(is_low | is_high | is_nan, 0, whole).astype(kind)
        out = np.where(is_low, kind.type(info.min), np.where(is_high, kind.type(info.max), out))
        return np.where(is_nan, kind.type(nan), out) if is_nan.any() else out

    return compute


def _from_integer(to: str, source: str, mode: str, saturates: bool) -> Any:
    width = bits(source)

    def compute(a: Array) -> Array:
        if saturates:
            # To the range from 0 to 1.
            a = np.clip(a, a.dtype.type(0), a.dtype.type(1))
        if mode == "rn" and to in ("f32", "f64"):
            return a.astype(dtype(to))
        if width == 64:
            return _from_wide(a, to, mode)
        return stored(a.astype(np.float64), to, mode, False)

    return compute


def _from_wide(a: Array, to: str, mode: str) -> Array:
    """A 64-bit integer, whose low bits are gathered into one that is odd if any is set."""
    is_negative = a < 0
    size = np.where(is_negative, -a, a).view(np.uint64)
    if to == "f64":
        return _double_from_wide(size, is_negative, mode)
    low = np.uint64(0x7FF)
    kept = size & ~low | ((size & low) != 0).astype(np.uint64) << np.uint64(11)
    exact = np.where(size >> np.uint64(53) != 0, kept, size).astype(np.float64)
    return stored(np.where(is_negative, -exact, exact), to, mode, False)


def _double_from_wide(size: Array, is_negative: Array, mode: str) -> Array:
    """A magnitude and a sign as f64, by a directed mode: what does not fit is cut off, and counts
    as one where the mode leads away from zero."""
    one = np.uint64(1)
    spare = np.zeros_like(size)
    for at in range(1, 12):
        spare = np.where(size >> np.uint64(52 + at) != 0, np.uint64(at), spare)
    kept = size >> spare
    outward = {"rz": np.False_, "rp": ~is_negative, "rm": is_negative}[mode]
    kept = kept + np.where(outward & (kept << spare != size), one, np.uint64(0))
    exact = np.ldexp(kept.astype(np.float64), spare.astype(np.int32))
    return np.where(is_negative, -exact, exact)


def _integer_to_integer(to: str, source: str, saturates: bool) -> Any:
    kind = dtype(to)
    if not saturates:
        return lambda a: a.astype(kind)
    info, have = np.iinfo(kind), np.iinfo(dtype(source))
    low, high = max(info.min, have.min), min(info.max, have.max)
    return lambda a: np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(kind)


def _pack(instr: Instr) -> Lanewise:
    """Two clamped integers side by side, the second one in the lowest bits; narrow ones push what
    the last operand holds up (PTX ISA, "cvt.pack")."""
    to, source = instr.shape.types[:2]
    width = bits(to)
    if width < 8:
        raise UnsupportedError(instr, f"cvt.pack to {to}")
    clamp = _integer_to_integer(to, source, True)
    low = np.uint32((1 << width) - 1)

    def part(a: Array) -> Array:
        out: Array = clamp(a).astype(np.uint32) & low
        return out

    def pair(a: Array, b: Array) -> Array:
        return part(a) << np.uint32(width) | part(b)

    if len(instr.operands) == 3:
        return Lanewise(pair, (source, source), ("u32",))
    up = np.uint32(2 * width)
    return Lanewise(
        lambda a, b, c: shift_left(c, np.broadcast_to(up, (1, 1))) | pair(a, b),
        (source, source, "u32"),
        ("u32",),
    )


def _to_pair(instr: Instr, to: str, source: str) -> Lanewise:
    """The first operand goes into the upper half (PTX ISA, "cvt")."""
    shape, part = instr.shape, _PAIRS[to]
    mode = next((_MODES[m] for m in shape.modifiers if m in _MODES), "rn")
    finite, relu = shape.has("satfinite"), shape.has("relu")
    width = bits(to) // 2
    whole = dtype(f"u{2 * width}" if width >= 8 else "u8")

    def one(values: Array) -> Array:
        if relu:
            values = _positive(values)
        return raw(stored(values, part, mode, finite)).astype(whole)

    shift = whole.type(width)
    if len(instr.operands) == 3:
        return Lanewise(lambda a, b: one(a) << shift | one(b), (source, source), (to,))
    other = _PAIRS.get(source)
    if other is None:
        raise UnsupportedError(instr, f"cvt from {source} to {to}")
    half = bits(source) // 2

    def both(a: Array) -> Array:
        low: Any = np.uint16 if half == 16 else np.uint8
        mask = low((1 << half) - 1)
        upper, lower = (a >> a.dtype.type(half)).astype(low) & mask, a.astype(low) & mask
        view = np.float16 if other == "f16" else low
        return one(numbers(upper.view(view), other)) << shift | one(
            numbers(lower.view(view), other)
        )

    return Lanewise(both, (source,), (to,))


ROWS: Final[dict[str, Maker]] = {"cvt": _cvt}
"""By opcode."""


__all__ = ["ROWS", "numbers", "stored"]
