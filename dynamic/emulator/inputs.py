"""What tensors of a launch hold when a kernel is run: seeded, the same on every machine.

A storage is filled whole, by the type of the first tensor that lies in it. What the launch says was
freshly allocated stays so: zeros, or blank, where no file gives it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.rounding import FORMATS, encoded, narrowed, to_bf16
from ptxlint.launches import DTYPE_BYTES, Tensor

_FLOATS: Final = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
_NARROW: Final = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
_COMPLEX: Final = {"complex64": np.float32, "complex128": np.float64, "complex32": np.float16}


class InputError(ValueError):
    """Contents that do not fit the launch: the text says which and what to do."""


class Inputs(Protocol):
    """Where contents come from."""

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """The bytes of the storage behind an argument, `size` of them; None for blank memory."""


def recorded(tensor: Tensor, size: int) -> Array | None:
    """The numbers that the launch tells of a tensor's storage; None if it tells none."""
    if tensor.contents is None:
        return None
    kind = np.dtype(np.uint8 if tensor.dtype == "bool" else tensor.dtype)
    out = np.zeros(size, dtype=np.uint8)
    flat = np.array(tensor.contents).astype(kind).view(np.uint8)
    out[: len(flat)] = flat
    return out


class RandomInputs:
    """Numbers from PCG64, seeded by the seed and the argument's name; what the launch tells of a
    tensor is taken as it is.

    Floating-point numbers are normal with variance 1; integers are uniform between the values that
    the launch promises, else between all that 8 bits hold; wider ones without a promise are zeros,
    as most are indices or lengths, for which any other number could be one too many.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """Drawn anew for each name."""
        if tensor.fresh == "uninitialised":
            return None
        if tensor.fresh == "zeroed":
            return np.zeros(size, dtype=np.uint8)
        told = recorded(tensor, size)
        if told is not None:
            return told
        generator = np.random.Generator(np.random.PCG64([self.seed, zlib.crc32(name.encode())]))
        drawn = _drawn(generator, tensor, size // DTYPE_BYTES[tensor.dtype])
        out = np.zeros(size, dtype=np.uint8)
        flat = np.ascontiguousarray(drawn).view(np.uint8)
        out[: len(flat)] = flat
        return out


def _drawn(generator: np.random.Generator, tensor: Tensor, count: int) -> Array:
    kind = tensor.dtype
    if kind in _COMPLEX:
        return generator.standard_normal(2 * count).astype(_COMPLEX[kind])
    if kind in _FLOATS or kind == "bfloat16" or kind in _NARROW:
        return as_stored(generator.standard_normal(count), kind)
    if kind == "bool":
        return generator.integers(0, 2, count).astype(np.uint8)
    if kind.startswith("float"):
        return generator.integers(0, 256, count * DTYPE_BYTES[kind]).astype(np.uint8)
    target = np.dtype(kind)
    if tensor.values is not None:
        low, high = tensor.values
        return generator.integers(low, high, count, endpoint=True, dtype=np.int64).astype(target)
    if target.itemsize == 1:
        return generator.integers(0, 256, count).astype(np.uint8)
    return np.zeros(count, dtype=target)


def as_stored(values: NDArray[np.float64], kind: str) -> Array:
    """Numbers rounded to a floating-point type of torch's names, as its bits are kept."""
    if kind in _FLOATS:
        return values.astype(_FLOATS[kind])
    if kind == "bfloat16":
        return to_bf16(values.astype(np.float32))
    form = FORMATS[_NARROW[kind]]
    return encoded(narrowed(values, form, "rn", True), form)


class ZeroInputs:
    """Zeros everywhere."""

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """Blank where the host left it so, what the launch tells where it tells something."""
        if tensor.fresh == "uninitialised":
            return None
        told = recorded(tensor, size)
        return np.zeros(size, dtype=np.uint8) if told is None else told


class GivenInputs:
    """Arrays by argument name, and something else for arguments that have none."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], others: Inputs, where: str) -> None:
        self._arrays = dict(arrays)
        self._others = others
        self._where = where

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """The array's elements, laid out by the tensor's strides. Raises `InputError`."""
        given = self._arrays.get(name)
        if given is None:
            return self._others.contents(name, tensor, size)
        width = DTYPE_BYTES[tensor.dtype]
        if given.dtype.itemsize != width:
            if given.dtype.kind != "f" or not tensor.dtype.startswith(("float", "bfloat")):
                raise InputError(
                    f"{self._where}: `{name}` is {given.dtype}, the launch has {tensor.dtype}"
                )
            given = as_stored(given.astype(np.float64), tensor.dtype)
        if given.shape != tensor.shape:
            raise InputError(
                f"{self._where}: `{name}` has shape {list(given.shape)}, the launch has "
                f"{list(tensor.shape)}"
            )
        out = np.zeros(size, dtype=np.uint8)
        view(out, tensor, width)[...] = np.ascontiguousarray(given).view(f"V{width}")
        return out


def view(storage: NDArray[np.uint8], tensor: Tensor, width: int) -> Array:
    """A tensor's elements in its storage, `width` bytes each, by shape and strides."""
    if 0 in tensor.shape:
        return np.zeros(tensor.shape, dtype=f"V{width}")
    if tensor.offset % width:
        raise InputError(f"a {tensor.dtype} begins at byte {tensor.offset} of its storage")
    count = len(storage) // width * width
    flat = storage[:count].view(f"V{width}")[tensor.offset // width :]
    strides = tuple(step * width for step in tensor.strides)
    return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides)


__all__ = [
    "GivenInputs", "InputError", "Inputs", "RandomInputs", "ZeroInputs", "as_stored", "recorded",
    "view",
]  # fmt: skip
