"""RES106: where machine code keeps values in local memory, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.local_memory import LocalMemoryAnalysis
from ptxlint.dataflow.spills import moved, spills
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
        found = spills(facts)
        if not found.lines:
            return
        in_loops = sum(line.in_loops for line in found.lines)
        count = sum(line.instructions for line in found.lines)
        first, *others = found.lines
        what = "registers spill to local memory" if found.is_certain else "local memory is used"
        place = f", {in_loops} of {count} instructions in loops" if in_loops else ""
        shown = tuple(Note(moved(o.stored, o.loaded), o.first) for o in others[:_SHOWN])
        yield Hit(
            f"{what}: {moved(found.stored, found.loaded)}{place}",
            first.first,
            shown,
            severity="" if in_loops else "note",
            key="local memory",
            label=f"{moved(first.stored, first.loaded)} here" if others else "",
        )
