"""Memory of a launch, as far as it is known what lies in it, and who reads and writes it when.

Threads of a run go side by side through their kernel, which is one of many orders in which a GPU
may run them. So that what is read holds in all of these, each byte remembers who was there: a warp
of a CTA, between two of its barriers. Two accesses are in order if they are of one warp, or of one
CTA with a barrier between them. A byte that is read out of order, or written so with another value,
is not known; one that is written out of order after it was read makes all results void.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.int64]
"""Offsets in bytes from where a piece of memory begins."""

_NOBODY: Final = -1
_SEVERAL: Final = -2
"""Several CTAs."""
_WARP_BITS: Final = 8
_AGE_BITS: Final = 24
_WARPS: Final = (1 << _WARP_BITS) - 1
"""In place of a warp's number: several warps of one CTA, between the same barriers."""
_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
COMMUTING: Final[dict[str, Callable[..., None]]] = {
    "add": np.add.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "and": np.bitwise_and.at,
    "or": np.bitwise_or.at,
    "xor": np.bitwise_xor.at,
}
"""Atomic operations that leave the same, whatever their order."""


class Update(NamedTuple):
    """An atomic operation: its name in PTX, whether its words are signed."""

    name: str
    signed: bool


class Piece:
    """The bytes of a piece of memory. `known` says which of them are."""

    def __init__(self, data: Bytes, known: Flags) -> None:
        self.data = data
        self.known = known

    def read(self, at: Places, width: int) -> tuple[Numbers, Flags]:
        """The words of so many bytes at some places, and which of them are known."""
        places, inside = self._places(at, width)
        return _word(self.data[places]), inside & self.known[places].all(axis=1)

    def _places(self, at: Places, width: int) -> tuple[Places, Flags]:
        """Each byte of each word, and which words lie inside."""
        inside: Flags = (at >= 0) & (at + width <= len(self.data))
        return np.where(inside, at, 0)[:, None] + np.arange(width), inside


class SharedPiece(Piece):
    """Memory that threads write while others read it. `is_void` once an order decided."""

    def __init__(self, data: Bytes, known: Flags) -> None:
        super().__init__(data, known)
        self.is_void = False
        self._poisoned: Flags = np.zeros(len(data), dtype=bool)
        """Bytes that hold what the order decides."""
        self._wrote, self._read, self._updated = (
            np.full(len(data), _NOBODY, dtype=np.int64) for _ in range(3)
        )
        self._updates: NDArray[np.int8] = np.zeros(len(data), dtype=np.int8)

    def load(self, at: Places, width: int, who: NDArray[np.int64]) -> tuple[Numbers, Flags]:
        """What some warps read."""
        bits, known = self.read(at, width)
        places, inside = self._places(at, width)
        reader = np.broadcast_to(who[:, None], places.shape)
        in_order = _is_after(reader, self._wrote[places])
        in_order &= _is_after(reader, self._updated[places])
        _note(self._read, places[inside], reader[inside])
        return bits, known & in_order.all(axis=1)

    def store(
        self, at: Places, width: int, bits: Numbers, known: Flags, who: NDArray[np.int64]
    ) -> None:
        """What some warps write."""
        places, writer = self._written(at, width, who)
        if not len(places):
            return
        new = _split(bits, width)
        is_known = np.broadcast_to(known[:, None], places.shape)
        old, was_known = self.data[places], self.known[places]
        out_of_order = ~_is_after(writer, self._wrote[places])
        differs = out_of_order & ~((old == new) & was_known & is_known)
        differs |= ~_is_after(writer, self._updated[places])
        self._poisoned[places[differs]] = True
        self.data[places] = new
        self.known[places] = is_known
        # Of lanes that write one byte at once any may be the last.
        lost = (self.data[places] != new) | (self.known[places] != is_known)
        self._poisoned[places[lost]] = True
        _note(self._wrote, places, writer)
        self._forget_poisoned(places)

    def update(
        self,
        update: Update,
        at: Places,
        width: int,
        bits: Numbers,
        known: Flags,
        who: NDArray[np.int64],
    ) -> None:
        """What some warps add atomically, or combine in another way that commutes."""
        places, writer = self._written(at, width, who)
        if not len(places):
            return
        number = 1 + list(COMMUTING).index(update.name) + 8 * update.signed + 16 * (width == 8)
        others = (self._updates[places] != number) & (self._updates[places] != 0)
        in_order = _is_after(writer, self._wrote[places])
        in_order &= _is_after(writer, self._updated[places]) | ~others
        self._poisoned[places[~in_order]] = True
        kind = (_SIGNED if update.signed else _UNSIGNED)[width]
        words = self.data[: len(self.data) // width * width].view(kind)
        number_of = places[:, 0] // width
        COMMUTING[update.name](words, number_of, _split(bits, width).view(kind)[:, 0])
        is_known = np.broadcast_to(known[:, None], places.shape)
        self._poisoned[places[~is_known]] = True
        _note(self._updated, places, writer)
        self._updates[places] = number
        self._poisoned[places[~self.known[places].all(axis=1)]] = True
        self._forget_poisoned(places)

    def spoil(self) -> None:
        """Somebody writes no one knows where: nothing is known from now on."""
        self._poisoned[:] = True
        self.known[:] = False

    def _written(
        self, at: Places, width: int, who: NDArray[np.int64]
    ) -> tuple[Places, NDArray[np.int64]]:
        """The bytes that warps write, with each warp; none if one of them leaves the piece, or
        writes what another one may have read before."""
        places, inside = self._places(at, width)
        writer = np.broadcast_to(who[:, None], places.shape)
        if not inside.all() or (at % width).any():
            self.is_void = True
            return places[:0], writer[:0]
        if not _is_after(writer, self._read[places]).all():
            self.is_void = True
        return places, writer

    def _forget_poisoned(self, places: Places) -> None:
        self.known[places] &= ~self._poisoned[places]


def _note(who: NDArray[np.int64], places: Places, now: NDArray[np.int64]) -> None:
    """Put down who is at some places now. What is in order before that is forgotten."""
    joined = _joined(who[places], now)
    who[places] = joined
    # One byte may be come to by several at once.
    left = who[places]
    more = _joined(left, joined)
    differs = more != left
    who[places[differs]] = more[differs]
    who[places[more == _SEVERAL]] = _SEVERAL


def _joined(before: NDArray[np.int64], now: NDArray[np.int64]) -> NDArray[np.int64]:
    """One in place of two: the later one where they are in order, else several."""
    warps = np.where((before >= 0) & (_cta_of(before) == _cta_of(now)), now | _WARPS, _SEVERAL)
    joined: NDArray[np.int64] = np.where(
        (before == now) | _is_after(now, before), now, np.where(now < 0, now, warps)
    )
    return joined


def stamp(cta: NDArray[np.int64], age: NDArray[np.int64], warp: NDArray[np.int64]) -> Places:
    """Who: a warp of a CTA, after so many of its barriers."""
    return (cta << (_WARP_BITS + _AGE_BITS)) | (age << _WARP_BITS) | warp


def _cta_of(who: NDArray[np.int64]) -> NDArray[np.int64]:
    return who >> (_WARP_BITS + _AGE_BITS)


def _is_after(who: NDArray[np.int64], before: NDArray[np.int64]) -> Flags:
    """True where an access is in order behind an earlier one."""
    warp = who & _WARPS
    same_warp = (before & _WARPS == warp) & (warp != _WARPS)
    same_cta = _cta_of(before) == _cta_of(who)
    later = before >> _WARP_BITS < who >> _WARP_BITS
    found: Flags = (before == _NOBODY) | ((before >= 0) & same_cta & (same_warp | later))
    return found


def _word(data: Bytes) -> Numbers:
    """The unsigned words of some rows of bytes, the lowest first."""
    out = np.zeros(len(data), dtype=np.uint64)
    for at in range(data.shape[1]):
        out |= data[:, at].astype(np.uint64) << np.uint64(8 * at)
    return out


def _split(bits: Numbers, width: int) -> Bytes:
    """The low bytes of some words, the lowest first."""
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(8)
    return (bits[:, None] >> shifts & np.uint64(255)).astype(np.uint8)


__all__ = [
    "COMMUTING", "Bytes", "Flags", "Numbers", "Piece", "Places", "SharedPiece", "Update", "stamp",
]  # fmt: skip
