"""Loads and stores: widths, vectors, spaces, and what must not be done (PTX ISA, "ld", "st")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator.arena import Arena
from ptxlint.dynamic.emulator.run import Emulator, Outcome
from ptxlint.dynamic.emulator.run import run as run_kernel
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.frontends.ptx import parse

Execute = Callable[..., None]
Kernel = Callable[..., str]
Run = Callable[..., Outcome]
THREADS = 64
START = """
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd3, %r100, 16, %rd1;
  mad.wide.u32 %rd4, %r100, 16, %rd2;
"""


def words(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 1 << 32, (THREADS, 4), dtype=np.uint32)


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


@pytest.mark.parametrize(
    ("kind", "register", "expected"),
    [
        ("u8", "r", lambda w: w & 0xFF),
        ("s8", "r", lambda w: signed(w, 8) & 0xFFFFFFFF),
        ("b8", "rs", lambda w: w & 0xFF),
        ("s8", "rd", lambda w: signed(w, 8) & 0xFFFFFFFFFFFFFFFF),
        ("u16", "r", lambda w: w & 0xFFFF),
        ("s16", "r", lambda w: signed(w, 16) & 0xFFFFFFFF),
        ("s32", "rd", lambda w: signed(w, 32) & 0xFFFFFFFFFFFFFFFF),
        ("u32", "rd", lambda w: w),
        ("b32", "r", lambda w: w),
    ],
)
def test_a_wider_register_gets_the_sign_of_signed_types(
    execute: Execute, kernel: Kernel, kind: str, register: str, expected: Callable[[int], int]
) -> None:
    size = {"r": 32, "rs": 16, "rd": 64}[register]
    body = (
        START
        + f"""
  ld.global.{kind} %{register}5, [%rd3];
  st.global.b{size} [%rd4], %{register}5;
"""
    )
    source, out = words(1), np.zeros((THREADS, 2), dtype=np.uint64)
    execute(kernel(body, 2, THREADS), [source, out])
    assert out[:, 0].tolist() == [expected(int(w)) for w in source[:, 0]]
    assert not out[:, 1].any()


@pytest.mark.parametrize(
    ("kind", "count", "register"),
    [("b32", 4, "r"), ("b32", 2, "r"), ("b64", 2, "rd"), ("b16", 4, "rs"), ("b8", 4, "rs"),
     ("b16", 2, "rs"), ("b8", 2, "rs")],
)  # fmt: skip
def test_vectors(execute: Execute, kernel: Kernel, kind: str, count: int, register: str) -> None:
    inside = ", ".join(f"%{register}{5 + at}" for at in range(count))
    body = (
        START
        + f"""
  ld.global.v{count}.{kind} {{{inside}}}, [%rd3];
  st.global.v{count}.{kind} [%rd4], {{{inside}}};
"""
    )
    source, out = words(2), np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    size = int(kind[1:]) // 8 * count
    assert (out.view(np.uint8)[:, :size] == source.view(np.uint8)[:, :size]).all()
    assert not out.view(np.uint8)[:, size:].any()


@pytest.mark.parametrize("kind", ["v8.b32", "v4.b64"])
@pytest.mark.parametrize("space", [".global", ""])
def test_vectors_of_32_bytes(outcome: Run, kernel: Kernel, kind: str, space: str) -> None:
    """Those of PTX 8.8, for sm_100: what is there, and what a store leaves of its neighbours."""
    register = "r" if kind == "v8.b32" else "rd"
    inside = ", ".join(f"%{register}{20 + at}" for at in range(int(kind[1])))
    body = f"""
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd3, %r100, 32, %rd1;
  mad.wide.u32 %rd4, %r100, 64, %rd2;
  ld{space}.{kind} {{{inside}}}, [%rd3];
  st{space}.{kind} [%rd4], {{{inside}}};
"""
    text = kernel(body, 2, THREADS)
    source = np.random.default_rng(3).integers(0, 1 << 32, (THREADS, 8), dtype=np.uint32)
    for watched in (Sanitize(), Sanitize(races=True, uninitialised=True, overflow=True)):
        out = np.zeros((THREADS, 16), dtype=np.uint32)
        assert not outcome(text, [source, out], sanitize=watched).faults
        assert (out[:, :8] == source).all()
        assert not out[:, 8:].any()
    short = outcome(text, [source, np.zeros(16 * THREADS - 10, dtype=np.uint32)])
    assert [(f.kind, f.tid[0], f.lanes) for f in short.faults] == [("outside", THREADS - 1, 1)]
    assert [
        f.kind
        for f in outcome(
            text.replace("64, %rd2", "80, %rd2"), [source, np.zeros((THREADS, 20), dtype=np.uint32)]
        ).faults
    ] == ["misaligned"]


def test_a_store_of_32_bytes_marks_all_of_them_written(kernel: Kernel) -> None:
    body = """
  ld.param.u64 %rd1, [k_param_0];
  st.global.v4.b64 [%rd1], {1, 2, 3, 4};
  ld.global.u64 %rd2, [%rd1+24];
  ld.global.u64 %rd3, [%rd1+32];
"""
    module = parse(kernel(body, 1, 1), "snippet.ptx")
    (function,) = module.kernels()
    emulator = Emulator(module, function)
    arena = emulator.arena()
    room = arena.allocate("room", 64, None)
    values = {function.params[0].name: room.start.to_bytes(8, "little")}
    faults = emulator.run((1, 1, 1), (1, 1, 1), values, arena).faults
    assert [(f.kind, f.values["address"] - room.start) for f in faults] == [("blank", 32)]


def test_elements_of_a_vector_may_be_dropped_or_written_out(
    execute: Execute, kernel: Kernel
) -> None:
    body = (
        START
        + """
  ld.global.v4.u32 {%r5, _, %r6, _}, [%rd3];
  st.global.v4.u32 [%rd4], {%r6, 7, %r5, 0f3F800000};
"""
    )
    source, out = words(3), np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    assert (out[:, 0] == source[:, 2]).all()
    assert (out[:, 2] == source[:, 0]).all()
    assert set(out[:, 1].tolist()) == {7}
    assert set(out[:, 3].tolist()) == {0x3F800000}


def test_a_store_takes_the_low_bits(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  ld.global.u32 %r5, [%rd3];
  st.global.u8 [%rd4], %r5;
  st.global.u16 [%rd4+2], %r5;
"""
    )
    source, out = words(4), np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    low = source[:, 0] & 0xFF | (source[:, 0] & 0xFFFF) << 16
    assert (out[:, 0] == low).all()


def test_the_last_of_the_lanes_that_write_one_place_stays(execute: Execute, kernel: Kernel) -> None:
    body = START + "  st.global.u32 [%rd2], %r100;"
    out = np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [words(5), out])
    assert out[0, 0] in range(THREADS)


# Spaces ---------------------------------------------------------------------------------------
def test_local_memory_is_each_lane_s_own(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  .local .align 4 .b8 room[64];
  mov.u32 %r1, 0;
$fill:
  mad.lo.u32 %r2, %r1, 100, %r100;
  mov.u32 %r3, room;
  mad.lo.u32 %r3, %r1, 4, %r3;
  st.local.u32 [%r3], %r2;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra $fill;
  and.b32 %r4, %r100, 15;
  shl.b32 %r4, %r4, 2;
  mov.u32 %r3, room;
  add.u32 %r3, %r3, %r4;
  ld.local.u32 %r5, [%r3];
  mov.u64 %rd6, room;
  cvta.local.u64 %rd6, %rd6;
  ld.u32 %r6, [%rd6+8];
  st.global.v2.u32 [%rd4], {%r5, %r6};
"""
    )
    out = np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [words(6), out])
    assert out[:, 0].tolist() == [100 * (t % 16) + t for t in range(THREADS)]
    assert out[:, 1].tolist() == [200 + t for t in range(THREADS)]


def test_addresses_of_32_bits_wrap(execute: Execute, kernel: Kernel) -> None:
    # As libdevice does: a step back from the start of a local array, and on by the offset.
    body = (
        START
        + """
  .local .align 4 .b8 room[16];
  mov.b32 %r1, room;
  st.local.b32 [%r1+8], 77;
  sub.s32 %r2, %r1, 12;
  ld.local.b32 %r3, [%r2+20];
  st.global.b32 [%rd2], %r3;
"""
    )
    out = np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [words(7), out])
    assert out[0, 0] == 77


DECLARED = """
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .align 8 .u64 counts[2] = {5, 6};
.global .align 4 .b8 blank[16];
.const .align 4 .f32 half = 0f3F000000;
"""


def test_variables_of_the_module(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  and.b32 %r1, %r100, 3;
  mov.u64 %rd5, table;
  mad.wide.u32 %rd5, %r1, 4, %rd5;
  ld.const.u32 %r2, [%rd5];
  ld.global.u64 %rd6, [counts+8];
  cvt.u32.u64 %r3, %rd6;
  ld.const.f32 %r4, [half];
  ld.global.u32 %r5, [blank+12];
  st.global.v4.u32 [%rd4], {%r2, %r3, %r4, %r5};
"""
    )
    out = np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS, DECLARED), [words(8), out])
    assert out[:, 0].tolist() == [10 * (t % 4 + 1) for t in range(THREADS)]
    assert out[0, 1:].tolist() == [6, 0x3F000000, 0]


def test_a_generic_address_leads_to_its_own_space(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  .shared .align 4 .b8 room[256];
  shl.b32 %r1, %r100, 2;
  mov.u32 %r2, room;
  add.u32 %r2, %r2, %r1;
  st.shared.u32 [%r2], %r100;
  bar.sync 0;
  cvt.u64.u32 %rd5, %r2;
  cvta.shared.u64 %rd5, %rd5;
  and.b32 %r3, %r100, 1;
  setp.eq.u32 %p1, %r3, 0;
  selp.b64 %rd6, %rd5, %rd3, %p1;
  ld.u32 %r4, [%rd6];
  isspacep.shared %p2, %rd6;
  isspacep.global %p3, %rd6;
  selp.u32 %r5, 1, 0, %p2;
  selp.u32 %r6, 1, 0, %p3;
  st.global.v4.u32 [%rd4], {%r4, %r5, %r6, 0};
"""
    )
    source, out = words(9), np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    for t in range(THREADS):
        want = [t, 1, 0] if t % 2 == 0 else [int(source[t, 0]), 0, 1]
        assert out[t, :3].tolist() == want


def test_parameters_of_all_sizes(outcome: Run) -> None:
    text = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u8 a, .param .s16 b, .param .f32 c, .param .f64 d)
.reqntid 1
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [p];
  ld.param.u8 %r1, [a];
  ld.param.s16 %r2, [b];
  ld.param.b32 %r3, [c];
  ld.param.b64 %rd2, [d];
  st.global.v2.b32 [%rd1], {%r1, %r2};
  st.global.b32 [%rd1+8], %r3;
  st.global.b64 [%rd1+16], %rd2;
  ret;
}
"""
    out = np.zeros(6, dtype=np.uint32)
    found = outcome(text, [out, 200, -3, 1.5, -2.25])
    assert not found.faults
    assert out[:3].tolist() == [200, 0xFFFFFFFD, 0x3FC00000]
    assert out[4:].view(np.float64).tolist() == [-2.25]


# Faults ---------------------------------------------------------------------------------------
def test_an_access_beyond_the_end_is_told_and_left_out(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
  ld.global.u32 %r5, [%rd3+16];
  st.global.u32 [%rd4+32], %r5;
"""
    )
    source, out = words(10), np.zeros((THREADS, 4), dtype=np.uint32)
    found = outcome(kernel(body, 2, THREADS), [source, out])
    first, second = found.faults
    assert (first.kind, first.tid, first.lanes) == ("outside", (63, 0, 0), 1)
    assert first.message == "reads 4 bytes, right behind the end of k_param_0"
    assert (second.kind, second.tid, second.lanes) == ("outside", (62, 0, 0), 2)
    assert (out[2:, 0] == source[1:-1, 0]).all()


def test_an_access_that_reaches_over_the_end(outcome: Run, kernel: Kernel) -> None:
    body = START + "  ld.global.v2.u32 {%r5, %r6}, [%rd1+24];\n"
    found = outcome(kernel(body, 2, 1), [np.zeros(7, np.uint32), np.zeros(4, np.uint32)])
    assert [f.kind for f in found.faults] == ["outside"]
    found = outcome(kernel(body, 2, 1), [np.zeros(8, np.uint32), np.zeros(4, np.uint32)])
    assert not found.faults


@pytest.mark.parametrize("step", [-4, -(1 << 40), 1 << 33])
def test_an_access_far_off(outcome: Run, kernel: Kernel, step: int) -> None:
    body = (
        START
        + f"  mov.b64 %rd5, {step};\n  add.s64 %rd5, %rd1, %rd5;\n  ld.global.u32 %r5, [%rd5];"
    )
    found = outcome(kernel(body, 2, 1), [np.zeros(8, np.uint32), np.zeros(4, np.uint32)])
    assert [f.kind for f in found.faults] == ["outside"]


def test_a_null_pointer(outcome: Run, kernel: Kernel) -> None:
    body = START + "  mov.b64 %rd5, 0;\n  st.global.u32 [%rd5], 1;"
    found = outcome(kernel(body, 2, 1), [np.zeros(8, np.uint32), np.zeros(4, np.uint32)])
    assert [f.kind for f in found.faults] == ["outside"]


@pytest.mark.parametrize(("kind", "offset"), [("v4.u32", 4), ("u64", 4), ("u16", 1), ("v2.u32", 4)])
def test_misalignment(outcome: Run, kernel: Kernel, kind: str, offset: int) -> None:
    inside = {"v4.u32": "{%r1, %r2, %r3, %r4}", "v2.u32": "{%r1, %r2}", "u64": "%rd9"}
    body = START + f"  ld.global.{kind} {inside.get(kind, '%rs1')}, [%rd1+{offset}];"
    found = outcome(kernel(body, 2, 1), [np.zeros(8, np.uint32), np.zeros(4, np.uint32)])
    assert [f.kind for f in found.faults] == ["misaligned"]


@pytest.mark.parametrize("space", ["shared", "local"])
def test_beyond_the_end_of_other_spaces(outcome: Run, kernel: Kernel, space: str) -> None:
    body = (
        START
        + f"""
  .{space} .align 16 .b8 room[64];
  mov.u32 %r1, room;
  mad.lo.u32 %r1, %r100, 32, %r1;
  st.{space}.u32 [%r1], 1;
"""
    )
    text = kernel(body, 2, THREADS)
    found = outcome(text, [words(11), np.zeros((THREADS, 4), np.uint32)])
    assert [f.kind for f in found.faults] == ["outside"]
    assert found.faults[0].lanes == THREADS - 64 // 32


def test_memory_that_nothing_was_written_to(kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.lt.u32 %p1, %r100, 3;
  @%p1 st.global.u32 [%rd4], %r100;
  ld.global.u32 %r5, [%rd4];
"""
    )
    module = parse(kernel(body, 2, 8), "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena = emulator.arena()
    given = arena.allocate("a", 256, np.zeros(64, np.uint32))
    blank = arena.allocate("b", 256)
    values = {f"k_param_{at}": a.start.to_bytes(8, "little") for at, a in enumerate((given, blank))}
    found = emulator.run((1, 1, 1), (8, 1, 1), values, arena)
    assert [(f.kind, f.lanes, f.tid) for f in found.faults] == [("blank", 5, (3, 0, 0))]


def test_memory_that_may_not_be_written(kernel: Kernel) -> None:
    body = START + "  st.global.u32 [%rd3], 1;\n  st.global.u32 [%rd4], 1;"
    module = parse(kernel(body, 2, 4), "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena: Arena = emulator.arena()
    locked = arena.allocate("a", 64, np.full(16, 9, np.uint32), is_read_only=True)
    free = arena.allocate("b", 64, np.zeros(16, np.uint32))
    values = {f"k_param_{at}": a.start.to_bytes(8, "little") for at, a in enumerate((locked, free))}
    found = emulator.run((1, 1, 1), (4, 1, 1), values, arena)
    assert [(f.kind, f.lanes) for f in found.faults] == [("read_only", 4)]
    assert set(arena.contents(locked).view(np.uint32).tolist()) == {9}
    assert arena.contents(free).view(np.uint32)[::4].tolist() == [1] * 4


# Copies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies_fill_with_zeros_what_they_do_not_read(
    execute: Execute, kernel: Kernel, size: int
) -> None:
    cache = "cg" if size == 16 else "ca"
    body = (
        START
        + f"""
  .shared .align 16 .b8 room[1024];
  shl.b32 %r1, %r100, 4;
  mov.u32 %r2, room;
  add.u32 %r2, %r2, %r1;
  st.shared.v4.u32 [%r2], {{1, 2, 3, 4}};
  rem.u32 %r3, %r100, {size + 3};
  cp.async.{cache}.shared.global [%r2], [%rd3], {size}, %r3;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%r2];
  st.global.v4.u32 [%rd4], {{%r5, %r6, %r7, %r8}};
"""
    )
    source, out = words(12), np.zeros((THREADS, 4), dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    rest = np.array([1, 2, 3, 4], dtype=np.uint32).view(np.uint8)
    for t in range(THREADS):
        count = min(t % (size + 3), size)
        want = rest.copy()
        want[:size] = 0
        want[:count] = source.view(np.uint8)[t, :count]
        assert out.view(np.uint8)[t].tolist() == want.tolist()


@pytest.mark.parametrize("ignored", ["%p1", "!%p2", "%p1, %rd6"])
def test_copies_may_ignore_their_source(outcome: Run, kernel: Kernel, ignored: str) -> None:
    """`ignore-src`: where the predicate holds nothing is read, and zeros are written."""
    hint = ".L2::cache_hint" if "," in ignored else ""
    body = (
        START
        + f"""
  .shared .align 16 .b8 room[1024];
  shl.b32 %r1, %r100, 4;
  mov.u32 %r2, room;
  add.u32 %r2, %r2, %r1;
  setp.ge.u32 %p1, %r100, 9;
  not.pred %p2, %p1;
  selp.b64 %rd5, 48, %rd3, %p1;
  createpolicy.fractional.L2::evict_first.b64 %rd6;
  cp.async.cg.shared.global{hint} [%r2], [%rd5], 16, {ignored};
  cp.async.wait_all;
  ld.shared.u32 %r5, [%r2];
  st.global.u32 [%rd4], %r5;
"""
    )
    source, out = words(13), np.full((THREADS, 4), 5, dtype=np.uint32)
    every = Sanitize(races=True, uninitialised=True, copies=True)
    assert not outcome(kernel(body, 2, THREADS), [source, out], sanitize=every).faults
    assert (out[:9, 0] == source[:9, 0]).all()
    assert not out[9:, 0].any()


def test_a_copy_of_nothing_may_point_anywhere(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  .shared .align 16 .b8 room[1024];
  shl.b32 %r1, %r100, 4;
  mov.u32 %r2, room;
  add.u32 %r2, %r2, %r1;
  setp.lt.u32 %p1, %r100, 9;
  selp.b32 %r3, 16, 0, %p1;
  selp.b64 %rd5, %rd3, 48, %p1;
  cp.async.cg.shared.global [%r2], [%rd5], 16, %r3;
  cp.async.wait_all;
  ld.shared.u32 %r5, [%r2];
  st.global.u32 [%rd4], %r5;
"""
    )
    source, out = words(13), np.full((THREADS, 4), 5, dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [source, out])
    assert (out[:9, 0] == source[:9, 0]).all()
    assert not out[9:, 0].any()


@pytest.mark.parametrize(
    ("at", "where"),
    [
        (256, "right behind the end of"), (1280, "1,024 bytes beyond the end of"),
        (-8, "8 bytes before the start of"), (248, "8 bytes before the end, and on beyond it, of"),
    ],
)  # fmt: skip
def test_where_an_access_outside_begins_is_told(
    kernel: Callable[..., str], at: int, where: str
) -> None:
    body = f"  ld.param.u64 %rd0, [k_param_0];\n  ld.global.v2.b64 {{%rd1, %rd2}}, [%rd0+{at}];\n"
    module = parse(kernel(body, 1, 1), "snippet.ptx")
    array = np.zeros(64, dtype=np.uint32)
    outcome = run_kernel(module, module.kernels()[0], (1, 1, 1), [array])
    (fault,) = [fault for fault in outcome.faults if fault.kind == "outside"]
    assert fault.message == f"reads 16 bytes, {where} k_param_0"


def test_far_beyond_an_end_is_no_other_tensor(kernel: Callable[..., str]) -> None:
    body = "  ld.param.u64 %rd0, [k_param_0];\n  st.global.b32 [%rd0+{at}], 7;\n"
    first, second = np.zeros(64, dtype=np.uint32), np.zeros(1 << 20, dtype=np.uint32)
    for at in (256, 8192, 1 << 20, 7 << 20):
        module = parse(kernel(body.format(at=at), 2, 1), "snippet.ptx")
        outcome = run_kernel(module, module.kernels()[0], (1, 1, 1), [first, second])
        assert [fault.kind for fault in outcome.faults] == ["outside"], at
        assert not second.any()


def test_what_was_freed_is_told_by_its_name_and_left_alone(kernel: Kernel) -> None:
    text = kernel(
        """
  ld.param.u64 %rd0, [k_param_0];
  ld.param.u64 %rd1, [k_param_1];
  mov.u32 %r0, %tid.x;
  mad.wide.u32 %rd2, %r0, 4, %rd0;
  mad.wide.u32 %rd3, %r0, 4, %rd1;
  ld.global.b32 %r1, [%rd2];
  st.global.b32 [%rd2], 7;
  st.global.b32 [%rd3], %r1;
""",
        2,
        32,
    )
    module = parse(text, "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    for frees_late in (False, True):
        arena = emulator.arena()
        full = np.full(32, 5, dtype=np.uint32)
        gone, kept = arena.allocate("gone", 128, full), arena.allocate("kept", 128, full)
        if frees_late:
            arena.seal()
        arena.free(gone)
        starts = {
            f"k_param_{at}": one.start.to_bytes(8, "little") for at, one in enumerate((gone, kept))
        }
        found = emulator.run((1, 1, 1), (32, 1, 1), starts, arena)
        assert [(f.kind, f.instr.opcode, f.lanes) for f in found.faults] == [
            ("freed", "ld", 32), ("freed", "st", 32),
        ]  # fmt: skip
        assert "byte 0 of gone, whose memory was freed" in found.faults[0].message
        assert (arena.contents(kept).view(np.uint32) == 0).all()
