"""Verdicts on tiles that nothing guards, under a launch, held to what goes outside (MSK203).

*Proved*: the size is a multiple of the tile, so no thread leaves the storage by the access that the
verdict stands at. *Refuted*: in a whole run some access leaves its storage: which one of those that
go by the tile is told by the verdicts on bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.judge.accesses import BEYOND
from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played

NAME = "tiles"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each tile of which something is said under the launch."""
    for verdict in played.said("MSK203")[0]:
        if verdict.launch is None or verdict.at is None:
            continue
        instrs = {verdict.at}
        if verdict.status == "refuted":
            instrs = {outcome.judged.access.instr for outcome in played.found.outcomes}
        is_beyond = any((kind, i.index) in played.faults for i in instrs for kind in BEYOND)
        happened: str = VIOLATED if is_beyond else KEPT
        if verdict.status == "refuted" and not is_beyond and not played.is_whole:
            happened = UNKNOWN
        yield Judgement(NAME, verdict.status, happened, f"{verdict.at}: {verdict.reason}")


__all__ = ["judge"]
