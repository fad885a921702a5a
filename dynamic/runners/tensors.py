"""Arrays of numpy as tensors of torch and back, with their layout in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..capture.storages import unwatched

Array = NDArray[Any]


def root_of(array: Array) -> Array:
    """The array whose memory an array lies in: itself, or the one that it is a view of."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root


def bytes_of(root: Array) -> NDArray[np.uint8]:
    """The bytes of an array without gaps, as a view."""
    flat: NDArray[np.uint8] = root.reshape(-1).view(np.uint8)
    return flat


def tensor_over(array: Array, dtype: str, device: str = "cpu") -> Any:
    """A tensor that lies as the array does in a storage as large as the array's root: the same
    memory on the CPU, a copy elsewhere. `dtype` is torch's name of it."""
    import torch

    with unwatched():
        root = root_of(array)
        kind = getattr(torch, dtype)
        held = torch.from_numpy(bytes_of(root))
        if device != "cpu":
            held = held.to(device)
        first = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        strides = tuple(step // array.itemsize for step in array.strides)
        empty = torch.empty(0, dtype=kind, device=device)
        return empty.set_(held.untyped_storage(), first // array.itemsize, array.shape, strides)


def storage_bytes(tensor: Any) -> NDArray[np.uint8]:
    """All bytes of the storage behind a tensor: a view on the CPU, a copy of others."""
    import torch

    with unwatched():
        held = tensor.untyped_storage()
        every = torch.empty(0, dtype=torch.uint8, device=held.device)
        found: NDArray[np.uint8] = every.set_(held, 0, (held.nbytes(),), (1,)).cpu().numpy()
        return found


def elements_of(tensor: Any) -> tuple[Array, str]:
    """A copy of a tensor's elements, in order, and torch's name of their type. Types that numpy
    lacks are kept as bits (`ptxlint.dynamic.emulator.elements.kept_as`)."""
    import torch

    with unwatched():
        dtype = str(tensor.dtype).removeprefix("torch.")
        held = tensor.detach().cpu().contiguous()
        if hasattr(np, dtype) or dtype == "bool":
            return np.array(held.numpy()), dtype
        bits = {1: torch.uint8, 2: torch.uint16}[held.dtype.itemsize]
        return np.array(held.view(bits).numpy()), dtype


__all__ = ["Array", "bytes_of", "elements_of", "root_of", "storage_bytes", "tensor_over"]
