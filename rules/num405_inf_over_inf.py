"""NUM405: exponentials that overflow in numerator and denominator alike."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.nonfinite import LARGE, QUOTIENT, Fault, Nonfinite, NonfiniteAnalysis
from ptxlint.dataflow.quotients import Quotients, QuotientsAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_ASSUMES = ("finite data without overflow", "sizes and floating-point parameters are positive")
_MAP = """
            .reg .b32 %r<12>;
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


_SUM = """
            shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;
            add.f32 %r6, %r4, %r5;"""


class InfOverInf(Rule):
    id = "NUM405"
    name = "inf-over-inf"
    severity = "warning"
    confidence = "high"
    category = "numerics"
    family = "nonfinite"
    needs = (NonfiniteAnalysis, QuotientsAnalysis)
    summary = "Exponentials overflow above and below the line of a fraction, and NaN is stored."
    why = (
        "exp(x) is infinite in single precision from x = 88.8 on, and inf / inf is NaN, although "
        "the fraction itself is an ordinary number: exp(x) / sum(exp(x)) lies between 0 and 1, "
        "(exp(2x) - 1) / (exp(2x) + 1) between -1 and 1. The rule evaluates the kernel with all "
        "loaded numbers 100, and again with all -100, and reports a fraction whose NaN certainly "
        "reaches a store."
    )
    fix = (
        "Subtract the maximum before exponentials, exp(x - max(x)); or write the fraction so that "
        "only its denominator may overflow: 1 / (1 + exp(-x)), 1 - 2 / (exp(2x) + 1)."
    )
    bad = (
        Sample(
            "a softmax that does not subtract the maximum",
            _of(
                "mul.f32 %r3, %r2, 0f3FB8AA3B;\n            ex2.approx.f32 %r4, %r3;"
                + _SUM
                + "\n            div.full.f32 %r9, %r4, %r6; //~ NUM405"
            ),
        ),
        Sample(
            "x exp(x) / (1 + exp(x)), with a reciprocal",
            _of(
                """mul.f32 %r3, %r2, 0f3FB8AA3B;
            ex2.approx.f32 %r4, %r3;
            add.f32 %r5, %r4, 0f3F800000;
            rcp.approx.f32 %r6, %r5;
            mul.f32 %r7, %r4, %r6; //~ NUM405
            mul.f32 %r9, %r2, %r7;"""
            ),
        ),
    )
    good = (
        Sample(
            "the maximum is subtracted",
            _of(
                """shfl.sync.bfly.b32 %r7, %r2, 1, 31, -1;
            max.f32 %r8, %r2, %r7;
            sub.f32 %r10, %r2, %r8;
            mul.f32 %r3, %r10, 0f3FB8AA3B;
            ex2.approx.f32 %r4, %r3;"""
                + _SUM
                + "\n            div.full.f32 %r9, %r4, %r6;"
            ),
        ),
        Sample(
            "a sigmoid: where exp(-x) overflows the result is 0",
            _of(
                """mul.f32 %r3, %r2, 0fBFB8AA3B;
            ex2.approx.f32 %r4, %r3;
            add.f32 %r5, %r4, 0f3F800000;
            mov.b32 %r6, 0f3F800000;
            div.full.f32 %r9, %r6, %r5;"""
            ),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One verdict for each Python line that divides by what exponentials make."""
        opcodes = facts.opcodes
        if "ex2" not in opcodes or not opcodes & {"div", "rcp", "rsqrt"}:
            return
        nonfinite = facts.get(NonfiniteAnalysis)
        seen: set[object] = set()
        for data in (LARGE, -LARGE):
            for fault in nonfinite.faults(data):
                line = nonfinite.line(fault.at)
                if fault.kind == QUOTIENT and fault.cause is not None and line not in seen:
                    seen.add(line)
                    yield _hit(nonfinite, fault, fault.cause)
                    reason = f"inf / inf where all data are {data:g}"
                    yield Verdict("refuted", reason, fault.at)
        yield from _judge(nonfinite, facts.get(QuotientsAnalysis), seen)


def _judge(nonfinite: Nonfinite, quotients: Quotients, refuted: set[object]) -> Iterator[Verdict]:
    """The verdicts on the lines that were not refuted, each the worst of its divisions."""
    lines: dict[object, list[Instr]] = {}
    for division in quotients.divisions:
        met = {nonfinite.line(factor.at) for factor in quotients.factors(division)}
        line = nonfinite.line(division)
        behind = nonfinite.exponential_behind(division)
        if line == division.index and behind is not None:
            # Without a line of their own, quotients by the same exponentials belong together.
            line = nonfinite.line(behind)
        if not refuted & {line, *met}:
            lines.setdefault(line, []).append(division)
    for divisions in lines.values():
        reasons = [(quotients.reason(division), division) for division in divisions]
        at = next((division for reason, division in reasons if not reason), None)
        if at is None:
            reason = max(reason for reason, _ in reasons)
            yield Verdict("proved", reason, divisions[0], assumes=_ASSUMES)
        else:
            why = nonfinite.obstacle(at)
            reason = "dividend and divisor may both be infinite" + (f"; {why}" if why else "")
            yield Verdict("open", reason, at)


def _hit(nonfinite: Nonfinite, fault: Fault, overflow: Instr) -> Hit:
    load = nonfinite.load_behind(overflow)
    notes = [] if load is None else [Note(f"all that is loaded here is {fault.data:g}", load)]
    notes.append(Note("so this exponential overflows", overflow))
    notes.append(Note("and NaN is stored", fault.store))
    return Hit(
        "exponentials overflow in numerator and denominator: inf / inf stores NaN",
        fault.at,
        tuple(notes),
        breaks_when=f"the data are about {fault.data:g}",
        key="inf / inf",
        label="inf / inf",
    )
