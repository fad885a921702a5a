"""NUM404: exponentials relative to a running maximum that may still be -inf."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.masked_maximum import (
    OPEN,
    PROVED,
    REFUTED,
    MaskedMaxima,
    MaskedMaximaAnalysis,
    MaximumVerdict,
)
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_ASSUMES = ("finite scores before the masks", "sizes are positive")
_WORST = {REFUTED: 0, OPEN: 1, PROVED: 2}

_LOOP = """
            .reg .pred %p<5>;
            .reg .b32 %r<30>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            SETUP
            mov.u32 %r3, %tid.x;
            and.b32 %r3, %r3, 1;
            mov.b32 %r4, 0;
            mov.b32 %r5, START;
            mov.b32 %r6, 0f00000000;
            setp.lt.s32 %p1, %r1, 1;
            @%p1 bra done;
            loop:
            add.s32 %r7, %r3, %r4;
            mad.wide.u32 %rd3, %r7, 4, %rd1;
            ld.global.b32 %r8, [%rd3];
            MASK
            selp.f32 %r9, %r8, MASKED, %p2;
            shfl.sync.bfly.b32 %r10, %r9, 1, 31, -1;
            max.f32 %r11, %r9, %r10;
            max.f32 %r12, %r5, %r11;
            BASE
            sub.f32 %r14, %r9, %r13; MARK
            ex2.approx.f32 %r15, %r14;
            sub.f32 %r16, %r5, %r13;
            ex2.approx.f32 %r17, %r16;
            shfl.sync.bfly.b32 %r18, %r15, 1, 31, -1;
            add.f32 %r19, %r15, %r18;
            fma.rn.f32 %r6, %r6, %r17, %r19;
            mov.b32 %r5, %r12;
            add.s32 %r4, %r4, 2;
            setp.lt.s32 %p3, %r4, %r1;
            @%p3 bra loop;
            done:
            st.global.b32 [%rd2], %r6;
            ret;
"""
_PLAIN = "mov.b32 %r13, %r12;"


def _of(**words: str) -> str:
    usual = {
        "SETUP": "ld.global.u32 %r2, [%rd2+8];",
        "START": "0fFF800000",
        "MASKED": "0fFF800000",
        "MASK": "setp.ge.s32 %p2, %r7, %r2;",
        "BASE": _PLAIN,
        "MARK": "",
    } | words
    code = _LOOP
    for name in ("MASKED", "MARK", "SETUP", "START", "MASK", "BASE"):
        code = code.replace(name, usual[name])
    return code


class InfMinusInf(Rule):
    id = "NUM404"
    name = "inf-minus-inf"
    severity = "error"
    confidence = "high"
    category = "numerics"
    family = "nonfinite"
    needs = (MaskedMaximaAnalysis,)
    summary = "A first chunk that is masked whole makes a running maximum -inf, and its sums NaN."
    why = (
        "Online softmax carries a running maximum that starts at -inf. If all scores of the first "
        "chunk are masked to -inf, as behind a window, in front of a sequence's start or under an "
        "attention mask, the maximum stays -inf, and exp(-inf - -inf) is NaN. Later chunks do not "
        "mend it: NaN stays in every sum that the loop carries, although the row has scores. The "
        "rule wants a mask that a parameter, a program id or loaded data turns off for the whole "
        "first chunk, while the loop goes on and the result is stored. A mask that always leaves a "
        "lane, as `column < size` does from column 0 on and a causal mask does, is proved."
    )
    fix = (
        "Subtract a finite number where the maximum is -inf: "
        "m_safe = tl.where(m_new == -float('inf'), 0.0, m_new); or start at and mask with a large "
        "negative number such as -1e30; or begin the loop at the first chunk that is visible."
    )
    refs = ("https://github.com/vllm-project/vllm/issues/48364",)
    bad = (
        Sample(
            "scores before the start of a window are masked, and the loop begins at 0",
            _of(MARK="//~ NUM404"),
        ),
    )
    good = (
        Sample(
            "0 stands for a maximum of -inf",
            _of(
                BASE="setp.eq.f32 %p4, %r12, 0fFF800000;\n"
                "            selp.f32 %r13, 0f00000000, %r12, %p4;"
            ),
        ),
        Sample(
            "maximum and masked scores start at -1e30", _of(START="0fF149F2CA", MASKED="0fF149F2CA")
        ),
        Sample(
            "the first column of the first chunk is never masked",
            _of(SETUP="", MASK="setp.lt.s32 %p2, %r7, %r1;"),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One verdict for each Python line that subtracts such a maximum, a hit if refuted."""
        opcodes = facts.opcodes
        if "ex2" not in opcodes or not opcodes & {"max", "redux"}:
            return
        maxima = facts.get(MaskedMaximaAnalysis)
        lines: dict[object, MaximumVerdict] = {}
        for verdict in maxima.verdicts:
            line = maxima.line(verdict.at)
            before = lines.get(line)
            if before is None or _WORST[verdict.status] < _WORST[before.status]:
                lines[line] = verdict
        for verdict in lines.values():
            if verdict.status == REFUTED:
                yield _hit(maxima, verdict)
            assumes = _ASSUMES if verdict.status == PROVED else ()
            why = maxima.obstacle(verdict.at) if verdict.status == OPEN else ""
            reason = f"{verdict.reason}; {why}" if why else verdict.reason
            yield Verdict(verdict.status, reason, verdict.at, assumes=assumes)


def _hit(maxima: MaskedMaxima, verdict: MaximumVerdict) -> Hit:
    notes = []
    load = maxima.load_behind(verdict.mask) if verdict.mask is not None else None
    if load is not None and load is not verdict.mask:
        notes.append(Note("scores are made of what is loaded here", load))
    if verdict.mask is not None:
        notes.append(Note("this mask may leave none of the first chunk", verdict.mask))
    notes.append(Note("so the running maximum is still -inf here", verdict.maximum.at))
    if verdict.store is not None:
        notes.append(Note("and NaN is stored in the end", verdict.store))
    return Hit(
        "a running maximum may be -inf here: -inf - -inf is NaN and stays in the sums",
        verdict.at,
        tuple(notes),
        breaks_when=f"{verdict.bound} masks the whole first chunk, and a later one is visible",
        key="running maximum of -inf",
        label="-inf - -inf",
    )
