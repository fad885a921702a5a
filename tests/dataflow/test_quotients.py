"""Which quotients of exponentials are known to be no infinity over an infinity."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.quotients import QuotientsAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q, .param .f32 scale) .reqntid 32
{
    .reg .pred %p<4>;
    .reg .b32 %r<64>;
    .reg .b64 %d<8>;
    .shared .align 4 .b8 cells[128];
    ld.param.u64 %d1, [p];
    ld.param.u64 %d2, [q];
    ld.param.f32 %r3, [scale];
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %d3, %r4, 4, %d1;
    ld.global.f32 %r1, [%d3];
    ld.global.f32 %r2, [%d3+128];
"""


def reason(body: str) -> str:
    module = parse(HEAD + body + "\nst.global.f32 [%d2], %r9;\nret;\n}\n")
    quotients = Facts(module, module.kernels()[0]).get(QuotientsAnalysis)
    (division,) = quotients.divisions
    return quotients.reason(division)


def lanes(operator: str, source: int, free: int) -> str:
    """A butterfly; the result is in register `free + 9`."""
    text = ""
    for at, lane in enumerate((16, 8, 4, 2, 1)):
        other, made = free + 2 * at, free + 2 * at + 1
        text += f"shfl.sync.bfly.b32 %r{other}, %r{source}, {lane}, 31, -1;\n"
        text += f"{operator}.f32 %r{made}, %r{source}, %r{other};\n"
        source = made
    return text


POWER = "ex2.approx.f32 %r11, %r10;\n"
GROWING = "mul.f32 %r10, %r1, 0f3FB8AA3B;\n" + POWER
FALLING = "mul.f32 %r10, %r1, 0fBFB8AA3B;\n" + POWER
PLUS_ONE = "add.f32 %r12, %r11, 0f3F800000;\n"
INVERSE = PLUS_ONE + "rcp.approx.f32 %r13, %r12;\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (FALLING + PLUS_ONE + "div.full.f32 %r9, 0f3F800000, %r12;", "no dividend is infinite"),
        (FALLING + PLUS_ONE + "div.full.f32 %r9, %r1, %r12;", "no dividend is infinite"),
        (FALLING + INVERSE + "mul.f32 %r9, %r1, %r13;", "no dividend is infinite"),
        (FALLING + INVERSE + "mov.b32 %r14, %r13;\nfma.rn.f32 %r9, %r14, %r1, %r2;",
         "no dividend is infinite"),
        (FALLING + INVERSE + "mov.b32 %r9, %r13;", "no dividend is infinite"),
        ("abs.f32 %r5, %r1;\nmul.f32 %r10, %r5, 0fBFB8AA3B;\n" + POWER + PLUS_ONE
         + "sub.f32 %r14, 0f3F800000, %r11;\ndiv.full.f32 %r9, %r14, %r12;",
         "no divisor is infinite"),
        (GROWING + PLUS_ONE + "div.full.f32 %r9, %r11, %r12;", ""),
        (GROWING + PLUS_ONE + "div.full.f32 %r9, %r2, %r12;", "no dividend is infinite"),
        (GROWING + INVERSE + "mul.f32 %r9, %r11, %r13;", ""),
        (GROWING + INVERSE + "mov.b32 %r14, %r13;\nmul.f32 %r9, %r14, %r11;", ""),
        # It is not followed into another lane or into memory.
        (FALLING + INVERSE + "shfl.sync.bfly.b32 %r9, %r13, 1, 31, -1;", ""),
        (FALLING + INVERSE + "st.shared.f32 [cells], %r13;\nmov.b32 %r9, %r13;", ""),
    ],
)  # fmt: skip
def test_a_quotient(body: str, wanted: str) -> None:
    assert reason(body) == wanted


def softmax(exponent: str) -> str:
    """exp(x - max) / sum, with the maximum in %r29 and the exponent to be put into %r10."""
    return (
        lanes("max", 1, 20) + exponent + POWER + lanes("add", 11, 40)
        + "div.full.f32 %r9, %r11, %r49;"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("exponent", "is_bounded"),
    [
        ("sub.f32 %r10, %r1, %r29;\n", True),
        ("sub.f32 %r5, %r1, %r29;\nmul.f32 %r10, %r5, 0f3FB8AA3B;\n", True),
        ("sub.f32 %r5, %r1, %r29;\nmul.f32 %r10, %r5, %r3;\n", True),
        # The other way round, of another maximum, by a number that may be negative.
        ("sub.f32 %r10, %r29, %r1;\n", False),
        ("sub.f32 %r5, %r1, %r29;\nmul.f32 %r10, %r5, 0fBFB8AA3B;\n", False),
        ("sub.f32 %r10, %r2, %r29;\n", False),
        ("ld.global.f32 %r6, [%d1];\nsub.f32 %r5, %r1, %r29;\nmul.f32 %r10, %r5, %r6;\n", False),
        ("mov.b32 %r10, %r1;\n", False),
    ],
)
def test_exponents_less_the_maximum(exponent: str, is_bounded: bool) -> None:
    assert reason(softmax(exponent)) == ("no divisor is infinite" if is_bounded else "")


ROUNDS = """
    mov.b32 %r50, 0fFF800000;
    mov.b32 %r51, 0f00000000;
    mov.b32 %r52, 0;
round:
    ld.global.f32 %r53, [%d3];
    add.s64 %d3, %d3, 128;
    {maximum}
    max.f32 %r54, %r50, %r29;
    sub.f32 %r55, %r53, %r54;
    ex2.approx.f32 %r56, %r55;
    {rescale}
    ex2.approx.f32 %r58, %r57;
    {sum}
    fma.rn.f32 %r51, %r51, %r58, %r49;
    mov.b32 %r50, %r54;
    add.s32 %r52, %r52, 1;
    setp.lt.s32 %p1, %r52, 9;
    @%p1 bra round;
    div.full.f32 %r9, %r1, %r51;
"""


@pytest.mark.parametrize(
    ("rescale", "is_bounded"),
    [("sub.f32 %r57, %r50, %r54;", True), ("sub.f32 %r57, %r54, %r50;", False)],
)
def test_what_a_loop_rescales(rescale: str, is_bounded: bool) -> None:
    rounds = {"maximum": lanes("max", 53, 20), "sum": lanes("add", 56, 40)}
    body = ROUNDS.format(rescale=rescale, **rounds)
    assert reason(body) == ("no divisor is infinite" if is_bounded else "no dividend is infinite")


@pytest.mark.parametrize(("taken", "is_bounded"), [("%r6", True), ("%r1", False), ("%r7", False)])
def test_a_score_that_is_a_sum(taken: str, is_bounded: bool) -> None:
    body = "add.f32 %r6, %r1, %r2;\nadd.f32 %r7, %r6, %r2;\n" + lanes("max", 6, 20)
    body += f"sub.f32 %r10, {taken}, %r29;\n" + POWER + lanes("add", 11, 40)
    body += "div.full.f32 %r9, %r11, %r49;"
    assert reason(body) == ("no divisor is infinite" if is_bounded else "")
