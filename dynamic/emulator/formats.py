"""How values of PTX types are kept in arrays.

A register's bits are an unsigned array of its width, a predicate a boolean one; an instruction
looks at them as the type it names. Arrays are over CTAs and threads; an axis of length 1 stands for
all that it would hold alike.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.ir.types import bits

Array: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]

RAW: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
"""The array type that holds so many bits."""

_SIGNED: Final = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOATS: Final = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def dtype(type_name: str) -> np.dtype[Any]:
    """The array type of values of a PTX type (without its dot).

    numpy has no bf16, tf32, 8-bit floats, nor packed pairs: of these the bits are kept. Raises
    `KeyError` for a type that no array holds (`b128`).
    """
    found: Any = _FLOATS.get(type_name)
    if found is None:
        width = bits(type_name)
        found = _SIGNED[width] if type_name[0] == "s" and type_name[1:].isdigit() else RAW[width]
    kind: np.dtype[Any] = np.dtype(found)
    return kind


def expanded(values: Array, shape: tuple[int, ...]) -> Array:
    """Values with all axes in full; not to be written to."""
    if values.shape == shape:
        return values
    # `np.broadcast_to` costs more than filling so few bytes.
    out = np.empty(shape, values.dtype)
    out[...] = values
    return out


def some(flags: Flags) -> bool:
    """True if a flag holds: counting is far quicker than numpy's `any`."""
    return bool(np.count_nonzero(flags))


def every(flags: Flags) -> bool:
    """True if all flags hold."""
    return bool(np.count_nonzero(flags) == flags.size)


def raw(values: Array) -> Array:
    """The bits of values."""
    kind = values.dtype
    return values if kind.kind in "bu" else values.view(RAW[8 * kind.itemsize])


def seen_as(bits_: Array, type_name: str) -> Array:
    """The bits of a register as values of a type, which may be narrower than the register."""
    wanted = dtype(type_name)
    have = bits_.dtype
    if have == wanted:
        return bits_
    if have.itemsize > wanted.itemsize or have.itemsize < wanted.itemsize:
        bits_ = bits_.astype(RAW[8 * wanted.itemsize])
    return bits_.view(wanted)


def fitted(values: Array, type_name: str, width: int) -> Array:
    """The bits of values of a type, in a register of `width` bits.

    A wider register gets a signed integer with its sign, anything else with zeros (PTX ISA,
    "Operand Size Exceeding Instruction-Type Size").
    """
    target = RAW[width]
    if 8 * values.dtype.itemsize == max(width, 8) and (width > 1 or values.dtype.kind == "b"):
        return raw(values)
    if values.dtype.kind == "i":
        return values.astype(_SIGNED[width]).view(target)
    return raw(values).astype(target)


__all__ = [
    "RAW",
    "Array",
    "Flags",
    "dtype",
    "every",
    "expanded",
    "fitted",
    "raw",
    "seen_as",
    "some",
]
