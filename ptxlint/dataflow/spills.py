"""Where machine code keeps values in local memory: bytes by line of the source."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.local_memory import LocalAccess, LocalMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr


class SpillLine(NamedTuple):
    """The stores and loads of one line: bytes that a thread moves in the instructions of the text,
    how many these are, and how many of them stand in loops. `path` is "" and `line` 0 where the
    code names no line; `first` is the first of the instructions."""

    path: str
    line: int
    stored: int
    loaded: int
    instructions: int
    in_loops: int
    first: Instr

    @property
    def moved(self) -> int:
        """Bytes stored and loaded."""
        return self.stored + self.loaded


class Spills(NamedTuple):
    """Accesses to local memory at fixed places, by line, most bytes first. `is_certain` is true
    where they can be nothing but spills; else an array with constant indices may be among them."""

    lines: tuple[SpillLine, ...]
    is_certain: bool

    @property
    def stored(self) -> int:
        """Bytes of all stores."""
        return sum(line.stored for line in self.lines)

    @property
    def loaded(self) -> int:
        """Bytes of all loads."""
        return sum(line.loaded for line in self.lines)


def spills(facts: Facts) -> Spills:
    """What a function of machine code spills."""
    if not facts.opcodes.intersection(("STL", "LDL")):
        return Spills((), True)
    local = facts.get(LocalMemoryAnalysis)
    lines: dict[tuple[str, int], list[LocalAccess]] = {}
    for access in local.accesses:
        if not access.is_indexed:
            frame = facts.module.python_frame(access.instr.loc)
            key = ("", 0) if frame is None else (frame.path, frame.line)
            lines.setdefault(key, []).append(access)
    found = [_line(facts, *key, accesses) for key, accesses in lines.items()]
    found.sort(key=lambda line: (-line.moved, line.first.index))
    return Spills(tuple(found), local.is_spilling)


def _line(facts: Facts, path: str, line: int, accesses: list[LocalAccess]) -> SpillLine:
    cfg, loops = facts.get(CfgAnalysis), facts.get(LoopsAnalysis)
    return SpillLine(
        path,
        line,
        sum(a.bytes for a in accesses if a.is_store),
        sum(a.bytes for a in accesses if not a.is_store),
        len(accesses),
        sum(loops.depth(cfg.block_at(a.instr).index) > 0 for a in accesses),
        accesses[0].instr,
    )


def moved(stored: int, loaded: int) -> str:
    """Bytes in words: "1,204 bytes stored, 980 bytes loaded"."""
    words = ((stored, "stored"), (loaded, "loaded"))
    return ", ".join(f"{count:,} bytes {word}" for count, word in words if count)


__all__ = ["SpillLine", "Spills", "moved", "spills"]
