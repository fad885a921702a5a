"""Verdicts on tensors that are parts of storages, held to the bytes that are touched (BND306).

*Proved*: every byte that an access to the tensor touches belongs to one of its elements. *Refuted*:
the thread of the witness touches the byte that it names, and no element has it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import ORIGIN
from ptxlint.dynamic.emulator.record import Touched
from ptxlint.dynamic.judge.coverage import elements
from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.launch.binding import Region
from ptxlint.rulekit import Hit

NAME = "views"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each tensor of which something is said under the launch."""
    verdicts, hits = played.said("BND306")
    regions = {o.judged.access.instr: o.judged.region for o in played.found.outcomes}
    for verdict in verdicts:
        region = None if verdict.at is None else regions.get(verdict.at)
        if verdict.launch is None or region is None or verdict.status == "refuted":
            continue
        yield _compared(played, region, verdict.status)
    for hit in hits:
        region = None if hit.at is None else regions.get(hit.at)
        if hit.launch is not None and region is not None and hit.witness is not None:
            yield _shown(played, region, hit)


def _compared(played: Played, region: Region, status: str) -> Judgement:
    if status == "open":
        return Judgement(NAME, status, UNKNOWN)
    of_region = {o.judged.access.instr for o in played.found.outcomes if o.judged.region == region}
    own = _Elements(played, region)
    for one in played.record.touched:
        if one.instr in of_region and not own.hold(one).all():
            what = f"{one.instr} touches bytes of {region.name} that are no element's"
            return Judgement(NAME, status, VIOLATED, what)
    return Judgement(NAME, status, UNKNOWN if played.record.is_full else KEPT)


def _shown(played: Played, region: Region, hit: Hit) -> Judgement:
    assert hit.witness is not None
    offset, (x, y, z), tid = (hit.witness[key] for key in ("offset", "ctaid", "tid"))
    grid, block = played.bound.grid, played.bound.block
    cta = x + grid[0] * (y + grid[1] * z)
    thread = tid[0] + block[0] * (tid[1] + block[1] * tid[2])
    own = _Elements(played, region)
    for one in played.record.touched:
        if one.instr is hit.at:
            first = one.place - own.start
            mine = (one.cta == cta) & (one.thread == thread)
            mine &= (first <= offset) & (offset < first + one.size)
            if mine.any() and not own.hold(one)[mine].all():
                return Judgement(NAME, "refuted", VIOLATED)
    is_told = played.is_whole and not played.record.is_full
    return Judgement(NAME, "refuted", KEPT if is_told else UNKNOWN, hit.message)


class _Elements:
    """The bytes of the arena that are a tensor's elements."""

    def __init__(self, played: Played, region: Region) -> None:
        self.start = played.ran.places[region.storage].start - ORIGIN - region.low
        """Where the first element begins."""
        places = elements(region.tensor)
        self._is_own = np.zeros(int(places.max(initial=0)) + 1, dtype=bool)
        self._is_own[places] = True

    def hold(self, one: Touched) -> NDArray[np.bool_]:
        """By lane, whether all bytes that it touches are elements'."""
        at = (one.place - self.start)[:, None] + np.arange(one.size)
        inside = (at >= 0) & (at < len(self._is_own))
        found: NDArray[np.bool_] = (inside & self._is_own[np.where(inside, at, 0)]).all(axis=1)
        return found


__all__ = ["judge"]
