"""Where lanes wait for something that others do in memory: `mbarrier.try_wait` and its like.

Such lanes stand aside until something happens that they may wait for, and look again. If nobody
else can go on they go on with what there is, as the hardware lets them after a time; if that does
not help, they wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask, holds, without
from ptxlint.dynamic.emulator.formats import Flags

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import End, Waiting


def until(
    is_so: Callable[[Batch, Mask], Flags], then: Callable[[Batch, Flags, Mask], None]
) -> Waiting:
    """A step for lanes in which something is so; the others wait until it is.

    `then` gets what was found, and the lanes that go on.
    """

    def waiting(here: int, behind: int) -> End:
        def come(batch: Batch, mask: Mask) -> None:
            found = is_so(batch, mask)
            free = found
            if batch.tired is not None:
                free = free | batch.tired
                batch.tired = batch.tired & ~batch.lanes(mask)
            ready = batch.some(mask, free)
            if holds(ready):
                then(batch, found, ready)
                batch.go(behind, ready)
            rest = without(mask, free)
            if holds(rest):
                there = batch.held.get(here)
                lanes = np.array(batch.lanes(rest))
                batch.held[here] = lanes if there is None else there | lanes

        return come

    return waiting


def stir(batch: Batch, ctas: Flags) -> None:
    """Something happened in some CTAs: who waits there looks again."""
    if not batch.held or not ctas.any():
        return
    rows = ctas[:, None]
    for place, lanes in list(batch.held.items()):
        woken = lanes & rows
        if woken.any():
            batch.go(place, None if woken.all() else woken)
            rest = lanes & ~rows
            if rest.any():
                batch.held[place] = rest
            else:
                del batch.held[place]


def tire(batch: Batch) -> None:
    """Nobody else can go on: those who wait go on with what there is."""
    tired = np.zeros(batch.shape, dtype=bool)
    for place, lanes in batch.held.items():
        tired |= lanes
        batch.go(place, None if lanes.all() else lanes)
    batch.held.clear()
    batch.tired = tired


def give_up(batch: Batch) -> None:
    """Those who wait do so for ever: say so, and end their CTAs, in which nobody else goes on."""
    ctas = np.zeros((batch.shape[0], 1), dtype=bool)
    for place, lanes in batch.held.items():
        instr = batch.program.segments[place].instrs[0]
        batch.device.report(
            batch, instr, "deadlock", "waits for something that nobody is left to do", lanes
        )
        ctas |= lanes.any(axis=1, keepdims=True)
    batch.held.clear()
    batch.leave(np.broadcast_to(ctas, batch.shape))
    for place, lanes in list(batch.parked.items()):
        batch.parked[place] = lanes & ~ctas
        if not batch.parked[place].any():
            del batch.parked[place]
    for barrier in batch.barriers.values():
        barrier.forget(ctas)


__all__ = ["give_up", "stir", "tire", "until"]
