"""What integer operations come to without the ends of words.

A word of 32 bits may be meant as signed or as unsigned, and instructions that compute either are
the same (`add`, `mul.lo`). So it has two exact numbers: one if all words that it was made of are
signed, one if they are unsigned. As soon as it is widened, or is an address itself, it is right if
one of them is what it is taken for: then it was meant so. Literals count as they are written.

A word of 64 bits is signed. What is beyond it is counted in multiples of 2^64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.semantics.integer import high_half

Whole = NDArray[np.int64]


class Excess(NamedTuple):
    """What has to be added to a register to come to the exact number.

    Of 32 bits `first` is added to it as a signed number and `second` to it as an unsigned one; of
    64 bits `second` counts multiples of 2^64.
    """

    first: Whole
    second: Whole

    @property
    def is_any(self) -> bool:
        """True if there is one in some lane."""
        return bool(self.first.any() or self.second.any())


class Number(NamedTuple):
    """An operand: its bits, what they lack (None: nothing), and whether it is a literal."""

    word: Array
    excess: Excess | None
    is_literal: bool = False

    @property
    def signed(self) -> Whole:
        """The exact number, if 32 bits are signed."""
        own: Whole = self.word.view(np.int32).astype(np.int64)
        return own if self.excess is None else own + self.excess.first

    @property
    def unsigned(self) -> Whole:
        """The exact number, if 32 bits are unsigned."""
        if self.is_literal:
            return self.signed
        own: Whole = self.word.astype(np.int64)
        return own if self.excess is None else own + self.excess.second

    @property
    def held(self) -> Whole:
        """What 64 bits hold."""
        own: Whole = self.word.view(np.int64)
        return own

    @property
    def lacks(self) -> tuple[Any, Any]:
        """The excess of 64 bits, zeros without one."""
        return (_NOTHING, _NOTHING) if self.excess is None else self.excess


_NOTHING: Final = np.zeros((1, 1), dtype=np.int64)


def _some(first: Whole, second: Whole) -> Excess | None:
    found = Excess(*np.broadcast_arrays(first, second))
    return found if found.is_any else None


# 32 bits --------------------------------------------------------------------------------------
Compute: TypeAlias = Callable[..., Any]


def narrow(compute: Compute, operands: list[Number], result: Array) -> Excess | None:
    """The excess of an operation on 32 bits; `compute` does it on whole numbers."""
    signed = compute(*(o.signed for o in operands)) - result.view(np.int32).astype(np.int64)
    unsigned = compute(*(o.unsigned for o in operands)) - result.astype(np.int64)
    return _some(signed, unsigned)


def widened(number: Number, is_signed: bool) -> Whole:
    """What 32 bits lack where they are taken for a number, signed or not: nothing if they are one
    of their exact numbers."""
    taken = _taken(number, is_signed)
    signed, unsigned = number.signed - taken, number.unsigned - taken
    chosen = signed if is_signed else unsigned
    out: Whole = np.where((signed == 0) | (unsigned == 0), 0, chosen)
    return out


def misses(number: Number, offset: int, is_signed: bool) -> Whole:
    """By how much an address of 32 bits and an offset is not what was computed; likewise a
    coordinate, which is signed."""
    word = number.word
    if is_signed:
        taken = word.view(np.int32).astype(np.int64)
    else:
        taken = (word + np.uint32(offset & 0xFFFFFFFF)).astype(np.int64)
    signed, unsigned = number.signed + offset - taken, number.unsigned + offset - taken
    out: Whole = np.where(unsigned == 0, 0, signed)
    return out


def extended(number: Number, is_signed: bool) -> Excess | None:
    """The excess of 32 bits that become 64."""
    return _some(widened(number, is_signed), _NOTHING)


def wide_product(a: Number, b: Number, is_signed: bool, added: Number | None) -> Excess | None:
    """The excess of a product of 32 bits in 64, and of what is added to it."""
    (x, more_x), (y, more_y) = ((_taken(o, is_signed), widened(o, is_signed)) for o in (a, b))
    first = more_x * y + x * more_y + more_x * more_y
    if added is None:
        return _some(first, _NOTHING)
    lack, beyond = added.lacks
    total = x * y
    return _some(first + lack, beyond + _passed(total, added.held, total + added.held))


def _taken(number: Number, is_signed: bool) -> Whole:
    word = number.word.view(np.int32) if is_signed else number.word
    out: Whole = word.astype(np.int64)
    return out


# 64 bits --------------------------------------------------------------------------------------
def _passed(a: Whole, b: Whole, total: Whole) -> Whole:
    """By how many multiples of 2^64 a sum is beyond its word."""
    beyond = (a ^ total) & (b ^ total) < 0
    return np.where(beyond, np.where(a < 0, -1, 1), 0)


def total(a: Number, b: Number) -> Excess | None:
    """The excess of a sum of 64 bits."""
    (lack_a, beyond_a), (lack_b, beyond_b) = a.lacks, b.lacks
    passed = _passed(a.held, b.held, a.held + b.held)
    return _some(lack_a + lack_b, beyond_a + beyond_b + passed)


def difference(a: Number, b: Number) -> Excess | None:
    """The excess of a difference of 64 bits."""
    (lack_a, beyond_a), (lack_b, beyond_b) = a.lacks, b.lacks
    passed = _passed(a.held - b.held, b.held, a.held)
    return _some(lack_a - lack_b, beyond_a - beyond_b - passed)


def product(a: Number, b: Number) -> Excess | None:
    """The excess of a product of 64 bits."""
    (lack_a, beyond_a), (lack_b, beyond_b) = a.lacks, b.lacks
    x, y = a.held, b.held
    beyond = beyond_a * y + x * beyond_b
    if _greatest(x) * _greatest(y) >= 2.0**62:
        beyond = beyond + high_half(x, y) - (x * y >> 63)
    return _some(lack_a * y + x * lack_b + lack_a * lack_b, beyond)


def _greatest(values: Whole) -> float:
    return max(abs(float(values.min(initial=0))), abs(float(values.max(initial=0))))


def shifted(a: Number, count: Array) -> Excess | None:
    """The excess of 64 bits shifted to the left; a word that is shifted out is no number."""
    by = np.minimum(count, np.uint32(63)).astype(np.int64)
    lack, beyond = a.lacks
    x = a.held
    passed = (x >> (63 - by) >> 1) - (x << by >> 63)
    is_number = count < 64
    return _some(np.where(is_number, lack << by, 0),
                 np.where(is_number, (beyond << by) + passed, 0))  # fmt: skip


def shortened(a: Number, result: Array, is_number: bool) -> Excess | None:
    """The excess of 64 bits of which 32 are kept. Of what is no number but bits put together, the
    upper ones are not missed."""
    lack, _ = a.lacks
    if not is_number:
        return _some(lack, lack)
    exact = a.held + lack
    return _some(exact - result.view(np.int32).astype(np.int64), exact - result.astype(np.int64))


# Both -----------------------------------------------------------------------------------------
def chosen(flags: Array, a: Number, b: Number) -> Excess | None:
    """The excess of the first where flags hold, else of the second."""
    (a_first, a_second), (b_first, b_second) = (_own(o) for o in (a, b))
    return _some(np.where(flags, a_first, b_first), np.where(flags, a_second, b_second))


def _own(number: Number) -> tuple[Whole, Whole]:
    """The excess as it is; that of a literal is none in either way of reading it."""
    if number.excess is not None:
        return number.excess
    if number.is_literal and number.word.dtype.itemsize == 4:
        return _NOTHING, number.signed - number.word.astype(np.int64)
    return _NOTHING, _NOTHING


def copied(number: Number) -> Excess | None:
    """The excess of what is moved."""
    return _some(*_own(number))


__all__ = [
    "Excess", "Number", "Whole", "chosen", "copied", "difference", "extended", "misses", "narrow",
    "product", "shifted", "shortened", "total", "wide_product", "widened",
]  # fmt: skip
