"""Floating-point types of tensors by torch's names: how fine they are and how far they reach."""

from __future__ import annotations

from math import frexp, ldexp
from typing import Final, NamedTuple

import numpy as np

from ptxlint.dynamic.cases.seeds import F64
from ptxlint.dynamic.emulator.rounding import FORMATS


class NumberType(NamedTuple):
    """A binary floating-point type: bits of its fraction, the exponent of its smallest normal
    number, and its largest number."""

    fraction: int
    lowest: int
    largest: float
    has_infinity: bool = True

    @property
    def unit(self) -> float:
        """The relative error of rounding to nearest: half a unit in the last place of 1."""
        return 2.0 ** -(self.fraction + 1)

    @property
    def smallest_normal(self) -> float:
        """The smallest number with a full fraction."""
        return 2.0**self.lowest

    @property
    def smallest(self) -> float:
        """The smallest number above 0."""
        return 2.0 ** (self.lowest - self.fraction)

    @property
    def overflows_at(self) -> float:
        """Numbers from here on become infinite; of float64 none that it has."""
        _, exponent = frexp(self.largest)
        return self.largest + ldexp(self.unit, exponent - 1)

    def spacing(self, values: F64) -> F64:
        """A unit in the last place of finite numbers: how far apart the type has them there."""
        _, exponent = np.frexp(values)
        out: F64 = np.ldexp(1.0, np.maximum(exponent - 1, self.lowest) - self.fraction)
        return out


_NAMES: Final = {
    "float16": "f16", "bfloat16": "bf16", "tf32": "tf32", "float32": "f32",
    "float8_e5m2": "e5m2", "float8_e4m3fn": "e4m3",
}  # fmt: skip
NUMBER_TYPES: Final[dict[str, NumberType]] = {
    "float64": NumberType(52, -1022, float(np.finfo(np.float64).max)),
    **{
        name: NumberType(
            FORMATS[form].fraction,
            1 - FORMATS[form].bias,
            FORMATS[form].largest,
            FORMATS[form].has_infinity,
        )
        for name, form in _NAMES.items()
    },
}
"""By torch's names, and `tf32` for what tensor cores make of float32. Other types of tensors are
integers, or none that cases can hold."""


__all__ = ["NUMBER_TYPES", "NumberType"]
