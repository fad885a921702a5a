"""Integer instructions, and what PTX says of each, on Python's integers, a bit at a time if needed.

Written from the descriptions of PTX ISA, "Integer Arithmetic Instructions", "Comparison and
Selection", "Logic and Shift" and "Data Movement and Conversion", and not from the package.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

Reference = Callable[..., "int | None"]


class Case(NamedTuple):
    """An instruction: its opcode with modifiers, the registers' widths (the result's first), what
    it computes; `tail` is a last operand that is a constant."""

    mnemonic: str
    widths: tuple[int, ...]
    right: Reference
    tail: str = ""


def s(value: int, width: int) -> int:
    """The low bits as a two's complement number."""
    value %= 1 << width
    return value - (1 << width) if value >> (width - 1) else value


def u(value: int, width: int) -> int:
    """The low bits as an unsigned number."""
    return value % (1 << width)


def _quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _rest(a: int, b: int) -> int | None:
    q = _quotient(a, b)
    return None if q is None else a - b * q


def _bit(value: int, at: int) -> int:
    return value >> at & 1


def _bfe(a: int, b: int, c: int, width: int, is_signed: bool) -> int:
    top, position, length = width - 1, b & 255, c & 255
    sign = 0
    if is_signed and length:
        sign = _bit(a, min(position + length - 1, top))
    out = 0
    for i in range(width):
        inside = i < length and position + i <= top
        out |= (_bit(a, position + i) if inside else sign) << i
    return out


def _bfi(a: int, b: int, c: int, d: int, width: int) -> int:
    position, length = c & 255, d & 255
    out = b
    for i in range(length):
        if position + i < width:
            out = out & ~(1 << position + i) | _bit(a, i) << position + i
    return out


def _prmt(a: int, b: int, c: int) -> int:
    data = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    out = 0
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = data[selector & 7]
        if selector & 8:
            byte = 255 if byte & 128 else 0
        out |= byte << 8 * i
    return out


def _shf(a: int, b: int, c: int, left: bool, wrap: bool) -> int:
    n = c & 31 if wrap else min(c, 32)
    return b << n | a >> (32 - n) if left else b << (32 - n) | a >> n


def _lop3(a: int, b: int, c: int, table: int) -> int:
    return sum(_bit(table, _bit(a, i) << 2 | _bit(b, i) << 1 | _bit(c, i)) << i for i in range(32))


def _clz(a: int, width: int) -> int:
    return width - a.bit_length()


def _integers() -> list[Case]:
    out: list[Case] = []
    for width in (16, 32, 64):
        for kind, read in (("s", s), ("u", u)):
            t, w, two = f"{kind}{width}", width, (width,) * 3

            def signed_or_not(apply: Reference, w: int = w, read: Reference = read) -> Reference:
                return lambda *args: apply(*(read(a, w) for a in args))

            f = signed_or_not
            out += [
                Case(f"add.{t}", two, f(lambda a, b: a + b)),
                Case(f"sub.{t}", two, f(lambda a, b: a - b)),
                Case(f"mul.lo.{t}", two, f(lambda a, b: a * b)),
                Case(f"mul.hi.{t}", two, f(lambda a, b, w=w: a * b >> w)),
                Case(f"mad.lo.{t}", (w,) * 4, f(lambda a, b, c: a * b + c)),
                Case(f"div.{t}", two, f(_quotient)),
                Case(f"rem.{t}", two, f(_rest)),
                Case(f"min.{t}", two, f(min)),
                Case(f"max.{t}", two, f(max)),
                Case(f"shr.{t}", (w, w, 32), lambda a, b, w=w, r=read: r(a, w) >> min(b, w)),
            ]
            if width < 64:
                out += [
                    Case(f"mul.wide.{t}", (2 * w, w, w), f(lambda a, b: a * b)),
                    Case(
                        f"mad.wide.{t}",
                        (2 * w, w, w, 2 * w),
                        lambda a, b, c, w=w, r=read: r(a, w) * r(b, w) + c,
                    ),
                ]
            if width > 16:
                out += [
                    Case(f"mad.hi.{t}", (w,) * 4, f(lambda a, b, c, w=w: (a * b >> w) + c)),
                    Case(
                        f"bfe.{t}",
                        (w, w, 32, 32),
                        lambda a, b, c, w=w, k=kind: _bfe(a, b, c, w, k == "s"),
                    ),
                ]
        b, w = f"b{width}", width
        out += [
            Case(f"neg.s{width}", (w, w), lambda a: -a),
            Case(f"abs.s{width}", (w, w), lambda a, w=w: abs(s(a, w))),
            Case(f"and.{b}", (w, w, w), lambda a, b: a & b),
            Case(f"or.{b}", (w, w, w), lambda a, b: a | b),
            Case(f"xor.{b}", (w, w, w), lambda a, b: a ^ b),
            Case(f"not.{b}", (w, w), lambda a: ~a),
            Case(f"cnot.{b}", (w, w), lambda a: int(a == 0)),
            Case(f"shl.{b}", (w, w, 32), lambda a, b, w=w: a << b if b < w else 0),
        ]
    return out


def _bits() -> list[Case]:
    out: list[Case] = []
    for width in (32, 64):
        b, w = f"b{width}", width
        out += [
            Case(f"bfi.{b}", (w, w, w, 32, 32), lambda a, b, c, d, w=w: _bfi(a, b, c, d, w)),
            Case(f"popc.{b}", (32, w), lambda a: bin(a).count("1")),
            Case(f"clz.{b}", (32, w), lambda a, w=w: _clz(a, w)),
            Case(f"brev.{b}", (w, w), lambda a, w=w: int(f"{a:0{w}b}"[::-1], 2)),
        ]
    out += [
        Case("prmt.b32", (32,) * 4, _prmt),
        Case("lop3.b32", (32,) * 4, lambda a, b, c: _lop3(a, b, c, 0x96), "0x96"),
        Case("lop3.b32", (32,) * 4, lambda a, b, c: _lop3(a, b, c, 0x3A), "0x3a"),
    ]
    for way in "lr":
        for mode in ("wrap", "clamp"):
            out.append(
                Case(
                    f"shf.{way}.{mode}.b32",
                    (32,) * 4,
                    lambda a, b, c, way=way, mode=mode: _shf(a, b, c, way == "l", mode == "wrap"),
                )
            )
    return out


def _conversions() -> list[Case]:
    out = []
    kinds = [(k, w) for k in "su" for w in (8, 16, 32, 64)]
    for to, to_width in kinds:
        for of, of_width in kinds:
            if (to, to_width) == (of, of_width):
                continue
            # Registers of 8 bits are as good as none: wider ones hold such numbers.
            target, source = max(16, to_width), max(16, of_width)
            read, written = (s if of == "s" else u), (s if to == "s" else u)
            out.append(
                Case(
                    f"cvt.{to}{to_width}.{of}{of_width}",
                    (target, source),
                    lambda a, r=read, v=written, i=of_width, o=to_width: v(r(a, i), o),
                )
            )
    return out


CASES = [*_integers(), *_bits(), *_conversions()]

_ENDS = (0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1000, 0x7FFF,
         0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 32,
         (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, (1 << 64) - 1)  # fmt: skip


def operands(case: Case, count: int, random: Random) -> list[tuple[int, ...]]:
    """Source operands that reach the ends of words and everything between."""

    def one(width: int) -> int:
        choice = random.random()
        if choice < 0.5:
            return u(random.choice(_ENDS), width)
        return (
            random.getrandbits(width) >> random.randrange(width)
            if choice < 0.8
            else (random.getrandbits(width))
        )

    return [tuple(one(width) for width in case.widths[1:]) for _ in range(count)]


def expected(case: Case, sources: tuple[int, ...]) -> int | None:
    """The result as the bits of its register; None where PTX does not say."""
    found = case.right(*sources)
    return None if found is None else u(found, case.widths[0])
