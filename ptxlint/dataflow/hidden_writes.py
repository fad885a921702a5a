"""Writes to global memory that no located access stands for: bulk copies, calls, unknown bases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.access import Accesses
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import memory_of

_PLAIN: Final = frozenset({"st", "atom", "red"})
_ORDER: Final = frozenset({"fence", "membar"})
"""What only orders writes."""
_ENDS: Final = frozenset({"noreturn", "abort"})


def hidden_writes(function: Function, accesses: Accesses) -> Iterator[Instr]:
    """Instructions that may write to global memory in a way that is not followed."""
    yield from (i for i in accesses.unknown if i.opcode in _PLAIN)
    known: dict[Shape, bool] = {}
    cfg = accesses.guards.ssa.cfg
    for instr in function.instrs:
        shape = instr.shape
        if shape not in known:
            known[shape] = _may_write(shape)
        if known[shape] and cfg.is_reachable(instr):
            ends = cfg.blocks[cfg.block_of[instr.index]].leave
            if not (shape.row.is_call and ends in _ENDS):
                yield instr


def _may_write(shape: Shape) -> bool:
    """True for what is no plain store or atomic, whose addresses are followed."""
    if shape.row.is_call or not shape.row.known:
        return True
    if shape.opcode in _PLAIN | _ORDER:
        return False
    return not {"", "global"}.isdisjoint(memory_of(shape).writes)


__all__ = ["hidden_writes"]
