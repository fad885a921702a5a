"""What integer operations make of packed words, against what they make of bits."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import BF16, E4M3, E5M2, F16, F32, AbstractFloat
from ptxlint.dataflow.integer_words import Span, bounds
from ptxlint.dataflow.packing import integer
from ptxlint.dataflow.register_words import (
    DATA,
    UNKNOWN,
    Data,
    Either,
    Number,
    Unknown,
    Word,
    as_float,
    extended,
    halves,
    is_finite_word,
    join,
    lowest,
    packed,
    parts_of,
    whole_of,
)
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Shape

ONES = 0xFFFFFFFF
MODULE = """.version 8.0
.target sm_90
.address_size 64
.entry k()
{{
.reg .b16 %rs<4>; .reg .b32 %r<8>;
{}
ret;
}}
"""


def made(text: str, *words: Word) -> Word:
    """The result of an operation, given its registers' words or constants in order."""
    return integer(_shape(text), list(words))


@cache
def _shape(text: str) -> Shape:
    return parse(MODULE.format(text)).functions[0].instrs[0].shape


BYTE = ((DATA, 0), 0)
"""A byte of data that is extended with zeros to 32 bits."""


ONE_TO_TWO = Number(F32, AbstractFloat(1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        # Four bytes put together two by two.
        ("prmt.b32 %r0, %r1, %r2, 0x3340;", (BYTE, BYTE, 0x3340), ((DATA, DATA), 0)),
        ("prmt.b32 %r0, %r1, %r2, 0x3340;", (BYTE, 0, 0x3340), BYTE),
        ("prmt.b32 %r0, %r1, %r2, 0x5410;", (BYTE, BYTE, 0x5410), ((DATA, 0), (DATA, 0))),
        ("prmt.b32 %r0, %r1, %r2, 0x5140;", (0, DATA, 0x5140), ((0, DATA), (0, DATA))),
        # The sign of a byte of data is not known, that of a constant is.
        ("prmt.b32 %r0, %r1, %r2, 0x8880;", (BYTE, 0, 0x8880), ((DATA, UNKNOWN), UNKNOWN)),
        ("prmt.b32 %r0, %r1, %r2, 0x8880;", (0x80, 0, 0x8880), 0xFFFFFF80),
        # In other modes the selector says something else.
        ("prmt.b32.rc16 %r0, %r1, %r2, 1;", (BYTE, 0, 1), UNKNOWN),
        ("shl.b32 %r0, %r1, 8;", (BYTE, 8), ((0, DATA), 0)),
        ("shl.b32 %r0, %r1, 16;", (BYTE, 16), (0, (DATA, 0))),
        ("shl.b32 %r0, %r1, 24;", (BYTE, 24), (0, (0, DATA))),
        ("shl.b32 %r0, %r1, 4;", (BYTE, 4), UNKNOWN),
        ("shl.b32 %r0, %r1, 32;", (DATA, 32), 0),
        ("shl.b16 %rs0, %rs1, 8;", ((DATA, 0), 8), (0, DATA)),
        ("shr.u32 %r0, %r1, 8;", (DATA, 8), ((DATA, DATA), (DATA, 0))),
        ("shr.u32 %r0, %r1, 24;", (DATA, 24), BYTE),
        ("shr.s32 %r0, %r1, 24;", (DATA, 24), ((DATA, UNKNOWN), UNKNOWN)),
        ("shr.s32 %r0, %r1, 8;", (((DATA, DATA), 0x8000), 8), ((DATA, 0), 0xFF80)),
        ("or.b32 %r0, %r1, %r2;", (BYTE, ((0, DATA), 0)), ((DATA, DATA), 0)),
        ("or.b32 %r0, %r1, %r2;", (BYTE, BYTE), ((UNKNOWN, 0), 0)),
        ("or.b32 %r0, %r1, %r2;", (BYTE, 0x4400), ((DATA, 0x44), 0)),
        ("xor.b32 %r0, %r1, %r2;", (BYTE, 0x4400), ((DATA, 0x44), 0)),
        ("add.s32 %r0, %r1, %r2;", (BYTE, (0, (0, DATA))), ((DATA, 0), (0, DATA))),
        ("add.s32 %r0, %r1, %r2;", (BYTE, 0x4401), UNKNOWN),
        ("and.b32 %r0, %r1, 0xff;", (DATA, 0xFF), BYTE),
        ("and.b32 %r0, %r1, 0xff0000;", (DATA, 0xFF0000), (0, (DATA, 0))),
        ("and.b32 %r0, %r1, 0xff00ff;", (DATA, 0xFF00FF), ((DATA, 0), (DATA, 0))),
        ("and.b32 %r0, %r1, 0x7e;", (BYTE, 0x7E), ((UNKNOWN, 0), 0)),
        # Signs are taken away, turned and set.
        ("and.b32 %r0, %r1, 0x7f;", (BYTE, 0x7F), BYTE),
        ("and.b32 %r0, %r1, 0x7fffffff;", (DATA, 0x7FFFFFFF), DATA),
        ("xor.b32 %r0, %r1, 0x80000000;", (DATA, 0x80000000), DATA),
        ("xor.b32 %r0, %r1, 0x80008000;", (DATA, 0x80008000), (DATA, DATA)),
        ("xor.b32 %r0, %r1, 0x80000000;", (ONE_TO_TWO, 0x80000000),
         Number(F32, AbstractFloat(-2.0, -1.0))),
        ("or.b32 %r0, %r1, 0x80000000;", (Number(F32, AbstractFloat(-3.0, 2.0)), 0x80000000),
         Number(F32, AbstractFloat(-3.0, 0.0))),
        ("xor.b32 %r0, %r1, 0x40000000;", (ONE_TO_TWO, 0x40000000), UNKNOWN),
        ("xor.b16 %rs0, %rs1, 0x8000;", (ONE_TO_TWO, 0x8000), UNKNOWN),
        ("and.b32 %r0, %r1, 31;", (UNKNOWN, 31), Span(0, 31)),
        ("bfi.b32 %r0, %r1, %r2, 8, 8;", (DATA, BYTE, 8, 8), ((DATA, DATA), 0)),
        ("bfi.b32 %r0, %r1, %r2, 0, 8;", (0, DATA, 0, 8), ((0, DATA), (DATA, DATA))),
        ("bfi.b32 %r0, %r1, %r2, 3, 8;", (0, DATA, 3, 8), UNKNOWN),
        ("bfe.u32 %r0, %r1, 8, 8;", (DATA, 8, 8), BYTE),
        ("bfe.s32 %r0, %r1, 8, 8;", (DATA, 8, 8), ((DATA, UNKNOWN), UNKNOWN)),
        ("bfe.u32 %r0, %r1, 3, 2;", (UNKNOWN, 3, 2), Span(0, 3)),
        ("mad.lo.s32 %r0, %r1, 256, %r2;", (BYTE, 256, BYTE), ((DATA, DATA), 0)),
        ("mad.lo.s32 %r0, %r1, 255, %r2;", (BYTE, 255, BYTE), UNKNOWN),
        ("mul.lo.s32 %r0, %r1, 65536;", (BYTE, 65536), (0, (DATA, 0))),
        ("shf.l.wrap.b32 %r0, %r1, %r2, 8;", (DATA, BYTE, 8), ((DATA, DATA), 0)),
        # Packed additions are none of whole registers.
        ("add.s16x2 %r0, %r1, %r2;", (0x0000FFFF, 1), UNKNOWN),
    ],
)  # fmt: skip
def test_bytes_keep_what_is_known_of_them(
    text: str, words: tuple[Word, ...], expected: Word
) -> None:
    assert made(text, *words) == expected


def _prmt(a: int, b: int, selector: int) -> int:
    both = a | b << 32
    out = 0
    for at in range(4):
        nibble = selector >> 4 * at & 15
        byte = both >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 if byte & 128 else 0
        out |= byte << 8 * at
    return out


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def _bfi(a: int, b: int, start: int, count: int) -> int:
    for at in range(count):
        if start + at < 32:
            b = b & ~(1 << start + at) | (a >> at & 1) << start + at
    return b


def _bfe(a: int, start: int, count: int, signed: bool) -> int:
    if not count:
        return 0
    sign = a >> min(start + count - 1, 31) & 1 if signed else 0
    out = 0
    for at in range(32):
        bit = a >> start + at & 1 if at < count and start + at < 32 else sign
        out |= bit << at
    return out


BITWISE: list[tuple[str, Callable[..., int], int]] = [
    ("prmt.b32 %r0, %r1, %r2, %r3;", _prmt, 2),
    ("shl.b32 %r0, %r1, %r2;", lambda a, n: a << n, 1),
    ("shr.u32 %r0, %r1, %r2;", lambda a, n: a >> n, 1),
    ("shr.s32 %r0, %r1, %r2;", lambda a, n: _signed(a) >> n, 1),
    ("and.b32 %r0, %r1, %r2;", lambda a, b: a & b, 2),
    ("or.b32 %r0, %r1, %r2;", lambda a, b: a | b, 2),
    ("xor.b32 %r0, %r1, %r2;", lambda a, b: a ^ b, 2),
    ("add.u32 %r0, %r1, %r2;", lambda a, b: a + b, 2),
    ("sub.u32 %r0, %r1, %r2;", lambda a, b: a - b, 2),
    ("mul.lo.u32 %r0, %r1, %r2;", lambda a, b: a * b, 2),
    ("mad.lo.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: a * b + c, 3),
    ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", _bfi, 2),
    ("bfe.u32 %r0, %r1, %r2, %r3;", lambda a, s, c: _bfe(a, s, c, False), 1),
    ("bfe.s32 %r0, %r1, %r2, %r3;", lambda a, s, c: _bfe(a, s, c, True), 1),
    ("shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
     lambda a, b, n: (b << 32 | a) << (n & 31) >> 32, 2),
    ("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", lambda a, b, n: (b << 32 | a) >> min(n, 32), 2),
    ("max.s32 %r0, %r1, %r2;", lambda a, b: max(_signed(a), _signed(b)), 2),
    ("min.u32 %r0, %r1, %r2;", min, 2),
    ("not.b32 %r0, %r1;", lambda a: ~a, 1),
    ("neg.s32 %r0, %r1;", lambda a: -a, 1),
    ("abs.s32 %r0, %r1;", lambda a: abs(_signed(a)), 1),
]  # fmt: skip


class Chance:
    """Random words, each with bits that it may stand for; notes which pieces are data."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.data: dict[int, set[int]] = {8: set(), 16: set(), 32: set()}

    def word(self, width: int = 32) -> tuple[Word, int]:
        pick = self.random.random()
        bits = self.random.getrandbits(width)
        if width > 8 and pick < 0.55:
            (low, a), (high, b) = (self.word(width // 2) for _ in range(2))
            return packed(low, high, width // 2), a | b << width // 2
        if pick < 0.7:
            return (0, 0) if self.random.random() < 0.6 else (bits, bits)
        if pick < 0.9:
            for size in self.data:
                for at in range(0, width, size):
                    self.data[size].add(bits >> at & (1 << size) - 1)
            return DATA, bits
        if pick < 0.95:
            low, middle, high = sorted(self.random.getrandbits(width) for _ in range(3))
            return Span(low, high), middle
        return UNKNOWN, bits

    def amount(self) -> int:
        if self.random.random() < 0.7:
            return 8 * self.random.randrange(5)
        return self.random.randrange(32)

    def holds(self, word: Word, bits: int, width: int) -> bool:
        """True if a word may stand for some bits."""
        if isinstance(word, Unknown):
            return True
        if isinstance(word, int):
            return word == bits
        if isinstance(word, Span):
            return word.low <= bits <= word.high
        if isinstance(word, Data):
            # A number may have another sign.
            signs = {bits, bits ^ 1 << width - 1}
            moved = not signs.isdisjoint(self.data[width])
            return moved or (width == 32 and not bits & 0xFFFF and bits >> 16 in self.data[16])
        if isinstance(word, Either):
            return bits in word.constants or self.holds(word.data, bits, width)
        assert type(word) is tuple
        pair: tuple[Any, ...] = word
        low, high = bits & (1 << width // 2) - 1, bits >> width // 2
        return self.holds(pair[0], low, width // 2) and self.holds(pair[1], high, width // 2)


@pytest.mark.parametrize(("text", "rule", "registers"), BITWISE, ids=lambda x: str(x)[:8])
@pytest.mark.parametrize("seed", range(40))
def test_the_result_stands_for_what_the_bits_become(
    text: str, rule: Callable[..., int], registers: int, seed: int
) -> None:
    for turn in range(8):
        chance = Chance(seed * 100 + turn)
        words: list[Word] = []
        bits: list[int] = []
        for _ in range(registers):
            word, held = chance.word()
            words.append(word)
            bits.append(held)
        for _ in range(text.count("%r") - 1 - registers):
            constant = chance.amount()
            if text.startswith("prmt"):
                constant = chance.random.getrandbits(16)
            words.append(constant)
            bits.append(constant)
        if text.startswith(("mul", "mad")) and chance.random.random() < 0.7:
            words[1] = bits[1] = 1 << chance.amount() % 32
        found = made(text, *words)
        assert chance.holds(found, rule(*bits) & ONES, 32), (text, words, found)


@pytest.mark.parametrize("seed", range(200))
def test_parts_make_up_the_word_again(seed: int) -> None:
    chance = Chance(seed)
    word, bits = chance.word()
    for size in (8, 16):
        parts = parts_of(word, 32, size)
        assert len(parts) == 32 // size
        for at, part in enumerate(parts):
            assert chance.holds(part, bits >> size * at & (1 << size) - 1, size)
        assert chance.holds(whole_of(parts, size), bits, 32)
        assert chance.holds(lowest(word, 32, size), bits & (1 << size) - 1, size)
    other, held = chance.word()
    both = join(word, other)
    for known in chance.data.values():
        # A zero is data like others.
        known.add(0)
    assert chance.holds(both, bits, 32)
    assert chance.holds(both, held, 32)
    for signed in (False, True):
        half, low = chance.word(16)
        wide = low | 0xFFFF0000 if signed and low >> 15 else low
        assert chance.holds(extended(half, 16, 32, signed), wide, 32)
        byte, low = chance.word(8)
        wide = low | 0xFFFFFF00 if signed and low >> 7 else low
        assert chance.holds(extended(byte, 8, 32, signed), wide, 32)
    for kind in ("u32", "s32"):
        number = _signed(bits) if kind == "s32" else bits
        least, most = bounds(word, kind)
        assert least <= number <= most


def test_bytes_are_no_number_of_a_wider_format() -> None:
    swapped = made("prmt.b32 %r0, %r1, %r2, 0x0123;", DATA, 0, 0x0123)
    assert as_float(DATA, F32).is_finite
    assert not as_float(swapped, F32).is_finite
    assert not as_float(halves(swapped, 32)[0], F16).is_finite
    assert as_float(parts_of(swapped, 32, 8)[0], E4M3).is_finite
    assert is_finite_word(swapped)


def test_an_upper_byte_or_half_above_zeros_is_a_number() -> None:
    assert as_float((0, DATA), F16).is_finite
    assert as_float((0, DATA), F32).is_finite
    assert not as_float((0, DATA), BF16).is_finite
    assert not as_float((DATA, 0), F16).is_finite
    assert as_float((0, Number(BF16, floats.exactly(1.5))), F32).point == 1.5
    assert as_float((0, (0, DATA)), F32).nan


@pytest.mark.parametrize(
    ("word", "finite"),
    [
        (0, True), (0x3F800000, True), (0x3F80, True), (0x38, True),
        (0x7F800000, False), (0xFF80, False), (0x7C00, False), (0x7FC07FC0, False),
        (0x7F, False), (0x7C, False), (0x7F7F7F7F, False), ((DATA, 0x7C), False),
        (((DATA, 0), 0), True), ((UNKNOWN, 0), False),
    ],
)  # fmt: skip
def test_constants_must_be_finite_in_all_formats(word: Word, finite: bool) -> None:
    assert is_finite_word(word) == finite


def test_formats_of_8_bits() -> None:
    assert as_float(0x7F, E4M3).nan
    assert as_float(0x7E, E4M3).point == 448.0
    assert as_float(0x7C, E5M2).point == float("inf")
    assert as_float(0, E5M2).is_zero
    assert as_float(DATA, E4M3).is_finite
    assert not as_float(((DATA, 0), 0), E4M3).is_finite


@pytest.mark.parametrize("form", [F32, F16, BF16, E5M2, E4M3])
@pytest.mark.parametrize("seed", range(60))
def test_numbers_between_bits(form: floats.Format, seed: int) -> None:
    chance = random.Random(seed)
    low, high = sorted(chance.getrandbits(form.bits) for _ in range(2))
    found = as_float(Span(low, high), form)
    for _ in range(50):
        inside = floats.decode(form, chance.randint(low, high))
        assert floats.join(found, inside) == found
    if not (low ^ high) >> form.bits - 1 and floats.decode(form, high).is_finite:
        assert found.is_finite
