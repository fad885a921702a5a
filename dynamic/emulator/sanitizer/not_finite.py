"""Which bits of floating-point types are NaN or an infinity."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, raw
from ptxlint.dynamic.emulator.rounding import FORMATS, decoded

_PARTS: Final[dict[str, tuple[int, int, int]]] = {
    "f16": (16, 0x7C00, 0x03FF), "bf16": (16, 0x7F80, 0x007F), "tf32": (32, 0x7F800000, 0x7FE000),
    "f32": (32, 0x7F800000, 0x7FFFFF), "f64": (64, 0x7FF << 52, (1 << 52) - 1),
    "e5m2": (8, 0x7C, 0x03), "e4m3": (8, 0x7F, 0),
}  # fmt: skip
"""By type: its width, and the masks of its exponent and mantissa. Of e4m3 one pattern is NaN."""
_ANY: Final[dict[int, tuple[str, ...]]] = {
    16: ("f16", "bf16"), 32: ("f32", "f16", "bf16"), 64: ("f64", "f32", "f16", "bf16"),
}  # fmt: skip


class NotFinite(NamedTuple):
    """Where some part of a value is NaN, and where one is an infinity."""

    nan: Flags
    infinite: Flags

    @property
    def either(self) -> Flags:
        """Where one of the two is so."""
        return self.nan | self.infinite


def is_floating(kind: str) -> bool:
    """True for types whose numbers may be NaN."""
    return kind.removesuffix("x2").removesuffix("x4") in _PARTS


def not_finite(values: Array, kind: str) -> NotFinite | None:
    """Of values of a type, packed or not; None if all are finite."""
    name = kind.removesuffix("x2").removesuffix("x4")
    width, exponent, mantissa = _PARTS[name]
    parts = _parts(raw(values), width)
    one = parts.dtype.type
    full = parts & one(exponent) == one(exponent)
    if not full.any():
        return None
    is_nan = full if name == "e4m3" else full & (parts & one(mantissa) != 0)
    return NotFinite(is_nan.any(axis=-1), (full & ~is_nan).any(axis=-1))


def _parts(words: Array, width: int) -> Array:
    """Words as their parts of so many bits, along a new last axis."""
    if 8 * words.dtype.itemsize <= width:
        return words.astype(RAW[width])[..., None]
    return np.ascontiguousarray(words)[..., None].view(RAW[width])


def may_be_not_finite(words: Array) -> Flags:
    """Where bits are NaN or an infinity of some type that fits in there; of 8 bits, everywhere."""
    out = np.zeros(words.shape, dtype=bool)
    width = 8 * words.dtype.itemsize
    if width < 16:
        return ~out
    for kind in _ANY[width]:
        found = not_finite(words, kind)
        if found is not None:
            out |= found.either
    return out


def spelled(value: Array, kind: str) -> str:
    """One value of a type, as people write it."""
    name = kind.removesuffix("x2").removesuffix("x4")
    width = _PARTS[name][0]
    parts = _parts(raw(value.reshape(1)), width)[0]
    if name in ("f16", "f32", "f64"):
        numbers = parts.view({16: np.float16, 32: np.float32, 64: np.float64}[width])
    else:
        numbers = decoded(parts, FORMATS[name])
    words = [f"{float(x):.7g}" for x in numbers]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


__all__ = ["NotFinite", "is_floating", "may_be_not_finite", "not_finite", "spelled"]
