"""Arrays of the host as a launch has them: storages, and tensors that lie in them.

numpy arrays (those of ml_dtypes, too) and torch tensors, which are known by what they can do: torch
is not loaded. Arrays that lie in the same memory of the host do so in the emulator.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.launches import DTYPE_BYTES, Tensor

Bytes = NDArray[np.uint8]
_ALIGNMENT: Final = 256
"""Of the first byte of what a device allocates."""


class ArrayError(ValueError):
    """An array that cannot be passed: the text says why."""


class _Held(NamedTuple):
    """An array: whose memory it lies in, and where. `strides` are in bytes."""

    value: Any
    device: str
    low: int
    """Addresses of the storage's first byte and of the one behind its last."""
    high: int
    first: int
    """The address of the first element."""
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_writeable: bool


class _Storage(NamedTuple):
    number: int
    low: int
    bytes: Bytes
    is_read_only: bool


def is_array(value: Any) -> bool:
    """True for what can be passed as a tensor."""
    return isinstance(value, np.ndarray) or hasattr(value, "untyped_storage")


class HostArrays:
    """The arrays of one call."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Copies what the arrays hold, which are given by the arguments' names. Raises
        `ArrayError`."""
        self._held = [_held(name, value) for name, value in values.items()]
        self._storages: list[_Storage] = []
        self._of: dict[int, _Storage] = {}
        for group in _overlapping(self._held):
            low, high = min(h.low for h in group), max(h.high for h in group)
            storage = _Storage(
                len(self._storages), low, _copied(group[0], low, high),
                not any(held.is_writeable for held in group),
            )  # fmt: skip
            self._storages.append(storage)
            self._of |= {id(held.value): storage for held in group}

    @property
    def read_only(self) -> frozenset[int]:
        """Numbers of storages that must not be written."""
        return frozenset(s.number for s in self._storages if s.is_read_only)

    def tensor(self, value: Any) -> Tensor:
        """An array as a launch tells of it."""
        held, storage = self._find(value), self._of[id(value)]
        size = DTYPE_BYTES[held.dtype]
        offset = held.first - storage.low
        return Tensor(
            held.dtype,
            held.shape,
            tuple(step // size for step in held.strides),
            storage.number,
            len(storage.bytes),
            offset,
            (offset | _ALIGNMENT) & -(offset | _ALIGNMENT),
        )

    def contents(self, name: str, tensor: Tensor, size: int) -> Bytes | None:
        """The bytes of a storage (`Inputs`); blank for what is no array, Triton's scratch."""
        return self._storages[tensor.storage].bytes if tensor.storage >= 0 else None

    def after(self, value: Any, storages: dict[int, Bytes]) -> Any:
        """What an array holds after a run: a new one of its kind, of its type and shape."""
        held, storage = self._find(value), self._of[id(value)]
        data = storages[storage.number].copy()
        offset = held.first - storage.low
        if isinstance(value, np.ndarray):
            array: Any = np.ndarray(
                held.shape, value.dtype, buffer=data, offset=offset, strides=held.strides
            )
            return array
        memory = value.untyped_storage().cpu().clone()
        _put(memory.data_ptr(), data)
        empty = value.detach().new_empty(0, device="cpu")
        return empty.set_(
            memory, int(value.storage_offset()), tuple(value.shape), tuple(value.stride())
        )

    def write_back(self, storages: dict[int, Bytes]) -> None:
        """Put what a run left behind into the arrays themselves."""
        for held in self._held:
            storage = self._of[id(held.value)]
            if storage.is_read_only or not len(storage.bytes):
                continue
            data = storages[storage.number]
            if held.device == "cpu":
                # Only what lies in this array's own memory: of a group each has its part.
                part = data[held.low - storage.low : held.high - storage.low]
                _put(held.low, part)
            else:
                memory = held.value.untyped_storage().cpu().clone()
                _put(memory.data_ptr(), data)
                held.value.untyped_storage().copy_(memory)

    def _find(self, value: Any) -> _Held:
        return next(held for held in self._held if held.value is value)


def _held(name: str, value: Any) -> _Held:
    try:
        return _numpy(value) if isinstance(value, np.ndarray) else _torch(value)
    except ArrayError as error:
        raise ArrayError(f"argument `{name}` {error}") from None


def _numpy(array: NDArray[Any]) -> _Held:
    kind = array.dtype
    if kind.name not in DTYPE_BYTES or not kind.isnative:
        raise ArrayError(f"has elements of {kind}, not one of {_types()}")
    if any(step % kind.itemsize for step in array.strides):
        raise ArrayError(f"has strides of {array.strides} bytes, no multiples of {kind.itemsize}")
    root: NDArray[Any] = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = _extent(root)
    first = array.__array_interface__["data"][0]
    if not array.size:
        low = high = first
    return _Held(
        array, "cpu", low, high, first, kind.name, array.shape, array.strides, array.flags.writeable
    )


def _extent(array: NDArray[Any]) -> tuple[int, int]:
    """Addresses of an array's first byte and of the one behind its last."""
    first = array.__array_interface__["data"][0]
    if not array.size:
        return first, first
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low = first + sum(s for s in steps if s < 0)
    return low, first + sum(s for s in steps if s > 0) + array.itemsize


def _torch(tensor: Any) -> _Held:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPE_BYTES:
        raise ArrayError(f"has elements of {tensor.dtype}, not one of {_types()}")
    device = str(tensor.device)
    if device.startswith("meta") or str(getattr(tensor, "layout", "torch.strided")) != (
        "torch.strided"
    ):
        raise ArrayError("is a tensor without memory of its own, or a sparse one")
    storage = tensor.untyped_storage()
    low, width = int(storage.data_ptr()), DTYPE_BYTES[name]
    return _Held(
        tensor,
        device,
        low,
        low + int(storage.nbytes()),
        low + int(tensor.storage_offset()) * width,
        name,
        tuple(map(int, tensor.shape)),
        tuple(int(step) * width for step in tensor.stride()),
        True,
    )


def _overlapping(every: list[_Held]) -> list[list[_Held]]:
    """Arrays by the memory that they share."""
    groups: list[list[_Held]] = []
    ends: list[tuple[str, int]] = []
    for held in sorted(every, key=lambda h: (h.device, h.low, h.high)):
        if groups and ends[-1][0] == held.device and held.low < ends[-1][1]:
            groups[-1].append(held)
            ends[-1] = held.device, max(ends[-1][1], held.high)
        else:
            groups.append([held])
            ends.append((held.device, held.high))
    return groups


def _copied(held: _Held, low: int, high: int) -> Bytes:
    """The bytes of memory from one address up to, not including, another."""
    if high == low:
        return np.zeros(0, dtype=np.uint8)
    if held.device != "cpu":
        memory = held.value.untyped_storage().cpu()
        return _at(memory.data_ptr(), high - low).copy()
    return _at(low, high - low).copy()


def _at(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _put(address: int, data: Bytes) -> None:
    if len(data):
        _at(address, len(data))[...] = data


def _types() -> str:
    return ", ".join(DTYPE_BYTES)


__all__ = ["ArrayError", "Bytes", "HostArrays", "is_array"]
