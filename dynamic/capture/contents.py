"""What tensors hold before a launch, recorded where that is asked for.

Kept are the bytes of storages, so that views, strides and tensors that share memory are right by
themselves, and formats of any width stay what they are. Alike bytes are kept once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from ptxlint.launches import Recorded

from .memory import extent
from .storages import Storage, unwatched

MOST_IN_ALL: Final = 64 << 20
"""Bytes that one recording keeps; alike ones count once."""


class Contents:
    """Keeps what tensors hold; with `most` 0 nothing is recorded."""

    def __init__(self, most: int, keep: Callable[[str, bytes], None]) -> None:
        self._most = most
        self._keep = keep
        self._seen: set[str] = set()
        self._total = 0

    def of(self, tensor: Any, known: Storage | None) -> Recorded | None:
        """What a tensor's memory holds now; None where nothing is to be recorded or the launch says
        by itself what is in it (zeros, or nothing yet)."""
        if not self._most or (known is not None and known.fresh):
            return None
        if tensor.is_meta:
            return Recorded("", reason="it has no memory")
        start, size = _range(tensor, self._most)
        if size > self._most:
            return Recorded("", reason=f"{size:,} bytes, more than {self._most:,}")
        if tensor.device.type == "cuda" and being_captured():
            return Recorded("", reason="a CUDA graph was being captured")
        data = _bytes(tensor, start, size)
        key = hashlib.blake2b(data, digest_size=16).hexdigest()
        if key not in self._seen:
            if self._total + size > MOST_IN_ALL:
                return Recorded("", reason=f"more than {MOST_IN_ALL:,} bytes in all")
            self._total += size
            self._seen.add(key)
            self._keep(key, data)
        return Recorded(key, start, _is_known(known, start, size))


def _range(tensor: Any, most: int) -> tuple[int, int]:
    """First byte and number of bytes: all of a small storage, of a large one what the tensor
    reaches."""
    size = int(tensor.untyped_storage().nbytes())
    if size <= most:
        return 0, size
    width = int(tensor.dtype.itemsize)
    return int(tensor.storage_offset()) * width, extent(tensor.shape, tensor.stride()) * width


def _bytes(tensor: Any, start: int, size: int) -> bytes:
    import torch

    with unwatched():
        memory = tensor.untyped_storage()
        part = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        found: bytes = part.set_(memory, start, (size,), (1,)).cpu().numpy().tobytes()
    return found


def being_captured() -> bool:
    """True while a CUDA graph is recorded on the GPU: to copy would end that."""
    import torch

    return bool(torch.cuda.is_current_stream_capturing())


def _is_known(known: Storage | None, start: int, size: int) -> bool:
    """True if a GPU would have held the same."""
    if known is None or known.known:
        return True
    return known.cells is not None and bool(known.cells[start : start + size].all())


__all__ = ["MOST_IN_ALL", "Contents", "being_captured"]
