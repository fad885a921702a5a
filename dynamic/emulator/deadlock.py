"""What happens once nobody in a CTA can go on: it is said who waits where and who is missing, and
the CTA ends there. What it wrote stays, and the other CTAs go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.effects.barriers import Barrier
from ptxlint.dynamic.emulator.formats import Flags
from ptxlint.ir.instruction import Instr

_MOST_RANGES: Final = 3


class Wait(NamedTuple):
    """Lanes that wait at an instruction: for what (`why`, if that is known), at which barrier (-1:
    at none)."""

    instr: Instr
    lanes: Flags
    number: int = -1
    why: str = ""


def end(batch: Batch) -> None:
    """Tell of all who wait, and end their CTAs: nobody goes on in them."""
    waits = [*_at_barriers(batch), *_held(batch)]
    ctas = np.zeros((batch.shape[0], 1), dtype=bool)
    for wait in waits:
        ctas |= wait.lanes.any(axis=1, keepdims=True)
    for wait in _causes(batch, waits):
        message, origin = _told(batch, wait, waits)
        batch.device.report(batch, wait.instr, "deadlock", message, wait.lanes, origin=origin)
    batch.held.clear()
    batch.leave(np.broadcast_to(ctas, batch.shape))
    for place, lanes in list(batch.parked.items()):
        batch.parked[place] = lanes & ~ctas
        if not batch.parked[place].any():
            del batch.parked[place]
    for barrier in batch.barriers.values():
        barrier.forget(ctas)


def _causes(batch: Batch, waits: list[Wait]) -> Iterator[Wait]:
    """The waits without those at barriers to which nobody fails to come but threads that wait for
    something in memory: these are what is to be told."""
    held = np.zeros(batch.shape, dtype=bool)
    for wait in waits:
        if wait.number < 0:
            held |= wait.lanes
    for wait in waits:
        lanes = wait.lanes
        if wait.number >= 0:
            missing = batch.lanes(batch.alive) & ~batch.barriers[wait.number].lanes
            follows = missing.any(axis=1) & ~(missing & ~held).any(axis=1)
            lanes = lanes & ~follows[:, None]
        if lanes.any():
            yield wait._replace(lanes=lanes)


def _at_barriers(batch: Batch) -> Iterator[Wait]:
    """By barrier and instruction."""
    for number, barrier in sorted(batch.barriers.items()):
        found: dict[Instr, Flags] = {}
        for arrival in barrier.waiting:
            there = found.get(arrival.instr)
            found[arrival.instr] = arrival.lanes if there is None else there | arrival.lanes
        for instr, lanes in found.items():
            yield Wait(instr, lanes, number)


def _held(batch: Batch) -> Iterator[Wait]:
    for place, lanes in batch.held.items():
        segment = batch.program.segments[place]
        yield Wait(segment.instrs[0], lanes, why=batch.reasons[place](batch, _first(lanes)))


def _first(lanes: Flags) -> Flags:
    """The first of some lanes alone."""
    out = np.zeros_like(lanes)
    out.ravel()[int(np.flatnonzero(lanes)[0])] = True
    return out


def _told(batch: Batch, wait: Wait, waits: list[Wait]) -> tuple[str, Instr | None]:
    """What is said of the first CTA in which lanes wait, and where the missing ones are."""
    cta = int(np.flatnonzero(wait.lanes.any(axis=1))[0])
    come = wait.lanes[cta]
    message = f"waits for what never comes: {wait.why}"
    if wait.number >= 0:
        barrier = batch.barriers[wait.number]
        come = barrier.lanes[cta]
        message = (
            f"waits at barrier {wait.number} for others that never come: "
            f"{int(come.sum())} of {_expected(batch, barrier, cta)} threads are there"
        )
    parts, origin = [], None
    for other in waits:
        there = other.lanes[cta] & ~come
        if other.instr is not wait.instr and there.any():
            name = f"`{other.instr.shape.mnemonic}`"
            where = f"barrier {other.number} ({name})" if other.number >= 0 else name
            parts.append(f"{_ranges(there)} wait at {where}")
            origin = origin or other.instr
    left = ~batch.lanes(batch.alive)[cta] & ~come
    if left.any():
        parts.append(f"{_ranges(left)} have left")
    return "; ".join((message, *parts)), origin


def _expected(batch: Batch, barrier: Barrier, cta: int) -> int:
    """How many threads a barrier waits for: those that its instructions count, or all."""
    counted = int(barrier.counts[cta])
    return counted or int((batch.lanes(batch.alive)[cta] | barrier.lanes[cta]).sum())


def _ranges(threads: Flags) -> str:
    """Threads in words: the first few ranges of their numbers."""
    numbers = np.flatnonzero(threads)
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) > 1)
    ends = np.append(starts[1:], len(numbers)) - 1
    found = [
        f"{first} to {last}" if last > first else str(first)
        for first, last in zip(numbers[starts].tolist(), numbers[ends].tolist(), strict=True)
    ]
    if len(found) > _MOST_RANGES:
        return f"{len(numbers)} threads from {numbers[0]} on"
    word = "thread" if len(numbers) == 1 else "threads"
    return f"{word} {' and '.join(found)}"


__all__ = ["Wait", "end"]
