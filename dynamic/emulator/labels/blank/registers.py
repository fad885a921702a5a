"""The labels of registers, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags
from ptxlint.dynamic.emulator.labels.blank.origins import NONE, Origins, of_register
from ptxlint.dynamic.emulator.labels.movement import everywhere
from ptxlint.ir.types import bits


class RegisterLabels:
    """By the register's number in the program; what is not here has none. All begin blank."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._of: dict[int, Array] = {}
        self._from: dict[int, Origins] = {}
        for frame in {id(s.frame): s.frame for s in batch.program.segments}.values():
            for register in frame.function.registers:
                if bits(register.type) in RAW:
                    self._of[frame.number(register)] = everywhere(register)
                    self._from[frame.number(register)] = of_register(register)

    def get(self, number: int) -> Array | None:
        """The label of a register, as a word a lane."""
        return self._of.get(number)

    def is_any(self, numbers: Iterable[int]) -> bool:
        """True if one of some registers has a label."""
        return any(number in self._of for number in numbers)

    def origins(self, numbers: Iterable[int]) -> Origins:
        """Where the labels of some registers come from."""
        out = NONE
        for number in numbers:
            out = out | self._from.get(number, NONE)
        return out

    def met(self, number: int, mask: Mask) -> Flags | None:
        """The lanes of a mask in which a register has a label; None if there are none."""
        label = self._of.get(number)
        if label is None:
            return None
        flags: Flags = self._batch.lanes(mask) & (label != 0)
        return flags if flags.any() else None

    def give(self, number: int, label: Array | None, mask: Mask, origins: Origins = NONE) -> None:
        """A register's label in the lanes of a mask; None for no label."""
        old = self._of.get(number)
        if label is not None and not label.any():
            label = None
        if mask is None or old is None:
            if label is None:
                if mask is None:
                    self._drop(number)
                return
            if mask is not None:
                label = np.where(mask, label, label.dtype.type(0))
                if not label.any():
                    return
            self._of[number], self._from[number] = label, origins
            return
        new = np.where(mask, old.dtype.type(0) if label is None else label, old)
        if not new.any():
            self._drop(number)
            return
        self._of[number] = new
        if label is not None:
            self._from[number] = self._from.get(number, NONE) | origins

    def _drop(self, number: int) -> None:
        self._of.pop(number, None)
        self._from.pop(number, None)

    def as_registers(self) -> list[Array | None]:
        """Labels in the place of all registers."""
        return [self._of.get(number) for number in range(self._batch.program.registers)]


__all__ = ["RegisterLabels"]
