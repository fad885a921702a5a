"""Labels through words exchanged within a warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask
from ptxlint.dynamic.emulator.effects.exchange import lanes as by_lanes
from ptxlint.dynamic.emulator.effects.exchange import warps
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.ir.instruction import Instr


def offered(batch: Batch, label: Array, mask: Mask) -> Array:
    """The label of what each lane offers: a lane that does not take part offers nothing known."""
    if mask is None:
        return label
    return np.where(batch.lanes(mask), label, ~np.zeros((), dtype=label.dtype))


def voted(instr: Instr, batch: Batch, values: Array, label: Flags, mask: Mask) -> Flags:
    """Where a vote of `all`, `any` or `uni` is not known: a lane of the warp that takes part has a
    vote that is not known, and no other one settles it."""
    here = warps(batch, batch.lanes(mask))
    unknown = warps(batch, label) & here
    known, flags = here & ~unknown, warps(batch, values)
    yes: Any = (known & flags).any(axis=-1, keepdims=True)
    no: Any = (known & ~flags).any(axis=-1, keepdims=True)
    settled = yes & no
    if instr.shape.has("any"):
        settled = yes
    elif instr.shape.has("all"):
        settled = no
    out = unknown.any(axis=-1, keepdims=True) & ~settled
    return by_lanes(batch, np.broadcast_to(out, here.shape))


def gathered(batch: Batch, label: Flags, mask: Mask) -> Flags:
    """Where any lane of the warp that takes part brings something that is not known."""
    here = warps(batch, batch.lanes(mask))
    out = (warps(batch, label) & here).any(axis=-1, keepdims=True)
    return by_lanes(batch, np.broadcast_to(out, here.shape))


__all__ = ["gathered", "offered", "voted"]
