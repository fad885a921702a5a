"""Runs in which everything errs by what PTX allows a device to err by: always toward zero, always
away from it, or at random.

A kernel without a reference is held to itself: what it makes of such errors, run after run, is how
far apart two right devices may be. The errors are

- of an approximate instruction, the manual's bound (docs/emulator.md);
- of an `add` or `sub` of f32 without a rounding mode, which an assembler may fuse with a product
  before it (PTX ISA, "add"), half a unit in the last place of the larger operand;
- of a matrix product, 2^-22 of its largest number and of what it is added to; of `wgmma` of 8-bit
  floats, of whose sums Hopper keeps fewer bits, 2^-13 of the sum of all magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.effects import products, warpgroup
from ptxlint.dynamic.emulator.semantics import floating
from ptxlint.dynamic.emulator.semantics.lanewise import Lanewise
from ptxlint.ir.instruction import Instr

Array = np.ndarray[Any, Any]

_RELATIVE: Final = {
    "ex2": 2.0**-22, "lg2": 2.0**-22, "rcp": 2.0**-23, "rsqrt": 2.0**-22.9, "sqrt": 2.0**-23,
    "tanh": 2.0**-11, "div": 2.0**-22, "sin": 2.0**-20.5, "cos": 2.0**-20.5,
}  # fmt: skip
_HALF: Final = {
    ("ex2", "f16"): 2.0**-9.9, ("ex2", "bf16"): 2.0**-7, ("tanh", "f16"): 2.0**-10.987,
    ("tanh", "bf16"): 2.0**-8,
}  # fmt: skip
_ROUNDED: Final = 2.0**-24
_SUM: Final = 2.0**-22
_NARROW_SUM: Final = 2.0**-13
_NARROW_K: Final = 32
"""Only products of bytes are so long in one instruction."""


class _Errors:
    """Parts of the largest error, from -1 (toward zero) to 1."""

    def __init__(self, seed: int) -> None:
        self._always = {0: -1.0, 1: 1.0}.get(seed)
        self._random = np.random.default_rng(seed)

    def drawn(self, shape: tuple[int, ...]) -> Array:
        """One for each element."""
        if self._always is not None:
            return np.full(shape, self._always)
        return self._random.uniform(-1, 1, shape)


@contextmanager
def disturbed(seed: int) -> Iterator[None]:
    """Kernels that are translated inside err: 0 toward zero, 1 away from it, others at random."""
    random = _Errors(seed)
    rows = dict(floating.ROWS)
    rounded, multiply = products.rounded, warpgroup.multiply
    try:
        for opcode in (*_RELATIVE, "add", "sub"):
            floating.ROWS[opcode] = _erring(rows[opcode], opcode, random)
        products.rounded = _erring_sum(rounded, random)
        warpgroup.multiply = _erring_product(multiply, random)
        yield
    finally:
        floating.ROWS.update(rows)
        products.rounded, warpgroup.multiply = rounded, multiply


def _erring(maker: Callable[[Instr], Lanewise], opcode: str, random: _Errors) -> Any:
    def make(instr: Instr) -> Lanewise:
        found = maker(instr)
        kind, shape = instr.shape.types[0], instr.shape
        if opcode in ("add", "sub"):
            if kind != "f32" or any(mode in shape.modifiers for mode in ("rn", "rz", "rm", "rp")):
                return found
            return found._replace(compute=_unfused(found.compute, random))
        if not (shape.has("approx") or shape.has("full")) or kind == "f64":
            return found
        size = _HALF.get((opcode, kind.removesuffix("x2")), _RELATIVE[opcode])

        def err(a: Array) -> Array:
            out: Array = a * (1 + size * random.drawn(a.shape)).astype(a.dtype)
            return out

        # Twice a float32's last place is lost if the factor is rounded to one.
        wide = (lambda a: _wide(a, size, random)) if kind == "f32" else floating.on(kind, err)
        compute = found.compute
        return found._replace(compute=lambda *args: wide(compute(*args)))

    return make


def _wide(a: Array, size: float, random: _Errors) -> Array:
    return (a * (1 + size * random.drawn(a.shape))).astype(np.float32)


def _unfused(compute: Any, random: _Errors) -> Any:
    def out(a: Array, b: Array) -> Array:
        total = compute(a, b)
        most = np.maximum(np.abs(a), np.abs(b)).astype(np.float64)
        moved = total + np.sign(total) * most * (_ROUNDED * random.drawn(total.shape))
        return np.where(np.isfinite(total), moved, total).astype(np.float32)

    return out


def _erring_sum(rounded: Any, random: _Errors) -> Any:
    def out(product: Array, add: Array, kind: str, saturates: bool) -> Array:
        found = rounded(product, add, kind, saturates)
        largest = np.abs(product).max(axis=(-2, -1), keepdims=True) + np.abs(add)
        return _moved(found, _SUM * largest, kind, random)

    return out


def _erring_product(multiply: Any, random: _Errors) -> Any:
    def out(left: Array, right: Array, add: Array, kind: str, saturates: bool) -> Array:
        found = multiply(left, right, add, kind, saturates)
        if left.shape[-1] == _NARROW_K:
            sizes = np.abs(left) @ np.abs(right) * _NARROW_SUM
        else:
            product = left.astype(np.float64) @ right.astype(np.float64)
            largest = np.abs(product).max(axis=(-2, -1), keepdims=True)
            sizes = _SUM * (largest + np.abs(add))
        return _moved(found, sizes, kind, random)

    return out


def _moved(found: Array, sizes: Array, kind: str, random: _Errors) -> Array:
    """A sum of floating-point numbers, off by parts of what it may be."""
    if found.dtype.kind != "f" or kind == "f64":
        return found
    moved = found + np.sign(found) * sizes * random.drawn(found.shape)
    return np.where(np.isfinite(found), moved, found).astype(found.dtype)
