"""What a launch leaves behind in memory, worked out by running all of its threads.

Only what certainly follows is told: integers that come of integers that are known, whatever the
order in which a GPU runs the threads (`ptxlint.launch.memory`). Where that is not known, whose
order decides, or of more work than a budget, nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final, NamedTuple

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow.access import AccessAnalysis, Accesses
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.launch.binding import Bound
from ptxlint.launch.machine import Machine
from ptxlint.launch.memory import Piece, SharedPiece
from ptxlint.launch.memory_steps import MemorySteps
from ptxlint.launch.slices import slice_of
from ptxlint.launch.writers import storages_of, writers_of

BUDGET: Final = 40_000
"""Steps of up to 4,096 lanes that one launch is given."""
_MOST_LANES: Final = 1 << 17


class Done(NamedTuple):
    """Whether a launch was worked out, and the steps that it took."""

    is_whole: bool
    steps: int


def run_launch(
    facts: Facts,
    bound: Bound,
    read: Mapping[int, Piece],
    written: Mapping[int, SharedPiece],
    budget: int = BUDGET,
) -> Done:
    """Let a launch write into some storages. If that cannot be worked out, what they hold then
    means nothing. That is so, too, if it writes to one of those that are to be read alone.

    `read` and `written` are the memory of storages, by their numbers in the launch; storages that
    are in neither are not followed.
    """
    x, y, z = bound.grid
    threads = bound.block[0] * bound.block[1] * bound.block[2]
    count = x * y * z
    writers = writers_of(facts)
    if writers is None or storages_of(writers.bases, bound) is None:
        return Done(False, 0)
    mapped = storages_of(writers.mapped, bound)
    # What a tensor map copies is not followed.
    if mapped is None or not mapped.isdisjoint((*read, *written)):
        return Done(False, 0)
    if not threads or count * threads > _MOST_LANES:
        return Done(False, 0)
    ssa = facts.get(SsaAnalysis)
    accesses: Accesses = facts.get(AccessAnalysis)
    memory = MemorySteps(ssa, facts.module, accesses, bound, {**read, **written})
    machine = Machine(ssa, facts.get(PostDominatorsAnalysis), bound, memory)
    stores = [instr.index for instr in writers.loose]
    stores += [
        access.instr.index
        for access in writers.located
        if bound.regions[access.base].storage in (*written, *read)
    ]
    piece = slice_of(
        ssa,
        facts.get(ControlDependenceAnalysis),
        (),
        machine.is_followed,
        companions=machine.companions,
        effects=[*stores, *memory.barriers],
    )
    at_once = machine.at_once(piece)
    ctas = [(i, j, k) for k, j, i in product(range(z), range(y), range(x))]
    left = budget
    for start in range(0, count, at_once):
        run = machine.run(piece, ctas[start : start + at_once], left)
        for _ in run.meetings():
            pass
        left = run.budget
        if not run.is_whole:
            return Done(False, budget - left)
    return Done(True, budget - left)


__all__ = ["BUDGET", "Done", "run_launch"]
