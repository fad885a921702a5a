"""Launches of kernels: grid, block and arguments, as they were captured or written by hand.

Nothing here knows PTX: `ptxlint.launch` binds arguments to the parameters of a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

Extent: TypeAlias = tuple[int, int, int]
"""x, y, z."""

AS_COMPILED: Final[Extent] = (0, 0, 0)
"""A block whose size the kernel itself tells: its `.reqntid`, or the warps in its metadata."""

DTYPE_BYTES: Final[Mapping[str, int]] = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "complex32": 4, "complex64": 8, "complex128": 16,
    "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
}  # fmt: skip
"""Bytes of one element, by torch's name of its type."""
SCALAR_BYTES: Final[Mapping[str, int]] = {
    "i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "fp32": 4, "f32": 4, "fp64": 8,
}  # fmt: skip
"""Bytes of a parameter, by Triton's name of its type."""


class Recorded(NamedTuple):
    """Bytes that a storage held before the launch, from byte `start` on: those of the array `key`
    in the .npz `path`. Without a key nothing was recorded, for a `reason`."""

    key: str
    start: int = 0
    known: bool = True
    """False for what comes of kernels that did not run or of tensors that were not computed: a GPU
    would have held something else."""
    reason: str = ""
    path: str = ""


class Tensor(NamedTuple):
    """A tensor argument.

    `dtype` is torch's name without the module (`float32`, `bfloat16`, `int8`, `float8_e4m3fn`);
    `shape` and `strides` are in elements; the first element lies `offset` bytes into a storage of
    `storage_bytes` bytes. Tensors with the same `storage` number alias. `alignment` is the largest
    power of two that divides the address of the first element, as far as that is promised.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: int
    storage_bytes: int
    offset: int = 0
    alignment: int = 16
    fresh: str = ""
    """`uninitialised` or `zeroed` for memory that the host allocated and nothing wrote since."""
    values: tuple[int, int] | None = None
    """The least and the greatest element of a tensor of integers, where that is promised."""
    contents: tuple[int, ...] | None = None
    """The integers in the storage, one behind the other from its first byte on, where they are
    known; `values` are then the least and the greatest of them."""
    freed: bool = False
    """The storage was given back before the launch: nothing in it may be accessed."""
    recorded: Recorded | None = None
    """What its memory held; None if nobody was asked to record that."""


def reach(tensor: Tensor) -> int:
    """Bytes from the first element of a tensor up to behind its furthest one; 0 for none."""
    if any(size == 0 for size in tensor.shape):
        return 0
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return (last + 1) * DTYPE_BYTES.get(tensor.dtype, 1)


class Scalar(NamedTuple):
    """A number that is passed; `type` is Triton's (`u1`, `i32`, `u64`, `fp32`, …), or empty for
    that of the parameter."""

    type: str
    value: int | float


class Constant(NamedTuple):
    """What is compiled in: no parameter of the PTX. `value` is as Python spells it."""

    value: str


class Descriptor(NamedTuple):
    """A tensor descriptor that the host makes: tiles of `block` elements of a tensor.

    `by` says what is passed for it, a tensor `map` that the hardware reads or a `pointer`, and
    `passed` the scalars that follow. Without these the kernel's parameters tell.
    """

    tensor: Tensor
    block: tuple[int, ...]
    padding: str = "zero"
    by: str = ""
    passed: tuple[Scalar, ...] = ()


class Unknown(NamedTuple):
    """A parameter whose argument was not understood, and why."""

    type: str
    reason: str


Argument: TypeAlias = Tensor | Scalar | Constant | Descriptor | Unknown


class Autotuned(NamedTuple):
    """What an autotuner did: it ran so many configurations on the same arguments, of which it set
    `reset` to zero before each and put back `restored`."""

    configurations: int
    reset: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class Launch(NamedTuple):
    """One launch, or `times` alike.

    `arguments` are by name of the source's parameters, or of the kernel's (`k_param_0`), or by
    their numbers (`0`, `1`, …), constants included. Elements of a tuple are arguments of their
    own, named `t[0]`.
    `place` says where it comes from: a file and a path in it, or a line of Python.
    """

    grid: Extent
    block: Extent
    arguments: dict[str, Argument]
    shared: int = -1
    """Dynamic shared memory in bytes; -1 for what the kernel's metadata says."""
    cluster: Extent = (1, 1, 1)
    autotuned: Autotuned | None = None
    place: str = ""
    times: int = 1
    is_ordered: bool = True
    """The arguments stand in the order of the parameters, as a signature lists them. Otherwise
    they are told by their names alone."""
    kernel: str = ""
    """The kernel's name in the PTX; empty for the only one of its file."""
    scratch: tuple[int, int] | None = None
    """Bytes behind the two pointers that Triton appends; None if nobody says."""


__all__ = [
    "AS_COMPILED",
    "DTYPE_BYTES",
    "SCALAR_BYTES",
    "Argument",
    "Autotuned",
    "Constant",
    "Descriptor",
    "Extent",
    "Launch",
    "Recorded",
    "Scalar",
    "Tensor",
    "Unknown",
    "reach",
]
