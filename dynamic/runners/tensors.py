"""Tensors of cases as tensors of torch and back, with their layout in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capture.storages import unwatched
from ..cases.arrays import Placed
from ..emulator.elements import kept_as

Array = NDArray[Any]


def tensor_of(placed: Placed) -> Any:
    """A new tensor of torch on the CPU that lies in its storage as the case has it."""
    import torch

    with unwatched():
        data = np.array(placed.storage.view(np.uint8).reshape(-1))
        # Torch's own memory is aligned better than numpy's.
        every = torch.empty(len(data), dtype=torch.uint8).copy_(torch.from_numpy(data))
        empty = torch.empty(0, dtype=getattr(torch, placed.dtype))
        return empty.set_(every.untyped_storage(), placed.offset, placed.shape, placed.strides)


def storage_of(tensor: Any) -> NDArray[np.uint8]:
    """A copy of all bytes of the storage behind a tensor."""
    import torch

    with unwatched():
        held = tensor.untyped_storage()
        every = torch.empty(0, dtype=torch.uint8, device=held.device)
        return np.array(every.set_(held, 0, (held.nbytes(),), (1,)).cpu().numpy())


def placed_again(placed: Placed, data: NDArray[np.uint8]) -> Placed:
    """The same tensor with other bytes in its storage."""
    return placed._replace(storage=data.view(placed.storage.dtype))


def elements_of(tensor: Any) -> tuple[Array, str]:
    """A copy of a tensor's elements, in order, and torch's name of their type. Types that numpy
    lacks are kept as bits (`ptxlint.dynamic.emulator.elements.kept_as`). Raises `KeyError` for a
    type without numbers."""
    import torch

    with unwatched():
        dtype = str(tensor.dtype).removeprefix("torch.")
        kind = kept_as(dtype)
        held = tensor.detach().cpu().contiguous()
        if kind.name != dtype:
            held = held.view({1: torch.uint8, 2: torch.int16}[kind.itemsize])
        return np.array(held.numpy()).view(kind), dtype


__all__ = ["Array", "elements_of", "placed_again", "storage_of", "tensor_of"]
