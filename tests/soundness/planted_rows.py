"""Small kernels of one warp that reduce a row, with launches of whole rows and of short ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.inputs import GivenInputs, ZeroInputs
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.judge.masks import leaks, said
from ptxlint.frontends.ptx import parse
from ptxlint.launches import Launch, Scalar, Tensor

_HEAD = """
.version 8.0
.target sm_80
.address_size 64

.visible .entry row(.param .u64 .ptr .global .align 16 x_ptr,
    .param .u64 .ptr .global .align 16 out_ptr, .param .u32 n)
.reqntid 32
{
.reg .pred %p<4>;
.reg .b32 %r<40>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [x_ptr];
ld.param.u64 %rd2, [out_ptr];
ld.param.b32 %r1, [n];
mov.u32 %r2, %tid.x;
and.b32 %r2, %r2, 31;
mov.b32 %r30, %r2;
INDEX
setp.lt.s32 %p1, %r30, %r1;
mul.wide.s32 %rd3, %r2, 4;
add.s64 %rd1, %rd1, %rd3;
mov.b32 %r3, FILL;
@%p1 ld.global.b32 %r3, [%rd1];
"""
_END = """
setp.eq.s32 %p2, %r2, 0;
@%p2 st.global.b32 [%rd2], %r14;
ret;
}
"""
LENGTHS = (32, 21, 1)


def row_kernel(fill: str, formula: str, operator: str, index: str = "") -> str:
    """A kernel that makes `%r4` of the number `%r3` of each lane, which is `fill` where the index
    `%r30` is not below `n`, and reduces it over all lanes; `index` changes `%r30`."""
    tree = []
    held = "%r4"
    for at, distance in enumerate((16, 8, 4, 2, 1)):
        other, result = f"%r{20 + at}", f"%r{10 + at}"
        tree.append(f"shfl.sync.bfly.b32 {other}, {held}, {distance}, 31, -1;")
        tree.append(f"{operator}.f32 {result}, {held}, {other};")
        held = result
    head = _HEAD.replace("FILL", fill).replace("INDEX", index)
    return head + formula + "\n" + "\n".join(tree) + _END


def contradictions(text: str, numbers: NDArray[np.float32], lengths: tuple[int, ...]) -> list[str]:
    """Launches in which padding of a load gets out whose mask is called proved."""
    module = parse(text, "row.ptx")
    emulator = Emulator(module, module.kernels()[0])
    sites = said(emulator, None).proved
    if not sites:
        return []
    wrong = []
    for n in lengths:
        arguments = {
            "x_ptr": Tensor("float32", (32,), (1,), 0, 128, 0, 16, "", None),
            "out_ptr": Tensor("float32", (1,), (1,), 1, 4, 0, 16, "uninitialised", None),
            "n": Scalar("i32", n),
        }
        launch = Launch((1, 1, 1), (32, 1, 1), arguments)
        inputs = GivenInputs({"x_ptr": numbers}, ZeroInputs(), "row")
        if leaks(emulator, launch, None, inputs, sites):
            wrong.append(f"n = {n}")
    return wrong
