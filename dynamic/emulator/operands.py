"""How instructions read their operands and write their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.batch import SPECIAL, Batch, Mask, Reader
from ptxlint.dynamic.emulator.formats import RAW, Array, dtype, fitted, seen_as
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import FLOATS, bits

Writer: TypeAlias = Callable[[Batch, Array, Mask], None]
"""Gives values to a destination in the lanes of a mask."""


def reader(frame: Frame, instr: Instr, operand: Operand, type_name: str) -> Reader:
    """What an operand holds, as values of a type. Raises `UnsupportedError`."""
    if isinstance(operand, Register):
        return _register(frame, instr, operand, type_name)
    if isinstance(operand, SpecialRegister) and operand.name != "WARP_SZ":
        return _special(instr, operand.name, type_name)
    if isinstance(operand, Negated) and operand.sign == "!":
        inner = reader(frame, instr, operand.operand, type_name)
        return lambda batch: ~inner(batch)
    if isinstance(operand, Symbol):
        return _constant(np.array([[frame.address_of(instr, operand)]], np.uint64), type_name)
    word = literal(operand, type_name)
    if word is None:
        raise UnsupportedError(instr, f"operand {operand!r}")
    return _constant(word, type_name)


def literal(operand: Operand, type_name: str) -> Array | None:
    """The bits of a literal or constant expression as an operand of a type; None for others."""
    width = bits(type_name)
    kind = RAW[width]
    if isinstance(operand, Immediate) and operand.kind != "int":
        if operand.kind == "f32" and width == 32:
            return np.array([[operand.value]], dtype=np.uint32)
        if type_name in FLOATS or width == 64:
            number = operand.as_float()
            target = "f64" if width == 64 else "f32" if width == 32 else "f16"
            return np.array([[number]], dtype=dtype(target)).view(kind)
        return None
    number_or_none = fold(operand)
    if number_or_none is None:
        return None
    if width == 1:
        return np.array([[number_or_none != 0]])
    return np.array([[number_or_none & ((1 << width) - 1)]], dtype=kind)


def number_of(instr: Instr, operand: Operand) -> int:
    """An operand that is a number in the text. Raises `UnsupportedError`."""
    number = fold(operand)
    if number is None:
        raise UnsupportedError(instr, f"operand {operand!r}")
    return number


def _constant(word: Array, type_name: str) -> Reader:
    values = seen_as(word, type_name)
    return lambda batch: values


def _register(frame: Frame, instr: Instr, register: Register, type_name: str) -> Reader:
    number, width = frame.number(register), bits(register.type)
    if width < bits(type_name):
        # No form of PTX reads more bits than a register has: the form is not known here.
        raise UnsupportedError(instr, f"{register.name} of {width} bits read as .{type_name}")
    have, wanted = RAW[width], dtype(type_name)
    if have == wanted:
        return lambda batch: batch.value(number, width)
    if have.itemsize == wanted.itemsize and have.kind != "b" and wanted.kind != "b":
        return lambda batch: batch.value(number, width).view(wanted)
    return lambda batch: seen_as(batch.value(number, width), type_name)


def _special(instr: Instr, name: str, type_name: str) -> Reader:
    if name not in SPECIAL:
        raise UnsupportedError(instr, f"special register {name}")

    def read(batch: Batch) -> Array:
        found = batch.special[name]
        if bits(type_name) > 8 * found.dtype.itemsize:
            found = found.astype(RAW[bits(type_name)])
        return seen_as(found, type_name)

    return read


def writer(frame: Frame, instr: Instr, operand: Operand, type_name: str) -> Writer:
    """A destination for values of a type, which a wider register gets extended."""
    if isinstance(operand, Sink):
        return lambda batch, values, mask: None
    if not isinstance(operand, Register):
        raise UnsupportedError(instr, f"destination {operand!r}")
    number, width = frame.number(operand), bits(operand.type)
    target = RAW[width]

    def write(batch: Batch, values: Array, mask: Mask) -> None:
        if values.dtype is not target:
            values = fitted(values, type_name, width)
        if mask is None:
            batch.registers[number] = values
        else:
            batch.put(number, values, mask)

    return write


def guard(frame: Frame, instr: Instr) -> Callable[[Batch, Mask], Mask] | None:
    """The lanes of a mask in which an instruction's guard holds; None for one without a guard.

    An empty mask is an array without a true element.
    """
    register = instr.guard
    if register is None:
        return None
    number, is_negated = frame.number(register), instr.shape.guard == "@!"

    def held(batch: Batch, mask: Mask) -> Mask:
        flags = batch.value(number, 1)
        return batch.some(mask, ~flags if is_negated else flags)

    return held


def address(frame: Frame, instr: Instr, operand: Operand) -> Reader:
    """Where an address operand points, as signed 64-bit numbers (shared: offsets in the CTA)."""
    if not isinstance(operand, Address):
        raise UnsupportedError(instr, f"address {operand!r}")
    offset = np.int64(operand.offset)
    base = operand.base
    if isinstance(base, Register):
        number, width = frame.number(base), bits(base.type)
        if width == 32:
            # An address of 32 bits wraps: libdevice counts back from the start of a local array.
            step = np.uint32(operand.offset & 0xFFFFFFFF)
            return lambda batch: (batch.value(number, width) + step).astype(np.int64)
        return lambda batch: batch.value(number, width).astype(np.int64) + offset
    if isinstance(base, Symbol):
        start = frame.address_of(instr, base)
    else:
        found = fold(base)
        if found is None:
            raise UnsupportedError(instr, f"address {operand!r}")
        start = found
    place = np.array([[start]], dtype=np.int64) + offset
    return lambda batch: place


__all__ = ["Writer", "address", "guard", "literal", "number_of", "reader", "writer"]
