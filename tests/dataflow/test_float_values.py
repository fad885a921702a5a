"""Abstract floats under a scenario, and where NaN and infinities begin: small kernels."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.float_values import FloatSlice, FloatValues, Scenario
from ptxlint.dataflow.floats import F32, AbstractFloat
from ptxlint.dataflow.nonfinite import QUOTIENT, ZERO, Nonfinite, NonfiniteAnalysis
from ptxlint.dataflow.padding_values import Data, Number
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .pred %p<9>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
"""


def facts(body: str, head: str = HEAD) -> Facts:
    module = parse(head + body + "\nret;\n}\n", "k.ptx")
    return Facts(module, module.kernels()[0])


def stored(body: str, scenario: Scenario, head: str = HEAD) -> AbstractFloat | None:
    """What the last store of a kernel writes."""
    known = facts(body, head)
    values = known.get(NonfiniteAnalysis).stores[-1][1]
    found = FloatValues(FloatSlice(known, values), scenario)
    assert found.settled
    return found.number(values[0], F32)


def nonfinite(body: str) -> Nonfinite:
    return facts(body).get(NonfiniteAnalysis)


def points(low: float, high: float | None = None) -> AbstractFloat:
    return AbstractFloat(low, low if high is None else high)


ZEROS = Scenario(Data(0.0))
ANY = Scenario(full=False)
LOOP = """
    mov.b32 %r2, 0f00000000;
    mov.b32 %r3, 0;
    setp.lt.s32 %p1, %r1, 1;
    @%p1 bra done;
loop:
    ld.global.b32 %r4, [%rd1];
    BODY
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p2, %r3, %r1;
    @%p2 bra loop;
done:
    st.global.b32 [%rd2], %r2;
"""


def test_a_sum_over_a_loop() -> None:
    body = LOOP.replace("BODY", "abs.f32 %r5, %r4;\nadd.f32 %r2, %r2, %r5;")
    assert stored(body, ZEROS) == points(0.0)
    found = stored(body, Scenario(Data(3.0)))
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(3.0), F32.largest)
    assert stored(body, ANY) == points(0.0, F32.largest)


def test_an_infinity_of_the_first_round_stays() -> None:
    body = LOOP.replace("BODY", "mul.f32 %r5, %r4, %r4;\nex2.approx.f32 %r6, %r5;\n"
                                "add.f32 %r2, %r2, %r6;")  # fmt: skip
    found = stored(body, Scenario(Data(100.0)))
    assert found is not None
    assert found.is_positive_infinity


def test_a_first_round_by_itself() -> None:
    body = LOOP.replace("BODY", "add.f32 %r2, %r2, %r4;")
    known = facts(body)
    (_, values), *_ = known.get(NonfiniteAnalysis).stores
    part = FloatSlice(known, values)
    (loop,) = part.loops.loops
    once = FloatValues(part, Scenario(Data(3.0), once=loop.header))
    assert once.number(values[0], F32) == points(3.0)


@pytest.mark.parametrize(
    ("relation", "chosen", "low", "high"),
    [
        ("eq", "0f3F800000, %r4", -F32.largest, F32.largest),
        ("gt", "%r4, 0f3F800000", F32.smallest, F32.largest),
        ("ge", "%r4, 0f3F800000", 0.0, F32.largest),
        ("lt", "0f3F800000, %r4", 0.0, F32.largest),
        ("ne", "%r4, 0f3F800000", -F32.largest, F32.largest),
    ],
)
def test_a_selection_narrows_its_arm(relation: str, chosen: str, low: float, high: float) -> None:
    body = f"""
    ld.global.b32 %r4, [%rd1];
    setp.{relation}.f32 %p1, %r4, 0f00000000;
    selp.f32 %r5, {chosen}, %p1;
    st.global.b32 [%rd2], %r5;
    """
    assert stored(body, ANY) == points(low, high)


def test_a_selection_away_from_negative_infinity() -> None:
    body = """
    ld.global.b32 %r4, [%rd1];
    setp.lt.s32 %p1, %r1, 7;
    selp.f32 %r5, %r4, 0fFF800000, %p1;
    setp.eq.f32 %p2, %r5, 0fFF800000;
    selp.f32 %r6, 0f00000000, %r5, %p2;
    st.global.b32 [%rd2], %r6;
    """
    assert stored(body, ANY) == points(-F32.largest, F32.largest)
    without = body.replace("[%rd2], %r6", "[%rd2], %r5")
    found = stored(without, ANY)
    assert found is not None
    assert found.ninf


def test_what_warps_exchange_is_what_was_stored() -> None:
    body = """
    ld.global.b32 %r4, [%rd1];
    abs.f32 %r5, %r4;
    st.shared.b32 [memory], %r5;
    bar.sync 0;
    ld.shared.b32 %r6, [memory+4];
    st.global.b32 [%rd2], %r6;
    """
    assert stored(body, ANY) == points(0.0, F32.largest)
    assert stored(body, ZEROS) == points(0.0)


@pytest.mark.parametrize(("taken", "low"), [("%r7", 0.0), ("%r8", 1.0)])
def test_two_words_that_are_read_as_one_are_those_two(taken: str, low: float) -> None:
    body = f"""
    ld.global.b32 %r4, [%rd1];
    abs.f32 %r5, %r4;
    max.f32 %r6, %r5, 0f3F800000;
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 3;
    mov.b32 %r9, memory;
    add.s32 %r10, %r9, %r3;
    st.shared.v2.b32 [%r10], {{%r5, %r6}};
    bar.sync 0;
    xor.b32 %r11, %r3, 8;
    add.s32 %r12, %r9, %r11;
    ld.shared.b64 %rd3, [%r12];
    mov.b64 {{%r7, %r8}}, %rd3;
    st.global.b32 [%rd2], {taken};
    """
    head = HEAD.replace("n)\n{", "n)\n.reqntid 32\n{")
    assert stored(body, ANY, head) == points(low, F32.largest)


def test_a_size_is_positive_and_a_difference_of_sizes_is_not() -> None:
    body = """
    cvt.rn.f32.s32 %r4, %r1;
    st.global.b32 [%rd2], %r4;
    """
    found = stored(body, ANY)
    assert found is not None
    assert found.low == 1.0
    shifted = "\nsub.s32 %r2, %r1, 5;" + body.replace("%r4, %r1", "%r4, %r2")
    found = stored(shifted, ANY)
    assert found is not None
    assert found.may_be_zero


GUARDED = """
    ld.global.b32 %r4, [%rd1];
    mul.f32 %r5, %r4, %r4;
    shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;
    add.f32 %r7, %r5, %r6;
    setp.eq.f32 %p1, %r7, 0f00000000;
    @%p1 bra skip;
    div.full.f32 %r8, %r4, %r7;
    st.global.b32 [%rd2], %r8;
skip:
"""


def test_a_branch_around_a_division_by_zero() -> None:
    assert nonfinite(GUARDED).faults(0.0) == []
    bare = GUARDED.replace("@%p1 bra skip;", "")
    (fault,) = nonfinite(bare).faults(0.0)
    assert (fault.kind, fault.at.opcode, fault.result) == (ZERO, "div", "NaN")


def test_a_store_that_is_masked_off_does_not_count() -> None:
    body = GUARDED.replace("@%p1 bra skip;", "").replace("st.global", "@!%p1 st.global")
    assert nonfinite(body).faults(0.0) == []


def test_a_fraction_of_overflows_names_the_exponential() -> None:
    body = """
    ld.global.b32 %r4, [%rd1];
    ex2.approx.f32 %r5, %r4;
    add.f32 %r6, %r5, 0f3F800000;
    div.full.f32 %r7, %r5, %r6;
    st.global.b32 [%rd2], %r7;
    """
    # 2 ** 100 is still finite.
    assert nonfinite(body).faults(100.0) == []
    (fault,) = nonfinite(body.replace("ex2.approx.f32 %r5, %r4", """
    mul.f32 %r8, %r4, 0f3FB8AA3B;
    ex2.approx.f32 %r5, %r8""")).faults(100.0)  # fmt: skip
    assert fault.kind == QUOTIENT
    assert fault.cause is not None
    assert fault.cause.opcode == "ex2"


TWINS = """
    mov.b32 %r2, 0f00000000;
    mov.b32 %r5, 0f00000000;
    mov.b32 %r3, 0;
loop:
    ld.global.b32 %r4, [%rd1];
    ld.global.b32 %r6, [%rd1+4];
    add.f32 %r2, %r2, %r4;
    add.f32 %r5, %r5, %r6;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p2, %r3, %r1;
    @%p2 bra loop;
    st.global.b32 [%rd2], %r2;
    st.global.b32 [%rd2+4], %r5;
"""


def test_registers_that_are_computed_alike_are_worked_out_once() -> None:
    known = facts(TWINS)
    first, second = (values[0] for _, values in known.get(NonfiniteAnalysis).stores)
    part = FloatSlice(known, [first, second])
    found = FloatValues(part, ZEROS)
    assert found.number(first, F32) == found.number(second, F32) == points(0.0)
    turns = {turn.value: turn.others for turn in part.program({})}
    assert turns[first] == (second,)


def test_what_is_told_of_one_register_is_not_told_of_its_like() -> None:
    known = facts(TWINS)
    first, second = (values[0] for _, values in known.get(NonfiniteAnalysis).stores)
    part = FloatSlice(known, [first, second])
    phi = next(
        p for p in part.ssa.phis[part.loops.loops[0].header] if p in part.sources.inputs(first)
    )
    scenario = Scenario(Data(0.0), starts={phi: Number(F32, AbstractFloat(5.0, 5.0))})
    found = FloatValues(part, scenario)
    assert found.number(first, F32) == points(5.0)
    assert found.number(second, F32) == points(0.0)


def test_instructions_are_found_by_their_shape_in_program_order() -> None:
    known = facts(TWINS)
    found = known.instructions(lambda shape: shape.opcode in ("ld", "add"))
    assert found == [i for i in known.function.instrs if i.opcode in ("ld", "add")]
    assert "setp" in known.opcodes
    assert "ex2" not in known.opcodes
