"""RES106: where machine code keeps values in local memory, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.local_memory import LocalAccess, LocalMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample

_SHOWN: Final = 4
"""So many further lines are named."""


class SpillPlaces(Rule):
    id = "RES106"
    name = "spill-places"
    severity = "warning"
    confidence = "high"
    category = "resources"
    family = "resources"
    levels = ("sass",)
    needs = (LocalMemoryAnalysis, LoopsAnalysis)
    summary = "Machine code stores values to local memory and loads them again."
    why = (
        "A value that has no register is stored to local memory and loaded where it is needed, by "
        "every thread. In a loop that is paid in every round and is a warning; elsewhere it is a "
        "note. The bytes are those of the instructions `STL` and `LDL` in the text for one thread, "
        "by the line of the source that they belong to, not of their executions. They are called "
        "spills where nothing else can be: no array is indexed, nothing is called, and the stack "
        "pointer goes nowhere else. An array with constant indices looks the same."
    )
    fix = (
        "Use a smaller tile or more warps, keep fewer values alive across these lines, or allow "
        "more registers (`maxnreg`, `num_warps`)."
    )
    bad = (
        Sample(
            "a value is kept in local memory over a loop",
            """
            .L_x_0:
            STL [R1+0x8], R4 //~ RES106
            FADD R5, R5, R6
            LDL.64 R4, [R1+0x8]
            @P0 BRA `(.L_x_0)
            EXIT
            """,
            level="sass",
        ),
        Sample(
            "once, before the end: a note",
            """
            STL.128 [R1], R4 //~ RES106
            LDL.128 R4, [R1]
            EXIT
            """,
            level="sass",
        ),
    )
    good = (
        Sample(
            "no local memory",
            """
            LDG.E R4, desc[UR4][R2.64]
            STG.E desc[UR4][R2.64], R4
            EXIT
            """,
            level="sass",
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel, at the line with most bytes; the others are notes."""
        if not facts.opcodes.intersection(("STL", "LDL")):
            return
        local = facts.get(LocalMemoryAnalysis)
        fixed = [a for a in local.accesses if not a.is_indexed]
        if not fixed:
            return
        cfg, loops = facts.get(CfgAnalysis), facts.get(LoopsAnalysis)
        in_loops = sum(loops.depth(cfg.block_at(a.instr).index) > 0 for a in fixed)
        lines = _by_line(facts, fixed)
        first, *others = sorted(lines, key=lambda part: (-_moved(part), part[0].instr.index))
        what = "registers spill to local memory" if local.is_spilling else "local memory is used"
        place = f", {in_loops} of {len(fixed)} instructions in loops" if in_loops else ""
        shown = tuple(Note(_said(part), part[0].instr) for part in others[:_SHOWN])
        yield Hit(
            f"{what}: {_said(fixed)}{place}",
            first[0].instr,
            shown,
            severity="" if in_loops else "note",
            key="local memory",
            label=f"{_said(first)} here" if others else "",
        )


def _by_line(facts: Facts, accesses: list[LocalAccess]) -> list[list[LocalAccess]]:
    lines: dict[tuple[str, int], list[LocalAccess]] = {}
    for access in accesses:
        frame = facts.module.python_frame(access.instr.loc)
        key = (frame.path, frame.line) if frame is not None else ("", 0)
        lines.setdefault(key, []).append(access)
    return list(lines.values())


def _moved(accesses: list[LocalAccess]) -> int:
    return sum(a.bytes for a in accesses)


def _said(accesses: list[LocalAccess]) -> str:
    stores = _moved([a for a in accesses if a.is_store])
    loads = _moved([a for a in accesses if not a.is_store])
    parts = [f"{count:,} bytes {word}" for count, word in ((stores, "stored"), (loads, "loaded"))
             if count]  # fmt: skip
    return ", ".join(parts)
