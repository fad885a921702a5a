"""Registers of `wgmma` that are touched while it may still use them.

A warpgroup's products read the registers of A and change those of the accumulator some time between
their issue and the `wgmma.wait_group` that covers them; and they are ordered behind what a warp did
to these registers before by `wgmma.fence` (PTX ISA, "Register Fragments and Shared Memory Matrix
Layouts", "wgmma.fence", "wgmma.mma_async"). One product after another may change the same
accumulator.

A `mov` out of an accumulator is no use of it yet: compilers write them in front of the wait, to
rename or unpack what comes, and the assembler has one register for both. What it moves to is then
under way, too, until the same wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Flags
from ptxlint.dynamic.emulator.operands import guard
from ptxlint.dynamic.emulator.sanitizer.agents import Agents
from ptxlint.ir.operand import Operand, Register, Vector

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.access import Lanes
    from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
    from ptxlint.dynamic.emulator.frame import Frame
    from ptxlint.ir.instruction import Instr

_WARP: Final = 32
_WARPS: Final = 4
"""Of a warpgroup."""


class _Held:
    """One register: until when products change it and read it (by CTA and warpgroup), which, and
    when each warp touched it last. A copy is of no product itself."""

    def __init__(self, ctas: int, warps: int, is_copy: bool) -> None:
        self.is_copy = is_copy
        groups = -(-warps // _WARPS)
        self.changed: NDArray[np.int64] = np.zeros((ctas, groups), dtype=np.int64)
        self.read: NDArray[np.int64] = np.zeros((ctas, groups), dtype=np.int64)
        self.by: Instr | None = None
        self.touched: NDArray[np.int64] = np.zeros((ctas, warps), dtype=np.int64)


class InFlight:
    """The registers of the products of one batch."""

    def __init__(self, batch: Batch, agents: Agents) -> None:
        self._batch = batch
        self._agents = agents
        self._ctas, threads = batch.shape
        self._warps = -(-threads // _WARP)
        own = _registers(batch)
        self._own = bool(own)
        self._held: dict[int, _Held] = {
            number: _Held(self._ctas, self._warps, number not in own)
            for number in own | _copies(batch, own)
        }
        self._known: dict[tuple[int, Instr], tuple[list[_Held], list[_Held]]] = {}
        self._fenced: NDArray[np.int64] = np.full((self._ctas, self._warps), -1)
        self._now = 0

    def follow(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> Iterator[None]:
        """An instruction reads and writes registers of products."""
        if instr.opcode == "wgmma":
            return
        reads, writes = self._touches(frame, instr)
        if not reads and not writes:
            return
        batch = self._batch
        held = guard(frame, instr)
        lanes = batch.lanes(mask if held is None else held(batch, mask))
        warps = _by_warp(lanes, self._warps)
        self._now += 1
        is_move = instr.opcode == "mov"
        for one in reads:
            if not is_move:
                self._tell(instr, lanes, warps, one, one.changed, "reads")
            one.touched[warps] = self._now
        for one in writes:
            if not one.is_copy:
                busy = np.maximum(one.changed, one.read)
                self._tell(instr, lanes, warps, one, busy, "changes")
            one.touched[warps] = self._now
            self._renew(one, reads if is_move else [], warps)
        yield

    def _renew(self, one: _Held, sources: list[_Held], warps: Flags) -> None:
        """A register gets what others hold, or something else, in some warps."""
        moved = [source for source in sources if source.by is not None]
        if not one.is_copy and not moved:
            return
        spare = one.changed.shape[1] * _WARPS - self._warps
        there = np.pad(warps, ((0, 0), (0, spare))).reshape(*one.changed.shape, _WARPS).any(axis=2)
        until = np.zeros_like(one.changed)
        for source in moved:
            until, one.by = np.maximum(until, source.changed), source.by
        one.changed[there] = until[there]

    def arrive(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        """Where lanes part or wait no register of products is read."""

    def _touches(self, frame: Frame, instr: Instr) -> tuple[list[_Held], list[_Held]]:
        """The registers of products that an instruction reads, and those it writes."""
        key = frame.base, instr
        found = self._known.get(key)
        if found is None:
            reads, writes = (
                [self._held[n] for n in map(frame.number, part) if n in self._held]
                for part in (instr.uses, instr.defs)
            )
            found = self._known[key] = reads, writes
        return found

    def _tell(
        self, instr: Instr, lanes: Flags, warps: Flags, one: _Held, until: NDArray[np.int64],
        verb: str,
    ) -> None:  # fmt: skip
        if one.by is None:
            return
        known, first = self._agents.clocks.known, self._agents.matrices.first
        groups = np.arange(self._warps) // _WARPS
        early = warps & (known[:, np.arange(self._warps), first + groups] < until[:, groups])
        if early.any():
            which = np.repeat(early, _WARP, axis=1)[:, : lanes.shape[1]] & lanes
            self._batch.device.report(
                self._batch, instr, "arrival",
                f"{verb} a register that `{one.by.shape.mnemonic}` still uses", which,
                origin=one.by,
            )  # fmt: skip

    @property
    def is_needed(self) -> bool:
        """False for a program without products."""
        return self._own

    # Products ---------------------------------------------------------------------------------
    def start(self, instr: Instr, leaders: Lanes, changed: list[int], read: list[int]) -> None:
        """Warpgroups start a product that changes and reads registers."""
        group = leaders.thread // (_WARPS * _WARP)
        time = self._agents.matrices.time(leaders.cta, group)
        for number in (*changed, *read):
            one = self._held[number]
            self._check_fence(instr, leaders, one)
            until = one.changed if number in changed else one.read
            until[leaders.cta, group] = time
            one.by = instr

    def _check_fence(self, instr: Instr, leaders: Lanes, one: _Held) -> None:
        first = leaders.thread // _WARP
        missing = np.zeros(len(first), dtype=bool)
        for warp in range(_WARPS):
            at = leaders.cta, np.minimum(first + warp, self._warps - 1)
            missing |= one.touched[at] > self._fenced[at]
        if missing.any():
            self._batch.device.report(
                self._batch, instr, "arrival",
                "uses registers that were touched before, and no wgmma.fence is between",
                leaders.flagged(missing),
            )  # fmt: skip

    def fence(self, lanes: Lanes) -> None:
        """`wgmma.fence`."""
        self._now += 1
        self._fenced[lanes.cta, lanes.thread // _WARP] = self._now


def _by_warp(lanes: Flags, warps: int) -> Flags:
    spare = warps * _WARP - lanes.shape[1]
    full = np.pad(lanes, ((0, 0), (0, spare))) if spare else lanes
    out: Flags = full.reshape(len(full), warps, _WARP).any(axis=2)
    return out


def _registers(batch: Batch) -> set[int]:
    """The registers of accumulators and of A, in all products of a program."""
    found: set[int] = set()
    for segment in batch.program.segments:
        for instr in segment.instrs:
            if instr.opcode == "wgmma" and instr.shape.has("mma_async"):
                for operand in instr.operands[:2]:
                    found.update(segment.frame.number(one) for one in _parts(operand))
    return found


def _copies(batch: Batch, own: set[int]) -> set[int]:
    """The registers that are moved to out of some, by one `mov` or several."""
    moves: dict[int, set[int]] = {}
    for segment in batch.program.segments:
        for instr in segment.instrs:
            if instr.opcode == "mov":
                made = set(map(segment.frame.number, instr.defs))
                for number in map(segment.frame.number, instr.uses):
                    moves.setdefault(number, set()).update(made)
    found: set[int] = set()
    work = list(own)
    while work:
        fresh = moves.get(work.pop(), set()) - found - own
        found |= fresh
        work += fresh
    return found


def _parts(operand: Operand) -> Iterator[Register]:
    for one in operand.elements if isinstance(operand, Vector) else ():
        if isinstance(one, Register):
            yield one


__all__ = ["InFlight"]
