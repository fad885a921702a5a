"""Where padding gets through the matrix instructions of a warpgroup."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.run import Padding, run
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

ROWS, COLUMNS, DEPTH = 64, 8, 16
HALF = DEPTH // 2
"""A thread copies 8 neighbours along K of one row."""
ONES, ZEROS = 0x3C003C003C003C00, 0
DESCRIPTORS = {
    "a": 0 >> 4 | 1024 >> 4 << 16 | 128 >> 4 << 32, "b": 2048 >> 4 | 128 >> 4 << 16 | 128 >> 4 << 32
}  # fmt: skip
"""Core matrices of 8 rows next to each other, the halves of K behind each other."""

COPY = """
mov.u32 %r0, %tid.x;
mov.u32 %r1, tiles;
ld.param.u64 %rd0, [k_param_0];
ld.param.u64 %rd1, [k_param_1];
ld.param.u64 %rd2, [k_param_2];
ld.param.u64 %rd3, [k_param_3];
mad.wide.u32 %rd4, %r0, 16, %rd1;
min.u32 %r2, %r0, 15;
mad.wide.u32 %rd5, %r2, 16, %rd2;
mad.wide.u32 %rd6, %r0, 4, %rd3;
mad.wide.u32 %rd7, %r0, 4, %rd0;
mad.lo.u32 %r3, %r0, 16, %r1;
mad.lo.u32 %r4, %r2, 16, %r1;
ld.global.b32 %r5, [%rd6];
setp.ne.u32 %p1, %r5, 0;
ld.global.v2.b64 {%rd12, %rd13}, [%rd5];
st.shared.v2.b64 [%r4+2048], {%rd12, %rd13};
"""
FROM_SHARED = """
mov.b64 %rd10, FILL;
mov.b64 %rd11, FILL;
@%p1 ld.global.v2.b64 {%rd10, %rd11}, [%rd4];
st.shared.v2.b64 [%r3], {%rd10, %rd11};
"""
FROM_REGISTERS = """
mov.b32 %r20, FILL;
mov.b32 %r21, FILL;
mov.b32 %r22, FILL;
mov.b32 %r23, FILL;
@%p1 ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd4];
"""
STARTED = "".join(f"mov.b32 %r{at}, 0;\n" for at in range(10, 14))
LOADED = """
mov.b32 %r10, 0;
@%p1 ld.global.b32 %r10, [%rd7];
mov.b32 %r11, 0;
mov.b32 %r12, 0;
mov.b32 %r13, 0;
"""
HALVES = "".join(f"mov.b32 %r{at}, 0;\n" for at in range(10, 12))


def stored(count: int) -> str:
    return "".join(f"st.global.b32 [%rd7+{512 * at}], %r{10 + at};\n" for at in range(count))


def product(a: str, adds: int = 1, kind: str = "f32") -> str:
    held = "{%r10, %r11, %r12, %r13}" if kind == "f32" else "{%r10, %r11}"
    turned = "1, 1, 0" if a.startswith("{") else "1, 1, 0, 0"
    return f"""
bar.sync 0;
mov.b64 %rd20, {DESCRIPTORS["a"]};
mov.b64 %rd21, {DESCRIPTORS["b"]};
setp.ne.u32 %p2, {adds}, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.{kind}.f16.f16 {held}, {a}, %rd21, %p2, {turned};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""


def leaking(
    kernel: Text, body: str, b: NDArray[np.float16], is_there: NDArray[np.bool_]
) -> list[int]:
    """In how many lanes each store writes padding. `b` has a row for each column of the product,
    `is_there` says by thread whether it loads."""
    shared = ".shared .align 1024 .b8 tiles[4096];\n"
    module = parse(kernel(COPY + body, 4, 128, shared), "snippet.ptx")
    (function,) = module.kernels()
    by_halves = np.concatenate([b[:, :HALF], b[:, HALF:]]).astype(np.float16)
    arrays = [
        np.zeros(512, dtype=np.uint32), np.ones(ROWS * DEPTH, dtype=np.float16),
        np.ascontiguousarray(by_halves), is_there.astype(np.uint32),
    ]  # fmt: skip
    outcome = run(module, function, (1, 1, 1), arrays, padding=Padding())
    assert not outcome.faults, outcome.faults
    found = {leak.instr.index: leak.lanes for leak in outcome.leaks}
    stores = [i for i in function.instrs if i.opcode == "st" and i.shape.space == "global"]
    return [found.get(store.index, 0) for store in stores]


def rows(*absent: int, half: int = 1) -> NDArray[np.bool_]:
    """All threads but those that copy a half of these rows."""
    there = np.ones(128, dtype=bool)
    there[[half * ROWS + row for row in absent]] = False
    return there


B = np.ones((COLUMNS, DEPTH), dtype=np.float16)
UPPER = np.concatenate([np.ones((COLUMNS, HALF)), np.zeros((COLUMNS, HALF))], axis=1)


@pytest.mark.parametrize(
    ("fill", "b", "lanes"), [(ONES, B, [4, 4, 0, 0]), (ZEROS, B, [0] * 4), (ONES, UPPER, [0] * 4)]
)
def test_a_row_of_a_tile_in_shared_memory(
    kernel: Text, fill: int, b: NDArray[np.float16], lanes: list[int]
) -> None:
    """Row 5 lies in two registers of four lanes; padding counts where it changes a sum."""
    body = FROM_SHARED.replace("FILL", str(fill)) + STARTED + product("%rd20") + stored(4)
    assert leaking(kernel, body, b, rows(5)) == lanes


def test_padding_that_is_written_over_is_forgotten(kernel: Text) -> None:
    again = "ld.global.v2.b64 {%rd14, %rd15}, [%rd4];\nst.shared.v2.b64 [%r3], {%rd14, %rd15};\n"
    body = FROM_SHARED.replace("FILL", str(ONES)) + again + STARTED + product("%rd20") + stored(4)
    assert leaking(kernel, body, B, rows(5)) == [0] * 4


@pytest.mark.parametrize(("fill", "lanes"), [(0x3C003C00, [4, 4, 4, 4]), (0, [0] * 4)])
def test_a_tile_in_registers(kernel: Text, fill: int, lanes: list[int]) -> None:
    """A lane holds a part of two rows, which all four lanes of those rows get a sum over."""
    a = "{%r20, %r21, %r22, %r23}"
    body = FROM_REGISTERS.replace("FILL", str(fill)) + STARTED + product(a) + stored(4)
    there = np.arange(128) != 9
    assert leaking(kernel, body, B, there) == lanes


@pytest.mark.parametrize("guard", ["@%p1 ", ""])
@pytest.mark.parametrize(("adds", "lanes"), [(1, [1, 0, 0, 0]), (0, [0] * 4)])
def test_what_is_added_to(kernel: Text, adds: int, lanes: list[int], guard: str) -> None:
    """A sum keeps its label, whether there is padding in a factor or not, and forgets it where it
    starts anew."""
    body = LOADED + FROM_SHARED.replace("@%p1 ", guard) + product("%rd20", adds) + stored(4)
    assert leaking(kernel, body.replace("FILL", "0"), B, np.arange(128) != 7) == lanes


def test_the_other_half_of_a_register_has_no_label(kernel: Text) -> None:
    """Only column 0 of B meets the padding: the halves of a word are told apart."""
    b = np.concatenate([B[:1], UPPER[1:]])
    halves = "shr.u32 %r10, %r10, 16;\nshr.u32 %r11, %r11, 16;\n"
    start = FROM_SHARED.replace("FILL", str(ONES)) + HALVES + product("%rd20", kind="f16")
    assert leaking(kernel, start + stored(2), b, rows(5)) == [1, 0]
    assert leaking(kernel, start + halves + stored(2), b, rows(5)) == [0, 0]


def test_what_is_done_twice_is_done_once(kernel: Text) -> None:
    """The second time around leaves the accumulator as the first one found it."""
    twice = product("%rd20") + product("%rd20")
    text = COPY + FROM_SHARED.replace("FILL", str(ONES)) + STARTED + twice + stored(4)
    found = []
    for padding in (None, Padding()):
        module = parse(kernel(text, 4, 128, ".shared .align 1024 .b8 tiles[4096];\n"), "s.ptx")
        out = np.zeros(512, dtype=np.uint32)
        arrays = [out, np.ones(1024, dtype=np.float16), B.copy(), rows(5).astype(np.uint32)]
        run(module, module.kernels()[0], (1, 1, 1), arrays, padding=padding)
        found.append(out)
    assert (found[0] == found[1]).all()
    assert (found[0].view(np.float32) == 2 * DEPTH).all()
