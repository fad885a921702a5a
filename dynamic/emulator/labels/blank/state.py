"""What is known of one batch's labels, and an instruction while it is followed."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, seen_as
from ptxlint.dynamic.emulator.labels.blank.memory import MemoryLabels
from ptxlint.dynamic.emulator.labels.blank.origins import NONE, Origins, tell
from ptxlint.dynamic.emulator.labels.blank.registers import RegisterLabels
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame


class Met(NamedTuple):
    """An instruction that lanes come to: `mask` are all of them, `inner` those whose guard
    holds."""

    frame: Frame
    instr: Instr
    step: Step
    mask: Mask
    inner: Mask

    def number(self, register: Register) -> int:
        """The number of a register in the program."""
        number: int = self.frame.number(register)
        return number


class Given(NamedTuple):
    """The label that a register gets (None: none), and where it comes from."""

    register: int
    label: Array | None
    origins: Origins = NONE


Following: TypeAlias = Generator[None, None, "list[Given]"]
"""Looks at an instruction, yields while it is run, and says what labels its results get."""


class State:
    """The labels of registers and memory of one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.registers = RegisterLabels(batch)
        self.memory = MemoryLabels(batch)
        self.stored: Origins = NONE
        """Where labels come from that were stored to shared and local memory."""

    def label(self, met: Met, operand: Operand, kind: str) -> Array:
        """The label of an operand as a word of a type."""
        if isinstance(operand, Negated):
            operand = operand.operand
        found = None
        if isinstance(operand, Register):
            found = self.registers.get(met.number(operand))
        if found is None:
            return np.zeros((1, 1), dtype=RAW[bits(kind)])
        return seen_as(found, "pred" if bits(kind) == 1 else f"b{bits(kind)}")

    def tell(self, met: Met, register: Register, flags: Flags, does: str, more: str = "") -> None:
        """Report what is done with a blank register in some lanes."""
        number, width = met.number(register), bits(register.type)
        word = self.batch.full(self.batch.value(number, width))[flags][0]
        value = ("false", "true")[int(word)] if width == 1 else f"{int(word):#x}"
        tell(
            self.batch, met.instr, f"{does} {register.name} = {value}{more}", flags,
            self.registers.origins((number,)), value=int(word),
        )  # fmt: skip


__all__ = ["Following", "Given", "Met", "State"]
