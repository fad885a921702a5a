"""Tensors of any size whose memory is only there where it is written."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from typing import Any

_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0
"""MAP_NORESERVE, which older versions of Python do not name."""


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last of a layout."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def sparse_zeros(shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
    """A CPU tensor of zeros. Its pages cost nothing until they are written.

    Raises OSError when the system has not even the addresses.
    """
    import torch

    size = max(1, extent(shape, strides) * dtype.itemsize)
    # Not counted as committed: a script may hold more than the machine has, as long as most of it
    # is never written.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    pages = mmap.mmap(-1, size, flags=flags)
    storage = torch.frombuffer(pages, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, 0, tuple(shape), tuple(strides))
