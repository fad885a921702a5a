"""What CTAs know of each other's past through flags and counters in global memory.

A *strong* access (an atomic one, `.volatile`, `.relaxed`, `.acquire`, `.release`) that writes
leaves at its place what its CTA knows, if it releases: it says so, or its CTA ran a fence before.
One that reads takes along what others left there up to then (PTX ISA, "Memory Consistency Model":
release and acquire patterns, causality order). Who reads is not asked for a fence, and what one
warp takes along all of its CTA knows: races may be missed so, and none is made up.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.sanitizer.clocks import Clock

_MOST: Final = 64
"""So many handovers of a CTA at a place are told apart."""


class _Left(NamedTuple):
    """What one CTA left at a place: when, and its warps' times then."""

    when: list[int]
    times: list[Clock]


class Between:
    """Handovers of one launch. CTAs go by their numbers in it."""

    def __init__(self) -> None:
        self._now = 0
        self._fenced: set[int] = set()
        self._left: dict[int, dict[int, _Left]] = {}
        self._taken: dict[int, dict[int, int]] = {}
        """By CTA and place: when it looked there last."""
        self._known: dict[int, tuple[int, dict[int, Clock]]] = {}
        """By CTA: what it knows of others, and as of when."""

    def fence(self, cta: int) -> None:
        """A CTA runs a fence that others can rely on."""
        self._fenced.add(cta)

    def has_fenced(self, cta: int) -> bool:
        """True if a CTA ran one."""
        return cta in self._fenced

    def leave(self, cta: int, place: int, times: Clock) -> None:
        """A CTA leaves what it knows of its own warps at a place."""
        self._now += 1
        left = self._left.setdefault(place, {}).setdefault(cta, _Left([], []))
        left.when.append(self._now)
        left.times.append(times)
        if len(left.when) > _MOST:
            # Of two handovers one is left: the later one's knowledge, from the earlier one on.
            left.times[: _MOST // 2] = left.times[1:_MOST:2]
            left.when[: _MOST // 2] = left.when[0:_MOST:2]
            del left.times[_MOST // 2 : _MOST], left.when[_MOST // 2 : _MOST]

    def take(self, cta: int, place: int) -> None:
        """A CTA takes along what lies at a place."""
        self._now += 1
        if place in self._left:
            self._taken.setdefault(cta, {})[place] = self._now

    def known(self, cta: int) -> dict[int, Clock]:
        """What a CTA knows of others: by CTA, the time of each of its warps."""
        held = self._known.get(cta)
        if held is not None and held[0] == self._now:
            return held[1]
        out: dict[int, Clock] = {}
        looked: dict[int, int] = {}
        waiting = list(self._taken.get(cta, {}).items())
        while waiting:
            place, until = waiting.pop()
            if looked.get(place, 0) >= until:
                continue
            looked[place] = until
            for other, left in self._left[place].items():
                at = bisect_right(left.when, until) - 1
                if at < 0:
                    continue
                times, before = left.times[at], out.get(other)
                out[other] = times if before is None else np.maximum(before, times)
                # What that one took along before it left this.
                waiting += [
                    (there, min(looked_at, left.when[at]))
                    for there, looked_at in self._taken.get(other, {}).items()
                ]
        self._known[cta] = self._now, out
        return out


__all__ = ["Between"]
