"""What is said of accesses under a launch: elements, witnesses, and what is settled by running."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
from ptxlint.launch.questions import element_at
from ptxlint.launches import Argument, Launch, Scalar, Tensor


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "float16") -> Tensor:
    """A tensor in a storage that is large enough."""
    return Tensor(dtype, shape, strides, 0, 1 << 20)


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "element"),
    [
        ((10,), (1,), 18, (9,)),
        ((10,), (1,), 20, (10,)),
        ((10,), (1,), -2, (-1,)),
        ((3, 4), (4, 1), 2 * 7, (1, 3)),
        ((3, 4), (4, 1), 2 * 12, (3, 0)),
        ((4, 3), (1, 4), 2 * 7, (3, 1)),
        ((1, 4), (99, 1), 2 * 5, (0, 5)),
        ((1,), (1,), 2 * 3, (3,)),
        ((3, 4), (5, 1), 2 * 4, None),
        ((3, 4), (0, 1), 2, None),
        ((), (), 0, None),
        ((4,), (2,), 2, None),
    ],
)
def test_the_element_at_an_offset(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, element: Any
) -> None:
    assert element_at(tensor(shape, strides), offset) == element


# Memory decides how often the first loop goes round, which no single thread gets past.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n, .param .u64 .ptr .global
    .align 16 flag)
    .reqntid 32
{
.reg .pred %p<6>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd4, [flag];
ld.param.u32 %r1, [n];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %tid.x;
SPIN:
ld.global.acquire.gpu.b32 %r8, [%rd4];
setp.eq.s32 %p2, %r8, 0;
@%p2 bra SPIN;
mad.lo.s32 %r6, %r3, 32, %r4;
mul.wide.s32 %rd2, %r6, 4;
add.s64 %rd3, %rd1, %rd2;
setp.lt.s32 %p1, %r6, %r1;
@%p1 st.global.b32 [%rd3], %r4;
ret;
}
"""


def checked(rows: int, n: int, grid: int) -> Any:
    """The kernel on a tensor of rows of 10."""
    arguments: dict[str, Argument] = {
        "x": Tensor("float32", (rows, 10), (10, 1), 0, 40 * rows),
        "n": Scalar("i32", n),
        "flag": Tensor("int32", (1,), (1,), 1, 4),
    }
    launch = Launch((grid, 1, 1), (32, 1, 1), arguments, shared=0)
    options = Options(select=("BND301", "BND302", "BND303", "BND305"))
    return run([Input("k.ptx", KERNEL, None, (launch,))], options)


@pytest.mark.parametrize("grid", [4, 1_000_000])
def test_a_thread_behind_a_loop_that_memory_decides(grid: int) -> None:
    (finding,) = checked(10, 101, grid).findings
    assert finding.rule == "BND302"
    assert finding.witness == {
        "ctaid": [3, 0, 0], "tid": [4, 0, 0], "offset": 400, "element": [10, 0], "value": None,
        "values": {"n": 101},
    }  # fmt: skip
    assert "program (3, 0, 0), thread (4, 0, 0) writes x at element [10, 0] of [10, 10]" in (
        finding.message
    )


def test_the_same_kernel_is_proved_where_it_is_right() -> None:
    report = checked(10, 100, 4)
    assert not report.findings
    assert {o.status for o in report.obligations if o.rule} == {"proved"}
