"""Races in shared and global memory: found where nothing orders two accesses, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import run
from ptxlint.dynamic.emulator.sanitizer.between import Between
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.sanitizer.shadow import LATEST, stamp, taken_apart
from ptxlint.frontends.ptx import parse

ROOT = Path(__file__).resolve().parents[3]
Kernel = Callable[..., str]

SHARED = ".shared .align 16 .b8 tile[1024];\n"
START = """
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  shl.b32 %r2, %r0, 2;
  add.s32 %r3, %r1, %r2;
  shr.u32 %r4, %r0, 5;
  ld.param.u64 %rd0, [k_param_0];
  mov.u32 %r9, %ctaid.x;
"""


def races(text: str, grid: int = 1, cells: int = 4096) -> list[Fault]:
    """The races of kernel `k`, which gets one array; nothing else may be found."""
    module = parse(text, "snippet.ptx")
    array = np.zeros(cells, dtype=np.uint32)
    outcome = run(module, module.kernels()[0], (grid, 1, 1), [array], sanitize=Sanitize(races=True))
    assert all(fault.kind == "race" for fault in outcome.faults), outcome.faults
    assert outcome.is_complete
    return outcome.faults


REVERSED = """
  st.shared.b32 [%r3], %r0;
{between}
  xor.b32 %r5, %r2, 508;
  add.s32 %r6, %r1, %r5;
  ld.shared.b32 %r7, [%r6];
"""


@pytest.mark.parametrize(
    ("between", "count"),
    [
        ("", 1),
        ("  bar.sync 0;", 0),
        ("  bar.warp.sync 0xffffffff;", 1),
        ("  bar.sync 1, 128;", 0),
        ("  setp.lt.u32 %p1, %r0, 64;\n  @%p1 bar.sync 1, 64;\n  @!%p1 bar.sync 2, 64;", 1),
        ("  bar.sync 0;\n  bar.sync 0;", 0),
    ],
)
def test_a_read_of_what_another_warp_wrote_needs_a_barrier(
    kernel: Kernel, between: str, count: int
) -> None:
    body = START + REVERSED.format(between=between)
    found = races(kernel(body, 1, 128, SHARED))
    assert len(found) == count
    if found:
        assert found[0].instr.opcode == "ld"
        assert found[0].lanes == 128


def test_a_write_after_the_others_read_needs_one_too(kernel: Kernel) -> None:
    body = START + REVERSED.format(between="  bar.sync 0;")
    again = "  st.shared.b32 [%r3], %r9;\n  add.s32 %r8, %r0, 1;\n  st.shared.b32 [%r3], %r8;\n"
    assert len(races(kernel(body + again, 1, 128, SHARED))) >= 1
    assert races(kernel(body + "  bar.sync 0;\n" + again, 1, 128, SHARED)) == []


def test_arriving_hands_on_and_does_not_take(kernel: Kernel) -> None:
    # Warp 0 writes and arrives; warp 1 waits and reads. The other way round nothing is ordered.
    for writer, count in ((0, 0), (1, 1)):
        body = (
            START
            + f"""
  setp.eq.u32 %p1, %r4, {writer};
  @%p1 st.shared.b32 [%r1], %r0;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra first;
  bar.sync 1, 64;
  bra done;
first:
  bar.arrive 1, 64;
done:
  @!%p1 ld.shared.b32 %r7, [%r1];
"""
        )
        body = body.replace("st.shared.b32 [%r1], %r0", "st.shared.b32 [%r1], 7")
        assert len(races(kernel(body, 1, 64, SHARED))) == count, writer


def test_lanes_that_write_different_numbers_to_one_cell(kernel: Kernel) -> None:
    (found,) = races(kernel(START + "  st.shared.b32 [%r1], %r0;", 1, 64, SHARED))
    assert "another number" in found.message
    assert races(kernel(START + "  st.shared.b32 [%r1], 5;", 1, 128, SHARED)) == []
    # Of one warp they are what a reduction leaves in each lane, up to rounding.
    assert races(kernel(START + "  st.shared.b32 [%r1], %r0;", 1, 32, SHARED)) == []
    (found,) = races(kernel(START + "  st.global.b32 [%rd0], %r0;", 1, 32, SHARED))
    assert "another number" in found.message


def test_programs_that_write_the_same_cells(kernel: Kernel) -> None:
    address = "  mad.wide.u32 %rd1, %r0, 4, %rd0;\n"
    (found,) = races(
        kernel(START + address + "  st.global.b32 [%rd1], %r9;", 1, 64, SHARED), grid=3
    )
    assert found.instr.opcode == "st"
    own = "  mad.lo.s32 %r5, %r9, 64, %r0;\n  mad.wide.u32 %rd1, %r5, 4, %rd0;\n"
    assert races(kernel(START + own + "  st.global.b32 [%rd1], %r9;", 1, 64, SHARED), grid=3) == []
    # The same number does no harm.
    assert (
        races(kernel(START + address + "  st.global.b32 [%rd1], %r0;", 1, 64, SHARED), grid=3) == []
    )


def test_atomics_are_ordered_among_themselves_alone(kernel: Kernel) -> None:
    add = START + "  red.global.add.u32 [%rd0], 1;\n"
    assert races(kernel(add, 1, 64, SHARED), grid=3) == []
    assert len(races(kernel(add + "  ld.global.b32 %r5, [%rd0];", 1, 64, SHARED), grid=3)) >= 1


def test_a_barrier_taken_out_of_a_reduction_is_missed() -> None:
    path = ROOT / "fixtures/ptx/sm_80/softmax.ptx"
    text = path.read_text()
    barriers = [match.span() for match in re.finditer(r"^\s*bar\.sync[^\n]*\n", text, re.M)]
    assert barriers
    x = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)

    def found(changed: str) -> list[Fault]:
        module = parse(changed, "softmax.ptx")
        arguments = [np.zeros_like(x), x, 1000, 1000, 1000]
        return run(
            module, module.kernels()[0], (3, 1, 1), arguments, dynamic_shared=16,
            sanitize=Sanitize(races=True),
        ).faults  # fmt: skip

    assert found(text) == []
    caught = [bool(found(text[:start] + text[end:])) for start, end in barriers]
    assert all(caught)


HANDED = """
  mov.u32 %r9, %ctaid.x;
  ld.param.u64 %rd1, [k_param_1];
  setp.eq.u32 %p1, %r9, 1;
  @%p1 bra second;
  st.global.b32 [%rd0], 7;
  FENCE;
  STORE [%rd1], 1;
  bra done;
second:
  LOAD %r5, [%rd1];
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra second;
  ld.global.b32 %r6, [%rd0];
done:
"""


@pytest.mark.parametrize(
    ("fence", "store", "load", "count"),
    [
        ("", "st.release.gpu.global.b32", "ld.acquire.gpu.global.b32", 0),
        ("membar.gl", "st.volatile.global.b32", "ld.volatile.global.b32", 0),
        ("fence.acq_rel.gpu", "red.relaxed.gpu.global.add.u32", "ld.relaxed.gpu.global.b32", 0),
        # Nothing says that what was stored before is there as well.
        ("", "st.relaxed.gpu.global.b32", "ld.acquire.gpu.global.b32", 1),
        ("membar.cta", "st.volatile.global.b32", "ld.volatile.global.b32", 1),
        ("fence.proxy.async", "st.volatile.global.b32", "ld.volatile.global.b32", 1),
        # A plain flag is a race of its own.
        ("membar.gl", "st.global.b32", "ld.volatile.global.b32", 2),
    ],
)
def test_programs_hand_on_what_they_did(
    kernel: Kernel, fence: str, store: str, load: str, count: int
) -> None:
    body = START + HANDED.replace("FENCE", fence).replace("STORE", store).replace("LOAD", load)
    text = kernel(body, 2, 32).replace("  ;\n", "").replace("mov.u32 %r1, tile;", "mov.u32 %r1, 0;")
    module = parse(text, "snippet.ptx")
    arrays = [np.zeros(4, dtype=np.uint32), np.zeros(1, dtype=np.uint32)]
    outcome = run(module, module.kernels()[0], (2, 1, 1), arrays, sanitize=Sanitize(races=True))
    assert [fault.kind for fault in outcome.faults] == ["race"] * count


def test_handovers_beyond_those_that_are_told_apart_stay_handovers() -> None:
    between = Between()
    for time in range(1, 300):
        between.leave(1, 8, np.full(2, time, dtype=np.int32))
    between.take(2, 8)
    between.leave(1, 8, np.full(2, 1000, dtype=np.int32))
    assert between.known(2)[1].tolist() == [299, 299]
    between.leave(2, 16, np.full(2, 5, dtype=np.int32))
    between.take(3, 16)
    # The third program knows through the second one what the first did, and no more.
    assert between.known(3)[1].tolist() == [299, 299]
    assert between.known(3)[2].tolist() == [5, 5]
    assert between.known(1) == {}


LANES = """
  xor.b32 %r5, %r2, 124;
  add.s32 %r6, %r1, %r5;
  FIRST
  BETWEEN
  SECOND
"""
STORE = "st.shared.b32 [%r3], %r0;"
LOAD = "ld.shared.b32 %r7, [%r6];"


@pytest.mark.parametrize(
    ("first", "between", "second", "count"),
    [
        (STORE, "", LOAD, 1),
        (STORE, "bar.warp.sync -1;", LOAD, 0),
        (STORE, "bar.sync 0;", LOAD, 0),
        (STORE, "shfl.sync.bfly.b32 %r8, %r0, 1, 31, -1;", LOAD, 0),
        (LOAD, "", STORE, 1),
        (LOAD, "bar.warp.sync -1;", STORE, 0),
        (STORE, "", "st.shared.b32 [%r6], %r0;", 1),
        # It is its own cell, or nothing changes there, or both say that they may meet.
        (STORE, "", "ld.shared.b32 %r7, [%r3];", 0),
        ("st.shared.b32 [%r3], 0;", "", "st.shared.b32 [%r6], 0;", 0),
        ("st.volatile.shared.b32 [%r3], %r0;", "", "ld.volatile.shared.b32 %r7, [%r6];", 0),
        (STORE, "", "ld.volatile.shared.b32 %r7, [%r6];", 1),
    ],
)
def test_lanes_of_a_warp_meet_or_race(
    kernel: Kernel, first: str, between: str, second: str, count: int
) -> None:
    body = START + LANES.replace("FIRST", first).replace("BETWEEN", between)
    found = races(kernel(body.replace("SECOND", second), 1, 64, SHARED))
    assert len(found) == count
    assert all("of its warp" in fault.message for fault in found)


def test_lanes_that_meet_at_a_flag(kernel: Kernel) -> None:
    # Lane 0 stores and arrives; all lanes wait for that, and read.
    body = (
        START
        + """
  mov.u32 %r10, bar;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r10], 1;
  bar.warp.sync -1;
  @%p1 st.shared.b32 [%r1], 7;
  @%p1 mbarrier.arrive.shared.b64 %rd5, [%r10];
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r10], 0;
  @!%p2 bra wait;
  ld.shared.b32 %r7, [%r1];
"""
    )
    declared = SHARED + ".shared .align 8 .b64 bar;\n"
    assert races(kernel(body, 1, 32, declared)) == []
    start, end = body.index("  @%p1 mbarrier.arrive"), body.index("  ld.shared")
    assert len(races(kernel(body[:start] + body[end:], 1, 32, declared))) == 1


def test_time_stops_at_the_last_one_that_a_stamp_tells() -> None:
    threads = np.array([0, 1023])
    touch = taken_apart(stamp(threads, np.array([1, 1 << 25], dtype=np.int32), True))
    assert touch.thread.tolist() == [0, 1023]
    assert touch.warp.tolist() == [0, 31]
    assert touch.time.tolist() == [1, LATEST]
    assert touch.is_atomic.all()
    assert touch.is_any.all()


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("st.global.b32 [%rd1], %r0;\n  bar.sync 0;\n  ld.global.nc.b32 %r7, [%rd1];", 1),
        ("ld.global.nc.b32 %r7, [%rd1];\n  bar.sync 0;\n  st.global.b32 [%rd1], %r2;", 1),
        ("ld.global.nc.b32 %r7, [%rd1];\n  bar.sync 0;\n  st.global.b32 [%rd1+512], %r2;", 0),
        ("st.global.b32 [%rd1], %r0;\n  bar.sync 0;\n  ld.global.b32 %r7, [%rd1];", 0),
    ],
)
def test_what_is_read_as_constant_is_not_written(kernel: Kernel, body: str, count: int) -> None:
    start = START + "  mad.wide.u32 %rd1, %r0, 4, %rd0;\n  add.s32 %r2, %r2, 1;\n  "
    found = races(kernel(start + body, 1, 128, SHARED))
    assert len(found) == count
    assert all(".nc" in fault.message for fault in found)


TWICE = """
  and.b32 %r5, %r0, 31;
  mad.wide.u32 %rd1, %r5, 4, %rd0;
  mad.wide.u32 %rd2, %r0, 4, %rd0;
  setp.lt.u32 %p1, %r0, 32;
  ld.global.b32 %r6, [%rd1];
  add.u32 %r7, %r6, 1;
"""
"""Both warps load the same 32 numbers."""
ONCE = "  @%p1 st.global.b32 [%rd1], %r7;\n"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (ONCE, 0),
        ("  @%p1 st.global.b32 [%rd1+512], %r7;\n" + ONCE, 0),
        (ONCE + "  st.global.b32 [%rd2+512], %r7;\n", 1),
        ("  st.global.b32 [%rd2+512], %r7;\n" + ONCE, 1),
        ("  st.shared.b32 [%r3], %r7;\n" + ONCE, 1),
        (ONCE + "  setp.gt.u32 %p2, %r7, 9;\n  @%p2 st.global.b32 [%rd2+512], %r0;\n", 1),
        (ONCE + "  and.b32 %r8, %r7, 1;\n  mad.wide.u32 %rd3, %r8, 4, %rd2;\n"
         "  st.global.b32 [%rd3+512], %r0;\n", 1),
        ("  shfl.sync.bfly.b32 %r7, %r7, 1, 31, -1;\n" + ONCE, 1),
        (ONCE + "  atom.global.add.u32 %r8, [%rd0+1024], %r7;\n", 1),
        ("  bar.sync 0;\n" + ONCE, 0),
    ],
)  # fmt: skip
def test_what_is_read_counts_in_lanes_that_store_it(kernel: Kernel, body: str, count: int) -> None:
    """As in kernels that work in place on fewer elements than they have threads."""
    assert len(races(kernel(START + TWICE + body, 1, 64, SHARED))) == count


@pytest.mark.parametrize(("between", "count"), [("", 1), ("bar.sync 0;", 0)])
def test_a_read_that_its_lane_stores_races_with_the_writer(
    kernel: Kernel, between: str, count: int
) -> None:
    mirrored = "  xor.b32 %r5, %r0, 63;\n  mad.wide.u32 %rd1, %r5, 4, %rd0;\n"
    own = "  mad.wide.u32 %rd2, %r0, 4, %rd0;\n  ld.global.b32 %r6, [%rd1];\n"
    body = START + mirrored + own + between + "  add.u32 %r6, %r6, 1;\n"
    body += "  st.global.b32 [%rd2], %r6;"
    assert len(races(kernel(body, 1, 64, SHARED))) == count
