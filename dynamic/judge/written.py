"""The cells of one storage that a run wrote by plain stores, and who wrote them."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import ORIGIN, Allocation
from ptxlint.dynamic.emulator.record import Record, Touched
from ptxlint.ir.instruction import Instr

Numbers = NDArray[np.int64]
_NOBODY = -1


class Doubly(NamedTuple):
    """A cell that two programs wrote: its first byte in the storage, and the programs' numbers in
    the grid."""

    offset: int
    first: int
    second: int


class Written:
    """The plain stores of a run to one storage, in cells of as many bytes as all of them allow."""

    def __init__(self, record: Record, storage: Allocation) -> None:
        self._start, size = storage.start - ORIGIN, storage.end - storage.start
        self._stores = [_inside(one, self._start, size) for one in record.touched if _is_store(one)]
        self._stores = [one for one in self._stores if len(one.place)]
        self.unit = gcd(*(_unit(one) for one in self._stores), 16)
        self._by = np.full(-(-size // self.unit), _NOBODY, dtype=np.int64)
        self.doubly: Doubly | None = None
        """The first cell that was met which two programs wrote."""
        for one in self._stores:
            self._note(self._cells(one), np.repeat(one.cta, one.size // self.unit))

    def _note(self, cells: Numbers, ctas: Numbers) -> None:
        before = self._by[cells]
        clash = (before != _NOBODY) & (before != ctas)
        self._by[cells] = ctas
        after = self._by[cells]
        among = after != ctas
        if self.doubly is None and (clash | among).any():
            at = int(np.flatnonzero(clash | among)[0])
            other = before[at] if clash[at] else after[at]
            self.doubly = Doubly(int(cells[at]) * self.unit, int(other), int(ctas[at]))

    def _cells(self, one: Touched) -> Numbers:
        pieces = np.arange(one.size // self.unit)
        found: Numbers = (one.place[:, None] // self.unit + pieces).ravel()
        return found

    def is_written(self, offsets: Numbers) -> NDArray[np.bool_]:
        """By byte of the storage, whether some program wrote it; those beyond it never are."""
        cells = offsets // self.unit
        inside = (offsets >= 0) & (cells < len(self._by))
        found: NDArray[np.bool_] = inside & (self._by[np.where(inside, cells, 0)] != _NOBODY)
        return found

    def does(self, instr: Instr, cta: int, thread: int, offset: int) -> bool:
        """True if a thread wrote a byte by an instruction."""
        return any(
            bool(
                (
                    (one.cta == cta)
                    & (one.thread == thread)
                    & (one.place <= offset)
                    & (offset < one.place + one.size)
                ).any()
            )
            for one in self._stores
            if one.instr is instr
        )

    def differing(self) -> Doubly | None:
        """A cell that two programs wrote otherwise: by other stores, or other values."""
        if not self._stores:
            return None
        numbers = {one.instr: at for at, one in enumerate(self._stores)}
        columns = [
            np.stack(
                (
                    self._cells(one),
                    np.repeat(one.cta, one.size // self.unit),
                    np.full(one.size // self.unit * len(one.place), numbers[one.instr]),
                    self._values(one),
                )
            )
            for one in self._stores
        ]
        table = np.concatenate(columns, axis=1)
        table = table[:, np.lexsort(table[::-1])]
        cell, cta = table[0], table[1]
        begins = np.flatnonzero(np.r_[True, (cell[1:] != cell[:-1]) | (cta[1:] != cta[:-1])])
        ends = np.r_[begins[1:], len(cell)]
        for (a, b), (c, d) in zip(
            zip(begins[:-1], ends[:-1], strict=True), zip(begins[1:], ends[1:], strict=True),
            strict=True,
        ):  # fmt: skip
            if cell[a] == cell[c] and not np.array_equal(table[2:, a:b], table[2:, c:d]):
                return Doubly(int(cell[a]) * self.unit, int(cta[a]), int(cta[c]))
        return None

    def _values(self, one: Touched) -> Numbers:
        """What is written to each cell, as a number; cells of 16 bytes are folded."""
        assert one.values is not None
        raw = np.ascontiguousarray(one.values).view(np.uint8).reshape(-1, self.unit)
        wide = np.zeros((len(raw), 16), dtype=np.uint8)
        wide[:, : self.unit] = raw
        halves = wide.view(np.int64)
        found: Numbers = halves[:, 0] ^ halves[:, 1] * np.int64(-7046029254386353131)
        return found


def _is_store(one: Touched) -> bool:
    return one.writes and not one.reads


def _inside(one: Touched, start: int, size: int) -> Touched:
    """The lanes of an access that are in a storage, with places counted from its first byte."""
    place = one.place - start
    inside = (place >= 0) & (place < size)
    values = None if one.values is None else one.values[inside]
    return one._replace(
        cta=one.cta[inside], thread=one.thread[inside], place=place[inside], values=values
    )


def _unit(one: Touched) -> int:
    both: int = int(np.bitwise_or.reduce(one.place)) | one.size
    return both & -both


__all__ = ["Doubly", "Written"]
