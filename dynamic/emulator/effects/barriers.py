"""Barriers of a CTA (PTX ISA, "bar, barrier")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader
from ptxlint.dynamic.emulator.effects import clusters
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.meeting import warp_meeting
from ptxlint.dynamic.emulator.operands import Writer, reader, writer
from ptxlint.ir.instruction import Instr

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import End, Waiting

_LAST: Final = 15
"""The number of the last barrier of a CTA."""


class Arrival(NamedTuple):
    """Lanes that wait at a barrier, and what they bring and take."""

    place: int
    lanes: Flags
    instr: Instr
    holds: Array | None
    deliver: Callable[[Batch, Array, Mask], None] | None


class Barrier:
    """One barrier of all CTAs of a batch: who has come, and who waits.

    A warp counts, as a whole, once all its threads that have not left the kernel have come.
    """

    def __init__(self, batch: Batch) -> None:
        self.lanes: Flags = np.zeros(batch.shape, dtype=bool)
        """Who has come, those that went on at once among them."""
        self.counts = np.zeros(batch.shape[0], dtype=np.int64)
        """By CTA, how many threads the instructions name; 0: all that have not left."""
        self.waiting: list[Arrival] = []
        self.expected: Flags = np.zeros(batch.shape, dtype=bool)
        """Lanes that have not come and were alive when others of their warp came."""

    def forget(self, ctas: Flags) -> None:
        """Nobody has come, or waits, in CTAs that have ended."""
        self.lanes &= ~ctas
        self.expected &= ~ctas
        self.counts[ctas[:, 0]] = 0
        rest = [one._replace(lanes=one.lanes & ~ctas) for one in self.waiting]
        self.waiting = [one for one in rest if one.lanes.any()]

    def done(self, batch: Batch) -> Array:
        """By CTA, whether as many have come as are waited for."""
        alive = batch.lanes(batch.alive)
        come = _warps_of(batch, self.lanes) & ~_warps_of(batch, alive & ~self.lanes)
        expected = np.where(self.counts > 0, self.counts, _threads(_warps_of(batch, alive)))
        found: Array = (_threads(come) >= expected) & come.any(axis=1)
        return found


def _bar(frame: Frame, instr: Instr) -> Waiting | None:
    shape = instr.shape
    if shape.has("cluster"):
        return clusters.wait(frame, instr)
    if shape.has("warp"):
        member = reader(frame, instr, instr.operands[0], "u32")
        return warp_meeting(lambda batch, mask: None, member)
    form = "arrive" if shape.has("arrive") else "red" if shape.has("red") else "sync"
    operands = list(instr.operands)
    target = operands.pop(0) if form == "red" else None
    predicate = operands.pop() if form == "red" else None
    number = reader(frame, instr, operands[0], "u32")
    count = reader(frame, instr, operands[1], "u32") if len(operands) > 1 else None
    put: Writer | None = None
    holds: Reader | None = None
    if target is not None and predicate is not None:
        put = writer(frame, instr, target, "u32" if shape.has("popc") else "pred")
        holds = reader(frame, instr, predicate, "pred")
    fold = _fold(instr) if form == "red" else None

    def waiting(here: int, behind: int) -> End:
        def come(batch: Batch, mask: Mask) -> None:
            deliver = None
            if put is not None and fold is not None:
                deliver = _delivery(put, fold)
            flags = None if holds is None else holds(batch)
            _arrive(
                batch, instr, mask, behind, number(batch), None if count is None else count(batch),
                form, flags, deliver,
            )  # fmt: skip

        return come

    return waiting


def _fold(instr: Instr) -> Any:
    if instr.shape.has("popc"):
        return lambda flags, there: (flags & there).sum(axis=1, keepdims=True).astype(np.uint32)
    if instr.shape.has("and"):
        return lambda flags, there: (flags | ~there).all(axis=1, keepdims=True)
    return lambda flags, there: (flags & there).any(axis=1, keepdims=True)


def _delivery(put: Writer, fold: Any) -> Callable[[Batch, Array, Mask], None]:
    def deliver(batch: Batch, brought: Array, mask: Mask) -> None:
        flags, there = brought
        put(batch, fold(flags, there), mask)

    return deliver


def _arrive(
    batch: Batch,
    instr: Instr,
    mask: Mask,
    behind: int,
    number: Array,
    count: Array | None,
    form: str,
    flags: Array | None,
    deliver: Callable[[Batch, Array, Mask], None] | None,
) -> None:
    """Lanes come to a barrier; those that complete it set all that wait free."""
    lanes = batch.lanes(mask)
    _check_operands(batch, instr, lanes, number, count)
    if batch.device.record is not None:
        batch.device.record.arrive(batch, instr, mask)
    numbers = np.unique(np.broadcast_to(number, batch.shape)[lanes])
    for one in numbers.tolist():
        part = lanes & (number == one)
        barrier = batch.barriers.get(one)
        if barrier is None:
            barrier = batch.barriers[one] = Barrier(batch)
        barrier.lanes |= part
        if mask is not None and mask.shape[1] > 1:
            barrier.expected |= _companions(batch, part)
        barrier.expected &= ~part
        if count is not None:
            named = np.where(part, np.broadcast_to(count, batch.shape), 0).max(axis=1)
            barrier.counts = np.maximum(barrier.counts, named)
        if form == "arrive":
            batch.go(behind, None if part.all() else part)
        else:
            brought = None if flags is None else np.array(batch.full(flags))
            barrier.waiting.append(Arrival(behind, np.array(part), instr, brought, deliver))
        _complete(batch, barrier, barrier.done(batch) & part.any(axis=1))


def _check_operands(
    batch: Batch, instr: Instr, lanes: Flags, number: Array, count: Array | None
) -> None:
    """Report barriers that there are not, and counts that no warps add up to."""
    if number.max() > _LAST:
        flags = lanes & (number > _LAST)
        if flags.any():
            message = f"names barrier {int(number.max()):,}; there are 0 to {_LAST}"
            batch.device.report(batch, instr, "barrier", message, flags)
    if count is not None and (count % WARP).any():
        flags = lanes & (count % WARP != 0)
        if flags.any():
            odd = int(np.broadcast_to(count, batch.shape)[flags][0])
            message = f"counts {odd:,} threads at a barrier, no multiple of {WARP}"
            batch.device.report(batch, instr, "barrier", message, flags)


def _companions(batch: Batch, part: Flags) -> Flags:
    """The other lanes of the warps of some lanes, of those that have not left."""
    found: Flags = _whole_warps(batch, part) & batch.lanes(batch.alive) & ~part
    return found


def _check_converged(batch: Batch, barrier: Barrier, rows: Flags) -> None:
    """Report warps of which a part left without coming, or came to another instruction: those who
    wait at an `.aligned` barrier must be whole warps, all at one."""
    if not barrier.expected.any() and len(barrier.waiting) < 2:
        return
    for arrival in barrier.waiting:
        if arrival.instr.opcode == "barrier" and not arrival.instr.shape.has("aligned"):
            continue
        others = barrier.expected.copy()
        for other in barrier.waiting:
            if other.instr is not arrival.instr:
                others |= other.lanes
        apart = arrival.lanes & rows & _whole_warps(batch, others & rows)
        if apart.any():
            batch.device.report(
                batch, arrival.instr, "divergence",
                "waits at a barrier to which other lanes of its warp do not come with it", apart,
            )  # fmt: skip


def _whole_warps(batch: Batch, part: Flags) -> Flags:
    """All lanes of the warps of some lanes."""
    from ptxlint.dynamic.emulator.effects.exchange import lanes, warps

    there = warps(batch, part)
    found: Flags = lanes(batch, np.broadcast_to(there.any(axis=-1, keepdims=True), there.shape))
    return found


def _threads(warps: Flags) -> Array:
    """By CTA, the threads of some warps."""
    found: Array = warps.sum(axis=1) * WARP
    return found


def _warps_of(batch: Batch, part: Flags) -> Flags:
    """By CTA and warp: whether a lane of it is among these."""
    from ptxlint.dynamic.emulator.effects.exchange import warps

    found: Flags = warps(batch, part).any(axis=-1)
    return found


def _complete(batch: Batch, barrier: Barrier, done: Array) -> None:
    """Set those free who wait in CTAs whose barrier is complete."""
    if not done.any():
        return
    rows = done[:, None]
    _check_converged(batch, barrier, rows)
    barrier.expected &= ~rows
    if batch.clocks is not None:
        goes = np.zeros_like(_warps_of(batch, barrier.lanes))
        for arrival in barrier.waiting:
            goes |= _warps_of(batch, arrival.lanes)
        batch.clocks.meet(_warps_of(batch, barrier.lanes) & rows, goes & rows)
    barrier.lanes &= ~rows
    barrier.counts[done] = 0
    left: list[Arrival] = []
    freed = [(arrival, arrival.lanes & rows) for arrival in barrier.waiting]
    together = _together(batch, freed)
    for arrival, free in freed:
        if free.any():
            mask: Mask = None if free.all() else free
            if arrival.deliver is not None and together is not None:
                arrival.deliver(batch, together, mask)
            batch.go(arrival.place, mask)
        rest = arrival.lanes & ~rows
        if rest.any():
            left.append(arrival._replace(lanes=rest))
    barrier.waiting = left


def _together(batch: Batch, freed: list[tuple[Arrival, Flags]]) -> tuple[Array, Flags] | None:
    """What all that are set free brought to a reduction, and who they are."""
    if all(arrival.holds is None for arrival, _ in freed):
        return None
    flags = np.zeros(batch.shape, dtype=bool)
    there = np.zeros(batch.shape, dtype=bool)
    for arrival, free in freed:
        there |= free
        if arrival.holds is not None:
            flags |= arrival.holds & free
    return flags, there


def recount(batch: Batch) -> None:
    """Lanes have left the kernel: barriers that waited for them may be complete."""
    for barrier in batch.barriers.values():
        if barrier.waiting:
            _complete(batch, barrier, barrier.done(batch))


WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {"bar": _bar, "barrier": _bar}


__all__ = ["WAITING", "Arrival", "Barrier", "recount"]
