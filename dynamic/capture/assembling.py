"""Compiling without the assembler: Triton's way ends with the PTX.

What the emulator runs needs no machine code, and to assemble takes about as long as all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

_MARK = "-not-assembled"


@contextmanager
def assembler_skipped() -> Iterator[None]:
    """Inside, what Triton compiles has an empty cubin. Triton's cache keeps it apart from what is
    assembled."""
    from triton.backends.nvidia.compiler import CUDABackend

    genuine = CUDABackend.hash

    def named(self: Any) -> str:
        return f"{genuine(self)}{_MARK}"

    def nothing(self: Any, *_: Any, **__: Any) -> bytes:
        return b""

    with (
        mock.patch.object(CUDABackend, "hash", named),
        mock.patch.object(CUDABackend, "make_cubin", nothing),
    ):
        yield


__all__ = ["assembler_skipped"]
