"""mbarrier objects (PTX ISA, "mbarrier", "cp.async.mbarrier.arrive").

`test_wait` waits as `try_wait` does, which is as if its thread was slow to come to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator import mbarrier
from ptxlint.dynamic.emulator.access import Addresses, Lanes
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader, Step
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, space_of
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.holding import stir, until
from ptxlint.dynamic.emulator.operands import Writer, address, reader, writer
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.spaces import window
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Sink
from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting

SIZE: Final = 8
"""Bytes of an object."""


class Shared(NamedTuple):
    """An operand that is an address of shared memory, whether it says so or is generic."""

    where: Reader
    offset: int

    def of(self, batch: Batch, lanes: Lanes) -> Addresses:
        """The addresses in their CTA."""
        return lanes.pick(self.where(batch)) - self.offset


def shared_address(frame: Frame, instr: Instr, operand: Operand) -> Shared:
    """The address of something in shared memory. Raises `UnsupportedError`."""
    space = space_of(frame, instr, operand)
    if space not in ("", "shared"):
        raise UnsupportedError(instr, f"an mbarrier in {space} memory")
    return Shared(address(frame, instr, operand), 0 if space else window("shared"))


class Objects(NamedTuple):
    """Objects of some lanes: where they lie in the batch's shared memory, as 64-bit words, and
    which lanes they are of those that came."""

    words: NDArray[np.uint64]
    place: NDArray[np.int64]
    chosen: NDArray[np.int64]


def objects(
    batch: Batch, instr: Instr, lanes: Lanes, where: Addresses, is_new: bool = False
) -> Objects:
    """The objects at addresses. What is none is reported and left out, unless it is to become one:
    that is a plain write, which others must not see half done."""
    memory, place, allowed = MEMORIES["shared"].resolve(
        batch, instr, lanes, where, SIZE, True, not is_new
    )
    words = memory[: len(memory) // SIZE * SIZE].view(np.uint64)
    chosen = np.arange(len(place)) if allowed is None else np.flatnonzero(allowed)
    at = place[chosen] // SIZE
    if not is_new:
        valid = mbarrier.is_valid(words[at])
        if not valid.all():
            _report(batch, instr, lanes, chosen[~valid], "uses an mbarrier that is not initialised")
            at, chosen = at[valid], chosen[valid]
    return Objects(words, at, chosen)


def _report(batch: Batch, instr: Instr, lanes: Lanes, which: Array, message: str) -> None:
    flags = np.zeros(len(lanes.index), dtype=bool)
    flags[which] = True
    batch.device.report(batch, instr, "mbarrier", message, lanes.flagged(flags))


def change(
    batch: Batch,
    instr: Instr,
    lanes: Lanes,
    where: Addresses,
    arrivals: Array,
    bytes_: Array,
    drops: bool = False,
    completes: bool = True,
) -> Array:
    """Arrivals at objects, and bytes added to their tx-counts, one lane after the other; the state
    that each lane found. Those who wait are told of phases that are complete."""  # fmt: skip
    words, place, chosen = objects(batch, instr, lanes, where)
    states = np.zeros(len(where), dtype=np.uint64)
    ended = np.zeros(batch.shape[0], dtype=bool)
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(order) else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - start
    for at in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == at]
        who, here = chosen[now], place[now]
        states[who] = words[here]
        given = arrivals[who]
        found = mbarrier.changed(words[here], given, bytes_[who], given if drops else 0 * given)
        words[here] = found.words
        if batch.clocks is not None:
            _order(batch, lanes.only(who), where[who], batch.clocks.hand_over)
            _complete(batch, lanes.only(who[found.completed]), where[who[found.completed]])
        ended[lanes.cta[who[found.completed]]] = True
        if found.is_over.any():
            _report(
                batch, instr, lanes, who[found.is_over],
                "arrives at an mbarrier that expects no more arrivals or bytes",
            )  # fmt: skip
        if not completes and found.completed.any():
            _report(
                batch, instr, lanes, who[found.completed], "completes a phase, despite .noComplete"
            )
    batch.events += 1
    stir(batch, ended)
    return states


def _order(batch: Batch, lanes: Lanes, where: Addresses, how: Callable[..., None]) -> None:
    """Tell the clocks that lanes come to objects, or go on from there."""
    for one in np.unique(where).tolist():
        here = where == one
        how(lanes.cta[here], lanes.thread[here] // WARP, one)


def _complete(batch: Batch, lanes: Lanes, where: Addresses) -> None:
    """Tell the clocks that phases of objects are complete."""
    assert batch.clocks is not None
    for cta, one in zip(lanes.cta.tolist(), where.tolist(), strict=True):
        if batch.arrivals is not None:
            batch.arrivals.agents.complete(cta, one)
        batch.clocks.complete(cta, one)


# Instructions ---------------------------------------------------------------------------------
def _step(frame: Frame, instr: Instr) -> Step | None:
    shape = instr.shape
    if shape.has("init"):
        return _init(frame, instr)
    if shape.has("inval"):
        return _inval(frame, instr)
    if shape.has("arrive") or shape.has("arrive_drop"):
        return _arrive(frame, instr)
    if shape.has("expect_tx") or shape.has("complete_tx"):
        return _transaction(frame, instr)
    if shape.has("pending_count"):
        target, source = instr.operands
        read, put = reader(frame, instr, source, "u64"), writer(frame, instr, target, "u32")
        return lambda batch, mask: put(batch, mbarrier.pending(read(batch)).astype(np.uint32), mask)
    return None


def _init(frame: Frame, instr: Instr) -> Step:
    target, source = instr.operands
    where, count = shared_address(frame, instr, target), reader(frame, instr, source, "u32")

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        words, place, chosen = objects(batch, instr, lanes, where.of(batch, lanes), True)
        counts = lanes.pick(count(batch))[chosen]
        is_odd = (counts == 0) | (counts > mbarrier.MOST_ARRIVALS)
        if is_odd.any():
            _report(
                batch, instr, lanes, chosen[is_odd],
                f"initialises an mbarrier for {int(counts[is_odd][0]):,} arrivals; 1 to "
                f"{mbarrier.MOST_ARRIVALS:,} are allowed",
            )  # fmt: skip
        words[place] = mbarrier.initial(np.clip(counts, 1, mbarrier.MOST_ARRIVALS))
        batch.events += 1

    return step


def _inval(frame: Frame, instr: Instr) -> Step:
    where = shared_address(frame, instr, instr.operands[0])

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        words, place, _ = objects(batch, instr, lanes, where.of(batch, lanes))
        words[place] = 0

    return step


def _arrive(frame: Frame, instr: Instr) -> Step:
    shape = instr.shape
    state, target, *amount = instr.operands
    where = shared_address(frame, instr, target)
    given = reader(frame, instr, amount[0], "u32") if amount else None
    put = None if isinstance(state, Sink) else frame.number(state)
    expects, drops = shape.has("expect_tx"), shape.has("arrive_drop")
    completes = not shape.has("noComplete")

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        one = np.ones(len(lanes.index), dtype=np.int64)
        number = one if given is None else lanes.pick(given(batch)).astype(np.int64)
        arrivals, bytes_ = (one, number) if expects else (number, 0 * one)
        states = change(
            batch, instr, lanes, where.of(batch, lanes), arrivals, bytes_, drops, completes
        )
        if put is not None:
            batch.spread(put, states, lanes)

    return step


def _transaction(frame: Frame, instr: Instr) -> Step:
    target, amount = instr.operands
    where, given = shared_address(frame, instr, target), reader(frame, instr, amount, "u32")
    sign = 1 if instr.shape.has("expect_tx") else -1

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        number = lanes.pick(given(batch)).astype(np.int64)
        change(batch, instr, lanes, where.of(batch, lanes), 0 * number, sign * number)

    return step


def arrive_of_copies(frame: Frame, instr: Instr) -> Step:
    """`cp.async.mbarrier.arrive`: the copies are done, so the arrival is at once; without `.noinc`
    it is one that was not expected before, which changes nothing."""
    where, counts = shared_address(frame, instr, instr.operands[0]), instr.shape.has("noinc")

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        one = np.ones(len(lanes.index), dtype=np.int64)
        at = where.of(batch, lanes)
        if batch.arrivals is not None:
            batch.arrivals.agents.arrive_with_copies(lanes, at)
        change(batch, instr, lanes, at, one if counts else 0 * one, 0 * one)

    return step


def complete(batch: Batch, instr: Instr, lanes: Lanes, where: Addresses, bytes_: Array) -> None:
    """Bytes of asynchronous copies have arrived."""
    change(batch, instr, lanes, where, 0 * bytes_, -bytes_)


def _wait(frame: Frame, instr: Instr) -> Waiting | None:
    shape = instr.shape
    if not (shape.has("test_wait") or shape.has("try_wait")):
        return None
    target, place, phase, *_ = instr.operands
    where, by_parity = shared_address(frame, instr, place), shape.has("parity")
    word = reader(frame, instr, phase, "u32" if by_parity else "u64")
    put: Writer = writer(frame, instr, target, "pred")

    def is_over(batch: Batch, mask: Mask) -> Flags:
        lanes = batch.taking_part(mask)
        words, at, chosen = objects(batch, instr, lanes, where.of(batch, lanes))
        # At what is no mbarrier nobody waits: it was reported.
        out = np.ones(len(lanes.index), dtype=bool)
        waited = lanes.pick(word(batch))[chosen]
        old = waited & np.uint32(1) if by_parity else mbarrier.parity(waited)
        out[chosen] = mbarrier.parity(words[at]) != old
        return lanes.spread(out)

    def go_on(batch: Batch, found: Flags, mask: Mask) -> None:
        put(batch, found, mask)
        if batch.clocks is not None:
            lanes = Lanes(batch, batch.lanes(mask) & found)
            _order(batch, lanes, where.of(batch, lanes), batch.clocks.pick_up)

    def why(batch: Batch, lane: Flags) -> str:
        lanes = batch.taking_part(lane)
        at = where.of(batch, lanes)
        memory = batch.shared[: len(batch.shared) // SIZE * SIZE].view(np.uint64)
        object_ = memory[(lanes.shared + at) // SIZE]
        arrivals, bytes_ = (int(f(object_)[0]) for f in (mbarrier.pending, mbarrier.transactions))
        return (
            f"the mbarrier at {int(at[0]):#x} of shared memory lacks "
            f"{counted(arrivals, 'arrival')} and {counted(bytes_, 'byte')}"
        )

    return until(is_over, go_on, why)


STEPS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {"mbarrier": _step}
WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {"mbarrier": _wait}


__all__ = [
    "STEPS", "WAITING", "Shared", "arrive_of_copies", "change", "complete", "shared_address",
]  # fmt: skip
