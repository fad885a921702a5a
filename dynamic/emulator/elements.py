"""Elements of tensors: numbers to the bits that a kernel finds in memory, and back.

Types go by torch's names (`float32`, `bfloat16`, `float8_e4m3fn`, `int8`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.rounding import FORMATS, decoded, encoded, narrowed

_PLAIN: Final = frozenset(
    ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
     "float32", "float64")
)  # fmt: skip
_ENCODED: Final = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


def kept_as(type_name: str) -> np.dtype[np.generic]:
    """The array type that elements are kept in. Raises `KeyError` for a type without numbers."""
    if type_name in _PLAIN:
        return np.dtype(type_name)
    return np.dtype(np.uint16 if FORMATS[_ENCODED[type_name]].width == 16 else np.uint8)


def to_elements(values: Array, type_name: str) -> Array:
    """Numbers as elements, rounded to nearest even; what is too large for a type without infinity
    becomes NaN. Raises `KeyError` as `kept_as`."""
    if type_name in _PLAIN:
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(type_name)
    form = FORMATS[_ENCODED[type_name]]
    rounded = narrowed(np.asarray(values, dtype=np.float64), form)
    if not form.has_infinity:
        rounded = np.where(np.isinf(rounded), np.nan, rounded)
    return encoded(rounded, form)


def to_numbers(elements: Array, type_name: str) -> Array:
    """Elements as numbers, exactly: float64, or int64 for integers (uint64 for those of 64 bits).
    Raises `KeyError` as `kept_as`."""
    if type_name in _PLAIN:
        kind = np.dtype(type_name)
        if kind.kind == "f":
            with np.errstate(invalid="ignore"):
                return elements.astype(np.float64)
        return elements if type_name == "uint64" else elements.astype(np.int64)
    return decoded(elements, FORMATS[_ENCODED[type_name]])


__all__ = ["kept_as", "to_elements", "to_numbers"]
