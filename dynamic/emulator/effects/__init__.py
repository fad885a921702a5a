"""What touches more than one lane: memory, other lanes, the order of execution.

`step` gives what an instruction does at once, `waiting` what lanes wait for each other at. Each
opcode is a row in the table of one module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

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
    products,
    tensor_maps,
    warpgroup,
)
from ptxlint.dynamic.emulator.effects.clusters import check_cluster
from ptxlint.dynamic.emulator.effects.products import products as products_of
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.ir.instruction import Instr

End = Callable[[Batch, Mask], None]
Waiting = Callable[[int, int], End]
"""Given the segment where lanes wait and the one behind it, what happens to lanes that come."""

_TOGETHER: Final = 64
"""At most so many products of matrices are made together."""
_STEPS: dict[str, Callable[[Frame, Instr], Step | None]] = {
    **memory.ROWS, **atomics.ROWS, **copies.ROWS, **clusters.STEPS, **exchange.STEPS,
    **mbarriers.STEPS, **tensor_maps.STEPS,
}  # fmt: skip
_WAITING: dict[str, Callable[[Frame, Instr], Waiting | None]] = {
    **barriers.WAITING, **exchange.WAITING, **matrix.WAITING, **mbarriers.WAITING,
    **products.WAITING,
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


def joins(instr: Instr, others: Sequence[Instr]) -> bool:
    """True for a product of matrices that may be made together with others before it."""
    if not others:
        return True
    is_alike = instr.shape is others[0].shape and len(others) < _TOGETHER
    return is_alike and not _meet(instr, others)


def is_apart(instr: Instr, others: Sequence[Instr]) -> bool:
    """True for what may just as well be done before some products of matrices: it touches nothing
    but registers of its own lane, and none that they read or write in a way that matters."""
    is_effect = instr.opcode in _STEPS or instr.opcode in _WAITING
    row = instr.shape.row
    return not (is_effect or row.is_call or row.terminator or _meet(instr, others))


def _meet(instr: Instr, others: Sequence[Instr]) -> bool:
    """True if an instruction reads what others write, or writes what they read or write."""
    made = {register for other in others for register in other.defs}
    read = {register for other in others for register in other.uses}
    return not made.isdisjoint(instr.uses) or not (made | read).isdisjoint(instr.defs)


__all__ = [
    "End", "Waiting", "check_cluster", "is_apart", "joins", "products_of", "step", "waiting",
]  # fmt: skip
