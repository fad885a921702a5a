"""What one NVIDIA H200 gave, where the manual's words are easily taken otherwise
(benchmarks/emulator/against_gpu.py, which runs many more)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Apply = Callable[..., NDArray[np.generic]]

# The instruction, the width of its result, operands by width, and the device's result.
SEEN: list[tuple[str, int, list[tuple[int, int]], int]] = [
    # `.ftz` of 16-bit numbers flushes what is subnormal as f16.
    ("add.rn.ftz.f16 $0, $1, $2;", 16, [(0x83FF, 16), (0x400, 16)], 0x400),
    ("sub.rn.ftz.f16 $0, $1, $2;", 16, [(0x8001, 16), (0x8400, 16)], 0x400),
    ("mul.rn.ftz.f16 $0, $1, $2;", 16, [(0xB800, 16), (0x8401, 16)], 0x0),
    ("fma.rn.ftz.f16 $0, $1, $2, $3;", 16, [(0x2, 16), (0x7B00, 16), (0x401, 16)], 0x401),
    ("mul.rn.ftz.f16x2 $0, $1, $2;", 32, [(0x13800, 32), (0xBBFFC248, 32)], 0x8000BE48),
    ("min.ftz.f16 $0, $1, $2;", 16, [(0x2, 16), (0x8001, 16)], 0x8000),
    ("neg.ftz.f16 $0, $1;", 16, [(0x4, 16)], 0x8000),
    ("abs.ftz.f16x2 $0, $1;", 32, [(0xFB800001, 32)], 0x7B800000),
    ("ex2.approx.ftz.bf16 $0, $1;", 16, [(0xC300, 16)], 0x0),
    # A result is flushed by what it is before it is rounded.
    ("mul.rn.ftz.f32 $0, $1, $2;", 32, [(0x80800000, 32), (0x3F7FFFFF, 32)], 0x80000000),
    ("div.rn.ftz.f32 $0, $1, $2;", 32, [(0xBF7FFFFF, 32), (0x7E800000, 32)], 0x80000000),
    ("div.full.ftz.f32 $0, $1, $2;", 32, [(0xBF7FFFFF, 32), (0xFE800000, 32)], 0x0),
    # NaN gives the canonical one.
    ("neg.f32 $0, $1;", 32, [(0x7FC00000, 32)], 0x7FFFFFFF),
    ("abs.bf16 $0, $1;", 16, [(0xFF84, 16)], 0x7FFF),
    # Half of the operand and of the result.
    ("rcp.approx.ftz.f64 $0, $1;", 64, [(0x7FF0000000000001, 64)], 0x0),
    ("rcp.approx.ftz.f64 $0, $1;", 64, [(0x0010000000000000, 64)], 0x7FD0000000000000),
    ("rsqrt.approx.ftz.f64 $0, $1;", 64, [(0x1, 64)], 0x7FF0000000000000),
    ("slct.ftz.b32.f32 $0, $1, $2, $3;", 32, [(7, 32), (9, 32), (0x80000002, 32)], 7),
    # `.relu` and `.sat` clamp minus zero and integers too.
    ("cvt.rn.relu.f16.f32 $0, $1;", 16, [(0x80000000, 32)], 0x0),
    ("cvt.rn.relu.bf16x2.f32 $0, $1, $2;", 32, [(0x7E800000, 32), (0x80000000, 32)], 0x7E800000),
    ("cvt.rn.satfinite.relu.e4m3x2.f16x2 $0, $1;", 16, [(0x7B008000, 32)], 0x7E00),
    ("cvt.rn.sat.f32.s32 $0, $1;", 32, [(5, 32)], 0x3F800000),
    ("cvt.rn.sat.f32.s32 $0, $1;", 32, [(0xFFFFFFFB, 32)], 0x0),
    ("cvt.rn.tf32.f32 $0, $1;", 32, [(0x7F800001, 32)], 0x7FFFE000),
    ("cvt.rna.tf32.f32 $0, $1;", 32, [(0x7F800001, 32)], 0x7F800000),
    ("mad24.hi.sat.s32 $0, $1, $2, $3;", 32,
     [(0x100, 32), (0xFFFFFFFE, 32), (0x80000000, 32)], 0x80000000),
    ("rem.s32 $0, $1, $2;", 32, [(2, 32), (0, 32)], 0xFFFFFFFF),
    ("fns.b32 $0, $1, $2, $3;", 32, [(0xFFFFFF7F, 32), (12, 32), (0, 32)], 12),
    ("fns.b32 $0, $1, $2, $3;", 32, [(0xFFFFFF7F, 32), (12, 32), (1, 32)], 12),
    ("fns.b32 $0, $1, $2, $3;", 32, [(0xFFFFFF7F, 32), (12, 32), (0xFFFFFFFA, 32)], 6),
    ("fns.b32 $0, $1, $2, $3;", 32, [(0xFFFFFF7F, 32), (12, 32), (32, 32)], 0xFFFFFFFF),
    ("fns.b32 $0, $1, $2, $3;", 32, [(0xFF, 32), (12, 32), (0, 32)], 0xFFFFFFFF),
]  # fmt: skip


@pytest.mark.parametrize(
    ("instruction", "width", "operands", "result"), SEEN, ids=[row[0].split()[0] for row in SEEN]
)
def test_results(
    apply: Apply, instruction: str, width: int, operands: list[tuple[int, int]], result: int
) -> None:
    arrays: list[Any] = [np.array([value], dtype=f"u{bits // 8}") for value, bits in operands]
    (got,) = apply(instruction, f"b{width}", *arrays).tolist()
    assert hex(got) == hex(result)


def test_comparisons_of_halves_flush_too(apply: Apply) -> None:
    a, b = (np.array([word], dtype=np.uint16) for word in (0x1, 0x83FF))
    assert apply("setp.eq.ftz.f16 $0, $1, $2;", "pred", a, b).tolist() == [True]
    assert apply("setp.eq.f16 $0, $1, $2;", "pred", a, b).tolist() == [False]


def test_integers_are_packed(apply: Apply) -> None:
    a, b = np.array([70000, 5], dtype=np.uint32), np.array([-3, 200], dtype=np.int32)
    c = np.array([0xAABBCCDD, 0x11223344], dtype=np.uint32)
    low = b.view(np.uint32)
    wide = apply("cvt.pack.sat.s16.s32 $0, $1, $2;", "b32", a, low)
    assert [hex(x) for x in wide.tolist()] == ["0x7ffffffd", "0x500c8"]
    narrow = apply("cvt.pack.sat.u8.s32.b32 $0, $1, $2, $3;", "b32", a, low, c)
    assert [hex(x) for x in narrow.tolist()] == ["0xccddff00", "0x334405c8"]
