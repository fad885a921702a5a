"""Where lanes of a warp or a warpgroup wait for each other, as `.sync` instructions have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader, Step, holds
from ptxlint.dynamic.emulator.formats import Array, Flags, every, some

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import End, Waiting

_EVERYONE: Final = 0xFFFFFFFF


def warp_meeting(step: Step, who: Reader | None, is_whole: bool = False) -> Waiting:
    """A step that lanes take together once all of their warp that `who` names are there.

    Without `who` all lanes of the warp are waited for if they are alive; `is_whole` says that it
    takes them all, so that those which have left are missing.
    """
    return _meeting(step, who, WARP, is_whole)


def warpgroup_meeting(step: Step) -> Waiting:
    """A step that the four warps of a warpgroup take together."""
    return _meeting(step, None, 4 * WARP)


def _meeting(step: Step, who: Reader | None, size: int, is_whole: bool = False) -> Waiting:

    def waiting(here: int, behind: int) -> End:
        def come(batch: Batch, mask: Mask) -> None:
            ready: Mask = mask
            if mask is not None or here in batch.parked:
                ready = _ready(batch, mask, here, who, size)
                if not holds(ready):
                    return
            if who is not None:
                _check_named(batch, here, ready, who(batch))
            elif is_whole and not batch.is_stuck and (ready is not None or batch.threads % size):
                _check_whole(batch, here, ready, size)
            if batch.device.record is not None:
                _note(batch, here, ready)
            if batch.watch is not None:
                batch.watch.converge(batch, ready)
            if batch.labels is None:
                step(batch, ready)
            else:
                segment = batch.program.segments[here]
                batch.labels.around(segment.frame, segment.instrs[0], step, ready)
            batch.go(behind, ready)

        return come

    return waiting


def _note(batch: Batch, here: int, ready: Mask) -> None:
    record = batch.device.record
    assert record is not None
    record.arrive(batch, batch.program.segments[here].instrs[0], ready)


def _ready(batch: Batch, mask: Mask, here: int, who: Reader | None, size: int) -> Mask:
    """The lanes whose companions are all there; the others are parked."""
    before = batch.parked.pop(here, None)
    if before is None and mask is not None and mask.shape[1] == 1:
        # Whole CTAs are there.
        return mask
    there = batch.lanes(mask)
    if before is not None:
        there = there | before
    if batch.is_stuck:
        # Nobody else will come: those who are there go on, and were reported.
        return _mask(there)
    missing = _missing(batch, there, who, size)
    waits = there & missing
    if some(waits):
        batch.parked[here] = waits
        there = there & ~missing
    return _mask(there)


def _check_named(batch: Batch, here: int, ready: Mask, named: Array) -> None:
    """Report lanes that come with a mask which does not name them."""
    if named.size == 1 and named.item() == _EVERYONE:
        return
    lane = (np.arange(batch.threads) % WARP).astype(np.uint32)
    forgotten = (named >> lane & np.uint32(1) == 0) & batch.lanes(ready)
    if forgotten.any():
        _report(batch, here, forgotten, "comes to an instruction whose mask does not name its lane")


def _check_whole(batch: Batch, here: int, ready: Mask, size: int) -> None:
    """Report lanes whose warp is not there as a whole."""
    from ptxlint.dynamic.emulator.effects.exchange import groups, lanes

    there = groups(batch, batch.lanes(ready), size)
    part = there.any(axis=-1, keepdims=True) & ~there.all(axis=-1, keepdims=True)
    if part.any():
        found = lanes(batch, there & part)
        _report(batch, here, found, "comes to an instruction that takes all lanes of its warp")


def _report(batch: Batch, here: int, which: Flags, message: str) -> None:
    instr = batch.program.segments[here].instrs[0]
    batch.device.report(batch, instr, "divergence", message, which)


def _mask(there: Flags) -> Mask:
    return None if every(there) else np.array(there)


def _missing(batch: Batch, there: Flags, who: Reader | None, size: int) -> Flags:
    """The lanes that wait for a companion which is alive and not there."""
    from ptxlint.dynamic.emulator.effects.exchange import groups, lanes

    absent = groups(batch, batch.lanes(batch.alive) & ~there, size)
    if not some(absent):
        return np.zeros((1, 1), dtype=bool)
    if who is None:
        waits = np.broadcast_to(absent.any(axis=-1, keepdims=True), absent.shape)
    else:
        lane = np.arange(WARP, dtype=np.uint32)
        gone = np.bitwise_or.reduce(np.where(absent, np.uint32(1) << lane, np.uint32(0)), axis=-1)
        waits = groups(batch, who(batch), size).astype(np.uint32) & gone[..., None] != 0
    return lanes(batch, waits)


def release(batch: Batch) -> None:
    """Let parked lanes look once more whether all are there, as when others have left."""
    parked, batch.parked = batch.parked, {}
    for place, flags in parked.items():
        batch.go(place, flags)


__all__ = ["release", "warp_meeting", "warpgroup_meeting"]
