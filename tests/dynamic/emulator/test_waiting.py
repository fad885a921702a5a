"""Lanes, warps and programs that wait for each other through global memory: they come to an end in
a moment, and where they cannot, that is seen in a moment, too."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Outcome

Kernel = Callable[..., str]
Run = Callable[..., Outcome]
SECONDS = 20
"""Generous, so that a machine that is busy passes; without turns for who is waited for each of
these takes minutes."""

START = """
  mov.u32 %r0, %tid.x;
  mov.u32 %r4, %ctaid.x;
  ld.param.u64 %rd0, [k_param_0];
  ld.param.u64 %rd1, [k_param_1];
  mad.wide.u32 %rd2, %r4, 4, %rd1;
"""
LOCK = (
    START
    + """
  {}
  setp.ne.u32 %p2, %r5, 0;
  @%p2 ret;
lock:
  atom.global.acquire.gpu.cas.b32 %r1, [%rd0], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra lock;
  ld.volatile.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd1], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd0], 0;
"""
)


def ran(outcome: Run, text: str, grid: int, **how: int) -> tuple[np.ndarray, Outcome]:
    words, out = np.zeros(4, dtype=np.uint32), np.zeros(2048, dtype=np.uint32)
    start = time.monotonic()
    found = outcome(text, [words, out], grid, **how)
    assert time.monotonic() - start < SECONDS
    return out, found


@pytest.mark.parametrize(
    ("leaders", "threads", "grid", "count"),
    [
        ("and.b32 %r5, %r0, 31;", 1024, 1, 32),
        ("mov.u32 %r5, 0;", 32, 1, 32),
        ("mov.u32 %r5, %r0;", 128, 400, 400),
    ],
)
def test_a_lock_that_many_want(
    outcome: Run, kernel: Kernel, leaders: str, threads: int, grid: int, count: int
) -> None:
    out, found = ran(outcome, kernel(LOCK.format(leaders), 2, threads), grid)
    assert found.faults == []
    assert found.is_complete
    assert out[0] == count


def test_a_barrier_of_the_whole_grid(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.ne.u32 %p2, %r0, 0;
  @%p2 ret;
  membar.gl;
  atom.global.add.u32 %r1, [%rd0], 1;
spin:
  ld.acquire.gpu.global.u32 %r2, [%rd0];
  setp.lt.u32 %p1, %r2, 600;
  @%p1 bra spin;
  st.global.u32 [%rd2], %r2;
"""
    )
    out, found = ran(outcome, kernel(body, 2, 128), 600)
    assert found.faults == []
    assert found.is_complete
    assert (out[:600] == 600).all()


def test_each_program_waits_for_the_next_one(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.ne.u32 %p2, %r0, 0;
  @%p2 ret;
  setp.eq.u32 %p3, %r4, 299;
  @%p3 bra done;
spin:
  ld.volatile.global.u32 %r2, [%rd2+4];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra spin;
done:
  st.volatile.global.u32 [%rd2], 1;
"""
    )
    out, found = ran(outcome, kernel(body, 2, 256), 300)
    assert found.is_complete
    assert out.sum() == 300


FLAG = (
    START
    + """
  st.global.u32 [%rd2], 7;
  mov.u32 %r6, 0;
spin:
  ld.volatile.global.u32 %r2, [%rd0];
  add.u32 %r6, %r6, {step};
  setp.eq.u32 %p1, %r2, 0;
  setp.lt.and.u32 %p1, %r6, 3000, %p1;
  @%p1 bra spin;
  st.global.u32 [%rd2], 1;
"""
)


@pytest.mark.parametrize("grid", [1, 400])
def test_a_flag_that_nobody_sets_keeps_what_was_done(
    outcome: Run, kernel: Kernel, grid: int
) -> None:
    out, found = ran(outcome, kernel(FLAG.format(step=0), 2, 128), grid)
    assert [fault.kind for fault in found.faults] == ["hang"]
    assert (found.faults[0].instr.opcode, found.faults[0].lanes) == ("ld", 128 * grid)
    assert not found.is_complete
    assert out.tolist() == [7] * grid + [0] * (2048 - grid)


def test_who_looks_only_so_often_goes_on(outcome: Run, kernel: Kernel) -> None:
    out, found = ran(outcome, kernel(FLAG.format(step=1), 2, 128), 3)
    assert found.faults == []
    assert found.is_complete
    assert out[:3].tolist() == [1, 1, 1]
