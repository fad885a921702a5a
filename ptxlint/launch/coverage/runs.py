"""The bytes that some programs write, found by running their threads.

Threads run side by side through the slice of the stores, as in `ptxlint.launch.exact`, with the
machine's words. Up to `MOST_CELLS` cells are noted in one launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.launch.coverage.writes import Write
from ptxlint.launch.machine import Machine, Meeting
from ptxlint.launch.slices import Slice, Target, slice_of, target_of
from ptxlint.launch.under import UnderLaunch
from ptxlint.launch.walk import Thread
from ptxlint.launches import Extent

MOST_CELLS: Final = 1 << 22
"""Cells that are noted, those written again included."""
MOST_THREADS: Final = 1 << 17
"""Threads up to which all programs of a launch are run."""
STEPS: Final = 3_000
"""Steps of up to 4,096 lanes that the runs of one launch are given."""


class Cells(NamedTuple):
    """Cells of `unit` bytes of a storage, one entry for each that a thread writes: its number, the
    program by its place in `programs`, the thread by its number in the program, and the store by
    its place among those that were asked for. `is_whole` says that nothing else is written by the
    programs."""

    unit: int
    programs: list[Extent]
    cell: NDArray[np.int64]
    program: NDArray[np.int64]
    thread: NDArray[np.int64]
    store: NDArray[np.int64]
    is_whole: bool


class Runs:
    """Runs of the programs of one launch."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._machine = Machine.of(under, promised=False)
        self._control = under.facts.get(ControlDependenceAnalysis)
        self._left = STEPS

    @property
    def is_spent(self) -> bool:
        """True if there is nothing left to run with."""
        return self._left <= 0

    def thread(self, program: Extent, number: int) -> Thread:
        """A thread by its number in its program."""
        width, height, _ = self._under.bound.block
        place = number % width, number // width % height, number // (width * height)
        return Thread(program, place)

    def all_programs(self) -> list[Extent] | None:
        """All programs of the launch; None if they have too many threads."""
        (nx, ny, nz), block = self._under.bound.grid, self._under.bound.block
        threads = block[0] * block[1] * block[2]
        if not threads or nx * ny * nz * threads > MOST_THREADS:
            return None
        return [(x, y, z) for z in range(nz) for y in range(ny) for x in range(nx)]

    def cells(self, stores: Sequence[Write], programs: Sequence[Extent]) -> Cells | None:
        """What some programs write by some stores to one storage; None if they write too much."""
        found: list[_Part] = []
        is_whole, left = True, MOST_CELLS
        for group in self._groups(stores):
            piece = self._slice([target for _, target in group])
            by_instr = {target.instr.index: number for number, target in group}
            at_once = self._machine.at_once(piece)
            for start in range(0, len(programs), at_once):
                run = self._machine.run(piece, programs[start : start + at_once], self._left)
                for meeting in run.meetings():
                    number = by_instr[meeting.target.instr.index]
                    left -= int(meeting.lanes.sum())
                    if left < 0:
                        return None
                    found.append(_part(meeting, stores[number], number, start))
                if run.memory.is_void:
                    return None
                self._left = run.budget
                is_whole = is_whole and all(run.is_complete(target) for _, target in group)
        return _joined(found, list(programs), is_whole)

    def _groups(self, stores: Iterable[Write]) -> list[list[tuple[int, Target]]]:
        """Stores that the same branches decide about, so that none suffers from another's."""
        by_block: dict[int, list[tuple[int, Target]]] = {}
        for number, store in enumerate(stores):
            target = target_of(self._under.ssa, store.instr)
            if target is not None:
                block = self._under.ssa.cfg.block_of[store.instr.index]
                by_block.setdefault(block, []).append((number, target))
        by_branches: dict[frozenset[int], list[tuple[int, Target]]] = {}
        for members in by_block.values():
            branches = self._slice([target for _, target in members]).branches
            by_branches.setdefault(branches, []).extend(members)
        return list(by_branches.values())

    def _slice(self, targets: Sequence[Target]) -> Slice:
        machine = self._machine
        return slice_of(
            self._under.ssa,
            self._control,
            targets,
            machine.is_followed,
            companions=machine.companions,
        )


class _Part(NamedTuple):
    """What lanes write at one meeting: the first byte of each, and how many."""

    first: NDArray[np.int64]
    width: int
    program: NDArray[np.int64]
    thread: NDArray[np.int64]
    store: int


def _part(meeting: Meeting, store: Write, number: int, start: int) -> _Part:
    region = store.region
    address = np.broadcast_to(meeting.address, meeting.lanes.shape)
    program, thread = np.nonzero(meeting.lanes)
    first = (address[program, thread] - np.uint64(region.address + region.low)).view(np.int64)
    return _Part(first, store.width, program + start, thread, number)


def _joined(found: Sequence[_Part], programs: list[Extent], is_whole: bool) -> Cells | None:
    """All parts, cut into cells of the same size."""
    unit = 16
    for part in found:
        both = int(np.bitwise_or.reduce(part.first)) | part.width
        unit = min(unit, both & -both)
    count = sum(len(part.first) * (part.width // unit) for part in found)
    if count > MOST_CELLS:
        return None
    columns: list[list[NDArray[np.int64]]] = [[], [], [], []]
    for first, width, program, thread, store in found:
        pieces = width // unit
        cell = (first // unit)[:, None] + np.arange(pieces)
        columns[0].append(cell.ravel())
        columns[1].append(np.repeat(program, pieces))
        columns[2].append(np.repeat(thread, pieces))
        columns[3].append(np.full(cell.size, store, dtype=np.int64))
    empty = [np.zeros(0, dtype=np.int64)]
    cell, program, thread, number = (np.concatenate(some or empty) for some in columns)
    return Cells(unit, programs, cell, program, thread, number, is_whole)


__all__ = ["MOST_CELLS", "MOST_THREADS", "Cells", "Runs"]
