"""Which lanes `shfl` reads from."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.lane_bits import LANE
from ptxlint.ir.instruction import Instr
from ptxlint.ir.pattern import fold

ALL_LANES: Final = 31


def exchanged_lanes(shfl: Instr) -> int:
    """The bits of the lane number that a `shfl` changes; 0 if they are not known."""
    amount = fold(shfl.operands[2])
    clamp = fold(shfl.operands[3])
    if amount is None or clamp is None or amount not in (1, 2, 4, 8, 16):
        return 0
    if "bfly" in shfl.shape.modifiers and clamp == ALL_LANES:
        return amount
    # A tree of `down` leaves the result in the lowest lane only.
    return amount if "down" in shfl.shape.modifiers and clamp == ALL_LANES else 0


def moved_lanes(shfl: Instr) -> int:
    """All bits of the lane number in which a lane may differ from the one that it reads from."""
    amount = fold(shfl.operands[2])
    clamp = fold(shfl.operands[3])
    if amount is None or clamp is None:
        return LANE
    amount &= ALL_LANES
    if not amount:
        return 0
    if shfl.shape.has("bfly"):
        return amount
    if shfl.shape.has("up") or shfl.shape.has("down"):
        # A sum carries upwards, and stops at the segment's end (PTX ISA, "shfl.sync").
        segment = ALL_LANES & ~(clamp >> 8)
        return segment & ~((amount & -amount) - 1)
    return LANE


__all__ = ["ALL_LANES", "exchanged_lanes", "moved_lanes"]
