"""Sums and maxima over a part of an axis, of which all may be padding, and what is made of them."""

from __future__ import annotations

import pytest

from tests.dataflow.test_padding import load, statuses, tree

DOUBLED = "mul.f32 %r20, %r13, 0f40000000;\n"
EXPONENTIAL = "ex2.approx.f32 %r20, %r13;\n"
BARE = "mov.b32 %r20, %r13;\nmul.f32 %r20, %r20, 0f3F800000;\n"


def parted(
    bound: str, between: str, operators: tuple[str, str] = ("add", "add"), fill: str = "0"
) -> dict[str, int]:
    """Every eighth element is combined, then the eight results."""
    first = tree(operators[0], "%r3", 10, (16, 8)).replace("st.global.b32 [%d2], %r13;", between)
    second = tree(operators[1], "%r20", 30, (4, 2, 1))
    body = f"setp.lt.s32 %p1, %r1, {bound};\n{load(fill)}{first}{second}"
    return dict(statuses(body))


@pytest.mark.parametrize(
    ("bound", "between", "status"),
    [
        # Below 8 elements some parts are padding as a whole: what they sum up to is 0.
        ("%r2", DOUBLED, "proved"),
        ("4", DOUBLED, "proved"),
        ("4", EXPONENTIAL, "open"),
        ("%r2", EXPONENTIAL, "refuted"),
        # From 8 elements on each part has one that is none.
        ("8", EXPONENTIAL, "proved"),
        ("7", EXPONENTIAL, "open"),
        ("20", EXPONENTIAL, "proved"),
    ],
)
def test_a_sum_of_sums(bound: str, between: str, status: str) -> None:
    assert parted(bound, between) == {status: 1}


def test_padding_of_the_first_sum_counts_wherever_it_lies() -> None:
    assert parted("%r2", DOUBLED, fill="0f3F800000") == {"refuted": 1}


@pytest.mark.parametrize(
    ("fill", "status"), [("0fFF800000", "proved"), ("0", "open"), ("0f7F800000", "open")]
)
def test_a_maximum_of_maxima(fill: str, status: str) -> None:
    assert parted("4", BARE, ("max", "max"), fill) == {status: 1}


def test_a_sum_of_maxima_takes_their_fill() -> None:
    assert parted("4", BARE, ("max", "add"), "0fFF800000") == {"open": 1}
    assert parted("20", BARE, ("max", "add"), "0fFF800000") == {"proved": 1}


@pytest.mark.parametrize(("fill", "status"), [("0", "proved"), ("0f3F800000", "open")])
def test_a_scan_of_products(fill: str, status: str) -> None:
    # The first step multiplies anew what its own lane holds.
    scan = """
        mul.f32 %r20, %r3, 0f40400000;
        shfl.sync.up.b32 %r21, %r20, 1, 0, -1;
        setp.eq.s32 %p3, %r1, 0;
        fma.rn.f32 %r22, %r3, 0f40400000, %r21;
        selp.f32 %r23, %r20, %r22, %p3;
        shfl.sync.up.b32 %r24, %r23, 2, 0, -1;
        setp.gt.u32 %p4, %r1, 1;
        add.f32 %r25, %r23, %r24;
        selp.f32 %r26, %r25, %r23, %p4;
        st.global.b32 [%d2], %r26;
    """
    assert dict(statuses(load(fill) + scan)) == {status: 1}
