"""Instructions that move bytes without looking at them.

Most are run once more with labels in place of what they move. Some are spelled out here, since a
literal in them is data, and not a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.formats import RAW, Array
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register, Vector
from ptxlint.ir.types import bits

REPLAYED: Final[dict[str, tuple[int, ...]]] = {"shfl": (1,), "stmatrix": (1,), "movmatrix": (1,)}
"""Which operands are data in instructions that can be run on labels as they are."""


def registers(operand: Operand) -> list[Register]:
    """The registers of an operand that is one, or a vector of some."""
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    return [part for part in parts if isinstance(part, Register)]


def moved_registers(instr: Instr) -> list[Register] | None:
    """The registers whose bytes an instruction moves, if it can be run on labels instead; None if
    it is no such instruction."""
    opcode, operands = instr.opcode, instr.operands
    places: tuple[int, ...] | None = REPLAYED.get(opcode)
    if places is None:
        if opcode == "st" and instr.shape.space in ("shared", "local"):
            places = (1,)
        elif opcode == "mov" and len(operands) == 2:
            source = operands[1]
            parts = source.elements if isinstance(source, Vector) else (source,)
            if not all(isinstance(part, Register) for part in parts):
                return None
            places = (1,)
        else:
            return None
    return [register for at in places for register in registers(operands[at])]


@contextmanager
def swapped(batch: Batch, words: dict[int, Array | None]) -> Iterator[None]:
    """Registers that hold other words for a while."""
    before = {number: batch.registers[number] for number in words}
    for number, word in words.items():
        batch.registers[number] = word
    try:
        yield
    finally:
        for number, old in before.items():
            batch.registers[number] = old


@contextmanager
def muted(batch: Batch) -> Iterator[None]:
    """Steps that are no part of the launch: what they do is not reported for a while."""
    batch.device.is_muted = True
    try:
        yield
    finally:
        batch.device.is_muted = False


@contextmanager
def replaying(
    batch: Batch, words: dict[int, Array | None], shared: NDArray[np.uint8] | None = None
) -> Iterator[None]:
    """A while in which registers, and shared memory, hold other words and nothing is noted: for a
    step that is run once more on labels."""
    device, bytes_ = batch.device, batch.shared
    watching = batch.watch, batch.clocks, batch.arrivals, batch.in_flight
    counters, device.counters = device.counters, None
    batch.watch = batch.clocks = batch.arrivals = batch.in_flight = None
    device.is_muted = True
    if shared is not None:
        batch.shared = shared
    try:
        with swapped(batch, words):
            yield
    finally:
        batch.shared = bytes_
        batch.watch, batch.clocks, batch.arrivals, batch.in_flight = watching
        device.counters, device.is_muted = counters, False


def zeros(register: Register) -> Array:
    """A register without a label."""
    return np.zeros((1, 1), dtype=RAW[bits(register.type)])


def everywhere(register: Register) -> Array:
    """A register whose bytes are all labelled."""
    kind = RAW[bits(register.type)]
    return np.array([[True]]) if kind.kind == "b" else np.array([[np.iinfo(kind).max]], dtype=kind)


__all__ = ["everywhere", "moved_registers", "muted", "registers", "replaying", "swapped", "zeros"]
