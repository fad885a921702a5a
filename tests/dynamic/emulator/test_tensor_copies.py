"""Tensor copies against loops over elements; maps of the host and of kernels; bulk copies."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import Allocation
from ptxlint.dynamic.emulator.run import Emulator, Outcome
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.tensor_map import ELEMENTS, SWIZZLES, TensorMap, decode, of_tensor
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]
Bytes = NDArray[np.uint8]

ROOM = 32768
"""Bytes of shared memory, all of which is copied out behind a kernel's body."""
FILL = 0xA5
"""What shared memory holds before."""

HEAD = """
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  setp.eq.u32 %p1, %r0, 0;
  ld.param.u64 %rd0, [k_param_0];
  ld.param.u64 %rd1, [k_param_1];
  ld.param.u64 %rd2, [k_param_2];
  mad.lo.u32 %r2, %r0, 16, %r1;
  mad.wide.u32 %rd3, %r0, 16, %rd0;
  mov.u32 %r3, 0;
$before:
  ld.global.v2.b64 {%rd4, %rd5}, [%rd3];
  st.shared.v2.b64 [%r2], {%rd4, %rd5};
  add.u32 %r2, %r2, STEP;
  add.u64 %rd3, %rd3, STEP;
  add.u32 %r3, %r3, STEP;
  setp.lt.u32 %p2, %r3, 32768;
  @%p2 bra $before;
  mov.u32 %r4, bar;
  @%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
  bar.sync 0;
"""
TAIL = """
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;
  @!%p3 bra $wait;
  mad.lo.u32 %r2, %r0, 16, %r1;
  mad.wide.u32 %rd3, %r0, 16, %rd0;
  mov.u32 %r3, 0;
$behind:
  ld.shared.v2.b64 {%rd4, %rd5}, [%r2];
  st.global.v2.b64 [%rd3], {%rd4, %rd5};
  add.u32 %r2, %r2, STEP;
  add.u64 %rd3, %rd3, STEP;
  add.u32 %r3, %r3, STEP;
  setp.lt.u32 %p2, %r3, 32768;
  @%p2 bra $behind;
"""
DECLARED = f".shared .align 1024 .b8 tile[{ROOM}];\n.shared .align 8 .b64 bar;\n"


class Ran(NamedTuple):
    shared: Bytes
    """Shared memory behind the run."""
    tensor: Bytes
    outcome: Outcome


def ran(
    kernel: Text,
    body: str,
    tensor: NDArray[Any],
    make: Callable[[int], bytes] = lambda address: bytes(128),
    shared: Bytes | None = None,
    threads: int = 32,
) -> Ran:
    """Run a body between what fills shared memory and what copies it out. `%rd1` points to the map
    that `make` gives for the tensor's address, `%rd2` to the tensor."""
    around = [part.replace("STEP", str(16 * threads)) for part in (HEAD, TAIL)]
    text = kernel(around[0] + body + around[1], 3, threads, DECLARED)
    module = parse(text, "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena = emulator.arena()
    given = np.full(ROOM, FILL, dtype=np.uint8) if shared is None else shared
    out = arena.allocate("out", ROOM, given)
    placed = arena.allocate("tensor", tensor.nbytes, np.ascontiguousarray(tensor))
    map_ = arena.allocate("map", 128, np.frombuffer(make(placed.start), dtype=np.uint8))
    values = {
        f"k_param_{i}": a.start.to_bytes(8, "little") for i, a in enumerate((out, map_, placed))
    }
    outcome = emulator.run((1, 1, 1), (threads, 1, 1), values, arena)
    assert outcome.is_complete

    def held(allocation: Allocation) -> Bytes:
        return arena.contents(allocation).copy()

    return Ran(held(out), held(placed), outcome)


def places(width: int, offset: int) -> int:
    """Where a byte of a tile lies in shared memory."""
    if not width:
        return offset
    row, column = divmod(offset, 128)
    piece, byte = divmod(column, 16)
    return row * 128 + (piece ^ row % (width // 16)) * 16 + byte


def tile_of(tensor: NDArray[Any], found: TensorMap, at: Sequence[int]) -> list[tuple[int, Any]]:
    """By element of a tile: its first byte in shared memory, its index in the tensor, if any."""
    out = []
    width = tensor.dtype.itemsize
    swizzle = SWIZZLES[found.swizzle]
    counts = [
        found.box[0],
        *(-(-b // s) for b, s in zip(found.box[1:], found.steps[1:], strict=True)),
    ]
    for row, outer in enumerate(itertools.product(*(range(c) for c in reversed(counts[1:])))):
        for inner in range(counts[0]):
            index = [inner + at[0]]
            for axis, number in enumerate(reversed(outer), 1):
                index.append(at[axis] + number * found.steps[axis])
            inside = all(0 <= i < e for i, e in zip(index, found.extents, strict=True))
            offset = row * (swizzle or counts[0] * width) + inner * width
            out.append((places(swizzle, offset), tuple(reversed(index)) if inside else None))
    return out


def load(rank: int, at: Sequence[int], size: int) -> str:
    where = ", ".join(str(x) for x in at)
    return f"""
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {size};
      @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r1], [%rd1, {{{where}}}], [%r4];
    """


def store(rank: int, at: Sequence[int], reduce: str = "") -> str:
    where = ", ".join(str(x) for x in at)
    name = f"cp.reduce.async.bulk.tensor.{rank}d" if reduce else f"cp.async.bulk.tensor.{rank}d"
    return f"""
      @%p1 {name}.global.shared::cta{reduce}.bulk_group [%rd1, {{{where}}}], [%r1];
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 0;
      @%p1 mbarrier.arrive.shared::cta.b64 _, [%r4];
    """


def mapped(
    tensor: NDArray[Any], box: Sequence[int], steps: Sequence[int], swizzle: int, fill: int = 0
) -> Callable[[int], TensorMap]:
    """Given the tensor's address, a map of its tiles; its type by the width of the elements."""
    kind = {1: 0, 2: 6, 4: 7, 8: 9}[tensor.dtype.itemsize]
    if not fill:
        kind = {1: 0, 2: 1, 4: 2, 8: 4}[tensor.dtype.itemsize]
    return lambda address: TensorMap(
        address, tuple(reversed(tensor.shape)), tuple(reversed(tensor.strides[:-1])), tuple(box),
        tuple(steps), kind, SWIZZLES.index(swizzle), fill,
    )  # fmt: skip


def numbered(shape: Sequence[int], width: int) -> NDArray[Any]:
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.uint64) * 37 + 1).astype(f"u{width}").reshape(shape)


CASES = [
    # shape, bytes of an element, box, steps, coordinates (both innermost first), swizzle
    ((64,), 2, (32,), (1,), (8,), 0),
    ((50, 64), 2, (32, 16), (1, 1), (0, 0), 64),
    ((50, 64), 2, (64, 16), (1, 1), (0, 40), 128),
    ((50, 64), 2, (64, 16), (1, 1), (8, -3), 128),
    ((50, 64), 2, (16, 24), (1, 1), (-5, 30), 32),
    ((50, 64), 2, (16, 24), (1, 1), (61, 49), 32),
    ((50, 64), 2, (32, 8), (1, 1), (70, 2), 0),
    ((9, 32), 4, (8, 9), (1, 2), (3, 1), 32),
    ((9, 48), 1, (32, 8), (1, 3), (17, -2), 0),
    ((4, 6, 16), 8, (8, 4, 3), (1, 2, 2), (1, -1, 1), 64),
    ((3, 4, 5, 16), 4, (16, 3, 2, 2), (1, 1, 1, 2), (-7, 3, 1, 0), 128),
    ((2, 3, 2, 3, 24), 2, (8, 2, 2, 2, 2), (1, 1, 1, 2, 1), (20, 2, -1, 0, 1), 0),
    ((20, 24), 2, (8, 8), (1, 1), (5, 1), 128),
]


@pytest.mark.parametrize(("shape", "width", "box", "steps", "at", "swizzle"), CASES)
@pytest.mark.parametrize("fill", [0, 1])
def test_a_tile_is_loaded(
    kernel: Text, shape: Sequence[int], width: int, box: Sequence[int], steps: Sequence[int],
    at: Sequence[int], swizzle: int, fill: int,
) -> None:  # fmt: skip
    if fill and width == 1:
        pytest.skip("integers are not filled with NaN")
    tensor = numbered(shape, width)
    make = mapped(tensor, box, steps, swizzle, fill)
    found = make(0)
    run = ran(kernel, load(len(shape), at, found.size), tensor, lambda a: make(a).encode())
    assert not run.outcome.faults, run.outcome.faults
    wanted = np.full(ROOM, FILL, dtype=np.uint8)
    is_outside = np.zeros(ROOM, dtype=bool)
    for place, index in tile_of(tensor, found, at):
        part = slice(place, place + width)
        wanted[part] = 0 if index is None else tensor[index].reshape(1).view(np.uint8)
        is_outside[part] = index is None
    if fill:
        kind = {2: np.float16, 4: np.float32, 8: np.float64}[width]
        assert np.isnan(run.shared[is_outside].view(kind)).all()
        wanted[is_outside] = run.shared[is_outside]
    assert (run.shared == wanted).all()


@pytest.mark.parametrize(("shape", "width", "box", "steps", "at", "swizzle"), CASES)
@pytest.mark.parametrize("reduce", ["", ".add", ".xor"])
def test_a_tile_is_stored(
    kernel: Text, shape: Sequence[int], width: int, box: Sequence[int], steps: Sequence[int],
    at: Sequence[int], swizzle: int, reduce: str,
) -> None:  # fmt: skip
    if reduce and width < 4:
        pytest.skip("elements that are not reduced")
    tensor = numbered(shape, width)
    shared = np.random.default_rng(5).integers(0, 256, ROOM).astype(np.uint8)
    make = mapped(tensor, box, steps, swizzle)
    run = ran(kernel, store(len(shape), at, reduce), tensor, lambda a: make(a).encode(), shared)
    assert not run.outcome.faults, run.outcome.faults
    wanted = tensor.copy()
    for place, index in tile_of(tensor, make(0), at):
        if index is not None:
            new = shared[place : place + width].view(tensor.dtype)[0]
            with np.errstate(over="ignore"):
                change = {
                    "": lambda a, b: b,
                    ".add": lambda a, b: a + b,
                    ".xor": lambda a, b: a ^ b,
                }
                wanted[index] = change[reduce](wanted[index], new)
    assert (run.tensor.view(tensor.dtype).reshape(shape) == wanted).all()
    assert (run.shared == shared).all()


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_numbers_are_added(kernel: Text, kind: str) -> None:
    """Halves are added in their own type."""
    number = ELEMENTS.index(kind)
    word = {"f16": np.float16(1.5), "f32": np.float32(1.5)}.get(kind)
    one = np.array(0x3FC0, np.uint16) if word is None else np.array(word)
    tensor = np.full((8, 32), one)
    shared = np.tile(one.reshape(1).view(np.uint8), ROOM // one.itemsize)
    run = ran(
        kernel, store(2, (0, 0), ".add"), tensor,
        lambda a: TensorMap(a, (32, 8), (32 * one.itemsize,), (16, 4), (1, 1), number).encode(),
        shared,
    )  # fmt: skip
    assert not run.outcome.faults, run.outcome.faults
    three = {"f16": 0x4200, "bf16": 0x4040, "f32": 0x40400000}[kind]
    found = run.tensor.view(f"u{one.itemsize}").reshape(8, 32)
    assert (found[:4, :16] == three).all()
    assert (found[4:] == one.view(f"u{one.itemsize}")).all()


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_matrix_instruction_finds_what_a_copy_put_there(kernel: Text, swizzle: int) -> None:
    """A tile of 64 rows, multiplied with its own first 8."""
    across = swizzle // 2
    rng = np.random.default_rng(2)
    tensor = (rng.integers(-8, 9, (64, across)) / 4).astype(np.float16)
    mode = {128: 1, 64: 2, 32: 3}[swizzle]
    lines = [load(2, (0, 0), tensor.nbytes), "$first:"]
    lines += ["mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;", "@!%p3 bra $first;"]
    lines += [f"mov.b32 %r{50 + register}, 0;" for register in range(4)]
    for step in range(across // 16):
        descriptor = 2 * step | 8 * swizzle >> 4 << 32 | mode << 62
        lines.append(f"mov.b64 %rd20, {descriptor:#x};")
        lines.append(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r50, %r51, %r52, %r53}, "
            "%rd20, %rd20, 1, 1, 1, 0, 0;"
        )
    lines.append("mad.lo.u32 %r60, %r0, 16, %r1;")
    lines.append("st.shared.v4.b32 [%r60+16384], {%r50, %r51, %r52, %r53};")

    def make(address: int) -> bytes:
        found = of_tensor(address, "float16", tensor.shape, (across, 1), tensor.shape)
        assert SWIZZLES[found.swizzle] == swizzle
        return found.encode()

    run = ran(kernel, "\n".join(lines), tensor, make, threads=128)
    assert not run.outcome.faults, run.outcome.faults
    words = run.shared[16384 : 16384 + 2048].view(np.float32).reshape(128, 4)
    wanted = tensor.astype(np.float64) @ tensor[:8].T.astype(np.float64)
    for thread in range(128):
        for register in range(4):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register // 2)
            assert words[thread, register] == wanted[row, 2 * (thread % 4) + register % 2]


# Maps -----------------------------------------------------------------------------------------
def test_maps_are_read_as_they_are_written() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        rank = int(rng.integers(1, 6))
        element = int(rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 9, 10]))
        found = TensorMap(
            int(rng.integers(0, 1 << 40)) * 16,
            tuple(int(x) for x in rng.integers(1, 1 << 32, rank)),
            tuple(int(x) * 16 for x in rng.integers(0, 1 << 36, rank - 1)),
            (16, *(int(x) for x in rng.integers(1, 257, rank - 1))),
            tuple(int(x) for x in rng.integers(1, 9, rank)),
            element,
            fill=int(element in (6, 7, 9, 10) and rng.integers(0, 2)),
        )
        assert decode(found.encode()) == found
    with pytest.raises(ValueError, match="no room"):
        TensorMap(0, (1 << 32,), (), (16,), (1,), 0).encode()


def test_the_map_of_a_tensor() -> None:
    found = of_tensor(4096, "float16", (3, 100, 72), (7200, 72, 1), (1, 64, 128), padding="nan")
    assert found.extents == (72, 100, 3)
    assert found.strides == (144, 14400)
    # Rows of 256 bytes are more than a swizzle has: the tile is copied in two.
    assert found.box == (64, 64, 1)
    assert (SWIZZLES[found.swizzle], found.fill, found.width) == (128, 1, 2)
    small = of_tensor(4096, "int8", (100, 16), (16, 1), (8, 16))
    assert (small.swizzle, small.box) == (0, (16, 8))


def test_a_kernel_makes_a_map(kernel: Text) -> None:
    """Field by field in shared memory; then it is copied to where copies look for it."""
    tensor = numbered((20, 64), 2)
    fields = """
      tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd6], %rd2;
      tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd6], 0x1;
      tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd6], 0x0, %r21;
      tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd6], 0x1, 8;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd6], 0x0, 60;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd6], 0x1, 20;
      tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd6], 0x0, 128;
      tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd6], 0x0, 1;
      tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd6], 0x1, 2;
      tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd6], 0x6;
      tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%rd6], 0x0;
      tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd6], 0x2;
      tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%rd6], 0x1;
    """.replace("tensormap", "@%p1 tensormap")
    body = f"""
      mov.u32 %r20, 0;
      mad.lo.u32 %r22, %r0, 4, %r1;
      st.shared.b32 [%r22], %r20;
      bar.sync 0;
      mov.u32 %r21, 32;
      cvt.u64.u32 %rd6, %r1;
      {fields}
      bar.warp.sync -1;
      tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
        [%rd1], [%rd6], 128;
      fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
      {load(2, (36, 3), 256)}
    """
    run = ran(kernel, body, tensor)
    assert not run.outcome.faults, run.outcome.faults
    found = TensorMap(0, (60, 20), (128,), (32, 8), (1, 2), 6, 2, 1)
    for place, index in tile_of(tensor, found, (36, 3)):
        word = run.shared[place : place + 2].view(np.uint16)[0]
        assert word == (0x7FFF if index is None else tensor[index])


GOOD = TensorMap(0, (64, 50), (128,), (32, 16), (1, 1), 6, 2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"strides": (120,)}, "stride of 120"),
        ({"box": (32, 257)}, r"\(32, 257\)"),
        ({"box": (4, 16)}, "row of its tile has 8 bytes"),
        ({"box": (64, 16)}, "more than its swizzle of 64"),
        ({"steps": (1, 9)}, r"\(1, 9\)"),
        ({"element": 11}, "type 11"),
        ({"element": 1, "fill": 1}, "integers with NaN"),
        ({"extents": (64, 0)}, "without elements"),
        ({"interleave": 1}, "interleaved"),
        ({"swizzle": 4}, "swizzle is 4"),
        ({"atoms": 1}, "atoms of mode 1"),
        ({"extents": (64, 50, 2), "strides": (128, 128), "box": (32, 16, 1), "steps": (1, 1, 1)},
         "3 dimensions, the copy 2"),
    ],
)  # fmt: skip
def test_a_map_that_the_hardware_does_not_take(
    kernel: Text, change: dict[str, Any], why: str
) -> None:
    make = lambda address: GOOD._replace(address=address, **change).encode()  # noqa: E731
    run = ran(kernel, store(2, (0, 0)), numbered((50, 64), 2), make)
    ((kind, message),) = [(fault.kind, fault.message) for fault in run.outcome.faults]
    assert kind == "tensor_map"
    assert re.search(why, message), message


def test_a_tile_and_a_map_that_are_not_aligned(kernel: Text) -> None:
    make = lambda address: GOOD._replace(address=address).encode()  # noqa: E731
    tensor = numbered((50, 64), 2)
    run = ran(kernel, store(2, (0, 0)).replace("[%r1]", "[%r1+64]"), tensor, make)
    assert [fault.kind for fault in run.outcome.faults] == ["misaligned"]
    moved = ran(
        kernel, store(2, (0, 0)).replace("[%rd1,", "[%rd7,").replace("@%p1 cp.async.bulk.t",
        "add.u64 %rd7, %rd2, 32;\n@%p1 cp.async.bulk.t"),
        np.frombuffer(bytes(32) + GOOD._replace(address=1 << 32).encode() + bytes(96), np.uint8),
    )  # fmt: skip
    assert "misaligned" in [fault.kind for fault in moved.outcome.faults]


def test_a_map_of_more_than_there_is(kernel: Text) -> None:
    """Elements that the map has and the memory has not."""
    tensor = numbered((10, 64), 2)
    make = lambda address: GOOD._replace(address=address).encode()  # noqa: E731
    run = ran(kernel, load(2, (0, 0), GOOD.size), tensor, make)
    assert [fault.kind for fault in run.outcome.faults] == ["outside"]
    assert "right behind the end of tensor" in run.outcome.faults[0].message


@pytest.mark.parametrize("form", ["im2col", "multicast::cluster"])
def test_what_is_not_run_is_refused_by_name(kernel: Text, form: str) -> None:
    name = "cp.async.bulk.tensor.3d.shared::cluster.global"
    more = ", {1}" if form == "im2col" else ", 1"
    tail = ".im2col.mbarrier::complete_tx::bytes" if form == "im2col" else (
        ".mbarrier::complete_tx::bytes.multicast::cluster"
    )  # fmt: skip
    text = kernel(f"{name}{tail} [tile], [%rd1, {{0, 0, 0}}], [bar]{more};", 1, 32, DECLARED)
    module = parse(text.replace(", 1;", ", %rs1;"), "snippet.ptx")
    with pytest.raises(UnsupportedError, match="only"):
        Emulator(module, module.kernels()[0])


# Bytes ----------------------------------------------------------------------------------------
def test_bytes_are_copied_both_ways(kernel: Text) -> None:
    tensor = numbered((256,), 4)
    body = """
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 272;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r1], [%rd2+16], 256, [%r4];
      add.u32 %r30, %r1, 1024;
      @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%r30], [%r1+32], 16, [%r4];
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2+768], [%r1], 48;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
    """
    run = ran(kernel, body, tensor)
    assert not run.outcome.faults, run.outcome.faults
    words = run.shared.view(np.uint32)
    assert (words[:64] == tensor[4:68]).all()
    assert (words[256:260] == tensor[12:16]).all()
    assert (run.shared[256:1024] == FILL).all()
    behind = run.tensor.view(np.uint32)
    assert (behind[192:204] == tensor[4:16]).all()
    assert (behind[204:] == tensor[204:]).all()


def test_each_lane_copies_as_much_as_it_says(kernel: Text) -> None:
    tensor = numbered((1024,), 4)
    body = """
      mul.lo.u32 %r30, %r0, 16;
      mad.lo.u32 %r31, %r0, 512, %r1;
      mad.wide.u32 %rd7, %r0, 64, %rd2;
      setp.lt.u32 %p5, %r0, 4;
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 96;
      bar.sync 0;
      @%p5 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
        [%r31], [%rd7], %r30, [%r4];
    """
    run = ran(kernel, body, tensor)
    assert not run.outcome.faults, run.outcome.faults
    words = run.shared.view(np.uint32)
    for lane in range(4):
        assert (words[128 * lane : 128 * lane + 4 * lane] == tensor[16 * lane : 20 * lane]).all()
        assert (run.shared[512 * lane + 16 * lane : 512 * lane + 512] == FILL).all()


@pytest.mark.parametrize("kind", ["add.u32", "min.s32", "add.f32", "add.noftz.f16"])
def test_bytes_are_reduced(kernel: Text, kind: str) -> None:
    name = kind.rsplit(".", 1)[1]
    dtype = np.dtype({"u32": "u4", "s32": "i4", "f32": "f4", "f16": "f2"}[name])
    tensor = (np.arange(16) - 5).astype(dtype)
    given = (3 * np.arange(16) - 20).astype(dtype)
    shared = np.zeros(ROOM, np.uint8)
    shared[: given.nbytes] = given.view(np.uint8)
    body = f"""
      @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{kind} [%rd2], [%r1], {given.nbytes};
      @%p1 mbarrier.arrive.shared::cta.b64 _, [%r4];
    """
    run = ran(kernel, body, tensor, shared=shared)
    assert not run.outcome.faults, run.outcome.faults
    wanted = np.minimum(tensor, given) if kind.startswith("min") else tensor + given
    assert (run.tensor.view(dtype) == wanted).all()


def test_stores_that_an_mbarrier_counts(kernel: Text) -> None:
    body = """
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 384;
      bar.sync 0;
      mad.lo.u32 %r30, %r0, 8, %r1;
      add.u32 %r31, %r0, 100;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r30], {%r0, %r31}, [%r4];
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32
        [%r1+1024], %r0, [%r4];
    """
    run = ran(kernel, body, numbered((4,), 4), shared=np.zeros(ROOM, np.uint8))
    assert not run.outcome.faults, run.outcome.faults
    words = run.shared.view(np.uint32)
    assert (words[:64] == np.stack([np.arange(32), np.arange(32) + 100], axis=1).ravel()).all()
    assert words[256] == 31 * 32 // 2


def test_a_size_that_is_no_multiple_of_16(kernel: Text) -> None:
    body = """
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 24;
      @%p1 mbarrier.arrive.shared::cta.b64 _, [%r4];
    """
    run = ran(kernel, body, numbered((64,), 4))
    assert [fault.kind for fault in run.outcome.faults] == ["misaligned"]


def test_bytes_that_were_not_expected_are_waited_for(kernel: Text) -> None:
    """Of 32 bytes that are expected 16 come: the phase never ends."""
    body = """
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 32;
      @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r1], [%rd2], 16, [%r4];
    """
    run = ran(kernel, body, numbered((64,), 4))
    assert [fault.kind for fault in run.outcome.faults] == ["deadlock"]
