"""Memory with margins: what kernels write beside a tensor is seen, what they read there is NaN.

For a GPU, where an access that misses a tensor by a little hits another one. Tensors get storages
of exactly their size, so that nothing else about them is different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..capture.memory import extent
from ..capture.storages import unwatched
from ..cases.arrays import Placed
from .manner import NAN_BYTE

MARGIN: Final = 64 << 10
"""Bytes on each side: a multiple of 256, so that tensors are aligned as they are elsewhere."""
_UNWRITTEN: Final = frozenset(
    {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"}
)
_WRITTEN: Final = frozenset(
    {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like",
     "new_full", "clone"}
)  # fmt: skip


class _Block(NamedTuple):
    """An allocation: all bytes of it, and how many of them are the tensor's."""

    bytes: Any
    size: int
    name: str


class Buffers:
    """The memory of one call. It must be kept as long as the tensors that lie in it."""

    def __init__(self, poison: int = NAN_BYTE, margin: int = NAN_BYTE, room: int = MARGIN) -> None:
        """`poison` is the byte that new memory is filled with, `margin` the one around it, of which
        there are `room` on each side."""
        self._room = room
        self._poison = poison
        self._margin = margin
        self._blocks: list[_Block] = []

    def storage(self, size: int, device: Any, name: str) -> Any:
        """A storage of torch's of so many bytes, poisoned."""
        import torch

        with unwatched():
            every = torch.full(
                (size + 2 * self._room,), self._margin, dtype=torch.uint8, device=device
            )
            every[self._room : self._room + size] = self._poison
            self._blocks.append(_Block(every, size, name))
            return torch._C._construct_storage_from_data_pointer(
                every.data_ptr() + self._room, every.device, size
            )

    def placed(self, given: Placed, device: Any, name: str) -> Any:
        """A tensor of a case, lying as the case has it."""
        import torch

        with unwatched():
            storage = self.storage(given.storage.nbytes, device, name)
            data = np.array(given.storage.view(np.uint8).reshape(-1))
            every = torch.empty(0, dtype=torch.uint8, device=device)
            every.set_(storage, 0, (len(data),), (1,)).copy_(torch.from_numpy(data))
            empty = torch.empty(0, dtype=getattr(torch, given.dtype), device=device)
            return empty.set_(storage, given.offset, given.shape, given.strides)

    def moved(self, tensor: Any, is_written: bool) -> Any:
        """A tensor as new as this one, with margins; it holds the same if that `is_written`."""
        import torch

        with unwatched():
            size = extent(tensor.shape, tensor.stride()) * tensor.dtype.itemsize
            name = f"the tensor of shape {tuple(tensor.shape)} that the operator allocates"
            storage = self.storage(size, tensor.device, name)
            empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            out = empty.set_(storage, 0, tensor.shape, tensor.stride())
            if is_written:
                out.copy_(tensor)
            return out

    def trampled(self) -> tuple[str, ...]:
        """In words, around which tensors something was written."""
        found = []
        for every, size, name in self._blocks:
            with unwatched():
                before = _odd(every[: self._room], self._margin)
                behind = _odd(every[self._room + size :], self._margin)
            if len(before):
                found.append(f"{len(before):,} bytes before {name} were written, the nearest "
                             f"{self._room - int(before[-1])} bytes before it")  # fmt: skip
            if len(behind):
                found.append(f"{len(behind):,} bytes behind {name} were written, the first "
                             f"{int(behind[0])} bytes behind its end")  # fmt: skip
        return tuple(found)


def _odd(part: Any, byte: int) -> NDArray[np.int64]:
    """Where a margin holds something else."""
    found: NDArray[np.int64] = (part != byte).nonzero().reshape(-1).cpu().numpy()
    return found


@contextmanager
def allocations_watched(
    buffers: Buffers, device: str, replaced: Callable[[Any, Any], None]
) -> Iterator[None]:
    """Inside, what is newly allocated on a kind of device gets margins. `replaced` is told the new
    tensor and the one in whose place it is."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = operation(*args, **(kwargs or {}))
            name = operation._schema.name.partition("::")[2]
            if name not in _UNWRITTEN and name not in _WRITTEN:
                return result
            if result.device.type != device or result.layout != _strided():
                return result
            out = buffers.moved(result, name in _WRITTEN)
            replaced(out, result)
            return out

    with Allocations():  # type: ignore[no-untyped-call]
        yield


def _strided() -> Any:
    import torch

    return torch.strided


__all__ = ["MARGIN", "Buffers", "allocations_watched"]
