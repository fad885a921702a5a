"""What a round of a loop fetches for the next one, masked off where there is none."""

from __future__ import annotations

import pytest

from tests.dataflow.test_padding import statuses, tree

AHEAD = """
    .shared .align 16 .b8 cells[128];
    setp.lt.s32 %p8, %r50, 1;
    @%p8 bra END;
    mov.u32 %r30, cells;
    shl.b32 %r31, %r1, 2;
    add.s32 %r30, %r30, %r31;
    ld.global.b32 %r32, [%d1];
    st.shared.b32 [%r30], %r32;
    mov.b32 %r4, 0;
    mov.b32 %r6, 0;
LOOP:
    bar.sync 0;
    ld.shared.b32 %r33, [%r30];
    add.f32 %r4, %r4, %r33;
    bar.sync 0;
    add.s64 %d1, %d1, 128;
    add.s32 %r7, %r6, {ahead};
    setp.ne.s32 %p2, %r7, %r50;
    mov.b32 %r3, 0f3F800000;
    @%p2 ld.global.b32 %r3, [%d1];
    st.shared.b32 [%r30], %r3;
    add.s32 %r6, %r6, 1;
    setp.ne.s32 %p3, %r6, {limit};
    @%p3 bra LOOP;
"""


@pytest.mark.parametrize(
    ("ahead", "limit", "found"),
    [
        # Nothing of the padding is ever read.
        (1, "%r50", {}),
        # One round more reads what the last but one did not fetch.
        (0, "%r50", {"open": 1}),
        (2, "%r50", {"open": 1}),
        (1, "%r2", {"open": 1}),
    ],
)
def test_what_is_not_fetched_is_not_read(ahead: int, limit: str, found: dict[str, int]) -> None:
    body = AHEAD.format(ahead=ahead, limit=limit) + tree("add", "%r4", 10) + "END:\n"
    assert dict(statuses(body)) == found


REGISTERS = """
    ld.global.b32 %r3, [%d1];
    mov.b32 %r4, 0;
    mov.b32 %r6, 0;
LOOP:
    add.f32 %r33, %r3, 0f3F800000;
    add.f32 %r4, %r4, %r33;
    add.s32 %r6, %r6, 1;
    add.s64 %d1, %d1, 128;
    shl.b32 %r7, %r6, 4;
    add.s32 %r8, %r7, %r1;
    setp.lt.s32 %p2, %r8, {size};
    mov.b32 %r3, {fill};
    @%p2 ld.global.b32 %r3, [%d1];
    setp.lt.s32 %p3, %r6, 2;
    @%p3 bra LOOP;
"""
"""Tiles of 32 that begin at each 16th element; the first one is fetched before the loop, and 1 is
added to all elements."""


@pytest.mark.parametrize(
    ("size", "fill", "found"),
    [
        (40, "0fBF800000", {"proved": 1}),
        (33, "0fBF800000", {"proved": 1}),
        (32, "0fBF800000", {"proved": 1}),
        # The first tile is not masked, but a part of it lies beyond the size.
        (31, "0fBF800000", {"open": 1}),
        (40, "0", {"open": 1}),
    ],
)
def test_the_first_round_has_no_padding(size: int, fill: str, found: dict[str, int]) -> None:
    body = REGISTERS.format(size=size, fill=fill) + tree("add", "%r4", 10)
    assert dict(statuses(body)) == found
