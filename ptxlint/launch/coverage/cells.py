"""Questions about the cells that threads were seen to write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxlint.launch.coverage.runs import Cells


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


__all__ = ["clashes"]
