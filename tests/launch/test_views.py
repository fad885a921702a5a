"""Which bytes are a tensor's elements, and accesses that keep to them or do not."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
from ptxlint.launch.view_walk import off_elements
from ptxlint.launch.views import View, view_of
from ptxlint.launches import Argument, Launch, Scalar, Tensor, reach


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], room: int = 1 << 20) -> Tensor:
    return Tensor("float16", shape, strides, 0, room)


def bytes_of(some: Tensor) -> set[int]:
    """The bytes of all elements, one by one."""
    starts = {
        2 * sum(i * s for i, s in zip(index, some.strides, strict=True))
        for index in product(*map(range, some.shape))
    }
    return starts | {start + 1 for start in starts}


@pytest.mark.parametrize(
    ("shape", "strides", "view"),
    [
        ((4, 8), (8, 1), View((), 64, 64)),
        ((4, 8), (16, 1), View(((32, 4),), 16, 112)),
        ((8, 4), (1, 8), View((), 64, 64)),
        ((4, 8), (0, 1), View((), 16, 16)),
        ((4, 4), (16, 2), View(((32, 4), (4, 4)), 2, 110)),
        ((1, 8), (999, 1), View((), 16, 16)),
        ((2, 3, 8), (48, 16, 1), View(((32, 3), (96, 2))[::-1], 16, 176)),
        ((), (), View((), 2, 2)),
        ((5, 4), (1, 1), None),
        ((5, 4), (3, 1), None),
        ((0, 4), (4, 1), None),
    ],
)
def test_levels(shape: tuple[int, ...], strides: tuple[int, ...], view: View | None) -> None:
    assert view_of(tensor(shape, strides)) == view


def test_elements_are_those_that_are_counted() -> None:
    draw = random.Random(4)
    met = 0
    for _ in range(400):
        shape = tuple(draw.randint(1, 4) for _ in range(draw.randint(1, 3)))
        strides = tuple(draw.choice((0, 1, 2, 3, 4, 8, 12, 20)) for _ in shape)
        some = tensor(shape, strides)
        view = view_of(some)
        if view is None:
            continue
        met += 1
        own = bytes_of(some)
        assert view.end == reach(some) == max(own) + 1
        offsets = np.arange(-6, view.end + 6)
        for width in (1, 2, 4, 8):
            off = off_elements(view, offsets, width)
            wanted = [not own.issuperset(range(at, at + width)) for at in offsets.tolist()]
            assert off.tolist() == wanted, (some, width)
    assert met > 100


KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 y,
    .param .u32 n, .param .u32 m)
    .reqntid 32
{{
.reg .pred %p<6>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd4, [y];
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [m];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %tid.x;
setp.lt.s32 %p1, %r4, %r1;
{body}
ret;
}}
"""
ROW = """
mul.lo.s32 %r5, %r3, %r2;
add.s32 %r5, %r5, %r4;
mul.wide.s32 %rd2, %r5, 4;
add.s64 %rd3, %rd1, %rd2;
@%p1 ld.global.b32 %r6, [%rd3];
"""


def said(body: str, x: Tensor, n: int, m: int, grid: int = 4, y: Tensor | None = None) -> Any:
    arguments: dict[str, Argument] = {
        "x": x, "y": y or Tensor("float32", (64,), (1,), 1, 256),
        "n": Scalar("i32", n), "m": Scalar("i32", m),
    }  # fmt: skip
    launch = Launch((grid, 1, 1), (32, 1, 1), arguments, shared=0)
    item = Input("k.ptx", KERNEL.format(body=body), None, (launch,))
    return run([item], Options(select=("BND306",)))


def rows(stride: int, count: int = 4, columns: int = 20, room: int = 4000) -> Tensor:
    """Rows in a storage that has room for more."""
    return Tensor("float32", (count, columns), (stride, 1), 0, room)


@pytest.mark.parametrize(
    ("x", "n", "m", "status"),
    [
        pytest.param(rows(40), 20, 40, "proved", id="its own"),
        pytest.param(rows(40), 20, 20, "refuted", id="without gaps"),
        pytest.param(rows(21), 20, 20, "refuted", id="a gap of one"),
        pytest.param(rows(40), 21, 40, "open", id="one column too many"),
        pytest.param(rows(40), 20, 30, "open", id="by what is nobody's"),
        pytest.param(rows(0), 20, 0, "proved", id="expanded"),
        pytest.param(rows(0, room=80), 20, 0, "proved", id="expanded, all of its storage"),
        pytest.param(rows(0), 20, 20, "refuted", id="expanded, without gaps"),
        pytest.param(rows(20), 20, 40, "open", id="beyond the tensor"),
        pytest.param(rows(20, room=320), 20, 20, "", id="all of its storage"),
        pytest.param(rows(3, columns=4), 4, 3, "open", id="overlapping rows"),
    ],
)
def test_a_walk_over_rows(x: Tensor, n: int, m: int, status: str) -> None:
    report = said(ROW, x, n, m)
    assert [o.status for o in report.obligations if o.rule] == ([status] if status else [])
    assert len(report.findings) == (status == "refuted")


def test_what_is_not_run_may_go_further() -> None:
    further = """
        ld.global.b32 %r9, [%rd4];
        setp.gt.s32 %p2, %r9, 0;
        @%p2 ld.global.b32 %r10, [%rd1+3000];
        """
    assert {o.status for o in said(ROW + further, rows(40), 20, 20).obligations if o.rule} == {
        "open"
    }


def test_the_first_access_between_elements_is_shown() -> None:
    (finding,) = said(ROW, rows(40), 20, 20).findings
    assert finding.severity == "warning"
    assert finding.witness["ctaid"] == [1, 0, 0]
    assert finding.witness["tid"] == [0, 0, 0]
    assert finding.witness["offset"] == 80
    assert (
        "reads x 80 bytes from its first element, where [4, 20] with strides [40, 1] has none"
        in (finding.message)
    )
    assert "as if it lay without gaps" in finding.message


def test_the_strides_of_another_tensor() -> None:
    other = Tensor("float32", (4, 20), (30, 1), 1, 4000)
    (finding,) = said(ROW, rows(40), 20, 30, y=other).findings
    assert "by the strides of y" in finding.message


def test_a_large_grid_is_proved() -> None:
    report = said(ROW, rows(40, 1_000_000, room=10**9), 20, 40, 1_000_000)
    assert [o.status for o in report.obligations if o.rule] == ["proved"]


def test_programs_that_divide_their_number() -> None:
    body = """
        div.u32 %r7, %r3, 2;
        rem.u32 %r8, %r3, 2;
        mul.lo.s32 %r5, %r7, %r2;
        mad.lo.s32 %r5, %r8, 10, %r5;
        add.s32 %r5, %r5, %r4;
        mul.wide.s32 %rd2, %r5, 4;
        add.s64 %rd3, %rd1, %rd2;
        @%p1 st.global.b32 [%rd3], %r3;
        """
    assert {o.status for o in said(body, rows(40), 10, 40, 8).obligations if o.rule} == {"proved"}
    assert {o.status for o in said(body, rows(40), 10, 20, 8).obligations if o.rule} == {"refuted"}
