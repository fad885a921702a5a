"""Where padding gets by bulk copies and by stores that an mbarrier counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Emulator, Padding
from ptxlint.dynamic.emulator.tensor_map import of_tensor
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

HEAD = """
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r4, bar;
  setp.eq.u32 %p1, %r0, 0;
  ld.param.u64 %rd0, [k_param_0];
  ld.param.u64 %rd1, [k_param_1];
  ld.param.u64 %rd2, [k_param_2];
  mad.lo.u32 %r2, %r0, 16, %r1;
  mad.wide.u32 %rd3, %r0, 16, %rd0;
  @%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
  bar.sync 0;
"""
PADDED = """
  setp.ne.u32 %p4, %r0, 5;
  mov.b64 %rd4, 7;
  mov.b64 %rd5, 7;
  @%p4 ld.global.v2.b64 {%rd4, %rd5}, [%rd3];
"""
LABELLED = PADDED + "st.shared.v2.b64 [%r2], {%rd4, %rd5};\nbar.sync 0;\n"
"""Of the tile of 512 bytes those from 80 to 96 are padding."""
WAIT = """
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;
  @!%p3 bra $wait;
"""
OUT = """
  ld.shared.v2.b64 {%rd6, %rd7}, [%r2+AT];
  st.global.v2.b64 [%rd3], {%rd6, %rd7};
"""
EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], SIZE;\nbar.sync 0;\n"
TILE = """
  @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r1], [%rd1, {X, Y}], [%r4];
"""
STORE = """
  @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {X, Y}], [%r1];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
"""
DECLARED = ".shared .align 1024 .b8 tile[2048];\n.shared .align 8 .b64 bar;\n"


def leaking(
    kernel: Text, body: str, shape: tuple[int, int] = (8, 16), only: str = "ld cp"
) -> list[tuple[str, int]]:
    """The instructions that write padding to global memory and in how many lanes. `%rd1` points to
    the map of a float32 tensor of a shape in tiles of 8 times 16, `%rd2` to the tensor, `%rd0` to
    512 bytes. Padding is that of the opcodes `only`."""
    module = parse(kernel(HEAD + body, 3, 32, DECLARED), "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena = emulator.arena()
    out = arena.allocate("out", 512, np.zeros(512, dtype=np.uint8))
    tensor = arena.allocate("tensor", 8192, np.ones(8192, dtype=np.uint8))
    map_ = of_tensor(tensor.start, "float32", shape, (64, 1), (8, 16), swizzle=0)
    placed = arena.allocate("map", 128, np.frombuffer(map_.encode(), dtype=np.uint8))
    values = {
        f"k_param_{at}": one.start.to_bytes(8, "little")
        for at, one in enumerate((out, placed, tensor))
    }
    sites = frozenset(i.index for i in emulator.kernel.instrs if i.opcode in only.split())
    outcome = emulator.run((1, 1, 1), (32, 1, 1), values, arena, padding=Padding(sites))
    assert not outcome.faults, outcome.faults
    return [(leak.instr.opcode, leak.lanes) for leak in outcome.leaks]


def with_numbers(text: str, **numbers: int) -> str:
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text


LOADED = EXPECT + TILE + WAIT


@pytest.mark.parametrize(
    ("shape", "at", "pieces"),
    [((8, 16), (0, 0), 0), ((5, 16), (0, 0), 12), ((8, 13), (0, 0), 8), ((8, 16), (4, 2), 14)],
)
def test_elements_outside_of_a_tensor_are_padding(
    kernel: Text, shape: tuple[int, int], at: tuple[int, int], pieces: int
) -> None:
    body = with_numbers(LOADED + OUT, SIZE=512, X=at[0], Y=at[1], AT=0)
    found = leaking(kernel, body, shape)
    assert found == ([("st", pieces)] if pieces else [])
    assert leaking(kernel, body, shape, "") == []
    assert leaking(kernel, LABELLED + body, shape, "ld") == []


@pytest.mark.parametrize(
    "copy",
    [
        TILE,
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%r1], [%rd2], 512, [%r4];",
    ],
)
def test_what_is_copied_over_padding_has_no_label(kernel: Text, copy: str) -> None:
    after = with_numbers(EXPECT + copy + WAIT + OUT, SIZE=512, X=0, Y=0, AT=0)
    assert leaking(kernel, LABELLED + after) == []
    assert leaking(kernel, LABELLED + OUT.replace("AT", "0")) == [("st", 1)]


@pytest.mark.parametrize(
    ("shape", "at", "leaks"),
    # Padding lies in columns 4 to 7 of row 1.
    [((8, 16), (0, 0), 1), ((1, 16), (0, 0), 0), ((8, 4), (0, 0), 0), ((8, 16), (-8, 0), 0),
     ((8, 16), (-4, 0), 1), ((8, 16), (8, 0), 1), ((8, 16), (9, 0), 1), ((8, 16), (12, 0), 0)],
)  # fmt: skip
def test_a_tile_that_is_stored(
    kernel: Text, shape: tuple[int, int], at: tuple[int, int], leaks: int
) -> None:
    body = LABELLED + with_numbers(STORE, X=at[0], Y=at[1])
    assert leaking(kernel, body, shape=shape) == [("cp", 1)] * leaks
    reduced = body.replace("cp.async", "cp.reduce.async").replace("cta.bulk", "cta.add.bulk")
    reduced = reduced.replace("cp.reduce.async.bulk.commit", "cp.async.bulk.commit")
    reduced = reduced.replace("cp.reduce.async.bulk.wait", "cp.async.bulk.wait")
    assert leaking(kernel, reduced, shape=shape) == [("cp", 1)] * leaks


@pytest.mark.parametrize(("start", "size", "leaks"), [(64, 32, 1), (0, 80, 0), (96, 64, 0)])
def test_bytes_that_are_stored(kernel: Text, start: int, size: int, leaks: int) -> None:
    body = f"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1+{start}], {size};\n"
    assert leaking(kernel, LABELLED + body) == [("cp", 1)] * leaks


@pytest.mark.parametrize(("to", "leaks"), [(1024, 1), (1104, 0), (1040, 1)])
def test_bytes_that_go_elsewhere_in_shared_memory(kernel: Text, to: int, leaks: int) -> None:
    copy = f"""
      @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
        [%r1+{to}], [%r1], 512, [%r4];
    """
    one = "setp.eq.u32 %p6, %r0, 6;\n" if to == 1040 else "setp.eq.u32 %p6, %r0, 5;\n"
    out = one + OUT.replace("AT", "1024").replace("st.", "@%p6 st.")
    body = LABELLED + EXPECT.replace("SIZE", "512") + copy + WAIT + out
    assert leaking(kernel, body) == [("st", 1)] * leaks


@pytest.mark.parametrize(
    ("name", "lanes"), [("st.async", 1), ("red.async.relaxed.cluster", 2), ("none", 1)]
)
def test_stores_that_an_mbarrier_counts(kernel: Text, name: str, lanes: int) -> None:
    """What is stored takes its label along and ends the old one, which what is added to keeps:
    from one lane to the next."""
    kind = ".add.u32" if name.startswith("red") else ".b32"
    store = f"""
      mov.b64 {{%r20, %r21}}, %rd4;
      add.u32 %r22, %r0, 1;
      and.b32 %r22, %r22, 31;
      mad.lo.u32 %r22, %r22, 16, %r1;
      {name}.shared::cluster.mbarrier::complete_tx::bytes{kind} [%r22], %r20, [%r4];
    """
    size = EXPECT.replace("SIZE", "128")
    body = LABELLED + (size + store + WAIT if name != "none" else "")
    word = "ld.shared.b32 %r24, [%r2];\nst.global.b32 [%rd3], %r24;\n"
    assert leaking(kernel, body + word) == [("st", lanes)]
