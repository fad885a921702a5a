"""What may make launches where there is no GPU, in place of leaving them out.

Memory is what the CPU tensors that stand for those of a GPU hold: whoever makes a launch reads and
writes that, and says which bytes are written then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ptxlint.launches import Launch

from .kernels import Kernel
from .storages import Storage, unwatched


class Memory(NamedTuple):
    """A storage that a kernel is given: its bytes in this process (a view, not a copy), and what is
    known of it."""

    data: Any
    storage: Storage

    @property
    def written(self) -> Any:
        """Flags of the bytes that something was written to; None for all of them."""
        import numpy as np

        if self.storage.cells is not None:
            return self.storage.cells
        return None if self.storage.known else np.zeros(len(self.data), dtype=bool)


class Execution(Protocol):
    """Makes launches. What it raises comes up where the host launches."""

    def launch(self, kernel: Kernel, launch: Launch, memory: Mapping[int, Memory]) -> None:
        """Make a launch; `memory` has the storages of its tensors by number."""

    def allocated(self, tensor: Any) -> None:
        """A tensor was made that holds nothing yet."""


def memory_behind(tensor: Any, storage: Storage) -> Memory:
    """The memory of a tensor on the CPU."""
    import torch

    with unwatched():
        held = tensor.untyped_storage()
        size = int(held.nbytes())
        every = torch.empty(0, dtype=torch.uint8).set_(held, 0, (size,), (1,))
        return Memory(every.numpy(), storage)


__all__ = ["Execution", "Memory", "memory_behind"]
