"""HAZ602 against counting: random maps of threads to elements, in straight lines and in loops.

What is refuted must be an element that two warps touch with no barrier between; where there is one,
nothing may be proved.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

import ptxlint
from ptxlint.source import SourceText

THREADS, WARP, ROUNDS = 128, 32, 24
HEAD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n)
.reqntid 128
{
.reg .pred %p<9>;
.reg .b32 %r<99>;
.reg .b64 %rd<9>;
ld.param.u64 %rd1, [x];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.b32 %r3, 0;
"""


class Map(NamedTuple):
    """An element by thread and round: text that puts it into a register, and what it is."""

    text: str
    register: str
    elements: list[int]
    step: int


def random_map(rng: random.Random, first: int, step: int) -> Map:
    """Up to three operations on the thread's number."""
    lines, values, source, free = [], list(range(THREADS)), "%r2", first
    for _ in range(rng.randrange(4)):
        word = rng.choice(["xor", "and", "add", "shl", "shr", "mul"])
        constant = {
            "xor": rng.choice([1, 7, 31, 32, 64, 127]),
            "and": rng.choice([31, 63, 96, 127, 126]),
            "add": rng.choice([1, 32, 128, 256]),
            "shl": 1,
            "shr": rng.choice([1, 5]),
            "mul": rng.choice([2, 3, 128]),
        }[word]
        kind = {"xor": "b32", "and": "b32", "add": "s32", "shl": "b32", "shr": "u32"}.get(word)
        opcode = f"{word}.{kind}" if kind else "mul.lo.s32"
        lines.append(f"{opcode} %r{free}, {source}, {constant};")
        source, free = f"%r{free}", free + 1
        values = [
            {
                "xor": v ^ constant, "and": v & constant, "add": v + constant,
                "shl": v << constant, "shr": v >> constant, "mul": v * constant,
            }[word]
            for v in values
        ]  # fmt: skip
    lines.append(f"mad.lo.s32 %r{free}, %r3, {step}, {source};")
    return Map("\n".join(lines) + "\n", f"%r{free}", values, step)


def warps_by_element(places: Map, rounds: list[int]) -> dict[tuple[int, int], set[int]]:
    found: dict[tuple[int, int], set[int]] = {}
    for at in rounds:
        for thread, element in enumerate(places.elements):
            found.setdefault((at, element + at * places.step), set()).add(thread // WARP)
    return found


def is_hazard(load: Map, store: Map, apart: int) -> bool:
    """True if two warps touch one element in rounds that lie at most `apart` from each other."""
    rounds = list(range(ROUNDS))
    read, written = warps_by_element(load, rounds), warps_by_element(store, rounds)
    for (at, element), warps in read.items():
        for other in rounds:
            if abs(at - other) <= apart:
                writers = written.get((other, element), set())
                if any(w != r for w in writers for r in warps):
                    return True
    return False


def kernel(load: Map, store: Map, barrier: bool, loop: bool) -> str:
    return (
        HEAD
        + ("again:\n" if loop else "")
        + load.text
        + store.text
        + f"mul.wide.s32 %rd2, {load.register}, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
        + f"mul.wide.s32 %rd4, {store.register}, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
        + "ld.global.b32 %r90, [%rd3];\nadd.s32 %r90, %r90, 1;\n"
        + ("bar.sync 0;\n" if barrier else "")
        + "st.global.b32 [%rd5], %r90;\n"
        + ("bar.sync 0;\n" if barrier and loop else "")
        + "add.s32 %r3, %r3, 1;\n"
        + ("setp.lt.s32 %p1, %r3, %r1;\n@%p1 bra again;\n" if loop else "")
        + "ret;\n}\n"
    )


def said(text: str) -> set[str]:
    report = ptxlint.check(SourceText(text, "random.ptx"), select="HAZ602")
    assert not [f for f in report.findings if f.rule != "HAZ602"]
    return {v.status for v in report.obligations if v.rule == "HAZ602"}


def judge(seed: int) -> str:
    """What was said, after a look at whether it holds."""
    rng = random.Random(seed)
    loop, barrier = rng.random() < 0.5, rng.random() < 0.25
    step = rng.choice([0, 1, 32, 128, 1024]) if loop else 0
    load, store = random_map(rng, 10, step), random_map(rng, 40, step)
    words = said(kernel(load, store, barrier, loop))
    if barrier:
        assert words == {"proved"}, seed
        return "barrier"
    hazard = is_hazard(load, store, ROUNDS if loop else 0)
    if hazard:
        assert "proved" not in words, seed
    else:
        assert "refuted" not in words, seed
    assert len(words) == 1, seed
    return words.pop()


def test_what_is_refuted_happens_and_what_is_proved_does_not() -> None:
    found = [judge(seed) for seed in range(150)]
    assert found.count("refuted") >= 30
    assert found.count("proved") >= 20
    assert found.count("open") <= 30


@pytest.mark.slow
def test_many_more() -> None:
    for seed in range(1_000, 4_000):
        judge(seed)
