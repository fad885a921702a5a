"""What touches more than one lane: memory, other lanes, the order of execution.

`step` gives what an instruction does at once, `waiting` what lanes wait for each other at. Each
opcode is a row in the table of one module.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.effects import (
    atomics,
    barriers,
    bulk,
    clusters,
    copies,
    exchange,
    matrix,
    mbarriers,
    memory,
    tensor_maps,
    warpgroup,
)
from ptxlint.dynamic.emulator.effects.clusters import check_cluster
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.ir.instruction import Instr

End = Callable[[Batch, Mask], None]
Waiting = Callable[[int, int], End]
"""Given the segment where lanes wait and the one behind it, what happens to lanes that come."""

_STEPS: dict[str, Callable[[Frame, Instr], Step | None]] = {
    **memory.ROWS, **atomics.ROWS, **copies.ROWS, **clusters.STEPS, **exchange.STEPS,
    **mbarriers.STEPS, **tensor_maps.STEPS,
}  # fmt: skip
_WAITING: dict[str, Callable[[Frame, Instr], Waiting | None]] = {
    **barriers.WAITING, **exchange.WAITING, **matrix.WAITING, **mbarriers.WAITING,
    **tensor_maps.WAITING, **warpgroup.WAITING,
}  # fmt: skip


def step(frame: Frame, instr: Instr) -> Step | None:
    """What an instruction does; None if it is none of these. Raises `UnsupportedError`."""
    make = _STEPS.get(instr.opcode)
    if instr.opcode in ("st", "red") and instr.shape.has("async"):
        make = bulk.store
    return None if make is None else make(frame, instr)


def waiting(frame: Frame, instr: Instr) -> Waiting | None:
    """What lanes wait for each other at; None if they need not. Raises `UnsupportedError`."""
    make = _WAITING.get(instr.opcode)
    return None if make is None else make(frame, instr)


__all__ = ["End", "Waiting", "check_cluster", "step", "waiting"]
