"""Copies from global to shared memory (PTX ISA, "cp.async").

The bytes are copied at once: that is one of the orders which the asynchronous copy allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ptxlint.dynamic.emulator.access import Lanes, gather, scatter
from ptxlint.dynamic.emulator.batch import Batch, Mask, Reader, Step
from ptxlint.dynamic.emulator.effects.bulk import bulk
from ptxlint.dynamic.emulator.effects.mbarriers import arrive_of_copies
from ptxlint.dynamic.emulator.effects.memory import MEMORIES
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import address, literal, number_of, reader
from ptxlint.dynamic.emulator.sanitizer.arrivals import by_copies
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Register


def _cp(frame: Frame, instr: Instr) -> Step | None:
    shape = instr.shape
    if shape.has("bulk"):
        return bulk(frame, instr)
    if shape.has("commit_group") or shape.has("wait_group") or shape.has("wait_all"):
        return _grouping(instr)
    if shape.has("mbarrier"):
        return arrive_of_copies(frame, instr)
    target, source, size, *_ = instr.operands
    to, from_ = address(frame, instr, target), address(frame, instr, source)
    width = literal(size, "u32")
    assert width is not None
    count = int(width.item())
    given = amount_read(frame, instr, count)

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        place = lanes.pick(from_(batch))
        amount = None
        if given is not None:
            amount = lanes.pick(given(batch))
        words = _fetch(batch, instr, lanes, place, count, amount)
        with by_copies(batch, lanes):
            memory, start, allowed = MEMORIES["shared"].resolve(
                batch, instr, lanes, lanes.pick(to(batch)), count, True, False, words
            )
        if allowed is not None:
            start, words = start[allowed], words[allowed]
        scatter(memory, start, words, count)

    return step


def amount_read(frame: Frame, instr: Instr, count: int) -> Reader | None:
    """How many of the `count` bytes of a `cp.async` a lane reads; None if all are. The operand is a
    number of bytes, or a predicate that holds where none are read."""
    rest = instr.operands[3:]
    if len(rest) == instr.shape.has("L2::cache_hint"):
        return None
    first = rest[0].operand if isinstance(rest[0], Negated) else rest[0]
    if isinstance(first, Register) and first.type == "pred":
        ignored = reader(frame, instr, rest[0], "pred")
        return lambda batch: np.where(ignored(batch), np.uint32(0), np.uint32(count))
    size = reader(frame, instr, rest[0], "u32")
    return lambda batch: np.minimum(size(batch), np.uint32(count))


def _grouping(instr: Instr) -> Step:
    """The end of a group of copies, or a wait for groups: the copies are done already."""
    waits = instr.shape.has("wait_group")
    number = number_of(instr, instr.operands[0]) if waits else None

    def step(batch: Batch, mask: Mask) -> None:
        if batch.arrivals is None:
            return
        lanes, agents = batch.taking_part(mask), batch.arrivals.agents
        if instr.shape.has("commit_group"):
            agents.copies.commit(lanes.cta, lanes.thread)
        else:
            agents.wait_for_copies(lanes, number)

    return step


def _fetch(
    batch: Batch, instr: Instr, lanes: Lanes, place: Array, count: int, amount: Array | None
) -> Array:
    """The bytes copied, one element a lane; zeros beyond the `amount` that a lane reads."""
    kind = np.dtype(np.complex128) if count == 16 else np.dtype(f"u{count}")
    out = np.zeros(len(lanes.index), dtype=kind)
    whole = np.ones(len(place), dtype=bool) if amount is None else amount == count
    if whole.any():
        part = lanes if whole.all() else lanes.only(whole)
        memory, at, allowed = MEMORIES["global"].resolve(
            batch, instr, part, place[whole], count, False, True
        )
        found = gather(memory, at, count)
        if allowed is not None:
            found[~allowed] = 0
        out[whole] = found
    if amount is None:
        return out
    # Of the few that read a part of their bytes, one byte after the other.
    bytes_ = out.view(np.uint8).reshape(len(out), count)
    for offset in range(count):
        some = ~whole & (amount > offset)
        if some.any():
            part = lanes.only(some)
            memory, at, allowed = MEMORIES["global"].resolve(
                batch, instr, part, place[some] + offset, 1, False, True
            )
            found = gather(memory, at, 1)
            if allowed is not None:
                found[~allowed] = 0
            bytes_[some, offset] = found
    return out


ROWS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {"cp": _cp}
"""By opcode."""


__all__ = ["ROWS", "amount_read"]
