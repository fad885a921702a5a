"""Products of matrices that are made together give what they give one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.run import Emulator, Padding, run
from ptxlint.frontends.ptx import parse

Kernel = Callable[..., str]
THREADS = 64
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LEFT, OTHER = "{%r20, %r21, %r22, %r23}", "{%r24, %r25, %r26, %r27}"
RIGHT, NEXT = "{%r30, %r31}", "{%r32, %r33}"


def accumulator(at: int) -> str:
    return "{" + ", ".join(f"%r{40 + 4 * at + i}" for i in range(4)) + "}"


def product(to: int, left: str, right: str, added: int | None = None) -> str:
    added = to if added is None else added
    return f"  {MMA} {accumulator(to)}, {left}, {right}, {accumulator(added)};"


def text_of(kernel: Kernel, lines: list[str]) -> str:
    """A kernel whose lanes hold 14 words of operands and 16 of accumulators, and store these."""
    body = [
        "  ld.param.u64 %rd1, [k_param_0];",
        "  ld.param.u64 %rd2, [k_param_1];",
        "  mov.u32 %r1, %tid.x;",
        "  mul.wide.u32 %rd3, %r1, 112;",
        "  add.u64 %rd4, %rd1, %rd3;",
        "  mul.wide.u32 %rd5, %r1, 64;",
        "  add.u64 %rd6, %rd2, %rd5;",
    ]
    body += [f"  ld.global.b32 %r{20 + i}, [%rd4+{4 * i}];" for i in range(14)]
    body += [f"  ld.global.b32 %r{40 + i}, [%rd6+{4 * i}];" for i in range(16)]
    body += lines
    body += [f"  st.global.b32 [%rd6+{4 * i}], %r{40 + i};" for i in range(16)]
    return kernel("\n".join(body), 2, THREADS)


def arrays() -> list[NDArray[np.generic]]:
    random = np.random.default_rng(7)
    factors = random.standard_normal((THREADS, 56)).astype(np.float16)
    return [factors, random.standard_normal((THREADS, 16)).astype(np.float32)]


TILES = [
    product(0, LEFT, RIGHT),
    product(1, LEFT, NEXT),
    product(2, OTHER, RIGHT),
    product(3, OTHER, NEXT),
]
CASES = {
    "tiles": (TILES, 1),
    "tiles in another order": ([TILES[2], TILES[0], TILES[3], TILES[1]], 1),
    "some of the tiles": (TILES[1:], 1),
    "rounds of a loop": (TILES + TILES, 2),
    "what one gives another one adds": ([TILES[0], product(1, OTHER, NEXT, 0)], 2),
    "one takes the place of what another one adds": (
        [product(1, LEFT, RIGHT, 0), product(0, OTHER, NEXT, 2)], 2
    ),
    "the same place twice": ([product(0, LEFT, RIGHT, 1), product(0, OTHER, NEXT, 2)], 2),
    "what one gives is a factor of another": (
        [TILES[0], product(1, accumulator(0), RIGHT)], 2
    ),
    "moves that have nothing to do with them": (
        [TILES[0], "  mov.b32 %r44, %r48;", "  add.u32 %r45, %r45, %r46;", *TILES[1:]], 1
    ),
    "a move of what one gives": ([TILES[0], "  mov.b32 %r44, %r40;", TILES[1]], 2),
    "a move over what one reads": ([TILES[0], "  mov.b32 %r30, %r32;", TILES[2]], 2),
    "a move over what one gives": ([TILES[0], "  mov.b32 %r40, %r32;", TILES[2]], 2),
    "memory in between": (
        [TILES[0], "  st.global.b32 [%rd6], %r48;", TILES[1]], 2
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_together_as_one_after_the_other(kernel: Kernel, name: str) -> None:
    lines, groups = CASES[name]
    module = parse(text_of(kernel, lines), "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    apart = sum(line.strip().startswith("mma") for line in lines)
    assert segments_with_mma(emulator.program) == groups
    assert segments_with_mma(emulator.watched) == apart
    together, one_by_one = arrays(), arrays()
    run(module, emulator.kernel, (1, 1, 1), together)
    run(module, emulator.kernel, (1, 1, 1), one_by_one, padding=Padding(frozenset()))
    assert (together[1] != arrays()[1]).any()
    words, others = together[1].view(np.uint32), one_by_one[1].view(np.uint32)
    assert (words == others).all()


def segments_with_mma(program: object) -> int:
    segments = program.segments  # type: ignore[attr-defined]
    return sum(any(i.opcode == "mma" for i in segment.instrs) for segment in segments)


def test_not_more_than_a_bound_is_put_together(kernel: Kernel) -> None:
    lines = [f"  {MMA} {{%r{100}, %r{101}, %r{102}, %r{103}}}, {LEFT}, {RIGHT}, {accumulator(0)};"]
    many = [line.replace("%r10", f"%q{at}_") for at in range(70) for line in lines]
    declared = "".join(f"  .reg .b32 %q{at}_<4>;\n" for at in range(70))
    text = text_of(kernel, [declared, *many])
    module = parse(text, "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    assert segments_with_mma(emulator.program) == 2
