"""Padding verdicts: those of the fixtures by Python line, and small kernels."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ptxlint.dataflow.padding import Padding, PaddingAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
ARCHS = sorted(p.name for p in PTX.iterdir() if p.is_dir())

TABLE: dict[str, dict[int, str]] = {
    "softmax": {15: "proved"},
    "softmax_fp16": {15: "proved"},
    "softmax_buggy": {15: "refuted"},
    "rmsnorm": {15: "proved"},
    "l2norm": {15: "proved"},
    "layer_norm_fwd": {21: "proved"},
    "layer_norm_bwd": {43: "proved", 50: "proved", 51: "proved"},
    "layer_norm_bwd_reduce": {79: "proved", 80: "proved"},
    "matmul_dot_fp16": {39: "proved", 40: "proved"},
    "elu": {},
    "bf16_add": {},
}
"""By fixture and line of the load: what holds of its padding."""


def padding(text: str, name: str = "k.ptx") -> tuple[Facts, Padding]:
    module = parse(text, name)
    (function,) = [f for f in module.functions if not f.is_declaration]
    facts = Facts(module, function)
    return facts, facts.get(PaddingAnalysis)


def by_line(path: Path, text: str = "") -> dict[int, str]:
    facts, found = padding(text or path.read_text(), path.name)
    out: dict[int, str] = {}
    for verdict in found.verdicts:
        assert verdict.at.loc is not None
        frame = facts.module.python_frame(verdict.at.loc)
        assert frame is not None
        out[frame.line] = verdict.status
    return out


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_verdicts_of_a_fixture(arch: str, name: str) -> None:
    assert by_line(PTX / arch / f"{name}.ptx") == TABLE[name]


@pytest.mark.parametrize("arch", ARCHS)
def test_only_the_wrong_softmax_is_refuted(arch: str) -> None:
    assert by_line(PTX / arch / "softmax_buggy.ptx") == {15: "refuted"}
    for name in ("softmax", "zero_fill", "rmsnorm", "attention", "quantise_fp8", "welford"):
        path = PTX / arch / f"{name}.ptx"
        # Some architectures have no fp8 conversions.
        if path.exists():
            assert "refuted" not in by_line(path).values(), name


START = """.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
    .param .u32 n, .param .u32 m) .reqntid 32
{
.reg .pred %p<9>;
.reg .b16 %h<20>;
.reg .b32 %r<60>;
.reg .b64 %d<20>;
mov.u32 %r1, %tid.x;
ld.param.u32 %r2, [n];
ld.param.u32 %r50, [m];
ld.param.u64 %d1, [a];
ld.param.u64 %d2, [b];
mul.wide.u32 %d3, %r1, 4;
add.s64 %d1, %d1, %d3;
setp.lt.s32 %p1, %r1, %r2;
"""


def tree(operator: str, source: str, free: int, lanes: tuple[int, ...] = (16, 8, 4, 2, 1)) -> str:
    lines = []
    for at, lane in enumerate(lanes):
        target = free + 2 * at
        lines.append(f"shfl.sync.bfly.b32 %r{target}, {source}, {lane}, 31, -1;")
        lines.append(f"{operator}.f32 %r{target + 1}, {source}, %r{target};")
        source = f"%r{target + 1}"
    lines.append(f"st.global.b32 [%d2], {source};")
    return "\n".join(lines) + "\n"


def statuses(body: str) -> Counter[str]:
    _, found = padding(START + body + "ret;\n}\n")
    return Counter(v.status for v in found.verdicts)


def load(fill: str) -> str:
    return f"mov.b32 %r3, {fill};\n@%p1 ld.global.b32 %r3, [%d1];\n"


CHOSEN = """
    shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
    shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;
    setp.eq.f32 %p2, %r3, %r4;
    setp.lt.s32 %p3, %r1, %r5;
    and.pred %p4, %p2, %p3;
    setp.gt.f32 %p5, %r3, %r4;
    or.pred %p6, %p5, %p4;
    selp.f32 %r6, %r3, %r4, %p6;
    selp.b32 %r7, %r1, %r5, %p6;
    st.global.b32 [%d2], %r6;
    st.global.b32 [%d2+4], %r7;
"""

CASES = {
    "sum of zeros": (load("0") + tree("add", "%r3", 4), "proved"),
    "sum of minus infinity": (load("0fFF800000") + tree("add", "%r3", 4), "refuted"),
    "negative zero is neutral": (load("0f80000000") + tree("add", "%r3", 4), "proved"),
    "max of minus infinity": (load("0fFF800000") + tree("max", "%r3", 4), "proved"),
    "max of zero": (load("0") + tree("max", "%r3", 4), "refuted"),
    "max of a large negative number": (load("0fCE6E6B28") + tree("max", "%r3", 4), "open"),
    "max of relu": (load("0") + "max.f32 %r3, %r3, 0f00000000;\n" + tree("max", "%r3", 4),
                    "proved"),
    "min of plus infinity": (load("0f7F800000") + tree("min", "%r3", 4), "proved"),
    "masked again": (load("0f3F800000") + "selp.f32 %r3, %r3, 0f00000000, %p1;\n"
                     + tree("add", "%r3", 4), "proved"),
    "masked again by a stronger bound": (
        load("0f3F800000") + "add.s32 %r5, %r1, 1;\nsetp.lt.s32 %p2, %r5, %r2;\n"
        "selp.f32 %r3, %r3, 0f00000000, %p2;\n" + tree("add", "%r3", 6), "proved"),
    "masked again by a weaker bound": (
        load("0f3F800000") + "add.s32 %r5, %r1, -1;\nsetp.lt.s32 %p2, %r5, %r2;\n"
        "selp.f32 %r3, %r3, 0f00000000, %p2;\n" + tree("add", "%r3", 6), "open"),
    "masked again by another bound": (
        load("0f3F800000") + "setp.lt.s32 %p2, %r1, %r50;\n"
        "selp.f32 %r3, %r3, 0f00000000, %p2;\n" + tree("add", "%r3", 6), "open"),
    "a product of the mask as a number": (
        load("0f3F800000") + "selp.f32 %r4, 0f3F800000, 0f00000000, %p1;\n"
        "mul.f32 %r3, %r3, %r4;\n" + tree("add", "%r3", 6), "proved"),
    "zero times another load": (
        load("0") + "ld.global.b32 %r4, [%d1+4096];\nmul.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "proved"),
    "exponential of zero times another masked load": (
        load("0") + "ex2.approx.f32 %r3, %r3;\nmov.b32 %r4, 0;\n"
        "@%p1 ld.global.b32 %r4, [%d1+4096];\nmul.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "proved"),
    "exponential of zero times an unmasked load": (
        load("0") + "ex2.approx.f32 %r3, %r3;\nld.global.b32 %r4, [%d1+4096];\n"
        "mul.f32 %r3, %r3, %r4;\n" + tree("add", "%r3", 6), "open"),
    "the lanes that hold padding are not combined": (
        "setp.lt.s32 %p1, %r1, %r2;\nshr.u32 %r5, %r1, 3;\nsetp.lt.s32 %p1, %r5, %r2;\n"
        + load("0f3F800000") + tree("add", "%r3", 6, (4, 2, 1)), "proved"),
    "a part of the lanes that hold padding is combined": (
        "shr.u32 %r5, %r1, 2;\nsetp.lt.s32 %p1, %r5, %r2;\n"
        + load("0f3F800000") + tree("add", "%r3", 6, (4, 2, 1)), "refuted"),
    "a sum of a masked and an unmasked load": (
        load("0") + "ld.global.b32 %r4, [%d1+4096];\nadd.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "open"),
    "a sum of a load with a mask that always holds": (
        load("0") + "setp.lt.s32 %p2, %r1, 32;\nmov.b32 %r4, 0;\n"
        "@%p2 ld.global.b32 %r4, [%d1+4096];\nadd.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "proved"),
    "an entropy over zeros": (
        load("0") + "lg2.approx.f32 %r4, %r3;\nmul.f32 %r3, %r3, %r4;\n" + tree("add", "%r3", 6),
        "refuted"),
    "an entropy over ones": (
        load("0f3F800000") + "lg2.approx.f32 %r4, %r3;\nmul.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "proved"),
    "the exponent of a number as an integer": (
        load("0f3F800000") + "shr.u32 %r4, %r3, 23;\nsub.s32 %r4, %r4, 127;\n"
        "cvt.rn.f32.s32 %r3, %r4;\n" + tree("add", "%r3", 6), "proved"),
    "the exponent of another number": (
        load("0f40000000") + "shr.u32 %r4, %r3, 23;\nsub.s32 %r4, %r4, 127;\n"
        "cvt.rn.f32.s32 %r3, %r4;\n" + tree("add", "%r3", 6), "refuted"),
    "zero times what another lane holds": (
        load("0") + "ld.global.b32 %r4, [%d1+4096];\nxor.b32 %r5, %r1, 3;\n"
        "shfl.sync.idx.b32 %r4, %r4, %r5, 31, -1;\nmul.f32 %r3, %r3, %r4;\n"
        + tree("add", "%r3", 6), "proved"),
    "zero times the logarithm of what another lane holds": (
        load("0") + "ld.global.b32 %r4, [%d1+4096];\nlg2.approx.f32 %r4, %r4;\n"
        "xor.b32 %r5, %r1, 3;\nshfl.sync.idx.b32 %r4, %r4, %r5, 31, -1;\n"
        "mul.f32 %r3, %r3, %r4;\n" + tree("add", "%r3", 6), "open"),
    "a sum over a scan": (
        # The scan carries sums into the lanes that hold padding.
        load("0") + "shfl.sync.up.b32 %r4, %r3, 1, 0, -1;\nadd.f32 %r5, %r3, %r4;\n"
        + tree("add", "%r5", 6), "open"),
    "a scan from the other end over a scan": (
        load("0") + "shfl.sync.up.b32 %r4, %r3, 1, 0, -1;\nadd.f32 %r5, %r3, %r4;\n"
        "shfl.sync.bfly.b32 %r6, %r5, 31, 31, -1;\nshfl.sync.up.b32 %r7, %r6, 1, 0, -1;\n"
        "add.f32 %r8, %r6, %r7;\nst.global.b32 [%d2], %r8;\n", "open"),
    "a scan from the other end": (
        load("0") + "shfl.sync.bfly.b32 %r6, %r3, 31, 31, -1;\n"
        "shfl.sync.up.b32 %r7, %r6, 1, 0, -1;\nadd.f32 %r8, %r6, %r7;\n"
        "st.global.b32 [%d2], %r8;\n", "proved"),
    "a sum of elements with the sum of their row": (
        load("0") + tree("add", "%r3", 4, (4, 2, 1)) + "add.f32 %r10, %r3, %r9;\n"
        + tree("add", "%r10", 20, (4, 2, 1)), "open"),
    "an opaque mask": (
        "ld.global.b32 %r5, [%d1+4096];\nsetp.ne.s32 %p1, %r5, 0;\n"
        + load("0f3F800000") + tree("add", "%r3", 6), "open"),
    "a count of large elements": (
        load("0") + "setp.gt.f32 %p2, %r3, 0f40400000;\n"
        "selp.f32 %r3, 0f3F800000, 0f00000000, %p2;\n"
        + tree("add", "%r3", 6), "proved"),
    "a count of small elements": (
        load("0") + "setp.lt.f32 %p2, %r3, 0f40400000;\n"
        "selp.f32 %r3, 0f3F800000, 0f00000000, %p2;\n"
        + tree("add", "%r3", 6), "refuted"),
    "a count of elements that are not the fill": (
        load("-100") + "setp.eq.s32 %p2, %r3, -100;\n"
        "selp.f32 %r3, 0f00000000, 0f3F800000, %p2;\n" + tree("add", "%r3", 6), "proved"),
    "a count of elements below a bound that decides neither": (
        load("0") + "ld.global.b32 %r4, [%d1+4096];\nsetp.lt.f32 %p2, %r3, %r4;\n"
        "selp.f32 %r3, 0f3F800000, 0f00000000, %p2;\n" + tree("add", "%r3", 6), "open"),
    "a branch that padding takes": (
        load("0") + "mov.b32 %r4, 0f3F800000;\nsetp.eq.f32 %p2, %r3, 0f00000000;\n"
        "@%p2 bra ZERO;\nex2.approx.f32 %r4, %r3;\nbra DONE;\nZERO:\nmov.b32 %r4, 0;\nDONE:\n"
        + tree("add", "%r4", 6), "proved"),
    "a branch that padding does not take": (
        load("0") + "mov.b32 %r4, 0f3F800000;\nsetp.neu.f32 %p2, %r3, 0f00000000;\n"
        "@%p2 bra ZERO;\nex2.approx.f32 %r4, %r3;\nbra DONE;\nZERO:\nmov.b32 %r4, 0;\nDONE:\n"
        + tree("add", "%r4", 6), "refuted"),
    "a loop that keeps padding at zero": (
        load("0") + "mov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
        "LOOP:\nld.global.b32 %r5, [%d1+4096];\nmul.f32 %r4, %r4, %r5;\n"
        "fma.rn.f32 %r4, %r5, %r3, %r4;\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p2, %r6, %r50;\n"
        "@%p2 bra LOOP;\n" + tree("add", "%r4", 8), "proved"),
    "a loop that brings padding away from zero": (
        load("0") + "mov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
        "LOOP:\nld.global.b32 %r5, [%d1+4096];\nex2.approx.f32 %r7, %r3;\n"
        "mul.f32 %r4, %r4, %r5;\nfma.rn.f32 %r4, %r5, %r7, %r4;\nadd.s32 %r6, %r6, 1;\n"
        "setp.lt.s32 %p2, %r6, %r50;\n@%p2 bra LOOP;\n" + tree("add", "%r4", 8), "open"),
    "a loop whose rounds are masked apart": (
        # Where the last round is masked off the rounds before it were not.
        "mov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
        "LOOP:\nadd.s32 %r9, %r6, %r1;\nsetp.lt.s32 %p1, %r9, %r2;\n" + load("0")
        + "mul.f32 %r4, %r4, %r3;\nadd.f32 %r4, %r4, %r3;\nadd.f32 %r4, %r4, 0f3F800000;\n"
        "mul.f32 %r4, %r4, %r3;\nadd.s32 %r6, %r6, 32;\n"
        "setp.lt.s32 %p2, %r6, %r50;\n@%p2 bra LOOP;\n" + tree("add", "%r4", 10), "open"),
    "a sum of integers": (
        load("0") + "redux.sync.add.s32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "proved"),
    "a sum of ones": (
        load("1") + "redux.sync.add.s32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "refuted"),
    "a maximum of integers": (
        load("-2147483648") + "redux.sync.max.s32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n",
        "proved"),
    "a maximum of integers and zero": (
        load("0") + "redux.sync.max.s32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "refuted"),
    "a maximum of unsigned integers and zero": (
        load("0") + "redux.sync.max.u32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "proved"),
    "a maximum of integers above zero": (
        load("0") + "max.s32 %r3, %r3, 0;\nredux.sync.max.s32 %r4, %r3, -1;\n"
        "st.global.b32 [%d2], %r4;\n", "proved"),
    "whether any is true": (
        load("0") + "setp.gt.s32 %p2, %r3, 3;\nselp.b32 %r3, 1, 0, %p2;\n"
        "redux.sync.or.b32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "proved"),
    "whether any is zero": (
        load("0") + "setp.eq.s32 %p2, %r3, 0;\nselp.b32 %r3, 1, 0, %p2;\n"
        "redux.sync.or.b32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "open"),
    "a maximum of magnitudes by redux": (
        load("0") + "redux.sync.max.abs.f32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "proved"),
    "a maximum by redux": (
        load("0") + "redux.sync.max.f32 %r4, %r3, -1;\nst.global.b32 [%d2], %r4;\n", "refuted"),
    "a scan of zeros": (
        load("0") + "shfl.sync.up.b32 %r4, %r3, 1, 0, -1;\nadd.f32 %r5, %r3, %r4;\n"
        "st.global.b32 [%d2], %r5;\n", "proved"),
    "a scan of ones": (
        load("0f3F800000") + "shfl.sync.up.b32 %r4, %r3, 1, 0, -1;\nadd.f32 %r5, %r3, %r4;\n"
        "st.global.b32 [%d2], %r5;\n", "open"),
    "a narrow fill is widened where it is added": (
        "mov.b16 %h1, 0x8000;\n@%p1 ld.global.b16 %h1, [%d1];\ncvt.f32.bf16 %r3, %h1;\n"
        "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\nadd.rn.f32.bf16 %r5, %h1, %r4;\n"
        "st.global.b32 [%d2], %r5;\n", "proved"),
    "a maximum with its index": (
        load("0fFF800000") + "" + CHOSEN, "proved"),
    "a maximum with its index over zeros": (
        load("0") + "" + CHOSEN, "refuted"),
    "a maximum of magnitudes with its index": (
        load("0") + "abs.f32 %r3, %r3;\n" + CHOSEN, "open"),
    "no fill at all": ("@%p1 ld.global.b32 %r3, [%d1];\n" + tree("add", "%r3", 4), "open"),
    "a comparison with a constant": (
        "setp.lt.s32 %p1, %r1, 20;\n" + load("0f3F800000") + tree("add", "%r3", 6), "open"),
    "a shift of an exponent": (
        load("0") + tree("max", "%r3", 4) + "sub.f32 %r15, %r3, %r13;\nex2.approx.f32 %r16, %r15;\n"
        "selp.f32 %r16, %r16, 0f00000000, %p1;\n" + tree("add", "%r16", 20), "open"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_small_kernel(name: str) -> None:
    body, status = CASES[name]
    found = statuses(body)
    assert status in found, found
    assert status == "refuted" or "refuted" not in found


def test_the_guard_of_one_half_says_nothing_of_the_other() -> None:
    halves = """
        add.s32 %r5, %r1, 32;
        setp.lt.s32 %p2, %r5, %r2;
        mov.b16 %h1, 0xFF80;
        @%p1 ld.global.b16 %h1, [%d1];
        mov.b16 %h2, 0xFF80;
        @%p2 ld.global.b16 %h2, [%d1+64];
        mov.b32 %r6, {%h1, %h2};
        mov.b32 {%h3, %h4}, %r6;
        cvt.f32.bf16 %r7, %h3;
        cvt.f32.bf16 %r8, %h4;
        max.f32 %r9, %r7, %r8;
    """
    assert statuses(halves + tree("max", "%r9", 10)) == {"proved": 2}


def edited(name: str, old: str, new: str) -> dict[int, str]:
    """The verdicts of a fixture with one constant or instruction changed everywhere."""
    text = (PTX / "sm_90" / f"{name}.ptx").read_text()
    changed = re.sub(old, new, text)
    assert changed != text
    facts, found = padding(changed)
    frames = [(facts.module.python_frame(v.at.loc), v.status) for v in found.verdicts if v.at.loc]
    return {frame.line: status for frame, status in frames if frame is not None}


MASKED_AGAIN = r"selp\.(b32|f32) \t(%r\d+), (%r\d+), 0f(?:00000000|FF800000), %p\d+;"


@pytest.mark.parametrize(
    ("name", "old", "new", "wanted"),
    [
        ("softmax", r"(%r2), -8388608;", r"\1, 0;", {15: "refuted"}),
        ("softmax_fp16", r"(%rs2), -1024;", r"\1, 0;", {15: "refuted"}),
        ("cross_entropy_fwd", r"(%rs2), -128;", r"\1, 0;", {23: "refuted"}),
        ("zero_fill", r"(mov.b32 \t%r2), 0;", r"\1, 0xFF800000;", {18: "refuted"}),
        ("layer_norm_fwd", MASKED_AGAIN, r"mov.\1 \2, \3;", {21: "refuted"}),
        ("attention", MASKED_AGAIN, r"mov.\1 \2, \3;",
         {24: "proved", 27: "refuted", 32: "proved"}),
        ("flash_attention", MASKED_AGAIN, r"mov.\1 \2, \3;",
         {22: "proved", 32: "refuted", 33: "proved"}),
        # The other factor is 0 in the same lanes, so that the second mask is not needed.
        ("layer_norm_bwd", MASKED_AGAIN, r"mov.\1 \2, \3;",
         {43: "proved", 50: "proved", 51: "proved"}),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_not_proved(
    name: str, old: str, new: str, wanted: dict[int, str]
) -> None:
    assert edited(name, old, new) == wanted


def test_a_fill_that_only_reaches_a_masked_store_has_no_verdict() -> None:
    body = load("0") + "add.f32 %r3, %r3, 0f3F800000;\n@%p1 st.global.b32 [%d2], %r3;\n"
    assert not statuses(body)


def test_a_spent_budget_proves_nothing() -> None:
    module = parse(START + load("0") + tree("add", "%r3", 4) + "ret;\n}\n", "k.ptx")
    (function,) = module.functions
    facts = Facts(module, function)
    size = 50_000 + 400 * len(function.instrs)
    for steps in range(0, 60, 3):
        facts.effort = steps / size
        found = Padding(facts)
        assert not found.steps.spent or "proved" not in [v.status for v in found.verdicts]
    facts.effort = 1.0
    assert [v.status for v in Padding(facts).verdicts] == ["proved"]


ROWS = """
    shr.u32 %r30, %r1, 3;
    setp.lt.s32 %p1, %r30, %r2;
    and.b32 %r31, %r1, 3;
    shl.b32 %r31, %r31, 3;
    shr.u32 %r32, %r1, 2;
    or.b32 %r33, %r31, %r32;
    and.b32 %r34, %r1, 8;
    setp.ne.s32 %p4, %r34, 0;
"""
"""A tile of four rows in lane bits 3 and 4; behind `shfl` from %r33 they are in bits 0 and 1."""
CONVERTED = "shfl.sync.idx.b32 %r36, %r3, %r33, 31, -1;\n"
PICKED = """
    ld.global.b32 %r35, [%d1+256];
    selp.b32 %r36, %r3, %r35, %p4;
    selp.b32 %r37, %r35, %r3, %p4;
    xor.b32 %r39, %r1, 8;
    shfl.sync.idx.b32 %r38, %r37, %r39, 31, -1;
    selp.b32 %r36, %r38, %r36, %p4;
"""
"""Two registers of which the lanes with bit 3 change over: %r36 holds %r3 of either lane there."""
GATHERED = """
    and.b32 %r37, %r50, 3;
    shl.b32 %r37, %r37, 3;
    and.b32 %r38, %r1, 7;
    or.b32 %r39, %r38, %r37;
    shfl.sync.idx.b32 %r36, %r3, %r39, 31, -1;
"""
"""The row with the number m % 4, in all lanes."""

MOVED_ROWS = {
    "zeros over columns": ("0", CONVERTED, (4, 8, 16), {"proved"}),
    "zeros over rows": ("0", CONVERTED, (1, 2), {"proved"}),
    "ones over columns": ("0f3F800000", CONVERTED, (4, 8, 16), {"proved"}),
    "ones over rows": ("0f3F800000", CONVERTED, (1, 2), {"refuted"}),
    "ones over a part of the columns": ("0f3F800000", CONVERTED, (8, 16), {"proved"}),
    "ones over all": ("0f3F800000", CONVERTED, (1, 2, 4, 8, 16), {"refuted"}),
    "zeros that are picked": ("0", PICKED, (8, 16), {"proved"}),
    "ones that are picked, over rows": ("0f3F800000", PICKED, (8, 16), {"refuted"}),
    "zeros of a gathered row": ("0", GATHERED, (1, 2, 4), {"proved"}),
    "ones of a gathered row over columns": ("0f3F800000", GATHERED, (1, 2, 4), {"proved"}),
    "ones of a gathered row over all": (
        "0f3F800000", GATHERED, (1, 2, 4, 8, 16), {"open", "proved"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED_ROWS)
def test_rows_that_move_between_lanes(name: str) -> None:
    fill, move, lanes, expected = MOVED_ROWS[name]
    found = statuses(ROWS + load(fill) + move + tree("add", "%r36", 40, lanes))
    assert sum(found.values()) == 1
    assert set(found) <= expected


PACKED = """
    ld.global.b32 %r35, [%d1+256];
    xor.b32 %r39, %r1, 8;
    selp.b32 %r14, 0x7632, 0x5410, %p4;
    selp.b32 %r15, 0x5410, 0x7632, %p4;
    selp.b32 %r16, {turned}, 0x5410, %p4;
    prmt.b32 %r17, %r3, %r35, %r14;
    prmt.b32 %r18, %r3, %r35, %r15;
    shfl.sync.idx.b32 %r19, %r17, %r1, 31, -1;
    shfl.sync.idx.b32 %r20, %r18, %r39, 31, -1;
    prmt.b32 %r21, %r19, %r20, %r16;
    shl.b32 %r36, %r21, 16;
    and.b32 %r22, %r21, 0xffff0000;
"""
"""Pairs of bf16 of which lane bit 3 changes places with the half: it is the column then, and the
half of %r21 that %r36 and %r22 are made of is the low bit of the row."""
TURNED = PACKED.format(turned="0x1054")
HALVES = "add.f32 %r36, %r36, %r22;\n"

PACKED_ROWS = {
    "zeros over all": ("0", TURNED, (1, 2, 4, 8, 16), {"proved"}),
    "zeros over halves": ("0", TURNED + HALVES, (1, 2, 4, 8, 16), {"proved"}),
    "ones over columns": ("0x3F803F80", TURNED, (1, 2, 4, 8), {"proved"}),
    "ones over rows": ("0x3F803F80", TURNED, (16,), {"open", "refuted"}),
    "ones over rows in halves": ("0x3F803F80", TURNED + HALVES, (8,), {"open", "refuted"}),
    "ones over columns that are not turned": (
        "0x3F803F80", PACKED.format(turned="0x5410"), (1, 2, 4, 8), {"open", "refuted"}),
    "zero and one over all": ("0x3F800000", TURNED, (1, 2, 4, 8, 16), {"open", "refuted"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED_ROWS)
def test_halves_that_lanes_choose(name: str) -> None:
    fill, move, lanes, expected = PACKED_ROWS[name]
    found = statuses(ROWS + load(fill) + move + tree("add", "%r36", 40, lanes))
    assert sum(found.values()) == 1
    assert set(found) <= expected


RUNNING = """
    mov.b32 %r4, 0;
    mov.b32 %r6, 0;
    LOOP:
    add.s32 %r9, %r6, %r1;
    setp.lt.s32 %p1, %r9, %r2;
    mov.b32 %r3, FILL;
    @%p1 ld.global.b32 %r3, [%d1];
    shfl.sync.up.b32 %r5, %r3, 1, 0, -1;
    setp.gt.s32 %p3, %r1, 0;
    add.f32 %r7, %r3, %r5;
    selp.f32 %r8, %r7, %r3, %p3;
    add.f32 %r10, %r4, %r8;
    @%p1 st.global.b32 [%d2], %r10;
    add.f32 %r4, %r4, %r8;
    add.s32 %r6, %r6, 32;
    setp.lt.s32 %p2, %r6, %r50;
    @%p2 bra LOOP;
"""
"""A sum over rounds of what a scan gives in each."""


@pytest.mark.parametrize(("fill", "expected"), [("0", "proved"), ("0f3F800000", "open")])
def test_a_scan_that_a_loop_goes_on_with(fill: str, expected: str) -> None:
    assert set(statuses(RUNNING.replace("FILL", fill))) == {expected}


SCANNED = """
    and.b32 %r30, %r1, 7;
    shr.u32 %r31, %r1, 3;
    setp.eq.b32 %p3, %r30, 0;
    setp.gt.u32 %p4, %r30, 1;
    setp.gt.u32 %p5, %r30, 3;
    ROWS
    FILLED
    ld.global.b32 %r9, [%d1+4096];
    shfl.sync.bfly.b32 %r10, %r4, 31, 31, -1;
    shfl.sync.bfly.b32 %r11, %r3, 31, 31, -1;
    add.f32 %r12, %r10, %r11;
    shfl.sync.up.b32 %r13, %r12, 1, 0, -1;
    add.f32 %r14, %r12, %r13;
    selp.f32 %r15, %r12, %r14, %p3;
    shfl.sync.up.b32 %r16, %r15, 2, 0, -1;
    add.f32 %r17, %r15, %r16;
    selp.f32 %r18, %r17, %r15, %p4;
    shfl.sync.up.b32 %r19, %r18, 4, 0, -1;
    add.f32 %r20, %r18, %r19;
    selp.f32 %r21, %r20, %r18, %p5;
    shfl.sync.up.b32 %r22, %r21, 1, 0, -1;
    add.f32 %r23, %r10, %r22;
    selp.f32 %r24, %r10, %r23, %p3;
    shfl.sync.bfly.b32 %r25, %r21, 31, 31, -1;
    shfl.sync.bfly.b32 %r26, %r24, 31, 31, -1;
    ex2.approx.f32 %r27, %r25;
    ex2.approx.f32 %r28, %r26;
"""
"""Sums over the ends of four rows, two elements in each of eight lanes; then powers of two."""
BY_ROWS = "setp.lt.s32 %p1, %r31, %r2;\nmov.pred %p2, %p1;"
BY_COLUMNS = (
    "shl.b32 %r32, %r30, 1;\nsetp.lt.s32 %p1, %r32, %r2;\nor.b32 %r33, %r32, 1;\n"
    "setp.lt.s32 %p2, %r33, %r2;"
)
MASKED_SUMS = {
    "": "add.f32 %r29, %r27, %r28;\n",
    "apart": "mov.b32 %r29, %r27;\n",
    "both": (
        "selp.f32 %r27, %r27, 0f00000000, %p1;\nselp.f32 %r28, %r28, 0f00000000, %p2;\n"
        "add.f32 %r29, %r27, %r28;\n"
    ),
    "the wrong way": (
        "selp.f32 %r27, %r27, 0f00000000, %p2;\nselp.f32 %r28, %r28, 0f00000000, %p1;\n"
        "add.f32 %r29, %r27, %r28;\n"
    ),
}


@pytest.mark.parametrize(
    ("along", "fill", "masked", "lanes", "is_proved"),
    [
        (BY_ROWS, "0", "", (1, 2, 4), True),
        (BY_ROWS, "0f3F800000", "", (1, 2, 4), True),
        (BY_ROWS, "0f3F800000", "", (1, 2, 4, 8), False),
        (BY_ROWS, "0", "", (1, 2, 4, 8), False),
        (BY_ROWS, "0", "both", (1, 2, 4, 8, 16), True),
        (BY_COLUMNS, "0", "apart", (8, 16), True),
        (BY_COLUMNS, "0", "apart", (1, 2, 4), False),
        # One of two columns may be padding, and the sum before it then is not.
        (BY_COLUMNS, "0", "", (8, 16), False),
        (BY_COLUMNS, "0", "both", (1, 2, 4), True),
        (BY_COLUMNS, "0", "the wrong way", (1, 2, 4), False),
        (BY_COLUMNS, "0f3F800000", "both", (1, 2, 4), False),
    ],
)
def test_scans_of_reversed_rows(
    along: str, fill: str, masked: str, lanes: tuple[int, ...], is_proved: bool
) -> None:
    loads = (
        f"mov.b32 %r3, {fill};\n@%p1 ld.global.b32 %r3, [%d1];\n"
        f"mov.b32 %r4, {fill};\n@%p2 ld.global.b32 %r4, [%d1];\n"
    )
    body = SCANNED.replace("ROWS", along).replace("FILLED", loads)
    body += MASKED_SUMS[masked] + tree("add", "%r29", 40, lanes)
    found = statuses(body)
    assert found
    assert (set(found) == {"proved"}) == is_proved


RECURRENT = """
    mov.b32 %r4, 0;
    mov.b32 %r6, 0;
    LOOP:
    add.s32 %r9, %r6, %r1;
    setp.lt.s32 %p1, %r9, %r2;
    mov.b32 %r3, FIRST;
    @%p1 ld.global.b32 %r3, [%d1];
    mov.b32 %r5, SECOND;
    @%p1 ld.global.b32 %r5, [%d1+4];
    ex2.approx.f32 %r7, %r3;
    fma.rn.f32 %r4, %r4, %r7, %r5;
    add.s32 %r6, %r6, 32;
    setp.lt.s32 %p2, %r6, %r50;
    @%p2 bra LOOP;
"""
"""h = 2^g h + x: a round without elements leaves h as it was if g and x are 0."""


@pytest.mark.parametrize(
    ("decay", "added", "expected"),
    [
        ("0", "0", {"proved"}),
        ("0f80000000", "0f80000000", {"proved"}),
        ("0f3F800000", "0", {"open", "proved"}),
        ("0fFF800000", "0", {"open", "proved"}),
        ("0", "0f3F800000", {"open", "refuted"}),
    ],
)
def test_what_rounds_leave_as_it_was(decay: str, added: str, expected: set[str]) -> None:
    body = RECURRENT.replace("FIRST", decay).replace("SECOND", added)
    # What is summed up beside it is judged apart; the decay has no other use.
    body = body.replace("add.s32 %r6", "add.f32 %r8, %r8, %r5;\nadd.s32 %r6")
    found = statuses("mov.b32 %r8, 0;\n" + body + "st.global.b32 [%d2], %r4;\n")
    assert expected >= set(found)
    assert ("open" in found) == ("open" in expected)


@pytest.mark.parametrize(
    ("decay", "added"), [("0f3F800000", "0"), ("0fFF800000", "0"), ("0", "0f3F800000")]
)
def test_what_rounds_change_is_not_proved_behind_them(decay: str, added: str) -> None:
    body = RECURRENT.replace("FIRST", decay).replace("SECOND", added)
    found = statuses(body + tree("add", "%r4", 10))
    assert "proved" not in found


@pytest.mark.parametrize("step", ["1", "-1"])
def test_what_a_loop_carries_settles(step: str) -> None:
    # Each round is masked apart, and its padding stays in what the next rounds take over.
    body = (
        "mov.b32 %r4, 0;\nmov.b32 %r6, 64;\n"
        f"LOOP:\nadd.s32 %r9, %r6, %r1;\nsetp.lt.s32 %p1, %r9, %r2;\n{load('0')}"
        "ex2.approx.f32 %r5, %r3;\nfma.rn.f32 %r4, %r4, %r5, %r3;\n"
        f"shfl.sync.bfly.b32 %r10, %r4, 1, 31, -1;\nst.global.b32 [%d2], %r10;\n"
        f"add.s32 %r6, %r6, {step};\n"
        "setp.ne.s32 %p2, %r6, %r50;\n@%p2 bra LOOP;\nst.global.b32 [%d2], %r4;\nret;\n}\n"
    )
    _, found = padding(START + body)
    assert [v.status for v in found.verdicts] == ["open"]
    assert "budget" not in found.verdicts[0].reason


SOLVED = (
    load("0")
    + """
    mov.b32 %r4, %r3;
    setp.lt.s32 %p2, SIZE, 2;
    @%p2 bra DONE;
    min.s32 %r5, SIZE, 32;
    mov.b32 %r6, 1;
    LOOP:
    ld.global.b32 %r7, [%d1+4096];
    setp.gt.s32 %p3, %r6, %r1;
    selp.f32 %r8, %r7, 0f00000000, %p3;
    mul.f32 %r9, %r8, %r4;
    SUM
    setp.eq.s32 %p4, %r1, %r6;
    selp.f32 %r4, %r49, %r4, %p4;
    add.s32 %r6, %r6, 1;
    setp.ne.s32 %p5, %r6, %r5;
    @%p5 bra LOOP;
    DONE:
""".replace("SUM", tree("add", "%r9", 40)).replace("SIZE", "%r2")
    + tree("add", "%r4", 20)
)
"""A row is replaced per round, up to the size: rows beyond it stay as they were loaded."""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"setp.ne.s32 %p5": "setp.lt.s32 %p5"},
        {"min.s32 %r5, %r2, 32": "min.u32 %r5, %r2, 32"},
        {"selp.f32 %r8, %r7, 0f00000000, %p3": "mov.b32 %r8, %r7"},
        {"setp.eq.s32 %p4": "setp.le.s32 %p4"},
    ],
)
def test_rows_beyond_the_size_are_not_replaced(changes: dict[str, str]) -> None:
    assert set(statuses(_changed(SOLVED, changes))) == {"proved"}


@pytest.mark.parametrize(
    "changes",
    [
        # The loop goes on beyond the size, or up to another one.
        {"min.s32 %r5, %r2, 32": "mov.b32 %r5, 32"},
        {"min.s32 %r5, %r2, 32": "add.s32 %r5, %r2, 1"},
        {"min.s32 %r5, %r2, 32": "min.s32 %r5, %r50, 32"},
        {"min.s32 %r5, %r2, 32": "max.s32 %r5, %r2, 32"},
        # It may begin beyond the size, and then meets no end.
        {"setp.lt.s32 %p2, %r2, 2": "setp.lt.s32 %p2, %r50, 2"},
        {"setp.lt.s32 %p2, %r2, 2": "setp.lt.s32 %p2, %r2, 1"},
        {
            "min.s32 %r5, %r2, 32": "min.u32 %r5, %r2, 32",
            "setp.lt.s32 %p2, %r2, 2": "setp.eq.s32 %p2, %r2, 0",
        },
        # Another row than that of the round is replaced.
        {"setp.eq.s32 %p4, %r1, %r6": "add.s32 %r10, %r6, 1;\nsetp.eq.s32 %p4, %r1, %r10"},
        {"setp.eq.s32 %p4": "setp.ge.s32 %p4"},
        # The sum takes in rows that were not masked.
        {"mul.f32 %r9, %r8, %r4": "add.f32 %r9, %r7, %r4"},
    ],
)
def test_rows_beyond_the_size_that_may_be_replaced(changes: dict[str, str]) -> None:
    assert "proved" not in statuses(_changed(SOLVED, changes))


def _changed(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


FETCHED = """
    setp.lt.s32 %p2, %r2, 1;
    @%p2 bra DONE;
    min.u32 %r4, %r2, 64;
    add.s32 %r5, %r4, 15;
    shr.u32 %r6, %r5, 4;
    add.s32 %r7, %r6, -1;
    cvt.s64.s32 %d4, %r7;
    cvt.u64.u32 %d5, %r2;
    min.u64 %d6, %d5, 64;
    add.s64 %d7, %d6, 15;
    shr.u64 %d8, %d7, 4;
    mov.b64 %d9, 0;
    mov.b32 %r9, 0;
    ld.global.b32 %r8, [%d1];
    LOOP:
    add.f32 %r9, %r9, %r8;
    setp.lt.s64 %p3, %d9, %d4;
    mov.b32 %r8, 0f3F800000;
    @%p3 ld.global.b32 %r8, [%d1+4096];
    add.s64 %d9, %d9, 1;
    setp.ne.s64 %p4, %d9, %d8;
    @%p4 bra LOOP;
    st.global.b32 [%d2], %r9;
    DONE:
"""
"""Each round fetches for the next one, if that comes: min(n, 64) as unsigned words, by sixteens."""


def test_what_is_fetched_for_rounds_that_come() -> None:
    assert set(statuses(FETCHED)) <= {"proved"}


@pytest.mark.parametrize(
    "changes",
    [
        {"add.s32 %r7, %r6, -1": "add.s32 %r7, %r6, -2"},
        {"min.u64 %d6, %d5, 64": "min.u64 %d6, %d5, 80"},
        {"min.u64 %d6, %d5, 64": "min.u64 %d6, %d2, 64"},
        {"min.u32 %r4, %r2, 64": "min.u32 %r4, %r50, 64"},
        {"setp.lt.s32 %p2, %r2, 1": "setp.lt.s32 %p2, %r2, 0"},
    ],
)
def test_what_is_fetched_for_rounds_that_may_not_be_as_many(changes: dict[str, str]) -> None:
    found = statuses(_changed(FETCHED, changes))
    assert found
    assert "proved" not in found


FLASH = {"flash_fwd": (40,), "flash_fwd_spill": (40,)}
"""By kernel: the lines of the loads of keys, whose padding scores 0 unless it is masked again."""
SELECTED = r"selp\.(b32|f32) \t(%r\d+), (%r\d+), 0f(?:00000000|FF800000), %p\d+;"


@pytest.mark.parametrize("name", FLASH)
def test_keys_are_masked_again_behind_the_product(name: str) -> None:
    path = PTX / "sm_80" / f"{name}.ptx"
    assert set(by_line(path).values()) == {"proved"}
    # Without the second mask padding keys score 0 and take part in the row sum.
    text = path.read_text()
    changed = re.sub(SELECTED, r"mov.\1 \2, \3;", text)
    assert changed != text
    found = by_line(path, changed)
    assert all(found[line] != "proved" for line in FLASH[name])


def test_keys_that_are_zero_in_the_next_product_need_no_second_mask() -> None:
    # What the scores of padding keys make of it is finite, and meets their own zeros.
    path = PTX / "sm_80" / "flash_bwd_dq.ptx"
    text = path.read_text()
    changed = re.sub(SELECTED, r"mov.\1 \2, \3;", text)
    assert changed != text
    assert set(by_line(path).values()) == set(by_line(path, changed).values()) == {"proved"}


@pytest.mark.parametrize("name", ["flash_fwd", "flash_fwd_spill"])
def test_keys_that_are_not_masked_again_are_refuted(name: str) -> None:
    path = PTX / "sm_80" / f"{name}.ptx"
    changed = re.sub(SELECTED, r"mov.\1 \2, \3;", path.read_text())
    assert by_line(path, changed)[40] == "refuted"


def test_another_bound_behind_the_product_masks_nothing() -> None:
    path = PTX / "sm_80" / "flash_fwd_spill.ptx"
    text = path.read_text()
    # The second mask lets one key more through.
    loosened = _loosened(text)
    assert loosened != text
    assert by_line(path, loosened)[40] == "open"


def _loosened(text: str) -> str:
    """The comparisons whose predicate only a `selp` reads, one looser."""
    read_by_selp = set(re.findall(r"selp\.\w+ \t[^;]*, (%p\d+);", text))
    out = []
    for line in text.splitlines():
        found = re.match(r"(\tsetp\.)(lt|ge)(\.s32 \t(%p\d+),.*)", line)
        if found and found[4] in read_by_selp:
            line = found[1] + {"lt": "le", "ge": "gt"}[found[2]] + found[3]
        out.append(line)
    return "\n".join(out) + "\n"


@pytest.mark.parametrize(("limit", "status"), [("%r2", "refuted"), ("%r59", "open")])
def test_a_loop_that_the_grid_ends_may_not_go_beyond_the_size(limit: str, status: str) -> None:
    # Up to 32 times the CTA's number, all of which the grid may keep below the size.
    body = (
        "mov.u32 %r59, %ctaid.x;\nshl.b32 %r59, %r59, 5;\nmov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
        f"LOOP:\nadd.s32 %r9, %r6, %r1;\nsetp.lt.s32 %p1, %r9, %r2;\n{load('0')}"
        "add.f32 %r3, %r3, 0f3F800000;\nadd.f32 %r4, %r4, %r3;\nadd.s32 %r6, %r6, 32;\n"
        f"setp.lt.s32 %p2, %r6, {limit};\n@%p2 bra LOOP;\n" + tree("add", "%r4", 10)
    )
    assert statuses(body) == {status: 1}


def test_a_second_result_is_no_operand() -> None:
    # What is written beside the first result is not read.
    body = load("0") + tree("add", "%r3", 4)
    body += "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r40, %r41}, %r42, [%r1];\n"
    assert statuses(body) == {"proved": 1}


@pytest.mark.parametrize(("second", "expected"), [("0fFF800000", False), ("0f00000000", True)])
def test_a_part_of_a_sum_is_no_statistic(second: str, expected: bool) -> None:
    """Keys of 16 by Triton 3.6: the padding fills the part of a warp, whose lanes exchange it."""
    path = Path(__file__).resolve().parents[1] / "data" / "ptx" / "attention_tile.ptx"
    text = path.read_text().replace("0fFF800000, %p14", f"{second}, %p14")
    assert ("refuted" in by_line(path, text).values()) is expected
