"""Threads that are run to see where in a tensor's storage a kernel goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.launch.binding import Region
from ptxlint.launch.machine import Machine, Meeting, Run
from ptxlint.launch.slices import slice_of, target_of
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.views import View
from ptxlint.launch.walk import Thread
from ptxlint.launch.witness import Witness, Witnesses
from ptxlint.launch.words import Flags
from ptxlint.launches import Extent

_BUDGET: Final = 1_500
"""Steps of up to 4,096 lanes that one tensor is given."""


class Walked(NamedTuple):
    """What the threads that were run do: the first access to what is no element, and how far from
    the first element they go, in bytes."""

    judged: Judged | None = None
    witness: Witness | None = None
    end: int = 0


def walked(under: UnderLaunch, accesses: Sequence[Judged], region: Region, view: View) -> Walked:
    """Run the CTAs at and beside the ends of the grid, and those that go furthest."""
    machine = Machine.of(under, promised=False)
    by_index = {judged.access.instr.index: judged for judged in accesses}
    targets = [t for j in accesses if (t := target_of(under.ssa, j.access.instr)) is not None]
    control = under.facts.get(ControlDependenceAnalysis)
    piece = slice_of(
        under.ssa, control, targets, machine.is_followed, companions=machine.companions
    )
    witnesses = Witnesses(under)
    furthest = [c for j in accesses for c in witnesses.ctas(j._replace(above=False))]
    found, budget = Walked(), _BUDGET
    for cta in dict.fromkeys([*_near_ends(under.bound.grid), *furthest]):
        run = machine.run(piece, [cta], budget)
        before = found
        for meeting in run.meetings():
            judged = by_index[meeting.target.instr.index]
            found = _seen(found, judged, meeting, run, region, view)
        if run.memory.is_void:
            # What was read may be another number.
            found = before
        budget = run.budget
        if budget <= 0:
            break
    return found


def _seen(
    found: Walked, judged: Judged, meeting: Meeting, run: Run, region: Region, view: View
) -> Walked:
    width, lanes = judged.access.width, meeting.lanes
    address = np.broadcast_to(meeting.address, lanes.shape)
    offset = (address - np.uint64(region.address)).view(np.int64)
    if meeting.size is not None:
        # A copy may read less than it can.
        lanes = lanes & (meeting.size == np.uint64(width))
    if not lanes.any():
        return found
    end = max(found.end, int(offset[lanes].max()) + width)
    if found.witness is not None:
        return found._replace(end=end)
    outside = lanes & off_elements(view, offset, width)
    if not outside.any():
        return found._replace(end=end)
    cta, lane = np.unravel_index(int(outside.argmax()), outside.shape)
    x, y, z = run.lanes.ctas[int(cta)]
    thread = Thread((x, y, z), run.lanes.thread(int(lane)))
    return Walked(judged, Witness("gap", thread, int(offset[cta, lane])), end)


def off_elements(view: View, offset: NDArray[np.int64], width: int) -> Flags:
    """Where an access, counted from the first element, touches bytes of no element."""
    outside = _off_runs(view, offset, width)
    if outside.any():
        # Runs may follow one another without a gap.
        outside &= np.logical_or.reduce([_off_runs(view, offset + at, 1) for at in range(width)])
    return outside


def _off_runs(view: View, offset: NDArray[np.int64], width: int) -> Flags:
    """Where an access is not within one run."""
    rest = offset.copy()
    for stride, extent in view.levels:
        rest -= np.clip(rest // stride, 0, extent - 1) * stride
    outside: Flags = (rest < 0) | (rest + width > view.run)
    return outside


def _near_ends(grid: Extent) -> list[Extent]:
    """The CTAs at the ends of each axis and beside the first ones."""
    xs, ys, zs = (sorted({0, min(1, extent - 1), extent - 1}) for extent in grid)
    return [(x, y, z) for z in zs for y in ys for x in xs]


__all__ = ["Walked", "off_elements", "walked"]
