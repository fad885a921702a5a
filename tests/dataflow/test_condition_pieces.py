"""A condition that others imply piece by piece, each of them about some threads."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.conditions import Condition, excludes
from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.polynomial import AtomTable
from tests.dataflow.test_padding import statuses, tree

PIECES = """
    .shared .align 16 .b8 cells[64];
    mov.u32 %r30, %ctaid.x; and.b32 %r30, %r30, 1; shl.b32 %r31, %r30, 4;
    and.b32 %r32, %r1, 15; add.s32 %r33, %r31, %r32;
    and.b32 %r34, %r1, 7; add.s32 %r35, %r31, %r34; add.s32 %r36, %r35, 8;
    mul.wide.u32 %d3, %r33, 4; add.s64 %d4, %d1, %d3;
    mul.wide.u32 %d3, %r35, 4; add.s64 %d5, %d2, %d3;
    setp.lt.s32 %p1, %r33, 24;
    mov.b32 %r3, 0f3F800000;
    @%p1 ld.global.b32 %r3, [%d4];
    ld.global.b32 %r40, [%d5];
    setp.lt.s32 %p2, %r36, {bound};
    mov.b32 %r41, 0;
    @%p2 ld.global.b32 %r41, [%d5+32];
    mov.u32 %r42, cells;
    shl.b32 %r43, %r34, 2; add.s32 %r44, %r42, %r43;
    st.shared.b32 [%r44], %r40;
    st.shared.b32 [%r44+32], %r41;
    bar.sync 0;
    shl.b32 %r45, %r32, 2; add.s32 %r46, %r42, %r45;
    ld.shared.b32 %r47, [%r46];
    mul.f32 %r4, %r3, %r47;
"""
"""16 of 24 columns in a block: those of a factor as threads hold them, those of the other one in
two registers, of which the first one always holds columns that there are."""


@pytest.mark.parametrize(
    ("bound", "found"),
    [
        (24, {"proved": 2}),
        # All that the second register holds in the second block is padding, or less than that.
        (20, {"proved": 2}),
        (28, {"open": 1, "proved": 1}),
        (32, {"open": 1}),
    ],
)
def test_columns_that_two_registers_hold(bound: int, found: dict[str, int]) -> None:
    body = PIECES.format(bound=bound) + tree("add", "%r4", 10, (8, 4, 2, 1))
    assert dict(statuses(body)) == found


@pytest.mark.parametrize(
    ("own", "other", "is_excluded"), [(-3, -1, True), (-1, -3, True), (-3, 0, False)]
)
def test_what_never_holds_is_excluded(own: int, other: int, is_excluded: bool) -> None:
    # Of a piece in which all bits are fixed only numbers are left.
    table = AtomTable()
    condition = Condition(0, Conjunct(table.constant(own)), 1)
    assert excludes(condition, Conjunct(table.constant(other))) == is_excluded
