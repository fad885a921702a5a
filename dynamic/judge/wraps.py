"""Verdicts on index arithmetic, held to what wraps on the way to addresses (BND301).

Integers are followed beside what registers hold of them
(`ptxlint.dynamic.emulator.labels.wraps`), and an address is wrong if it is not the one that was
computed. *Proved*: no access has such an address. *Refuted*: in the program of the witness this one
has.

A wrap takes more memory than there is, so of a large launch some programs are run without any:
those of witnesses, of the grid's corners, and a few. Loads bring zeros then, which says nothing
where numbers that are loaded may be indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ptxlint.dynamic.emulator.arena import ORIGIN
from ptxlint.dynamic.emulator.launched import parameters
from ptxlint.dynamic.emulator.run import Outcome
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.judge.replay import (
    KEPT,
    MOST_CTAS,
    MOST_TURNS,
    UNKNOWN,
    VIOLATED,
    Judgement,
    Played,
)
from ptxlint.launch.analysis import Outcome as Said
from ptxlint.launch.questions import OVERFLOW
from ptxlint.launches import Extent

NAME: Final = OVERFLOW
WATCHED: Final = Sanitize(overflow=True)
MOST_BYTES: Final = 64 << 20
"""Launches with larger tensors are run without memory."""
_OTHERS: Final = 4
"""So many programs besides those at the corners."""
_SPREAD: Final = 1 << 44
"""Storages begin so far apart, where there is no memory behind them."""


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on the address of each access; none where no run says something."""
    outcome = _ran(played)
    if outcome is None:
        return
    wrapped = {f.instr.index: f for f in outcome.faults if f.kind == "wrapped"}
    for said in played.found.outcomes:
        verdict = _verdict(said)
        if not verdict:
            continue
        instr = said.judged.access.instr
        fault = wrapped.get(instr.index)
        if fault is not None:
            told = f"program {fault.ctaid}, thread {fault.tid} {fault.message}"
            yield Judgement(NAME, verdict, VIOLATED, f"{instr}: {told}")
        elif verdict == "refuted" and not outcome.is_complete:
            yield Judgement(NAME, verdict, UNKNOWN)
        else:
            told = f"nothing wraps, though {said.witness} should"
            yield Judgement(NAME, verdict, KEPT, f"{instr}: {told}")


def _ran(played: Played) -> Outcome | None:
    bound = played.bound
    regions = (*bound.regions.values(), *bound.descriptors.values())
    x, y, z = bound.grid
    size = sum(region.tensor.storage_bytes for region in regions)
    if size <= MOST_BYTES and x * y * z <= MOST_CTAS:
        outcome: Outcome = played.run(only=played.order, sanitize=WATCHED).outcome
        return outcome
    has_indices = any(region.tensor.dtype.startswith(("int", "uint")) for region in regions)
    if bound.descriptors or has_indices:
        return None
    return _without_memory(played, _programs(played))


def _programs(played: Played) -> list[Extent]:
    """The programs of witnesses, those at the corners of the grid, and some others."""
    random = np.random.default_rng(played.seed)
    x, y, z = played.bound.grid
    chosen = {o.witness.thread.ctaid for o in played.found.outcomes if o.witness is not None}
    chosen |= {(i, j, k) for i in {0, x - 1} for j in {0, y - 1} for k in {0, z - 1}}
    for _ in range(_OTHERS):
        i, j, k = (int(random.integers(n)) for n in (x, y, z))
        chosen.add((i, j, k))
    return sorted(chosen)


def _without_memory(played: Played, programs: list[Extent]) -> Outcome:
    bound, emulator = played.bound, played.emulator
    starts: dict[int, int] = {}
    for region in bound.regions.values():
        shift = (region.address + region.low) % 256
        starts.setdefault(region.storage, ORIGIN + _SPREAD * (1 + len(starts)) + shift)
    outcome: Outcome = emulator.run(
        bound.grid,
        bound.block,
        parameters(emulator, bound, starts),
        emulator.arena(),
        max(0, bound.shared),
        ctas=programs,
        most_turns=MOST_TURNS,
        sanitize=WATCHED,
    )
    return outcome


def _verdict(outcome: Said) -> str:
    """What is said of the index of an access; "" where another access tells it."""
    if outcome.witness is not None and outcome.witness.kind == OVERFLOW:
        return "refuted"
    if outcome.shown:
        return ""
    return "open" if outcome.judged.wraps else "proved"


__all__ = ["MOST_BYTES", "NAME", "judge"]
