"""Integer instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

Apply = Callable[..., NDArray[np.generic]]

EDGES = (0, 1, 2, 3, 31, 32, 33, 63, 64, 127, 128, 255)


def words(width: int, count: int, seed: int) -> np.ndarray:
    """Numbers of a width, small and extreme ones among them."""
    rng = np.random.default_rng(seed)
    top = 1 << (width - 1)
    fixed = [*EDGES, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2]
    fixed = [x % (2 * top) for x in fixed]
    drawn = rng.integers(0, 2 * top, count, dtype=np.uint64)
    return np.concatenate([np.array(fixed, dtype=np.uint64), drawn]).astype(f"u{width // 8}")


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def count_leading(value: int, width: int) -> int:
    return width - value.bit_length()


def field(a: int, b: int, c: int, width: int, is_signed: bool) -> int:
    """`bfe` as PTX ISA words it, bit by bit."""
    position, length = b & 255, c & 255
    if length == 0 or not is_signed:
        sign = 0
    else:
        sign = a >> min(position + length - 1, width - 1) & 1
    out = 0
    for at in range(width):
        inside = at < length and position + at < width
        out |= (a >> (position + at) & 1 if inside else sign) << at
    return out


def inserted(a: int, b: int, c: int, d: int, width: int) -> int:
    position, length = c & 255, d & 255
    out = b
    for at in range(length):
        if position + at < width:
            out = out & ~(1 << (position + at)) | (a >> at & 1) << (position + at)
    return out


def permuted(a: int, b: int, c: int) -> int:
    both = (b << 32 | a).to_bytes(8, "little")
    out = []
    for at in range(4):
        nibble = c >> 4 * at & 15
        byte = both[nibble & 7]
        out.append(255 * (byte >> 7) if nibble & 8 else byte)
    return int.from_bytes(bytes(out), "little")


S = signed
TWO: list[tuple[str, int, Callable[[int, int], int]]] = [
    ("add.s32", 32, lambda a, b: a + b),
    ("add.u64", 64, lambda a, b: a + b),
    ("add.s16", 16, lambda a, b: a + b),
    ("add.sat.s32", 32, lambda a, b: max(-(1 << 31), min((1 << 31) - 1, S(a, 32) + S(b, 32)))),
    ("sub.s32", 32, lambda a, b: a - b),
    ("sub.sat.s32", 32, lambda a, b: max(-(1 << 31), min((1 << 31) - 1, S(a, 32) - S(b, 32)))),
    ("mul.lo.s32", 32, lambda a, b: a * b),
    ("mul.hi.s32", 32, lambda a, b: S(a, 32) * S(b, 32) >> 32),
    ("mul.hi.u32", 32, lambda a, b: a * b >> 32),
    ("mul.hi.s64", 64, lambda a, b: S(a, 64) * S(b, 64) >> 64),
    ("mul.hi.u64", 64, lambda a, b: a * b >> 64),
    ("mul24.lo.s32", 32, lambda a, b: S(a & 0xFFFFFF, 24) * S(b & 0xFFFFFF, 24)),
    ("mul24.hi.u32", 32, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("div.u32", 32, lambda a, b: a // b if b else -1),
    ("div.s32", 32, lambda a, b: truncated(S(a, 32), S(b, 32)) if b else -1),
    ("div.s64", 64, lambda a, b: truncated(S(a, 64), S(b, 64)) if b else -1),
    ("rem.u32", 32, lambda a, b: a % b if b else -1),
    ("rem.s32", 32, lambda a, b: S(a, 32) - truncated(S(a, 32), S(b, 32)) * S(b, 32) if b else -1),
    ("min.s32", 32, lambda a, b: min(S(a, 32), S(b, 32))),
    ("min.u64", 64, min),
    ("max.s16", 16, lambda a, b: max(S(a, 16), S(b, 16))),
    ("and.b32", 32, lambda a, b: a & b),
    ("or.b64", 64, lambda a, b: a | b),
    ("xor.b16", 16, lambda a, b: a ^ b),
    ("add.u16x2", 32, lambda a, b: (a + b) % 65536 | ((a >> 16) + (b >> 16)) % 65536 << 16),
    ("min.s16x2", 32, lambda a, b: min(S(a & 65535, 16), S(b & 65535, 16)) % 65536
     | min(S(a >> 16, 16), S(b >> 16, 16)) % 65536 << 16),
]  # fmt: skip


@pytest.mark.parametrize(("name", "width", "expected"), TWO, ids=[row[0] for row in TWO])
def test_of_two(apply: Apply, name: str, width: int, expected: Callable[[int, int], int]) -> None:
    a, b = words(width, 60, 1), words(width, 60, 2)
    left, right = np.repeat(a, len(b)), np.tile(b, len(a))
    left, right = left[:960], right[:960]
    got = apply(f"{name} $0, $1, $2;", f"b{width}", left, right)
    want = [expected(int(x), int(y)) % (1 << width) for x, y in zip(left, right, strict=True)]
    assert got.tolist() == want


SHIFTS: list[tuple[str, int, Callable[[int, int], int]]] = [
    ("shl.b32", 32, lambda a, c: a << min(c, 32)),
    ("shl.b64", 64, lambda a, c: a << min(c, 64)),
    ("shr.u32", 32, lambda a, c: a >> min(c, 32)),
    ("shr.s32", 32, lambda a, c: S(a, 32) >> min(c, 32)),
    ("shr.s64", 64, lambda a, c: S(a, 64) >> min(c, 64)),
    ("shr.s16", 16, lambda a, c: S(a, 16) >> min(c, 16)),
]


@pytest.mark.parametrize(("name", "width", "expected"), SHIFTS, ids=[row[0] for row in SHIFTS])
def test_shifts_beyond_the_width_too(
    apply: Apply, name: str, width: int, expected: Callable[[int, int], int]
) -> None:
    a, c = words(width, 20, 3), words(32, 20, 4)
    left, right = np.repeat(a, len(c))[:960], np.tile(c, len(a))[:960]
    got = apply(f"{name} $0, $1, $2;", f"b{width}", left, right)
    want = [expected(int(x), int(y)) % (1 << width) for x, y in zip(left, right, strict=True)]
    assert got.tolist() == want
    fixed = apply(f"{name} $0, $1, 5;", f"b{width}", left)
    assert fixed.tolist() == [expected(int(x), 5) % (1 << width) for x in left]


ONE: list[tuple[str, int, int, Callable[[int], int]]] = [
    ("neg.s32", 32, 32, lambda a: -a),
    ("abs.s64", 64, 64, lambda a: abs(S(a, 64))),
    ("not.b32", 32, 32, lambda a: ~a),
    ("cnot.b16", 16, 16, lambda a: int(a == 0)),
    ("popc.b64", 64, 32, lambda a: a.bit_count()),
    ("clz.b32", 32, 32, lambda a: count_leading(a, 32)),
    ("clz.b64", 64, 32, lambda a: count_leading(a, 64)),
    ("brev.b32", 32, 32, lambda a: int(f"{a:032b}"[::-1], 2)),
    ("brev.b64", 64, 64, lambda a: int(f"{a:064b}"[::-1], 2)),
    ("bfind.u32", 32, 32, lambda a: a.bit_length() - 1),
    ("bfind.s32", 32, 32, lambda a: (~a % (1 << 32) if a >> 31 else a).bit_length() - 1),
    ("bfind.shiftamt.u32", 32, 32, lambda a: 32 - a.bit_length() if a else -1),
    ("cvt.s32.s8", 32, 32, lambda a: S(a & 255, 8)),
    ("cvt.u32.u16", 16, 32, lambda a: a),
    ("cvt.s64.s32", 32, 64, lambda a: S(a, 32)),
    ("cvt.sat.u8.s32", 32, 32, lambda a: max(0, min(255, S(a, 32)))),
    ("cvt.sat.s16.s32", 32, 16, lambda a: max(-32768, min(32767, S(a, 32)))),
]


@pytest.mark.parametrize(("name", "width", "result", "expected"), ONE, ids=[row[0] for row in ONE])
def test_of_one(
    apply: Apply, name: str, width: int, result: int, expected: Callable[[int], int]
) -> None:
    a = words(width, 300, 5)
    got = apply(f"{name} $0, $1;", f"b{result}", a)
    assert got.tolist() == [expected(int(x)) % (1 << result) for x in a]


@pytest.mark.parametrize(
    ("name", "is_signed", "width"),
    [("bfe.u32", False, 32), ("bfe.s32", True, 32), ("bfe.u64", False, 64), ("bfe.s64", True, 64)],
)
def test_fields_are_extracted(apply: Apply, name: str, is_signed: bool, width: int) -> None:
    rng = np.random.default_rng(6)
    a = np.resize(words(width, 100, 6), 900)
    b = rng.integers(0, 80, 900).astype(np.uint32)
    c = rng.integers(0, 80, 900).astype(np.uint32)
    got = apply(f"{name} $0, $1, $2, $3;", f"b{width}", a, b, c)
    want = [
        field(int(x), int(y), int(z), width, is_signed) for x, y, z in zip(a, b, c, strict=True)
    ]
    assert got.tolist() == want


def test_fields_are_inserted(apply: Apply) -> None:
    rng = np.random.default_rng(8)
    a, b = np.resize(words(32, 100, 7), 900), np.resize(words(32, 90, 8), 900)
    c, d = (rng.integers(0, 40, 900).astype(np.uint32) for _ in range(2))
    got = apply("bfi.b32 $0, $1, $2, $3, $4;", "b32", a, b, c, d)
    want = [inserted(*(int(v) for v in row), 32) for row in zip(a, b, c, d, strict=True)]
    assert got.tolist() == want


THREE: list[tuple[str, Callable[[int, int, int], int]]] = [
    ("mad.lo.s32 $0, $1, $2, $3;", lambda a, b, c: a * b + c),
    ("mad.hi.s32 $0, $1, $2, $3;", lambda a, b, c: (S(a, 32) * S(b, 32) >> 32) + c),
    ("sad.s32 $0, $1, $2, $3;", lambda a, b, c: c + abs(S(a, 32) - S(b, 32))),
    ("prmt.b32 $0, $1, $2, $3;", permuted),
    ("prmt.b32.rc16 $0, $1, $2, $3;",
     lambda a, b, c: (a & 65535) * 65537 if c & 3 in (0, 2) and not c & 1 else (a >> 16) * 65537),
    ("shf.l.wrap.b32 $0, $1, $2, $3;", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("shf.r.clamp.b32 $0, $1, $2, $3;", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("shf.l.clamp.b32 $0, $1, $2, $3;", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32),
    ("lop3.b32 $0, $1, $2, $3, 0xE8;", lambda a, b, c: a & b | b & c | a & c),
    ("lop3.b32 $0, $1, $2, $3, 0x96;", lambda a, b, c: a ^ b ^ c),
    ("dp4a.s32.s32 $0, $1, $2, $3;", lambda a, b, c: c + sum(
        S(a >> 8 * i & 255, 8) * S(b >> 8 * i & 255, 8) for i in range(4))),
    ("dp2a.hi.u32.u32 $0, $1, $2, $3;", lambda a, b, c: c + sum(
        (a >> 16 * i & 65535) * (b >> 8 * (i + 2) & 255) for i in range(2))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), THREE, ids=[row[0].split()[0] for row in THREE])
def test_of_three(apply: Apply, text: str, expected: Callable[[int, int, int], int]) -> None:
    a, b, c = (np.resize(words(32, 200 + i, 9 + i), 900) for i in range(3))
    got = apply(text, "b32", a, b, c)
    want = [expected(*(int(v) for v in row)) % (1 << 32) for row in zip(a, b, c, strict=True)]
    assert got.tolist() == want


def test_products_are_widened(apply: Apply) -> None:
    a, b = np.resize(words(32, 200, 12), 900), np.resize(words(32, 190, 13), 900)
    got = apply("mul.wide.s32 $0, $1, $2;", "b64", a, b)
    want = [S(int(x), 32) * S(int(y), 32) % (1 << 64) for x, y in zip(a, b, strict=True)]
    assert got.tolist() == want


def test_carries_go_from_word_to_word(apply: Apply) -> None:
    low, high = (np.resize(words(32, 150 + i, 20 + i), 600) for i in range(2))
    other = np.resize(words(32, 140, 23), 600)
    text = "add.cc.u32 %r90, $1, $3;  addc.u32 $0, $2, $3;"
    got = apply(text, "b32", low, high, other)
    want = [
        ((int(h) << 32 | int(x)) + (int(o) << 32 | int(o)) >> 32) % (1 << 32)
        for x, h, o in zip(low, high, other, strict=True)
    ]
    assert got.tolist() == want
    text = "sub.cc.u32 %r90, $1, $3;  subc.u32 $0, $2, $3;"
    got = apply(text, "b32", low, high, other)
    want = [
        ((int(h) << 32 | int(x)) - (int(o) << 32 | int(o)) >> 32) % (1 << 32)
        for x, h, o in zip(low, high, other, strict=True)
    ]
    assert got.tolist() == want
