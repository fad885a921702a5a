"""Single-precision instructions on arrays of machine words, exactly as the machine has them.

Those by which index arithmetic takes a way through floating point: conversions from and to
integers, sums and products (PTX ISA, "Floating Point Instructions" and "cvt").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register
from ptxlint.ir.types import BITS
from ptxlint.launch.words import Numbers, Operation, Word, both_known, signed, unsigned

_Singles = NDArray[np.float32]
_ARITHMETIC: Final[dict[str, Callable[[_Singles, _Singles], _Singles]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
_ROUNDED: Final[dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
    "rni": np.rint,
}
_TINY: Final = np.float32(2.0**-126)
"""The least number that is no denormal one."""


def float_operation(instr: Instr, result: int) -> Operation | None:
    """What computes the result of an instruction of single precision; None if not followed."""
    shape = instr.shape
    if result or "f32" not in shape.types or not isinstance(instr.operands[0], Register):
        return None
    if shape.has("sat"):
        return None
    if shape.opcode == "cvt" and len(shape.types) == 2 and len(instr.operands) == 2:
        written, source = shape.types
        if written == "f32":
            return _from_integer(source) if shape.has("rn") else None
        return _to_integer(instr, written) if source == "f32" else None
    compute = _ARITHMETIC.get(shape.opcode)
    if compute is None or shape.types != ("f32",) or any(shape.has(m) for m in ("rz", "rm", "rp")):
        return None
    if len(instr.operands) != 3:
        return None
    return _arithmetic(compute, shape.has("ftz"))


def _singles(bits: Numbers) -> _Singles:
    return unsigned(bits, 32).astype(np.uint32).view(np.float32)


def _bits(numbers: _Singles) -> Numbers:
    return numbers.astype(np.float32).view(np.uint32).astype(np.uint64)


def _flushed(numbers: _Singles) -> _Singles:
    """With zeros, of the same sign, for denormal numbers."""
    zeros = np.copysign(np.float32(0), numbers)
    return np.where(np.abs(numbers) < _TINY, zeros, numbers).astype(np.float32)


def _arithmetic(compute: Callable[[_Singles, _Singles], _Singles], flush: bool) -> Operation:
    def apply(words: Sequence[Word | None]) -> Word | None:
        a, b = words
        if a is None or b is None:
            return None
        left, right = _singles(a.bits), _singles(b.bits)
        if flush:
            left, right = _flushed(left), _flushed(right)
        with np.errstate(all="ignore"):
            made = compute(left, right)
        return Word(_bits(_flushed(made) if flush else made), both_known(a.known, b.known))

    return apply


def _from_integer(source: str) -> Operation | None:
    if source[0] not in "us":
        return None
    width = BITS[source]

    def apply(words: Sequence[Word | None]) -> Word | None:
        (word,) = words
        if word is None:
            return None
        read = signed(word.bits, width) if source[0] == "s" else unsigned(word.bits, width)
        return Word(_bits(read.astype(np.float32)), word.known)

    return apply


def _to_integer(instr: Instr, written: str) -> Operation | None:
    """Rounded as said, and kept within the type; of what is no number, 0 (PTX ISA, "cvt")."""
    mode = next((_ROUNDED[m] for m in instr.shape.modifiers if m in _ROUNDED), None)
    if mode is None or written not in ("s32", "u32"):
        return None
    rounded = mode
    low, high = (-(1 << 31), (1 << 31) - 1) if written == "s32" else (0, (1 << 32) - 1)

    def apply(words: Sequence[Word | None]) -> Word | None:
        (word,) = words
        if word is None:
            return None
        numbers = np.nan_to_num(_singles(word.bits).astype(np.float64), nan=0.0)
        kept = np.clip(rounded(numbers), low, high).astype(np.int64)
        return Word(unsigned(kept.view(np.uint64), 32), word.known)

    return apply


__all__ = ["float_operation"]
