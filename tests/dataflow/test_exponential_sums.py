"""Which sums of exponentials are known to be at least 1, and which maxima to be kept."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.exponential_sums import ExponentialSumsAnalysis
from ptxlint.dataflow.masked_maximum import MaskedMaximaAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 w, .param .f32 scale)
.reqntid 32
{
    .reg .pred %p<9>;
    .reg .b32 %r<99>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [w];
    ld.param.f32 %r3, [scale];
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %rd3, %r4, 4, %rd1;
"""


def facts(body: str) -> Facts:
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    return Facts(module, module.kernels()[0])


def tree(operator: str, source: int, free: int, lanes: tuple[int, ...]) -> str:
    """A butterfly from register `source`; the last register is `free + 2 * len(lanes) - 1`."""
    lines = []
    for at, lane in enumerate(lanes):
        target = free + 2 * at
        lines.append(f"shfl.sync.bfly.b32 %r{target}, %r{source}, {lane}, 31, -1;")
        lines.append(f"{operator}.f32 %r{target + 1}, %r{source}, %r{target};")
        source = target + 1
    return "\n".join(lines) + "\n"


ALL = (16, 8, 4, 2, 1)
SCALE = "mul.f32 %r30, %r5, %r3;"
LOAD = "ld.global.b32 %r5, [%rd3];\n"


def softmax(scores: int, exponent: str, lanes: tuple[int, ...] = ALL) -> str:
    """%r5 is loaded, the maximum is of %r`scores` in %r19, the exponent ends up in %r40."""
    return (
        LOAD
        + SCALE
        + tree("max", scores, 10, ALL)
        + exponent
        + "\nex2.approx.f32 %r41, %r40;\n"
        + tree("add", 41, 50, lanes)
        + f"div.full.f32 %r70, %r41, %r{49 + 2 * len(lanes)};\nst.global.b32 [%rd2], %r70;\n"
    )


def is_at_least_one(body: str) -> bool:
    known = facts(body)
    division = next(i for i in known.function.instrs if i.opcode == "div")
    return known.get(ExponentialSumsAnalysis).is_divisor(division)


LOG2E = "0f3FB8AA3B"


@pytest.mark.parametrize(
    ("scores", "exponent"),
    [
        (5, "sub.f32 %r40, %r5, %r19;"),
        (5, f"sub.f32 %r39, %r5, %r19;\nmul.f32 %r40, %r39, {LOG2E};"),
        (5, f"mul.f32 %r39, %r19, {LOG2E};\nneg.f32 %r38, %r39;\n"
            f"fma.rn.f32 %r40, %r5, {LOG2E}, %r38;"),
        (30, "sub.f32 %r40, %r30, %r19;"),
        (5, "mul.f32 %r39, %r19, %r3;\nsub.f32 %r40, %r30, %r39;"),
    ],
)  # fmt: skip
def test_relative_to_its_own_maximum(scores: int, exponent: str) -> None:
    assert is_at_least_one(softmax(scores, exponent))


@pytest.mark.parametrize(
    ("scores", "exponent"),
    [
        # No maximum, or that of something else.
        (5, "mov.b32 %r40, %r5;"),
        (5, "sub.f32 %r40, %r30, %r19;"),
        (30, "sub.f32 %r40, %r5, %r19;"),
        # Another factor of the maximum than of the score, or the wrong sign.
        (5, "mul.f32 %r39, %r5, 0f40000000;\nsub.f32 %r40, %r39, %r19;"),
        (5, "mul.f32 %r39, %r19, 0f40000000;\nsub.f32 %r40, %r5, %r39;"),
        (5, "add.f32 %r40, %r5, %r19;"),
        (5, "mul.f32 %r39, %r19, %r3;\nsub.f32 %r40, %r5, %r39;"),
        # Something more is subtracted.
        (5, "sub.f32 %r39, %r5, %r19;\nsub.f32 %r40, %r39, %r3;"),
    ],
)
def test_relative_to_something_else(scores: int, exponent: str) -> None:
    assert not is_at_least_one(softmax(scores, exponent))


def test_a_sum_over_fewer_lanes_than_the_maximum() -> None:
    exponent = "sub.f32 %r40, %r5, %r19;"
    assert not is_at_least_one(softmax(5, exponent, (8, 4, 2, 1)))


ONLINE = """
    mov.b32 %r6, 0;
    mov.b32 %r7, 0fFF800000;
    mov.b32 %r8, 0f00000000;
    setp.lt.s32 %p1, %r1, 1;
    @%p1 bra done;
loop:
    add.s32 %r9, %r4, %r6;
    mad.wide.u32 %rd4, %r9, 4, %rd1;
    ld.global.b32 %r5, [%rd4];
    MASK
    selp.f32 %r60, %r5, 0fFF800000, %p2;
    {max}
    max.f32 %r20, %r7, %r19;
    sub.f32 %r40, %r60, %r20;
    ex2.approx.f32 %r41, %r40;
    sub.f32 %r42, %r7, %r20;
    ex2.approx.f32 %r43, %r42;
    {add}
    fma.rn.f32 %r8, %r8, %r43, %r80;
    mov.b32 %r7, %r20;
    add.s32 %r6, %r6, 32;
    setp.lt.s32 %p3, %r6, LIMIT;
    @%p3 bra loop;
done:
    st.global.b32 [%rd2], %r8;
""".format(max=tree("max", 60, 10, ALL), add=tree("add", 41, 71, ALL))


def status(mask: str, limit: str = "%r1") -> str:
    body = ONLINE.replace("MASK", mask).replace("LIMIT", limit)
    (verdict,) = facts(body).get(MaskedMaximaAnalysis).verdicts
    return verdict.status


def test_a_mask_that_leaves_the_first_column_is_proved() -> None:
    assert status("setp.lt.s32 %p2, %r9, %r1;") == "proved"


def test_a_mask_that_a_parameter_turns_off_is_refuted() -> None:
    assert status("setp.ge.s32 %p2, %r9, %r2;") == "refuted"


def test_a_loop_that_never_comes_to_the_window_is_open() -> None:
    """All of the row is masked: there is no right result that the NaN would spoil."""
    assert status("setp.ge.s32 %p2, %r9, %r2;", "%r2") == "open"


def test_a_loop_that_goes_on_behind_the_window_is_refuted() -> None:
    body = "sub.s32 %r61, %r1, %r2;\nsetp.ge.s32 %p2, %r9, %r2;"
    assert status(body, "%r61") == "refuted"


def test_a_mask_that_something_hidden_may_follow_is_open() -> None:
    hidden = "ld.global.u32 %r61, [%rd2+4];\nmul.lo.s32 %r62, %r61, %r61;\n"
    hidden += "add.s32 %r63, %r9, %r62;\nsetp.ge.s32 %p2, %r63, %r2;"
    assert status(hidden) == "open"


PEELED = (
    "setp.lt.s32 %p5, %r4, %r1;\nld.global.b32 %r92, [%rd3];\n"
    "selp.f32 %r81, %r92, 0fFF800000, %p5;\n" + tree("max", 81, 82, ALL)
)
"""The maximum of the first chunk, in %r91."""
LATER = "setp.ge.s32 %p2, %r9, %r2;"


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        ("mov.b32 %r7, %r91;", "proved"),
        # The branch before the loop demands it, a parameter alone does not.
        ("setp.gt.s32 %p6, %r1, 0;\nselp.f32 %r7, %r91, 0fFF800000, %p6;", "proved"),
        ("setp.gt.s32 %p6, %r2, 0;\nselp.f32 %r7, %r91, 0fFF800000, %p6;", "open"),
    ],
)
def test_a_loop_that_starts_from_a_maximum(start: str, wanted: str) -> None:
    body = ONLINE.replace("mov.b32 %r7, 0fFF800000;", "")
    body = body.replace("loop:", PEELED + start + "\nloop:", 1)
    body = body.replace("MASK", LATER).replace("LIMIT", "%r1")
    verdicts = facts(body).get(MaskedMaximaAnalysis).verdicts
    assert [v.status for v in verdicts] == [wanted]


def test_a_maximum_that_a_loop_replaces_is_not_kept_by_its_first_round() -> None:
    body = ONLINE.replace("max.f32 %r20, %r7, %r19;", "max.f32 %r20, %r19, 0fFF800000;")
    mask = "setp.lt.s32 %p4, %r9, %r1;\nsetp.lt.s32 %p5, %r9, %r2;\nand.pred %p2, %p4, %p5;"
    body = body.replace("MASK", mask).replace("LIMIT", "%r1").replace("%r1, 1;", "%r2, 1;", 1)
    found = facts(body).get(MaskedMaximaAnalysis).verdicts
    assert "proved" not in {v.status for v in found}


ROWS = """
    .shared .align 16 .b8 cells[64];
    ld.global.b32 %r5, [%rd3];
    ld.global.b32 %r6, [%rd3+128];
    add.s32 %r95, %r1, -40;
    setp.lt.s32 %p1, %r4, {first};
    setp.lt.s32 %p2, %r4, {second};
    selp.f32 %r7, %r5, 0fFF800000, %p1;
    selp.f32 %r8, %r6, 0fFF800000, %p2;
    {one}
    {other}
    st.shared.b32 [cells], %r19;
    st.shared.b32 [cells+4], %r29;
    bar.sync 0;
    ld.shared.b32 %r30, [cells];
    ld.shared.b32 %r31, [cells+4];
    sub.f32 %r40, %r7, %r30;
    ex2.approx.f32 %r41, %r40;
    sub.f32 %r42, %r8, %r31;
    ex2.approx.f32 %r43, %r42;
    st.global.b32 [%rd2], %r41;
    st.global.b32 [%rd2+4], %r43;
"""


@pytest.mark.parametrize(
    ("first", "second", "kept"), [("8", "9", True), ("%r95", "8", False), ("8", "%r95", False)]
)
def test_rows_that_share_a_memory_do_not_vouch_for_each_other(
    first: str, second: str, kept: bool
) -> None:
    """Either cell may be read, as far as program order tells: both rows must be kept."""
    trees = {"one": tree("max", 7, 10, ALL), "other": tree("max", 8, 20, ALL)}
    body = ROWS.format(first=first, second=second, **trees)
    found = {v.status for v in facts(body).get(MaskedMaximaAnalysis).verdicts}
    assert ("open" in found) is not kept
