"""Floating-point arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision …").

What PTX rounds is rounded once: sums and products of float32 and float64 as numpy has them, fused
ones by `rounding`. Sixteen-bit numbers are computed wider, where a sum or product of two is exact
enough to be rounded once more without harm. Approximate instructions are computed in float64 and
rounded, which is within the error that PTX allows them; the device's results may differ by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.directed import directed64
from ptxlint.dynamic.emulator.formats import Array, raw, some
from ptxlint.dynamic.emulator.rounding import (
    FORMATS,
    SMALLEST_NORMAL,
    flushed,
    fma32,
    fma64,
    from_bf16,
    is_clear,
    narrowed,
    odd_sum,
    to_bf16,
    two_product,
)
from ptxlint.dynamic.emulator.semantics.converting import numbers
from ptxlint.dynamic.emulator.semantics.lanewise import (
    Computation,
    Lanewise,
    Maker,
    alike,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import FLOATS

_HALF: Final = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
_DIRECTED: Final = ("rz", "rm", "rp")
_NAN: Final = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF), 8: np.uint64(0x7FFFFFFFFFFFFFFF)}
"""The canonical NaN by the bytes of the format (f64: any NaN will do)."""


def is_floating(instr: Instr) -> bool:
    """True if an instruction computes with floating-point numbers."""
    types = instr.shape.types
    return bool(types) and types[0] in FLOATS


def _type(instr: Instr) -> str:
    return instr.shape.types[0]


def _mode(instr: Instr) -> str:
    return next((m for m in instr.shape.modifiers if m in _DIRECTED), "rn")


def on(kind: str, compute: Computation) -> Computation:
    """A computation on float32 or wider, made one on arrays of the type as they are kept.

    f16 is computed in float32 and rounded by the way back, bf16 likewise; pairs part by part.
    """
    part = _HALF.get(kind)
    if part is not None:
        return _on_pairs(part, on(part, compute))
    if kind == "bf16":
        return lambda *args: _to_bf16(compute(*(from_bf16(a) for a in args)))
    if kind == "f16":
        return lambda *args: _to_f16(compute(*(a.astype(np.float32) for a in args)))
    return compute


def _to_bf16(values: Any) -> Array:
    if values.dtype == np.float64:
        bits = narrowed(values, FORMATS["bf16"]).astype(np.float32)
        return to_bf16(bits)
    return to_bf16(values)


def _to_f16(values: Any) -> Array:
    out: Array = values.astype(np.float16)
    return _canonical(out)


def _canonical(values: Array) -> Array:
    """With one NaN for all."""
    is_nan = np.isnan(values)
    if not some(is_nan):
        return values
    nan: Any = _NAN[values.dtype.itemsize]
    return np.where(is_nan, nan, raw(values)).view(values.dtype)


def _on_pairs(part: str, compute: Computation) -> Computation:
    kind: Any = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32}[part]

    def on_parts(*args: Array) -> Array:
        split = [np.ascontiguousarray(a)[..., None].view(kind) for a in args]
        out = np.ascontiguousarray(compute(*split))
        return out.view(args[0].dtype)[..., 0]

    return on_parts


def _finished(instr: Instr, compute: Computation, exact: Computation | None = None) -> Computation:
    """With what modifiers do to operands and result: `.ftz`, `.sat`, `.relu`, one NaN for all.

    `exact` gives the result in float64, rounded to odd, where rounding it may bring it up to the
    smallest normal number: it is flushed by what it was before.
    """
    shape, kind = instr.shape, _type(instr)
    part = _HALF.get(kind, kind)
    flushes = shape.has("ftz") and part in SMALLEST_NORMAL
    saturates, relu = shape.has("sat"), shape.has("relu")

    def finished(*args: Array) -> Array:
        if flushes:
            args = tuple(flushed(a, part) for a in args)
        out: Any = compute(*args)
        if flushes:
            out = _flushed_result(out, args, part, exact)
        if saturates or relu:
            zero = out.dtype.type(0)
            is_nan = np.isnan(out)
            out = np.where(out > zero, out, zero)
            if saturates:
                out = np.minimum(out, out.dtype.type(1))
            elif relu:
                out = np.where(is_nan, out.dtype.type(np.nan), out)
        return out if kind in ("f64", "f16", "bf16", "f16x2", "bf16x2") else _canonical(out)

    return finished


def _flushed_result(out: Any, args: Any, kind: str, exact: Computation | None) -> Array:
    """A result that is below the smallest normal number before it is rounded is zero."""
    smallest = SMALLEST_NORMAL[kind]
    if out.dtype == np.float64:
        # Of 16-bit numbers, not rounded yet.
        return np.where(np.abs(out) < smallest, np.copysign(0.0, out), out)
    if is_clear(out, kind):
        return out
    out = flushed(out, kind)
    if exact is None:
        return out
    at = np.nonzero(np.abs(out) == np.float32(smallest))
    if not len(at[0]):
        return out
    wide: Any = exact(*(np.broadcast_to(a, out.shape)[at].astype(np.float64) for a in args))
    out = np.array(out)
    out[at] = np.where(np.abs(wide) < smallest, np.copysign(np.float32(0), out[at]), out[at])
    return out


def _rounded(
    instr: Instr,
    arity: int,
    plain: Computation,
    exact: Computation,
    wide: Callable[[str], Computation],
    down: Computation | None = None,
) -> Lanewise:
    """An operation that `plain` rounds to nearest; for other modes `exact` gives it in float64,
    rounded to odd, which is rounded once more. `down` takes its place for rounding down. `wide` is
    the operation of f64 by a mode."""
    kind, mode = _type(instr), _mode(instr)
    compute = plain
    if mode != "rn" and kind == "f64":
        compute = wide(mode)
    elif mode != "rn":
        part = _HALF.get(kind, kind)
        form = FORMATS[part]
        chosen = down if mode == "rm" and down is not None else exact

        def directed(*args: Array) -> Array:
            odd: Any = chosen(*(a.astype(np.float64) for a in args))
            return narrowed(odd, form, mode).astype(np.float32)

        compute = directed
    finished = on(kind, _finished(instr, compute, exact))
    if len(instr.shape.types) == 2:
        return _mixed(finished, instr.shape.types[1], arity)
    return alike(finished, kind, arity)


def _mixed(compute: Computation, narrow: str, arity: int) -> Lanewise:
    """One on float32 whose operands but the last are narrower (PTX ISA, "Mixed Precision Floating
    Point Instructions")."""

    def mixed(*args: Array) -> Array:
        *first, last = args
        out: Any = compute(*(numbers(a, narrow) for a in first), last)
        return out

    return Lanewise(mixed, (narrow,) * (arity - 1) + ("f32",), ("f32",))


def _directed(name: str, *, changed: Computation | None = None) -> Callable[[str], Computation]:
    """An operation of f64 by a mode; `changed` makes its operands of the instruction's."""

    def by(mode: str) -> Computation:
        if changed is None:
            return lambda *args: directed64(name, mode, *args)
        return lambda *args: directed64(name, mode, *changed(*args))

    return by


def _fma(instr: Instr) -> Lanewise:
    kind = _HALF.get(_type(instr), _type(instr))
    if kind in ("f16", "bf16"):
        # A product of two is exact in float64; the sum is rounded to odd, so that it can be
        # rounded once more.
        return _rounded(instr, 3, _fma_odd, _fma_odd, _directed("fma"))
    if kind == "f64":
        return _rounded(instr, 3, fma64, fma64, _directed("fma"))
    return _rounded(
        instr, 3, fma32, _fma_odd, _directed("fma"), lambda a, b, c: _sum_down(a * b, c)
    )


def _fma_odd(a: Array, b: Array, c: Array) -> Array:
    wide = np.float64
    return odd_sum(a.astype(wide) * b.astype(wide), c.astype(wide))


def _sum_down(a: Array, b: Array) -> Array:
    """A sum rounded to odd, for rounding down: what cancels is minus zero (IEEE 754, 6.3)."""
    total = odd_sum(a, b)
    return np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)


def _add(instr: Instr) -> Lanewise:
    return _rounded(instr, 2, lambda a, b: a + b, odd_sum, _directed("add"), _sum_down)


def _sub(instr: Instr) -> Lanewise:
    return _rounded(
        instr,
        2,
        lambda a, b: a - b,
        lambda a, b: odd_sum(a, -b),
        _directed("add", changed=lambda a, b: (a, -b)),
        lambda a, b: _sum_down(a, -b),
    )


def _mul(instr: Instr) -> Lanewise:
    # A product of two float32 has 48 bits: exact in float64.
    return _rounded(instr, 2, lambda a, b: a * b, lambda a, b: a * b, _directed("mul"))


def _div(instr: Instr) -> Lanewise:
    if instr.shape.has("approx"):
        return alike(_finished(instr, _quotient_by_reciprocal, _quotient_odd), _type(instr), 2)
    return _rounded(instr, 2, lambda a, b: a / b, _quotient_odd, _directed("div"))


def _quotient_by_reciprocal(a: Array, b: Array) -> Array:
    """`div.approx`: the reciprocal of finite numbers beyond 2^126 counts as zero."""
    size = np.abs(b)
    is_beyond = (size > np.float32(2.0**126)) & np.isfinite(b)
    if not is_beyond.any():
        return a / b
    return np.where(is_beyond, a * np.copysign(np.float32(0), b), a / b)


def _quotient_odd(a: Array, b: Array) -> Array:
    """A quotient rounded to odd: its last bit is 1 unless it is exact."""
    out = a / b
    product, rest = two_product(out, b)
    left = (a - product) - rest
    word = out.view(np.uint64)
    # Infinite operands leave NaN: there the quotient is exact.
    is_even = (word & np.uint64(1) == 0) & (left != 0) & np.isfinite(left) & np.isfinite(out)
    outward = (left > 0) == (a > 0)
    moved = np.where(outward, word + np.uint64(1), word - np.uint64(1))
    return np.where(is_even, moved, word).view(np.float64)


def _sqrt(instr: Instr) -> Lanewise:
    return _rounded(instr, 1, np.sqrt, _root_odd, _directed("sqrt"))


def _root_odd(a: Array) -> Array:
    out = np.sqrt(a)
    product, rest = two_product(out, out)
    left = (a - product) - rest
    word = out.view(np.uint64)
    is_even = (word & np.uint64(1) == 0) & (left != 0) & np.isfinite(out)
    moved = np.where(left > 0, word + np.uint64(1), word - np.uint64(1))
    return np.where(is_even, moved, word).view(np.float64)


def _reciprocal(instr: Instr) -> Lanewise:
    one: Callable[[Array], Array] = lambda a: a.dtype.type(1) / a  # noqa: E731
    if instr.shape.has("approx") and _type(instr) == "f64":
        return alike(_by_upper_word(one), "f64", 1)
    wide = _directed("div", changed=lambda a: (np.ones_like(a), a))
    return _rounded(instr, 1, one, lambda a: _quotient_odd(np.ones_like(a), a), wide)


def _by_upper_word(compute: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`rcp.approx.ftz.f64` and its like look at the upper 32 bits of an operand alone, give as
    many, and flush subnormal numbers."""
    low = np.uint64(0xFFFFFFFF)
    half, one = np.uint64(0x7FFFFFFF), np.uint64(1)

    def out(a: Array) -> Array:
        word = raw(a) & ~low
        found = _flushed_wide(compute(_flushed_wide(word.view(np.float64))))
        bits_ = raw(found)
        rounded = bits_ + half + (bits_ >> np.uint64(32) & one) & ~low
        whole = np.isinf(found) | np.isnan(found)
        return np.where(whole, bits_, rounded).view(np.float64)

    return out


def _flushed_wide(values: Array) -> Array:
    tiny = np.abs(values) < np.finfo(np.float64).tiny
    return np.where(tiny, np.copysign(0.0, values), values)


def _approximate(compute: Callable[[Any], Any]) -> Maker:
    """One that PTX bounds by an error: computed in float64 and rounded."""

    def make(instr: Instr) -> Lanewise:
        kind = _type(instr)
        if kind == "f64" and instr.shape.has("ftz"):
            return alike(_by_upper_word(compute), kind, 1)

        def wide(a: Array) -> Array:
            out: Array = compute(a.astype(np.float64))
            return out if kind == "f64" else out.astype(np.float32)

        return alike(on(kind, _finished(instr, wide)), kind, 1)

    return make


_CHOICES: Final[dict[tuple[int, bool], Any]] = {
    (-1, False): np.fmin, (-1, True): np.minimum, (1, False): np.fmax, (1, True): np.maximum,
}  # fmt: skip
"""The lesser and the greater of two numbers, giving way to a number or keeping NaN."""


def _minmax(sign: int) -> Maker:
    """A NaN gives way to a number unless `.NaN` is given; minus zero is below zero."""

    def make(instr: Instr) -> Lanewise:
        shape, kind = instr.shape, _type(instr)
        keeps_nan, by_magnitude = shape.has("NaN"), shape.has("abs")
        flips = shape.has("xorsign")

        choose: Any = _CHOICES[sign, keeps_nan]

        def pick(a: Array, b: Array) -> Array:
            x, y = (np.abs(a), np.abs(b)) if by_magnitude else (a, b)
            out = choose(x, y)
            is_zero = out == 0
            if some(is_zero):
                # Of two zeros the sign decides: the lesser one has it if any has, the greater one
                # if both have.
                signs = raw(x) | raw(y) if sign < 0 else raw(x) & raw(y)
                out = np.where(is_zero & (x == y), signs.view(out.dtype), out)
            if flips:
                is_negative = np.signbit(a) ^ np.signbit(b)
                out = np.where(is_negative, -np.abs(out), np.abs(out))
            return out

        if kind == "f64":
            return alike(pick, kind, 2)
        arity = len(instr.operands) - 1
        pairwise = pick
        if arity == 3:
            return alike(on(kind, _finished(instr, lambda a, b, c: pairwise(pairwise(a, b), c))),
                         kind, 3)  # fmt: skip
        return alike(on(kind, _finished(instr, pick)), kind, 2)

    return make


def _sign(compute: Callable[[Any], Array]) -> Maker:
    """`neg` and `abs`. Of NaN they give the canonical one (f64: any)."""

    def make(instr: Instr) -> Lanewise:
        kind = _type(instr)
        return alike(on(kind, _finished(instr, compute)), kind, 1)

    return make


def _copysign(instr: Instr) -> Lanewise:
    return alike(lambda a, b: np.copysign(b, a), _type(instr), 2)


def _testp(instr: Instr) -> Lanewise:
    kind, shape = _type(instr), instr.shape
    tiny = np.finfo(np.float64 if kind == "f64" else np.float32).tiny

    def subnormal(a: Array) -> Array:
        return (np.abs(a) < tiny) & (a != 0)

    tests: dict[str, Computation] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        # Zeros count as normal (PTX ISA, "testp").
        "normal": lambda a: np.isfinite(a) & ~subnormal(a),
        "subnormal": subnormal,
    }
    test = next(tests[m] for m in shape.modifiers if m in tests)
    return Lanewise(test, (kind,), ("pred",))


ROWS: Final[dict[str, Maker]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "fma": _fma,
    "mad": _fma,
    "div": _div,
    "sqrt": _sqrt,
    "rcp": _reciprocal,
    "rsqrt": _approximate(lambda a: 1 / np.sqrt(a)),
    "ex2": _approximate(np.exp2),
    "lg2": _approximate(np.log2),
    "sin": _approximate(np.sin),
    "cos": _approximate(np.cos),
    "tanh": _approximate(np.tanh),
    "min": _minmax(-1),
    "max": _minmax(1),
    "neg": _sign(np.negative),
    "abs": _sign(np.abs),
    "copysign": _copysign,
    "testp": _testp,
}
"""By opcode, for floating-point operands."""


__all__ = ["ROWS", "is_floating", "on"]
