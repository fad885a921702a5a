"""RES110 and RES111: registers without a write, code without a way to it."""

from __future__ import annotations

import pytest

import ptxlint
from ptxlint.engine.report import Report
from ptxlint.source import SourceText

HEAD = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global out, .param .u32 n)
{
.reg .pred %p<4>;
.reg .b16 %h<4>;
.reg .b32 %r<8>;
.reg .f32 %f<8>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [out];
mov.u32 %r7, %tid.x;
setp.eq.u32 %p3, %r7, 0;
"""


def check(body: str, select: str = "RES110,RES111") -> Report:
    report = ptxlint.check(SourceText(HEAD + body + "\nret;\n}\n", "k.ptx"), select=select)
    assert report.exit_code != 2, report.findings
    return report


def messages(body: str) -> list[str]:
    return [f"{f.severity} {f.message}" for f in check(body).findings]


def status(body: str) -> set[str]:
    return {o.status for o in check(body).obligations if o.rule == "RES110"}


HANDED_ON = {
    "a move": "mov.b32 %r2, %r1; st.global.u32 [%rd1], %r2;",
    "half of a pair": "mov.b32 %r2, {%h1, %h2}; st.global.u32 [%rd1], %r2;",
    "a byte permutation": "prmt.b32 %r2, %r7, %r1, 0x3210; st.global.u32 [%rd1], %r2;",
    "a shuffle": "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.global.u32 [%rd1], %r2;",
    "the byte of an empty structure": "st.global.u8 [%rd1], %h1;",
    "half of a packed conversion": "mov.f32 %f1, 0f00000000;\n"
    "cvt.rn.f16x2.f32 %r2, %f2, %f1; st.global.u32 [%rd1], %r2;",
}


@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON)
def test_values_that_are_handed_on_may_be_undefined(body: str) -> None:
    assert messages(body) == []
    assert status(body) == {"proved"}


COMPUTED = {
    "arithmetic": "add.u32 %r2, %r1, 1; st.global.u32 [%rd1], %r2;",
    "an address": "st.global.u32 [%rd2], %r7;",
    "a stored word": "st.global.u32 [%rd1], %r1;",
    "a comparison": "setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], %r7;",
    "a branch": "@%p1 bra end; st.global.u32 [%rd1], %r7; end:",
    "a vote": "vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd1], %r2;",
    "a register of an inner scope": "{ .reg .b32 x; add.u32 %r2, x, 1; "
    "st.global.u32 [%rd1], %r2; }",
}


@pytest.mark.parametrize("body", COMPUTED.values(), ids=COMPUTED)
def test_what_is_computed_with_must_be_written(body: str) -> None:
    assert len(messages(body)) == 1
    assert messages(body)[0].startswith("warning")
    assert status(body) == {"refuted"}


ACCUMULATE = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %rd2, %rd3, "
    "{scale}, 1, 1, 0, 0;\nst.global.v4.f32 [%rd1], {{%f0, %f1, %f2, %f3}};"
)
DESCRIPTORS = "mov.u64 %rd2, 1;\nmov.u64 %rd3, 2;\n"


@pytest.mark.parametrize(
    ("scale", "expected"), [("0", {"proved"}), ("%p3", {"proved"}), ("1", {"refuted"})]
)
def test_an_accumulator_of_wgmma_counts_only_if_it_is_added_to(
    scale: str, expected: set[str]
) -> None:
    assert status(DESCRIPTORS + ACCUMULATE.format(scale=scale)) == expected


def test_a_write_on_one_way_leaves_an_obligation_and_no_finding() -> None:
    body = (
        "@%p3 bra skip;\nmov.u32 %r1, 1;\nskip:\nadd.u32 %r2, %r1, 1;\nst.global.u32 [%rd1], %r2;"
    )
    assert messages(body) == []
    assert status(body) == {"open"}


def test_a_write_later_in_the_loop_counts() -> None:
    body = (
        "again:\nadd.u32 %r2, %r1, 1;\nmov.u32 %r1, %r2;\nsetp.lt.u32 %p1, %r2, 9;\n"
        "@%p1 bra again;\nst.global.u32 [%rd1], %r2;"
    )
    assert messages(body) == []
    assert status(body) == {"open"}


def test_one_finding_a_register() -> None:
    body = "add.u32 %r2, %r1, %r3;\nadd.u32 %r4, %r1, %r2;\nst.global.u32 [%rd1], %r4;"
    found = check(body).findings
    assert [f.message.split("`")[1] for f in found] == ["%r1", "%r3"]
    assert [r.message for r in found[0].related] == ["read again here"]


def test_unreachable_code_is_one_note_with_all_its_places() -> None:
    body = """
        bra end;
        add.u32 %r7, %r7, 1;
        end:
        st.global.u32 [%rd1], %r7;
        ret;
        add.u32 %r7, %r7, 2;
        add.u32 %r7, %r7, 3;
    """
    (finding,) = check(body).findings
    assert finding.severity == "note"
    # The `ret` that `check` adds stands behind the two additions.
    assert finding.message == "4 instructions in 2 places that no path leads to"
    assert [related.message for related in finding.related] == ["and here"]


@pytest.mark.parametrize("body", ["trap; exit;", "ret; bra end; end: exit;", "exit; ret;"])
def test_padding_behind_an_end_is_not_reported(body: str) -> None:
    assert messages(body) == []
