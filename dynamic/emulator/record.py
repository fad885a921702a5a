"""What a run did, lane by lane, kept for those who hold it against what they expect.

Accesses to global memory that took place, and who came to each instruction at which lanes wait for
each other. Nothing is kept unless a run is given a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array, Flags

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch, Mask
    from ptxlint.ir.instruction import Instr
    from ptxlint.launches import Extent

Numbers = NDArray[np.int64]
MOST_LANES: Final = 1 << 23
"""Accesses of lanes that one record holds."""


class Touched(NamedTuple):
    """One access by some lanes of a batch: `size` bytes from `place` on, which counts from the
    arena's first byte. `cta` are numbers in the grid, x fastest; `values` is what a lane writes,
    where that is known. An atomic both reads and writes."""

    instr: Instr
    cta: Numbers
    thread: Numbers
    place: Numbers
    size: int
    reads: bool
    writes: bool
    values: Array | None


class Record:
    """What is noted of one run. With `loads`, reads are noted, too.

    `is_full` says that accesses were left out, as there are too many.
    """

    def __init__(self, *, loads: bool = False) -> None:
        self.touched: list[Touched] = []
        self.came: dict[Instr, dict[Extent, NDArray[np.int64]]] = {}
        """By instruction and CTA, how often each thread came to it."""
        self.is_full = False
        self._loads = loads
        self._left = MOST_LANES

    def access(
        self,
        batch: Batch,
        instr: Instr,
        lanes: Lanes,
        place: Numbers,
        size: int,
        allowed: Flags | None,
        writes: bool,
        reads: bool,
        values: Array | None,
    ) -> None:
        """Note an access to global memory."""
        if not (writes or self._loads) or self.is_full:
            return
        cta, thread = lanes.cta, lanes.thread
        if allowed is not None:
            cta, thread, place = cta[allowed], thread[allowed], place[allowed]
            values = None if values is None else values[allowed]
        self._left -= len(place)
        if self._left < 0:
            self.is_full = True
            return
        width, height, _ = batch.device.grid
        places = np.array(batch.ctas, dtype=np.int64).reshape(-1, 3)
        numbers = places @ np.array([1, width, width * height], dtype=np.int64)
        self.touched.append(
            Touched(instr, numbers[cta], thread, place, size, reads, writes, values)
        )

    def arrive(self, batch: Batch, instr: Instr, mask: Mask) -> None:
        """Note that lanes do an instruction at which lanes wait for each other."""
        known = self.came.setdefault(instr, {})
        there = batch.lanes(mask)
        for cta in np.flatnonzero(there.any(axis=1)).tolist():
            counts = known.setdefault(batch.ctas[cta], np.zeros(batch.threads, dtype=np.int64))
            counts += there[cta]


__all__ = ["MOST_LANES", "Record", "Touched"]
