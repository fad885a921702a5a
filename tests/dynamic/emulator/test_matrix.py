"""Matrix instructions of a warp against a model that follows the manual's tables, lane by lane and
element by element (PTX ISA, "Matrix Fragments for mma", "ldmatrix", "stmatrix")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.elements import to_elements, to_numbers

Execute = Callable[..., None]
Kernel = Callable[..., str]
Place = Callable[[int, int, int], tuple[int, int]]
"""Row and column of element i of the lane with this group and this number within it."""
WARP, WARPS = 32, 2
Array = NDArray[Any]


class Shape(NamedTuple):
    """An `mma` as the manual's tables lay it out: how many elements a lane holds, and where."""

    modifiers: str
    m: int
    n: int
    k: int
    kinds: tuple[str, str, str]
    """Of A and B, of C, of D (torch's names)."""
    counts: tuple[int, int, int]
    a: Place
    b: Place


def c_place(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 2), 2 * t + i % 2


def halves_a(g: int, t: int, i: int) -> tuple[int, int]:
    return g + (0 if i in (0, 1, 4, 5) else 8), 2 * t + i % 2 + (0 if i < 4 else 8)


def halves_b(g: int, t: int, i: int) -> tuple[int, int]:
    return 2 * t + i % 2 + (0 if i < 2 else 8), g


def bytes_a(g: int, t: int, i: int) -> tuple[int, int]:
    return g + (0 if i < 4 or 8 <= i < 12 else 8), 4 * t + i % 4 + (0 if i < 8 else 16)


def bytes_b(g: int, t: int, i: int) -> tuple[int, int]:
    return 4 * t + i % 4 + (0 if i < 4 else 16), g


def words_a(g: int, t: int, i: int) -> tuple[int, int]:
    return g + (0 if i in (0, 2) else 8), t + (0 if i < 2 else 4)


def words_b(g: int, t: int, i: int) -> tuple[int, int]:
    return t + 4 * i, g


def doubles_a(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i % 2), t + 4 * (i // 2)


F16, BF16, F32, F64 = "float16", "bfloat16", "float32", "float64"
E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
SHAPES = [
    Shape("m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, (F16, F32, F32), (8, 4, 4),
          halves_a, halves_b),
    Shape("m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, (F16, F16, F16), (8, 4, 4),
          halves_a, halves_b),
    Shape("m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, (F16, F32, F32), (4, 2, 4),
          halves_a, halves_b),
    Shape("m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, (BF16, F32, F32), (8, 4, 4),
          halves_a, halves_b),
    Shape("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, (F32, F32, F32), (4, 2, 4),
          words_a, words_b),
    Shape("m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, (F32, F32, F32), (2, 1, 4),
          words_a, words_b),
    Shape("m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 8, 32, (E4M3, F32, F32), (16, 8, 4),
          bytes_a, bytes_b),
    Shape("m16n8k32.row.col.f32.e5m2.e5m2.f32", 16, 8, 32, (E5M2, F32, F32), (16, 8, 4),
          bytes_a, bytes_b),
    Shape("m16n8k32.row.col.s32.s8.s8.s32", 16, 8, 32, ("int8", "int32", "int32"), (16, 8, 4),
          bytes_a, bytes_b),
    Shape("m16n8k16.row.col.s32.u8.u8.s32", 16, 8, 16, ("uint8", "int32", "int32"), (8, 4, 4),
          bytes_a, bytes_b),
    Shape("m8n8k16.row.col.s32.s8.s8.s32", 8, 8, 16, ("int8", "int32", "int32"), (4, 4, 2),
          bytes_a, bytes_b),
    Shape("m8n8k4.row.col.f64.f64.f64.f64", 8, 8, 4, (F64, F64, F64), (1, 1, 2),
          doubles_a, words_b),
    Shape("m16n8k8.row.col.f64.f64.f64.f64", 16, 8, 8, (F64, F64, F64), (4, 2, 4),
          doubles_a, words_b),
    Shape("m16n8k16.row.col.f64.f64.f64.f64", 16, 8, 16, (F64, F64, F64), (8, 4, 4),
          doubles_a, words_b),
]  # fmt: skip


def fragments(matrix: Array, count: int, place: Place) -> Array:
    """What each lane holds of a matrix: a row a lane."""
    out = np.zeros((WARP, count), dtype=matrix.dtype)
    for lane in range(WARP):
        for i in range(count):
            out[lane, i] = matrix[place(lane // 4, lane % 4, i)]
    return out


def gathered(held: Array, rows: int, columns: int, place: Place) -> Array:
    """The matrix that lanes hold; each element is held once."""
    out = np.zeros((rows, columns), dtype=held.dtype)
    seen = np.zeros((rows, columns), dtype=int)
    for lane in range(WARP):
        for i in range(held.shape[1]):
            at = place(lane // 4, lane % 4, i)
            out[at] = held[lane, i]
            seen[at] += 1
    assert (seen == 1).all()
    return out


def multiplied(
    execute: Execute, kernel: Kernel, shape: Shape, a: Array, b: Array, c: Array
) -> Array:
    """D of as many matrices as there are warps, all as elements."""
    places = shape.a, shape.b, c_place
    letter, width = ("rd", 8) if shape.kinds[0] == F64 else ("r", 4)
    arrays, loads, names = [], [], []
    for at, (matrices, count, place) in enumerate(
        zip((a, b, c), shape.counts, places, strict=True)
    ):
        held = np.concatenate([fragments(m, count, place) for m in matrices])
        words = np.ascontiguousarray(held).view(f"u{width}")
        arrays.append(words)
        own = [f"%{letter}{20 + 16 * at + i}" for i in range(words.shape[1])]
        loads.append(f"  ld.param.u64 %rd1, [k_param_{at}];")
        loads.append(f"  mad.wide.u32 %rd2, %r100, {width * len(own)}, %rd1;")
        loads += [f"  ld.global.b{8 * width} {r}, [%rd2+{width * i}];" for i, r in enumerate(own)]
        names.append("{" + ", ".join(own) + "}")
    kind = np.dtype(np.float16) if shape.kinds[2] == F16 else np.dtype(shape.kinds[2])
    out = np.zeros((WARP * WARPS, shape.counts[2]), dtype=kind)
    count = out.view(f"u{width}").shape[1]
    own = [f"%{letter}{70 + i}" for i in range(count)]
    body = [
        "  mov.u32 %r100, %tid.x;", *loads,
        f"  mma.sync.aligned.{shape.modifiers} {{{', '.join(own)}}}, {', '.join(names)};",
        "  ld.param.u64 %rd1, [k_param_3];",
        f"  mad.wide.u32 %rd2, %r100, {width * count}, %rd1;",
        *(f"  st.global.b{8 * width} [%rd2+{width * i}], {r};" for i, r in enumerate(own)),
    ]  # fmt: skip
    execute(kernel("\n".join(body), 4, WARP * WARPS), [*arrays, out])
    return np.stack(
        [gathered(out[WARP * w :][:WARP], shape.m, shape.n, c_place) for w in range(WARPS)]
    )


def drawn(seed: int, shape: Shape, whole: bool) -> tuple[Array, Array, Array]:
    """A, B and C as elements: small integers, whose sums are exact, or normal numbers."""
    rng = np.random.default_rng(seed)
    sizes = (shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n)
    kinds = shape.kinds[0], shape.kinds[0], shape.kinds[1]
    out = []
    for size, kind in zip(sizes, kinds, strict=True):
        low = 0 if kind == "uint8" else -8
        values = (
            rng.integers(low, 9, (WARPS, *size)) if whole else rng.standard_normal((WARPS, *size))
        )
        out.append(to_elements(values, kind))
    return out[0], out[1], out[2]


@pytest.mark.parametrize("shape", SHAPES, ids=[s.modifiers for s in SHAPES])
def test_products_of_whole_numbers_are_exact(
    execute: Execute, kernel: Kernel, shape: Shape
) -> None:
    a, b, c = drawn(1, shape, whole=True)
    got = multiplied(execute, kernel, shape, a, b, c)
    left, right, add = (
        to_numbers(x, kind) for x, kind in
        ((a, shape.kinds[0]), (b, shape.kinds[0]), (c, shape.kinds[1]))
    )  # fmt: skip
    assert (got == left @ right + add).all()


@pytest.mark.parametrize(
    "shape", [s for s in SHAPES if s.kinds[0][0] in "fb"],
    ids=[s.modifiers for s in SHAPES if s.kinds[0][0] in "fb"],
)  # fmt: skip
def test_sums_are_rounded_once(execute: Execute, kernel: Kernel, shape: Shape) -> None:
    a, b, c = drawn(2, shape, whole=False)
    got = multiplied(execute, kernel, shape, a, b, c).astype(np.float64)
    left, right, add = (
        to_numbers(x, kind) for x, kind in
        ((a, shape.kinds[0]), (b, shape.kinds[0]), (c, shape.kinds[1]))
    )  # fmt: skip
    if "tf32" in shape.modifiers:
        # Of the words of tf32 the lower 13 bits are not looked at.
        left, right = (
            (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
            for x in (left, right)
        )
        left, right = left.astype(np.float64), right.astype(np.float64)
    exact = left @ right + add
    half_unit = {F16: 2.0**-11, F32: 2.0**-24, F64: 2.0**-50}[shape.kinds[2]]
    size = np.abs(left) @ np.abs(right) + np.abs(add)
    assert (np.abs(got - exact) <= half_unit * np.abs(exact) + 2.0**-50 * size).all()


def test_integers_wrap_or_saturate(execute: Execute, kernel: Kernel) -> None:
    shape = next(s for s in SHAPES if "k32.row.col.s32.s8" in s.modifiers)
    a = np.full((WARPS, 16, 32), 127, dtype=np.int8)
    b = np.full((WARPS, 32, 8), 127, dtype=np.int8)
    c = np.full((WARPS, 16, 8), 2**31 - 5, dtype=np.int32)
    total = 127 * 127 * 32 + 2**31 - 5
    assert (multiplied(execute, kernel, shape, a, b, c) == total - 2**32).all()
    saturating = shape._replace(modifiers=shape.modifiers.replace(".s32.s8", ".satfinite.s32.s8"))
    assert (multiplied(execute, kernel, saturating, a, b, c) == 2**31 - 1).all()


# ldmatrix, stmatrix ---------------------------------------------------------------------------
ROOM = """
  .shared .align 16 .b8 room[4096];
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r100, %tid.x;
  mov.u32 %r101, room;
  mad.wide.u32 %rd3, %r100, 32, %rd1;
  mad.wide.u32 %rd4, %r100, 16, %rd2;
  shl.b32 %r102, %r100, 5;
  add.u32 %r102, %r102, %r101;
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd3];
  st.shared.v4.u32 [%r102], {%r1, %r2, %r3, %r4};
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd3+16];
  st.shared.v4.u32 [%r102+16], {%r1, %r2, %r3, %r4};
  mov.b32 %r11, 0;
  mov.b32 %r12, 0;
  mov.b32 %r13, 0;
  mov.b32 %r14, 0;
  bar.sync 0;
"""
ROWS = """
  mul.lo.u32 %r5, %r100, 48;
  and.b32 %r5, %r5, 1008;
  shr.u32 %r6, %r100, 5;
  mad.lo.u32 %r5, %r6, 1024, %r5;
  add.u32 %r5, %r5, %r101;
"""
"""Lane l of warp w points at byte (48 l mod 1024) of the w-th kilobyte: rows in no order."""


def row_of(memory: Array, thread: int) -> Array:
    start = (thread // WARP * 1024 + thread * 48 % 1024) // 2
    return memory[start : start + 8]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_matrices_are_loaded(
    execute: Execute, kernel: Kernel, count: int, is_transposed: bool
) -> None:
    registers = ", ".join(f"%r{11 + i}" for i in range(count))
    trans = ".trans" if is_transposed else ""
    body = (
        ROOM
        + ROWS
        + f"""
  ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%r5];
  st.global.v4.u32 [%rd4], {{%r11, %r12, %r13, %r14}};
"""
    )
    memory = np.random.default_rng(3).integers(0, 65536, 1024, dtype=np.uint16)
    out = np.zeros((WARP * WARPS, 8), dtype=np.uint16)
    execute(kernel(body, 2, WARP * WARPS), [memory, out])
    for warp in range(WARPS):
        for i in range(count):
            tile = np.stack([row_of(memory, warp * WARP + 8 * i + r) for r in range(8)])
            for lane in range(WARP):
                row, column = lane // 4, 2 * (lane % 4)
                for half in range(2):
                    at = (column + half, row) if is_transposed else (row, column + half)
                    assert out[warp * WARP + lane, 2 * i + half] == tile[at]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_matrices_are_stored(
    execute: Execute, kernel: Kernel, count: int, is_transposed: bool
) -> None:
    registers = ", ".join(f"%r{11 + i}" for i in range(count))
    trans = ".trans" if is_transposed else ""
    fill = "\n".join(
        f"  mad.lo.u32 %r{11 + i}, %r100, 262148, {i * 131072 + 65536 + 2 * i};" for i in range(4)
    )
    body = (
        ROOM
        + ROWS
        + fill
        + f"""
  stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r5], {{{registers}}};
  bar.sync 0;
  ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%r102];
  mad.wide.u32 %rd4, %r100, 32, %rd2;
  st.global.v4.u32 [%rd4], {{%r1, %r2, %r3, %r4}};
  ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%r102+16];
  st.global.v4.u32 [%rd4+16], {{%r1, %r2, %r3, %r4}};
"""
    )
    memory = np.random.default_rng(4).integers(0, 65536, 1024, dtype=np.uint16)
    out = np.zeros(1024, dtype=np.uint16)
    execute(kernel(body, 2, WARP * WARPS), [memory, out])
    want = memory.copy()
    for warp in range(WARPS):
        for i in range(count):
            tile = np.zeros((8, 8), dtype=np.uint16)
            for lane in range(WARP):
                word = (warp * WARP + lane) * 262148 + i * 131072 + 65536 + 2 * i
                for half in range(2):
                    row, column = lane // 4, 2 * (lane % 4) + half
                    at = (column, row) if is_transposed else (row, column)
                    tile[at] = word >> 16 * half & 0xFFFF
            for r in range(8):
                row_of(want, warp * WARP + 8 * i + r)[...] = tile[r]
    assert (out == want).all()
