"""Words exchanged within a warp, against a plain model of one warp (PTX ISA, "shfl.sync",
"vote.sync", "match.sync", "redux.sync", "elect.sync", "activemask")."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

Execute = Callable[..., None]
Kernel = Callable[..., str]
WARP = 32
ALL = 0xFFFFFFFF

PROLOGUE = """
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd3, %r100, 4, %rd1;
  mad.wide.u32 %rd4, %r100, 8, %rd2;
  ld.global.b32 %r1, [%rd3];
  mov.b32 %r2, 0;
  mov.b32 %r3, 0;
"""
EPILOGUE = """
  st.global.v2.b32 [%rd4], {%r2, %r3};
"""


def warps(
    execute: Execute, kernel: Kernel, body: str, words: NDArray[np.uint32], threads: int = 64
) -> NDArray[np.uint32]:
    """What `body` makes of %r1 in %r2 and %r3, a row a thread."""
    out = np.zeros((threads, 2), dtype=np.uint32)
    execute(kernel(PROLOGUE + body + EPILOGUE, 2, threads), [words, out])
    return out


def random_words(seed: int, threads: int = 64) -> NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, 1 << 32, threads, dtype=np.uint32)


def shuffled(mode: str, words: list[int], lane: int, b: int, c: int) -> tuple[int, bool]:
    """The manual's description, for one lane."""
    bound, segment = c & 31, c >> 8 & 31
    highest = (lane & segment) | (bound & ~segment & 31)
    lowest = lane & segment
    b &= 31
    if mode == "up":
        source = lane - b
        inside = source >= highest
    elif mode == "down":
        source = lane + b
        inside = source <= highest
    elif mode == "bfly":
        source = lane ^ b
        inside = source <= highest
    else:
        source = lowest | (b & ~segment & 31)
        inside = source <= highest
    return words[source if inside else lane], inside


def clamps(mode: str) -> list[int]:
    """The operand c for widths of 32, 16, 8 and 4, as compilers write it, and odd bounds."""
    bound = 0 if mode == "up" else 31
    return [(32 - width) << 8 | bound for width in (32, 16, 8, 4)] + [10, 0x1805]


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(execute: Execute, kernel: Kernel, mode: str) -> None:
    words = random_words(1)
    for b in (0, 1, 3, 8, 16, 31, 33):
        for c in clamps(mode):
            body = f"shfl.sync.{mode}.b32 %r2|%p1, %r1, {b}, {c}, -1;\n  selp.u32 %r3, 1, 0, %p1;"
            got = warps(execute, kernel, body, words)
            for thread in range(64):
                own = words[thread // WARP * WARP :][:WARP].tolist()
                want = shuffled(mode, own, thread % WARP, b, c)
                assert tuple(got[thread].tolist()) == (want[0], int(want[1])), (thread, b, c)


def test_each_lane_may_ask_another(execute: Execute, kernel: Kernel) -> None:
    words = random_words(2)
    body = "mul.lo.u32 %r5, %r100, 7;\n  shfl.sync.idx.b32 %r2, %r1, %r5, 31, 0xffffffff;"
    got = warps(execute, kernel, body, words)
    want = [words[t // WARP * WARP + t * 7 % WARP] for t in range(64)]
    assert got[:, 0].tolist() == want


def test_part_of_a_warp_shuffles_by_itself(execute: Execute, kernel: Kernel) -> None:
    words = random_words(3)
    body = """
  and.b32 %r5, %r100, 31;
  setp.lt.u32 %p1, %r5, 16;
  @!%p1 bra $upper;
  shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff;
  bra $join;
$upper:
  shfl.sync.bfly.b32 %r2, %r1, 2, 31, 0xffff0000;
$join:
"""
    got = warps(execute, kernel, body, words)
    want = [words[t ^ (1 if t % WARP < 16 else 2)] for t in range(64)]
    assert got[:, 0].tolist() == want


@pytest.mark.parametrize("mode", ["all", "any", "uni", "ballot"])
def test_votes(execute: Execute, kernel: Kernel, mode: str) -> None:
    cases = [np.zeros(64, np.uint32), np.ones(64, np.uint32), random_words(4) & 1]
    cases[2][:WARP] = 1
    for words in cases:
        target, kind = ("%r2", "b32") if mode == "ballot" else ("%p2", "pred")
        body = f"setp.ne.u32 %p1, %r1, 0;\n  vote.sync.{mode}.{kind} {target}, %p1, -1;"
        if mode != "ballot":
            body += "\n  selp.u32 %r2, 1, 0, %p2;"
        got = warps(execute, kernel, body, words)
        for warp in range(2):
            flags = words[warp * WARP :][:WARP].astype(bool)
            want = {
                "all": int(flags.all()),
                "any": int(flags.any()),
                "uni": int(flags.all() or not flags.any()),
                "ballot": sum(int(f) << at for at, f in enumerate(flags)),
            }[mode]
            assert set(got[warp * WARP :][:WARP, 0].tolist()) == {want}


def test_a_vote_counts_its_members_alone(execute: Execute, kernel: Kernel) -> None:
    body = """
  and.b32 %r5, %r100, 1;
  setp.eq.u32 %p3, %r5, 0;
  setp.ne.u32 %p1, %r1, 0;
  @!%p3 bra $join;
  vote.sync.all.pred %p2, %p1, 0x55555555;
  selp.u32 %r2, 1, 0, %p2;
  vote.sync.ballot.b32 %r3, %p1, 0x55555555;
$join:
"""
    words = (np.arange(64, dtype=np.uint32) + 1) % 2
    got = warps(execute, kernel, body, words.astype(np.uint32))
    assert got[::2].tolist() == [[1, 0x55555555]] * 32
    assert got[1::2].tolist() == [[0, 0]] * 32


def test_matches(execute: Execute, kernel: Kernel) -> None:
    words = random_words(5) % 5
    words[WARP:] = 9
    body = """
  match.any.sync.b32 %r2, %r1, -1;
  match.all.sync.b32 %r3|%p1, %r1, -1;
  @!%p1 mov.b32 %r3, 12345;
"""
    got = warps(execute, kernel, body, words.astype(np.uint32))
    for thread in range(64):
        own = words[thread // WARP * WARP :][:WARP]
        same = sum(1 << at for at, word in enumerate(own) if word == words[thread])
        assert got[thread, 0] == same
        assert got[thread, 1] == (ALL if thread >= WARP else 12345)


@pytest.mark.parametrize(
    ("name", "fold"),
    [
        ("add.s32", lambda w: int(w.view(np.int32).sum(dtype=np.int64)) % (1 << 32)),
        ("min.s32", lambda w: int(w.view(np.int32).min()) % (1 << 32)),
        ("max.s32", lambda w: int(w.view(np.int32).max()) % (1 << 32)),
        ("min.u32", lambda w: int(w.min())),
        ("max.u32", lambda w: int(w.max())),
        ("and.b32", lambda w: int(np.bitwise_and.reduce(w))),
        ("or.b32", lambda w: int(np.bitwise_or.reduce(w))),
        ("xor.b32", lambda w: int(np.bitwise_xor.reduce(w))),
    ],
)
def test_reductions(
    execute: Execute, kernel: Kernel, name: str, fold: Callable[[NDArray[np.uint32]], int]
) -> None:
    words = random_words(6)
    if name.startswith("and"):
        words |= np.uint32(0xFFFF0000)
    got = warps(execute, kernel, f"redux.sync.{name} %r2, %r1, -1;", words)
    for warp in range(2):
        own = words[warp * WARP :][:WARP]
        assert set(got[warp * WARP :][:WARP, 0].tolist()) == {fold(own)}
    body = f"""
  and.b32 %r5, %r100, 31;
  setp.ge.u32 %p1, %r5, 5;
  @%p1 bra $join;
  redux.sync.{name} %r2, %r1, 0x1f;
$join:
"""
    got = warps(execute, kernel, body, words)
    assert got[:5, 0].tolist() == [fold(words[:5])] * 5
    assert not got[5:WARP, 0].any()


def test_one_lane_is_elected(execute: Execute, kernel: Kernel) -> None:
    body = """
  elect.sync %r2|%p1, -1;
  selp.u32 %r3, 1, 0, %p1;
"""
    got = warps(execute, kernel, body, random_words(7))
    for warp in range(2):
        rows = got[warp * WARP :][:WARP]
        assert rows[:, 1].sum() == 1
        assert set(rows[:, 0].tolist()) == {int(rows[:, 1].argmax())}
    body = """
  and.b32 %r5, %r100, 31;
  setp.lt.u32 %p2, %r5, 12;
  @%p2 bra $join;
  elect.sync _|%p1, 0xfffff000;
  selp.u32 %r3, 1, 0, %p1;
$join:
"""
    got = warps(execute, kernel, body, random_words(8))
    for warp in range(2):
        rows = got[warp * WARP :][:WARP]
        assert rows[:12, 1].sum() == 0
        assert rows[12:, 1].sum() == 1


def test_active_lanes(execute: Execute, kernel: Kernel) -> None:
    body = """
  and.b32 %r5, %r100, 3;
  setp.eq.u32 %p1, %r5, 2;
  @%p1 activemask.b32 %r2;
"""
    got = warps(execute, kernel, body, random_words(9))
    assert set(got[2::4, 0].tolist()) == {0x44444444}
    assert not got[0::4, 0].any()


def test_a_last_warp_that_is_not_full(execute: Execute, kernel: Kernel) -> None:
    words = random_words(10, 40)
    body = "setp.ne.u32 %p1, %r1, 0;\n  vote.sync.ballot.b32 %r2, %p1, 0xff;"
    body += "\n  redux.sync.max.u32 %r3, %r1, 0xff;"
    guarded = f"""
  setp.lt.u32 %p5, %r100, 32;
  @%p5 bra $join;
  {body}
$join:
"""
    got = warps(execute, kernel, guarded, words, 40)
    assert got[32:].tolist() == [[0xFF, int(words[32:].max())]] * 8


def test_a_match_of_part_of_a_warp(execute: Execute, kernel: Kernel) -> None:
    body = """
  and.b32 %r5, %r100, 31;
  setp.ge.u32 %p2, %r5, 6;
  @%p2 bra $join;
  match.all.sync.b32 %r3|%p1, %r1, 0x3f;
  match.any.sync.b32 %r2, %r1, 0x3f;
$join:
"""
    words = np.full(64, 9, dtype=np.uint32)
    words[6:WARP] = 4
    words[WARP + 2] = 4
    got = warps(execute, kernel, body, words)
    assert got[:6].tolist() == [[0x3F, 0x3F]] * 6
    assert got[WARP : WARP + 6].tolist() == [[4 if at == 2 else 0x3B, 0] for at in range(6)]


def folded(numbers: list[float], name: str) -> float:
    """The manual's description of `redux` on float32; NaN for any NaN."""
    if "abs" in name:
        numbers = [abs(x) for x in numbers]
    known = [x for x in numbers if x == x]
    if not known or ("NaN" in name and len(known) < len(numbers)):
        return math.nan
    pick = max if name.startswith("max") else min
    return pick(known, key=lambda x: (x, math.copysign(1, x)))


@pytest.mark.parametrize("name", ["min", "max", "min.abs", "max.abs", "max.NaN", "min.abs.NaN"])
@pytest.mark.parametrize("rare", [[], [np.nan], [0.0, -0.0], [np.inf, -np.inf], [np.nan] * 32])
def test_redux_of_numbers(execute: Execute, kernel: Kernel, name: str, rare: list[float]) -> None:
    numbers = np.random.default_rng(3).standard_normal((2, WARP)).astype(np.float32)
    if rare == [0.0, -0.0]:
        numbers = np.abs(numbers) if name.startswith("min") else -np.abs(numbers)
    numbers[1, : len(rare)] = rare
    words = numbers.view(np.uint32).ravel()
    got = warps(execute, kernel, f"redux.sync.{name}.f32 %r2, %r1, -1;", words)[:, 0]
    for warp, row in enumerate(numbers):
        wanted = np.array([folded(row.tolist(), name)], np.float32)
        word = 0x7FFFFFFF if np.isnan(wanted[0]) else wanted.view(np.uint32)[0]
        assert (got[WARP * warp : WARP * (warp + 1)] == word).all()


def test_redux_of_numbers_takes_only_those_that_are_named(execute: Execute, kernel: Kernel) -> None:
    words = np.arange(64, dtype=np.float32).view(np.uint32)
    body = """
  setp.ge.u32 %p1, %r100, 5;
  @%p1 bra $behind;
  redux.sync.max.f32 %r2, %r1, 0x1f;
$behind:
"""
    got = warps(execute, kernel, body, words)[:, 0].view(np.float32)
    assert (got[:5] == 4).all()
    assert (got[5:] == 0).all()
