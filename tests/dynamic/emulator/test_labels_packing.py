"""Labels of numbers that share a register."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Padding, run
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

LOADS = """
ld.param.u64 %rd0, [k_param_0];
ld.param.u64 %rd1, [k_param_1];
mov.u32 %r0, %tid.x;
setp.ne.u32 %p1, %r0, 3;
mov.b32 %r1, 0;
mov.b32 %r2, 0;
@FIRST ld.global.b32 %r1, [%rd1];
@SECOND ld.global.b32 %r2, [%rd1];
"""


def leaking(kernel: Text, body: str, first: bool, second: bool) -> list[bool]:
    """Whether the store of each half writes the padding of one word or of both: of lane 3."""
    text = LOADS.replace("FIRST", "%p1" if first else "%p2")
    text = text.replace("SECOND", "%p1" if second else "%p2")
    text = text.replace("mov.b32 %r1, 0;", "mov.b32 %r1, 0;\nsetp.eq.u32 %p2, %r0, %r0;")
    module = parse(kernel(text + body, 2, 32), "snippet.ptx")
    (function,) = module.kernels()
    arrays = [np.zeros(64, dtype=np.uint32), np.ones(1, dtype=np.float32)]
    outcome = run(module, function, (1, 1, 1), arrays, padding=Padding())
    assert not outcome.faults, outcome.faults
    found = {leak.instr.index: leak.lanes for leak in outcome.leaks}
    stores = [i for i in function.instrs if i.opcode == "st"]
    assert set(found.values()) <= {1}
    return [store.index in found for store in stores]


HALVES = "mov.b32 {%rs1, %rs2}, %r3;\nst.global.b16 [%rd0], %rs1;\nst.global.b16 [%rd0+2], %rs2;\n"
BYTES = "st.global.b8 [%rd0], %rs1;\nshr.u16 %rs2, %rs1, 8;\nst.global.b8 [%rd0+1], %rs2;\n"


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        "cvt.rn.bf16x2.f32 %r3, %r1, %r2;\n" + HALVES,
        "cvt.rn.f16x2.f32 %r3, %r1, %r2;\n" + HALVES,
        "cvt.rn.satfinite.e4m3x2.f32 %rs1, %r1, %r2;\n" + BYTES,
        "cvt.rn.f16x2.f32 %r3, %r1, %r2;\ncvt.rn.satfinite.e5m2x2.f16x2 %rs1, %r3;\n" + BYTES,
        "cvt.rn.satfinite.e4m3x2.f32 %rs1, %r1, %r2;\ncvt.rn.f16x2.e4m3x2 %r3, %rs1;\n" + HALVES,
    ],
)
def test_each_number_has_its_own(kernel: Text, body: str, first: bool, second: bool) -> None:
    """The first operand goes into the upper half."""
    assert leaking(kernel, body, first, second) == [second, first]
