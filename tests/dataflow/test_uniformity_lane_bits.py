"""The planes of every integer operation, held against the operation on all thread indices."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.dataflow import lane_bits
from ptxlint.dataflow.lane_bits import Level, collapse, index_field, level, spread

BITS = 6
WORD = 0xFFFFFFFF
Number = Callable[[int], int]


def signed(value: int, width: int = 32) -> int:
    """The low bits of a value as a two's complement number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def random_number(random: Random) -> tuple[Number, int]:
    """An integer whose positions depend each on some bits of the thread index, and its planes."""
    planes = 0
    masks: list[tuple[int, int]] = []
    for position in range(32):
        mask = random.choice([0, 0, 0, 1 << random.randrange(BITS), random.randrange(1 << BITS)])
        masks.append((mask, random.randrange(1 << 30)))
        planes |= sum(1 << 32 * k + position for k in range(BITS) if mask >> k & 1)

    def number(index: int) -> int:
        out = 0
        for position, (mask, salt) in enumerate(masks):
            out |= (hash((index & mask, salt)) >> 7 & 1) << position
        return out

    return number, planes


def check(result: Number, planes: int) -> None:
    """No position may change with an index bit that its planes leave out."""
    for source in range(BITS):
        shown = planes >> 32 * source & WORD
        for index in range(1 << BITS):
            changed = result(index) ^ result(index ^ 1 << source)
            assert not changed & WORD & ~shown, (source, index, hex(changed), hex(shown))


def extract(a: int, position: int, length: int, is_signed: bool) -> int:
    """`bfe` by the text of PTX ISA."""
    if not length:
        return 0
    sign = is_signed and a >> min(position + length - 1, 31) & 1
    inside = [a >> position + i & 1 if position + i < 32 else sign for i in range(min(length, 32))]
    return sum((bit << i for i, bit in enumerate([*inside, *[sign] * (32 - len(inside))])), start=0)


COUNTS = st.integers(0, 40)
CONSTANTS = st.one_of(
    st.integers(0, WORD), st.sampled_from([0, 1, 3, 4, 5, 32, 96, WORD, 1 << 31, WORD - 31])
)
SETTINGS = settings(derandomize=True, deadline=None, max_examples=40)


@SETTINGS
@given(st.randoms(use_true_random=False), COUNTS, st.integers(0, 40), CONSTANTS)
def test_operations_with_constants(random: Random, n: int, length: int, c: int) -> None:
    a, p = random_number(random)
    check(lambda t: a(t) & c, lane_bits.keep(p, c))
    check(lambda t: a(t) << n, lane_bits.shift_left(p, n))
    check(lambda t: a(t) >> n, lane_bits.shift_right(p, n, False))
    check(lambda t: signed(a(t)) >> n, lane_bits.shift_right(p, n, True))
    for is_signed in (False, True):
        planes = lane_bits.field(p, n, length, is_signed)
        check(lambda t, s=is_signed: extract(a(t), n, length, s), planes)
    check(lambda t: a(t) + c, lane_bits.add_constant(p, c))
    check(lambda t: a(t) - c, lane_bits.add_constant(p, -c))
    check(lambda t: a(t) * c, lane_bits.times_constant(p, c))
    for width in (8, 16, 32):
        check(lambda t, w=width: a(t) & (1 << w) - 1, lane_bits.narrow(p, width))
        check(lambda t, w=width: signed(a(t), w), lane_bits.extend(p, width, True))


@SETTINGS
@given(st.randoms(use_true_random=False), CONSTANTS)
def test_order_comparisons(random: Random, bound: int) -> None:
    a, p = random_number(random)
    sources = lane_bits.at_least(p, bound)
    check(lambda t: -(a(t) >= bound), spread(sources))
    check(lambda t: -(signed(a(t)) >= signed(bound)), spread(sources))


@SETTINGS
@given(st.randoms(use_true_random=False), COUNTS, st.integers(0, 40))
def test_operations_on_two_numbers(random: Random, position: int, length: int) -> None:
    (a, p), (b, q) = random_number(random), random_number(random)
    check(lambda t: a(t) + b(t), lane_bits.carry(p | q))
    check(lambda t: a(t) * b(t), lane_bits.carry(p | q))
    mask = ((1 << length) - 1) << position & WORD
    planes = lane_bits.insert(p, q, position, length)
    check(lambda t: b(t) & ~mask | a(t) << position & mask, planes)


@SETTINGS
@given(st.randoms(use_true_random=False))
def test_collapse_names_the_sources(random: Random) -> None:
    _, p = random_number(random)
    assert collapse(p) == sum(1 << k for k in range(BITS) if p >> 32 * k & WORD)
    assert collapse(spread(collapse(p))) == collapse(p)


def test_shifts_lose_what_they_push_out() -> None:
    tid = index_field(0, 10)
    assert level(collapse(tid)) is Level.THREAD
    assert level(collapse(lane_bits.shift_right(tid, 5, False))) is Level.WARP
    assert level(collapse(lane_bits.shift_left(lane_bits.shift_left(tid, 20), 12))) is Level.GRID
    assert level(collapse(lane_bits.keep(tid, 0xFFFFFFE0))) is Level.WARP
    assert level(collapse(lane_bits.field(tid, 5, 4, True))) is Level.WARP


@pytest.mark.parametrize(("bound", "expected"), [(32, Level.WARP), (33, Level.THREAD)])
def test_a_bound_of_whole_warps_does_not_part_lanes(bound: int, expected: Level) -> None:
    assert level(lane_bits.at_least(index_field(0, 10), bound)) is expected


def test_levels_are_ordered_by_divergence() -> None:
    assert Level.GRID < Level.CTA < Level.WARP < Level.THREAD
    assert level(0) is Level.GRID
    assert level(lane_bits.CTA_BIT) is Level.CTA
    assert level(lane_bits.ANY_WARP) is Level.WARP
    assert level(lane_bits.ANY_THREAD) is Level.THREAD
