"""Barriers of a CTA and of a warp (PTX ISA, "bar, barrier", "bar.warp.sync")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Outcome

Execute = Callable[..., None]
Kernel = Callable[..., str]
Run = Callable[..., Outcome]
THREADS = 128
START = """
  .shared .align 16 .b8 room[1024];
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd2, %r100, 4, %rd1;
  shl.b32 %r101, %r100, 2;
  shr.u32 %r102, %r100, 5;
  mov.u32 %r103, room;
  add.u32 %r104, %r103, %r101;
"""


def test_what_is_written_before_is_seen_behind(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  st.shared.u32 [%r104], %r100;
  bar.sync 0;
  xor.b32 %r1, %r101, 508;
  add.u32 %r1, %r1, %r103;
  ld.shared.u32 %r2, [%r1];
  st.global.u32 [%rd2], %r2;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [t ^ 127 for t in range(THREADS)]


def test_a_barrier_in_a_loop_whose_warps_run_at_their_own_pace(
    execute: Execute, kernel: Kernel
) -> None:
    # Warp w does w rounds of other work before each barrier: a running sum over neighbours.
    body = (
        START
        + """
  st.shared.u32 [%r104], 1;
  mov.u32 %r1, 0;
$round:
  bar.sync 0;
  mov.u32 %r2, %r102;
$work:
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $go;
  sub.u32 %r2, %r2, 1;
  bra $work;
$go:
  add.u32 %r3, %r101, 4;
  and.b32 %r3, %r3, 511;
  add.u32 %r3, %r3, %r103;
  ld.shared.u32 %r4, [%r3];
  ld.shared.u32 %r5, [%r104];
  bar.sync 0;
  add.u32 %r5, %r5, %r4;
  st.shared.u32 [%r104], %r5;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, 5;
  @%p2 bra $round;
  st.global.u32 [%rd2], %r5;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert set(out.tolist()) == {32}


def test_producer_arrives_and_consumer_waits(execute: Execute, kernel: Kernel) -> None:
    # Warps 0 and 1 write and go on; warps 2 and 3 wait for them at a barrier of 128 threads.
    body = (
        START
        + """
  setp.lt.u32 %p1, %r102, 2;
  @!%p1 bra $consumer;
  st.shared.u32 [%r104], %r100;
  bar.arrive 3, 128;
  mov.u32 %r2, 1000;
  bra $out;
$consumer:
  bar.sync 3, 128;
  sub.u32 %r1, %r104, 256;
  ld.shared.u32 %r2, [%r1];
$out:
  st.global.u32 [%rd2], %r2;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [1000] * 64 + list(range(64))


def test_two_barriers_of_two_halves(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  shr.u32 %r1, %r102, 1;
  add.u32 %r1, %r1, 1;
  st.shared.u32 [%r104], %r100;
  bar.sync %r1, 64;
  xor.b32 %r2, %r101, 252;
  add.u32 %r2, %r2, %r103;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd2], %r3;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [t ^ 63 for t in range(THREADS)]


@pytest.mark.parametrize("true", [0, 1, 5, 128])
def test_reductions_of_predicates(execute: Execute, kernel: Kernel, true: int) -> None:
    body = (
        START
        + f"""
  setp.lt.u32 %p1, %r100, {true};
  bar.red.popc.u32 %r1, 0, %p1;
  bar.red.and.pred %p2, 0, %p1;
  bar.red.or.pred %p3, 0, !%p1;
  selp.u32 %r2, 1000, 0, %p2;
  selp.u32 %r3, 10000, 0, %p3;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%rd2], %r1;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert set(out.tolist()) == {true + 1000 * (true == 128) + 10000 * (true < 128)}


def test_who_has_left_is_not_waited_for(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.ge.u32 %p1, %r100, 64;
  @%p1 ret;
  st.shared.u32 [%r104], %r100;
  bar.sync 0;
  xor.b32 %r2, %r101, 252;
  add.u32 %r2, %r2, %r103;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd2], %r3;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [t ^ 63 for t in range(64)] + [0] * 64


def test_waiting_for_more_threads_than_there_are(outcome: Run, kernel: Kernel) -> None:
    body = START + "  bar.sync 1, 160;\n  st.global.u32 [%rd2], 1;"
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert [f.kind for f in found.faults] == ["deadlock"]
    assert found.faults[0].lanes == THREADS
    assert found.faults[0].instr.opcode == "bar"
    assert not out.any()


def test_barriers_that_halves_never_share(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.lt.u32 %p1, %r102, 2;
  @%p1 bra $one;
  bar.sync 2, 128;
  bra $out;
$one:
  bar.sync 1, 128;
$out:
  st.global.u32 [%rd2], 1;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert {f.kind for f in found.faults} == {"deadlock"}
    assert sum(f.lanes for f in found.faults) == THREADS
    assert not out.any()


def test_lanes_of_a_warp_meet(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  and.b32 %r1, %r100, 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $even;
  st.shared.u32 [%r104], %r100;
$even:
  bar.warp.sync 0xffffffff;
  xor.b32 %r2, %r101, 4;
  add.u32 %r2, %r2, %r103;
  mov.u32 %r3, 7;
  @%p1 ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd2], %r3;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [t + 1 if t % 2 == 0 else 7 for t in range(THREADS)]


def test_lanes_that_never_come(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  and.b32 %r1, %r100, 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $even;
  shfl.sync.bfly.b32 %r2, %r100, 1, 31, -1;
  bra $out;
$even:
  shfl.sync.bfly.b32 %r2, %r100, 2, 31, -1;
$out:
  st.global.u32 [%rd2], %r2;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert "divergence" in {f.kind for f in found.faults}
    assert {f.instr.opcode for f in found.faults if f.kind == "divergence"} == {"shfl"}


def test_a_warp_counts_once_its_lanes_are_all_there(execute: Execute, kernel: Kernel) -> None:
    # Its two halves come to the barrier from two arms of a branch, one after the other.
    body = (
        START
        + """
  st.shared.u32 [%r104], 0;
  bar.sync 0;
  and.b32 %r1, %r100, 16;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $low;
  st.shared.u32 [%r104], 2;
  barrier.sync 0;
  bra $behind;
$low:
  mov.u32 %r6, 0;
$delay:
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p2, %r6, %r100;
  @%p2 bra $delay;
  st.shared.u32 [%r104], 1;
  barrier.sync 0;
$behind:
  xor.b32 %r2, %r101, 320;
  add.u32 %r2, %r2, %r103;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd2], %r3;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [1 if (t ^ 80) & 16 == 0 else 2 for t in range(THREADS)]


def test_lanes_that_stay_away_from_a_barrier(outcome: Run, kernel: Kernel) -> None:
    # Every other lane takes another barrier: no warp is ever whole.
    body = (
        START
        + """
  and.b32 %r1, %r100, 1;
  bar.sync %r1, 128;
  st.global.u32 [%rd2], 1;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert {f.kind for f in found.faults} == {"deadlock"}
    assert not out.any()


def test_a_reduction_counts_who_is_there(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.ge.u32 %p1, %r100, 64;
  @%p1 ret;
  setp.lt.u32 %p2, %r100, 64;
  bar.red.and.pred %p3, 0, %p2;
  bar.red.popc.u32 %r1, 0, %p2;
  @!%p3 mov.u32 %r1, 1000;
  st.global.u32 [%rd2], %r1;
"""
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [64] * 64 + [0] * 64


WAITS = """
  st.global.u32 [%rd2], 7;
  setp.ge.u32 %p1, %r100, 96;
  @%p1 ret;
  setp.lt.u32 %p1, %r100, 32;
  @%p1 bra $one;
  bar.sync 2, 128;
  bra $out;
$one:
  bar.sync 1, 64;
$out:
  st.global.u32 [%rd2], 1;
"""


def test_a_deadlock_names_who_waits_where_and_who_is_missing(outcome: Run, kernel: Kernel) -> None:
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(START + WAITS, 1, THREADS), [out])
    assert [(f.kind, f.tid[0], f.lanes) for f in found.faults] == [
        ("deadlock", 0, 32), ("deadlock", 32, 64),
    ]  # fmt: skip
    first, second = (f.message for f in found.faults)
    assert first == (
        "waits at barrier 1 for others that never come: 32 of 64 threads are there; "
        "threads 32 to 95 wait at barrier 2 (`bar.sync`); threads 96 to 127 have left"
    )
    assert "64 of 128 threads are there; threads 0 to 31 wait at barrier 1" in second
    assert found.faults[0].origin is found.faults[1].instr
    # What was written until then stays.
    assert (out == 7).all()
    assert found.is_complete


def test_the_ctas_around_a_deadlock_go_on(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bar.sync 1, 256;
  mad.lo.u32 %r2, %r1, 128, %r100;
  mad.wide.u32 %rd3, %r2, 4, %rd1;
  st.global.u32 [%rd3], 1;
"""
    )
    out = np.zeros(4 * THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out], 4)
    assert [(f.kind, f.ctaid[0], f.lanes) for f in found.faults] == [("deadlock", 1, THREADS)]
    assert out.reshape(4, -1).any(axis=1).tolist() == [True, False, True, True]
