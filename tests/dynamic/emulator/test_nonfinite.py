"""NaN and infinities that are made of finite numbers: told where they were made once they are
stored, and not where they are thrown away, or came with the inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import run
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.sanitizer.not_finite import may_be_not_finite, not_finite, spelled
from ptxlint.frontends.ptx import parse

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "fixtures"))

from references import emulated  # noqa: E402

Kernel = Callable[..., str]
WATCHED = Sanitize(nonfinite=True)


def builds() -> list[Any]:
    """All right builds; many of them take too long for every time."""
    quick = {
        ("sm_80", "softmax"), ("sm_80", "flash_attention"), ("sm_80", "flash_fwd"),
        ("sm_80", "cross_entropy_fwd"), ("sm_80", "matmul_dot_fp16"), ("sm_90", "flash_fwd"),
        ("sm_90", "attention"), ("sm_90", "matmul_tma"), ("sm_90", "moe_gemm"),
        ("sm_90", "matmul_dot_fp8e5"), ("sm_90", "welford"),
    }  # fmt: skip
    return [
        pytest.param(arch, name, marks=[] if (arch, name) in quick else [pytest.mark.slow])
        for arch in ("sm_80", "sm_90")
        for name in emulated.names(arch)
        if "_buggy" not in name
    ]


@pytest.mark.parametrize(("arch", "name"), builds())
def test_right_kernels_store_nothing_of_the_kind(arch: str, name: str) -> None:
    build = emulated.build(name, arch)
    for sizes in build.reference.sizes(build.constants)[:2]:
        assert emulated.hold(build, sizes, sanitize=WATCHED).faults == []


# Kernels --------------------------------------------------------------------------------------
def softmax(x: NDArray[np.float32]) -> list[Fault]:
    module = parse((ROOT / "fixtures/ptx/sm_80/softmax.ptx").read_text(), "softmax.ptx")
    rows, columns = x.shape
    arguments = [np.zeros_like(x), x, columns, columns, columns]
    return run(
        module, module.kernels()[0], (rows, 1, 1), arguments, dynamic_shared=16, sanitize=WATCHED
    ).faults


def test_a_row_that_is_masked_as_a_whole() -> None:
    x = np.random.default_rng(0).standard_normal((4, 781)).astype(np.float32)
    assert softmax(x) == []
    x[2] = -np.inf
    (found,) = softmax(x)
    # x - max(x): an infinity comes with the input, NaN is made of two.
    assert (found.kind, found.instr.opcode, found.ctaid) == ("not_finite", "sub", (2, 0, 0))
    assert found.message.startswith("makes NaN of -inf and -inf, and it is stored")
    assert found.origin is not None
    assert found.origin.opcode == "st"
    # With NaN in the row the fills still make some, and it is not them that spoil the row.
    x[2] = np.nan
    assert softmax(x) == []


def test_a_sum_that_leaves_its_format() -> None:
    x = np.full((1, 781), 1e38, dtype=np.float32)
    x[0, 0] = -1e38
    # exp(x - max) is 0 or 1: nothing is made.
    assert softmax(x) == []


# Single steps ---------------------------------------------------------------------------------
START = """
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd0, [k_param_0];
  ld.param.u64 %rd1, [k_param_1];
  mad.wide.u32 %rd2, %r0, 4, %rd0;
  mad.wide.u32 %rd3, %r0, 4, %rd1;
  ld.global.b32 %r1, [%rd2];
  mov.u32 %r9, tile;
  mad.lo.s32 %r8, %r0, 4, %r9;
"""
TILE = ".shared .align 128 .b8 tile[2048];\n"
RCP = "  rcp.rn.f32 %r2, %r1;\n"
STORE = "  st.global.b32 [%rd3], %r2;\n"


def told(
    kernel: Kernel, *body: str, zero: int = 5, threads: int = 64, x: Any = None
) -> list[Fault]:
    """What is found where one thread gets 0 and all others 1, or `x`."""
    text = kernel(START + "".join(body), 2, threads, TILE)
    module = parse(text, "snippet.ptx")
    if x is None:
        x = np.ones(threads, dtype=np.float32)
        x[zero] = 0
    out = np.zeros(4096, dtype=np.float32)
    outcome = run(module, module.kernels()[0], (1, 1, 1), [x, out], sanitize=WATCHED)
    assert outcome.is_complete
    return outcome.faults


SHARED = """
  st.shared.b32 [%r8], %r2;
  bar.sync 0;
  xor.b32 %r7, %r0, 33;
  mad.lo.s32 %r7, %r7, 4, %r9;
  ld.shared.b32 %r2, [%r7];
"""
WAYS = [
    "",
    "  mov.b32 %r2, %r2;\n",
    "  shfl.sync.bfly.b32 %r2, %r2, 1, 31, -1;\n",
    "  shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;\n  add.f32 %r2, %r2, %r3;\n",
    SHARED,
    "  cvt.rn.f16x2.f32 %r2, %r2, %r1;\n",
    "  cvt.rn.bf16.f32 %rs1, %r2;\n  mov.b32 %r2, {%rs1, %rs1};\n",
    "  neg.f32 %r2, %r2;\n  max.f32 %r2, %r2, %r1;\n  mul.f32 %r2, %r2, %r2;\n"
    "  rcp.rn.f32 %r3, %r1;\n  add.f32 %r2, %r2, %r3;\n",
    "  setp.eq.f32 %p1, %r1, 0f00000000;\n  selp.b32 %r2, %r2, %r1, %p1;\n",
    "  or.b32 %r2, %r2, -2147483648;\n",
]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_is_followed_to_where_it_is_stored(kernel: Kernel, way: str) -> None:
    (found,) = told(kernel, RCP, way, STORE)
    assert (found.kind, found.instr.opcode, found.tid) == ("not_finite", "rcp", (5, 0, 0))
    assert found.message == "makes an infinity of 0, and it is stored to global memory"


INFINITE = "  or.b32 %r2, %r2, 2139095040;\n"
"""Makes an infinity out of bits: no floating-point instruction does."""
AWAY = [
    "  mov.b32 %r2, %r1;\n",
    "  setp.eq.f32 %p1, %r1, 0f00000000;\n  selp.b32 %r2, %r1, %r2, %p1;\n",
    "  setp.eq.f32 %p1, %r1, 0f00000000;\n  mov.b32 %r3, 0f7F800000;\n"
    "  selp.b32 %r2, %r3, %r2, %p1;\n",
    "  min.f32 %r2, %r2, %r1;\n",
    "  min.f32 %r2, %r2, %r1;\n" + INFINITE,
    "  neg.f32 %r2, %r2;\n  ex2.approx.f32 %r2, %r2;\n",
    SHARED.replace("st.shared.b32 [%r8], %r2", "st.shared.b32 [%r8], %r1"),
    "  st.shared.b32 [%r8], %r2;\n  st.shared.b32 [%r8], %r1;\n  ld.shared.b32 %r2, [%r8];\n"
    + INFINITE,
    "  st.shared.b32 [%r8], %r2;\n  cp.async.ca.shared.global [%r8], [%rd2], 4;\n"
    "  cp.async.wait_all;\n  ld.shared.b32 %r2, [%r8];\n" + INFINITE,
    "  ld.global.b32 %r2, [%rd2];\n" + INFINITE,
    "  setp.eq.u32 %p1, %r0, 5;\n  @%p1 mov.b32 %r2, 0;\n",
    "  setp.eq.u32 %p1, %r0, 5;\n  @%p1 ret;\n",
]


@pytest.mark.parametrize("way", AWAY)
def test_what_is_thrown_away_is_not_told(kernel: Kernel, way: str) -> None:
    assert told(kernel, RCP, way, STORE) == []


def test_a_guard_that_does_not_hold_makes_nothing(kernel: Kernel) -> None:
    guarded = "  setp.ne.f32 %p1, %r1, 0f00000000;\n  @%p1 rcp.rn.f32 %r2, %r1;\n"
    assert told(kernel, "  mov.b32 %r2, 0;\n", guarded, STORE) == []


def test_the_first_of_a_chain_is_told(kernel: Kernel) -> None:
    (found,) = told(kernel, RCP, "  sub.f32 %r2, %r2, %r2;\n", STORE)
    assert (found.instr.opcode, found.lanes) == ("rcp", 1)
    literal = "  mov.b32 %r2, 0f7F800000;\n  sub.f32 %r2, %r2, %r2;\n"
    (found,) = told(kernel, literal, STORE)
    assert (found.instr.opcode, found.lanes) == ("sub", 64)
    assert "NaN of inf and inf" in found.message


PRODUCTS = [
    ("mma", """
  mov.b32 %r3, {0};
  mov.b32 %r4, 0;
  mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16
    {{%r2, %r5}}, {{%r3, %r3}}, {{%r3}}, {{%r4, %r4}};
""", 32),
    ("wgmma", """
  mov.b32 %r3, {0};
  st.shared.b32 [%r8], %r3;
  st.shared.b32 [%r8+512], %r3;
  st.shared.b32 [%r8+1024], %r3;
  st.shared.b32 [%r8+1536], %r3;
  fence.proxy.async;
  bar.sync 0;
  shr.u32 %r6, %r9, 4;
  cvt.u64.u32 %rd5, %r6;
  or.b64 %rd5, %rd5, 0x0000001000080000;
  mov.b32 %r2, 0;
  mov.b32 %r5, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {{%r2, %r5}}, %rd5, %rd5, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
""", 128),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "body", "threads"), PRODUCTS)
def test_a_product_that_leaves_its_format(
    kernel: Kernel, opcode: str, body: str, threads: int
) -> None:
    ones = np.ones(threads, dtype=np.float32)
    large, small, infinite = (f"0x{word:04x}{word:04x}" for word in (0x7BFF, 0x3C00, 0x7C00))
    (found,) = told(kernel, body.format(large), STORE, threads=threads, x=ones)
    assert (found.instr.opcode, found.tid) == (opcode, (0, 0, 0))
    assert "makes an infinity of finite factors" in found.message
    assert told(kernel, body.format(small), STORE, threads=threads, x=ones) == []
    # An infinity that is there before makes none.
    assert told(kernel, body.format(infinite), STORE, threads=threads, x=ones) == []


def test_a_tile_that_a_bulk_copy_stores(kernel: Kernel) -> None:
    bulk = """
  st.shared.b32 [%r8], %r2;
  fence.proxy.async;
  bar.sync 0;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r9], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
"""
    (found,) = told(kernel, RCP, bulk)
    assert (found.instr.opcode, found.tid) == ("rcp", (5, 0, 0))
    assert told(kernel, "  mov.b32 %r2, %r1;\n", bulk) == []


# Formats --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "width", "nan", "infinite", "largest"),
    [
        ("f16", 16, 0x7E00, 0xFC00, 0x7BFF), ("bf16", 16, 0x7FC0, 0x7F80, 0x7F7F),
        ("f32", 32, 0x7FC00000, 0xFF800000, 0x7F7FFFFF), ("e5m2", 8, 0x7E, 0xFC, 0x7B),
        ("f64", 64, 0x7FF8 << 48, 0xFFF << 52, (0x7FF << 52) - 1), ("e4m3", 8, 0xFF, None, 0x7E),
    ],
)  # fmt: skip
def test_bits_of_each_format(
    kind: str, width: int, nan: int, infinite: int | None, largest: int
) -> None:
    word = np.array([nan, infinite or 0, largest, 0], dtype=f"u{width // 8}")
    found = not_finite(word, kind)
    assert found is not None
    assert found.nan.tolist() == [True, False, False, False]
    assert found.infinite.tolist() == [False, infinite is not None, False, False]
    assert not_finite(word[2:], kind) is None
    if width > 8:
        assert may_be_not_finite(word).tolist()[:2] == [True, True]


def test_packed_halves_count_both() -> None:
    word = np.array([0x7C003C00, 0x3C007E00, 0x3C003C00], dtype=np.uint32)
    found = not_finite(word, "f16x2")
    assert found is not None
    assert (found.nan.tolist(), found.infinite.tolist()) == (
        [False, True, False], [True, False, False],
    )  # fmt: skip
    assert spelled(word[:1], "f16x2") == "(1, inf)"
    assert spelled(np.float32([0.5]), "f32") == "0.5"
