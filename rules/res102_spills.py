"""RES102: values that do not fit the registers, so that threads keep them in local memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.spills import SpillLine, moved, spills
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample
from ptxlint.structure.assembled_into import AssembledInto
from ptxlint.wording import counted

_HOLDERS: Final = 4
"""So many lines are named that hold most values where most are live."""
_LINES: Final = 4
"""So many lines are named where the machine code spills."""
_COPY: Final = """
            .reg .b32 %r<3>;
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];{mark}
            ld.global.u32 %r1, [%rd1];
            st.global.u32 [%rd2], %r1;
            ret;
"""


class Spills(Rule):
    id = "RES102"
    name = "spills"
    severity = "warning"
    confidence = "high"
    category = "resources"
    family = "resources"
    summary = "The assembler keeps values in local memory because a thread has no register left."
    why = (
        "Each value that is spilled is stored to local memory and loaded again, by every thread, "
        "often in the innermost loop: a kernel that spills may take several times as long. What is "
        "spilled is decided by the assembler, so the rule speaks only where one has spoken: a log "
        "of `ptxas -v` or a cubin beside the file, or `--exact`, which runs one. The bytes are "
        "those of the instructions in the text, not of their executions: exact from a log, of a "
        "cubin counted in its machine code (SASS). Where the machine code is at hand, the lines "
        "are named on which it spills, most bytes first."
    )
    fix = (
        "Use a smaller tile or more warps, keep fewer values alive at the lines named, or allow "
        "more registers (`maxnreg`, `num_warps`). `ptxlint show pressure` draws them along the "
        "program."
    )
    refs = (
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#register-pressure",
    )
    bad = (
        Sample(
            "an assembler that says so",
            _COPY.format(mark=" //~ RES102"),
            {"registers": 255, "spills": 2232},
        ),
    )
    good = (
        Sample("nothing is spilled", _COPY.format(mark=""), {"registers": 255, "spills": 0}),
        Sample("no assembler has spoken", _COPY.format(mark="")),
    )
    needs = (AssembledInto, PressureAnalysis)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel, where most values are live."""
        known = facts.resources
        if known is None:
            return
        stores, loads = known.spill_stores, known.spill_loads
        if not (stores is not None and stores.value) and not (loads is not None and loads.value):
            return
        pressure = facts.get(PressureAnalysis)
        parts = [
            f"{amount.value:,} bytes of {what}"
            for amount, what in ((stores, "stores"), (loads, "loads"))
            if amount is not None and amount.value
        ]
        said = {a.said: None for a in (stores, loads) if a is not None and a.value}
        at = pressure.peak_instr
        origins = [] if at is None else pressure.origins(at, facts.module, _HOLDERS)
        yield Hit(
            f"registers spill to local memory: {' and '.join(parts)} ({', '.join(said)})",
            at,
            (
                *_spilled_here(fn, facts),
                *(Note(f"{words} registers hold values from here", i) for words, i in origins),
            ),
            key="spills",
            label=f"most values are live here: about {pressure.peak.words} registers of them",
        )


def _spilled_here(fn: Function, facts: Facts) -> list[Note]:
    """The lines on which the machine code spills, most bytes first; each at the first instruction
    of the PTX that comes from it."""
    code = facts.get(AssembledInto)
    if code is None or code.facts is None:
        return []
    lines = [line for line in spills(code.facts).lines if line.line][:_LINES]
    if not lines:
        return []
    firsts: dict[tuple[str, int], Instr] = {}
    for instr in fn.instrs:
        frame = facts.module.python_frame(instr.loc)
        if frame is not None:
            firsts.setdefault((frame.path, frame.line), instr)
    return [
        Note(_said(line), firsts[line.path, line.line])
        for line in lines
        if (line.path, line.line) in firsts
    ]


def _said(line: SpillLine) -> str:
    """`1,172 bytes stored, 680 bytes loaded by machine code of this line (…)`."""
    among = line.in_loops if line.in_loops < line.instructions else "all"
    loops = f", {among} in loops" if line.in_loops else ""
    return (
        f"{moved(line.stored, line.loaded)} by machine code of this line "
        f"({counted(line.instructions, 'instruction')}{loops})"
    )
