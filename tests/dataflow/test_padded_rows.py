"""Keys beyond the size that a causal mask keeps for queries beyond the size alone."""

from __future__ import annotations

import pytest

from tests.dataflow.test_padding import statuses, tree

CAUSAL = """
    and.b32 %r30, %r1, 7;
    shr.u32 %r31, %r1, 3;
    add.s32 %r32, %r31, 4;
    mul.wide.u32 %d3, %r30, 4;
    add.s64 %d4, %d1, %d3;
    mul.wide.u32 %d3, %r32, 4;
    add.s64 %d5, %d1, %d3;
    setp.lt.s32 %p1, %r30, %r2;
    setp.lt.s32 %p2, %r32, {rows};
    mov.b32 %r3, 0;
    @%p1 ld.global.b32 %r3, [%d4];
    mov.b32 %r40, 0;
    {guard}ld.global.b32 %r40, [%d5];
    fma.rn.f32 %r41, %r3, %r40, 0f3F800000;
    add.s32 %r42, %r32, {plus};
    setp.{relation}.s32 %p3, %r42, %r30;
    selp.f32 %r4, %r41, {other}, %p3;
"""
"""Eight keys for each of the rows 4 to 7, with 1 added to what is multiplied."""


def verdicts(
    rows: str = "%r2",
    guard: str = "@%p2 ",
    plus: int = 0,
    relation: str = "ge",
    other: str = "0f00000000",
) -> dict[str, int]:
    body = CAUSAL.format(rows=rows, guard=guard, plus=plus, relation=relation, other=other)
    return dict(statuses(body + tree("add", "%r4", 10, (4, 2, 1))))


def test_keys_up_to_the_row_are_padding_in_padded_rows_alone() -> None:
    assert verdicts() == {"proved": 2}
    assert verdicts(relation="gt") == {"proved": 2}
    assert verdicts(plus=-1) == {"proved": 2}


def test_one_key_more_or_another_bound_lets_padding_in() -> None:
    assert verdicts(plus=1)["proved"] == 1
    assert verdicts(relation="le")["proved"] == 1
    assert verdicts(rows="%r50")["proved"] == 1
    assert verdicts(other="0f40000000")["proved"] == 1
    # Rows that are no padding take in what they keep.
    assert "proved" not in verdicts(guard="")


@pytest.mark.parametrize("plus", [-2, 0, 2, 8])
def test_against_all_sizes(plus: int) -> None:
    lets_in = any(
        row < size <= key <= row + plus
        for size in range(16) for row in range(4, 8) for key in range(8)
    )  # fmt: skip
    assert (verdicts(plus=plus) == {"proved": 2}) != lets_in
