"""Bounds of remainders, divisions by products, rounds of loops, and what guards make of them."""

from __future__ import annotations

from random import Random

import pytest

from ptxlint.dataflow.bitwise import floor_divide, high_word, modulo
from ptxlint.dataflow.guards import Conjunct, Guards, GuardsAnalysis, implies
from ptxlint.dataflow.polynomial import AtomTable, Polynomial
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def value(poly: Polynomial, given: dict[str, int]) -> int:
    """What a polynomial is where parameters are given, quotients worked out."""
    total = 0
    for monomial, coefficient in poly.terms.items():
        for number in monomial:
            atom = poly.table.atoms[number]
            if atom.kind == "fdiv":
                coefficient *= value(atom.data[0], given) // atom.data[1]
            else:
                coefficient *= given[atom.data[0]]
        total += coefficient
    return total


def variable(table: AtomTable, name: str, low: int, high: int) -> Polynomial:
    return table.plain(table.atom("param", (name, 0), low, high))


def test_bounds_of_remainders_hold() -> None:
    random = Random(3)
    for _ in range(300):
        table = AtomTable()
        low = random.choice([0, -7])
        x, y = variable(table, "x", low, 40), variable(table, "y", 0, 5)
        size = random.choice([2, 3, 4, 6, 8, 16])
        inner = x * random.choice([1, 2, 4]) + random.randrange(9)
        scale = random.choice([1, 2, -3])
        poly = modulo(inner, size) * scale + y * random.choice([1, 4]) + random.randrange(5)
        if random.random() < 0.5:
            poly = poly - modulo(x + y * 3, 4)
        bounds = poly.range()
        seen = {value(poly, {"x": a, "y": b}) for a in range(low, 41) for b in range(6)}
        assert bounds[0] <= min(seen)
        assert max(seen) <= bounds[1]


def test_a_remainder_is_bounded_by_its_divisor() -> None:
    table = AtomTable()
    x = variable(table, "x", 0, 2**31 - 2)
    assert modulo(x * 32, 64).range() == (0, 32)
    assert (x * 16 - floor_divide(x, 4) * 64).range() == (0, 48)
    assert (modulo(floor_divide(x, 4), 2) * 32 + 28).range() == (28, 60)
    assert floor_divide(x * 32 + 7, 64) == floor_divide(x, 2)


def magic(divisor: int, shift: int) -> int:
    return -(-(1 << 32 + shift) // divisor)


@pytest.mark.parametrize(
    ("divisor", "shift"), [(3, 0), (3, 1), (5, 0), (5, 1), (6, 0), (7, 2), (9, 1), (10, 2), (80, 5)]
)
def test_products_that_divide_are_divisions(divisor: int, shift: int) -> None:
    factor = magic(divisor, shift)
    for top in (2**31 - 2, 65_535, 1_000):
        table = AtomTable()
        x = variable(table, "x", 0, top)
        found = floor_divide(high_word(x * factor, 32), 1 << shift)
        if found == floor_divide(x, divisor):
            near = [top - at for at in range(3 * divisor)] + list(range(3 * divisor))
            near += [top - top % divisor + at for at in (-1, 0) if top - top % divisor + at <= top]
        else:
            near = [top // 3]
        for number in near:
            assert value(found, {"x": number}) == (number * factor >> 32 + shift)
        if top == 1_000:
            assert found == floor_divide(x, divisor)


def test_a_signed_product_with_the_factor_added_divides() -> None:
    table = AtomTable()
    x = variable(table, "x", 0, 2**31 - 2)
    sum_ = high_word(x * (magic(7, 2) - 2**32), 32) + x
    assert floor_divide(sum_, 4) == floor_divide(x, 7)


def test_products_that_miss_a_multiple_are_no_divisions() -> None:
    table = AtomTable()
    x = variable(table, "x", 0, 2**31 - 2)
    # One less than the magic number: 3 would be divided to 0.
    assert high_word(x * (magic(3, 0) - 1), 32) != floor_divide(x, 3)
    # Good for small numbers alone.
    assert floor_divide(x * 171, 1 << 9) != floor_divide(x, 3)
    wide = variable(table, "wide", 0, 2**32 - 1)
    assert high_word(wide * magic(7, 0), 32) != floor_divide(wide, 7)


def test_a_bound_on_a_quotient_is_one_on_the_dividend() -> None:
    table = AtomTable()
    n = variable(table, "n", -(2**31), 2**31 - 1)
    tiles = floor_divide(n + 63, 64)
    known = frozenset({Conjunct(n - 1)})
    assert implies(known, Conjunct(tiles - 1))
    assert not implies(known, Conjunct(tiles - 2))
    assert implies(frozenset({Conjunct(-n)}), Conjunct(-tiles))
    assert not implies(frozenset({Conjunct(-n + 1)}), Conjunct(-tiles))


HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global a, .param .u32 n) .reqntid 32
{
.reg .pred %p<9>;
.reg .b32 %r<40>;
.reg .b64 %d<9>;
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
ld.param.u64 %d1, [a];
ld.param.u32 %r4, [n];
"""


def own(body: str) -> set[str]:
    """The conjuncts of the last load's own guard."""
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    (function,) = module.functions
    facts = Facts(module, function)
    guards: Guards = facts.get(GuardsAnalysis)
    load = [i for i in function.instrs if i.opcode == "ld" and i.shape.space == "global"][-1]
    found = guards.own(load)
    assert found is not None
    return {str(conjunct) for conjunct in found}


LOAD = "@%p1 ld.global.b32 %r30, [%d1];\n"


def test_an_unsigned_comparison_is_a_signed_one_where_nothing_is_negative() -> None:
    index = "shl.b32 %r2, %r1, 5;\nadd.s32 %r3, %r2, %r0;\n"
    compare = "setp.lt.u32 %p1, %r3, %r4;\n"
    assert own(index + compare + LOAD).pop().startswith("unsigned")
    known = "setp.ge.s32 %p2, %r2, %r4;\n@%p2 bra DONE;\n"
    (found,) = own(index + known + compare + LOAD + "DONE:\n")
    assert found.endswith("- 32*ctaid.x + n - 1 >= 0")
    behind = "@%p2 bra DONE;\nDONE:\n"
    assert (
        own(index + "setp.ge.s32 %p2, %r2, %r4;\n" + behind + compare + LOAD)
        .pop()
        .startswith("unsigned")
    )


def test_what_a_predicate_was_packed_into_is_the_predicate() -> None:
    packed = "setp.lt.s32 %p2, %r1, %r4;\nselp.b32 %r5, 1, 0, %p2;\n"
    assert own(packed + "setp.ne.s32 %p1, %r5, 0;\n" + LOAD) == {"-ctaid.x + n - 1 >= 0"}
    signs = packed.replace("1, 0", "-1, 0")
    assert own(signs + "setp.lt.s32 %p1, %r5, 0;\n" + LOAD) == {"-ctaid.x + n - 1 >= 0"}
    assert own(signs + "setp.ge.s32 %p1, %r5, 0;\n" + LOAD) == {"ctaid.x - n >= 0"}
    # A bit of a word of which nothing is known stays what it is.
    loaded = "ld.global.b32 %r6, [%d1];\nand.b32 %r7, %r6, 1;\nsetp.ne.s32 %p1, %r7, 0;\n"
    assert own(loaded + LOAD).pop().startswith("unequal")


def test_a_flag_of_the_first_round_counts_rounds() -> None:
    loop = """mov.pred %p1, {first};
    mov.b32 %r5, 32;
    LOOP:
    or.b32 %r6, %r5, %r0;
    setp.lt.s32 %p2, %r6, 60;
    @%p2 ld.global.b32 %r30, [%d1];
    mov.b32 %r5, 64;
    mov.pred %p3, %p1;
    mov.pred %p1, {later};
    @{sign}%p3 bra LOOP;
    """
    text = loop.format(first=-1, later=0, sign="")
    (found,) = own(text)
    assert found.endswith("- 32*K1 + 27 >= 0")
    text = loop.format(first=0, later=-1, sign="!")
    assert own(text) == {found}
    # As long as the flag says: nobody knows how often.
    endless = loop.format(first=-1, later=-1, sign="")
    assert own(endless) != {found}


def test_a_guard_worked_out_for_the_next_round_is_that_of_each() -> None:
    loop = (
        """setp.lt.s32 %p1, {first}, %r4;
    mov.b32 %r5, 0;
    LOOP:
    """
        + LOAD
        + """
    add.s32 %r5, %r5, 32;
    setp.lt.s32 %p1, %r5, %r4;
    setp.lt.s32 %p2, %r5, 320;
    @%p2 bra LOOP;
    """
    )
    assert own(loop.format(first=0)) == {"n - 32*K1 - 1 >= 0"}
    assert own(loop.format(first=32)).pop().startswith("predicate")


PACKED = """setp.lt.s32 %p2, %r1, %r4;
setp.lt.s32 %p3, %r0, %r4;
selp.b32 %r5, 1, 0, %p2;
selp.b32 %r6, -1, 0, %p3;
shl.b32 %r7, %r6, 1;
and.b32 %r8, %r7, 2;
and.b32 %r9, %r5, 1;
or.b32 %r10, %r9, %r8;
shl.b32 %r11, %r10, 4;
or.b32 %r12, %r11, {other};
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("and.b32 %r13, %r12, 16;\nsetp.ne.s32 %p1, %r13, 0;\n", {"-ctaid.x + n - 1 >= 0"}),
        ("and.b32 %r13, %r12, 16;\nsetp.eq.s32 %p1, %r13, 0;\n", {"ctaid.x - n >= 0"}),
        ("shr.u32 %r14, %r12, 4;\nand.b32 %r13, %r14, 1;\nsetp.ne.s32 %p1, %r13, 0;\n",
         {"-ctaid.x + n - 1 >= 0"}),
        ("shr.u32 %r14, %r12, 5;\nand.b32 %r13, %r14, 1;\nsetp.ne.s32 %p1, %r13, 0;\n",
         {"-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] - 8*tid.x[3] - 16*tid.x[4] + n - 1 >= 0"}),
        ("and.b32 %r13, %r12, 4;\nsetp.eq.s32 %p1, %r13, 0;\n", {"never"}),
        ("and.b32 %r13, %r12, 8;\nsetp.eq.s32 %p1, %r13, 0;\n", set()),
    ],
)  # fmt: skip
def test_a_bit_of_packed_predicates_is_one_of_them(test: str, expected: set[str]) -> None:
    module = parse(HEAD + PACKED.format(other="4") + test + LOAD + "\nret;\n}\n", "k.ptx")
    facts = Facts(module, module.functions[0])
    load = [i for i in module.functions[0].instrs if i.opcode == "ld"][-1]
    found = facts.get(GuardsAnalysis).own(load)
    assert ({"never"} if found is None else {str(c) for c in found}) == expected


def test_a_bit_that_something_else_may_set_is_not_known() -> None:
    test = "and.b32 %r13, %r12, 16;\nsetp.ne.s32 %p1, %r13, 0;\n"
    (found,) = own(PACKED.format(other="%r20") + test + LOAD)
    assert "n - 1" not in found


def test_a_quotient_is_bounded_as_its_dividend_is() -> None:
    table = AtomTable()
    n = variable(table, "n", -(2**31), 2**31 - 1)
    lane = variable(table, "lane", 0, 1)
    index = variable(table, "index", 0, 2**31 - 1)
    tiles = floor_divide(n + 15, 16)
    comes = frozenset({Conjunct(tiles - index - 1)})
    assert implies(comes, Conjunct(n - index * 16 - 1))
    assert implies(comes, Conjunct(n - index * 16 - lane * 4 + 15))
    assert not implies(comes, Conjunct(n - index * 16 - lane * 4 - 1))
    assert not implies(comes, Conjunct(n - index * 16 - 2))
    # Rounded towards zero, a negative size has a sign bit added.
    sign = floor_divide(n + 15, 1 << 31)
    rounded = frozenset({Conjunct(floor_divide(n + sign * 15 + 15, 16) - index - 1)})
    assert implies(rounded, Conjunct(n - index * 16 + 14))
    assert not implies(rounded, Conjunct(n - index * 16 - 2))
    # From the quotient to the dividend, not the other way round.
    assert not implies(frozenset({Conjunct(n - index * 16 - 1)}), Conjunct(tiles - index - 2))


def test_what_is_implied_holds() -> None:
    random = Random(5)
    found = 0
    for _ in range(400):
        table = AtomTable()
        x, y = variable(table, "x", -9, 20), variable(table, "y", 0, 6)
        size = random.choice([2, 3, 4])
        quotient = floor_divide(x + random.randrange(5), size) * random.choice([1, -1, 2])
        step = random.choice([1, -1, 2])
        known = quotient + y * step + random.randrange(-4, 5)
        wanted = random.choice([x, -x]) + y * step * size + random.randrange(-9, 12)
        if random.random() < 0.5:
            known, wanted = wanted, known
        if not implies(frozenset({Conjunct(known)}), Conjunct(wanted)):
            continue
        found += 1
        for a in range(-9, 21):
            for b in range(7):
                given = {"x": a, "y": b}
                assert value(known, given) < 0 or value(wanted, given) >= 0
    assert found > 5


def test_a_chosen_number_keeps_its_low_zeros_and_its_bounds() -> None:
    chosen = """setp.lt.u32 %p2, %r1, 7;
    selp.b32 %r5, 32, 0, %p2;
    and.b32 %r6, %r0, 7;
    or.b32 %r7, %r5, %r6;
    setp.lt.s32 %p1, %r7, 38;
    """
    (found,) = own(chosen + LOAD)
    assert found.startswith("-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] - select(")
    # %ctaid % 6 in two steps: below 3 it is itself, else 3 less.
    remainder = """rem.u32 %r5, %r1, 6;
    sub.s32 %r6, %r5, 3;
    setp.{relation}.u32 %p2, %r5, {limit};
    selp.b32 %r7, {yes}, {no}, %p2;
    setp.lt.s32 %p1, %r7, {below};
    """
    below = remainder.format(relation="lt", limit=3, yes="%r5", no="%r6", below=3)
    assert own(below + LOAD) == set()
    turned = remainder.format(relation="ge", limit=3, yes="%r6", no="%r5", below=3)
    assert own(turned + LOAD) == set()
    other = remainder.format(relation="lt", limit=4, yes="%r5", no="%r6", below=3)
    assert own(other + LOAD) != set()


@pytest.mark.parametrize(("start", "known"), [(128, True), (64, False)])
def test_what_a_round_works_out_for_the_next_one_is_an_index(start: int, known: bool) -> None:
    loop = f"""mov.b32 %r5, 0;
    mov.b32 %r6, {start};
    LOOP:
    or.b32 %r7, %r6, %r0;
    setp.lt.s32 %p1, %r7, %r4;
    {LOAD}
    add.s32 %r5, %r5, 64;
    add.s32 %r6, %r5, 128;
    setp.lt.s32 %p2, %r5, 640;
    @%p2 bra LOOP;
    """
    (found,) = own(loop)
    bits = "-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] - 8*tid.x[3] - 16*tid.x[4]"
    assert (found == f"{bits} - 64*K1 + n - 129 >= 0") == known


TWO_ROUNDS = """
    and.b32 %r5, %r0, 7;
    setp.ne.s32 %p2, %r5, 7;
    mov.pred %p3, FIRST;
    mov.pred %p4, -1;
    LOOP:
    mov.pred %p1, %p3;
    mov.pred %p5, %p4;
    @%p1 ld.global.b32 %r30, [%d1];
    mov.pred %p3, %p2;
    mov.pred %p2, 0;
    mov.pred %p4, 0;
    ENDS
    @%p5 bra LOOP;
"""
"""A mask that the second round is handed by the first one; a third one would be handed none."""


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("-1", {"-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] - K1 + 7 >= 0"}),
        ("0", {"-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] - K1 + 7 >= 0", "K1 - 1 >= 0"}),
        ("%p2", {"-tid.x[0] - 2*tid.x[1] - 4*tid.x[2] + 6 >= 0"}),
    ],
)
def test_a_mask_that_is_another_one_in_the_second_round(first: str, expected: set[str]) -> None:
    body = TWO_ROUNDS.replace("ENDS", "").replace("FIRST", first)
    assert own(body) == expected


def test_a_mask_of_more_rounds_than_two_is_not_known() -> None:
    # The loop may go on as long as the size says.
    body = TWO_ROUNDS.replace("ENDS", "setp.lt.s32 %p5, %r0, %r4;").replace("FIRST", "-1")
    (found,) = own(body)
    assert found.startswith("predicate")
