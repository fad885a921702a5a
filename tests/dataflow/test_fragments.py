"""Fragment layouts against the formulas of the PTX ISA, and what is carried along their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ptxlint.dataflow.fragments import (
    Element,
    Fragments,
    carry,
    depends_on,
    fragments_of,
    in_memory,
)
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr


def registers(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def product(mnemonic: str, operands: str) -> Instr:
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k() .reqntid 128
{{
.reg .pred %p<2>;
.reg .b32 %r<300>;
.reg .f64 %d<20>;
.reg .b64 %e<20>;
{mnemonic} {operands};
ret;
}}
"""
    module = parse(text, "k.ptx")
    return module.functions[0].instrs[0]


def mma(mnemonic: str, a: int, b: int, d: int, letter: str = "r") -> Instr:
    parts = [registers(letter, n) for n in (d, a, b, d)]
    return product(f"mma.sync.aligned.{mnemonic}", ", ".join(parts))


# The formulas, by element i and lane, as the tables of the PTX ISA give them.
Formula = Callable[[int, int, int], tuple[int, int]]
"""(i, groupID, threadID_in_group) -> (row, column)"""

A_16816: Formula = lambda i, g, q: (  # noqa: E731
    g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
    q * 2 + (i & 1) if i < 4 else q * 2 + (i & 1) + 8,
)
B_16816: Formula = lambda i, g, q: (q * 2 + (i & 1) + (8 if i >= 2 else 0), g)  # noqa: E731
A_1688: Formula = lambda i, g, q: (g if i < 2 else g + 8, q * 2 + (i & 1))  # noqa: E731
B_1688: Formula = lambda i, g, q: (q * 2 + i, g)  # noqa: E731
A_1688_TF32: Formula = lambda i, g, q: (  # noqa: E731
    g if i in (0, 2) else g + 8, q if i in (0, 1) else q + 4
)  # fmt: skip
B_1688_TF32: Formula = lambda i, g, q: (q if i == 0 else q + 4, g)  # noqa: E731
A_1684_TF32: Formula = lambda i, g, q: (g if i == 0 else g + 8, q)  # noqa: E731
B_1684_TF32: Formula = lambda i, g, q: (q, g)  # noqa: E731
A_16832: Formula = lambda i, g, q: (  # noqa: E731
    g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
    q * 4 + (i & 3) if i < 8 else q * 4 + (i & 3) + 16,
)
B_16832: Formula = lambda i, g, q: (q * 4 + (i & 3) + (16 if i >= 4 else 0), g)  # noqa: E731
A_16816_BYTES: Formula = lambda i, g, q: (g if i < 4 else g + 8, q * 4 + (i & 3))  # noqa: E731
B_16816_BYTES: Formula = lambda i, g, q: (q * 4 + i, g)  # noqa: E731
D_168: Formula = lambda i, g, q: (g if i < 2 else g + 8, q * 2 + (i & 1))  # noqa: E731
A_884_F64: Formula = lambda i, g, q: (g, q)  # noqa: E731
B_884_F64: Formula = lambda i, g, q: (q, g)  # noqa: E731
D_884_F64: Formula = lambda i, g, q: (g, q * 2 + (i & 1))  # noqa: E731
A_16816_F64: Formula = lambda i, g, q: (  # noqa: E731
    g if i % 2 == 0 else g + 8, i * 2 + q if i % 2 == 0 else i * 2 - 2 + q
)  # fmt: skip
B_16816_F64: Formula = lambda i, g, q: (q + i * 4, g)  # noqa: E731

MMA: dict[str, tuple[Instr, Formula, Formula, Formula]] = {
    "bf16 k16": (mma("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4), A_16816, B_16816, D_168),
    "f16 result": (mma("m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2), A_16816, B_16816, D_168),
    "f16 k8": (mma("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4), A_1688, B_1688, D_168),
    "tf32 k8": (
        mma("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4), A_1688_TF32, B_1688_TF32, D_168
    ),
    "tf32 k4": (
        mma("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4), A_1684_TF32, B_1684_TF32, D_168
    ),
    "s8 k32": (
        mma("m16n8k32.row.col.satfinite.s32.s8.s8.s32", 4, 2, 4), A_16832, B_16832, D_168
    ),
    "e4m3 k32": (mma("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4), A_16832, B_16832, D_168),
    "s8 k16": (
        mma("m16n8k16.row.col.s32.s8.s8.s32", 2, 1, 4), A_16816_BYTES, B_16816_BYTES, D_168
    ),
    "f64 k4": (
        mma("m8n8k4.row.col.f64.f64.f64.f64", 1, 1, 2, "d"), A_884_F64, B_884_F64, D_884_F64
    ),
    "f64 k16": (
        mma("m16n8k16.row.col.f64.f64.f64.f64", 8, 4, 4, "d"), A_16816_F64, B_16816_F64, D_168
    ),
}  # fmt: skip


def held(elements: tuple[Element, ...] | None, formula: Formula, threads: range) -> None:
    assert elements is not None
    order = [(e.register, e.part) for e in elements]
    assert order == sorted(order)
    for i, element in enumerate(elements):
        for thread in threads:
            lane = thread % 32
            row, column = formula(i, lane >> 2, lane & 3)
            found = element.first.value(thread), element.second.value(thread)
            assert found == (row, column), (i, thread)


def found(instr: Instr, width: int = 7) -> Fragments:
    fragments = fragments_of(instr, width)
    assert fragments is not None
    return fragments


@pytest.mark.parametrize("name", MMA)
def test_the_layouts_of_mma(name: str) -> None:
    instr, a, b, d = MMA[name]
    fragments = found(instr)
    held(fragments.first, a, range(128))
    held(fragments.second, b, range(128))
    held(fragments.result, d, range(128))
    assert fragments.lanes == 31


@pytest.mark.parametrize(
    ("form", "types", "n", "a_registers", "formula"),
    [
        ("m64n64k16", "f32.bf16.bf16", 64, 4, A_16816),
        ("m64n256k16", "f32.f16.f16", 256, 4, A_16816),
        ("m64n8k8", "f32.tf32.tf32", 8, 4, A_1688_TF32),
        ("m64n16k32", "f32.e4m3.e4m3", 16, 4, A_16832),
    ],
)
def test_the_layouts_of_wgmma(
    form: str, types: str, n: int, a_registers: int, formula: Formula
) -> None:
    tail = "1, 1, 1" if "16.b" in form + types or "f16" in types else "1, 1"
    count = n // 2
    a = "{" + ", ".join(f"%r{200 + i}" for i in range(a_registers)) + "}"
    fragments = found(
        product(
            f"wgmma.mma_async.sync.aligned.{form}.{types}",
            f"{registers('r', count)}, {a}, %e1, %p1, {tail}",
        )
    )
    assert fragments.second is None
    assert fragments.lanes == 127
    assert fragments.first is not None
    for elements, isa in ((fragments.first, formula), (fragments.result, _of_wgmma)):
        for i, element in enumerate(elements):
            for thread in range(128):
                lane, warp = thread % 32, thread // 32
                row, column = isa(i, lane >> 2, lane & 3)
                assert element.first.value(thread) == 16 * warp + row
                assert element.second.value(thread) == column
    assert len(fragments.result) == count


def _of_wgmma(i: int, g: int, q: int) -> tuple[int, int]:
    """The accumulator of m64nN, by warp."""
    return g + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * q + i % 2


def test_the_accumulator_of_wgmma_in_halves() -> None:
    instr = product(
        "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16",
        f"{registers('r', 4)}, %e0, %e1, %p1, 1, 1, 0, 0",
    )
    fragments = found(instr)
    assert fragments.first is None
    assert [(e.register, e.part) for e in fragments.result] == [(i // 2, i % 2) for i in range(8)]
    held(fragments.result, _of_wgmma, range(32))


@pytest.mark.parametrize(
    "instr",
    [
        mma("m8n8k4.row.col.f32.f16.f16.f32", 2, 2, 8),
        mma("m16n8k64.row.col.satfinite.s32.s4.s4.s32", 4, 2, 4),
        product("add.u32", "%r1, %r2, %r3"),
    ],
)
def test_other_layouts_are_not_known(instr: Instr) -> None:
    assert fragments_of(instr, 7) is None


def test_a_small_block_has_no_group_of_warps() -> None:
    instr = product(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
        f"{registers('r', 8)}, %e0, %e1, %p1, 1, 1, 0, 0",
    )
    assert fragments_of(instr, 6) is None
    assert fragments_of(instr, 8) is not None


# Carrying ---------------------------------------------------------------------------------------


def statement(element: Element, axis: int, value: dict[int, int], warps: tuple[int, ...]) -> Any:
    """A lane map that says `value` of each coordinate of one axis, by bits of the coordinate."""
    coordinate = (element.first, element.second)[axis]
    constant = 0
    for bit, number in value.items():
        if coordinate.constant & bit:
            constant ^= number
    basis = [value.get(entry, 0) for entry in coordinate.basis]
    basis[5:] = warps
    return LaneMap(constant, tuple(basis))


WAYS = [
    ("result", 0, "first", 0), ("result", 1, "second", 1), ("first", 0, "result", 0),
    ("second", 1, "result", 1), ("first", 1, "second", 0), ("second", 0, "first", 1),
]  # fmt: skip


@pytest.mark.parametrize("name", MMA)
@pytest.mark.parametrize("ways", WAYS)
def test_what_is_said_of_elements_is_carried_to_the_same_ones(
    name: str, ways: tuple[str, int, str, int]
) -> None:
    fragments = found(MMA[name][0])
    source_name, source_axis, target_name, target_axis = ways
    value = {1: 3, 2: 4, 4: 24, 8: 32, 16: 64}
    warps = (128, 256)
    for source in getattr(fragments, source_name):
        what = statement(source, source_axis, value, warps)
        told: dict[tuple[int, int], int] = {}
        for thread in range(128):
            coordinate = (source.first, source.second)[source_axis].value(thread)
            told[coordinate, thread >> 5] = what.value(thread)
        for target in getattr(fragments, target_name):
            axis = (target.first, target.second)[target_axis]
            carried = carry(what, (source.first, source.second)[source_axis], axis, fragments.lanes)
            assert carried is not None
            for thread in range(128):
                key = axis.value(thread), thread >> 5
                if carried.map is not None and carried.map.holds_for(thread):
                    assert told[key] == carried.map.value(thread)
                else:
                    assert key not in told


@pytest.mark.parametrize("fixed", [0, 0b100, 0b101000])
def test_what_is_said_of_a_factor_in_shared_memory_is_carried_to_rows_and_columns(
    fixed: int,
) -> None:
    instr = product(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        f"{registers('r', 8)}, %e0, %e1, %p1, 1, 1, 0, 0",
    )
    fragments = found(instr, 8)
    for side, rows in ((0, 6), (1, 4)):
        element, used = in_memory(side, rows, 4, 1)
        shared = (element.first, element.second)[side]
        basis = (*range(3, 3 + rows), 0, 0, 0, 0, 64)
        what = LaneMap(5, basis).restrict(fixed & (1 << rows) - 1, fixed & 0b1000 & (1 << rows) - 1)
        assert what is not None
        told = {
            (shared.value(index), index >> rows + 4): what.value(index)
            for index in range(1 << rows + 5)
            if what.holds_for(index)
        }
        for result in fragments.result:
            axis = (result.first, result.second)[side]
            carried = carry(what, shared, axis, used, fragments.lanes)
            assert carried is not None
            for thread in range(256):
                key = axis.value(thread), thread >> 7
                if carried.map is not None and carried.map.holds_for(thread):
                    assert told[key] == carried.map.value(thread)
                else:
                    assert key not in told
            back = carry(carried.map, axis, shared, fragments.lanes, used) if carried.map else None
            if back is not None and back.map is not None:
                assert back.map.agrees(what)


def test_what_differs_along_k_of_a_factor_in_shared_memory_is_not_carried_to_rows() -> None:
    element, used = in_memory(0, 6, 4, 0)
    target = found(MMA["bf16 k16"][0]).result[0]
    along_k = LaneMap(0, (0,) * 6 + (1, 0, 0, 0))
    assert carry(along_k, element.first, target.first, used, 0x7F) is None
    assert depends_on(along_k, element.second, used)
    assert not depends_on(along_k, element.first, used)


def test_what_differs_along_the_other_axis_is_not_carried() -> None:
    fragments = found(MMA["bf16 k16"][0])
    element, target = fragments.result[0], (fragments.first or ())[0]
    both = LaneMap(0, (1, 0, 2, 0, 0, 0, 0))
    assert carry(both, element.first, target.first, 31) is None
    assert depends_on(both, element.first, 31)
    assert depends_on(both, element.second, 31)
    rows = LaneMap(0, (0, 0, 2, 0, 0, 8, 16))
    assert not depends_on(rows, element.second, 31)
    part = rows.restrict(0b1, 0b1)
    assert part is not None
    carried = carry(part, element.first, target.first, 31)
    assert carried is not None
    assert carried.map == rows


def test_a_target_of_fewer_products_than_the_source() -> None:
    """An operand that several products are made with, and a target that belongs to one of them."""
    wide, _ = in_memory(0, 3, 2, 2)
    narrow, used = in_memory(0, 3, 2, 0)
    which = LaneMap(0, (0, 0, 0, 0, 0, 1, 0))
    assert carry(which, wide.first, narrow.first, used, used) is None
    fixed = LaneMap(0, (1, 0, 0, 0, 0, 0, 0), fixed=1 << 6)
    assert carry(fixed, wide.first, narrow.first, used, used) is None
    row = LaneMap(0, (1, 2, 4, 0, 0, 0, 0))
    carried = carry(row, wide.first, narrow.first, used, used)
    assert carried is not None
    assert carried.map is not None
    assert carried.map.basis == (1, 2, 4, 0, 0)
