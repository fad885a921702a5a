"""Loads and stores on the memories of a batch, lane by lane.

Addresses come as one number a lane that takes part. What must not be accessed is reported and left
out: such a load brings zeros and such a store is lost, so that the run goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import FREED, ORIGIN, OUTSIDE, READ_ONLY, WRITTEN, Allocation
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, expanded, some
from ptxlint.dynamic.emulator.spaces import WINDOW_SIZE, WINDOWS

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.ir.instruction import Instr

Addresses = NDArray[np.int64]
_DENSE: Final = 64
"""Accesses are dense if they span less than so many bytes a lane."""
_SHIFTS: Final = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
_WIDEST: Final = 16
"""Bytes that numpy moves as one number."""


class Lanes:
    """The lanes that take part in an access, one after the other.

    `cta` and `thread` are their places; `index` the number of the lane in the batch. With all lanes
    of a batch, nothing is picked out. What is asked for often is kept; none of it may be changed.
    """

    __slots__ = ("_cta", "_shape", "_shared", "_stride", "_thread", "flags", "index", "is_all")

    def __init__(self, batch: Batch, flags: Flags | None) -> None:
        # Not the batch itself, which keeps these: it is to be freed when it has run.
        self._shape, self._stride = batch.shape, batch.shared_stride
        self.flags = flags
        self.is_all = flags is None
        if flags is None:
            self.index: NDArray[np.int64] = np.arange(batch.shape[0] * batch.shape[1])
        else:
            self.index = batch.full(flags).ravel().nonzero()[0]
        self._cta: NDArray[np.int64] | None = None
        self._thread: NDArray[np.int64] | None = None
        self._shared: NDArray[np.int64] | None = None

    @property
    def cta(self) -> NDArray[np.int64]:
        """The CTA of each."""
        if self._cta is None:
            self._cta = self.index // self._shape[1]
        return self._cta

    @property
    def thread(self) -> NDArray[np.int64]:
        """The number of each in its CTA."""
        if self._thread is None:
            self._thread = self.index - self.cta * self._shape[1]
        return self._thread

    @property
    def shared(self) -> NDArray[np.int64]:
        """Where the shared memory of each one's CTA begins."""
        if self._shared is None:
            self._shared = self.cta * self._stride
        return self._shared

    def repeated(self, count: int | Array) -> Lanes:
        """Each of these so many times (one number, or one a lane), as for an access to many
        places."""
        return self._at(np.repeat(self.index, count))

    def only(self, which: Flags | Addresses) -> Lanes:
        """Some of these: those that flags hold for, or by their numbers among these."""
        return self._at(self.index[which])

    def _at(self, index: NDArray[np.int64]) -> Lanes:
        out = Lanes.__new__(Lanes)
        out._shape, out._stride, out.flags = self._shape, self._stride, self.flags
        out.is_all, out.index = False, index
        out._cta = out._thread = out._shared = None
        return out

    def pick(self, values: Array) -> Array:
        """Values of all lanes, for those that take part."""
        if values.size == 1:
            out = np.empty(len(self.index), values.dtype)
            out[...] = values.reshape(())
            return out
        full = expanded(values, self._shape).ravel()
        return full if self.is_all else full[self.index]

    def spread(self, values: Array) -> Array:
        """What was found for those that take part, over all lanes; zeros in the others."""
        if self.is_all:
            return values.reshape(self._shape)
        out = np.zeros(self._shape, dtype=values.dtype)
        out.ravel()[self.index] = values
        return out

    def flagged(self, which: Flags) -> Flags:
        """Some of those that take part, as a mask over all lanes."""
        out = np.zeros(self._shape, dtype=bool)
        out.ravel()[self.index[which]] = True
        return out


class Memory:
    """Where addresses of a state space lead to: an array of bytes and places in it."""

    def __init__(self, space: str) -> None:
        self.space = space

    def resolve(
        self,
        batch: Batch,
        instr: Instr,
        lanes: Lanes,
        address: Addresses,
        size: int,
        writes: bool,
        reads: bool,
        values: Array | None = None,
    ) -> tuple[NDArray[np.uint8], Addresses, Flags | None]:
        """The bytes of the space, where in them each lane's access begins, and which lanes may do
        it (None: all). `size` is in bytes, and addresses must be multiples of it; `values` are what
        a lane writes, where that is known."""
        device, faulty = batch.device, None
        odd = size - 1 if size & (size - 1) == 0 else 0
        if odd and int(np.bitwise_or.reduce(address)) & odd:
            is_odd = address & odd != 0
            first = int(address[is_odd][0])
            device.report(
                batch, instr, "misaligned",
                f"address {first:#x} is no multiple of {size}", lanes.flagged(is_odd),
                address=first, size=size,
            )  # fmt: skip
            faulty = is_odd
        if device.counters is not None:
            device.counters.accessed(batch, instr, self.space, lanes, address, size)
        memory, place, outside = self._locate(batch, lanes, address, size)
        if outside is not None:
            self._outside(batch, instr, lanes, address, size, outside, writes)
            faulty = outside if faulty is None else faulty | outside
        if self.space == "global":
            refused = _watch(batch, instr, lanes, place, size, faulty, writes, reads)
            if refused is not None:
                faulty = refused if faulty is None else faulty | refused
        allowed = None if faulty is None else ~faulty
        if batch.observer is not None:
            batch.observer(self.space, place, size, allowed, writes)
        if device.record is not None and self.space == "global":
            device.record.access(batch, instr, lanes, place, size, allowed, writes, reads, values)
        if batch.watch is not None and self.space in ("shared", "global"):
            batch.watch.access(
                batch, instr, lanes, self.space, memory, place, size, allowed, writes, reads, values
            )
        if batch.arrivals is not None and self.space == "shared":
            batch.arrivals.access(instr, lanes, place, size, allowed, writes, reads)
        return memory, place, allowed

    def _locate(
        self, batch: Batch, lanes: Lanes, address: Addresses, size: int
    ) -> tuple[NDArray[np.uint8], Addresses, Flags | None]:
        if self.space == "global":
            arena = batch.device.arena
            place = address - ORIGIN
            if not len(address) or arena.holds(*_span(address, size)):
                return arena.bytes, place, None
            inside = (place >= 0) & (place + size <= len(arena.bytes))
            safe = np.where(inside, place, 0)
            state = arena.state
            inside &= (state[safe] != OUTSIDE) & (state[safe + (size - 1) * inside] != OUTSIDE)
            return arena.bytes, np.where(inside, place, 0), None if inside.all() else ~inside
        if self.space == "shared":
            limit, start = batch.device.shared, lanes.shared
            memory = batch.shared
        elif self.space == "local":
            limit, start = batch.program.local, lanes.index * batch.local_stride
            memory = batch.local
        else:
            memory = batch.device.parameters
            limit, start = len(memory), np.zeros_like(address)
        low, high = _span(address, size) if len(address) else (0, 0)
        if low >= 0 and high <= limit:
            return memory, start + address, None
        outside = (address < 0) | (address + size > limit)
        return memory, np.where(outside, 0, start + address), outside

    def _outside(
        self,
        batch: Batch,
        instr: Instr,
        lanes: Lanes,
        address: Addresses,
        size: int,
        outside: Flags,
        writes: bool,
    ) -> None:
        first = int(address[outside][0])
        verb = "writes" if writes else "reads"
        where = f"{size} bytes at {first:#x} of {self.space} memory"
        if self.space == "global":
            near = batch.device.arena.near(first)
            if near is not None:
                where = f"{size} bytes, {_beside(first, near)} {near.name}"
        batch.device.report(
            batch, instr, "outside", f"{verb} {where}", lanes.flagged(outside),
            address=first, size=size,
        )  # fmt: skip


def _beside(address: int, near: Allocation) -> str:
    """Where an access begins that does not lie in an allocation as a whole."""
    if address < near.start:
        return f"{near.start - address:,} bytes before the start of"
    if address < near.end:
        return f"{near.end - address:,} bytes before the end, and on beyond it, of"
    beyond = address - near.end
    return f"{beyond:,} bytes beyond the end of" if beyond else "right behind the end of"


def _watch(
    batch: Batch,
    instr: Instr,
    lanes: Lanes,
    place: Addresses,
    size: int,
    faulty: Flags | None,
    writes: bool,
    reads: bool,
) -> Flags | None:
    """Hold an access to global memory against the state of its bytes; the lanes refused."""
    arena = batch.device.arena
    if not len(place):
        return None
    low, high = _span(place, size)
    if faulty is None and arena.is_plain(low, high, writes, high - low <= _DENSE * len(place)):
        return None
    state = arena.state[place]
    refused = None
    good = np.ones(len(place), dtype=bool) if faulty is None else ~faulty
    freed = good & (state & FREED != 0)
    if some(freed):
        _told_freed(batch, instr, lanes, place, size, freed, writes)
        refused = freed
        good &= ~freed
    if writes:
        locked = good & (state & READ_ONLY != 0)
        if some(locked):
            batch.device.report(
                batch, instr, "read_only", "writes memory that is read only", lanes.flagged(locked)
            )
            refused = locked if refused is None else refused | locked
            good &= ~locked
    if reads:
        blank = good & (state & WRITTEN == 0)
        if some(blank):
            batch.device.report(
                batch, instr, "blank", "reads memory that nothing was written to",
                lanes.flagged(blank), address=int(place[blank][0]) + ORIGIN, size=size,
            )  # fmt: skip
    if writes:
        marks = np.full((1, size), WRITTEN, dtype=np.uint8)
        scatter(arena.state, place[good], joined(marks, size), size)
    return refused


def _told_freed(
    batch: Batch,
    instr: Instr,
    lanes: Lanes,
    place: Addresses,
    size: int,
    freed: Flags,
    writes: bool,
) -> None:
    first = int(place[freed][0]) + ORIGIN
    owner = batch.device.arena.at(first)
    assert owner is not None
    verb = "writes" if writes else "reads"
    batch.device.report(
        batch, instr, "freed",
        f"{verb} {size} bytes at byte {first - owner.start:,} of {owner.name}, whose memory was "
        "freed", lanes.flagged(freed), address=first, size=size,
    )  # fmt: skip


def _span(place: Addresses, size: int) -> tuple[int, int]:
    """The first byte of some accesses, and the one behind the last."""
    return int(np.minimum.reduce(place)), int(np.maximum.reduce(place)) + size


def joined(pieces: Array, size: int) -> Array:
    """Rows of `size` bytes, whatever their pieces, as one number each: unsigned, of 16 bytes
    complex, as a container, of 32 bytes two of these."""
    words = pieces.view(_container(size))
    return words if size > _WIDEST else words[:, 0]


def blank(count: int, size: int) -> Array:
    """So many numbers as of `joined`, all 0."""
    return joined(np.zeros((count, size), dtype=np.uint8), size)


def gather(memory: NDArray[np.uint8], place: Addresses, size: int) -> Array:
    """So many bytes at each place, as numbers of `joined`."""
    if size > _WIDEST:
        halves = [gather(memory, place + at, _WIDEST) for at in range(0, size, _WIDEST)]
        return np.stack(halves, axis=-1)
    shift = _SHIFTS[size]
    out: Array = memory[: len(memory) >> shift << shift].view(_container(size))[place >> shift]
    return out


def scatter(memory: NDArray[np.uint8], place: Addresses, values: Array, size: int) -> None:
    """Put numbers of `joined` where they belong; of several at one place the last one stays."""
    if size > _WIDEST:
        for at in range(size // _WIDEST):
            half = np.ascontiguousarray(values[:, at])
            scatter(memory, place + _WIDEST * at, half, _WIDEST)
        return
    kind, shift = _container(size), _SHIFTS[size]
    memory[: len(memory) >> shift << shift].view(kind)[place >> shift] = values.view(kind)


def _container(size: int) -> np.dtype[Any]:
    return RAW[8 * size] if size < _WIDEST else np.dtype(np.complex128)


def generic(address: Addresses) -> list[tuple[str, Flags]]:
    """The state spaces that generic addresses lie in, each with the lanes whose do."""
    found: list[tuple[str, Flags]] = []
    rest = np.ones(len(address), dtype=bool)
    low = int(address.min())
    if low >= ORIGIN:
        return [("global", rest)]
    for space, start in WINDOWS.items():
        inside = (address >= start) & (address < start + WINDOW_SIZE)
        if inside.any():
            found.append((space, inside))
            rest = rest & ~inside
    if rest.any():
        found.append(("global", rest))
    return found


__all__ = ["Addresses", "Lanes", "Memory", "blank", "gather", "generic", "joined", "scatter"]
