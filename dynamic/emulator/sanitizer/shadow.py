"""For each byte of a memory: who wrote it last and who read it since, and when."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.sanitizer.between import Between

_THREAD_BITS: Final = 10
_ATOMIC: Final = 1 << _THREAD_BITS
_TIME: Final = _THREAD_BITS + 1
"""Where the time begins in a stamp; 0 is nobody."""
LATEST: Final = (1 << 31 - _TIME) - 1
"""The last time that a stamp tells; what comes later has this one."""
_WARP: Final = 32

Stamps = NDArray[np.int32]


class Touch(NamedTuple):
    """Stamps taken apart: which threads, when, and whether atomically. `is_any` is false where
    nobody touched the byte."""

    thread: NDArray[np.int64]
    warp: NDArray[np.int64]
    time: NDArray[np.int32]
    is_atomic: NDArray[np.bool_]
    is_any: NDArray[np.bool_]


def stamp(thread: NDArray[np.int64], time: NDArray[np.int32], is_atomic: bool) -> Stamps:
    """Who, when, and how, in one word."""
    early = np.minimum(time, LATEST).astype(np.int64)
    word = early << _TIME | thread | (_ATOMIC if is_atomic else 0)
    return word.astype(np.int32)


def taken_apart(stamps: Stamps) -> Touch:
    """What `stamp` put together."""
    thread = (stamps & (_ATOMIC - 1)).astype(np.int64)
    return Touch(
        thread,
        thread // _WARP,
        stamps >> _TIME,
        stamps & _ATOMIC != 0,
        stamps != 0,
    )


def _blank(size: int) -> Stamps:
    # Not `zeros_like`, which writes: no memory is taken for stamps of bytes that nothing touches.
    return np.zeros(size, dtype=np.int32)


class Shadow:
    """Stamps of the bytes of one memory. `owner` tells CTAs apart where several share the memory,
    by the number that each was given (0: nobody)."""

    def __init__(self, size: int, is_shared_by_ctas: bool) -> None:
        self.written: Stamps = _blank(size)
        self.read: tuple[Stamps, Stamps] = (_blank(size), _blank(size))
        """Of two readers, so that one does not hide another; more are not kept."""
        self.writer: Stamps | None = _blank(size) if is_shared_by_ctas else None
        self.reader: Stamps | None = _blank(size) if is_shared_by_ctas else None
        self.constant: NDArray[np.bool_] | None = None
        """Bytes that were read as what nobody writes during the launch (`ld.global.nc`)."""
        self.between = Between()
        """What the CTAs that share the memory hand to each other."""


__all__ = ["LATEST", "Shadow", "Stamps", "Touch", "stamp", "taken_apart"]
