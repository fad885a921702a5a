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
    is_so: Callable[[Batch, Mask], Flags],
    then: Callable[[Batch, Flags, Mask], None],
    why: Callable[[Batch, Flags], str],
    is_try: bool = True,
) -> Waiting:
    """A step for lanes in which something is so; the others wait until it is, or, where it
    `is_try`, until nobody else can go on.

    `then` gets what was found, and the lanes that go on; `why` says what a lane waits for.
    """

    def waiting(here: int, behind: int) -> End:
        def come(batch: Batch, mask: Mask) -> None:
            found = is_so(batch, mask)
            free = found
            if is_try and batch.tired is not None:
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
                batch.reasons[here] = why

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


__all__ = ["stir", "tire", "until"]
