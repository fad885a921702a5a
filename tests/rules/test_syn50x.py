"""SYN501 and SYN502: which threads must come, and when it is known that they do not."""

from __future__ import annotations

import pytest

import ptxlint
from ptxlint.engine.report import Report
from ptxlint.source import SourceText

FIXED = ".reqntid 128"


def check(body: str, directive: str = "", target: str = "sm_90a", before: str = "") -> Report:
    text = f"""
        .version 8.0
        .target {target}
        .address_size 64
        .shared .align 16 .b8 tile[1024];
        {before}
        .visible .entry k(.param .u64 .ptr .global out, .param .u32 n, .param .u32 m)
        {directive}
        {{
        .reg .pred %p<6>;
        .reg .b32 %r<16>;
        .reg .f32 %f<8>;
        .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [n];
        ld.param.u32 %r2, [m];
        mov.u32 %r3, %tid.x;
        mov.u32 %r4, %ctaid.x;
        mov.u32 %r5, %ntid.x;
        {body}
        ret;
        }}
        """
    report = ptxlint.check(SourceText(text, "k.ptx"), select="SYN501,SYN502")
    assert report.exit_code != 2, report.findings
    return report


def said(report: Report) -> tuple[list[str], list[str]]:
    """Severities of the findings and statuses of the verdicts."""
    return [f.severity for f in report.findings], [o.status for o in report.obligations if o.rule]


PROVED: tuple[list[str], list[str]] = ([], ["proved"])
REFUTED = (["error"], ["refuted"])
OPEN: tuple[list[str], list[str]] = ([], ["open"])


def skipping(condition: str, inside: str, after: str = "st.global.u32 [%rd1], %r3;") -> str:
    """A branch round something; the ways meet again and there is more to do."""
    return f"{condition}\n@%p1 bra skip;\n{inside}\nskip:\n{after}"


BARRIER = {
    "by the CTA": ("setp.eq.u32 %p1, %r4, 0;", "", PROVED),
    "by a parameter": ("setp.eq.u32 %p1, %r1, 0;", "", PROVED),
    "by one thread": ("setp.eq.u32 %p1, %r3, 0;", "", REFUTED),
    "by the lane": ("and.b32 %r6, %r3, 1; setp.eq.u32 %p1, %r6, 0;", "", REFUTED),
    "by a bound that is a parameter": ("setp.ge.u32 %p1, %r3, %r1;", "", REFUTED),
    "by the global index": (
        "mad.lo.u32 %r6, %r4, %r5, %r3; setp.ge.u32 %p1, %r6, %r1;",
        "",
        REFUTED,
    ),
    "by half of the CTA": ("shr.u32 %r6, %r5, 1; setp.ge.u32 %p1, %r3, %r6;", "", REFUTED),
    "by the size of the CTA": ("setp.ge.u32 %p1, %r3, %r5;", "", OPEN),
    "by a bound that all threads of the fixed CTA keep": (
        "setp.gt.u32 %p1, %r3, 127;",
        FIXED,
        PROVED,
    ),
    "by a bound that a larger CTA would exceed": ("setp.gt.u32 %p1, %r3, 127;", "", OPEN),
    "by a bound below any CTA": ("setp.gt.u32 %p1, %r3, 15;", "", REFUTED),
    "by half of a fixed CTA": ("setp.gt.u32 %p1, %r3, 63;", FIXED, REFUTED),
    "by the second dimension": ("mov.u32 %r6, %tid.y; setp.eq.u32 %p1, %r6, 0;", "", OPEN),
    "by the second dimension of a fixed CTA": (
        "mov.u32 %r6, %tid.y; setp.eq.u32 %p1, %r6, 0;",
        ".reqntid 32, 4",
        REFUTED,
    ),
    "by the second dimension of a flat CTA": (
        "mov.u32 %r6, %tid.y; setp.ne.u32 %p1, %r6, 0;",
        ".reqntid 32, 1",
        PROVED,
    ),
    "by memory that all threads read alike": (
        "ld.global.u32 %r6, [%rd1]; setp.eq.u32 %p1, %r6, 0;",
        "",
        OPEN,
    ),
    "by an atomic": ("atom.global.add.u32 %r6, [%rd1], 1; setp.eq.u32 %p1, %r6, 0;", "", OPEN),
    "by a vote of the CTA": (
        "setp.eq.u32 %p2, %r3, 0; bar.red.or.pred %p1, 0, %p2;",
        "",
        PROVED,
    ),
}


@pytest.mark.parametrize(("condition", "directive", "expected"), BARRIER.values(), ids=BARRIER)
def test_a_barrier_behind_a_branch(
    condition: str, directive: str, expected: tuple[list[str], list[str]]
) -> None:
    assert said(check(skipping(condition, "bar.sync 0;"), directive)) == expected


WARP_OF_FOUR = "setp.gt.u32 %p1, %r3, 31;"
KINDS = {
    "all threads": ("bar.sync 1;", REFUTED),
    "all threads, unaligned": ("barrier.sync 1;", REFUTED),
    "a count": ("bar.sync 1, 32;", PROVED),
    "a count in a register": ("bar.sync 1, %r5;", PROVED),
    "a count that is the whole CTA": ("bar.sync 1, 128;", REFUTED),
    "an arrival": ("bar.arrive 1, 64;", PROVED),
    "a reduction": ("bar.red.popc.u32 %r6, 1, %p2;", REFUTED),
    "a reduction for a count": ("bar.red.popc.u32 %r6, 1, 32, %p2;", PROVED),
}


@pytest.mark.parametrize(("barrier", "expected"), KINDS.values(), ids=KINDS)
def test_barriers_that_one_warp_reaches(
    barrier: str, expected: tuple[list[str], list[str]]
) -> None:
    body = "setp.eq.u32 %p2, %r3, 0;\n" + skipping(WARP_OF_FOUR, barrier)
    assert said(check(body, FIXED)) == expected


def test_lanes_must_reach_an_aligned_barrier_with_a_count_together() -> None:
    lanes = "and.b32 %r6, %r3, 1; setp.eq.u32 %p1, %r6, 0;"
    assert said(check(skipping(lanes, "bar.sync 1, 64;"), FIXED)) == REFUTED
    assert said(check(skipping(lanes, "barrier.sync 1, 64;"), FIXED)) == ([], [])


def test_warps_that_wait_elsewhere_may_meet() -> None:
    body = (
        f"{WARP_OF_FOUR}\n@%p1 bra other;\nbar.sync 0;\nbra join;\nother:\nbar.sync 0;\njoin:\n"
        "st.global.u32 [%rd1], %r3;"
    )
    assert said(check(body, FIXED)) == OPEN


def test_lanes_that_wait_elsewhere_break_alignment() -> None:
    body = (
        "and.b32 %r6, %r3, 1;\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra other;\nbar.sync 0;\nbra join;\n"
        "other:\nbar.sync 0;\njoin:\nst.global.u32 [%rd1], %r3;"
    )
    severities, statuses = said(check(body, FIXED))
    assert set(severities) == {"error"}
    assert statuses == ["refuted"]


LOOP = """
    mov.u32 %r6, {start};
    again:
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra done;
    bar.sync 0;
    add.u32 %r6, %r6, {step};
    bra again;
    done:
    bar.sync 0;
"""


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [("0", "%r5", PROVED), ("%r4", "%r5", PROVED), ("%r3", "%r5", REFUTED), ("0", "%r3", OPEN)],
)
def test_a_barrier_in_a_loop(start: str, step: str, expected: tuple[list[str], list[str]]) -> None:
    assert said(check(LOOP.format(start=start, step=step))) == expected


def test_an_early_return_is_a_note_and_one_for_whole_ctas_is_nothing() -> None:
    after = "st.global.u32 [%rd1], %r3;\nbar.sync 0;"
    early = check("setp.ge.u32 %p1, %r3, %r1;\n@%p1 ret;\n" + after)
    assert said(early) == (["note"], ["open"])
    assert said(check("setp.ge.u32 %p1, %r4, %r1;\n@%p1 ret;\n" + after)) == PROVED


def test_a_trap_of_some_threads_ends_all() -> None:
    assert said(check("setp.ge.u32 %p1, %r3, %r1;\n@%p1 trap;\nbar.sync 0;")) == PROVED


CALLEE = ".func helper() {{\n{body}\nret;\n}}\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (CALLEE.format(body=""), PROVED),
        (CALLEE.format(body="bar.sync 0;"), OPEN),
        (".extern .func helper();", OPEN),
    ],
)
def test_a_barrier_in_a_callee(before: str, expected: tuple[list[str], list[str]]) -> None:
    assert said(check("call helper;\nbar.sync 0;", before=before)) == expected


def test_the_launch_that_breaks_is_named() -> None:
    (finding,) = check(skipping("setp.ge.u32 %p1, %r3, %r1;", "bar.sync 0;"), FIXED).findings
    assert finding.breaks_when == (
        "n = 65 in a CTA of 128 threads: thread 64 waits, thread 96 does not come"
    )
    assert [r.message for r in finding.related] == ["threads part here"]


SHUFFLE = "shfl.sync.down.b32 %r8, %r3, 1, 31, {mask};\nst.shared.u32 [tile], %r8;"
LOW = "and.b32 %r6, %r3, 31;\nsetp.gt.u32 %p1, %r6, 15;"
LANES = {
    "whole warps": (WARP_OF_FOUR, SHUFFLE.format(mask="-1"), PROVED),
    "half of each warp": (LOW, SHUFFLE.format(mask="-1"), REFUTED),
    "half of each warp, its mask": (LOW, SHUFFLE.format(mask="0xffff"), OPEN),
    "half of each warp, the other mask": (LOW, SHUFFLE.format(mask="0xffff0000"), OPEN),
    "half of each warp, a mask too wide": (LOW, SHUFFLE.format(mask="0x1ffff"), REFUTED),
    "half of each warp, a mask in a register": (
        LOW,
        "mov.b32 %r9, -1;\n" + SHUFFLE.format(mask="%r9"),
        REFUTED,
    ),
    "half of each warp, a mask from a vote": (
        LOW + "\nvote.sync.ballot.b32 %r9, !%p1, -1;",
        SHUFFLE.format(mask="%r9"),
        PROVED,
    ),
    "memory": ("ld.global.u32 %r6, [%rd1];\nsetp.eq.u32 %p1, %r6, 0;", SHUFFLE.format(mask="-1"),
               PROVED),
    "memory by lane": (
        "mul.wide.u32 %rd2, %r3, 4;\nadd.s64 %rd2, %rd1, %rd2;\nld.global.u32 %r6, [%rd2];\n"
        "setp.eq.u32 %p1, %r6, 0;",
        SHUFFLE.format(mask="-1"),
        OPEN,
    ),
    "a matrix product": (
        LOW,
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3}, "
        "{%f0, %f1, %f2, %f3};",
        REFUTED,
    ),
    "a barrier of the warp": (LOW, "bar.warp.sync -1;", REFUTED),
    "an old shuffle without sync": (LOW, "activemask.b32 %r8;", ([], [])),
}  # fmt: skip


@pytest.mark.parametrize(("condition", "inside", "expected"), LANES.values(), ids=LANES)
def test_a_warp_operation_behind_a_branch(
    condition: str, inside: str, expected: tuple[list[str], list[str]]
) -> None:
    body = f"mov.f32 %f0, 0f00000000;\n{condition}\n@%p1 bra skip;\n{inside}\nskip:\n"
    assert said(check(body + "st.global.u32 [%rd1], %r3;", FIXED)) == expected


EXITED = {
    "down by one": ("shfl.sync.down.b32 %r8, %r3, 1, 31, -1;", ["warning"]),
    "up by one": ("shfl.sync.up.b32 %r8, %r3, 1, 0, -1;", []),
    "the other half": ("shfl.sync.bfly.b32 %r8, %r3, 16, 31, -1;", ["warning"]),
    "from the first lane": ("shfl.sync.idx.b32 %r8, %r3, 0, 31, -1;", []),
    "from the last lane": ("shfl.sync.idx.b32 %r8, %r3, 31, 31, -1;", ["warning"]),
    "within pairs that are whole or gone": ("shfl.sync.bfly.b32 %r8, %r3, 0, 31, -1;", []),
    "a vote": ("vote.sync.ballot.b32 %r8, %p1, -1;", []),
    "a reduction": ("redux.sync.add.u32 %r8, %r3, -1;", []),
    "a matrix product": (
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3}, "
        "{%f0, %f1, %f2, %f3};",
        ["error"],
    ),
}


@pytest.mark.parametrize(("operation", "expected"), EXITED.values(), ids=EXITED)
def test_a_warp_operation_after_an_early_return(operation: str, expected: list[str]) -> None:
    body = f"setp.ge.u32 %p1, %r3, %r1;\n@%p1 ret;\n{operation}\nst.global.u32 [%rd1], %r8;"
    assert said(check(body, FIXED))[0] == expected


def test_conditions_on_the_way_count() -> None:
    """Thread 0 leaves the others first, but what comes to the shuffle are whole warps."""
    body = skipping(
        "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra skip;\nsetp.lt.u32 %p1, %r3, 32;",
        SHUFFLE.format(mask="-1"),
    )
    assert said(check(body, FIXED))[0] == []


def test_a_way_that_only_full_ctas_take_is_not_blamed() -> None:
    """All threads are below n where the CTA's last one is."""
    body = skipping(
        "mad.lo.u32 %r6, %r4, %r5, %r3;\nsetp.ge.u32 %p2, %r6, %r1;\n@%p2 bra skip;\n"
        "mul.lo.u32 %r7, %r4, %r5;\nsub.u32 %r7, %r1, %r7;\nsetp.lt.u32 %p1, %r7, %r5;",
        SHUFFLE.format(mask="-1"),
    )
    assert said(check(body, FIXED))[0] == []
