"""Data of asynchronous operations that is touched too early.

In the emulator copies and products are done when they are issued, so a wait that is missing changes
no number. Here each byte of shared memory knows who wrote it last and who beside the warps still
reads it (`agents`), and each access is held against what its warp has waited for.

- What a copy brings may be read, or overwritten, by who has seen that it arrived.
- What a copy or product reads may be overwritten by who has seen that it is done.
- What was written in the generic proxy is seen by the async proxy (bulk copies, operands of
  `wgmma`) behind a `fence.proxy.async` between the two (PTX ISA, "Memory Consistency Model",
  proxies). Completion of what the async proxy does needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags
from ptxlint.dynamic.emulator.sanitizer.agents import Agents, Groups, Numbers
from ptxlint.dynamic.emulator.sanitizer.clocks import Clock

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.ir.instruction import Instr

_WARP: Final = 32
_NOBODY: Final = 0
_WARPS: Final = 1
"""Written by a warp."""
_GENERIC: Final = 2
"""Copied in the generic proxy."""
_ASYNC: Final = 3
"""Copied in the async proxy."""


Inside: TypeAlias = AbstractContextManager[None]
"""Where accesses to shared memory are not those of the lanes themselves."""


class Agent(NamedTuple):
    """Who does what is accessed now, by CTA and thread of who started it, and when it is done."""

    kind: int
    number: Numbers
    time: Numbers
    warps: int = 1
    """So many neighbouring warps started it together."""


class _Marks:
    """By byte: whose doing the last access of one sort was, when that is done, and the number of
    the instruction, from 1 on."""

    def __init__(self, size: int) -> None:
        self.agent = np.zeros(size, dtype=np.int32)
        self.time = np.zeros(size, dtype=np.int32)
        self.by = np.zeros(size, dtype=np.int32)

    def put(self, at: Numbers, agent: Numbers, time: Numbers, by: int) -> None:
        """Note an access."""
        self.agent[at] = agent[:, None]
        self.time[at] = time[:, None]
        self.by[at] = by


class Arrivals:
    """What is on its way in the shared memory of one batch."""

    def __init__(self, batch: Batch, agents: Agents) -> None:
        size = len(batch.shared)
        self._batch = batch
        self.agents = agents
        self._written = _Marks(size)
        self._kind: NDArray[np.uint8] = np.zeros(size, dtype=np.uint8)
        self._read = _Marks(size), _Marks(size)
        """Two readers, so that one does not hide another; more are not kept."""
        self._stores: NDArray[np.int32] = np.zeros(batch.shape, dtype=np.int32)
        """By thread, which instruction started its last bulk copy out of shared memory."""
        self._instrs: list[Instr] = []
        self._numbers: dict[Instr, int] = {}
        self.agent: Agent | None = None
        """Who accesses, if it is not the lanes themselves."""

    def access(
        self,
        instr: Instr,
        lanes: Lanes,
        place: Numbers,
        size: int,
        allowed: Flags | None,
        writes: bool,
        reads: bool,
    ) -> None:
        """Hold an access to shared memory against what is on its way, and note it."""
        agent = self.agent
        if agent is None and _is_mbarrier(instr, writes and reads):
            return
        if allowed is not None:
            lanes, place = lanes.only(allowed), place[allowed]
        if not len(place):
            return
        at = place[:, None] + np.arange(size)
        clocks = self.agents.clocks
        warps = 1 if agent is None else agent.warps
        seen, fenced = (_Seen(each, lanes, warps) for each in (clocks.known, clocks.fenced))
        kind, written = self._kind[at], self._written
        has_come = seen.holds(written, at)
        early = (kind >= _GENERIC) & ~has_come
        verb = "overwrites" if writes else "reads"
        self._tell(instr, lanes, early, written.by[at], f"{verb} what {{}} has not brought yet")
        if writes:
            for marks in self._read:
                busy = (marks.by[at] > 0) & ~seen.holds(marks, at)
                self._tell(instr, lanes, busy, marks.by[at], "overwrites what {} still reads")
        if agent is not None and agent.kind == _ASYNC:
            is_generic = (kind == _WARPS) | (kind == _GENERIC)
            hidden = is_generic & has_come & ~fenced.holds(written, at)
            self._tell(
                instr, lanes, hidden, written.by[at],
                verb + " in the async proxy what {} wrote, and no fence.proxy.async is between",
            )  # fmt: skip
        self._note(instr, lanes, at, agent, seen, writes)

    def _tell(
        self, instr: Instr, lanes: Lanes, which: Flags, by: NDArray[np.int32], message: str
    ) -> None:
        if not which.any():
            return
        row, byte = (int(x) for x in np.argwhere(which)[0])
        other = self._instrs[int(by[row, byte]) - 1]
        self._batch.device.report(
            self._batch, instr, "arrival", message.format(f"`{other.shape.mnemonic}`"),
            lanes.flagged(which.any(axis=1)), origin=other,
        )  # fmt: skip

    def _note(
        self, instr: Instr, lanes: Lanes, at: Numbers, agent: Agent | None, seen: _Seen,
        writes: bool,
    ) -> None:  # fmt: skip
        if agent is None and not writes:
            return
        by = self._number(instr)
        if agent is None:
            warp = lanes.thread // _WARP
            time = self.agents.clocks.now(lanes.cta, warp)
            self._written.put(at, warp, time.astype(np.int64), by)
            self._kind[at] = _WARPS
            return
        number, time = agent.number[lanes.cta, lanes.thread], agent.time[lanes.cta, lanes.thread]
        if writes:
            self._written.put(at, number, time, by)
            self._kind[at] = agent.kind
            return
        # The first place is for a reader that is done, or the same one again; else the second one.
        first, second = self._read
        takes_first = seen.holds(first, at) | (first.agent[at] == number[:, None])
        for marks, chosen in ((first, takes_first), (second, ~takes_first)):
            marks.agent[at[chosen]] = np.broadcast_to(number[:, None], at.shape)[chosen]
            marks.time[at[chosen]] = np.broadcast_to(time[:, None], at.shape)[chosen]
            marks.by[at[chosen]] = by

    def started(self, instr: Instr, lanes: Lanes) -> None:
        """Threads start bulk copies out of shared memory."""
        self._stores[lanes.cta, lanes.thread] = self._number(instr)

    def leave(self, lanes: Lanes) -> None:
        """Threads leave the kernel: their CTA's shared memory may soon be another one's."""
        bulk = self.agents.bulk
        early = ~bulk.is_done(lanes.cta, lanes.thread // _WARP, lanes.thread)
        for by in np.unique(self._stores[lanes.cta[early], lanes.thread[early]]).tolist():
            which = early & (self._stores[lanes.cta, lanes.thread] == by)
            self._batch.device.report(
                self._batch, self._instrs[by - 1], "arrival",
                "leaves the kernel with nothing to show that shared memory was read",
                lanes.flagged(which),
            )  # fmt: skip

    def _number(self, instr: Instr) -> int:
        found = self._numbers.get(instr)
        if found is None:
            self._instrs.append(instr)
            found = self._numbers[instr] = len(self._instrs)
        return found


def _is_mbarrier(instr: Instr, is_update: bool) -> bool:
    """True for an access to an mbarrier, which is no data: by `mbarrier`, and by all that arrives
    at one."""
    return instr.opcode == "mbarrier" or (is_update and instr.opcode not in ("atom", "red"))


class _Seen:
    """What those have seen who access: warps, or groups of so many warps that all must have."""

    def __init__(self, clock: Clock, lanes: Lanes, warps: int) -> None:
        self._cta, self._who = lanes.cta[:, None], (lanes.thread // (warps * _WARP))[:, None]
        if warps > 1:
            starts = np.arange(0, clock.shape[1], warps)
            clock = np.minimum.reduceat(clock, starts, axis=1)
        self._clock = clock

    def holds(self, marks: _Marks, at: Numbers) -> Flags:
        """Where what is marked is done."""
        out: Flags = self._clock[self._cta, self._who, marks.agent[at]] >= marks.time[at]
        return out


# Who accesses ---------------------------------------------------------------------------------
@contextmanager
def _inside(arrivals: Arrivals, agent: Agent) -> Iterator[None]:
    arrivals.agent = agent
    yield
    arrivals.agent = None


def by_copies(batch: Batch, lanes: Lanes) -> Inside:
    """Inside, accesses are those of copies that lanes start: `cp.async`."""
    if batch.arrivals is None:
        return nullcontext()
    groups = batch.arrivals.agents.copies
    return _inside(batch.arrivals, _of_groups(batch, _GENERIC, lanes, groups, lanes.thread))


def by_bulk_copies(batch: Batch, instr: Instr, lanes: Lanes, objects: Numbers | None) -> Inside:
    """Inside, accesses are those of bulk copies that lanes start, and that mbarriers at these
    addresses hear of, or that belong to groups."""
    if batch.arrivals is None:
        return nullcontext()
    agents = batch.arrivals.agents
    if objects is None:
        batch.arrivals.started(instr, lanes)
        found = _of_groups(batch, _ASYNC, lanes, agents.bulk, lanes.thread)
        return _inside(batch.arrivals, found)
    number, time = (np.zeros(batch.shape, dtype=np.int64) for _ in range(2))
    for at, place in enumerate(objects.tolist()):
        cta, thread = int(lanes.cta[at]), int(lanes.thread[at])
        number[cta, thread] = agents.mbarrier(place)
        time[cta, thread] = agents.phase(cta, place) + 1
    return _inside(batch.arrivals, Agent(_ASYNC, number, time))


def by_matrices(batch: Batch, leaders: Lanes) -> Inside:
    """Inside, accesses are those of `wgmma`, of which leaders are the first lanes."""
    if batch.arrivals is None:
        return nullcontext()
    group = leaders.thread // (4 * _WARP)
    found = _of_groups(batch, _ASYNC, leaders, batch.arrivals.agents.matrices, group, 4)
    return _inside(batch.arrivals, found)


def _of_groups(
    batch: Batch, kind: int, lanes: Lanes, groups: Groups, one: Numbers, warps: int = 1
) -> Agent:
    number, time = (np.zeros(batch.shape, dtype=np.int64) for _ in range(2))
    number[lanes.cta, lanes.thread] = groups.first + one
    time[lanes.cta, lanes.thread] = groups.start(lanes.cta, one)
    return Agent(kind, number, time, warps)


__all__ = ["Agent", "Arrivals", "by_bulk_copies", "by_copies", "by_matrices"]
