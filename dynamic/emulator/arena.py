"""Global memory: all allocations of a run in one array, with a state for each byte.

Device addresses are offsets into the array plus `ORIGIN`. Allocations are aligned to 256 bytes and
kept apart by bytes that belong to nobody: twice the size of the larger neighbour, within `GAP` and
`WIDEST_GAP`, so that an access beyond an end does not come to another allocation. No memory is
taken for what nothing touches.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array

ORIGIN: Final = 1 << 32
"""The device address of the first byte: far from zero, so that a null pointer is told."""
GAP: Final = 256 << 10
WIDEST_GAP: Final = 64 << 20
_ALIGNMENT: Final = 256

OUTSIDE: Final = 0
BLANK: Final = 1
"""Allocated, nothing written yet."""
WRITTEN: Final = 2
READ_ONLY: Final = 4
"""Added to the state of bytes that the kernel may not write."""
FREED: Final = 8
"""The state of bytes that were somebody's and are nobody's now."""


class Allocation(NamedTuple):
    """Bytes `start` up to, not including, `end` of device addresses."""

    name: str
    start: int
    end: int


class _Pending(NamedTuple):
    start: int
    size: int
    contents: NDArray[np.uint8] | None
    state: int | NDArray[np.uint8]
    """Of all bytes, or of each."""


class Arena:
    """Global memory of one run."""

    def __init__(self) -> None:
        self.bytes: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self.state: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self.allocations: list[Allocation] = []
        self._pending: list[_Pending] = []
        self._end = 0
        self._before = 0
        """The size of the allocation before."""
        self._views: dict[np.dtype[np.generic], Array] = {}
        self._starts: list[int] = []
        self._is_sealed = False
        self._contents: dict[int, int] = {}
        """By its start, the state that all bytes of an allocation have and keep."""

    def allocate(
        self,
        name: str,
        size: int,
        contents: Array | None = None,
        *,
        shift: int = 0,
        is_read_only: bool = False,
        written: NDArray[np.bool_] | None = None,
    ) -> Allocation:
        """Set `size` bytes aside; `shift` puts the first one so many bytes behind a multiple of
        256. Without contents they are blank, else those that are not `written` (None: all are)."""
        after = self._end + max(GAP, min(2 * max(size, self._before), WIDEST_GAP))
        start = -(-after // _ALIGNMENT) * _ALIGNMENT + shift
        self._end, self._before = start + size, size
        found = Allocation(name, ORIGIN + start, ORIGIN + start + size)
        self.allocations.append(found)
        flat = None if contents is None else np.ascontiguousarray(contents).view(np.uint8).ravel()
        kept = READ_ONLY if is_read_only else 0
        state: int | NDArray[np.uint8] = (BLANK if flat is None else WRITTEN) | kept
        if flat is not None and written is not None:
            state = np.where(written, WRITTEN | kept, BLANK | kept).astype(np.uint8)
        self._pending.append(_Pending(start, size, flat, state))
        return found

    def free(self, allocation: Allocation) -> None:
        """Give an allocation back: each later access to it is told. Its bytes stay as they are."""
        start, end = allocation.start - ORIGIN, allocation.end - ORIGIN
        for at, one in enumerate(self._pending):
            if one.start == start:
                self._pending[at] = one._replace(state=FREED)
                return
        self.state[start:end] = FREED
        self._contents[start] = FREED

    def seal(self) -> None:
        """Lay out what was allocated; before the first access. Nothing is allocated later."""
        if self._is_sealed:
            return
        self._is_sealed = True
        size = -(-(self._end + GAP) // 16) * 16
        self.bytes = np.zeros(size, dtype=np.uint8)
        self.state = np.zeros(size, dtype=np.uint8)
        for start, length, contents, state in self._pending:
            self.state[start : start + length] = state
            if contents is not None:
                self.bytes[start : start + length] = contents
                if isinstance(state, int):
                    self._contents[start] = state
        self._pending.clear()
        self._views.clear()
        self._starts = [a.start for a in self.allocations]

    def view(self, kind: np.dtype[np.generic]) -> Array:
        """All bytes as elements of a type; element i lies at byte i times its size."""
        found = self._views.get(kind)
        if found is None:
            count = len(self.bytes) // kind.itemsize * kind.itemsize
            found = self._views[kind] = self.bytes[:count].view(kind)
        return found

    def contents(self, allocation: Allocation) -> NDArray[np.uint8]:
        """The bytes of an allocation, as they are now."""
        return self.bytes[allocation.start - ORIGIN : allocation.end - ORIGIN]

    def written(self, allocation: Allocation) -> NDArray[np.bool_]:
        """Flags of the bytes of an allocation that something was written to."""
        state = self.state[allocation.start - ORIGIN : allocation.end - ORIGIN]
        flags: NDArray[np.bool_] = (state & WRITTEN) != 0
        return flags

    def holds(self, low: int, high: int) -> bool:
        """True if the bytes from `low` up to, not including, `high` are of one allocation."""
        found = self.at(low)
        return found is not None and high <= found.end

    def at(self, address: int) -> Allocation | None:
        """The allocation that holds the byte at an address."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        found = self.allocations[place]
        return found if address < found.end else None

    def is_plain(self, low: int, high: int, writes: bool, looks: bool) -> bool:
        """True if nothing needs to be noted of accesses to these offsets: all bytes are written,
        and may be written if `writes`. False if that is not known without a look at them, and none
        is wanted."""
        found = self.at(low + ORIGIN)
        if found is None or high + ORIGIN > found.end:
            return False
        state = self._contents.get(found.start - ORIGIN)
        if state is not None:
            return state == WRITTEN or (not writes and state == WRITTEN | READ_ONLY)
        return looks and bool((self.state[low:high] == WRITTEN).all())

    def near(self, address: int) -> Allocation | None:
        """The allocation that an address lies in, or closest to."""
        if not self.allocations:
            return None
        return min(
            self.allocations,
            key=lambda a: 0 if a.start <= address < a.end else min(
                abs(a.start - address), abs(address - a.end + 1)
            ),
        )  # fmt: skip


__all__ = [
    "BLANK",
    "FREED",
    "GAP",
    "ORIGIN",
    "OUTSIDE",
    "READ_ONLY",
    "WRITTEN",
    "Allocation",
    "Arena",
]
