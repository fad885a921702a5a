"""What threads hand each other through shared memory, told apart by barriers alone.

Program order stands for time, which it is in code without other branches than that of its loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import memory_of

_TOUCHING: Final = frozenset({"bar", "barrier", "st", "stmatrix"})
_READERS: Final = frozenset({"ld", "ldmatrix", "wgmma"})


def touching(instrs: Iterable[Instr]) -> list[Instr]:
    """The barriers, and what may read or write shared memory: all that the others here look at."""
    known: dict[Shape, bool] = {}
    found: list[Instr] = []
    for instr in instrs:
        shape = instr.shape
        touches = known.get(shape)
        if touches is None:
            reads = memory_of(shape).reads
            touches = shape.opcode in _TOUCHING or not {"shared", ""}.isdisjoint(reads)
            known[shape] = touches
        if touches:
            found.append(instr)
    return found


def exchanges(instrs: Iterable[Instr]) -> list[tuple[Instr, list[Instr]]]:
    """What reads shared memory, with the stores before the last barrier before it.

    Where several barriers follow each other with no store between them, they count as one.
    """
    found: list[tuple[Instr, list[Instr]]] = []
    before: list[Instr] = []
    since: list[Instr] = []
    for instr in instrs:
        opcode = instr.opcode
        if opcode in ("bar", "barrier") and "warp" not in instr.shape.modifiers:
            if since:
                before, since = since, []
        elif _stores_shared(instr):
            since.append(instr)
        elif before and instr.defs and _reads_shared(instr):
            found.append((instr, before))
    return found


def _reads_shared(instr: Instr) -> bool:
    return instr.opcode in _READERS and "shared" in memory_of(instr.shape).reads


def unread(body: list[Instr]) -> list[Instr]:
    """The stores to shared memory in the body of a loop that no round reads.

    A round may read what was stored since the barrier before the last one, of the round before too.
    """
    stores = [i for i in body if _stores_shared(i)]
    if not stores:
        return []
    read: set[int] = set()
    before: list[Instr] = []
    since: list[Instr] = []
    for instr in body + body:
        if instr.opcode in ("bar", "barrier") and "warp" not in instr.shape.modifiers:
            if since:
                before, since = since, []
        elif _stores_shared(instr):
            since.append(instr)
        elif not {"shared", ""}.isdisjoint(memory_of(instr.shape).reads):
            read.update(store.index for store in (*before, *since))
    return [store for store in stores if store.index not in read]


def _stores_shared(instr: Instr) -> bool:
    return instr.opcode in ("st", "stmatrix") and instr.shape.space == "shared"
