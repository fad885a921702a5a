"""Runs the CTAs of a batch until all have left: who goes on, and what happens when nobody can."""

from __future__ import annotations

from typing import Final

from ptxlint.dynamic.emulator import deadlock
from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.effects.barriers import recount
from ptxlint.dynamic.emulator.holding import tire
from ptxlint.dynamic.emulator.meeting import release
from ptxlint.ir.instruction import Instr

_LOOKS: Final = 8
"""So often lanes look in vain for what they wait for, with nobody else left, before they are given
up: programs may do something else meanwhile."""
_PATIENCE: Final = 64
"""So often lanes may go back while others wait, before these get a turn."""
_POLLS: Final = 256
"""So often a batch may look for what others do in memory, before another batch gets a turn."""


class Schedule:
    """The turns of one batch. `places` ranks the segments of the program, `polls` says which of
    them look for what other lanes do in memory (`polling`)."""

    def __init__(self, batch: Batch, places: list[int], polls: list[bool]) -> None:
        self._batch = batch
        self._places = places
        self._polls = polls
        self.turns = 0
        """How many were taken."""
        self.is_polling = False
        """True if the last turns were given up for other batches, whose lanes may be waited for."""
        self._last: dict[int, int] = {}
        self._turn = 0
        self._returns = 0
        self._before = -1

    def run(self, turns: int) -> bool:
        """Go on for so many turns, or until it is others that are waited for; True once all lanes
        have left."""
        batch, segments, fronts = self._batch, self._batch.program.segments, self._batch.fronts
        counters, labels = batch.device.counters, batch.labels
        left, self.is_polling = _POLLS, False
        for _ in range(turns):
            if not fronts and not self._wake():
                return True
            place = self._next()
            self.turns += 1
            if self._polls[place]:
                left -= 1
                if not left:
                    self.is_polling = True
                    return False
            mask = fronts.pop(place)
            segment = segments[place]
            if counters is not None:
                counters.ran(batch, segment.instrs, mask)
            if labels is None:
                for step in segment.steps:
                    step(batch, mask)
            else:
                for step, instr in zip(segment.steps, segment.instrs, strict=False):
                    labels.around(segment.frame, instr, step, mask)
                labels.end(segment, mask)
            segment.end(batch, mask)
        return False

    def state(self) -> list[object]:
        """All that decides what is done next, global memory and the program aside."""
        batch = self._batch
        order = sorted(batch.fronts, key=lambda place: self._last.get(place, -1))
        return [
            *batch.state(),
            order,
            self._returns,
            self._before,
            self._stuck_before,
            self._looks,
            batch.events == self._events,
        ]

    def give_up(self, why: str = "") -> None:
        """Say of the lanes that still run that they do not come to an end."""
        batch = self._batch
        for place, mask in batch.fronts.items():
            instrs = batch.program.segments[place].instrs
            if instrs:
                batch.device.report(
                    batch, instrs[0], "hang", f"does not come to an end{why}", batch.lanes(mask)
                )

    def unfinished(self) -> int:
        """The CTAs of which some lane has not left."""
        batch = self._batch
        return int(batch.lanes(batch.alive).any(axis=1).sum())

    def _next(self) -> int:
        """The place that is furthest behind; after much patience, the one that waited longest."""
        fronts = self._batch.fronts
        if len(fronts) == 1:
            only: int = next(iter(fronts))
            return only
        self._turn += 1
        chosen: int = min(fronts, key=self._places.__getitem__)
        rank = self._places[chosen]
        if self._polls[chosen]:
            # Who looks for what others do lets them do it first.
            chosen = min(fronts, key=lambda place: self._last.get(place, -1))
        elif rank <= self._before:
            self._returns += 1
        self._before = rank
        if self._returns > _PATIENCE:
            self._returns = 0
            chosen = min(fronts, key=lambda place: self._last.get(place, -1))
            self._before = -1
        self._last[chosen] = self._turn
        return chosen

    def _wake(self) -> bool:
        """Nobody can go on: find somebody who can after all. False if nobody is left, or if those
        who are wait for nobody."""
        while not self._batch.fronts:
            if not self._look_again():
                return False
        return True

    def _look_again(self) -> bool:
        """Let some of those who wait look whether all are there; False if there is nobody."""
        batch = self._batch
        recount(batch)
        if batch.fronts:
            return True
        if batch.parked and not batch.is_stuck:
            left = sum(int(flags.sum()) for flags in batch.parked.values())
            if left != self._stuck_before or not batch.held:
                release(batch)
                # Once more with everybody taken for there, if that changes nothing.
                batch.is_stuck = left == self._stuck_before
                self._stuck_before = left
                if batch.is_stuck:
                    self._report_parked()
                return True
        if batch.held:
            self._let_on()
            return True
        if batch.parked:
            return False
        if any(barrier.waiting for barrier in batch.barriers.values()):
            deadlock.end(batch)
        return False

    _stuck_before = -1

    def _let_on(self) -> None:
        """Only lanes that wait for something in memory are left: they look on, a few times."""
        batch = self._batch
        self._looks = self._looks + 1 if batch.events == self._events else 0
        self._events = batch.events
        if self._looks > _LOOKS:
            self._looks, self._stuck_before = 0, -1
            deadlock.end(batch)
        else:
            tire(batch)

    _looks = 0
    _events = -1

    def _report_parked(self) -> None:
        batch = self._batch
        for place, flags in batch.fronts.items():
            instrs = batch.program.segments[place].instrs
            if instrs and flags is not None:
                batch.device.report(
                    batch, instrs[0], "divergence",
                    "waits for lanes of its warp that never come", flags,
                )  # fmt: skip


def ranks(batch: Batch) -> list[int]:
    """By segment, its place in the order of turns."""
    segments = batch.program.segments
    order = sorted(range(len(segments)), key=lambda at: segments[at].rank)
    out = [0] * len(segments)
    for place, at in enumerate(order):
        out[at] = place
    return out


def polling(batch: Batch) -> list[bool]:
    """By segment, whether it looks for what other lanes do in memory: it has an access that others
    can rely on, a lock's or a flag's, or sleeps."""
    return [any(map(_polls, segment.instrs)) for segment in batch.program.segments]


def _polls(instr: Instr) -> bool:
    if instr.opcode == "ld":
        return any(map(instr.shape.has, ("volatile", "acquire", "relaxed")))
    if instr.opcode == "atom":
        return instr.shape.has("cas") or instr.shape.has("exch")
    return instr.opcode == "nanosleep"


__all__ = ["Schedule", "polling", "ranks"]
