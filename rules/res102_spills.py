"""RES102: values that do not fit the registers, so that threads keep them in local memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample

_HOLDERS: Final = 4
"""So many lines are named that hold most values where most are live."""
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
        "those of the instructions in the text, not of their executions."
    )
    fix = (
        "Use a smaller tile or more warps, keep fewer values alive at the lines named, or allow "
        "more registers (`maxnreg`, `num_warps`)."
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
    needs = (PressureAnalysis,)

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
        (source,) = {a.source for a in (stores, loads) if a is not None and a.value}
        at = pressure.peak_instr
        origins = [] if at is None else pressure.origins(at, facts.module, _HOLDERS)
        yield Hit(
            f"registers spill to local memory: {' and '.join(parts)} ({source})",
            at,
            tuple(Note(f"{words} registers hold values from here", i) for words, i in origins),
            key="spills",
            label=f"most values are live here: about {pressure.peak.words} registers of them",
        )
