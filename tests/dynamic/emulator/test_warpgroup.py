"""`wgmma` against products of matrices that are laid out element by element."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.run import Emulator, run
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

MODES = {0: 0, 128: 1, 64: 2, 32: 3}
"""The number of a swizzle of so many bytes in a descriptor."""
WORDS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
SIZE = 36864
"""Bytes of shared memory for one operand."""


class Tile(NamedTuple):
    """Where a matrix lies: bytes of shared memory, and its descriptor."""

    bytes: NDArray[np.uint8]
    descriptor: int


def encoded(start: int, leading: int, stride: int, swizzle: int, first: int = 0) -> int:
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | first << 49 | MODES[swizzle] << 62


def moved(offset: int, swizzle: int) -> int:
    """Where a byte goes that lies so far behind the begin of the pattern."""
    if not swizzle:
        return offset
    block, inner = divmod(offset, 8 * swizzle)
    row, column = divmod(inner, 128)
    piece, byte = divmod(column, 16)
    # In a row of 128 bytes: as many pieces trade places as the swizzle is wide.
    width = swizzle // 16
    piece = piece // width * width + (piece % width ^ row % width)
    return block * 8 * swizzle + row * 128 + piece * 16 + byte


def laid_out(
    matrix: NDArray[np.generic], swizzle: int, is_k_major: bool, at: int = 0, first: int = 0
) -> Tile:
    """A matrix of rows along M or N and columns along K, in core matrices of 8 times 16 bytes."""
    size = matrix.dtype.itemsize
    rows, columns = matrix.shape
    lines, along = (rows, columns) if is_k_major else (columns, rows)
    width = swizzle or 16
    bands = -(-along * size // width)
    """Columns of atoms, each 8 lines of the swizzle's width."""
    atom = 8 * width
    room = -(-lines // 8)
    leading, stride = atom * room, atom
    if not is_k_major and not swizzle:
        # Then the leading offset is the one across the major dimension.
        leading, stride = stride, leading
    out = np.zeros(SIZE, dtype=np.uint8)
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, columns, size)
    for line in range(lines):
        for place in range(along):
            band, inside = divmod(place * size, width)
            assert band < bands
            offset = band * atom * room + line // 8 * atom + line % 8 * width + inside
            where = at + first * 128 + moved(offset, swizzle)
            element = raw[line, place] if is_k_major else raw[place, line]
            out[where : where + size] = element
    start = at + first * 128
    return Tile(out, encoded(start, leading, stride, swizzle, first))


def drawn(kind: str, rows: int, columns: int, seed: int) -> tuple[NDArray[np.generic], np.ndarray]:
    """The bits of a random matrix, and its numbers."""
    rng = np.random.default_rng(seed)
    if kind in ("s8", "u8"):
        numbers = rng.integers(0, 256, (rows, columns)) - (128 if kind == "s8" else 0)
        return numbers.astype({"s8": np.int8, "u8": np.uint8}[kind]), numbers.astype(np.float64)
    numbers = rng.integers(-8, 9, (rows, columns)) / 4.0
    if kind == "f16":
        return numbers.astype(np.float16), numbers
    word = numbers.astype(np.float32).view(np.uint32)
    if kind == "bf16":
        return (word >> 16).astype(np.uint16), numbers
    if kind == "tf32":
        # What lies below the 10 bits of the fraction is not looked at.
        return word | rng.integers(0, 1 << 13, word.shape).astype(np.uint32), numbers
    half = numbers.astype(np.float16).view(np.uint16)
    if kind == "e5m2":
        return (half >> 8).astype(np.uint8), numbers
    sign, exponent, fraction = half >> 15, half >> 10 & 31, half >> 7 & 7
    number = np.where(half & 0x7FFF == 0, 0, (exponent.astype(np.int64) - 8) << 3 | fraction)
    return (sign << 7 | number).astype(np.uint8), numbers


def multiplied(
    kernel: Text,
    instruction: str,
    a: Tile | NDArray[np.uint32],
    b: Tile,
    registers: int,
    start: NDArray[np.uint32],
    faults: int = 0,
) -> NDArray[np.uint32]:
    """The accumulators, by register and thread, that `instruction` makes of those in `start`.

    It names the accumulators `$d` and the operands `$a` and `$b`.
    """  # fmt: skip
    held = [f"%r{i}" for i in range(registers)]
    lines = ["mov.u32 %r190, %tid.x;", "mov.u32 %r191, tiles;"]
    lines += [f"ld.param.u64 %rd{at}, [k_param_{at}];" for at in range(3)]
    lines += [
        "mad.wide.u32 %rd10, %r190, 16, %rd1;", "mad.lo.u32 %r192, %r190, 16, %r191;",
        "mov.u32 %r193, 0;",
        "$copy:",
        "ld.global.v2.b64 {%rd11, %rd12}, [%rd10];", "st.shared.v2.b64 [%r192], {%rd11, %rd12};",
        "add.u64 %rd10, %rd10, 2048;", "add.u32 %r192, %r192, 2048;", "add.u32 %r193, %r193, 1;",
        f"setp.lt.u32 %p1, %r193, {2 * SIZE // 2048};", "@%p1 bra $copy;",
        "bar.sync 0;", "mad.wide.u32 %rd13, %r190, 4, %rd0;", "mad.wide.u32 %rd14, %r190, 4, %rd2;",
    ]  # fmt: skip
    for at, register in enumerate(held):
        lines.append(f"ld.global.b32 {register}, [%rd13+{512 * at}];")
    if isinstance(a, Tile):
        lines.append(f"mov.b64 %rd20, {a.descriptor:#x};")
        given, name = np.zeros((4, 128), dtype=np.uint32), "%rd20"
        bytes_a = a.bytes
    else:
        given, name = a, "{%r180, %r181, %r182, %r183}"
        bytes_a = np.zeros(SIZE, dtype=np.uint8)
        for at in range(4):
            lines.append(f"ld.global.b32 %r{180 + at}, [%rd14+{512 * at}];")
    lines.append(f"mov.b64 %rd21, {b.descriptor + (SIZE >> 4):#x};")
    text = instruction.replace("$d", "{" + ", ".join(held) + "}")
    lines += [
        "wgmma.fence.sync.aligned;", text.replace("$a", name).replace("$b", "%rd21"),
        "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
    ]  # fmt: skip
    for at, register in enumerate(held):
        lines.append(f"st.global.b32 [%rd13+{512 * at}], {register};")
    shared = f".shared .align 1024 .b8 tiles[{2 * SIZE}];\n"
    module = parse(kernel("\n".join(lines), 3, 128, shared), "snippet.ptx")
    out = start.copy()
    memory = np.concatenate([bytes_a, b.bytes])
    outcome = run(module, module.kernels()[0], (1, 1, 1), [out, memory, given])
    assert len(outcome.faults) == faults, outcome.faults
    return out


def scattered(matrix: np.ndarray, kind: type) -> NDArray[np.uint32]:
    """A matrix of 64 rows as accumulators, by register and thread."""
    columns = matrix.shape[1]
    out = np.zeros((columns // 2, 128), dtype=np.uint32)
    for thread in range(128):
        for register in range(columns // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register // 2 % 2)
            column = 8 * (register // 4) + 2 * (thread % 4) + register % 2
            out[register, thread] = np.array(matrix[row, column], dtype=kind).view(np.uint32)
    return out


def fragments(bits: NDArray[np.generic]) -> NDArray[np.uint32]:
    """A matrix A as registers: words of neighbours along K."""
    words = np.ascontiguousarray(bits).view(np.uint32)
    out = np.zeros((4, 128), dtype=np.uint32)
    for thread in range(128):
        for register in range(4):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register % 2)
            out[register, thread] = words[row, thread % 4 + 4 * (register // 2)]
    return out


def immediates(kind: str, a: int = 0, b: int = 0, from_registers: bool = False) -> str:
    if kind in ("s8", "u8"):
        return ""
    if kind in ("f16", "bf16"):
        return f", 1, 1, {b}" if from_registers else f", 1, 1, {a}, {b}"
    return ", 1, 1"


def product_of(
    kernel: Text, kind: str, n: int, swizzles: tuple[int, int], majors: tuple[bool, bool],
    from_registers: bool = False, at: int = 0, firsts: tuple[int, int] = (0, 0),
) -> None:  # fmt: skip
    k = 256 // WORDS[kind]
    bits_a, a = drawn(kind, 64, k, 1)
    bits_b, b = drawn(kind, n, k, 2)
    result = np.int32 if kind in ("s8", "u8") else np.float32
    start = np.random.default_rng(3).integers(-9, 9, (64, n)).astype(result)
    left: Tile | NDArray[np.uint32] = laid_out(bits_a, swizzles[0], majors[0], at, firsts[0])
    if from_registers:
        left = fragments(bits_a)
    right = laid_out(bits_b, swizzles[1], majors[1], at, firsts[1])
    to = "s32" if result is np.int32 else "f32"
    ends = immediates(kind, not majors[0], not majors[1], from_registers).replace("True", "1")
    found = multiplied(
        kernel,
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{to}.{kind}.{kind} $d, $a, $b, 1"
        f"{ends.replace('False', '0')};",
        left, right, n // 2, scattered(start, result),
    )  # fmt: skip
    assert (found == scattered(start + a @ b.T, result)).all()


@pytest.mark.parametrize("majors", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("n", [8, 24, 128, 256])
def test_layouts(kernel: Text, swizzle: int, majors: tuple[bool, bool], n: int) -> None:
    if swizzle and not majors[1] and n % (swizzle // 2):
        pytest.skip("a tile of N that no atom fills")
    product_of(kernel, "f16", n, (swizzle, swizzle), majors)


@pytest.mark.parametrize("from_registers", [False, True])
@pytest.mark.parametrize("kind", list(WORDS))
def test_types(kernel: Text, kind: str, from_registers: bool) -> None:
    product_of(kernel, kind, 16, (128, 32), (True, True), from_registers)


@pytest.mark.parametrize("majors", [(True, True), (False, False)])
@pytest.mark.parametrize(("swizzle", "first"), [(128, 3), (128, 7), (64, 2), (32, 1)])
def test_a_pattern_that_begins_elsewhere(
    kernel: Text, swizzle: int, first: int, majors: tuple[bool, bool]
) -> None:
    """The base offset tells where the pattern begins if no multiple of its length does."""
    product_of(kernel, "f16", 64, (swizzle, swizzle), majors, at=1024, firsts=(first, first))


def test_a_part_of_a_wider_tile(kernel: Text) -> None:
    """Along K one goes on by moving the start address within the swizzled rows."""
    bits_a, a = drawn("bf16", 64, 64, 1)
    bits_b, b = drawn("bf16", 8, 64, 2)
    left, right = laid_out(bits_a, 128, True), laid_out(bits_b, 128, True)
    for step in range(4):
        found = multiplied(
            kernel,
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 $d, $a, $b, 1, 1, 1, 0, 0;",
            left._replace(descriptor=left.descriptor + 2 * step),
            right._replace(descriptor=right.descriptor + 2 * step),
            4, scattered(np.zeros((64, 8)), np.float32),
        )  # fmt: skip
        part = slice(16 * step, 16 * step + 16)
        assert (found == scattered(a[:, part] @ b[:, part].T, np.float32)).all()


def test_signs_and_no_accumulator(kernel: Text) -> None:
    bits_a, a = drawn("f16", 64, 16, 1)
    bits_b, b = drawn("f16", 8, 16, 2)
    tiles = laid_out(bits_a, 32, True), laid_out(bits_b, 32, True)
    nothing = scattered(np.full((64, 8), np.nan), np.float32)
    for signs, sign in (("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)):
        found = multiplied(
            kernel,
            f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 $d, $a, $b, 0, {signs}, 0, 0;",
            *tiles, 4, nothing,
        )  # fmt: skip
        assert (found.view(np.float32) == scattered(sign * (a @ b.T), np.float32).view("f4")).all()


def test_an_accumulator_that_is_written_in_between(kernel: Text) -> None:
    bits_a, a = drawn("f16", 64, 16, 1)
    bits_b, b = drawn("f16", 8, 16, 2)
    one = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 $d, $a, $b, 1, 1, 1, 0, 0;"
    found = multiplied(
        kernel, f"{one}\n{one}\nmov.b32 %r1, 0f42000000;\n{one}",
        laid_out(bits_a, 32, True), laid_out(bits_b, 32, True), 4, np.zeros((4, 128), np.uint32),
    )  # fmt: skip
    wanted = scattered(3 * (a @ b.T), np.float32)
    wanted[1] = (scattered(a @ b.T, np.float32)[1].view(np.float32) + 32).view(np.uint32)
    assert (found == wanted).all()


def test_half_accumulators(kernel: Text) -> None:
    """Two neighbours in a register."""
    bits_a, a = drawn("f16", 64, 16, 1)
    bits_b, b = drawn("f16", 16, 16, 2)
    found = multiplied(
        kernel, "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 $d, $a, $b, 0, 1, 1, 0, 0;",
        laid_out(bits_a, 32, True), laid_out(bits_b, 32, True), 4,
        np.zeros((4, 128), dtype=np.uint32),
    )  # fmt: skip
    single = scattered(a @ b.T, np.float32).view(np.float32).astype(np.float16).view(np.uint16)
    pairs = single.reshape(4, 2, 128).astype(np.uint32)
    assert (found == (pairs[:, 0] | pairs[:, 1] << 16)).all()


def test_integers_wrap_or_saturate(kernel: Text) -> None:
    bits_a, bits_b = np.full((64, 32), 127, np.int8), np.full((8, 32), 127, np.int8)
    tiles = laid_out(bits_a, 32, True), laid_out(bits_b, 32, True)
    top = scattered(np.full((64, 8), (1 << 31) - 1), np.int32)
    name = "wgmma.mma_async.sync.aligned.m64n8k32.s32{}.s8.s8 $d, $a, $b, 1;"
    wrapped = multiplied(kernel, name.format(""), *tiles, 4, top)
    assert (wrapped.view(np.int32) == (1 << 31) - 1 + 32 * 127 * 127 - (1 << 32)).all()
    assert (multiplied(kernel, name.format(".satfinite"), *tiles, 4, top) == top).all()


def test_a_tile_beyond_shared_memory(kernel: Text) -> None:
    bits, _ = drawn("f16", 64, 16, 1)
    beyond = laid_out(bits, 32, True)._replace(descriptor=encoded(262128, 0, 256, 32))
    multiplied(
        kernel, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 $d, $a, $b, 1, 1, 1, 0, 0;",
        beyond, laid_out(bits[:8], 32, True), 4, np.zeros((4, 128), np.uint32), faults=1,
    )  # fmt: skip


def test_tensor_memory_is_refused_by_name() -> None:
    path = Path(__file__).resolve().parents[3] / "fixtures/ptx/sm_100/flash_fwd.ptx"
    module = parse(path.read_text(encoding="utf-8"), path.name)
    with pytest.raises(UnsupportedError, match="compile for sm_90") as caught:
        Emulator(module, module.kernels()[0])
    assert caught.value.instr.opcode == "tcgen05"
