"""Combine trees: those of the fixtures by known answers, and small kernels for each form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ptxlint.dataflow.reductions import Reduction, Reductions, ReductionsAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
HEAD = """.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u32 n) .reqntid 64
{
.shared .align 16 .b8 cells[256];
.reg .pred %p<9>;
.reg .b16 %h<20>;
.reg .b32 %r<40>;
.reg .b64 %d<20>;
"""


def of(text: str) -> Reductions:
    module = parse(text, "k.ptx")
    (function,) = [f for f in module.functions if not f.is_declaration]
    return Facts(module, function).get(ReductionsAnalysis)


def body(text: str) -> list[Reduction]:
    return of(HEAD + text + "ret;\n}\n").all


def summary(r: Reduction) -> tuple[str, str, int, int, bool, bool]:
    return r.operator, r.type, len(r.leaves), r.lanes, r.warps, bool(r.loops)


FIXTURES = [
    ("softmax", {("max", "f32", 8, 31, True, False): 1, ("add", "f32", 8, 31, True, False): 1}),
    ("softmax_bf16_small",
     {("max", "f32", 4, 31, False, False): 1, ("add", "f32", 4, 31, False, False): 1}),
    ("rmsnorm", {("add", "f32", 8, 31, True, False): 1}),
    ("cross_entropy_fwd",
     {("max", "f32", 16, 31, True, False): 1, ("add", "f32", 16, 31, True, False): 1}),
    ("zero_fill",
     {("max", "f32", 8, 31, True, False): 1, ("add", "f32", 8, 31, True, False): 1}),
    ("layer_norm_bwd_reduce", {("add", "f32", 6, 19, True, True): 8}),
    ("elu", {}),
    ("argmax", {("max", "f32", 8, 31, True, False): 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wanted"), FIXTURES, ids=[name for name, _ in FIXTURES])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_trees_of_a_fixture(arch: str, name: str, wanted: dict[object, int]) -> None:
    found = of((PTX / arch / f"{name}.ptx").read_text())
    assert Counter(map(summary, found.all)) == wanted


@pytest.mark.parametrize("name", ["softmax", "rmsnorm", "layer_norm_fwd", "zero_fill", "attention"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_no_exchange_of_a_fixture_is_left_over(arch: str, name: str) -> None:
    found = of((PTX / arch / f"{name}.ptx").read_text())
    assert found.exchanges
    assert {e.index for e in found.exchanges} == found.recognised


def test_a_fused_last_product() -> None:
    (r,) = body(
        """
        ld.global.b32 %r1, [%d1];
        ld.global.b32 %r2, [%d2];
        mul.f32 %r3, %r1, %r2;
        shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;
        fma.rn.f32 %r5, %r2, %r1, %r4;
        st.global.b32 [%d3], %r5;
        """
    )
    assert summary(r) == ("add", "f32", 1, 16, False, False)


def test_another_product_is_not_fused() -> None:
    assert not body(
        """
        ld.global.b32 %r1, [%d1];
        ld.global.b32 %r2, [%d2];
        mul.f32 %r3, %r1, %r2;
        shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;
        fma.rn.f32 %r5, %r1, %r1, %r4;
        st.global.b32 [%d3], %r5;
        """
    )


def test_halves_go_through_words() -> None:
    (r,) = body(
        """
        ld.global.b16 %h1, [%d1];
        cvt.u32.u16 %r1, %h1;
        shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
        cvt.u16.u32 %h2, %r2;
        max.f16 %h3, %h1, %h2;
        st.global.b16 [%d3], %h3;
        """
    )
    assert summary(r) == ("max", "f16", 1, 1, False, False)


def test_a_loop_carries_it() -> None:
    (r,) = body(
        """
        mov.b32 %r1, 0f00000000;
        mov.b32 %r2, 0;
        again:
        ld.global.b32 %r3, [%d1];
        add.f32 %r1, %r1, %r3;
        add.s32 %r2, %r2, 1;
        setp.lt.s32 %p1, %r2, 10;
        @%p1 bra again;
        st.global.b32 [%d3], %r1;
        """
    )
    assert summary(r) == ("add", "f32", 2, 0, False, True)
    assert [leaf.init for leaf in r.leaves] == [False, True] or [
        leaf.init for leaf in r.leaves
    ] == [True, False]


def test_without_a_barrier_nothing_is_handed_over() -> None:
    stage = """
        ld.global.b32 %r1, [%d1];
        shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
        add.f32 %r3, %r1, %r2;
        st.shared.b32 [cells], %r3;
        BARRIER
        ld.shared.b32 %r4, [cells+4];
        shfl.sync.bfly.b32 %r5, %r4, 2, 31, -1;
        add.f32 %r6, %r4, %r5;
        st.global.b32 [%d3], %r6;
    """
    (whole,) = body(stage.replace("BARRIER", "bar.sync 0;"))
    assert summary(whole) == ("add", "f32", 1, 3, True, False)
    assert len(body(stage.replace("BARRIER", ""))) == 2


SCAN = """
    ld.global.b32 %r1, [%d1];
    mov.u32 %r9, %tid.x;
    and.b32 %r9, %r9, 31;
    shfl.sync.up.b32 %r2, %r1, 1, 0, -1;
    add.f32 %r3, %r1, %r2;
    setp.eq.s32 %p1, PLACE, 0;
    selp.f32 %r4, %r1, %r3, %p1;
    shfl.sync.up.b32 %r5, %r4, 2, 0, -1;
    add.f32 %r6, %r4, %r5;
    st.global.b32 [%d3], %r6;
"""


def test_a_scan_takes_in_a_part_of_the_lanes() -> None:
    (r,) = body(SCAN.replace("PLACE", "%r9"))
    assert summary(r) == ("add", "f32", 1, 31, False, False)
    assert r.partial


def test_data_do_not_place_a_value_in_a_scan() -> None:
    found = body(SCAN.replace("PLACE", "%r1"))
    assert [len(r.leaves) for r in found] == [1, 1]
    assert all(r.partial for r in found)


CHOICE = """
    mov.u32 %r9, %tid.x;
    ld.global.b32 %r1, [%d1];
    ld.global.b32 %r8, [%d2];
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
    shfl.sync.bfly.b32 %r3, INDEX, 1, 31, -1;
    setp.eq.f32 %p1, %r1, %r2;
    setp.lt.s32 %p2, INDEX, %r3;
    and.pred %p3, %p1, %p2;
    setp.RELATION.f32 %p4, FIRST, %r2;
    or.pred %p5, %p4, %p3;
    selp.f32 %r4, %r1, %r2, %p5;
    selp.b32 %r5, INDEX, %r3, WHICH;
    st.global.b32 [%d3], %r4;
    st.global.b32 [%d3+4], %r5;
"""


def choice(relation: str, first: str = "%r1", index: str = "%r9", which: str = "%p5") -> Reductions:
    text = CHOICE.replace("RELATION", relation).replace("FIRST", first)
    return of(HEAD + text.replace("INDEX", index).replace("WHICH", which) + "ret;\n}\n")


WIDENED = """
    ld.global.b16 %h1, [%d1];
    cvt.u32.u16 %r1, %h1;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
    cvt.u16.u32 %h2, %r2;
    cvt.f32.bf16 %r3, %h1;
    cvt.f32.TYPE %r4, %h2;
    setp.RELATION.f32 %p1, %r3, %r4;
    selp.b16 %h3, %h1, %h2, %p1;
    st.global.b16 [%d3], %h3;
"""


def test_narrow_values_are_compared_in_a_wider_type() -> None:
    (r,) = body(WIDENED.replace("TYPE", "bf16").replace("RELATION", "gt"))
    assert summary(r) == ("max", "bf16", 1, 1, False, False)
    (r,) = body(WIDENED.replace("TYPE", "bf16").replace("RELATION", "lt"))
    assert summary(r) == ("min", "bf16", 1, 1, False, False)
    assert not body(WIDENED.replace("TYPE", "f16").replace("RELATION", "gt"))


@pytest.mark.parametrize(("relation", "operator"), [("gt", "max"), ("ge", "max"), ("lt", "min")])
def test_a_maximum_takes_its_index_along(relation: str, operator: str) -> None:
    found = choice(relation)
    (r,) = found.all
    assert summary(r) == (operator, "f32", 1, 1, False, False)
    assert r.chosen
    assert len(found.companions) == 1


@pytest.mark.parametrize("relation", ["eq", "ne"])
def test_equality_puts_nothing_in_order(relation: str) -> None:
    assert not choice(relation).all


def test_another_value_that_is_compared_chooses_nothing() -> None:
    assert not choice("gt", first="%r8").all


def test_data_that_travel_along_are_no_index() -> None:
    assert not choice("gt", index="%r8").companions


def test_an_index_chosen_by_another_predicate_does_not_travel_along() -> None:
    found = choice("gt", which="%p4")
    assert not found.companions


def test_wide_values_are_exchanged_by_halves() -> None:
    wide = """
        ld.global.b64 %d4, [%d1];
        mov.b64 {%r1, %r2}, %d4;
        shfl.sync.bfly.b32 %r3, %r1, 4, 31, -1;
        shfl.sync.bfly.b32 %r4, %r2, LANES, 31, -1;
        mov.b64 %d5, {FIRST, SECOND};
        add.f64 %d6, %d4, %d5;
        st.global.b64 [%d3], %d6;
    """
    right = wide.replace("FIRST", "%r3").replace("SECOND", "%r4")
    (r,) = body(right.replace("LANES", "4"))
    assert summary(r) == ("add", "f64", 1, 4, False, False)
    assert not body(right.replace("LANES", "2"))
    swapped = wide.replace("FIRST", "%r4").replace("SECOND", "%r3")
    assert not body(swapped.replace("LANES", "4"))


@pytest.mark.parametrize("operator", ["and", "or", "xor"])
def test_bits_are_combined(operator: str) -> None:
    (r,) = body(
        f"""
        ld.global.b32 %r1, [%d1];
        redux.sync.{operator}.b32 %r2, %r1, -1;
        st.global.b32 [%d3], %r2;
        """
    )
    assert summary(r) == (operator, "b32", 1, 31, False, False)


def test_a_narrow_operand_is_a_leaf_of_its_own_type() -> None:
    (r,) = body(
        """
        ld.global.b16 %h1, [%d1];
        cvt.f32.bf16 %r1, %h1;
        shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
        add.rn.f32.bf16 %r3, %h1, %r2;
        ld.global.b16 %h2, [%d2];
        add.rn.f32.bf16 %r4, %h2, %r3;
        shfl.sync.bfly.b32 %r5, %r4, 2, 31, -1;
        add.f32 %r6, %r4, %r5;
        st.global.b32 [%d3], %r6;
        """
    )
    assert r.lanes == 3
    assert sorted(leaf.narrow for leaf in r.leaves) == ["", "bf16"]


def test_a_value_that_is_used_elsewhere_is_a_leaf() -> None:
    (r,) = body(
        """
        ld.global.b32 %r1, [%d1];
        ld.global.b32 %r2, [%d2];
        add.f32 %r3, %r1, %r2;
        st.global.b32 [%d4], %r3;
        st.global.b32 [%d5], %r3;
        shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
        add.f32 %r5, %r3, %r4;
        st.global.b32 [%d3], %r5;
        """
    )
    assert len(r.leaves) == 1


def test_a_long_chain_is_no_deep_recursion() -> None:
    lines = ["ld.global.b32 %r1, [%d1];", "mov.b32 %r2, 0f00000000;"]
    lines += ["add.f32 %r2, %r2, %r1;"] * 5000
    lines += ["shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1;", "add.f32 %r5, %r2, %r4;"]
    (r,) = body("\n".join([*lines, "st.global.b32 [%d3], %r5;\n"]))
    # The first sum, with the constant, is what the lane puts in.
    assert len(r.instrs) == 5001


def test_halves_of_packed_sums() -> None:
    found = body(
        """
        ld.global.b64 %d4, [%d1];
        mov.b64 {%r1, %r2}, %d4;
        shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
        shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1;
        mov.b64 %d5, {%r3, %r4};
        add.f32x2 %d6, %d4, %d5;
        st.global.b64 [%d3], %d6;
        """
    )
    assert [summary(r) for r in found] == [("add", "f32x2", 1, 1, False, False)] * 2
    assert sorted(leaf.node.part for r in found for leaf in r.leaves) == [0, 1]


def in_one_thread(last: str) -> list[Reduction]:
    """Eight loaded numbers, summed up in pairs at one place of the source, and then `last`."""
    loads = [f"ld.global.b32 %r{at}, [%d1+{4 * at}];" for at in range(8)]
    pairs = [f"mov.b64 %d{at + 4}, {{%r{2 * at}, %r{2 * at + 1}}};" for at in range(4)]
    sums = ["add.f32x2 %d8, %d4, %d5;", "add.f32x2 %d9, %d6, %d7;", "add.f32x2 %d10, %d8, %d9;"]
    return body("\n".join([".loc 1 3 5", *loads, *pairs, ".loc 1 4 9", *sums, last]))


def test_packed_sums_of_one_thread_and_their_halves() -> None:
    (r,) = in_one_thread(
        """
        mov.b64 {%r10, %r11}, %d10;
        add.f32 %r12, %r10, %r11;
        st.global.b32 [%d3], %r12;
        """
    )
    assert summary(r) == ("add", "f32", 8, 0, False, False)


def test_packed_sums_of_one_thread_are_one_for_each_half() -> None:
    found = in_one_thread("st.global.b64 [%d3], %d10;")
    assert [summary(r) for r in found] == [("add", "f32x2", 4, 0, False, False)] * 2
    first, second = ({leaf.node.value for leaf in r.leaves} for r in found)
    assert first.isdisjoint(second)


def test_halves_from_different_registers_are_not_mixed_up() -> None:
    assert not body(
        """
        ld.global.b64 %d4, [%d1];
        mov.b64 {%r1, %r2}, %d4;
        shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
        shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1;
        mov.b64 %d5, {%r4, %r3};
        add.f32x2 %d6, %d4, %d5;
        st.global.b64 [%d3], %d6;
        """
    )


THREE = """
    ld.global.b32 %r1, [%d1];
    ld.global.b32 %r8, [%d2];
    shfl.sync.bfly.b32 %r2, SOURCE, 4, 31, -1;
    max.f32 %r3, %r8, %r2, %r1;
    st.global.b32 [%d3], %r3;
"""


def test_a_third_operand_is_not_combined_over_the_lanes() -> None:
    found = of(HEAD + THREE.replace("SOURCE", "%r1") + "ret;\n}\n")
    (r,) = found.all
    assert summary(r) == ("max", "f32", 2, 4, False, False)
    assert sorted(leaf.lanes for leaf in r.leaves) == [0, 4]


def test_of_three_operands_two_must_be_a_value_and_its_exchange() -> None:
    assert not body(
        THREE.replace("SOURCE", "%r9").replace(
            "ld.global.b32 %r1", "mov.u32 %r9, %tid.x;\nld.global.b32 %r1"
        )
    )


@pytest.mark.parametrize(
    ("selector", "first", "lanes"),
    [
        ("0x5410", "%r5, %r6", [1, 1]),
        # The halves of what was exchanged change places, or are no halves of it.
        ("0x5410", "%r6, %r5", []),
        ("0x1054", "%r6, %r5", [1, 1]),
        ("0x7632", "%r5, %r6", []),
        ("0x5412", "%r5, %r6", [1]),
    ],
)
def test_two_sums_are_packed_for_their_last_step(
    selector: str, first: str, lanes: list[int]
) -> None:
    found = body(f"""
        ld.global.b16 %h1, [%d1];
        ld.global.b16 %h2, [%d1+2];
        cvt.u32.u16 %r1, %h1;
        cvt.u32.u16 %r2, %h2;
        shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;
        shfl.sync.bfly.b32 %r6, %r2, 1, 31, -1;
        prmt.b32 %r7, {first}, {selector};
        mov.b32 %r8, {{%h1, %h2}};
        add.bf16x2 %r9, %r8, %r7;
        st.global.b32 [%d1], %r9;
    """)
    assert [r.lanes for r in found] == lanes
