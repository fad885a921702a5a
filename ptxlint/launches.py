"""Launches of kernels: grid, block and arguments, as they were captured or written by hand.

Nothing here knows PTX: `ptxlint.launch` binds arguments to the parameters of a kernel.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

Extent: TypeAlias = tuple[int, int, int]
"""x, y, z."""

AS_COMPILED: Final[Extent] = (0, 0, 0)
"""A block whose size the kernel itself tells: its `.reqntid`, or the warps in its metadata."""


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


class Scalar(NamedTuple):
    """A number that is passed; `type` is Triton's (`i1`, `i32`, `u64`, `fp32`, …)."""

    type: str
    value: int | float


class Constant(NamedTuple):
    """What is compiled in: no parameter of the PTX. `value` is as Python spells it."""

    value: str


class Descriptor(NamedTuple):
    """A tensor descriptor that the host makes: tiles of `block` elements of a tensor."""

    tensor: Tensor
    block: tuple[int, ...]
    padding: str = "zero"


Argument: TypeAlias = Tensor | Scalar | Constant | Descriptor


class Autotuned(NamedTuple):
    """What an autotuner did: it ran so many configurations on the same arguments, of which it set
    `reset` to zero before each and put back `restored`."""

    configurations: int
    reset: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class Launch(NamedTuple):
    """One launch, or `times` alike.

    `arguments` are by name of the source's parameters, or of the kernel's (`k_param_0`), constants
    included. Elements of a tuple are arguments of their own, named `t[0]`.
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


__all__ = [
    "AS_COMPILED",
    "Argument",
    "Autotuned",
    "Constant",
    "Descriptor",
    "Extent",
    "Launch",
    "Scalar",
    "Tensor",
]
