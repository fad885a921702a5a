"""What threads hand each other through shared memory, told apart by barriers alone.

Program order stands for time, which it is in code without other branches than that of its loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of

_READERS: Final = frozenset({"ld", "ldmatrix", "wgmma"})


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
        elif opcode in ("st", "stmatrix") and instr.shape.space == "shared":
            since.append(instr)
        elif before and instr.defs and _reads_shared(instr):
            found.append((instr, before))
    return found


def _reads_shared(instr: Instr) -> bool:
    return instr.opcode in _READERS and "shared" in memory_of(instr.shape).reads
