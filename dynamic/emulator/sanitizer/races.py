"""Accesses to one byte that nothing orders, at least one of them a plain write.

Within a CTA, warps are ordered by barriers, lanes of a warp by the instructions at which they meet,
and CTAs by what they hand to each other through strong accesses and fences (`between`). Writes that
leave a byte as it is harm nobody and are not told. Lanes of a warp are held against each other in
shared memory alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.sanitizer.clocks import Clocks
from ptxlint.dynamic.emulator.sanitizer.shadow import LATEST, Shadow, Touch, stamp, taken_apart

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch, Mask
    from ptxlint.dynamic.emulator.sanitizer.stored_reads import StoredReads
    from ptxlint.ir.instruction import Instr

_WARP: Final = 32
_RELEASING: Final = ("release", "acq_rel", "sc")
_STRONG: Final = (*_RELEASING, "acquire", "relaxed", "volatile", "mmio")
"""Qualifiers of accesses that may meet each other at one place."""
Places = NDArray[np.int64]


class RaceWatch:
    """The races of one batch in its shared memory, and with other CTAs in global memory."""

    def __init__(
        self,
        batch: Batch,
        clocks: Clocks,
        first: int,
        global_: Shadow | None,
        stored: StoredReads,
    ) -> None:
        self.clocks = clocks
        self._stored = stored
        self._waiting: dict[Instr, _Watched] = {}
        """Reads whose numbers count once they are stored, by load."""
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
        is_strong = (writes and reads) or any(instr.shape.has(word) for word in _STRONG)
        cta, thread = lanes.cta, lanes.thread
        if allowed is not None:
            cta, thread, place = cta[allowed], thread[allowed], place[allowed]
            values = None if values is None else values[allowed]
        if is_strong and shadow is self._global:
            self._hand_over(instr, cta, thread // _WARP, place, writes, reads)
        watched = _Watched(
            self, batch, instr, lanes, allowed, shadow, cta, thread, place, size, is_strong
        )
        if writes:
            self._count(instr, cta, thread)
            watched.write(memory, values)
        elif instr in self._stored.stores:
            self._waiting[instr] = watched
        else:
            watched.read()

    def _count(self, store: Instr, cta: Places, thread: Places) -> None:
        """Note the reads of what lanes store now."""
        for load in self._stored.loads.get(store, ()):
            read = self._waiting.get(load)
            if read is not None:
                early, later = read.parted(cta, thread)
                self._waiting[load] = later
                early.read()

    def converge(self, batch: Batch, mask: Mask) -> None:
        """Lanes of warps meet."""
        from ptxlint.dynamic.emulator.effects.exchange import warps

        self.clocks.converge(warps(batch, batch.lanes(mask)).any(axis=-1))

    def fence(self, lanes: Lanes) -> None:
        """Lanes run a fence that other CTAs can rely on."""
        if self._global is not None:
            for cta in np.unique(lanes.cta).tolist():
                self._global.between.fence(cta + self._first + 1)

    def _hand_over(
        self, instr: Instr, cta: Places, warp: Places, place: Places, writes: bool, reads: bool
    ) -> None:
        """Tell what CTAs leave for others at places in global memory, and take along."""
        assert self._global is not None
        between, known = self._global.between, self.clocks.known
        releases = any(instr.shape.has(word) for word in _RELEASING)
        for one, own, where in sorted(
            set(zip(cta.tolist(), warp.tolist(), place.tolist(), strict=True))
        ):
            number = one + self._first + 1
            if reads:
                between.take(number, where)
            if writes and (releases or between.has_fenced(number)):
                between.leave(number, where, known[one, own, : known.shape[1]].copy())
                known[one, own, own] += 1

    def seen(self, cta: Places, owner: NDArray[np.int32], touch: Touch) -> Flags:
        """Where a CTA has been told of what a warp of another one did."""
        assert self._global is not None
        number = np.broadcast_to(self.number(cta), owner.shape)
        out = np.zeros(owner.shape, dtype=bool)
        for one in np.unique(number[touch.is_any]).tolist():
            known = self._global.between.known(one)
            for other in np.unique(owner[(number == one) & touch.is_any]).tolist():
                times = known.get(other)
                if times is not None:
                    here = (number == one) & (owner == other)
                    out[here] = times[touch.warp[here]] >= touch.time[here]
        return out

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
        thread: Places,
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
        self._thread = thread[:, None]
        self._warp = self._thread // _WARP
        self._at = place[:, None] + np.arange(size)
        self._size = size
        self._is_atomic = is_atomic
        self._is_shared = shadow.writer is None

    def parted(self, cta: Places, thread: Places) -> tuple[_Watched, _Watched]:
        """The access in some lanes, and in all others."""
        many = self._batch.shape[1]
        is_there = np.isin(self._cta[:, 0] * many + self._thread[:, 0], cta * many + thread)
        return self._only(is_there), self._only(~is_there)

    def _only(self, which: Flags) -> _Watched:
        chosen = np.arange(len(self._lanes.index))
        if self._allowed is not None:
            chosen = chosen[self._allowed]
        return _Watched(
            self._watch, self._batch, self._instr, self._lanes.only(chosen[which]), None,
            self._shadow, self._cta[which, 0], self._thread[which, 0], self._at[which, 0],
            self._size, self._is_atomic,
        )  # fmt: skip

    def read(self) -> None:
        """A read: against the last write."""
        self._report(self._against(self._shadow.written, self._shadow.writer), "written")
        self._report_lanes(self._by_lanes(self._shadow.written), "written")
        if self._instr.shape.has("nc"):
            self._read_as_constant()
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

    def _read_as_constant(self) -> None:
        """A read that promises that nobody writes there during the launch."""
        shadow = self._shadow
        if shadow.constant is None:
            shadow.constant = np.zeros(len(shadow.written), dtype=bool)
        shadow.constant[self._at] = True
        broken = shadow.written[self._at] != 0
        if broken.any():
            self._tell(broken.any(axis=1), "the launch has written it, despite .nc")

    def write(self, memory: NDArray[np.uint8], values: Array | None) -> None:
        """A write: against the last write, and the reads since."""
        changes = self._changes(memory, values)
        shadow = self._shadow
        self._report(self._against(shadow.written, shadow.writer) & changes, "written")
        self._report_lanes(self._by_lanes(shadow.written) & changes, "written")
        for read in shadow.read:
            self._report(self._against(read, shadow.reader) & changes, "read")
            self._report_lanes(self._by_lanes(read) & changes, "read")
        if shadow.constant is not None:
            broken = shadow.constant[self._at] & changes
            if broken.any():
                self._tell(broken.any(axis=1), "a load with .nc took it for constant")
        if values is not None:
            self._among_themselves(values)
        shadow.written[self._at] = self._stamps()
        for read in shadow.read:
            read[self._at] = 0
        if shadow.writer is not None:
            shadow.writer[self._at] = np.broadcast_to(self._watch.number(self._cta), self._at.shape)

    def _stamps(self) -> NDArray[np.int32]:
        time = self._watch.clocks.now(self._cta, self._warp)
        return np.broadcast_to(stamp(self._thread, time, self._is_atomic), self._at.shape)

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
            elsewhere = (owner != 0) & (owner != self._watch.number(self._cta)) & touch.is_any
            if elsewhere.any():
                seen = self._watch.seen(self._cta, owner, touch._replace(is_any=elsewhere))
                unordered = np.where(elsewhere, ~seen, unordered)
        if self._is_atomic and not plain_too:
            unordered = unordered & ~touch.is_atomic
        out: Flags = unordered
        return out

    def _by_lanes(self, stamps: Any) -> Flags:
        """Where another lane of the warp left a stamp, and they have not met since."""
        if not self._is_shared:
            return np.zeros((1, 1), dtype=bool)
        touch = taken_apart(stamps[self._at])
        now = self._watch.clocks.now(self._cta, self._warp)
        out: Flags = touch.is_any & (touch.warp == self._warp) & (touch.thread != self._thread)
        out &= (touch.time == now) & (now < LATEST)
        if self._is_atomic:
            out &= ~touch.is_atomic
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

    def _report_lanes(self, which: Flags, what: str) -> None:
        if which.any():
            self._tell(
                which.any(axis=1), f"another lane of its warp has {what} it, and they did not meet"
            )

    def _tell(self, which: Flags, message: str) -> None:
        chosen = np.flatnonzero(which)
        flags = np.zeros(len(self._lanes.index), dtype=bool)
        places = np.arange(len(flags))
        if self._allowed is not None:
            places = places[self._allowed]
        flags[places[chosen]] = True
        verb = "updates" if self._instr.opcode in ("atom", "red") else "accesses"
        space = self._instr.shape.space or "generic"
        self._batch.device.report(
            self._batch, self._instr, "race", f"{verb} {space} memory while {message}",
            self._lanes.flagged(flags), place=int(self._at[chosen[0], 0]), size=self._size,
        )  # fmt: skip


__all__ = ["RaceWatch"]
