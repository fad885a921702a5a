"""The same kernels with other numbers of warps and stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


@contextmanager
def configured(num_warps: int | None, num_stages: int | None) -> Iterator[None]:
    """Inside, Triton compiles kernels with these in place of what the host asks for."""
    wanted = {"num_warps": num_warps, "num_stages": num_stages}
    wanted = {name: number for name, number in wanted.items() if number is not None}
    if not wanted:
        yield
        return
    from triton.runtime.jit import JITFunction

    genuine = JITFunction.run

    def run(self: Any, *args: Any, **named: Any) -> Any:
        return genuine(self, *args, **{**named, **wanted})

    with mock.patch.object(JITFunction, "run", run):
        yield


__all__ = ["configured"]
