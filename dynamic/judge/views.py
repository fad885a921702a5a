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
    of_region = {o.judged.access.instr for o in played.found.outcomes if o.judged.region == region}
    own = elements(region.tensor)
    for one in played.all_touched.touched:
        if one.instr in of_region:
            odd = np.setdiff1d(_bytes(played, one, region), own)
            if len(odd):
                what = f"{one.instr} touches byte {odd[0]} of {region.name}, which is no element's"
                return Judgement(NAME, status, VIOLATED, what)
    return Judgement(NAME, status, UNKNOWN if played.all_touched.is_full else KEPT)


def _shown(played: Played, region: Region, hit: Hit) -> Judgement:
    assert hit.witness is not None
    offset, (x, y, z), tid = (hit.witness[key] for key in ("offset", "ctaid", "tid"))
    grid, block = played.bound.grid, played.bound.block
    cta = x + grid[0] * (y + grid[1] * z)
    thread = tid[0] + block[0] * (tid[1] + block[1] * tid[2])
    own = elements(region.tensor)
    for one in played.all_touched.touched:
        if one.instr is hit.at:
            mine = (one.cta == cta) & (one.thread == thread)
            places = _bytes(played, one._replace(place=one.place[mine]), region)
            if offset in places and len(np.setdiff1d(places, own)):
                return Judgement(NAME, "refuted", VIOLATED)
    is_told = played.is_whole and not played.all_touched.is_full
    return Judgement(NAME, "refuted", KEPT if is_told else UNKNOWN, hit.message)


def _bytes(played: Played, one: Touched, region: Region) -> NDArray[np.int64]:
    """The bytes of an access, counted from the tensor's first element."""
    start = played.ran.places[region.storage].start - ORIGIN - region.low
    return np.unique((one.place - start)[:, None] + np.arange(one.size))


__all__ = ["judge"]
