"""Atomic operations: lanes that meet at one place, and each of them in its turn (PTX ISA, "atom",
"red")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Execute = Callable[..., None]
Kernel = Callable[..., str]
THREADS, GRID, PLACES = 64, 3, 4

PROLOGUE = f"""
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r100, %tid.x;
  mov.u32 %r101, %ctaid.x;
  mad.lo.u32 %r102, %r101, {THREADS}, %r100;
  and.b32 %r103, %r102, {PLACES - 1};
"""


def atomically(
    execute: Execute,
    kernel: Kernel,
    name: str,
    kind: str,
    start: NDArray[Any],
    operands: NDArray[Any],
    more: str = "",
) -> NDArray[Any]:
    """Let all threads of some CTAs work on a few places; what each found there."""
    size = start.itemsize
    letter = "rd" if size == 8 else "r" if size == 4 else "rs"
    found = np.zeros(len(operands), dtype=start.dtype)
    body = (
        PROLOGUE
        + f"""
  mad.wide.u32 %rd11, %r103, {size}, %rd1;
  mad.wide.u32 %rd12, %r102, {size}, %rd2;
  mad.wide.u32 %rd13, %r102, {size}, %rd3;
  ld.global.b{8 * size} %{letter}20, [%rd12];
  {name}.global.{kind} %{letter}21, [%rd11], %{letter}20{more};
  st.global.b{8 * size} [%rd13], %{letter}21;
"""
    )
    execute(kernel(body, 3, THREADS), [start, operands, found], GRID)
    return found


INTEGERS: list[tuple[str, str, Callable[[int, int], int]]] = [
    ("atom.add", "u32", lambda old, b: old + b),
    ("atom.add", "s32", lambda old, b: old + b),
    ("atom.add", "u64", lambda old, b: old + b),
    ("atom.min", "u32", min),
    ("atom.max", "u32", max),
    ("atom.and", "b32", lambda old, b: old & b),
    ("atom.or", "b32", lambda old, b: old | b),
    ("atom.xor", "b64", lambda old, b: old ^ b),
    ("atom.exch", "b32", lambda old, b: b),
    ("atom.inc", "u32", lambda old, b: 0 if old >= b else old + 1),
    ("atom.dec", "u32", lambda old, b: b if old == 0 or old > b else old - 1),
]


@pytest.mark.parametrize(
    ("name", "kind", "change"), INTEGERS, ids=[f"{r[0]}.{r[1]}" for r in INTEGERS]
)
def test_each_lane_takes_a_turn(
    execute: Execute, kernel: Kernel, name: str, kind: str, change: Callable[[int, int], int]
) -> None:
    size = int(kind[1:])
    word = np.dtype(f"u{size // 8}")
    rng = np.random.default_rng(1)
    top = 20 if name in ("atom.inc", "atom.dec") else np.iinfo(word).max
    start = rng.integers(0, 30 if top == 20 else top, PLACES, dtype=word)
    operands = rng.integers(0, top, THREADS * GRID, dtype=word)
    before = start.tolist()
    found = atomically(execute, kernel, name, kind, start, operands)
    # Some order explains what everybody found: here that of threads and CTAs.
    want = list(before)
    for at, operand in enumerate(operands.tolist()):
        place = at % PLACES
        assert found[at] == want[place]
        want[place] = change(want[place], operand) % (1 << size)
    assert start.tolist() == want


@pytest.mark.parametrize("name", ["min", "max"])
def test_signs_count(execute: Execute, kernel: Kernel, name: str) -> None:
    start = np.zeros(PLACES, dtype=np.int32)
    operands = np.random.default_rng(2).integers(-99, 99, THREADS * GRID, dtype=np.int32)
    atomically(execute, kernel, f"atom.{name}", "s32", start, operands)
    fold = getattr(np, name)
    assert start.tolist() == [fold([0, *operands[at::PLACES]]) for at in range(PLACES)]


@pytest.mark.parametrize(("kind", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_sums_of_floating_point_numbers(
    execute: Execute, kernel: Kernel, kind: str, dtype: Any
) -> None:
    start = np.ones(PLACES, dtype=dtype)
    operands = np.random.default_rng(3).standard_normal(THREADS * GRID).astype(dtype)
    found = atomically(execute, kernel, "atom.add", kind, start, operands)
    total = np.ones(PLACES, dtype=dtype)
    for at, operand in enumerate(operands):
        assert found[at] == total[at % PLACES]
        total[at % PLACES] += operand
    assert start.tolist() == total.tolist()


def test_sums_of_pairs_of_halves(execute: Execute, kernel: Kernel) -> None:
    start = np.zeros(2 * PLACES, dtype=np.float16)
    operands = np.random.default_rng(4).standard_normal(2 * THREADS * GRID).astype(np.float16)
    words = start.view(np.uint32)
    atomically(execute, kernel, "atom.add.noftz", "f16x2", words, operands.view(np.uint32))
    total = np.zeros(2 * PLACES, dtype=np.float16)
    for at in range(THREADS * GRID):
        for part in range(2):
            total[2 * (at % PLACES) + part] += operands[2 * at + part]
    assert words.view(np.float16).tolist() == total.tolist()


def test_compare_and_swap_lets_one_win(execute: Execute, kernel: Kernel) -> None:
    start = np.array([7, 7, 5, 7], dtype=np.uint32)
    operands = np.full(THREADS * GRID, 7, dtype=np.uint32)
    found = atomically(execute, kernel, "atom.cas", "b32", start, operands, ", %r102")
    # The first at each place that holds 7 puts its own number there.
    assert start.tolist() == [0, 1, 5, 3]
    assert found[:PLACES].tolist() == [7, 7, 5, 7]
    assert found[PLACES : 2 * PLACES].tolist() == [0, 1, 5, 3]


def test_a_lock_by_compare_and_swap(execute: Execute, kernel: Kernel) -> None:
    # One thread a CTA takes the lock, adds in memory, and lets go.
    body = """
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
$spin:
  atom.global.acquire.gpu.cas.b32 %r2, [%rd1], 0, 1;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra $spin;
  ld.volatile.global.u32 %r3, [%rd2];
  add.u32 %r3, %r3, 1;
  st.volatile.global.u32 [%rd2], %r3;
  fence.acq_rel.gpu;
  atom.global.release.gpu.exch.b32 %r4, [%rd1], 0;
$done:
"""
    lock, count = np.zeros(1, dtype=np.uint32), np.zeros(1, dtype=np.uint32)
    execute(kernel(body, 2, THREADS), [lock, count], 40)
    assert count.tolist() == [40]
    assert lock.tolist() == [0]


def test_a_loop_of_swaps_within_a_warp(execute: Execute, kernel: Kernel) -> None:
    # A float maximum made of compare and swap: all lanes go round until their swap is taken.
    body = """
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd3, %r100, 4, %rd2;
  ld.global.b32 %r1, [%rd3];
  ld.global.b32 %r2, [%rd1];
$again:
  max.f32 %r3, %r2, %r1;
  atom.global.cas.b32 %r4, [%rd1], %r2, %r3;
  setp.ne.u32 %p1, %r4, %r2;
  mov.b32 %r2, %r4;
  @%p1 bra $again;
"""
    values = np.random.default_rng(5).standard_normal(THREADS).astype(np.float32)
    top = np.full(1, -100, dtype=np.float32)
    execute(kernel(body, 2, THREADS), [top, values])
    assert top[0] == values.max()


def test_reductions_bring_nothing_back(execute: Execute, kernel: Kernel) -> None:
    body = (
        PROLOGUE
        + """
  mad.wide.u32 %rd11, %r103, 4, %rd1;
  mad.wide.u32 %rd12, %r103, 8, %rd2;
  mad.wide.u32 %rd13, %r103, 4, %rd3;
  red.global.add.u32 [%rd11], %r102;
  mov.b64 %rd20, 3;
  red.relaxed.gpu.global.add.u64 [%rd12], %rd20;
  setp.lt.u32 %p1, %r102, 100;
  mov.b32 %r5, 0f3F800000;
  @%p1 red.global.add.f32 [%rd13], %r5;
"""
    )
    sums, counts = np.zeros(PLACES, np.uint32), np.zeros(PLACES, np.uint64)
    ones = np.zeros(PLACES, np.float32)
    execute(kernel(body, 3, THREADS), [sums, counts, ones], GRID)
    total = np.arange(THREADS * GRID)
    assert sums.tolist() == [int(total[at::PLACES].sum()) for at in range(PLACES)]
    assert counts.tolist() == [3 * THREADS * GRID // PLACES] * PLACES
    assert ones.tolist() == [25.0] * PLACES


@pytest.mark.parametrize("space", [".shared", ""])
def test_in_shared_memory(execute: Execute, kernel: Kernel, space: str) -> None:
    generic = "cvta.shared.u64 %rd5, %rd5;" if not space else ""
    body = f"""
  .shared .align 8 .b8 room[64];
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r100, %tid.x;
  mov.u64 %rd5, room;
  setp.ne.u32 %p1, %r100, 0;
  @%p1 bra $wait;
  st.shared.u32 [room], 0;
$wait:
  bar.sync 0;
  {generic}
  atom{space}.add.u32 %r2, [%rd5], 2;
  bar.sync 0;
  ld.shared.u32 %r3, [room];
  mad.wide.u32 %rd6, %r100, 8, %rd1;
  st.global.v2.u32 [%rd6], {{%r2, %r3}};
"""
    out = np.zeros((THREADS, 2), dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out])
    assert sorted(out[:, 0].tolist()) == list(range(0, 2 * THREADS, 2))
    assert set(out[:, 1].tolist()) == {2 * THREADS}


def test_vectors_of_floats(execute: Execute, kernel: Kernel) -> None:
    body = """
  ld.param.u64 %rd1, [k_param_0];
  mov.b32 %r1, 0f3F800000;
  mov.b32 %r2, 0f40000000;
  red.global.add.v2.f32 [%rd1], {%r1, %r2};
"""
    out = np.zeros(2, dtype=np.float32)
    execute(kernel(body, 1, THREADS), [out])
    assert out.tolist() == [THREADS, 2 * THREADS]


SUMS = [("f32", np.float32), ("f64", np.float64), ("f16", np.float16)]


@pytest.mark.parametrize(("kind", "numbers"), SUMS)
def test_sums_that_nobody_looks_into_are_the_same_to_the_bit(
    execute: Execute, kernel: Kernel, kind: str, numbers: Any
) -> None:
    """Lanes add in their order whether what was there before is read, thrown away or not asked."""
    random = np.random.default_rng(4)
    given = (random.standard_normal(THREADS * GRID) * 10.0 ** random.integers(-3, 3, 192)).astype(
        numbers
    )
    width = 8 * given.itemsize
    more = ".noftz" if kind == "f16" else ""
    sums = []
    for name in ("atom.add", "atom.add", "red.add"):
        start = np.array([1, -2, 0.5, 0], dtype=numbers)
        if not sums:
            atomically(execute, kernel, f"atom.add{more}", kind, start, given)
        else:
            letter = "rd" if width == 64 else "r" if width == 32 else "rs"
            target = f"%{letter}21, " if name.startswith("atom") else ""
            body = (
                PROLOGUE
                + f"""
  mad.wide.u32 %rd11, %r103, {width // 8}, %rd1;
  mad.wide.u32 %rd12, %r102, {width // 8}, %rd2;
  ld.global.b{width} %{letter}20, [%rd12];
  {name}{more}.global.{kind} {target}[%rd11], %{letter}20;
"""
            )
            execute(kernel(body, 3, THREADS), [start, given, np.zeros(1)], GRID)
        sums.append(start.view(f"u{width // 8}").tolist())
    assert sums[0] == sums[1] == sums[2]
    assert len(set(sums[0])) == PLACES
