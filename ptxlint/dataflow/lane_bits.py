"""On which bits of the thread index a value may depend, and where in the value they show.

A *dependence* is a set of sources as bits of an int: the ten bits of the linear thread index
within the CTA (the low five are the lane, the others say which warp), one for the CTA, and one for
memory that may change between the reads of two warps. The empty dependence is a value that is the
same in the whole grid; values join by union.

A 32-bit integer made of thread index bits by shifts and masks also has *planes*: for each source
the 32-bit set of positions that may depend on it, all packed into one int. That is how
`shr.u32 w, %tid.x, 5` is seen to be the same for the lanes of a warp.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

INDEX_BITS: Final = 10
"""A CTA has at most 1024 threads (PTX ISA; CUDA C++ Programming Guide, "Compute Capabilities")."""
LANE: Final = 0x1F
"""The sources that tell the lanes of a warp apart."""
WARP_BITS: Final = 0x3E0
"""The sources that tell the warps of a CTA apart."""
CTA_BIT: Final = 1 << INDEX_BITS
"""The source that tells CTAs apart."""
MEMORY: Final = 1 << INDEX_BITS + 1
"""The source that tells warps apart that read one address at one instruction.

They see the same unless another thread writes there in between. With weak loads such a write is a
data race or stands under a lock.
"""
ANY_WARP: Final = WARP_BITS | CTA_BIT
"""The dependence of what may differ between warps in an unknown way."""
ANY_THREAD: Final = LANE | ANY_WARP
"""The dependence of what may differ between any two threads."""

_SOURCES: Final = INDEX_BITS + 2
_WORD: Final = 0xFFFFFFFF
_ONES: Final = sum(1 << 32 * k for k in range(_SOURCES))


class Level(IntEnum):
    """The largest set of threads over which something is the same; ordered by divergence."""

    GRID = 0
    """The same in all threads of the grid."""
    CTA = 1
    """The same in all threads of a CTA."""
    WARP = 2
    """The same in all threads of a warp."""
    THREAD = 3
    """May differ from lane to lane."""


def level(dependence: int) -> Level:
    """The level of a dependence."""
    if dependence & LANE:
        return Level.THREAD
    if dependence & (WARP_BITS | MEMORY):
        return Level.WARP
    return Level.CTA if dependence else Level.GRID


_spread: Final[dict[int, int]] = {}


def spread(dependence: int) -> int:
    """The planes of a value all of whose bits may depend on these sources."""
    planes = _spread.get(dependence)
    if planes is None:
        planes = sum(_WORD << 32 * k for k in range(_SOURCES) if dependence >> k & 1)
        _spread[dependence] = planes
    return planes


def collapse(planes: int) -> int:
    """The sources that show anywhere in these planes."""
    dependence = 0
    source = 1
    while planes:
        if planes & _WORD:
            dependence |= source
        planes >>= 32
        source <<= 1
    return dependence


def index_field(first: int, count: int) -> int:
    """Planes of an integer that is the thread index bits `first` to `first + count - 1`."""
    return sum(1 << 32 * (first + i) + i for i in range(count))


def keep(planes: int, mask: int) -> int:
    """Planes after `and` with a constant."""
    return planes & (mask & _WORD) * _ONES


def shift_left(planes: int, count: int) -> int:
    """Planes after `shl` by a constant; PTX clamps counts above 32."""
    if count >= 32:
        return 0
    return (planes & (_WORD >> count) * _ONES) << count


def shift_right(planes: int, count: int, signed: bool) -> int:
    """Planes after `shr` by a constant; a signed one copies the top bit downwards."""
    if signed:
        count = min(count, 31)
        return field(planes, count, 32 - count, True)
    return field(planes, count, 32 - count, False) if count < 32 else 0


def field(planes: int, position: int, length: int, signed: bool) -> int:
    """Planes after `bfe`: `length` bits from `position`, extended by the field's top bit."""
    if position >= 32 or length <= 0:
        if signed and length > 0:
            return (planes >> 31 & _ONES) * _WORD
        return 0
    top = min(position + length - 1, 31)
    mask = (1 << min(length, 32 - position)) - 1
    out = planes >> position & mask * _ONES
    if signed:
        # The planes in which the sign bit shows get all the bits above the field.
        out |= (planes >> top & _ONES) * (_WORD ^ mask)
    return out


def insert(inner: int, outer: int, position: int, length: int) -> int:
    """Planes after `bfi` of the low `length` bits of `inner` into `outer` at `position`."""
    if position >= 32 or length <= 0:
        return outer
    mask = (1 << min(length, 32 - position)) - 1
    return (inner & mask * _ONES) << position | keep(outer, _WORD ^ mask << position)


def carry(planes: int) -> int:
    """Planes of a sum or product: a position depends on all lower ones of the operands."""
    for step in (1, 2, 4, 8, 16):
        planes |= (planes & (_WORD >> step) * _ONES) << step
    return planes


def add_constant(planes: int, constant: int) -> int:
    """Planes after adding a constant: nothing changes below its lowest set bit."""
    constant &= _WORD
    if not constant:
        return planes
    low = (constant & -constant) - 1
    return keep(planes, low) | carry(keep(planes, _WORD ^ low))


def times_constant(planes: int, constant: int) -> int:
    """Planes after multiplying by a constant (low half of the product)."""
    constant &= _WORD
    if not constant:
        return 0
    zeros = (constant & -constant).bit_length() - 1
    shifted = shift_left(planes, zeros)
    return shifted if constant == 1 << zeros else carry(shifted)


def at_least(planes: int, bound: int) -> int:
    """The sources that decide `x >= bound` (and `x < bound`), signed or unsigned.

    Bits of x below the lowest set bit of the bound do not matter.
    """
    bound &= _WORD
    low = (bound & -bound) - 1 if bound else 0
    return collapse(keep(planes, _WORD ^ low))


def narrow(planes: int, width: int) -> int:
    """Planes after truncation to `width` bits."""
    return planes if width >= 32 else keep(planes, (1 << width) - 1)


def extend(planes: int, width: int, signed: bool) -> int:
    """Planes after extension from `width` to 32 bits."""
    return field(planes, 0, width, signed) if width < 32 else planes
