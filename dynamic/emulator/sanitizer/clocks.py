"""Vector clocks: what each warp of a CTA knows of the others' past.

A warp's own clock counts the times at which it was ordered against others. Where warps meet at a
barrier each gets to know all that any of them knew (L. Lamport, "Time, clocks, and the ordering of
events", 1978; C. Flanagan and S. Freund, "FastTrack", PLDI 2009). Lanes of one warp have one clock,
whose time goes on where they meet at `.sync` instructions.

Whoever works beside the warps, as a copy does, is an *agent* with a clock of its own: warps get to
know of its past by waiting, and hand that on like all they know.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags

Clock = NDArray[np.int32]


class Clocks:
    """The clocks of all CTAs of a batch: `known[cta, warp, other]` is the time of the other warp,
    or of an agent behind the warps, up to which this one has seen what it did.

    With `follows_proxies` there is a second layer: the times up to which that is seen by the async
    proxy, too, if this warp starts something there.
    """

    def __init__(self, ctas: int, warps: int, follows_proxies: bool = False) -> None:
        self._seen: Clock = np.zeros((1 + follows_proxies, ctas, warps, warps), dtype=np.int32)
        own = np.arange(warps)
        self._own = own
        self._seen[0][:, own, own] = 1
        self._left: dict[tuple[int, object], Clock] = {}
        self._told: dict[tuple[int, object], Clock] = {}

    @property
    def known(self) -> Clock:
        """By CTA and warp: what it has seen of each other one."""
        out: Clock = self._seen[0]
        return out

    @property
    def fenced(self) -> Clock:
        """By CTA and warp: what the async proxy has seen of what it has seen."""
        out: Clock = self._seen[1]
        return out

    def agents(self, count: int) -> int:
        """The number of the first of some new agents, of which nobody has seen anything."""
        first: int = self._seen.shape[-1]
        self._seen = np.pad(self._seen, ((0, 0), (0, 0), (0, 0), (0, count)))
        return first

    def now(self, cta: NDArray[np.int64], warp: NDArray[np.int64]) -> Clock:
        """The own time of warps."""
        return self.known[cta, warp, warp]

    def is_seen(
        self,
        cta: NDArray[np.int64],
        warp: NDArray[np.int64],
        other: NDArray[np.int64],
        time: Clock,
    ) -> Flags:
        """True where a warp has seen what another one did at a time."""
        seen: Flags = self.known[cta, warp, other] >= time
        return seen

    def learn(
        self,
        cta: NDArray[np.int64],
        warp: NDArray[np.int64],
        agent: NDArray[np.int64],
        time: NDArray[np.int64],
    ) -> None:
        """Warps have waited until agents had done what they did up to a time."""
        np.maximum.at(self._seen[0], (cta, warp, agent), time.astype(np.int32))

    def fence(self, cta: NDArray[np.int64], warp: NDArray[np.int64]) -> None:
        """What warps have seen, the async proxy sees from now on."""
        if len(self._seen) > 1:
            known, fenced = self._seen
            fenced[cta, warp] = np.maximum(fenced[cta, warp], known[cta, warp])
            known[cta, warp, warp] = fenced[cta, warp, warp] + 1

    def meet(self, come: Flags, go: Flags) -> None:
        """Warps that come to a barrier hand on what they know to those that go on behind it.

        Both are over CTAs and warps; time goes on for all of them.
        """
        brought = np.where(come[:, :, None], self._seen, 0).max(axis=2)
        taken = np.maximum(self._seen, brought[:, :, None, :])
        self._seen = np.where(go[:, :, None], taken, self._seen)
        self.known[:, self._own, self._own] += (come | go).astype(np.int32)

    def converge(self, come: Flags) -> None:
        """Lanes of some warps (CTAs, warps) have met: what they did before is ordered before what
        they do now."""
        self.known[:, self._own, self._own] += come.astype(np.int32)

    def hand_over(self, cta: NDArray[np.int64], warp: NDArray[np.int64], place: object) -> None:
        """Warps leave what they know at a place, each with its CTA, for others to pick up there
        once the phase is complete."""
        for one, own in sorted(set(zip(cta.tolist(), warp.tolist(), strict=True))):
            self._leave(one, place, self._seen[:, one, own])
            self._seen[0, one, own, own] += 1

    def leave_for(self, cta: int, place: object, agent: int, time: int) -> None:
        """What an agent did up to a time is seen by those who pick up at a place, once the phase
        is complete."""
        what = np.zeros_like(self._seen[:, cta, 0])
        what[0, agent] = time
        self._leave(cta, place, what)

    def _leave(self, cta: int, place: object, what: Clock) -> None:
        left = self._left.get((cta, place))
        self._left[cta, place] = what.copy() if left is None else _merged(left, what)

    def complete(self, cta: int, place: object) -> None:
        """A phase is complete: what was left at its place may be picked up.

        It stays: who picks up later gets to know more than it must, so no race is made up.
        """
        left = self._left.pop((cta, place), None)
        if left is not None:
            told = self._told.get((cta, place))
            self._told[cta, place] = left if told is None else _merged(told, left)

    def pick_up(self, cta: NDArray[np.int64], warp: NDArray[np.int64], place: object) -> None:
        """Warps get to know what others left at a place in phases that are complete."""
        for one, own in set(zip(cta.tolist(), warp.tolist(), strict=True)):
            told = self._told.get((one, place))
            if told is not None:
                self._seen[:, one, own] = _merged(self._seen[:, one, own], told)
                # What another lane of the warp left there comes before what follows, too.
                self._seen[0, one, own, own] += 1

    def share(self, cta: NDArray[np.int64], first: NDArray[np.int64], count: int) -> None:
        """What the first of some neighbouring warps did up to now was done by all of them, as far
        as there are so many."""
        time = self.known[cta, first, first]
        for other in range(1, count):
            there = first + other < self.known.shape[1]
            one, own = cta[there], first[there]
            self.known[one, own + other, own] = time[there]
        self.known[cta, first, first] += 1


def _merged(a: Clock, b: Clock) -> Clock:
    """The later of both; agents that one of them is too old to know of, it has not seen."""
    width = max(a.shape[-1], b.shape[-1])
    a, b = (np.pad(x, ((0, 0), (0, width - x.shape[-1]))) for x in (a, b))
    out: Clock = np.maximum(a, b)
    return out


__all__ = ["Clock", "Clocks"]
