"""What a kernel does how often: by instruction, for a heat map of the Python lines.

Sectors are 32 bytes of global memory, which a warp's access takes as a whole. Shared memory has 32
banks of 4-byte words, and each gives one word at a time: a warp's access takes as many turns as the
fullest bank has words. Lanes that ask for one word are served together. Accesses of 8 and 16 bytes
go by halves and quarters of a warp (CUDA C++ Programming Guide, "Shared Memory", "Global Memory").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch, Mask
    from ptxlint.ir.instruction import Instr

SECTOR: Final = 32
BANKS: Final = 32
_WORD: Final = 4
_WARP: Final = 32
_SHIFT: Final = 36
"""Above the numbers of sectors and words."""
_PLACE: Final = (1 << _SHIFT) - 1


class Count:
    """One instruction's counts, over all lanes and CTAs that were run.

    `lanes` came to it (its guard may hold in fewer), in `warps` issues; `divergent` of these parted
    a warp. `bytes` of global, shared and local memory were asked for by the lanes. `accesses` of
    warps to global memory took `sectors`; `shared_accesses` took `turns`, of which `conflicts`
    would not have been needed if no two words had been in one bank.
    """

    __slots__ = (
        "accesses", "bytes", "conflicts", "divergent", "lanes", "sectors", "shared_accesses",
        "turns", "warps",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lanes = self.warps = self.divergent = self.bytes = 0
        self.accesses = self.sectors = 0
        self.shared_accesses = self.turns = self.conflicts = 0

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
        batch: Batch,
        instr: Instr,
        space: str,
        lanes: Lanes,
        address: NDArray[np.int64],
        size: int,
    ) -> None:
        """Lanes accessed `size` bytes each."""
        if space == "param" or not len(address):
            return
        count = self.of(instr)
        count.bytes += size * len(address)
        warp = lanes.cta * (batch.threads // _WARP + 1) + lanes.thread // _WARP
        if space == "global":
            count.accesses += len(np.unique(warp))
            count.sectors += _sectors(warp, address, size)
        elif space == "shared":
            count.shared_accesses += len(np.unique(warp))
            turns, least = _turns(warp, _rank(lanes, warp), address, size)
            count.turns += turns
            count.conflicts += turns - least


def _sectors(warp: NDArray[np.int64], address: NDArray[np.int64], size: int) -> int:
    """How many sectors the accesses of warps take."""
    first, last = address // SECTOR & _PLACE, (address + size - 1) // SECTOR & _PLACE
    key = warp << _SHIFT
    touched = key | first
    if (first != last).any():
        touched = np.concatenate((touched, key | last))
    return len(np.unique(touched))


def _rank(lanes: Lanes, warp: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which place in its warp each access has: its lane's; of what a lane does many of, as in a
    copy, the next one."""
    if len(lanes.index) < 2 or (np.diff(lanes.index) > 0).all():
        lane: NDArray[np.int64] = lanes.thread % _WARP
        return lane
    starts = np.r_[0, np.flatnonzero(np.diff(warp)) + 1]
    each: NDArray[np.int64] = np.arange(len(warp)) - np.repeat(
        starts, np.diff(np.r_[starts, len(warp)])
    )
    return each


def _turns(
    warp: NDArray[np.int64], rank: NDArray[np.int64], address: NDArray[np.int64], size: int
) -> tuple[int, int]:
    """How many turns the banks take, and how many they would take without conflicts."""
    words = max(1, size // _WORD)
    # Such a part of a warp asks for 32 words at most, one a bank.
    part = (warp * words + rank * words // _WARP) << _SHIFT
    asked = [part | (address // _WORD + at & _PLACE) for at in range(words)]
    distinct = np.unique(np.concatenate(asked))
    bank, counts = np.unique(distinct >> _SHIFT << 5 | distinct & (BANKS - 1), return_counts=True)
    group = bank >> 5
    firsts = np.r_[0, np.flatnonzero(np.diff(group)) + 1]
    return int(np.maximum.reduceat(counts, firsts).sum()), len(firsts)


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
