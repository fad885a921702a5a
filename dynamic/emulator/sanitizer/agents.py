"""Who works beside the warps, and how warps get to know that it is done.

| agent | its clock counts | who waits |
|---|---|---|
| the copies of a thread (`cp.async`) | groups, and arrivals at mbarriers in each | the thread |
| its bulk copies out of shared memory | groups | the thread |
| the matrices of a warpgroup (`wgmma`) | groups | each of its warps |
| an mbarrier | phases that are complete | whoever waits for a phase |

PTX ISA, "cp.async.wait_group", "cp.async.bulk.wait_group", "wgmma.wait_group", "mbarrier".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags
from ptxlint.dynamic.emulator.sanitizer.clocks import Clocks

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch

_WARP: Final = 32
_WARPGROUP: Final = 128
_PARTS: Final = 1024
"""A group of `cp.async` has so many parts: each arrival at an mbarrier ends one."""
Numbers = NDArray[np.int64]


class Groups:
    """Groups of what threads, or warpgroups, have started: how many are committed, by CTA."""

    def __init__(self, clocks: Clocks, ctas: int, count: int, parts: int = 1) -> None:
        self._clocks = clocks
        self.first = clocks.agents(count)
        """The number of the first one's agent."""
        self._parts = parts
        self._committed = np.zeros((ctas, count), dtype=np.int64)
        self._part = np.zeros((ctas, count), dtype=np.int64)
        self._started = np.zeros((ctas, count), dtype=np.int64)
        """When all that was started is done."""

    def time(self, cta: Numbers, one: Numbers) -> Numbers:
        """The time at which what is started now is done."""
        out: Numbers = (self._committed[cta, one] + 1) * self._parts + self._part[cta, one]
        return out

    def start(self, cta: Numbers, one: Numbers) -> Numbers:
        """Something is started; the time at which it is done."""
        found = self._started[cta, one] = self.time(cta, one)
        return found

    def is_done(self, cta: Numbers, warp: Numbers, one: Numbers) -> Flags:
        """True where warps have waited for all that was started."""
        out: Flags = self._clocks.known[cta, warp, self.first + one] >= self._started[cta, one]
        return out

    def commit(self, cta: Numbers, one: Numbers) -> None:
        """A group ends."""
        self._committed[cta, one] += 1
        self._part[cta, one] = 0

    def part(self, cta: Numbers, one: Numbers) -> None:
        """A part of a group ends."""
        self._part[cta, one] = np.minimum(self._part[cta, one] + 1, self._parts - 1)

    def wait(self, cta: Numbers, warp: Numbers, one: Numbers, pending: Numbers | int) -> None:
        """Warps wait until all but so many groups are done."""
        done = (self._committed[cta, one] - pending) * self._parts + self._parts - 1
        self._clocks.learn(cta, warp, self.first + one, np.maximum(done, 0))


class Agents:
    """The agents of one batch."""

    def __init__(self, batch: Batch, clocks: Clocks) -> None:
        ctas, threads = batch.shape
        self.clocks = clocks
        self.copies = Groups(clocks, ctas, threads, _PARTS)
        self.bulk = Groups(clocks, ctas, threads)
        self.matrices = Groups(clocks, ctas, -(-threads // _WARPGROUP))
        self._mbarriers: dict[int, int] = {}
        self._phases: dict[tuple[int, int], int] = {}

    def wait_for_copies(self, lanes: Lanes, pending: int | None) -> None:
        """`cp.async.wait_group`; with None `cp.async.wait_all`, which ends a group first."""
        if pending is None:
            self.copies.commit(lanes.cta, lanes.thread)
        self.copies.wait(lanes.cta, lanes.thread // _WARP, lanes.thread, pending or 0)

    def wait_for_matrices(self, lanes: Lanes, pending: int) -> None:
        """`wgmma.wait_group`."""
        group = lanes.thread // _WARPGROUP
        self.matrices.wait(lanes.cta, lanes.thread // _WARP, group, pending)

    def commit_matrices(self, lanes: Lanes) -> None:
        """`wgmma.commit_group`: once for a warpgroup."""
        keys = np.unique(lanes.cta << 16 | lanes.thread // _WARPGROUP)
        self.matrices.commit(keys >> 16, keys & 0xFFFF)

    def arrive_with_copies(self, lanes: Lanes, object_: Numbers) -> None:
        """`cp.async.mbarrier.arrive`: who waits there has seen what a thread copied before."""
        time = self.copies.time(lanes.cta, lanes.thread)
        every = zip(lanes.cta.tolist(), lanes.thread.tolist(), object_.tolist(), time.tolist(),
                    strict=True)  # fmt: skip
        for cta, thread, place, at in every:
            self.clocks.leave_for(cta, place, self.copies.first + thread, at)
        self.copies.part(lanes.cta, lanes.thread)

    # mbarriers --------------------------------------------------------------------------------
    def mbarrier(self, object_: int) -> int:
        """The agent of an mbarrier, named by its place in the shared memory of a CTA."""
        found = self._mbarriers.get(object_)
        if found is None:
            found = self._mbarriers[object_] = self.clocks.agents(1)
        return found

    def phase(self, cta: int, object_: int) -> int:
        """How many phases of an mbarrier are complete."""
        return self._phases.get((cta, object_), 0)

    def complete(self, cta: int, object_: int) -> None:
        """A phase of an mbarrier is complete."""
        number = self._phases[cta, object_] = self.phase(cta, object_) + 1
        self.clocks.leave_for(cta, object_, self.mbarrier(object_), number)


__all__ = ["Agents", "Groups", "Numbers"]
