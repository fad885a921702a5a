"""What a computation makes of labels.

A result is labelled if an operand is, unless the labelled operand changed nothing: where the result
is what it would be without it (`max` with minus infinity, a sum with zero, `and` with false), it is
made of the others. What is no element of a tile does not count as such another: a number that all
lanes hold alike by the way it is made (a parameter, a literal), what a padded element is scaled by,
and what is taken from it. So a padded element plus a bias, times a scale or minus a mean is padding
still.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, raw
from ptxlint.dynamic.emulator.semantics import Lanewise
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits

_PARTS: Final = {"f16x2": 16, "bf16x2": 16, "u16x2": 16, "s16x2": 16, "f32x2": 32}
_SUMS: Final = frozenset("add sub fma mad".split())
_CHOICES: Final = frozenset("min max and or".split())


class Operand(NamedTuple):
    """An operand before a step: its values as the computation takes them, their bits, and its
    label (None: no label). `is_literal` is true for what is no register."""

    values: Array
    label: Array | None
    is_literal: bool


def outcome(instr: Instr, found: Lanewise, operands: list[Operand], result: Array) -> Array:
    """The label of a result, as a word for each lane."""
    width = _PARTS.get(instr.shape.type, 8 * result.dtype.itemsize)
    if instr.opcode == "setp":
        return _compared(operands)
    labels = [o.label for o in operands if o.label is not None]
    shape = np.broadcast_shapes(result.shape, *(label.shape for label in labels))
    wide = _split(np.broadcast_to(result, shape), width)
    labelled = np.zeros(wide.shape, dtype=bool)
    for label in labels:
        labelled |= _is_labelled(label, shape, width, wide.shape)
    if instr.opcode in _SUMS and not found.reads_carry and not found.writes_carry:
        labelled &= ~_is_sum_of_others(instr, found, operands, shape, width, wide)
    elif instr.opcode in _CHOICES:
        for operand in operands:
            labelled &= ~_is_unchanged(operand, shape, width, wide)
    return _joined(labelled, result, shape, width)


def _is_sum_of_others(
    instr: Instr,
    found: Lanewise,
    operands: list[Operand],
    shape: tuple[int, ...],
    width: int,
    result: Array,
) -> Flags:
    """Where a sum is what it is with zeros for its labelled parts, and one has no label."""
    cleared: list[Any] = []
    flags = []
    for operand in operands:
        values = np.broadcast_to(operand.values, shape)
        flags.append(
            np.zeros(result.shape, dtype=bool)
            if operand.label is None
            else _is_labelled(operand.label, shape, width, result.shape)
        )
        if operand.label is not None and operand.label.dtype.itemsize == values.dtype.itemsize:
            word = raw(np.ascontiguousarray(values)) & ~np.broadcast_to(operand.label, shape)
            values = word.view(values.dtype)
        cleared.append(values)
    others: Any = found.compute(*cleared)
    same: Flags = _split(np.broadcast_to(raw(others), shape), width) == result
    *factors, last = flags
    if instr.opcode == "sub":
        return same & ~factors[0] & last
    if len(operands) == 2:
        first, second = operands
        return same & (
            last & ~factors[0] & _is_element(first) | factors[0] & ~last & _is_element(second)
        )
    # A product is out of it if both factors are padding, or one with an element for the other.
    a, b = factors
    is_product_out = a & b | a & _is_element(operands[1]) | b & _is_element(operands[0])
    is_sum_out = last & ~a & ~b
    return same & (~last & is_product_out & _is_element(operands[2]) | is_sum_out)


def _is_element(operand: Operand) -> bool:
    """False for a number that all lanes of a CTA hold alike by the way it is made; zero does no
    harm."""
    values = operand.values
    return not operand.is_literal and (values.shape[-1] != 1 or not raw(values).any())


def _is_unchanged(operand: Operand, shape: tuple[int, ...], width: int, result: Array) -> Flags:
    """Where the result is the bits of an operand that has no label."""
    word = raw(operand.values)
    if word.dtype.itemsize != np.dtype(RAW[width]).itemsize and width >= 8 * word.dtype.itemsize:
        return np.zeros(result.shape, dtype=bool)
    if not _is_element(operand) and word.dtype.kind != "b":
        return np.zeros(result.shape, dtype=bool)
    same: Flags = _split(np.broadcast_to(word, shape), width) == result
    if operand.label is not None:
        same = same & ~_is_labelled(operand.label, shape, width, result.shape)
    return same


def _compared(operands: list[Operand]) -> Array:
    """A comparison tells of padding only if there is nothing else in it: what is compared with
    padding is chosen by what it is itself."""
    label: Flags = np.zeros((1, 1), dtype=bool)
    known = [o for o in operands if not o.is_literal]
    if known and all(o.label is not None for o in known):
        label = np.ones((1, 1), dtype=bool)
        for operand in known:
            label = label & (operand.label != 0)
    return label


def _split(word: Array, width: int) -> Array:
    """Words as parts of `width` bits along a last axis."""
    word = raw(word)
    if 8 * word.dtype.itemsize == width or word.dtype.kind == "b":
        return word[..., None]
    return np.ascontiguousarray(word)[..., None].view(RAW[width])


def _is_labelled(label: Array, shape: tuple[int, ...], width: int, parts: tuple[int, ...]) -> Flags:
    """Which parts of a result an operand's label bears on: its own part, or all."""
    full = np.broadcast_to(label, shape)
    if 8 * label.dtype.itemsize > width:
        split: Flags = _split(full, width) != 0
        if split.shape == parts:
            return split
    return np.broadcast_to((full != 0)[..., None], parts)


def _joined(labelled: Flags, result: Array, shape: tuple[int, ...], width: int) -> Array:
    """Flags by part as a word a lane."""
    if result.dtype.kind == "b":
        return labelled[..., 0]
    kind = RAW[min(width, 8 * result.dtype.itemsize)]
    ones = np.where(labelled, kind.type(np.iinfo(kind).max), kind.type(0))
    return np.ascontiguousarray(ones).view(result.dtype)[..., 0]


def bitwise(instr: Instr, label: Array, literal: int) -> Array | None:
    """The label behind a shift by whole bytes or a mask of whole bytes; None for others."""
    width = 8 * label.dtype.itemsize
    kind = label.dtype.type
    if instr.opcode == "and":
        kept = sum(0xFF << at for at in range(0, width, 8) if literal >> at & 0xFF)
        return label & kind(kept)
    if literal % 8 or not 0 <= literal < width:
        return None
    if instr.opcode == "shl":
        return label << kind(literal)
    return label >> kind(literal) if instr.opcode == "shr" else None


def permuted(found: Lanewise, operands: list[Operand]) -> Array:
    """The label behind a permutation of bytes: that of the bytes which are taken."""
    first, second, selector = operands
    none = np.zeros((1, 1), dtype=np.uint32)
    labels = [none if o.label is None else o.label for o in (first, second)]
    out: Any = found.compute(*labels, selector.values)
    return out


def united(operands: list[Operand], word: Array) -> Array | None:
    """The label behind a bitwise operation of two registers: byte by byte; of predicates that of
    one whose value does not settle it."""
    if word.dtype.kind != "b":
        labels = [o.label for o in operands if o.label is not None]
        return None if not labels else np.bitwise_or.reduce(np.broadcast_arrays(*labels))
    flags = np.zeros((1, 1), dtype=bool)
    for operand in operands:
        if operand.label is not None:
            flags = flags | operand.label
    for operand in operands:
        free = True if operand.label is None else ~operand.label
        flags = flags & ~((operand.values == word) & free)
    return flags


def packed(instr: Instr, operands: list[Operand], result: Array) -> Array:
    """The label behind a conversion of two numbers that share a register: each of its own part.

    Of two operands the first goes into the upper part.
    """
    whole = 8 * result.dtype.itemsize
    half = RAW[whole // 2]
    parts = []
    for operand in operands[:2]:
        label = operand.label
        if label is None:
            label = np.zeros((1, 1), dtype=RAW[8 * operand.values.dtype.itemsize])
        if len(operands) == 1:
            low = label & label.dtype.type((1 << 4 * label.dtype.itemsize) - 1)
            parts = [low, label ^ low]
        else:
            parts.insert(0, label)
    ones = half.type(np.iinfo(half).max)
    low, high = (np.where(part != 0, ones, half.type(0)).astype(result.dtype) for part in parts)
    out: Array = low | high << result.dtype.type(whole // 2)
    return out


def narrowed_or_widened(instr: Instr, label: Array, width: int) -> Array:
    """The label behind a conversion between integers: the bytes kept, or all that a byte fills."""
    kind = RAW[width]
    if bits(instr.shape.types[0]) <= bits(instr.shape.types[-1]):
        return label.astype(kind)
    return np.where(label != 0, kind.type(np.iinfo(kind).max), kind.type(0))


__all__ = ["Operand", "bitwise", "narrowed_or_widened", "outcome", "packed", "permuted", "united"]
