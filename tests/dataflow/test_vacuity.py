"""Padding that no launch has where it is used, or only blocks that store nothing."""

from __future__ import annotations

import pytest

from tests.dataflow.test_padding import load, statuses, tree

SUM = (
    "mov.u32 %r59, %ctaid.x;\nshl.b32 %r59, %r59, 5;\n{enter}mov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
    f"LOOP:\nadd.s32 %r9, %r6, %r1;\nsetp.lt.s32 %p1, %r9, %r2;\n{load('0')}"
    "add.f32 %r3, %r3, 0f3F800000;\nadd.f32 %r4, %r4, %r3;\nadd.s32 %r6, %r6, 32;\n"
    "setp.{goes_on}.s32 %p2, %r6, %r59;\n@%p2 bra LOOP;\n"
)
"""A sum of padding that is 1, over all tiles before that of the block."""
ENTER = "setp.eq.s32 %p3, %r59, 0;\n@%p3 bra END;\n"


def masked(bound: str, plus: int) -> str:
    """The sum, stored where the first row of the block is below a bound."""
    guard = f"add.s32 %r58, {bound}, {plus};\nsetp.lt.s32 %p4, %r59, %r58;\n"
    return guard + tree("add", "%r4", 10).replace("st.global", "@%p4 st.global")


def summed(after: str, goes_on: str = "lt", enter: str = ENTER) -> dict[str, int]:
    return dict(statuses(SUM.format(enter=enter, goes_on=goes_on) + after + "END:\n"))


@pytest.mark.parametrize(
    ("plus", "status"), [(0, "proved"), (1, "proved"), (2, "open"), (32, "open"), (-9, "proved")]
)
def test_a_block_that_lies_beyond_the_size_stores_nothing(plus: int, status: str) -> None:
    # Rows before that of the block are beyond the size only where the block is too.
    assert summed(masked("%r2", plus)) == {status: 1}


def test_rounds_may_be_counted_till_they_are_equal() -> None:
    assert summed(masked("%r2", 0), "ne") == {"proved": 1}
    # Without a look at the first round the count may run past its end.
    assert summed(masked("%r2", 0), "ne", "") == {"open": 1}


def test_a_store_under_another_bound_takes_the_padding() -> None:
    assert summed(masked("%r50", 0)) == {"open": 1}
    assert summed(masked("%r2", 0) + "st.global.b32 [%d2+4], %r4;\n") == {"open": 1}
    assert summed(masked("%r2", 0) + "red.global.add.f32 [%d2+4], %r4;\n") == {"open": 1}
    barrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
    assert summed(barrier + masked("%r2", 0)) == {"open": 1}
    # What stays in the block is no matter.
    assert summed(masked("%r2", 0) + "st.local.b32 [%d2+4], %r4;\n") == {"proved": 1}


def test_a_loop_that_goes_on_for_one_round_more_meets_padding() -> None:
    assert summed(masked("%r2", 0), "le") == {"open": 1}


@pytest.mark.parametrize(
    ("relation", "status"), [("ge", "proved"), ("gt", "proved"), ("lt", "open")]
)
def test_a_block_may_have_returned_before(relation: str, status: str) -> None:
    early = f"setp.{relation}.s32 %p5, %r59, %r2;\n@%p5 bra END;\n"
    assert summed(tree("add", "%r4", 10), "lt", early + ENTER) == {status: 1}


@pytest.mark.parametrize(("rounding", "found"), [(15, {"proved": 1}), (31, {"open": 1})])
def test_a_recurrence_over_all_tiles_meets_none_beyond_the_size(
    rounding: int, found: dict[str, int]
) -> None:
    # A tile that begins at or beyond the size is no tile of (size + 15) / 16.
    body = (
        f"setp.lt.s32 %p3, %r2, 1;\n@%p3 bra END;\nadd.s32 %r59, %r2, {rounding};\n"
        "shr.s32 %r59, %r59, 4;\nmov.b32 %r4, 0;\nmov.b32 %r6, 0;\n"
        f"LOOP:\nshl.b32 %r9, %r6, 4;\nsetp.lt.s32 %p1, %r9, %r2;\n{load('0f3F800000')}"
        "mul.f32 %r4, %r4, 0f3F000000;\nadd.f32 %r4, %r4, %r3;\nadd.s32 %r6, %r6, 1;\n"
        "setp.lt.s32 %p2, %r6, %r59;\n@%p2 bra LOOP;\n" + tree("add", "%r4", 10) + "END:\n"
    )
    assert dict(statuses(body)) == found
