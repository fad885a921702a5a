"""What all CTAs of a launch share: its extents, parameters, global memory, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import Arena
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.launches import Extent

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.dynamic.emulator.counters import Counters
    from ptxlint.dynamic.emulator.record import Record
    from ptxlint.dynamic.emulator.sanitizer.shadow import Shadow
    from ptxlint.ir.instruction import Instr


class Fault(NamedTuple):
    """Something that a thread did wrong.

    `kind` is one of `outside` (memory of nobody), `freed` (memory of nobody any more),
    `misaligned`, `read_only`, `blank` (read before it was written), `mbarrier` (against its
    rules), `tensor_map` (one that the hardware does not take), `race`, `deadlock`, `divergence`,
    `barrier` (one with operands that it does not take), `trap`, `hang`, `uninitialised` (what is
    blank decides or gets out), `wrapped` (an address that was computed otherwise); `values` are
    numbers that tell more, by name.
    """

    kind: str
    instr: Instr
    ctaid: Extent
    tid: Extent
    message: str
    lanes: int
    """In so many lanes, the first of which is told."""
    values: dict[str, int]
    origin: Instr | None = None
    """What brought in what was done wrong with, or got in its way, if that is known."""


class Device:
    """The launch of one kernel."""

    def __init__(
        self,
        grid: Extent,
        block: Extent,
        shared: int,
        parameters: NDArray[np.uint8],
        arena: Arena,
    ) -> None:
        self.grid = grid
        self.block = block
        self.shared = shared
        """Bytes of shared memory of a CTA, static and dynamic."""
        self.parameters = parameters
        self.arena = arena
        self.faults: list[Fault] = []
        self.counters: Counters | None = None
        self.record: Record | None = None
        self.is_muted = False
        """True while a step is run that is no part of the launch: what it does is not reported."""
        self.shadow: Shadow | None = None
        """Who touched each byte of global memory last, where races are looked for."""
        self._seen: dict[tuple[str, int], int] = {}

    def special(self) -> dict[str, Array]:
        """Special registers that are alike for all lanes."""
        words = {
            "%smid": 0, "%nsmid": 1, "%gridid": 1, "%cluster_ctarank": 0,
            "%cluster_nctarank": 1, "%dynamic_smem_size": self.shared,
            "%total_smem_size": self.shared, "%clock": 0, "%globaltimer_lo": 0,
        }  # fmt: skip
        longer = {"%clock64": 0, "%globaltimer": 0}
        return {
            **{name: np.array([[word]], dtype=np.uint32) for name, word in words.items()},
            **{name: np.array([[word]], dtype=np.uint64) for name, word in longer.items()},
        }

    def report(
        self,
        batch: Batch,
        instr: Instr,
        kind: str,
        message: str,
        lanes: Flags,
        origin: Instr | None = None,
        **values: int,
    ) -> None:
        """Note a fault of the lanes of a mask; of each kind one an instruction."""
        if self.is_muted:
            return
        count = int(np.broadcast_to(lanes, batch.shape).sum())
        key = kind, instr.index
        at = self._seen.get(key)
        if at is not None:
            old = self.faults[at]
            self.faults[at] = old._replace(lanes=old.lanes + count)
            return
        cta, thread = (int(x) for x in np.argwhere(np.broadcast_to(lanes, batch.shape))[0])
        width, height, _ = self.block
        tid = thread % width, thread // width % height, thread // (width * height)
        self._seen[key] = len(self.faults)
        self.faults.append(Fault(kind, instr, batch.ctas[cta], tid, message, count, values, origin))


__all__ = ["Device", "Fault"]
