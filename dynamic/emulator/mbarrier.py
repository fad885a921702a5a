"""An mbarrier object: 64 bits in shared memory (PTX ISA, "mbarrier").

What its bits mean is nobody's business but the hardware's; here they are

| bits | |
|---|---|
| 0–19 | arrivals that the next phase expects |
| 20–39 | arrivals that the phase still waits for |
| 40–60 | tx-count: bytes that it still waits for, as a signed number |
| 62 | 1 from `init` to `inval` |
| 63 | parity of the phase |

A state token, as an arrival returns it, is the object before the arrival.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array, Flags

MOST_ARRIVALS: Final = (1 << 20) - 1
MOST_BYTES: Final = (1 << 20) - 1
_PENDING: Final = np.uint64(20)
_BYTES: Final = np.uint64(40)
_VALID: Final = np.uint64(1 << 62)
_COUNT: Final = np.uint64((1 << 20) - 1)
_TX: Final = np.uint64((1 << 21) - 1)
_PARITY: Final = np.uint64(63)


class Change(NamedTuple):
    """What operations make of objects, in order: the objects behind them, and which completed a
    phase, asked for too many arrivals, or left the range of the tx-count."""

    words: Array
    completed: Flags
    is_over: Flags


def initial(count: Array) -> Array:
    """Objects that expect so many arrivals in each phase."""
    word = count.astype(np.uint64)
    out: Array = word | word << _PENDING | _VALID
    return out


def is_valid(words: Array) -> Flags:
    """Which are objects at all."""
    out: Flags = words & _VALID != 0
    return out


def parity(words: Array) -> Array:
    """The parity of the phase that is not complete yet; also of a state token."""
    return words >> _PARITY


def pending(words: Array) -> NDArray[np.int64]:
    """Arrivals that are still waited for."""
    out: NDArray[np.int64] = (words >> _PENDING & _COUNT).astype(np.int64)
    return out


def transactions(words: Array) -> NDArray[np.int64]:
    """The tx-count, in bytes."""
    found = (words >> _BYTES & _TX).astype(np.int64)
    out: NDArray[np.int64] = found - (found >> 20 << 21)
    return out


def changed(words: Array, arrivals: Array, bytes_: Array, dropped: Array) -> Change:
    """Objects after so many arrivals, of which some are `dropped` from the phases to come, and
    `bytes_` added to the tx-count.

    A phase is complete once neither arrivals nor bytes are waited for; then the next one begins.
    """
    expected = (words & _COUNT).astype(np.int64) - dropped
    left = pending(words) - arrivals
    bytes_left = transactions(words) + bytes_
    is_over = (left < 0) | (np.abs(bytes_left) > MOST_BYTES)
    left = np.maximum(left, 0)
    completed = (left == 0) & (bytes_left == 0)
    left = np.where(completed, expected, left)
    out = (
        expected.astype(np.uint64) & _COUNT
        | left.astype(np.uint64) << _PENDING
        | (bytes_left.astype(np.uint64) & _TX) << _BYTES
        | _VALID
        | (parity(words) ^ completed.astype(np.uint64)) << _PARITY
    )
    return Change(out, completed, is_over)


__all__ = [
    "MOST_ARRIVALS", "MOST_BYTES", "Change", "changed", "initial", "is_valid", "parity", "pending",
    "transactions",
]  # fmt: skip
