"""Loads, stores and hints (PTX ISA, "ld", "st", "prefetch", "membar/fence")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ptxlint.dynamic.emulator.access import (
    Addresses,
    Lanes,
    Memory,
    blank,
    gather,
    generic,
    joined,
    scatter,
)
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader, Step
from ptxlint.dynamic.emulator.formats import RAW, Array, dtype, fitted, raw
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import address, literal, reader
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Operand, Register, Sink, Symbol, Vector
from ptxlint.ir.types import bits

MEMORIES: Final = {space: Memory(space) for space in ("global", "shared", "local", "param")}


def space_of(frame: Frame, instr: Instr, operand: Operand) -> str:
    """The state space that an address operand is in; "" for a generic address."""
    space: str = instr.shape.space
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        space = frame.place(instr, operand.base).space
    if space == "const":
        return "global"
    return space


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The parts of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def spaces(space: str, where: Addresses) -> list[tuple[str, np.ndarray, Addresses]]:
    """The state spaces that lanes access, with the lanes and their addresses in each."""
    from ptxlint.dynamic.emulator.spaces import window

    if space:
        return [(space, np.ones(len(where), dtype=bool), where)]
    return [(found, inside, where[inside] - window(found)) for found, inside in generic(where)]


def _load(frame: Frame, instr: Instr) -> Step:
    shape = instr.shape
    target, source = instr.operands[:2]
    kind = shape.type
    if kind == "b128":
        raise UnsupportedError(instr, "128-bit registers")
    parts = elements(target)
    width = bits(kind) // 8
    size = width * len(parts)
    where, space = address(frame, instr, source), space_of(frame, instr, source)
    writes = [
        (at, frame.number(part), bits(part.type))
        for at, part in enumerate(parts)
        if isinstance(part, Register)
    ]
    if any(not isinstance(part, Register | Sink) for part in parts):
        raise UnsupportedError(instr, "a destination that is no register")
    part_type = dtype(kind)

    def step(batch: Batch, mask: Mask) -> None:
        place = where(batch)
        if mask is None and space == "param" and place.size == 1:
            _put_all(batch, writes, _parameter(batch, int(place.item()), size, part_type), kind)
            return
        lanes = batch.taking_part(mask)
        words = read(batch, instr, lanes, space, lanes.pick(place), size)
        pieces = words.view(part_type).reshape(len(lanes.index), -1)
        for at, number, register in writes:
            values = fitted(np.ascontiguousarray(pieces[:, at]), kind, register)
            batch.spread(number, values, lanes)

    return step


def _parameter(batch: Batch, place: int, size: int, part: np.dtype) -> Array:
    return batch.device.parameters[place : place + size].view(part)


def _put_all(batch: Batch, writes: list[tuple[int, int, int]], pieces: Array, kind: str) -> None:
    for at, number, register in writes:
        batch.registers[number] = fitted(pieces[at : at + 1].reshape(1, 1), kind, register)


def read(
    batch: Batch, instr: Instr, lanes: Lanes, space: str, where: Addresses, size: int
) -> Array:
    """The bytes at addresses, one element a lane; "" is the generic space."""
    if space:
        memory, place, allowed = MEMORIES[space].resolve(
            batch, instr, lanes, where, size, False, True
        )
        out = gather(memory, place, size)
        if allowed is not None:
            out[~allowed] = 0
        return out
    out = blank(len(where), size)
    for found, inside, there in spaces("", where):
        part = lanes.only(inside)
        out[inside] = read(batch, instr, part, found, there, size)
    return out


def write(
    batch: Batch, instr: Instr, lanes: Lanes, space: str, where: Addresses, values: Array, size: int
) -> None:
    """Put elements at addresses, one a lane."""
    if not space:
        for found, inside, there in spaces("", where):
            write(batch, instr, lanes.only(inside), found, there, values[inside], size)
        return
    memory, place, allowed = MEMORIES[space].resolve(
        batch, instr, lanes, where, size, True, False, values
    )
    if allowed is not None:
        place, values = place[allowed], values[allowed]
    scatter(memory, place, values, size)


def _store(frame: Frame, instr: Instr) -> Step:
    shape = instr.shape
    target, source = instr.operands[:2]
    kind = shape.type
    if kind == "b128":
        raise UnsupportedError(instr, "128-bit registers")
    parts = elements(source)
    width = bits(kind) // 8
    size = width * len(parts)
    where, space = address(frame, instr, target), space_of(frame, instr, target)
    reads = [_stored(frame, instr, part, kind) for part in parts]

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        place = lanes.pick(where(batch))
        if len(reads) == 1:
            words = lanes.pick(raw(reads[0](batch)))
        else:
            columns = np.empty((len(place), len(reads)), RAW[8 * width])
            for at, read in enumerate(reads):
                columns[:, at] = lanes.pick(raw(read(batch)))
            words = joined(columns, size)
        write(batch, instr, lanes, space, place, words, size)

    return step


def _stored(frame: Frame, instr: Instr, operand: Operand, kind: str) -> Reader:
    """What is stored: the low bits of a register, or a literal's."""
    word = literal(operand, kind)
    if word is not None:
        return lambda batch: word
    return reader(frame, instr, operand, f"b{bits(kind)}")


def _nothing(frame: Frame, instr: Instr) -> Step:
    """A hint, or an order that one step after the other keeps anyway."""
    return lambda batch, mask: None


def _fence(frame: Frame, instr: Instr) -> Step:
    """Nothing, but for those who watch whether accesses of CTAs are ordered, and what the async
    proxy sees of shared memory."""
    shape = instr.shape
    if shape.has("proxy"):
        is_async = shape.has("async") and shape.space != "global"
        return _proxy_fence if is_async else _nothing(frame, instr)
    if not any(shape.has(word) for word in ("gpu", "sys", "gl", "cluster")):
        return _nothing(frame, instr)

    def step(batch: Batch, mask: Mask) -> None:
        if batch.watch is not None:
            batch.watch.fence(batch.taking_part(mask))

    return step


def _proxy_fence(batch: Batch, mask: Mask) -> None:
    if batch.arrivals is not None:
        lanes = batch.taking_part(mask)
        batch.arrivals.agents.clocks.fence(lanes.cta, lanes.thread // WARP)


ROWS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    **dict.fromkeys(("membar", "fence"), _fence),
    **dict.fromkeys(
        ("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "setmaxnreg",
         "griddepcontrol", "pmevent", "createpolicy"),
        _nothing,
    ),
}  # fmt: skip
"""By opcode."""


__all__ = ["MEMORIES", "ROWS", "elements", "read", "space_of", "spaces", "write"]
