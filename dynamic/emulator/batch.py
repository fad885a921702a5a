"""Some CTAs of a launch while they run: registers, shared and local memory, and who is where.

Values are arrays over CTAs (first axis) and threads (second). A *front* is a set of lanes that
stand at the same place of the program; a mask tells which, None stands for all lanes of the batch.
Masks, like values, may be shorter where they do not depend on an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Lanes
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, every, expanded, some
from ptxlint.launches import Extent

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.device import Device
    from ptxlint.dynamic.emulator.effects.barriers import Barrier
    from ptxlint.dynamic.emulator.effects.clusters import ClusterBarrier
    from ptxlint.dynamic.emulator.frame import Frame
    from ptxlint.dynamic.emulator.program import Program, Segment
    from ptxlint.dynamic.emulator.sanitizer.arrivals import Arrivals
    from ptxlint.dynamic.emulator.sanitizer.clocks import Clocks
    from ptxlint.dynamic.emulator.sanitizer.in_flight import InFlight
    from ptxlint.dynamic.emulator.sanitizer.races import RaceWatch
    from ptxlint.ir.instruction import Instr

Mask: TypeAlias = "Flags | None"
Step: TypeAlias = "Callable[[Batch, Mask], None]"
"""What an instruction does in the lanes of a mask."""
Reader: TypeAlias = "Callable[[Batch], Array]"
"""What an operand holds."""

WARP: Final = 32
_KEPT: Final = 16
"""So many masks whose lanes are kept."""
_BY_AXIS: Final = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
_SINGLE: Final = (
    "laneid", "warpid", "nwarpid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
    "lanemask_ge", "smid", "nsmid", "gridid", "cluster_ctarank", "cluster_nctarank",
    "dynamic_smem_size", "total_smem_size", "clock", "clock64", "globaltimer", "globaltimer_lo",
)  # fmt: skip
SPECIAL: Final = frozenset(
    (*(f"%{name}.{axis}" for name in _BY_AXIS for axis in "xyz"), *(f"%{name}" for name in _SINGLE))
)
"""The special registers that have a value."""


Observer: TypeAlias = "Callable[[str, NDArray[np.int64], int, Flags | None, bool], None]"
"""Hears of accesses: the space, where in its bytes each begins, how many, which are allowed (None:
all), and whether they write."""


class Following(Protocol):
    """Keeps labels beside the registers of a batch; see `ptxlint.dynamic.emulator.labels`."""

    def around(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> None:
        """Run a step, and follow it."""

    def end(self, segment: Segment, mask: Mask) -> None:
        """Lanes come to the end of a segment."""


class Batch:
    """The state of some CTAs.

    `registers` holds, by the register's number in the program, its bits in all lanes; None if it
    was never written.
    """

    def __init__(self, device: Device, program: Program, ctas: Sequence[Extent]) -> None:
        self.device = device
        self.program = program
        width, height, depth = device.block
        self.ctas = list(ctas)
        self.threads = width * height * depth
        self.shape = (len(self.ctas), self.threads)
        self.registers: list[Array | None] = [None] * program.registers
        self.accumulators: dict[int, tuple[Sequence[Array | None], Array]] = {}
        """By its first register, what an accumulator of `wgmma` holds: registers, matrices."""
        self.carry: Flags = np.zeros((1, 1), dtype=bool)
        self._everybody: Flags = np.ones(self.shape, dtype=bool)
        self._everybody.flags.writeable = False
        self._all: Lanes | None = None
        self._chosen: dict[int, Lanes] = {}
        self.alive: Mask = None
        self.fronts: dict[int, Mask] = {0: None}
        self.parked: dict[int, Flags] = {}
        """Lanes that wait for others of their warp, by the segment where they do."""
        self.cluster: ClusterBarrier | None = None
        self.held: dict[int, Flags] = {}
        """Lanes that wait for something in memory, by the segment where they do."""
        self.reasons: dict[int, Callable[[Batch, Flags], str]] = {}
        """What they wait for, in words, of one of them."""
        self.tired: Flags | None = None
        """Lanes that do not wait the next time."""
        self.events = 0
        """How often something changed that lanes may be held for."""
        self.is_stuck = False
        """True once lanes were waited for that do not come."""
        self.barriers: dict[int, Barrier] = {}
        self.clocks: Clocks | None = None
        """Who has seen what of whom, where somebody asks."""
        self.watch: RaceWatch | None = None
        self.labels: Following | None = None
        self.observer: Observer | None = None
        self.arrivals: Arrivals | None = None
        self.in_flight: InFlight | None = None
        self.shared_stride = -(-max(device.shared, 1) // 16) * 16
        self.shared: NDArray[np.uint8] = np.zeros(
            self.shared_stride * len(self.ctas), dtype=np.uint8
        )
        self.local_stride = -(-max(program.local, 1) // 16) * 16
        self._local: NDArray[np.uint8] | None = None
        lanes = np.arange(self.threads, dtype=np.uint32)[None, :]
        places = np.array(self.ctas, dtype=np.uint32).reshape(-1, 3)
        x, y = np.uint32(width), np.uint32(height)
        self.special: dict[str, Array] = {
            "%tid.x": lanes % x,
            "%tid.y": lanes // x % y,
            "%tid.z": lanes // (x * y),
            "%laneid": lanes % np.uint32(WARP),
            "%warpid": lanes // np.uint32(WARP),
            "%nwarpid": _one(-(-self.threads // WARP)),
            "%lanemask_eq": np.uint32(1) << lanes % np.uint32(WARP),
            **{f"%ctaid.{axis}": places[:, at : at + 1] for at, axis in enumerate("xyz")},
            **{f"%ntid.{axis}": _one(device.block[at]) for at, axis in enumerate("xyz")},
            **{f"%nctaid.{axis}": _one(device.grid[at]) for at, axis in enumerate("xyz")},
            **{f"%clusterid.{axis}": places[:, at : at + 1] for at, axis in enumerate("xyz")},
            **{f"%nclusterid.{axis}": _one(device.grid[at]) for at, axis in enumerate("xyz")},
            **{f"%cluster_ctaid.{axis}": _one(0) for axis in "xyz"},
            **{f"%cluster_nctaid.{axis}": _one(1) for axis in "xyz"},
            **device.special(),
        }
        bit = self.special["%lanemask_eq"]
        self.special["%lanemask_lt"] = bit - np.uint32(1)
        self.special["%lanemask_le"] = bit | bit - np.uint32(1)
        self.special["%lanemask_gt"] = ~(bit | bit - np.uint32(1))
        self.special["%lanemask_ge"] = ~(bit - np.uint32(1))

    @property
    def local(self) -> NDArray[np.uint8]:
        """Local memory of all lanes, made when it is used."""
        if self._local is None:
            size = self.local_stride * self.shape[0] * self.shape[1]
            self._local = np.zeros(size, dtype=np.uint8)
        return self._local

    def state(self) -> list[object]:
        """All that lanes hold and where they stand; what only watches them is not part of it."""
        return [
            self.registers, self.accumulators, self.carry, self.alive, self.fronts, self.parked,
            self.cluster, self.held, self.tired, self.is_stuck, self.barriers, self.shared,
            self._local,
        ]  # fmt: skip

    # Lanes ------------------------------------------------------------------------------------
    def full(self, values: Array) -> Array:
        """Values with both axes in full; not to be written to."""
        return expanded(values, self.shape)

    def lanes(self, mask: Mask) -> Flags:
        """A mask as an array over all lanes; not to be written to."""
        return self._everybody if mask is None else self.full(mask)

    def taking_part(self, mask: Mask) -> Lanes:
        """The lanes of a mask, one after the other, as an access takes them.

        Those of the last few masks are kept: unrolled code accesses memory in the same lanes again.
        """
        if mask is None:
            if self._all is None:
                self._all = Lanes(self, None)
            return self._all
        found = self._chosen.get(id(mask))
        if found is None or found.flags is not mask:
            if len(self._chosen) >= _KEPT:
                self._chosen.clear()
            found = self._chosen[id(mask)] = Lanes(self, mask)
        return found

    def some(self, mask: Mask, flags: Flags) -> Mask:
        """The lanes of a mask in which flags hold."""
        both = flags if mask is None else mask & flags
        return None if every(both) else both

    def go(self, place: int, mask: Mask) -> None:
        """Put lanes where they go on; those that are there already join them."""
        if place in self.fronts:
            there = self.fronts[place]
            if there is None or mask is None:
                mask = None
            else:
                mask = there | mask
                if every(mask):
                    mask = None
        self.fronts[place] = mask

    def leave(self, mask: Mask) -> None:
        """Lanes that come to the end of the kernel."""
        alive = self.lanes(self.alive)
        self.alive = np.zeros((1, 1), dtype=bool) if mask is None else alive & ~mask

    # Values -----------------------------------------------------------------------------------
    def value(self, register: int, width: int) -> Array:
        """The bits of a register; zeros where it was never written."""
        found = self.registers[register]
        if found is None:
            found = self.registers[register] = np.zeros((1, 1), dtype=RAW[width])
        return found

    def put(self, register: int, bits: Array, mask: Mask) -> None:
        """Give a register new bits in the lanes of a mask.

        Arrays are shared between registers and never changed: a new one takes the place of the
        old one.
        """
        if mask is None:
            self.registers[register] = bits
            return
        old = self.registers[register]
        if old is None:
            old = np.zeros((1, 1), dtype=bits.dtype)
        self.registers[register] = np.where(mask, bits, old)

    def spread(self, register: int, bits: Array, lanes: Lanes) -> None:
        """Give a register bits that were found for some lanes alone, one a lane."""
        if lanes.is_all:
            self.registers[register] = bits.reshape(self.shape)
            return
        old = self.registers[register]
        new = np.empty(self.shape, dtype=bits.dtype)
        new[...] = 0 if old is None else old
        new.reshape(-1)[lanes.index] = bits
        self.registers[register] = new


def _one(number: int) -> Array:
    return np.array([[number]], dtype=np.uint32)


def holds(mask: Mask) -> bool:
    """True if a mask has a lane."""
    return mask is None or some(mask)


def without(mask: Mask, flags: Any) -> Mask:
    """The lanes of a mask in which flags do not hold."""
    return ~flags if mask is None else mask & ~flags


__all__ = ["SPECIAL", "WARP", "Batch", "Mask", "Reader", "Step", "holds", "without"]
