"""Verdicts on memory that nobody has written, held to reads of blank cells (HAZ603).

*Proved*: no access to the storage reads a byte that was neither written by the host nor by the
launch before. Loads that nothing uses do not count, nor for the rule. *Refuted*: the thread of the
witness does the access, and with its program run alone some thread reads blank bytes there: other
programs may come later.

What the host is said to have written, or zeroed, is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.updates import effects
from ptxlint.dataflow.value_flow import ValueFlowAnalysis
from ptxlint.dynamic.emulator.arena import ORIGIN
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.ir.instruction import Instr
from ptxlint.launch.binding import Region
from ptxlint.rulekit import Hit

NAME = "first reads"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each storage of which something is said."""
    verdicts, hits = played.said("HAZ603")
    regions = {o.judged.access.instr: o.judged.region for o in played.found.outcomes}
    for verdict in verdicts:
        region = None if verdict.at is None else regions.get(verdict.at)
        if region is None or verdict.status == "refuted":
            continue
        blank = [i for i in _read(played, region.storage) if ("blank", i.index) in played.faults]
        happened = VIOLATED if blank else KEPT
        yield Judgement(NAME, verdict.status, happened, f"{verdict.reason}: {blank[:1]} reads it")
    for hit in hits:
        region = None if hit.at is None else regions.get(hit.at)
        if region is None or hit.at is None or hit.witness is None:
            yield Judgement(NAME, "refuted", UNKNOWN)
        else:
            yield _shown(played, hit, hit.at, region)


def _read(played: Played, storage: int) -> list[Instr]:
    """The instructions that read a storage, but loads of what nothing uses."""
    flow = played.facts.get(ValueFlowAnalysis)
    found = []
    for outcome in played.found.outcomes:
        access, region = outcome.judged.access, outcome.judged.region
        if region is None or region.storage != storage or access.kind == "store":
            continue
        if access.kind != "load" or effects(flow, access.instr) != []:
            found.append(access.instr)
    return found


def _shown(played: Played, hit: Hit, at: Instr, region: Region) -> Judgement:
    assert hit.witness is not None
    record = Record(loads=True)
    x, y, z = hit.witness["ctaid"]
    ran = played.run(record=record, only=[(x, y, z)])
    place = ran.places[region.storage].start - ORIGIN - region.low + hit.witness["offset"]
    width, height, _ = played.bound.block
    tid = hit.witness["tid"]
    thread = tid[0] + width * (tid[1] + height * tid[2])
    does = any(
        bool(((one.thread == thread) & (one.place == place)).any())
        for one in record.touched
        if one.instr is at
    )
    is_blank = any(f.kind == "blank" and f.instr is at for f in ran.outcome.faults)
    if does and is_blank:
        return Judgement(NAME, "refuted", VIOLATED)
    happened = KEPT if ran.outcome.is_complete and not record.is_full else UNKNOWN
    return Judgement(NAME, "refuted", happened, f"it does not read blank memory: {hit.message}")


__all__ = ["judge"]
