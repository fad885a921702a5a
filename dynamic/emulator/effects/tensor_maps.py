"""Tensor maps that the kernel makes (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from ptxlint.dynamic.emulator.access import Lanes
from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.effects.exchange import warps
from ptxlint.dynamic.emulator.effects.memory import read, space_of, write
from ptxlint.dynamic.emulator.formats import RAW
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.meeting import warp_meeting
from ptxlint.dynamic.emulator.operands import address, literal, reader
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.tensor_map import FIELDS, SIZE
from ptxlint.ir.instruction import Instr

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting

_PIECE: Final = 16


def _replace(frame: Frame, instr: Instr) -> Step | None:
    """Write one field of a map."""
    shape = instr.shape
    if not shape.has("replace"):
        return None
    field = next((FIELDS[m] for m in shape.modifiers if m in FIELDS), None)
    if field is None:
        raise UnsupportedError(instr)
    target, *ordinal, source = instr.operands
    offset = field.offset
    if field.dimensions > 1:
        number = literal(ordinal[0], "u32") if ordinal else None
        if number is None or int(number.item()) >= field.dimensions:
            raise UnsupportedError(instr, "a field of a dimension that tensor maps have not")
        offset += field.width * int(number.item())
    where, space = address(frame, instr, target), space_of(frame, instr, target)
    value = reader(frame, instr, source, f"u{8 * field.width}")
    kind = RAW[8 * field.width]

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        values = lanes.pick(value(batch)).astype(kind)
        place = lanes.pick(where(batch)) + offset
        write(batch, instr, lanes, space, place, values, field.width)

    return step


def _copy(frame: Frame, instr: Instr) -> Waiting | None:
    """A warp copies a map from shared to global memory; its addresses are the same in all lanes."""
    if not instr.shape.has("cp_fenceproxy"):
        return None
    target, source, *_ = instr.operands
    to, from_ = address(frame, instr, target), address(frame, instr, source)

    def step(batch: Batch, mask: Mask) -> None:
        there = warps(batch, batch.lanes(mask))
        first = np.zeros(there.shape, dtype=bool)
        np.put_along_axis(first, there.argmax(axis=-1)[..., None], True, axis=-1)
        flags = (first & there).reshape(batch.shape[0], -1)[:, : batch.threads]
        lanes = Lanes(batch, flags)
        every, steps = lanes.repeated(SIZE // _PIECE), np.arange(0, SIZE, _PIECE)
        before = (lanes.pick(from_(batch))[:, None] + steps).ravel()
        behind = (lanes.pick(to(batch))[:, None] + steps).ravel()
        words = read(batch, instr, every, "shared", before, _PIECE)
        write(batch, instr, every, "global", behind, words, _PIECE)

    return warp_meeting(step, None, is_whole=True)


STEPS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {"tensormap": _replace}
WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {"tensormap": _copy}


__all__ = ["STEPS", "WAITING"]
