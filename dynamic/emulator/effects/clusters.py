"""Clusters of one CTA (PTX ISA, "barrier.cluster", "mapa", "getctarank"), larger ones are not run.

All threads and all shared memory of such a cluster are its CTA's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Step
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.holding import stir, until
from ptxlint.dynamic.emulator.operands import reader, writer
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting


class ClusterBarrier:
    """The barrier of the clusters of a batch: phases that are complete, by CTA; who has come to the
    one that is not, and to which each thread came last."""

    def __init__(self, batch: Batch) -> None:
        self.phase = np.zeros((batch.shape[0], 1), dtype=np.int64)
        self.arrived = np.zeros(batch.shape, dtype=bool)
        self.entered = np.zeros(batch.shape, dtype=np.int64)

    def come(self, batch: Batch, mask: Mask) -> None:
        """Threads arrive."""
        lanes = batch.lanes(mask)
        self.arrived |= lanes
        self.entered = np.where(lanes, self.phase, self.entered)
        batch.events += 1
        if batch.clocks is not None:
            cta, thread = np.nonzero(lanes)
            batch.clocks.hand_over(cta, thread // WARP, "cluster")
        self.complete(batch)

    def complete(self, batch: Batch) -> None:
        """Begin the next phase where all have come that have not left."""
        done = (self.arrived | ~batch.lanes(batch.alive)).all(axis=1) & self.arrived.any(axis=1)
        if done.any():
            self.phase[done] += 1
            self.arrived[done] = False
            if batch.clocks is not None:
                for cta in np.flatnonzero(done).tolist():
                    batch.clocks.complete(cta, "cluster")
            stir(batch, done)


def _barrier_of(batch: Batch) -> ClusterBarrier:
    found: ClusterBarrier | None = batch.cluster
    if found is None:
        found = batch.cluster = ClusterBarrier(batch)
    return found


def _arrive(frame: Frame, instr: Instr) -> Step | None:
    if instr.shape.has("cluster") and instr.shape.has("arrive"):
        return lambda batch, mask: _barrier_of(batch).come(batch, mask)
    return None


def wait(frame: Frame, instr: Instr) -> Waiting | None:
    """`barrier.cluster.wait`; None for the other instructions of that barrier."""
    if not instr.shape.has("wait"):
        return None

    def is_over(batch: Batch, mask: Mask) -> Flags:
        barrier = _barrier_of(batch)
        barrier.complete(batch)
        out: Flags = barrier.entered < barrier.phase
        return out

    def go_on(batch: Batch, found: Flags, mask: Mask) -> None:
        if batch.clocks is not None:
            cta, thread = np.nonzero(batch.lanes(mask) & found)
            batch.clocks.pick_up(cta, thread // WARP, "cluster")

    def why(batch: Batch, lane: Flags) -> str:
        (cta, _), *_ = np.argwhere(lane)
        come = _barrier_of(batch).arrived[cta]
        every = int((come | batch.lanes(batch.alive)[cta]).sum())
        return f"{int(come.sum())} of {every} threads have arrived at the barrier of the cluster"

    return until(is_over, go_on, why, is_try=False)


def _mapa(frame: Frame, instr: Instr) -> Step:
    """An address of a CTA of the cluster; there is only the own one."""
    target, source, rank = instr.operands
    kind = instr.shape.type
    read, which = reader(frame, instr, source, kind), reader(frame, instr, rank, "u32")
    put = writer(frame, instr, target, kind)

    def step(batch: Batch, mask: Mask) -> None:
        others = batch.some(mask, which(batch) != 0)
        if others is None or others.any():
            batch.device.report(
                batch, instr, "outside", "asks for a CTA that its cluster has not",
                batch.lanes(others),
            )  # fmt: skip
        put(batch, read(batch), mask)

    return step


def _rank(frame: Frame, instr: Instr) -> Step:
    put = writer(frame, instr, instr.operands[0], "u32")
    nothing: Array = np.zeros((1, 1), dtype=np.uint32)
    return lambda batch, mask: put(batch, nothing, mask)


def check_cluster(instr: Instr, extent: tuple[int, ...]) -> None:
    """Raises `UnsupportedError` for a kernel whose clusters have several CTAs."""
    if any(int(size) > 1 for size in extent):
        size = ", ".join(str(x) for x in extent)
        raise UnsupportedError(instr, f"clusters of ({size}) CTAs: only clusters of one are run")


STEPS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {
    "barrier": _arrive, "mapa": _mapa, "getctarank": _rank,
}  # fmt: skip


__all__ = ["STEPS", "ClusterBarrier", "check_cluster", "wait"]
