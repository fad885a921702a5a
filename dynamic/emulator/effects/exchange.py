"""Words exchanged within a warp (PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync")."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader, Step
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.meeting import warp_meeting
from ptxlint.dynamic.emulator.operands import Writer, reader, writer
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Pair

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting


def groups(batch: Batch, values: Array, size: int) -> Array:
    """Values of all lanes by groups of `size` neighbours: CTAs, groups, lanes. Lanes that a last
    group lacks are zeros."""
    full = batch.full(values)
    count = -(-batch.threads // size)
    if count * size != batch.threads:
        padded = np.zeros((batch.shape[0], count * size), dtype=full.dtype)
        padded[:, : batch.threads] = full
        full = padded
    return full.reshape(batch.shape[0], count, size)


def warps(batch: Batch, values: Array) -> Array:
    """Values of all lanes by warp: CTAs, warps, lanes."""
    return groups(batch, values, WARP)


def lanes(batch: Batch, values: Array) -> Array:
    """Values by warp, over CTAs and threads again."""
    return values.reshape(batch.shape[0], -1)[:, : batch.threads]


def _pair(operand: Operand) -> tuple[Operand, Operand | None]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


def _membership(frame: Frame, instr: Instr, operand: Operand | None) -> Reader | None:
    """The mask of lanes that take part; None where nobody waits (before PTX 6.0)."""
    return None if operand is None else reader(frame, instr, operand, "u32")


def _shfl(frame: Frame, instr: Instr) -> Waiting:
    shape = instr.shape
    is_sync = shape.has("sync")
    target, source, by, clamp, *member = instr.operands
    value, companion = _pair(target)
    mode = next(m for m in ("up", "down", "bfly", "idx") if shape.has(m))
    word, distance = reader(frame, instr, source, "b32"), reader(frame, instr, by, "u32")
    limit = reader(frame, instr, clamp, "u32")
    put = writer(frame, instr, value, "b32")
    put_flag = None if companion is None else writer(frame, instr, companion, "pred")

    def step(batch: Batch, mask: Mask) -> None:
        b, c = distance(batch), limit(batch)
        words = warps(batch, word(batch))
        if b.size == c.size == 1:
            source_lane, inside = _sources_alike(mode, int(b.item()), int(c.item()))
            chosen = words.take(source_lane, axis=-1)
        else:
            source_lane, inside = _sources(mode, _by_warp(batch, b), _by_warp(batch, c))
            chosen = np.take_along_axis(words, np.broadcast_to(source_lane, words.shape), axis=-1)
        put(batch, lanes(batch, chosen), mask)
        if put_flag is not None:
            put_flag(batch, lanes(batch, np.broadcast_to(inside, words.shape)), mask)

    return warp_meeting(step, _membership(frame, instr, member[0] if is_sync else None))


def _sources(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """The lane that each lane of a warp reads, and whether it is inside of the segment: outside, a
    lane reads itself."""
    lane = np.arange(WARP, dtype=np.int64)
    b = b & 31
    segment, bound = c >> 8 & 31, c & 31
    highest = (lane & segment) | (bound & ~segment)
    lowest = lane & segment
    if mode == "up":
        source_lane = lane - b
    elif mode == "down":
        source_lane = lane + b
    elif mode == "bfly":
        source_lane = lane ^ b
    else:
        source_lane = lowest | (b & ~segment)
    inside = source_lane >= highest if mode == "up" else source_lane <= highest
    return np.where(inside, source_lane, lane), inside


@lru_cache(maxsize=256)
def _sources_alike(mode: str, b: int, c: int) -> tuple[Array, Array]:
    """`_sources` where all warps have the same operands, as in reductions."""
    return _sources(mode, np.int64(b), np.int64(c))


def _by_warp(batch: Batch, values: Array) -> Array:
    """Small numbers by warp, or one for all."""
    if values.size == 1:
        return np.int64(values.item())
    return warps(batch, values).astype(np.int64)


def members(batch: Batch, mask: Mask, member: Array) -> Array:
    """By warp: which lanes take part, of those that are here."""
    here = warps(batch, batch.lanes(mask))
    bits_ = warps(batch, member).astype(np.uint32)
    lane = np.arange(WARP, dtype=np.uint32)
    # Each lane's own mask says who takes part with it; they must agree, so any lane's will do.
    agreed = np.bitwise_or.reduce(np.where(here, bits_, np.uint32(0)), axis=-1, keepdims=True)
    return here & (agreed >> lane & np.uint32(1) != 0)


def _ballot(batch: Batch, flags: Array) -> Array:
    """By warp: a word with a bit for each lane."""
    lane = np.arange(WARP, dtype=np.uint32)
    words = np.where(flags, np.uint32(1) << lane, np.uint32(0))
    return np.bitwise_or.reduce(words, axis=-1, keepdims=True)


def _vote(frame: Frame, instr: Instr) -> Waiting:
    shape = instr.shape
    is_sync = shape.has("sync")
    target, source, *member = instr.operands
    mode = next(m for m in ("ballot", "all", "any", "uni") if shape.has(m))
    holds = reader(frame, instr, source, "pred")
    put = writer(frame, instr, target, "b32" if mode == "ballot" else "pred")
    who = _membership(frame, instr, member[0] if is_sync else None)

    def step(batch: Batch, mask: Mask) -> None:
        everyone = np.array([[0xFFFFFFFF]], dtype=np.uint32)
        there = members(batch, mask, everyone if who is None else who(batch))
        flags = warps(batch, holds(batch)) & there
        if mode == "ballot":
            out = np.broadcast_to(_ballot(batch, flags), flags.shape)
        else:
            every = (flags == there).all(axis=-1, keepdims=True)
            any_ = flags.any(axis=-1, keepdims=True)
            found = {"all": every, "any": any_, "uni": every | ~any_}[mode]
            out = np.broadcast_to(found, flags.shape)
        put(batch, lanes(batch, out), mask)

    return warp_meeting(step, who)


def _match(frame: Frame, instr: Instr) -> Waiting:
    shape = instr.shape
    target, source, member = instr.operands
    value, companion = _pair(target)
    word = reader(frame, instr, source, shape.type)
    who = reader(frame, instr, member, "u32")
    put = writer(frame, instr, value, "b32")
    put_flag = None if companion is None else writer(frame, instr, companion, "pred")
    wants_all = shape.has("all")

    def step(batch: Batch, mask: Mask) -> None:
        there = members(batch, mask, who(batch))
        words = warps(batch, word(batch))
        same = (words[..., :, None] == words[..., None, :]) & there[..., None, :]
        lane = np.arange(WARP, dtype=np.uint32)
        masks = np.bitwise_or.reduce(np.where(same, np.uint32(1) << lane, np.uint32(0)), axis=-1)
        if wants_all:
            everyone = _ballot(batch, there)
            agree = ((masks == everyone) | ~there).all(axis=-1, keepdims=True)
            masks = np.where(agree, everyone, np.uint32(0))
            if put_flag is not None:
                put_flag(batch, lanes(batch, np.broadcast_to(agree, there.shape)), mask)
        put(batch, lanes(batch, np.broadcast_to(masks, there.shape).astype(np.uint32)), mask)

    return warp_meeting(step, who)


_FOLDS: Final[dict[str, tuple[Any, Any]]] = {
    "add": (np.add, lambda info: 0),
    "min": (np.minimum, lambda info: info.max),
    "max": (np.maximum, lambda info: info.min),
    "and": (np.bitwise_and, lambda info: -1 if info.min < 0 else info.max),
    "or": (np.bitwise_or, lambda info: 0),
    "xor": (np.bitwise_xor, lambda info: 0),
}


def _redux(frame: Frame, instr: Instr) -> Waiting:
    shape = instr.shape
    target, source, member = instr.operands
    if shape.type == "f32":
        return _redux_of_numbers(frame, instr)
    fold, neutral = next(_FOLDS[m] for m in shape.modifiers if m in _FOLDS)
    word, who = reader(frame, instr, source, shape.type), reader(frame, instr, member, "u32")
    put = writer(frame, instr, target, shape.type)

    def step(batch: Batch, mask: Mask) -> None:
        there = members(batch, mask, who(batch))
        words = warps(batch, word(batch))
        kind = words.dtype.type
        filled = np.where(there, words, kind(neutral(np.iinfo(words.dtype))))
        out = fold.reduce(filled, axis=-1, keepdims=True, dtype=words.dtype)
        put(batch, lanes(batch, np.broadcast_to(out, words.shape)), mask)

    return warp_meeting(step, who)


_TOP: Final = np.uint32(1 << 31)
_ONES: Final = np.uint32(0xFFFFFFFF)
_NAN: Final = np.uint32(0x7FFFFFFF)


def _redux_of_numbers(frame: Frame, instr: Instr) -> Waiting:
    """The least or greatest of float32: NaN counts if `.NaN` is given, else only if there is
    nothing but NaN; plus zero is above minus zero."""
    shape = instr.shape
    target, source, member = instr.operands
    word, who = reader(frame, instr, source, "b32"), reader(frame, instr, member, "u32")
    put = writer(frame, instr, target, "b32")
    takes_greatest, by_magnitude, keeps_nan = (shape.has(m) for m in ("max", "abs", "NaN"))
    fold: Any = np.maximum if takes_greatest else np.minimum

    def step(batch: Batch, mask: Mask) -> None:
        there = members(batch, mask, who(batch))
        words = warps(batch, word(batch))
        if by_magnitude:
            words = words & ~_TOP
        is_nan = np.isnan(words.view(np.float32))
        # Bits that are ordered as the numbers are, as unsigned ones.
        ordered = words ^ np.where(words & _TOP != 0, _ONES, _TOP)
        counts = there & ~is_nan
        neutral = np.uint32(0) if takes_greatest else _ONES
        out = fold.reduce(np.where(counts, ordered, neutral), axis=-1, keepdims=True)
        out = out ^ np.where(out & _TOP != 0, _TOP, _ONES)
        any_nan = (there & is_nan).any(axis=-1, keepdims=True)
        is_lost = any_nan if keeps_nan else ~counts.any(axis=-1, keepdims=True)
        out = np.where(is_lost, _NAN, out)
        put(batch, lanes(batch, np.broadcast_to(out, words.shape)), mask)

    return warp_meeting(step, who)


def _elect(frame: Frame, instr: Instr) -> Waiting:
    """The lowest of the lanes that take part is elected."""
    target, member = instr.operands
    value, companion = _pair(target)
    assert companion is not None
    who = reader(frame, instr, member, "u32")
    put: Writer = writer(frame, instr, value, "b32")
    put_flag = writer(frame, instr, companion, "pred")

    def step(batch: Batch, mask: Mask) -> None:
        there = members(batch, mask, who(batch))
        first = there.argmax(axis=-1)[..., None]
        shape = there.shape
        put(batch, lanes(batch, np.broadcast_to(first, shape).astype(np.uint32)), mask)
        elected = np.arange(WARP) == first
        put_flag(batch, lanes(batch, np.broadcast_to(elected, shape)), mask)

    return warp_meeting(step, who)


def _activemask(frame: Frame, instr: Instr) -> Step:
    put = writer(frame, instr, instr.operands[0], "b32")

    def step(batch: Batch, mask: Mask) -> None:
        there = warps(batch, batch.lanes(mask))
        words = np.broadcast_to(_ballot(batch, there), there.shape)
        put(batch, lanes(batch, words), mask)

    return step


WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {
    "shfl": _shfl, "vote": _vote, "match": _match, "redux": _redux, "elect": _elect,
}  # fmt: skip
STEPS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {"activemask": _activemask}


__all__ = ["STEPS", "WAITING", "groups", "lanes", "members", "warps"]
