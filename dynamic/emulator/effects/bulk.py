"""Bulk copies of bytes, and stores that an mbarrier hears of (PTX ISA, "cp.async.bulk",
"cp.reduce.async.bulk", "st.async", "red.async").

They are done at once, which is one of the orders that an asynchronous copy allows; so there is
nothing to wait for at groups of copies, and an mbarrier hears at once of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Addresses, Lanes
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Step
from ptxlint.dynamic.emulator.effects.atomics import Change, change_of, in_turn
from ptxlint.dynamic.emulator.effects.mbarriers import complete, shared_address
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, elements, read, write
from ptxlint.dynamic.emulator.effects.tensor_copies import tensor_copy
from ptxlint.dynamic.emulator.formats import RAW, Array, dtype
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import address, number_of, reader
from ptxlint.dynamic.emulator.sanitizer.arrivals import by_bulk_copies
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits

PIECE: Final = 16
_SPACES: Final = {"global": "global", "shared::cta": "shared", "shared::cluster": "shared"}


def bulk(frame: Frame, instr: Instr) -> Step:
    """The step of a bulk copy, or of what belongs to one. Raises `UnsupportedError`."""
    shape = instr.shape
    if shape.has("commit_group") or shape.has("wait_group"):
        return _grouping(instr)
    if shape.has("tensor"):
        return tensor_copy(frame, instr)
    if shape.has("prefetch"):
        return lambda batch, mask: None
    for form in ("multicast::cluster", "cp_mask", "ignore_oob"):
        if shape.has(form):
            raise UnsupportedError(instr, f"bulk copies with {form}")
    copied = pieces(frame, instr)
    has_barrier = shape.has("mbarrier::complete_tx::bytes")
    barrier = shared_address(frame, instr, instr.operands[3]) if has_barrier else None
    reduces = shape.has("reduce")
    kind = shape.type if reduces else ""
    change = change_of(instr, kind) if reduces else None

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        found = copied(batch, lanes)
        objects = None if barrier is None else barrier.of(batch, lanes)
        with by_bulk_copies(batch, instr, lanes, objects):
            if len(found.source):
                words = found.taken(batch, instr)
                if change is None:
                    found.put(batch, instr, words)
                else:
                    _reduce(batch, instr, found, words, kind, change)
        if objects is not None:
            complete(batch, instr, lanes, objects, PIECE * found.counts)

    return step


def _grouping(instr: Instr) -> Step:
    """The end of a group of bulk copies, or a wait for groups: the copies are done already."""
    waits = instr.shape.has("wait_group")
    number = number_of(instr, instr.operands[0]) if waits else 0

    def step(batch: Batch, mask: Mask) -> None:
        if batch.arrivals is None:
            return
        lanes, groups = batch.taking_part(mask), batch.arrivals.agents.bulk
        if waits:
            groups.wait(lanes.cta, lanes.thread // WARP, lanes.thread, number)
        else:
            groups.commit(lanes.cta, lanes.thread)

    return step


class Pieces(NamedTuple):
    """Pieces of 16 bytes that some lanes copy: `lanes` by piece, where each comes from and goes to,
    and how many each lane copies."""

    lanes: Lanes
    from_space: str
    source: Addresses
    to_space: str
    target: Addresses
    counts: NDArray[np.int64]

    def taken(self, batch: Batch, instr: Instr) -> Array:
        """What they hold."""
        return read(batch, instr, self.lanes, self.from_space, self.source, PIECE)

    def put(self, batch: Batch, instr: Instr, words: Array) -> None:
        """Write them."""
        write(batch, instr, self.lanes, self.to_space, self.target, words, PIECE)


def pieces(frame: Frame, instr: Instr) -> Callable[[Batch, Lanes], Pieces]:
    """What a bulk copy that is no tensor's copies, by lanes."""
    to_space, from_space = (_SPACES[m] for m in instr.shape.modifiers if m in _SPACES)
    target, source, size = instr.operands[:3]
    to, from_ = address(frame, instr, target), address(frame, instr, source)
    amount = reader(frame, instr, size, "u32")

    def found(batch: Batch, lanes: Lanes) -> Pieces:
        sizes = lanes.pick(amount(batch)).astype(np.int64)
        counts = _pieces(batch, instr, lanes, sizes)
        every = lanes.repeated(counts)
        steps = PIECE * (np.arange(len(every.index)) - np.repeat(counts.cumsum() - counts, counts))
        before = np.repeat(lanes.pick(from_(batch)), counts) + steps
        behind = np.repeat(lanes.pick(to(batch)), counts) + steps
        return Pieces(every, from_space, before, to_space, behind, counts)

    return found


def _pieces(
    batch: Batch, instr: Instr, lanes: Lanes, sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many pieces of 16 bytes each lane copies."""
    is_odd = sizes % PIECE != 0
    if is_odd.any():
        batch.device.report(
            batch, instr, "misaligned",
            f"copies {int(sizes[is_odd][0]):,} bytes, no multiple of {PIECE}",
            lanes.flagged(is_odd),
        )  # fmt: skip
    return sizes // PIECE


def _reduce(
    batch: Batch, instr: Instr, found: Pieces, words: Array, kind: str, change: Change
) -> None:
    """Change elements of memory by those that come, one lane after the other."""
    size = bits(kind) // 8
    per = PIECE // size
    place = (found.target[:, None] + size * np.arange(per)).ravel()
    memory, at, allowed = MEMORIES[found.to_space].resolve(
        batch, instr, found.lanes.repeated(per), place, size, True, True
    )
    values = words.view(RAW[8 * size]).view(dtype(kind))
    if allowed is not None:
        at, values = at[allowed], values[allowed]
    in_turn(memory, at, [values], change, dtype(kind))


# Stores ---------------------------------------------------------------------------------------
def store(frame: Frame, instr: Instr) -> Step:
    """`st.async`, `red.async`: a store to shared memory whose bytes an mbarrier counts."""
    shape = instr.shape
    if not shape.has("mbarrier::complete_tx::bytes"):
        raise UnsupportedError(instr, "asynchronous stores without an mbarrier")
    target, source, place = instr.operands
    kind = shape.type
    seen = "u" + kind[1:] if kind[0] == "b" else kind
    parts, size = elements(source), bits(kind) // 8
    to = shared_address(frame, instr, target)
    barrier = shared_address(frame, instr, place)
    reads = [reader(frame, instr, part, seen) for part in parts]
    change = change_of(instr, seen) if instr.opcode == "red" else None

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        where, objects = to.of(batch, lanes), barrier.of(batch, lanes)
        with by_bulk_copies(batch, instr, lanes, objects):
            for column, part in enumerate(reads):
                values = np.ascontiguousarray(lanes.pick(part(batch)))
                at = where + column * size
                if change is None:
                    write(batch, instr, lanes, "shared", at, values.view(RAW[8 * size]), size)
                    continue
                memory, found, allowed = MEMORIES["shared"].resolve(
                    batch, instr, lanes, at, size, True, True
                )
                if allowed is not None:
                    found, values = found[allowed], values[allowed]
                in_turn(memory, found, [values], change, dtype(seen))
        bytes_ = np.full(len(lanes.index), size * len(parts), dtype=np.int64)
        complete(batch, instr, lanes, objects, bytes_)

    return step


__all__ = ["Pieces", "bulk", "pieces", "store"]
