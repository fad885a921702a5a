"""Labels through bulk copies: of bytes, of tiles of tensors, and by stores that an mbarrier counts.

What comes from global memory has no label, but for elements that lie outside of a tensor where the
copy is one whose padding is followed. What goes there with a label has got out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask
from ptxlint.dynamic.emulator.effects.bulk import Pieces, pieces
from ptxlint.dynamic.emulator.effects.mbarriers import shared_address
from ptxlint.dynamic.emulator.effects.memory import elements, write
from ptxlint.dynamic.emulator.effects.tensor_copies import Tiles, tiles
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register
from ptxlint.ir.types import bits

_NO_COPIES = ("commit_group", "wait_group", "prefetch")


def copied(batch: Batch, frame: Frame, instr: Instr, mask: Mask, is_site: bool) -> Flags | None:
    """Follow `cp.async.bulk` in lanes of a mask while labels stand in for the bytes of shared
    memory; the lanes whose labels go to global memory, None if no lane's does.

    Where `is_site`, elements outside of a tensor get a label.
    """
    shape = instr.shape
    if any(shape.has(word) for word in _NO_COPIES):
        return None
    lanes = batch.taking_part(mask)
    flags = np.zeros(batch.shape, dtype=bool)
    if shape.has("tensor"):
        for tile in tiles(frame, instr)(batch, lanes):
            flags |= _tile(tile, shape.space == "shared", is_site)
    else:
        flags |= _bytes(batch, instr, pieces(frame, instr)(batch, lanes))
    return flags if flags.any() else None


def _tile(tile: Tiles, is_load: bool, is_site: bool) -> Flags:
    outside = tile.outside()
    if is_load:
        label = outside if is_site else np.zeros_like(outside)
        tile.deliver(label.reshape(-1).view(np.complex128))
        return np.zeros((1, 1), dtype=bool)
    found = tile.picked_up().view(np.uint8).reshape(outside.shape)
    return tile.lanes.flagged((found & ~outside).any(axis=1))


def _bytes(batch: Batch, instr: Instr, found: Pieces) -> Flags:
    nothing = np.zeros((1, 1), dtype=bool)
    if not len(found.source):
        return nothing
    label = np.zeros(len(found.source) * 16, dtype=np.uint8).view(np.complex128)
    if found.from_space == "shared":
        label = found.taken(batch, instr)
    has_label = label.view(np.uint8).reshape(-1, 16).any(axis=1)
    if found.to_space == "global":
        return found.lanes.flagged(has_label)
    if not instr.shape.has("reduce"):
        found.put(batch, instr, label)
    return nothing


def stored(
    batch: Batch, frame: Frame, instr: Instr, mask: Mask, labels: Mapping[int, Array]
) -> None:
    """Follow `st.async` or `red.async` while labels stand in for the bytes of shared memory. What
    is changed by a number without a label keeps its own."""
    lanes = batch.taking_part(mask)
    where = shared_address(frame, instr, instr.operands[0]).of(batch, lanes)
    width = bits(instr.shape.type)
    for column, part in enumerate(elements(instr.operands[1])):
        label = labels.get(frame.number(part)) if isinstance(part, Register) else None
        word = lanes.pick(np.zeros((1, 1), dtype=RAW[width]) if label is None else label)
        place = where + column * (width // 8)
        chosen = np.flatnonzero(word) if instr.opcode == "red" else np.arange(len(word))
        write(
            batch, instr, lanes.only(chosen), "shared", place[chosen], word[chosen], width // 8
        )  # fmt: skip


__all__ = ["copied", "stored"]
