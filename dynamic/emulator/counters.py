"""What a kernel does how often: by instruction, for a heat map of the Python lines.

Sectors are 32 bytes of global memory, which a warp's access takes as a whole; a bank of shared
memory gives one 4-byte word at a time, so an access takes as many turns as the fullest bank has
words (CUDA C++ Programming Guide, "Shared Memory", "Global Memory").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch, Mask
    from ptxlint.ir.instruction import Instr

SECTOR: Final = 32
BANKS: Final = 32
_WORD: Final = 4
_WARP: Final = 32
_SHIFT: Final = 36
"""Above the numbers of sectors and words."""


class Count:
    """One instruction's counts, over all lanes and CTAs that were run.

    `lanes` came to it (its guard may hold in fewer), in `warps` issues; `divergent` of these parted
    a warp. `bytes` were asked for by the lanes; `sectors` of global memory and `turns` of shared
    memory were taken for `accesses` of warps.
    """

    __slots__ = ("accesses", "bytes", "divergent", "lanes", "sectors", "turns", "warps")

    def __init__(self) -> None:
        self.lanes = self.warps = self.divergent = 0
        self.bytes = self.sectors = self.turns = self.accesses = 0

    def add(self, other: Count) -> None:
        """Count another instruction's in."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Counters:
    """All counts of a run, by instruction."""

    def __init__(self) -> None:
        self.by_instr: dict[Instr, Count] = {}

    def of(self, instr: Instr) -> Count:
        """An instruction's counts."""
        found = self.by_instr.get(instr)
        if found is None:
            found = self.by_instr[instr] = Count()
        return found

    def ran(self, batch: Batch, instrs: list[Instr], mask: Mask) -> None:
        """Lanes of a mask ran instructions."""
        lanes, warps = _issued(batch, mask)
        for instr in instrs:
            count = self.of(instr)
            count.lanes += lanes
            count.warps += warps

    def parted(self, batch: Batch, instr: Instr, mask: Mask, taken: Flags) -> None:
        """A branch was taken by some lanes of a mask."""
        there = _by_warp(batch, batch.lanes(mask))
        goes = _by_warp(batch, np.broadcast_to(taken, batch.shape)) & there
        self.of(instr).divergent += int((goes.any(axis=1) & (there & ~goes).any(axis=1)).sum())

    def accessed(
        self,
        instr: Instr,
        space: str,
        warp: NDArray[np.int64],
        address: NDArray[np.int64],
        size: int,
    ) -> None:
        """Lanes accessed `size` bytes each; `warp` says which warp each lane is of."""
        count = self.of(instr)
        count.bytes += size * len(address)
        count.accesses += len(np.unique(warp))
        if space == "global":
            first, last = address // SECTOR, (address + size - 1) // SECTOR
            key = warp << _SHIFT
            touched = key | first
            if (first != last).any():
                touched = np.concatenate((touched, key | last))
            count.sectors += len(np.unique(touched))
        elif space == "shared":
            count.turns += _turns(warp, address, size)


def _turns(warp: NDArray[np.int64], address: NDArray[np.int64], size: int) -> int:
    """How many turns the banks take: accesses of 8 and 16 bytes go by halves and quarters of a
    warp, and one word is given to all that ask for it."""
    if not len(address):
        return 0
    words = max(1, size // _WORD)
    starts = np.r_[0, np.flatnonzero(np.diff(warp)) + 1]
    order = np.arange(len(warp)) - np.repeat(starts, np.diff(np.r_[starts, len(warp)]))
    part = (warp * words + order * words // _WARP) << _SHIFT
    distinct = np.unique(np.concatenate([part | address // _WORD + at for at in range(words)]))
    bank, counts = np.unique(distinct >> _SHIFT << 5 | distinct & (BANKS - 1), return_counts=True)
    group = bank >> 5
    firsts = np.r_[0, np.flatnonzero(np.diff(group)) + 1]
    return int(np.maximum.reduceat(counts, firsts).sum())


def _issued(batch: Batch, mask: Mask) -> tuple[int, int]:
    if mask is None:
        ctas, threads = batch.shape
        return ctas * threads, ctas * -(-threads // _WARP)
    there = _by_warp(batch, batch.lanes(mask))
    return int(there.sum()), int(there.any(axis=1).sum())


def _by_warp(batch: Batch, flags: Flags) -> Flags:
    """Flags a warp: (CTAs x warps, lanes)."""
    spare = -batch.threads % _WARP
    full = np.pad(flags, ((0, 0), (0, spare))) if spare else flags
    return full.reshape(-1, _WARP)


__all__ = ["BANKS", "SECTOR", "Count", "Counters"]
