"""What lanes of a warp tell each other: `shfl.sync`, `redux.sync`, `vote.sync` (PTX ISA).

A lane that does not take part has nothing to tell: what is read from it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.ir.instruction import Instr
from ptxlint.launch.words import Flags, Numbers, Word, signed, unsigned

WARP: Final = 32
Exchange: TypeAlias = Callable[[Sequence["Word | None"], Flags], "Word | None"]
"""What computes a result from the source operands and the lanes that take part: CTAs along the
first axis, threads along the second."""

_REDUCED: Final[dict[str, Callable[..., NDArray[np.int64]]]] = {
    "add": np.add.reduce,
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}
_FULL: Final = (1 << WARP) - 1


def exchange(instr: Instr, result: int) -> Exchange | None:
    """What computes one result of an instruction that lanes of a warp carry out together; None if
    that is not followed."""
    shape = instr.shape
    if shape.opcode == "shfl" and shape.has("sync"):
        return _shuffle(instr, result)
    if shape.opcode == "redux" and not result and shape.type in ("u32", "s32", "b32"):
        return _reduction(instr)
    if shape.opcode == "vote" and not result and shape.has("sync"):
        return _vote(instr)
    return None


def _shuffle(instr: Instr, result: int) -> Exchange | None:
    way = next((m for m in ("up", "down", "bfly", "idx") if instr.shape.has(m)), None)
    if way is None or len(instr.operands) != 5:
        return None

    def apply(words: Sequence[Word | None], lanes: Flags) -> Word | None:
        value, by, clamp, members = words
        if by is None or clamp is None or not _all_take_part(members, lanes):
            return None
        lane = np.arange(lanes.shape[1], dtype=np.int64)[None, :] % WARP
        source, is_inside = _source(way, lane, by.bits, clamp.bits)
        known = _spread(by, lanes) & _spread(clamp, lanes)
        if result:
            return Word(is_inside.astype(np.uint64), known)
        if value is None:
            return None
        place = np.arange(lanes.shape[1], dtype=np.int64)[None, :] - lane + source
        within = place < lanes.shape[1]
        place = np.broadcast_to(np.where(within, place, 0), lanes.shape)
        bits = np.take_along_axis(np.broadcast_to(value.bits, lanes.shape), place, axis=1)
        told = np.take_along_axis(_spread(value, lanes) & lanes, place, axis=1)
        return Word(bits, known & told & within)

    return apply


def _source(way: str, lane: NDArray[np.int64], by: Numbers, clamp: Numbers) -> tuple[
    NDArray[np.int64], Flags
]:  # fmt: skip
    """The lane that each reads, and whether it is of the same segment; else it reads itself."""
    step, word = by.view(np.int64) & 31, clamp.view(np.int64)
    mask, end = word >> 8 & 31, word & 31
    first, last = lane & mask, lane & mask | end & ~mask
    if way == "up":
        source = lane - step
        is_inside: Flags = source >= last
    elif way == "down":
        source = lane + step
        is_inside = source <= last
    elif way == "bfly":
        source = lane ^ step
        is_inside = source <= last
    else:
        source = first | step & ~mask
        is_inside = source <= last
    return np.where(is_inside, source, lane), is_inside


def _reduction(instr: Instr) -> Exchange | None:
    name = next((m for m in instr.shape.modifiers if m in _REDUCED), None)
    if name is None or len(instr.operands) != 3:
        return None
    reduce, is_signed = _REDUCED[name], instr.shape.type[0] == "s"

    def apply(words: Sequence[Word | None], lanes: Flags) -> Word | None:
        value, members = words
        if value is None or not _all_take_part(members, lanes):
            return None
        bits = np.broadcast_to(value.bits, lanes.shape)
        numbers = signed(bits, WARP) if is_signed else unsigned(bits, WARP).view(np.int64)
        found = reduce(_by_warp(numbers), axis=2)
        told = _by_warp(_spread(value, lanes)).all(axis=2)
        return Word(
            unsigned(np.repeat(found, WARP, axis=1).view(np.uint64), WARP),
            np.repeat(told, WARP, axis=1),
        )

    return apply


def _vote(instr: Instr) -> Exchange | None:
    way = next((m for m in ("all", "any", "ballot") if instr.shape.has(m)), None)
    if way is None or len(instr.operands) != 3:
        return None

    def apply(words: Sequence[Word | None], lanes: Flags) -> Word | None:
        value, members = words
        if value is None or not _all_take_part(members, lanes):
            return None
        holds = _by_warp(np.broadcast_to(value.bits != 0, lanes.shape))
        if way == "ballot":
            ones = np.uint64(1) << np.arange(WARP, dtype=np.uint64)
            found = np.where(holds, ones, np.uint64(0)).sum(axis=2, dtype=np.uint64)
        else:
            found = (holds.all(axis=2) if way == "all" else holds.any(axis=2)).astype(np.uint64)
        told = _by_warp(_spread(value, lanes)).all(axis=2)
        return Word(np.repeat(found, WARP, axis=1), np.repeat(told, WARP, axis=1))

    return apply


def _all_take_part(members: Word | None, lanes: Flags) -> bool:
    """True if whole warps are here, and are all told to take part."""
    if members is None or members.known is not None or lanes.shape[1] % WARP:
        return False
    if not (unsigned(members.bits, WARP) == _FULL).all():
        return False
    whole = _by_warp(lanes)
    return bool((whole.all(axis=2) | ~whole.any(axis=2)).all())


def _by_warp(lanes: NDArray[np.generic]) -> NDArray[np.generic]:
    return lanes.reshape(lanes.shape[0], -1, WARP)


def _spread(word: Word, lanes: Flags) -> Flags:
    """The lanes that know a word."""
    known = True if word.known is None else word.known
    return np.broadcast_to(np.asarray(known, dtype=bool), lanes.shape)


def matrix_parts(
    instr: Instr, result: int, threads: int
) -> tuple[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] | None:
    """What one result of `ldmatrix` of 16-bit elements is made of (PTX ISA, "ldmatrix"): the bytes
    of a part, and for each part, the lowest first, the threads whose addresses are read and the
    byte behind each. None for other matrices."""
    shape = instr.shape
    if not shape.has("m8n8") or shape.type != "b16" or threads % WARP or shape.guard:
        return None
    thread = np.arange(threads, dtype=np.int64)
    lane = thread % WARP
    start = thread - lane + 8 * result
    if not shape.has("trans"):
        return 4, [(start + lane // 4, 4 * (lane % 4))]
    row, column = start + 2 * (lane % 4), 2 * (lane // 4)
    return 2, [(row, column), (row + 1, column)]


__all__ = ["WARP", "Exchange", "exchange", "matrix_parts"]
