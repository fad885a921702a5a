"""Reads of what was in memory before the launch: which are shown, which ruled out, which open."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
from ptxlint.launches import Argument, Autotuned, Launch, Scalar, Tensor

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 y,
    .param .u32 n)
    .reqntid 64
{
.shared .align 16 .b8 tile[256];
.reg .pred %p<6>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd5, [y];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r2, 64, %r3;
mul.wide.s32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
add.s64 %rd6, %rd5, %rd2;
xor.b32 %r5, %r3, 63;
mad.lo.s32 %r5, %r2, 64, %r5;
mul.wide.s32 %rd2, %r5, 4;
add.s64 %rd4, %rd1, %rd2;
setp.lt.s32 %p1, %r4, %r1;
mov.b32 %r9, 0;
"""
ADD = "ld.global.b32 %r6, [%rd3];\nadd.s32 %r6, %r6, 1;\nst.global.b32 [%rd3], %r6;\n"


def said(
    body: str,
    rule: str = "HAZ603",
    fresh: str = "uninitialised",
    tuned: Autotuned | None = None,
    apart: bool = True,
) -> tuple[set[str], list[Any]]:
    """The statuses and the findings of one rule; `y` is `x` unless they are apart."""
    arguments: dict[str, Argument] = {
        "x": Tensor("int32", (256,), (1,), 0, 1024, fresh=fresh),
        "y": Tensor("int32", (256,), (1,), int(apart), 1024, fresh="" if apart else fresh),
        "n": Scalar("i32", 250),
    }
    launch = Launch((4, 1, 1), (64, 1, 1), arguments, shared=0, autotuned=tuned)
    report = run(
        [Input("k.ptx", HEAD + body + "ret;\n}\n", None, (launch,))], Options(select=(rule,))
    )
    return {o.status for o in report.obligations if o.rule}, report.findings


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(ADD, "refuted", id="in place"),
        pytest.param("st.global.b32 [%rd3], 0;\n" + ADD, "proved", id="stored before"),
        pytest.param(
            "@%p1 st.global.b32 [%rd3], 0;\n" + ADD, "refuted", id="stored in a part before"
        ),
        pytest.param(
            "st.global.b32 [%rd4], 0;\nbar.sync 0;\n" + ADD, "proved", id="by another thread"
        ),
        pytest.param(
            "st.global.b32 [%rd4], 0;\n" + ADD, "open", id="by another thread, in no order"
        ),
        pytest.param("""
            and.b32 %r7, %r2, 8;
            setp.eq.s32 %p2, %r7, 0;
            @%p2 st.global.b32 [%rd4], 0;
            bar.sync 0;
            """ + ADD, "open", id="by another thread, if the program says so"),
        pytest.param(
            "setp.lt.s32 %p2, %r3, 32;\n@%p2 st.global.b32 [%rd4], 0;\nbar.sync 0;\n" + ADD,
            "refuted", id="half of it by another thread",
        ),
        pytest.param("""
            st.global.b32 [%rd4], 0;
            bar.sync 0;
            setp.lt.s32 %p2, %r3, 32;
            @%p2 ld.global.b32 %r6, [%rd3];
            st.global.b32 [%rd6], %r6;
            """, "proved", id="less than was stored"),
        pytest.param("""
            sub.s32 %r7, 3, %r2;
            mul.lo.s32 %r7, %r7, %r2;
            mul.wide.s32 %rd2, %r7, 64;
            add.s64 %rd7, %rd4, %rd2;
            st.global.b32 [%rd7], 0;
            bar.sync 0;
            """ + ADD, "open", id="programs in the middle shifted otherwise"),
        pytest.param("""
            mov.b32 %r8, 0;
            $l:
            ld.global.b32 %r6, [%rd3];
            st.global.b32 [%rd6], %r6;
            bar.sync 0;
            st.global.b32 [%rd4], 0;
            bar.sync 0;
            add.s32 %r8, %r8, 1;
            setp.lt.s32 %p2, %r8, 4;
            @%p2 bra $l;
            """, "open", id="by another thread, one round later"),
        pytest.param("""
            mul.lo.s32 %r7, %r2, 32;
            mul.wide.s32 %rd2, %r7, 4;
            add.s64 %rd7, %rd4, %rd2;
            st.global.b32 [%rd7], 0;
            bar.sync 0;
            """ + ADD, "refuted", id="programs shifted otherwise"),
        pytest.param("mov.b32 %r8, 0;\n$l:\n" + ADD + """
            add.s32 %r8, %r8, 1;
            setp.lt.s32 %p2, %r8, 4;
            @%p2 bra $l;
            """, "refuted", id="the first round"),
        pytest.param("""
            mov.b32 %r8, 0;
            $l:
            setp.eq.s32 %p3, %r8, 0;
            @!%p3 ld.global.b32 %r9, [%rd3];
            add.s32 %r9, %r9, 1;
            st.global.b32 [%rd3], %r9;
            add.s32 %r8, %r8, 1;
            setp.lt.s32 %p2, %r8, 4;
            @%p2 bra $l;
            """, "open", id="all rounds but the first"),
        pytest.param("""
            setp.eq.s32 %p3, %r2, 0;
            @%p3 st.global.b32 [%rd3], 0;
            $wait:
            ld.acquire.gpu.global.b32 %r8, [%rd5];
            setp.eq.s32 %p2, %r8, 0;
            @%p2 bra $wait;
            """ + ADD, "open", id="waits for another program"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            selp.b32 %r6, %r6, 0, %p1;
            st.global.b32 [%rd6], %r6;
            """, "open", id="may be left out"),
        pytest.param("""
            mov.u32 %r10, tile;
            cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r10], 256;
            """ + ADD, "open", id="a bulk copy"),
        pytest.param("ld.global.b32 %r6, [%rd3];\n", "proved", id="not used"),
        pytest.param("atom.global.exch.b32 %r6, [%rd3], 0;\n", "", id="only exchanged"),
        pytest.param(
            "atom.global.exch.b32 %r6, [%rd3], 0;\nst.global.b32 [%rd6], %r6;\n", "refuted",
            id="an exchange",
        ),
        pytest.param("st.global.b32 [%rd3], 1;\n", "", id="only stored"),
    ],
)  # fmt: skip
def test_what_nobody_has_written(body: str, status: str) -> None:
    statuses, findings = said(body)
    assert statuses == ({status} if status else set())
    assert bool(findings) == (status == "refuted")


def test_a_thread_shows_it() -> None:
    _, (finding,) = said("@%p1 st.global.b32 [%rd3], 0;\n" + ADD)
    # All cells below n = 250 are stored before.
    assert finding.witness["ctaid"] == [3, 0, 0]
    assert finding.witness["tid"] == [58, 0, 0]
    assert finding.witness["element"] == [250]
    assert finding.severity == "error"


def test_what_is_read_alone_is_a_note() -> None:
    _, (finding,) = said("ld.global.b32 %r6, [%rd3];\nst.global.b32 [%rd6], %r6;\n")
    assert finding.severity == "note"


def test_pointers_into_one_storage_meet() -> None:
    stored = "st.global.b32 [%rd6], 0;\n"
    assert said(stored + ADD)[0] == {"refuted"}
    assert said(stored + ADD, apart=False)[0] == {"proved"}


FOUR = Autotuned(4)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(ADD, "refuted", id="in place"),
        pytest.param("st.global.b32 [%rd3], 0;\n" + ADD, "proved", id="stored before"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            add.s32 %r6, %r6, 1;
            @%p1 st.global.b32 [%rd3], %r6;
            """, "refuted", id="in a part"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            add.s32 %r6, %r6, 1;
            setp.lt.s32 %p2, %r1, 0;
            @%p2 st.global.b32 [%rd3], %r6;
            """, "proved", id="in no thread"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            add.s32 %r6, %r6, 1;
            st.global.b32 [%rd4], %r6;
            """, "open", id="elsewhere in the tensor"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            st.global.b32 [%rd6], %r6;
            st.global.b32 [%rd3], 0;
            """, "open", id="taken away"),
        pytest.param("red.global.max.s32 [%rd3], %r2;\n", "proved", id="a maximum"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            red.global.max.s32 [%rd6], %r6;
            """, "proved", id="a maximum of another tensor"),
        pytest.param("""
            ld.global.b32 %r6, [%rd3];
            add.s32 %r6, %r6, 1;
            red.global.max.s32 [%rd3], %r6;
            """, "open", id="a maximum of more than what is there"),
        pytest.param("atom.global.max.s32 %r6, [%rd3], %r2;\nst.global.b32 [%rd6], %r6;\n", "open",
                     id="a maximum whose old value is kept"),
        pytest.param("atom.global.cas.b32 %r6, [%rd3], 0, 1;\n", "open", id="a lock"),
        pytest.param("red.global.add.u32 [%rd3], 1;\n", "refuted", id="a sum"),
    ],
)  # fmt: skip
def test_running_again(body: str, status: str) -> None:
    statuses, findings = said(body, "HAZ604", "", FOUR)
    assert statuses == {status}
    assert bool(findings) == (status == "refuted")


def test_the_witness_stores_what_it_has_read() -> None:
    body = """
        ld.global.b32 %r6, [%rd3];
        add.s32 %r6, %r6, 1;
        setp.gt.s32 %p2, %r3, 4;
        @%p2 st.global.b32 [%rd3], %r6;
        """
    _, (finding,) = said(body, "HAZ604", "", FOUR)
    assert finding.witness["tid"] == [5, 0, 0]


def test_the_same_storage_by_two_names() -> None:
    body = "ld.global.b32 %r6, [%rd3];\nadd.s32 %r6, %r6, 1;\nst.global.b32 [%rd6], %r6;\n"
    assert said(body, "HAZ604", "", FOUR)[0] == {"proved"}
    assert said(body, "HAZ604", "", FOUR, apart=False)[0] == {"refuted"}
    reset = Autotuned(4, (), ("y",))
    assert said(body, "HAZ604", "", reset, apart=False)[0] == {"proved"}
