"""Accesses of machine code to local memory: which are on the stack at fixed places, which are to
arrays.

`R1` is the stack pointer (CUDA's ABI). What the assembler spills it stores at `[R1+offset]`; so it
does with an array whose indices are all constants, which is never told apart here.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from ptxlint.dataflow.reaching import Reaching, ReachingAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Expr, Register

STACK: Final = "R1"
_OPCODES: Final = ("LDL", "STL")
_BYTES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class LocalAccess(NamedTuple):
    """One `LDL` or `STL` and the bytes that a thread moves in it. `is_indexed` is true where the
    address is worked out at run time."""

    instr: Instr
    bytes: int
    is_store: bool
    is_indexed: bool


class LocalMemory(NamedTuple):
    """All accesses of a function in program order. `is_spilling` says that those at fixed places
    are spills: there is no array, no call, and the stack pointer is used for nothing else."""

    accesses: tuple[LocalAccess, ...]
    is_spilling: bool


class LocalMemoryAnalysis(Analysis[LocalMemory]):
    """Finds them."""

    name: ClassVar[str] = "local-memory"
    requires = (ReachingAnalysis,)

    def run(self, facts: Facts) -> LocalMemory:
        """Look at each load and store of local memory."""
        fn = facts.function
        found = facts.instructions(lambda shape: shape.opcode in _OPCODES)
        if not found:
            return LocalMemory((), False)
        reaching = facts.get(ReachingAnalysis)
        accesses = tuple(
            LocalAccess(i, _bytes(i), i.opcode == "STL", _is_indexed(fn, reaching, i))
            for i in found
        )
        is_plain = not any(a.is_indexed for a in accesses)
        return LocalMemory(accesses, is_plain and not _stack_escapes(fn, found))


def frame_bytes(instr: Instr) -> range | None:
    """The bytes of the frame that an `LDL` or `STL` touches; None if that is not plain to see."""
    address = next((o for o in instr.operands if isinstance(o, Address)), None)
    if address is None or address.rest or not isinstance(address.base, Register):
        return None
    if address.base.name != STACK:
        return None
    return range(address.offset, address.offset + _bytes(instr))


def _bytes(instr: Instr) -> int:
    return next((_BYTES[m] for m in instr.shape.modifiers if m in _BYTES), 4)


def _is_indexed(fn: Function, reaching: Reaching, instr: Instr) -> bool:
    address = next(o for o in instr.operands if isinstance(o, Address))
    base = address.base
    if not isinstance(base, Register):
        return isinstance(base, Expr)
    if base.name == STACK:
        return False
    sites = reaching.defs_of(instr, base)
    return not sites or not all(at >= 0 and _from_stack(fn.instrs[at]) for at in sites)


def _from_stack(instr: Instr) -> bool:
    """True for an instruction that adds at most a constant to the stack pointer."""
    return not instr.shape.guard and [r.name for r in instr.uses] == [STACK]


def _stack_escapes(fn: Function, accesses: list[Instr]) -> bool:
    """True if something beside these accesses may reach the stack."""
    known = {i.index for i in accesses}
    for instr in fn.instrs:
        if instr.shape.row.is_call:
            return True
        if instr.index in known or not any(r.name == STACK for r in instr.uses):
            continue
        if [r.name for r in instr.defs] != [STACK]:
            return True
    return False


__all__ = ["STACK", "LocalAccess", "LocalMemory", "LocalMemoryAnalysis", "frame_bytes"]
