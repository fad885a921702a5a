"""Arguments of a launch, from Python's objects to what `ptxlint.launches` holds."""

from __future__ import annotations

import re
from typing import Any

from ptxlint.launches import (
    Argument,
    Constant,
    Descriptor,
    Scalar,
    Tensor,
    Unknown,
)

from .contents import Contents, being_captured
from .kernels import Tuple
from .memory import extent
from .storages import Storage, Storages, unwatched

_ALLOCATION_ALIGNMENT = 256
"""Bytes that the start of what cudaMalloc gives is a multiple of."""
_SPECIALISED = 16
"""Bytes that Triton asks addresses to be a multiple of."""
_MOST_VALUES = 32 << 20
"""Bytes that are looked at for the least and the greatest; of more nothing is computed."""
_MOST_CONTENTS = 4096
"""Elements up to which all are told."""
COUNTING = frozenset({"torch.int32", "torch.int64", "torch.int16", "torch.int8", "torch.uint8"})
"""Types of what kernels take for indices."""
_FLOATS = re.compile(r"(fp|bf|f)\d+")
_INTEGERS = re.compile(r"[iu]\d+")


class Reader:
    """Reads the arguments of one launch."""

    def __init__(self, storages: Storages, tensor_maps: bool, held: Contents | None = None) -> None:
        self._storages = storages
        self._held = held
        self._tensor_maps = tensor_maps
        self._numbers: dict[Any, int] = {}
        self._parameters = 0
        self.seen: list[tuple[int, Any]] = []
        """Tensors that the kernel was given, with the numbers of the PTX parameters."""

    def number(self, tensor: Any) -> int:
        """The number of a tensor's storage among those of the launch."""
        found: int = self._numbers[tensor.untyped_storage()._cdata]
        return found

    def read(self, value: Any, kind: Any) -> Argument | Tuple:
        """One argument; `kind` is Triton's type of the parameter."""
        if isinstance(kind, tuple | list):
            values = tuple(value)
            return Tuple(tuple(self.read(v, k) for v, k in zip(values, kind, strict=True)))
        if kind == "constexpr":
            return Constant(spelled(value))
        argument = self._one(value, kind)
        self._parameters += 1 + (len(argument.passed) if isinstance(argument, Descriptor) else 0)
        return argument

    def _one(self, value: Any, kind: str) -> Argument:
        """An argument that is a parameter of the PTX."""
        if kind.startswith("tensordesc"):
            return self._descriptor(value, kind)
        if kind.startswith("*"):
            return self._pointer(value, kind)
        value = getattr(value, "value", value)
        try:
            if _FLOATS.fullmatch(kind):
                return Scalar(kind, float(value))
            if _INTEGERS.fullmatch(kind):
                return Scalar(kind, int(value))
        except (TypeError, ValueError):
            pass
        return Unknown(kind, f"a {type(value).__name__}")

    def _pointer(self, value: Any, kind: str) -> Argument:
        tensor = _unwrapped(value)
        if not hasattr(tensor, "untyped_storage"):
            return Unknown(kind, f"a {type(value).__name__}, of which only an address is known")
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        if value is tensor:
            return self.tensor(tensor, shape, strides, tensor.dtype)
        dtype, size = _reinterpreted(value.dtype)
        if size != tensor.dtype.itemsize:
            # Elements of another size: all that is there, in a row.
            shape = (extent(shape, strides) * tensor.dtype.itemsize // size,)
            strides = (1,)
        return self.tensor(tensor, shape, strides, dtype)

    def tensor(
        self, tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> Tensor:
        """A tensor, seen with this shape and these strides."""
        self.seen.append((self._parameters, tensor))
        known = self._storages.of(tensor)
        storage = tensor.untyped_storage()
        offset = int(tensor.storage_offset()) * int(tensor.dtype.itemsize)
        size, reached = int(storage.nbytes()), extent(tensor.shape, tensor.stride())
        # A storage that was given back (`resize_(0)`) keeps its tensors' shapes.
        is_freed = size == 0 and reached > 0
        if is_freed:
            size = offset + reached * int(tensor.dtype.itemsize)
        name = str(dtype).removeprefix("torch.")
        values, contents = None, None
        if str(tensor.dtype) == f"torch.{name}" and not is_freed:
            # Of what is reinterpreted these would be other numbers.
            values, contents = _values(tensor, known)
        return Tensor(
            dtype=name,
            shape=tuple(map(int, shape)),
            strides=tuple(map(int, strides)),
            storage=self._numbers.setdefault(storage._cdata, len(self._numbers)),
            storage_bytes=size,
            offset=offset,
            alignment=_alignment(offset, offset if tensor.is_meta else int(tensor.data_ptr())),
            fresh=known.fresh if known is not None else "",
            values=values,
            contents=contents,
            freed=is_freed,
            recorded=None if self._held is None or is_freed else self._held.of(tensor, known),
        )

    def _descriptor(self, value: Any, kind: str) -> Argument:
        base: Any = getattr(value, "base", None)
        if not hasattr(base, "untyped_storage"):
            return Unknown(kind, f"a {type(value).__name__} without a tensor")
        shape, strides = tuple(map(int, value.shape)), tuple(map(int, value.strides))
        block = tuple(map(int, value.block_shape))
        padding = str(getattr(value, "padding", "zero"))
        sizes = [Scalar("i32", size) for size in shape] + [Scalar("i64", s) for s in strides]
        if self._tensor_maps:
            passed = sizes
        else:
            passed = [Scalar("i64", number) for number in (*shape, *strides)]
            flags = (padding == "nan", bool(getattr(value, "round_f32_to_tf32", False)))
            passed += [Scalar("i1", int(flag)) for flag in flags[: _flags(kind)]]
            passed += sizes
        tensor = self.tensor(base, shape, strides, base.dtype)
        by = "map" if self._tensor_maps else "pointer"
        return Descriptor(tensor, block, padding, by, tuple(passed))


def _flags(kind: str) -> int:
    """Flags that this version of Triton passes with a descriptor that is no tensor map."""
    try:
        from triton.backends.driver import expand_signature
    except ImportError:
        # Before Triton 3.8 this was the business of each backend, in 3.6 that of its innards.
        from triton.backends.nvidia import driver

        expand = getattr(driver, "expand_signature", None)
        return 1 if expand is None else int(expand([kind], None).count("i1"))
    return int(expand_signature([kind], [], "nvTmaDesc").count("i1"))


def _unwrapped(value: Any) -> Any:
    """The tensor behind what `triton.reinterpret` made."""
    while not hasattr(value, "untyped_storage") and hasattr(value, "base"):
        value = value.base
    return value


def _values(
    tensor: Any, known: Storage | None
) -> tuple[tuple[int, int] | None, tuple[int, ...] | None]:
    """The least and the greatest integer in the memory behind a tensor, and all of them if they are
    few; None if nobody knows."""
    if known is None or not known.known or tensor.is_meta or str(tensor.dtype) not in COUNTING:
        return None, None
    if tensor.device.type == "cuda" and being_captured():
        # To look would end the capture of a CUDA graph.
        return None, None
    size = tensor.untyped_storage().nbytes()
    count = size // tensor.dtype.itemsize
    if count <= 0 or size > _MOST_VALUES:
        return None, None
    with unwatched():
        every = tensor.new_empty(0).set_(tensor.untyped_storage(), 0, (count,), (1,))
        values = int(every.min()), int(every.max())
        contents = tuple(map(int, every.tolist())) if count <= _MOST_CONTENTS else None
    return values, contents


_NAMES = {
    "fp": "float",
    "bf": "bfloat",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "int1": "bool",
}
"""Triton's names of types, or how they begin, and torch's."""


def _reinterpreted(dtype: Any) -> tuple[str, int]:
    """Torch's name of a type of Triton, and the bytes of an element."""
    if not hasattr(dtype, "primitive_bitwidth"):
        return str(dtype), int(dtype.itemsize)
    name = str(dtype)
    size = max(1, int(dtype.primitive_bitwidth) // 8)
    return _NAMES.get(name) or _NAMES.get(name[:2], name[:2]) + name[2:], size


def _alignment(offset: int, address: int) -> int:
    """The largest power of two that divides an address, up to what allocations promise.

    Stand-ins on the CPU start at multiples of 64, what they stand for at those of 256.
    """
    start_is_aligned = (address - offset) % _SPECIALISED == 0
    bits = offset | _ALLOCATION_ALIGNMENT if start_is_aligned else address | _SPECIALISED
    return bits & -bits


def spelled(value: Any) -> str:
    """A compile-time constant as Python writes it."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple | list):
        inner = ", ".join(map(spelled, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    # Objects say where they lie, which is another place each time.
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))
