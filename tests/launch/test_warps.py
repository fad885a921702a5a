"""What lanes of a warp tell each other, held to the pseudo-code of the PTX ISA, lane by lane."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.launch.warps import exchange, matrix_parts
from ptxlint.launch.words import Word, constant

THREADS = 64


def instruction(text: str) -> Instr:
    """The only instruction of a kernel besides `ret`."""
    module = parse(
        f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{{
.reg .pred %p<3>;
.reg .b32 %r<9>;
{text}
ret;
}}
""",
        "k.ptx",
    )
    assert not module.problems, module.problems
    return module.kernels()[0].instrs[0]


def shuffled(way: str, lane: int, by: int, clamp: int) -> tuple[int, bool]:
    """The lane that is read, and the predicate (PTX ISA, "shfl.sync")."""
    by, end, mask = by & 31, clamp & 31, clamp >> 8 & 31
    last = (lane & mask) | (end & ~mask)
    first = lane & mask
    if way == "up":
        source, holds = lane - by, lane - by >= last
    elif way == "down":
        source, holds = lane + by, lane + by <= last
    elif way == "bfly":
        source, holds = lane ^ by, lane ^ by <= last
    else:
        source = first | (by & ~mask)
        holds = source <= last
    return (source if holds else lane), holds


@pytest.mark.parametrize("way", ["up", "down", "bfly", "idx"])
def test_shuffles(way: str) -> None:
    instr = instruction(f"shfl.sync.{way}.b32 %r1|%p1, %r2, %r3, %r4, -1;")
    move, tell = exchange(instr, 0), exchange(instr, 1)
    assert move is not None
    assert tell is not None
    random = Random(way)
    everyone = np.ones((2, THREADS), dtype=bool)
    for _ in range(60):
        clamp = random.choice([0, 31, 0x1C1F, 0x1800, 0x1F, 0x101F, 0x1E1F, 7])
        value = np.array(
            [[random.randrange(2**32) for _ in range(THREADS)] for _ in "ab"], np.uint64
        )
        by = np.array([[random.randrange(32) for _ in range(THREADS)]], np.uint64)
        known = np.array([[random.random() < 0.8 for _ in range(THREADS)] for _ in "ab"])
        words = [Word(value, known), Word(by), constant(clamp), constant(-1)]
        found, holds = move(words, everyone), tell(words, everyone)
        assert found is not None
        assert found.known is not None
        assert holds is not None
        for thread in range(THREADS):
            source, is_inside = shuffled(way, thread % 32, int(by[0, thread]), clamp)
            source += thread - thread % 32
            for cta in (0, 1):
                assert found.bits[cta, thread] == value[cta, source]
                assert found.known[cta, thread] == known[cta, source]
                assert np.broadcast_to(holds.bits, (2, THREADS))[cta, thread] == is_inside


def test_what_an_absent_lane_holds_is_not_known() -> None:
    apply = exchange(instruction("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"), 0)
    assert apply is not None
    lanes = np.ones((1, THREADS), dtype=bool)
    words = [Word(np.zeros((1, THREADS), np.uint64)), constant(1), constant(31), constant(-1)]
    lanes[0, 32:] = False
    assert apply(words, lanes) is not None, "a whole warp is somewhere else"
    lanes[0, 5] = False
    assert apply(words, lanes) is None
    assert apply([*words[:3], constant(0xFFFF)], np.ones_like(lanes)) is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("redux.sync.add.u32 %r1, %r2, -1;", lambda v: sum(v) % 2**32),
        ("redux.sync.max.u32 %r1, %r2, -1;", max),
        ("redux.sync.min.u32 %r1, %r2, -1;", min),
        ("redux.sync.min.s32 %r1, %r2, -1;",
         lambda v: min(v, key=lambda n: n - 2**32 * (n >> 31))),
        ("redux.sync.xor.b32 %r1, %r2, -1;", lambda v: np.bitwise_xor.reduce(v)),
        ("redux.sync.or.b32 %r1, %r2, -1;", lambda v: np.bitwise_or.reduce(v)),
    ],
)  # fmt: skip
def test_reductions(form: str, expected: object) -> None:
    apply = exchange(instruction(form), 0)
    assert apply is not None
    assert callable(expected)
    random = Random(form)
    value = np.array([[random.randrange(2**32) for _ in range(THREADS)]], np.uint64)
    known = np.arange(THREADS)[None, :] != 40
    found = apply([Word(value, known), constant(-1)], np.ones((1, THREADS), dtype=bool))
    assert found is not None
    assert found.known is not None
    assert found.known.tolist() == [[True] * 32 + [False] * 32], "one lane is not known"
    assert set(found.bits[0, :32].tolist()) == {int(expected([int(v) for v in value[0, :32]]))}


@pytest.mark.parametrize(
    ("form", "of"),
    [
        ("vote.sync.ballot.b32 %r1, %p1, -1;", lambda v: sum(b << i for i, b in enumerate(v))),
        ("vote.sync.any.pred %p2, %p1, -1;", lambda v: int(any(v))),
        ("vote.sync.all.pred %p2, %p1, -1;", lambda v: int(all(v))),
    ],
)
def test_votes(form: str, of: object) -> None:
    apply = exchange(instruction(form), 0)
    assert apply is not None
    assert callable(of)
    for votes in ([0] * 32, [1] * 32, [i % 3 == 0 for i in range(32)]):
        value = Word(np.array([[int(v) for v in votes] * 2], np.uint64))
        found = apply([value, constant(-1)], np.ones((1, THREADS), dtype=bool))
        assert found is not None
        assert set(found.bits.flatten().tolist()) == {of([int(v) for v in votes])}


@pytest.mark.parametrize("trans", [False, True])
def test_matrices(trans: bool) -> None:
    """Row i of matrix k lies where lane 8 k + i says (PTX ISA, "ldmatrix")."""
    form = f"ldmatrix.sync.aligned.m8n8.x4{'.trans' if trans else ''}.shared.b16"
    instr = instruction(f"{form} {{%r1, %r2, %r3, %r4}}, [%r5];")
    for matrix in range(4):
        found = matrix_parts(instr, matrix, THREADS)
        assert found is not None
        width, parts = found
        for thread in range(THREADS):
            lane, warp = thread % 32, thread - thread % 32
            elements = [
                (8 * matrix + (row if not trans else column), column if not trans else row)
                for row, column in ((lane // 4, 2 * (lane % 4)), (lane // 4, 2 * (lane % 4) + 1))
            ]
            bytes_ = [(warp + row, 2 * at + b) for row, at in elements for b in (0, 1)]
            given = [
                (int(threads[thread]), int(byte[thread]) + b)
                for threads, byte in parts
                for b in range(width)
            ]
            assert given == bytes_
    assert matrix_parts(instruction(f"@%p1 {form} {{%r1, %r2, %r3, %r4}}, [%r5];"), 0, 64) is None
