"""Vector clocks: what each warp of a CTA knows of the others' past.

A warp's own clock counts the times at which it was ordered against others. Where warps meet at a
barrier each gets to know all that any of them knew (L. Lamport, "Time, clocks, and the ordering of
events", 1978; C. Flanagan and S. Freund, "FastTrack", PLDI 2009). Lanes of one warp count as
ordered by the program: they run converged in what compilers emit, or meet at `.sync` instructions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags

Clock = NDArray[np.int32]


class Clocks:
    """The clocks of all CTAs of a batch: `known[cta, warp, other]` is the time of the other warp up
    to which this one has seen what it did."""

    def __init__(self, ctas: int, warps: int) -> None:
        self.known: Clock = np.zeros((ctas, warps, warps), dtype=np.int32)
        own = np.arange(warps)
        self.known[:, own, own] = 1
        self._own = own
        self._left: dict[tuple[int, object], Clock] = {}

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

    def meet(self, come: Flags, go: Flags) -> None:
        """Warps that come to a barrier hand on what they know to those that go on behind it.

        Both are over CTAs and warps; time goes on for all of them.
        """
        brought = np.where(come[:, :, None], self.known, 0).max(axis=1)
        taken = np.maximum(self.known, brought[:, None, :])
        self.known = np.where(go[:, :, None], taken, self.known)
        self.known[:, self._own, self._own] += (come | go).astype(np.int32)

    def hand_over(self, cta: NDArray[np.int64], warp: NDArray[np.int64], place: object) -> None:
        """Warps leave what they know at a place, each with its CTA, for others to pick up there.

        It stays: who picks up later gets to know more than it must, so no race is made up.
        """
        for one, own in sorted(set(zip(cta.tolist(), warp.tolist(), strict=True))):
            left = self._left.get((one, place))
            known = self.known[one, own]
            self._left[one, place] = known.copy() if left is None else np.maximum(left, known)
            self.known[one, own, own] += 1

    def pick_up(self, cta: NDArray[np.int64], warp: NDArray[np.int64], place: object) -> None:
        """Warps get to know what others left at a place."""
        for one, own in set(zip(cta.tolist(), warp.tolist(), strict=True)):
            left = self._left.get((one, place))
            if left is not None:
                self.known[one, own] = np.maximum(self.known[one, own], left)

    def share(self, cta: NDArray[np.int64], first: NDArray[np.int64], count: int) -> None:
        """What the first of some neighbouring warps did up to now was done by all of them, as far
        as there are so many."""
        time = self.known[cta, first, first]
        for other in range(1, count):
            there = first + other < self.known.shape[1]
            one, own = cta[there], first[there]
            self.known[one, own + other, own] = time[there]
        self.known[cta, first, first] += 1


__all__ = ["Clock", "Clocks"]
