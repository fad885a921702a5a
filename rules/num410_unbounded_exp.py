"""NUM410: an exponential of loaded numbers that overflows into what is stored."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.nonfinite import LARGE, OVERFLOW, Fault, Nonfinite, NonfiniteAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict
from ptxlint.wording import counted

_MAP = """
            .reg .b32 %r<12>;
            .reg .pred %p<2>;
            .reg .b64 %rd<4>;
            mov.u32 %r1, %tid.x;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            mul.wide.u32 %rd3, %r1, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
            ld.global.b32 %r2, [%rd1];
            FORMULA
            st.global.b32 [%rd2], %r9;
            ret;
"""


def _of(formula: str) -> str:
    return _MAP.replace("FORMULA", formula)


class UnboundedExp(Rule):
    id = "NUM410"
    name = "unbounded-exp"
    severity = "note"
    confidence = "medium"
    category = "numerics"
    family = "nonfinite"
    needs = (NonfiniteAnalysis,)
    summary = "An exponential of loaded numbers has no bound, and its infinity is stored."
    why = (
        "exp(x) is infinite in single precision from x = 88.8 on. Nothing is subtracted from x and "
        "nothing clamps it, so that data of about 100 store an infinity. That is right where the "
        "data are known to be small or negative, as log-probabilities are. Formulas that come out "
        "finite although an exponential overflows, as 1 / (1 + exp(-x)), are not reported."
    )
    fix = "Clamp the argument, tl.exp(tl.minimum(x, 80.0)), or subtract the maximum of the row."
    bad = (
        Sample(
            "an exponential of what is loaded",
            _of("mul.f32 %r3, %r2, 0f3FB8AA3B;\n            ex2.approx.f32 %r9, %r3; //~ NUM410"),
        ),
    )
    good = (
        Sample(
            "the argument is clamped",
            _of(
                """min.f32 %r3, %r2, 0f42A00000;
            mul.f32 %r4, %r3, 0f3FB8AA3B;
            ex2.approx.f32 %r9, %r4;"""
            ),
        ),
        Sample(
            "a sigmoid",
            _of(
                """mul.f32 %r3, %r2, 0fBFB8AA3B;
            ex2.approx.f32 %r4, %r3;
            add.f32 %r5, %r4, 0f3F800000;
            rcp.approx.f32 %r9, %r5;"""
            ),
        ),
        Sample(
            "x itself beyond a threshold",
            _of(
                """mul.f32 %r3, %r2, 0f3FB8AA3B;
            ex2.approx.f32 %r4, %r3;
            setp.gt.f32 %p1, %r2, 0f41A00000;
            selp.f32 %r9, %r2, %r4, %p1;"""
            ),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit for all exponentials that overflow."""
        if "ex2" not in facts.opcodes:
            return
        nonfinite = facts.get(NonfiniteAnalysis)
        found: dict[int, Fault] = {}
        for data in (LARGE, -LARGE):
            for fault in nonfinite.faults(data):
                if fault.kind == OVERFLOW:
                    found.setdefault(fault.at.index, fault)
        if found:
            faults = [found[at] for at in sorted(found)]
            yield _hit(nonfinite, facts, faults)
            yield Verdict("open", "whether the data stay below 88 is not known", faults[0].at)


def _hit(nonfinite: Nonfinite, facts: Facts, faults: list[Fault]) -> Hit:
    first = faults[0]
    load = nonfinite.load_behind(first.at)
    notes = [] if load is None else [Note(f"where {first.data:g} is loaded here", load)]
    notes.append(Note("an infinity is stored", first.store))
    lines = {
        (frame.path, frame.line)
        for fault in faults
        if (frame := facts.module.python_frame(fault.at.loc)) is not None
    }
    where = f" on {counted(len(lines), 'line')}" if len(lines) > 1 else ""
    return Hit(
        f"`ex2` of loaded numbers{where} has no bound, and its infinity is stored",
        first.at,
        tuple(notes),
        breaks_when=f"the data are about {first.data:g}",
        key="unbounded exponential",
        label="no maximum is subtracted, and nothing clamps this",
    )
