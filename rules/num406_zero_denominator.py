"""NUM406: a division by a reduction that is 0 for a tile of zeros."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.exponential_sums import ExponentialSumsAnalysis
from ptxlint.dataflow.nonfinite import ZERO, Fault, Nonfinite, NonfiniteAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_NAMES = {"add": "sum", "fma": "sum", "min": "minimum", "mul": "product"}
_ASSUMES = ("finite data without overflow", "sizes and floating-point parameters are positive")

_QUANTISE = """
            .reg .pred %p<3>;
            .reg .b32 %r<40>;
            .reg .b64 %rd<4>;
            mov.u32 %r1, %tid.x;
            ld.param.u32 %r2, [n_elements];
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            and.b32 %r1, %r1, 31;
            setp.lt.s32 %p1, %r1, %r2;
            mul.wide.u32 %rd3, %r1, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
            mov.b32 %r3, 0;
            @%p1 ld.global.b32 %r3, [%rd1];
            CHANGE
            shfl.sync.bfly.b32 %r5, %r4, 16, 31, -1;
            OPERATOR.f32 %r6, %r4, %r5;
            shfl.sync.bfly.b32 %r7, %r6, 8, 31, -1;
            OPERATOR.f32 %r8, %r6, %r7;
            shfl.sync.bfly.b32 %r9, %r8, 4, 31, -1;
            OPERATOR.f32 %r10, %r8, %r9;
            shfl.sync.bfly.b32 %r11, %r10, 2, 31, -1;
            OPERATOR.f32 %r12, %r10, %r11;
            shfl.sync.bfly.b32 %r13, %r12, 1, 31, -1;
            OPERATOR.f32 %r14, %r12, %r13;
            FINISH
            @%p1 st.global.b32 [%rd2], %r17;
            ret;
"""


def _of(change: str, operator: str, finish: str) -> str:
    words = {"CHANGE": change, "OPERATOR": operator, "FINISH": finish}
    code = _QUANTISE
    for name, text in words.items():
        code = code.replace(name, text)
    return code


_SQUARE = "mul.f32 %r4, %r3, %r3;"


class ZeroDenominator(Rule):
    id = "NUM406"
    name = "zero-denominator"
    severity = "warning"
    confidence = "high"
    category = "numerics"
    family = "nonfinite"
    needs = (NonfiniteAnalysis, ExponentialSumsAnalysis)
    summary = "A sum or maximum that is 0 when all data are 0 divides, and NaN is stored."
    why = (
        "The largest magnitude of a block, its norm and its variance are 0 when the block is all "
        "zeros, as padding, dead channels and masked tokens are. 0 / 0 is NaN, and so is 0 times "
        "the reciprocal of 0. Random test data never have such a block. The rule evaluates the "
        "kernel with all loaded numbers 0 and reports a division whose NaN or infinity certainly "
        "reaches a store; a floor, an eps, a clamp or a selection that keeps the divisor from "
        "being 0 makes the result finite and the rule silent."
    )
    fix = (
        "Keep the divisor away from 0: tl.maximum(scale, 1e-12), + eps under the root, or "
        "tl.where(scale == 0.0, 1.0, scale)."
    )
    refs = ("https://github.com/huggingface/kernels-community/issues/680",)
    bad = (
        Sample(
            "values divided by the largest magnitude of their block",
            _of("abs.f32 %r4, %r3;", "max", "div.full.f32 %r17, %r3, %r14; //~ NUM406"),
        ),
        Sample(
            "values multiplied by the reciprocal norm, without eps",
            _of(
                _SQUARE,
                "add",
                "rsqrt.approx.f32 %r15, %r14; //~ NUM406\n            mul.f32 %r17, %r3, %r15;",
            ),
        ),
    )
    good = (
        Sample(
            "the largest magnitude has a floor",
            _of(
                "abs.f32 %r4, %r3;",
                "max",
                "max.f32 %r15, %r14, 0f2EDBE6FF;\n            div.full.f32 %r17, %r3, %r15;",
            ),
        ),
        Sample(
            "eps under the root",
            _of(
                _SQUARE,
                "add",
                "add.f32 %r15, %r14, 0f3727C5AC;\n            rsqrt.approx.f32 %r16, %r15;\n"
                "            mul.f32 %r17, %r3, %r16;",
            ),
        ),
        Sample(
            "a divisor of 0 is replaced",
            _of(
                "abs.f32 %r4, %r3;",
                "max",
                "setp.eq.f32 %p2, %r14, 0f00000000;\n"
                "            selp.f32 %r15, 0f3F800000, %r14, %p2;\n"
                "            div.full.f32 %r17, %r3, %r15;",
            ),
        ),
        Sample(
            "one plus a sum of squares is never 0",
            _of(
                _SQUARE,
                "add",
                "add.f32 %r15, %r14, 0f3F800000;\n            div.full.f32 %r17, %r3, %r15;",
            ),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit and one verdict for each Python line that divides by a reduction."""
        if facts.opcodes.isdisjoint(("div", "rcp", "rsqrt")):
            return
        nonfinite = facts.get(NonfiniteAnalysis)
        divisions = [(d, nonfinite.reduction_behind(d)) for d in nonfinite.divisions]
        lines: dict[object, list[tuple[Instr, Instr]]] = {}
        for division, reduction in divisions:
            if reduction is not None:
                line = nonfinite.line(division)
                # Without a line of their own, quotients by one sum belong together.
                key = line if line != division.index else nonfinite.line(reduction)
                lines.setdefault(key, []).append((division, reduction))
        faults = {}
        if lines:
            faults = {f.at.index: f for f in nonfinite.faults(0.0) if f.kind == ZERO}
        for group in lines.values():
            yield from _judge(nonfinite, facts, group, faults)


def _judge(
    nonfinite: Nonfinite,
    facts: Facts,
    group: list[tuple[Instr, Instr]],
    faults: dict[int, Fault],
) -> Iterator[Hit | Verdict]:
    for division, reduction in group:
        fault = faults.get(division.index)
        if fault is not None:
            yield _hit(nonfinite, fault, reduction)
            yield Verdict("refuted", "the divisor is 0 where all data are 0", division)
            return
    assumes: tuple[str, ...] = _ASSUMES
    for division, _ in group:
        divisor = nonfinite.divisor(division)
        if divisor is not None and not divisor.may_be_zero and not divisor.nan:
            continue
        if not facts.get(ExponentialSumsAnalysis).is_divisor(division):
            why = nonfinite.obstacle(division)
            reason = "the divisor is a reduction, and it was not seen that it is not 0"
            yield Verdict("open", f"{reason}; {why}" if why else reason, division)
            return
        assumes = (*_ASSUMES, "a row has a score that is not masked")
    yield Verdict("proved", "no divisor is 0", group[0][0], assumes=assumes)


def _hit(nonfinite: Nonfinite, fault: Fault, reduction: Instr) -> Hit:
    notes = []
    load = nonfinite.load_behind(reduction)
    if load is not None:
        notes.append(Note("all that is loaded here is 0", load))
    name = _NAMES.get(reduction.opcode, "maximum")
    notes.append(Note(f"so this {name} is 0", reduction))
    notes.append(Note(f"and {fault.result} is stored", fault.store))
    return Hit(
        f"`{fault.at.opcode}` by a {name} that is 0 when all data are 0 stores {fault.result}",
        fault.at,
        tuple(notes),
        breaks_when="every number of the tile is 0",
        key=f"zero {name} divides",
        label=f"this {name} may be 0",
    )
