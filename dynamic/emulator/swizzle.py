"""Swizzled shared memory: which of 16-byte pieces change places.

A swizzle of 32, 64 or 128 bytes XORs the lowest one, two or three bits of a piece's number within
its 128 bytes with the lowest bits of the number of these 128 bytes (PTX ISA, "Swizzling Modes";
CUDA Programming Guide, "TMA Swizzle"). Only addresses count, so a copy and a matrix instruction
agree whatever tile they are at work on.
"""

from __future__ import annotations

from typing import Final

from ptxlint.dynamic.emulator.formats import Array

_BITS: Final = {0: 0, 32: 1, 64: 2, 128: 3}


def swizzled(address: Array, width: int, first: Array | int = 0) -> Array:
    """Where bytes lie that have an address before the swizzle of `width` bytes (0: none).

    `first` is the number of the 128 bytes, modulo 8, that the pattern starts with.
    """
    bits = _BITS[width]
    if not bits:
        return address
    row = (address >> 7) - first & (1 << bits) - 1
    out: Array = address ^ row << 4
    return out


__all__ = ["swizzled"]
