"""RES107: machine code indexes an array in local memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.local_memory import LocalMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample
from ptxlint.wording import counted

_SHOWN: Final = 4


class LocalIndex(Rule):
    id = "RES107"
    name = "local-index"
    severity = "note"
    confidence = "high"
    category = "resources"
    family = "resources"
    levels = ("sass",)
    needs = (LocalMemoryAnalysis,)
    summary = "Machine code indexes an array in local memory at run time."
    why = (
        "Registers have no addresses, so an array whose index is known only at run time lies in "
        "local memory: each access is one to memory, by every thread. This is what the assembler "
        "left of the local arrays of the PTX (RES103); those it could unroll are in registers."
    )
    fix = (
        "Unroll the loop so that the indices are constants, select among values instead, or keep "
        "the array in shared memory."
    )
    bad = (
        Sample(
            "an index that is computed",
            """
            IMAD R2, R0, 0x4, R1
            LDL R4, [R2] //~ RES107
            STG.E desc[UR4][R6.64], R4
            EXIT
            """,
            level="sass",
        ),
        Sample(
            "a sum in the address",
            """
            LDL R4, [R1+UR4+0x8] //~ RES107
            EXIT
            """,
            level="sass",
        ),
    )
    good = (
        Sample(
            "a copy of the stack pointer is no index",
            """
            VIADD R2, R1, 0x10
            LDL R4, [R2+0x4] //~ RES106
            EXIT
            """,
            level="sass",
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel, at the first access."""
        if not facts.opcodes.intersection(("STL", "LDL")):
            return
        found = [a for a in facts.get(LocalMemoryAnalysis).accesses if a.is_indexed]
        if found:
            loads = sum(not a.is_store for a in found)
            parts = (counted(loads, "load"), counted(len(found) - loads, "store"))
            words = [part for part in parts if not part.startswith("0 ")]
            notes = tuple(Note("and here", a.instr) for a in found[1 : _SHOWN + 1])
            message = f"an array in local memory is indexed: {' and '.join(words)}"
            yield Hit(message, found[0].instr, notes, key="local index")
