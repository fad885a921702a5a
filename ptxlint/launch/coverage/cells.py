"""Questions about the cells that threads were seen to write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxlint.launch.binding import Region
from ptxlint.launch.coverage.runs import Cells
from ptxlint.launch.coverage.views import steps_of


def clashes(cells: Cells) -> Iterator[tuple[int, int, int]]:
    """Entries of two programs for one cell, and the cell's first byte: the first such cell of each
    pair of programs, in the order of cells."""
    order = np.lexsort((cells.program, cells.cell))
    cell, program = cells.cell[order], cells.program[order]
    at = np.nonzero((cell[1:] == cell[:-1]) & (program[1:] != program[:-1]))[0]
    pairs = program[at] * len(cells.programs) + program[at + 1]
    _, firsts = np.unique(pairs, return_index=True)
    for number in np.sort(firsts):
        place = int(at[number])
        yield int(order[place]), int(order[place + 1]), int(cell[place]) * cells.unit


def first_missing(cells: Cells, region: Region) -> int | None:
    """The first byte of a tensor's elements that is not written, counted from the first element;
    None if all are."""
    steps = steps_of(region.tensor)
    assert steps is not None
    start = -region.low
    offsets = np.zeros(1, dtype=np.int64)
    for step in steps:
        offsets = (offsets[:, None] + np.arange(step.extent) * step.bytes_apart).ravel()
    wanted = np.unique((offsets + start) // cells.unit)
    missing = np.setdiff1d(wanted, cells.cell, assume_unique=False)
    return int(missing[0]) * cells.unit - start if len(missing) else None


__all__ = ["clashes", "first_missing"]
