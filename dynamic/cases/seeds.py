"""Random numbers that are the same on every machine, for every version of numpy and every runner.

The bits are those of Philox-4x64-10 (J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1,
2, 3", SC 2011), whose stream numpy keeps (https://numpy.org/neps/nep-0019-rng-policy.html); what
numpy makes of them may change, and logarithms differ between processors, so numbers are made of
the bits here by exact integer arithmetic and one rounding.
"""

from __future__ import annotations

import hashlib
import json
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Shape = tuple[int, ...]

_VERSION: Final = 1
"""Raised whenever the same seed comes to mean other numbers."""


class Draws:
    """A stream of random numbers. Streams of other words are independent of it."""

    def __init__(self, *words: str | int) -> None:
        """The key of Philox is the first 128 bits of SHA-256 of the words as JSON."""
        told = json.dumps([_VERSION, *words]).encode()
        key = np.frombuffer(hashlib.sha256(told).digest()[:16], dtype="<u8")
        self._bits = np.random.Philox(key=key.astype(np.uint64))

    def raw(self, shape: Shape) -> U64:
        """64 random bits each."""
        out: U64 = np.asarray(self._bits.random_raw(prod(shape)), dtype=np.uint64)
        return out.reshape(shape)

    def uniform(self, shape: Shape) -> F64:
        """Numbers from 0 up to, not including, 1: the upper 53 bits of 64."""
        out: F64 = (self.raw(shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return out

    def normal(self, shape: Shape) -> F64:
        """Numbers of mean 0 and variance 1, within -6 to 6: sums of twelve uniform ones.

        Twelve words of 16 bits each are added as integers; 53 more bits fill the gaps between.
        """
        pieces = self.raw((*shape, 3)).astype("<u8").view("<u2")
        total = pieces.reshape(*shape, 12).sum(axis=-1, dtype=np.int64) - 6 * 65535
        out: F64 = (total.astype(np.float64) + (self.uniform(shape) - 0.5)) * 2.0**-16
        return out

    def integers(self, low: int, high: int, shape: Shape) -> I64:
        """Integers from `low` to `high`, both included. They are remainders of 64 bits: the lower
        ones are more likely, by less than one part in 2^64 / (high - low + 1)."""
        remainders = self.raw(shape) % np.uint64(high - low + 1)
        out: I64 = remainders.astype(np.int64) + np.int64(low)
        return out

    def signs(self, shape: Shape) -> F64:
        """1 or -1."""
        out: F64 = (self.raw(shape) >> np.uint64(63)).astype(np.float64) * 2.0 - 1.0
        return out


__all__ = ["F64", "I64", "U64", "Draws", "Shape"]
