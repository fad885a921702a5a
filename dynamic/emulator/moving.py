"""Moves, packing and unpacking, and addresses made generic (PTX ISA, "mov", "cvta", "isspacep")."""

from __future__ import annotations

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.formats import RAW, Array
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import reader, writer
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.spaces import WINDOW_SIZE, WINDOWS, window
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register, Sink, Symbol, Vector
from ptxlint.ir.types import bits


def move(frame: Frame, instr: Instr) -> Step:
    """The step of a `mov`, `cvta` or `isspacep`."""
    if instr.opcode == "cvta":
        return _cvta(frame, instr)
    if instr.opcode == "isspacep":
        return _isspacep(frame, instr)
    target, source = instr.operands
    kind = f"b{bits(instr.shape.type)}" if instr.shape.type != "pred" else "pred"
    if kind == "b128":
        raise UnsupportedError(instr, "128-bit registers")
    if isinstance(target, Vector):
        return _unpack(frame, instr, target, source, kind)
    if isinstance(source, Vector):
        return _pack(frame, instr, target, source, kind)
    if isinstance(source, Symbol):
        _known_variable(frame, instr, source)
    read, write = reader(frame, instr, source, kind), writer(frame, instr, target, kind)
    return lambda batch, mask: write(batch, read(batch), mask)


def _known_variable(frame: Frame, instr: Instr, symbol: Symbol) -> None:
    if symbol.kind in ("function", "targets", "prototype"):
        raise UnsupportedError(instr, f"the address of the function `{symbol.name}`")
    frame.place(instr, symbol)


def _part(operand: Operand, whole: str, count: int) -> int:
    """The width of one element of a vector that is packed or unpacked."""
    if isinstance(operand, Register):
        return bits(operand.type)
    return bits(whole) // count


def _unpack(frame: Frame, instr: Instr, target: Vector, source: Operand, kind: str) -> Step:
    read = reader(frame, instr, source, kind)
    count = len(target.elements)
    width = bits(kind) // count
    part, whole = RAW[width], RAW[bits(kind)].type
    writes = [
        (at, writer(frame, instr, element, f"b{width}"))
        for at, element in enumerate(target.elements)
        if not isinstance(element, Sink)
    ]

    def step(batch: Batch, mask: Mask) -> None:
        word = read(batch)
        for at, write in writes:
            write(batch, (word >> whole(at * width)).astype(part), mask)

    return step


def _pack(frame: Frame, instr: Instr, target: Operand, source: Vector, kind: str) -> Step:
    count = len(source.elements)
    width = bits(kind) // count
    reads = [reader(frame, instr, element, f"b{width}") for element in source.elements]
    write = writer(frame, instr, target, kind)
    whole = RAW[bits(kind)]

    def step(batch: Batch, mask: Mask) -> None:
        out: Array = reads[0](batch).astype(whole)
        for at, read in enumerate(reads[1:], 1):
            out = out | read(batch).astype(whole) << whole.type(at * width)
        write(batch, out, mask)

    return step


def _cvta(frame: Frame, instr: Instr) -> Step:
    shape = instr.shape
    kind = f"u{bits(shape.type)}"
    target, source = instr.operands
    add = window(shape.space)
    if isinstance(source, Symbol):
        space = frame.place(instr, source).space
        if space != shape.space and shape.space not in ("global", "const"):
            raise UnsupportedError(instr, f"`{source.name}` lies in {space} memory")
    delta = np.array(-add if shape.has("to") else add, dtype=np.int64).astype(RAW[bits(kind)])
    read, write = reader(frame, instr, source, kind), writer(frame, instr, target, kind)
    if not add:
        return lambda batch, mask: write(batch, read(batch), mask)
    return lambda batch, mask: write(batch, read(batch) + delta, mask)


def _isspacep(frame: Frame, instr: Instr) -> Step:
    space = instr.shape.space
    target, source = instr.operands
    read, write = reader(frame, instr, source, "u64"), writer(frame, instr, target, "pred")
    start = WINDOWS.get(space)
    if start is None and space != "global":
        raise UnsupportedError(instr, f"isspacep.{space}")
    first = np.uint64(start if start is not None else 1 << 30)
    last = np.uint64(start + WINDOW_SIZE if start is not None else (1 << 64) - 1)

    def step(batch: Batch, mask: Mask) -> None:
        address = read(batch)
        write(batch, (address >= first) & (address < last), mask)

    return step


__all__ = ["move"]
