"""Index arithmetic that takes a way through floating point, proved and run."""

from __future__ import annotations

import struct
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.analysis import LaunchAnalysis, Outcome
from ptxlint.launch.binding import bind
from ptxlint.launch.float_words import float_operation
from ptxlint.launch.words import Operation, Word
from ptxlint.launches import Launch, Tensor

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x)
    .reqntid 128
{
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
"""
BODY = """ld.param.u64 %rd1, [x];
mov.u32 %r1, %ctaid.x;
cvt.rn.f32.{source} %r2, %r1;
mul.f32 %r3, %r2, {factor};
cvt.{back} %r4, %r3;
mul.wide.s32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.b32 [%rd3], %r1;
"""


def single(number: float) -> int:
    """The bits of a number."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


def stored(
    factor: float, grid: int, elements: int, source: str = "u32", back: str = "rzi.s32.f32"
) -> Outcome:
    """What is known of a store to x[int(ctaid * factor)]."""
    body = BODY.format(factor=f"0f{single(factor):08X}", source=source, back=back)
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    assert not module.problems, module.problems
    kernel = module.kernels()[0]
    arguments = {"x": Tensor("float32", (elements,), (1,), 0, 4 * elements, alignment=16)}
    facts = Facts(module, kernel)
    facts.launches = (bind(kernel, Launch((grid, 1, 1), (128, 1, 1), arguments), {}).launch,)
    (found,) = facts.get(LaunchAnalysis)
    (outcome,) = found.outcomes
    return outcome


@pytest.mark.parametrize("source", ["u32", "s32"])
@pytest.mark.parametrize("back", ["rzi.s32.f32", "rmi.s32.f32"])
@pytest.mark.parametrize(
    ("factor", "grid", "last"), [(0.125, 1000, 124), (1.5, 7, 9), (4.0, 5, 16), (1.0, 9, 8)]
)
def test_the_last_element_is_known_exactly(
    factor: float, grid: int, last: int, source: str, back: str
) -> None:
    inside = stored(factor, grid, last + 1, source, back)
    assert inside.witness is None
    assert inside.judged.is_inside
    beyond = stored(factor, grid, last, source, back)
    assert beyond.witness is not None
    assert beyond.witness.offset == 4 * last
    least = next(x for x in range(grid) if int(x * factor) == last)
    assert beyond.witness.thread.ctaid == (least, 0, 0)


def test_what_rounds_is_run_and_not_taken_for_a_quotient() -> None:
    # 999 / 2 becomes 500, the even one of the two neighbours.
    assert stored(0.5, 1000, 501, back="rni.s32.f32").judged.is_inside
    assert stored(0.5, 1000, 500, back="rni.s32.f32").witness is not None
    assert stored(0.5, 1000, 500).judged.is_inside
    # The number next to 2/3 is above it: three of them are two.
    assert stored(2 / 3, 4, 3).judged.is_inside
    assert stored(2 / 3, 4, 2).witness is not None
    below = stored(-0.5, 1000, 1000)
    assert below.witness is not None
    assert below.witness.offset == -4


def test_in_a_large_grid_nothing_is_proved_of_what_rounds() -> None:
    assert stored(0.5, 1 << 24, 1 << 23).judged.is_inside
    assert not stored(0.5, (1 << 24) + 2, 1 << 24).judged.is_inside
    assert not stored(2 / 3, 1 << 22, 1 << 22).judged.is_inside


def computed(text: str, *columns: list[int]) -> list[int]:
    """The bits that an instruction gives for columns of bits."""
    module = parse(HEAD + text + "\nret;\n}\n", "k.ptx")
    assert not module.problems, module.problems
    compute: Operation | None = float_operation(module.kernels()[0].instrs[0], 0)
    assert compute is not None, text
    found = compute([Word(np.array([column], dtype=np.uint64)) for column in columns])
    assert found is not None
    assert found.known is None
    return [int(bits) for bits in found.bits[0]]


def rounded(number: Fraction) -> int:
    """The nearest single-precision number of a normal range, the even one of two, as bits."""
    if not number:
        return 0
    sign, size, exponent = number < 0, abs(number), 0
    while size >= 1 << 24:
        size, exponent = size / 2, exponent + 1
    while size < 1 << 23:
        size, exponent = size * 2, exponent - 1
    whole = round(size)
    return single((-1.0 if sign else 1.0) * float(whole) * 2.0**exponent)


def exact(bits: int) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


@pytest.mark.parametrize("source", ["s32", "u32"])
def test_integers_become_the_nearest_numbers(source: str) -> None:
    random = Random(source)
    words = [random.getrandbits(random.randrange(1, 33)) for _ in range(500)]
    read = [w - (1 << 32) if source == "s32" and w >> 31 else w for w in words]
    made = computed(f"cvt.rn.f32.{source} %r0, %r1;", words)
    assert made == [rounded(Fraction(number)) for number in read]


@pytest.mark.parametrize(("opcode", "apply"), [
    ("mul.f32", lambda a, b: a * b),
    ("add.f32", lambda a, b: a + b),
    ("sub.rn.ftz.f32", lambda a, b: a - b),
])  # fmt: skip
def test_arithmetic_rounds_once(opcode: str, apply: object) -> None:
    random = Random(opcode)
    left, right = (
        [single(random.choice([-1, 1]) * random.random() * 2.0 ** random.randrange(-20, 20))
         for _ in range(500)]
        for _ in range(2)
    )  # fmt: skip
    made = computed(f"{opcode} %r0, %r1, %r2;", left, right)
    assert made == [
        rounded(apply(exact(a), exact(b)))  # type: ignore[operator]
        for a, b in zip(left, right, strict=True)
    ]


def test_denormal_numbers_are_flushed_only_where_it_says_so() -> None:
    tiny, half = single(2.0**-126), single(0.5)
    assert computed("mul.f32 %r0, %r1, %r2;", [tiny], [half]) == [single(2.0**-127)]
    assert computed("mul.ftz.f32 %r0, %r1, %r2;", [tiny], [half]) == [0]
    negative = single(-(2.0**-127))
    assert computed("add.ftz.f32 %r0, %r1, %r2;", [negative], [negative]) == [1 << 31]


@pytest.mark.parametrize(
    ("mode", "numbers"),
    [
        ("rzi", {2.9: 2, -2.9: -2, -0.5: 0}),
        ("rmi", {2.9: 2, -2.1: -3}),
        ("rpi", {2.1: 3, -2.9: -2}),
        ("rni", {2.5: 2, 3.5: 4, -2.5: -2}),
    ],
)
def test_integers_that_come_back(mode: str, numbers: dict[float, int]) -> None:
    given = [*numbers, 1e30, -1e30, float("inf"), float("nan")]
    made = computed(f"cvt.{mode}.s32.f32 %r0, %r1;", [single(number) for number in given])
    signed = [m - (1 << 32) if m >> 31 else m for m in made]
    assert signed == [*numbers.values(), (1 << 31) - 1, -(1 << 31), (1 << 31) - 1, 0]
    (lowest,) = computed(f"cvt.{mode}.u32.f32 %r0, %r1;", [single(-5.0)])
    assert lowest == 0
