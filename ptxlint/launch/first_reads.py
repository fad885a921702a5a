"""Threads that read from memory before anything was stored there.

Threads of one CTA are run side by side (`ptxlint.launch.machine`). What a thread does comes in its
own order; where other threads store to the same bytes, at any time, nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.launch.binding import Region
from ptxlint.launch.fills import fills_before
from ptxlint.launch.machine import Machine, Meeting, Run
from ptxlint.launch.slices import Target, slice_of, target_of
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.walk import Thread
from ptxlint.launch.witness import Witness
from ptxlint.launches import Extent

_BUDGET: Final = 1_500
"""Steps of up to 4,096 lanes that one read is given."""
_MOST_CELLS: Final = 1 << 18
"""Bytes or larger units of stores that are remembered for one read."""


class FirstReads:
    """Runs threads of one launch."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._machine = Machine.of(under, promised=False)

    def witness(
        self, read: Judged, earlier: list[Judged], then: Judged | None = None
    ) -> Witness | None:
        """A thread of a CTA at an end of the grid whose read none of the stores came before; with
        `then`, one that comes to that store at the same place, too. None if none is found."""
        under = self._under
        target = target_of(under.ssa, read.access.instr)
        writers = [t for s in earlier if (t := target_of(under.ssa, s.access.instr)) is not None]
        if target is None or len(writers) < len(earlier):
            return None
        last = None if then is None else target_of(under.ssa, then.access.instr)
        targets = dict.fromkeys([target, *writers, *([] if last is None else [last])])
        control = under.facts.get(ControlDependenceAnalysis)
        machine = self._machine
        piece = slice_of(
            under.ssa, control, targets, machine.is_followed, companions=machine.companions
        )
        budget = _BUDGET
        for cta in _corners(under.bound.grid):
            run = self._machine.run(piece, [cta], budget)
            found = _Seen(read, earlier, then, run).witness(writers)
            budget = run.budget
            if found is not None or budget <= 0:
                return found
        return None

    def are_filled(self, read: Judged, earlier: list[Judged]) -> bool:
        """True if stores of each CTA come before all that it reads, whichever thread's."""
        return fills_before(self._under, self._machine, read, earlier)


class _Seen:
    """One run of some CTA, watched for a thread whose read nothing came before."""

    def __init__(self, read: Judged, stores: list[Judged], then: Judged | None, run: Run) -> None:
        assert read.region is not None
        self._read = read
        self._region: Region = read.region
        self._stores = {s.access.instr.index: s for s in stores}
        self._then = then
        self._run = run
        self._own: set[tuple[int, int]] = set()
        """(thread, cell) of what was stored so far."""
        self._by: dict[int, set[int]] = {}
        """By cell, the threads that store to it at any time."""
        self._followed: set[tuple[int, int]] = set()
        """(thread, offset) of what the store `then` writes."""
        self._candidates: list[tuple[int, int, range]] = []
        widths = [read.access.width, *(s.access.width for s in stores)]
        self._unit = int(np.gcd.reduce(widths))

    def witness(self, writers: list[Target]) -> Witness | None:
        """The first thread that reads what nothing came before; None if none is seen."""
        reading = self._read.access.instr.index
        for meeting in self._run.meetings():
            index = meeting.target.instr.index
            if index in self._stores:
                self._store(meeting)
            if self._then is not None and index == self._then.access.instr.index:
                self._followed.update((thread, at) for thread, at, _ in self._touched(meeting, 1))
            if index == reading:
                self._load(meeting)
                if self._candidates and not self._stores and self._then is None:
                    break
            if len(self._own) > _MOST_CELLS:
                return None
        if self._run.memory.is_void or not all(map(self._run.is_complete, writers)):
            return None
        for thread, offset, cells in self._candidates:
            is_first = all(self._by.get(cell, set()) <= {thread} for cell in cells)
            if is_first and (self._then is None or (thread, offset) in self._followed):
                x, y, z = self._run.lanes.ctas[0]
                place = Thread((x, y, z), self._run.lanes.thread(thread))
                return Witness("exposed", place, offset)
        return None

    def _store(self, meeting: Meeting) -> None:
        width = self._stores[meeting.target.instr.index].access.width
        for thread, _, cells in self._touched(meeting, width):
            for cell in cells:
                self._own.add((thread, cell))
                self._by.setdefault(cell, set()).add(thread)

    def _load(self, meeting: Meeting) -> None:
        """Note the threads that have stored nothing there."""
        for thread, offset, cells in self._touched(meeting, self._read.access.width):
            if all((thread, cell) not in self._own for cell in cells):
                self._candidates.append((thread, offset, cells))

    def _touched(self, meeting: Meeting, width: int) -> Iterator[tuple[int, int, range]]:
        """(thread, bytes from the read's pointer, cells) of each lane at an access."""
        lanes = meeting.lanes
        address = np.broadcast_to(meeting.address, lanes.shape)
        offsets = (address - np.uint64(self._region.address)).view(np.int64)
        for thread in np.flatnonzero(lanes[0]):
            offset = int(offsets[0, thread])
            first, last = offset // self._unit, (offset + width - 1) // self._unit
            yield int(thread), offset, range(first, last + 1)


def _corners(grid: Extent) -> list[Extent]:
    """The CTAs at the ends of each axis, the first one first."""
    xs, ys, zs = (sorted({0, extent - 1}) for extent in grid)
    return [(x, y, z) for z in zs for y in ys for x in xs]


__all__ = ["FirstReads"]
