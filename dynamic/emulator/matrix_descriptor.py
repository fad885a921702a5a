"""Matrix descriptors: where `wgmma` finds the elements of a matrix in shared memory.

PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout". The unit is a piece of 16
bytes, neighbours along the major dimension; eight pieces make a core matrix. With W pieces in a row
of the swizzle (1 without), piece p of row r lies, in bytes, at

- K-major, where rows go along M or N and pieces along K:
  `r % 8 * 16 W + r // 8 * stride + p * (leading without a swizzle, else 16)`;
- MN-major, where rows go along K and pieces along M or N: without a swizzle
  `r % 8 * 16 + r // 8 * leading + p * stride`, else
  `r % 8 * 16 W + r // 8 * stride + p % W * 16 + p // W * leading`

behind the start address; then the address is swizzled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.swizzle import swizzled

_WIDTHS: Final = (0, 128, 64, 32)
"""Bytes of a swizzle by the number in bits 62 and 63."""
PIECE: Final = 16


class MatrixDescriptor(NamedTuple):
    """What a descriptor says but for the start address. All are in bytes.

    `first` is the base offset: the number of the 128 bytes, modulo 8, in which the swizzle's
    pattern begins where that is no multiple of its length.
    """

    leading: int
    stride: int
    first: int
    swizzle: int


def start(word: Array) -> Array:
    """The start addresses of descriptors."""
    return (word & np.uint64(0x3FFF)).astype(np.int64) << 4


def layout(word: int) -> MatrixDescriptor:
    """What a descriptor says but for its start address."""
    return MatrixDescriptor(
        (word >> 16 & 0x3FFF) << 4,
        (word >> 32 & 0x3FFF) << 4,
        word >> 49 & 7,
        _WIDTHS[word >> 62 & 3],
    )


@lru_cache(maxsize=256)
def pieces(
    descriptor: MatrixDescriptor, rows: int, across: int, is_k_major: bool
) -> NDArray[np.int64]:
    """Where each piece of a matrix lies behind the start, before the swizzle: rows, pieces."""
    leading, stride, _, swizzle = descriptor
    width = max(1, swizzle // PIECE)
    row, piece = np.arange(rows)[:, None], np.arange(across)[None, :]
    if is_k_major:
        step = piece * (PIECE if swizzle else leading)
        return row % 8 * (PIECE * width) + row // 8 * stride + step
    if not swizzle:
        return row % 8 * PIECE + row // 8 * leading + piece * stride
    inner = piece % width * PIECE + piece // width * leading
    return row % 8 * (PIECE * width) + row // 8 * stride + inner


def addresses(words: Array, rows: int, across: int, is_k_major: bool) -> NDArray[np.int64]:
    """The address of each piece of a matrix in its CTA: descriptors, rows, pieces."""
    out = np.empty((len(words), rows, across), dtype=np.int64)
    upper = words >> np.uint64(16)
    for one in np.unique(upper).tolist():
        chosen = upper == one
        found = layout(one << 16)
        plain = start(words[chosen])[:, None, None] + pieces(found, rows, across, is_k_major)
        out[chosen] = swizzled(plain, found.swizzle, found.first)
    return out


__all__ = ["PIECE", "MatrixDescriptor", "addresses", "layout", "pieces", "start"]
