"""Accesses to one byte that nothing orders, at least one of them a plain write.

Within a CTA, warps are ordered by barriers. Accesses of different CTAs are ordered by nothing that
is followed here: a kernel that hands data from CTA to CTA through fences and atomics is not judged
in that. Writes that leave a byte as it is harm nobody and are not told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.sanitizer.clocks import Clocks
from ptxlint.dynamic.emulator.sanitizer.shadow import Shadow, stamp, taken_apart

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.ir.instruction import Instr

_WARP: Final = 32
Places = NDArray[np.int64]


class RaceWatch:
    """The races of one batch in its shared memory, and with other CTAs in global memory."""

    def __init__(self, batch: Batch, first: int, global_: Shadow | None) -> None:
        ctas, threads = batch.shape
        self.clocks = Clocks(ctas, -(-threads // _WARP))
        self._first = first
        """How many CTAs ran before this batch: CTAs are told apart by their number."""
        self._shared = Shadow(len(batch.shared), False)
        self._global = global_

    def access(
        self,
        batch: Batch,
        instr: Instr,
        lanes: Lanes,
        space: str,
        memory: NDArray[np.uint8],
        place: Places,
        size: int,
        allowed: Flags | None,
        writes: bool,
        reads: bool,
        values: Array | None,
    ) -> None:
        """Hold an access against those before it, and note it. `values` are what is written, one
        element a lane, None if that is not known before."""
        shadow = self._shared if space == "shared" else self._global
        if shadow is None or not len(place):
            return
        is_atomic = writes and reads
        cta, warp = lanes.cta, lanes.thread // _WARP
        if allowed is not None:
            cta, warp, place = cta[allowed], warp[allowed], place[allowed]
            values = None if values is None else values[allowed]
        watched = _Watched(
            self, batch, instr, lanes, allowed, shadow, cta, warp, place, size, is_atomic
        )
        if writes:
            watched.write(memory, values)
        else:
            watched.read()

    def number(self, cta: Places) -> NDArray[np.int32]:
        """The CTAs' numbers in the launch, from 1."""
        return (cta + self._first + 1).astype(np.int32)


class _Watched:
    """One access while it is looked at: rows are lanes, columns their bytes."""

    def __init__(
        self,
        watch: RaceWatch,
        batch: Batch,
        instr: Instr,
        lanes: Lanes,
        allowed: Flags | None,
        shadow: Shadow,
        cta: Places,
        warp: Places,
        place: Places,
        size: int,
        is_atomic: bool,
    ) -> None:
        self._watch = watch
        self._batch = batch
        self._instr = instr
        self._lanes = lanes
        self._allowed = allowed
        self._shadow = shadow
        self._cta = cta[:, None]
        self._warp = warp[:, None]
        self._at = place[:, None] + np.arange(size)
        self._size = size
        self._is_atomic = is_atomic
        self._is_shared = shadow.writer is None

    def read(self) -> None:
        """A read: against the last write."""
        self._report(self._against(self._shadow.written, self._shadow.writer), "written")
        stamps = self._stamps()
        first, second = self._shadow.read
        # The first place is for a reader that all later ones have seen; else the second one.
        takes_first = ~self._against(first, self._shadow.reader, plain_too=True)
        at = self._at
        first[at[takes_first]] = stamps[takes_first]
        second[at[~takes_first]] = stamps[~takes_first]
        if self._shadow.reader is not None:
            numbers = np.broadcast_to(self._watch.number(self._cta), at.shape)
            self._shadow.reader[at] = numbers

    def write(self, memory: NDArray[np.uint8], values: Array | None) -> None:
        """A write: against the last write, and the reads since."""
        changes = self._changes(memory, values)
        shadow = self._shadow
        self._report(self._against(shadow.written, shadow.writer) & changes, "written")
        for read in shadow.read:
            self._report(self._against(read, shadow.reader) & changes, "read")
        if values is not None:
            self._among_themselves(values)
        shadow.written[self._at] = self._stamps()
        for read in shadow.read:
            read[self._at] = 0
        if shadow.writer is not None:
            shadow.writer[self._at] = np.broadcast_to(self._watch.number(self._cta), self._at.shape)

    def _stamps(self) -> NDArray[np.int32]:
        time = self._watch.clocks.now(self._cta, self._warp)
        return np.broadcast_to(stamp(self._warp, time, self._is_atomic), self._at.shape)

    def _changes(self, memory: NDArray[np.uint8], values: Array | None) -> Any:
        """Where a byte becomes another one than it is."""
        if values is None:
            return np.True_
        new = np.ascontiguousarray(values).view(np.uint8).reshape(-1, self._size)
        return memory[self._at] != new

    def _against(self, stamps: Any, owners: Any, plain_too: bool = False) -> Flags:
        """Where what a stamp tells of is unordered with this access."""
        touch = taken_apart(stamps[self._at])
        clocks = self._watch.clocks
        is_other = touch.is_any & (touch.warp != self._warp)
        unordered = is_other & ~clocks.is_seen(
            self._cta, self._warp, np.minimum(touch.warp, clocks.known.shape[1] - 1), touch.time
        )
        if owners is not None:
            owner = owners[self._at]
            elsewhere = (owner != 0) & (owner != self._watch.number(self._cta))
            unordered = np.where(elsewhere, touch.is_any, unordered)
        if self._is_atomic and not plain_too:
            unordered = unordered & ~touch.is_atomic
        out: Flags = unordered
        return out

    def _among_themselves(self, values: Array) -> None:
        """Lanes that write different numbers to one place in one instruction."""
        place = self._at[:, 0]
        order = np.argsort(place, kind="stable")
        same = place[order][1:] == place[order][:-1]
        if not same.any():
            return
        words = np.ascontiguousarray(values).view(np.uint8).reshape(-1, self._size)[order]
        differs = same & (words[1:] != words[:-1]).any(axis=1)
        if self._is_shared:
            # Lanes of one warp that reduced together hold one result, up to the order of sums: all
            # of them store it, and any will do.
            warp = self._warp[:, 0][order]
            differs &= warp[1:] != warp[:-1]
        if differs.any():
            flags = np.zeros(len(place), dtype=bool)
            flags[order[1:][differs]] = True
            self._tell(flags, "another lane writes another number to the same place")

    def _report(self, which: Flags, what: str) -> None:
        if which.any():
            self._tell(which.any(axis=1), f"other threads have {what} it, and nothing orders them")

    def _tell(self, which: Flags, message: str) -> None:
        chosen = np.flatnonzero(which)
        flags = np.zeros(len(self._lanes.index), dtype=bool)
        places = np.arange(len(flags))
        if self._allowed is not None:
            places = places[self._allowed]
        flags[places[chosen]] = True
        verb = "updates" if self._is_atomic else "accesses"
        space = self._instr.shape.space or "generic"
        self._batch.device.report(
            self._batch, self._instr, "race", f"{verb} {space} memory while {message}",
            self._lanes.flagged(flags), place=int(self._at[chosen[0], 0]), size=self._size,
        )  # fmt: skip


__all__ = ["RaceWatch"]
