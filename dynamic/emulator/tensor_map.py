"""Tensor maps: how tensor copies find the tiles of a tensor in global memory.

The layout of the 128 bytes is the hardware's secret. Programs only pass them on, and write their
fields by `tensormap.replace`, so here they have a layout of their own, little endian:

| bytes | field |
|---|---|
| 0–7 | address of the tensor |
| 8–39 | strides of dimensions 1 to 4 in bytes, 8 bytes each |
| 40–59 | extents of dimensions 0 to 4 in elements |
| 60–79 | extents of a tile |
| 80–99 | elements from one that is copied to the next, in each dimension |
| 100–103 | number of dimensions, less one |
| 104–107 | type of the elements |
| 108–111 | interleaving |
| 112–115 | swizzle of shared memory |
| 116–119 | what stands for elements outside: 0, or NaN |
| 120–123 | size of the swizzle's atoms |

Dimension 0 is the innermost one. Numbers for types, swizzles and fills are those that
`tensormap.replace` takes (PTX ISA, "tensormap.replace", "Tensor-map"); limits are those of CUDA's
`cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

SIZE: Final = 128
MOST_DIMENSIONS: Final = 5
_FORM: Final = struct.Struct("<Q4Q5I5I5I6I4x")
assert _FORM.size == SIZE

ELEMENTS: Final = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "", "f64", "bf16",
)  # fmt: skip
"""PTX types by number. Those that change elements on their way (8 and 12 flush subnormal numbers,
11 rounds to tf32) and those below 8 bits are not run."""
WIDTHS: Final = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8,
    "bf16": 2,
}  # fmt: skip
"""Bytes of an element."""
SWIZZLES: Final = (0, 32, 64, 128)
"""Bytes of a swizzle by number."""


class Field(NamedTuple):
    """Where a field begins, and how wide it is (for each dimension, if there are several)."""

    offset: int
    width: int
    dimensions: int = 1


FIELDS: Final = {
    "global_address": Field(0, 8),
    "global_stride": Field(8, 8, 4),
    "global_dim": Field(40, 4, 5),
    "box_dim": Field(60, 4, 5),
    "element_stride": Field(80, 4, 5),
    "rank": Field(100, 4),
    "elemtype": Field(104, 4),
    "interleave_layout": Field(108, 4),
    "swizzle_mode": Field(112, 4),
    "fill_mode": Field(116, 4),
    "swizzle_atomicity": Field(120, 4),
}
"""By the names of `tensormap.replace`."""


class TensorMap(NamedTuple):
    """What a map says.

    `extents`, `box` and `steps` have an entry for each dimension, innermost first; `strides` are in
    bytes and begin with dimension 1. `element` is a number of `ELEMENTS`, `swizzle` one of
    `SWIZZLES`; `fill` is 1 for NaN.
    """

    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    element: int
    swizzle: int = 0
    fill: int = 0
    interleave: int = 0
    atoms: int = 0

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return WIDTHS[ELEMENTS[self.element]]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of a tile are copied in each dimension, innermost first."""
        outer = zip(self.box[1:], self.steps[1:], strict=True)
        # Without interleaving the step of the innermost dimension is not looked at.
        return (self.box[0], *(-(-size // step) for size, step in outer))

    @property
    def row(self) -> int:
        """Bytes of the innermost dimension of a tile."""
        return self.box[0] * self.width

    @property
    def size(self) -> int:
        """Bytes of a tile in shared memory, those outside of the tensor included."""
        out = self.width
        for count in self.counts:
            out *= count
        return out

    @property
    def pitch(self) -> int:
        """Bytes from row to row in shared memory: swizzled rows take the swizzle's whole width."""
        return SWIZZLES[self.swizzle] or self.row

    def encode(self) -> bytes:
        """The 128 bytes. Raises `ValueError` for numbers that have no room there."""

        def filled(numbers: Sequence[int], count: int) -> list[int]:
            return [*numbers, *([0] * (count - len(numbers)))]

        try:
            return _FORM.pack(
                self.address, *filled(self.strides, 4), *filled(self.extents, 5),
                *filled(self.box, 5), *filled(self.steps, 5), len(self.extents) - 1, self.element,
                self.interleave, self.swizzle, self.fill, self.atoms,
            )  # fmt: skip
        except struct.error as error:
            raise ValueError(f"a tensor map has no room for this: {error}") from None


def decode(data: bytes) -> TensorMap | str:
    """What 128 bytes say, or why they are no map that may be used."""
    address, *numbers = _FORM.unpack(data)
    strides, numbers = numbers[:4], numbers[4:]
    extents, box, steps, rest = numbers[:5], numbers[5:10], numbers[10:15], numbers[15:]
    rank, element, interleave, swizzle, fill, atoms = rest
    count = rank + 1
    if count > MOST_DIMENSIONS:
        return f"it has {count:,} dimensions; there are at most {MOST_DIMENSIONS}"
    if element >= len(ELEMENTS) or not ELEMENTS[element]:
        return f"its elements are of type {element}, which is not run"
    if swizzle >= len(SWIZZLES):
        return f"its swizzle is {swizzle}, which is not run"
    if interleave:
        return "its elements are interleaved, which is not run"
    if atoms:
        return f"its swizzle has atoms of mode {atoms}, which is not run"
    found = TensorMap(
        address, tuple(extents[:count]), tuple(strides[: count - 1]), tuple(box[:count]),
        tuple(steps[:count]), element, swizzle, fill, interleave, atoms,
    )  # fmt: skip
    return _problem(found) or found


def _problem(found: TensorMap) -> str:
    """What the hardware does not take; "" if there is nothing."""
    if found.address % 16:
        return f"its tensor lies at {found.address:#x}, no multiple of 16"
    for stride in found.strides:
        if stride % 16 or stride >= 1 << 40:
            return f"it has a stride of {stride:,} bytes, which must be a multiple of 16"
    if min(found.extents) < 1:
        return "it has a dimension without elements"
    if not all(1 <= size <= 256 for size in found.box):
        return f"its tile is {found.box}; each dimension has 1 to 256 elements"
    if not all(1 <= step <= 8 for step in found.steps):
        return f"its steps are {found.steps}; each is 1 to 8"
    if found.row % 16:
        return f"a row of its tile has {found.row} bytes, which must be a multiple of 16"
    width = SWIZZLES[found.swizzle]
    if width and found.row > width:
        return f"a row of its tile has {found.row} bytes, more than its swizzle of {width}"
    if found.fill and found.element not in _FLOATS:
        return "it fills integers with NaN"
    return ""


_FLOATS: Final = frozenset((6, 7, 9, 10))


# Maps that the host makes ---------------------------------------------------------------------
NUMBERS: Final = {
    "bool": 0, "int8": 0, "uint8": 0, "float8_e4m3fn": 0, "float8_e5m2": 0, "float8_e4m3fnuz": 0,
    "float8_e5m2fnuz": 0, "int16": 1, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5,
    "float16": 6, "float32": 7, "float64": 9, "bfloat16": 10,
}  # fmt: skip
"""Types of elements by torch's names."""


def of_tensor(
    address: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int],
    block: Sequence[int],
    *,
    padding: str = "zero",
    swizzle: int | None = None,
) -> TensorMap:
    """The map that a host makes for tiles of `block` elements of a tensor.

    `shape` and `strides` are in elements, outermost dimension first; `padding` is `zero` or `nan`.
    `swizzle` is in bytes; without it shared memory has the widest one whose rows the tile fills, as
    Triton has it, and a row of more bytes than that is copied in several tiles. Raises `KeyError`
    for a type that maps have not.
    """
    element = NUMBERS[dtype]
    width = WIDTHS[ELEMENTS[element]]
    row = block[-1] * width
    if swizzle is None:
        swizzle = next((w for w in (128, 64, 32) if row >= w), 0)
    box = [min(size, 256) for size in reversed(block)]
    if swizzle:
        box[0] = min(box[0], swizzle // width)
    return TensorMap(
        address,
        tuple(reversed(shape)),
        tuple(stride * width for stride in reversed(strides[:-1])),
        tuple(box),
        (1,) * len(shape),
        element,
        SWIZZLES.index(swizzle),
        int(padding == "nan"),
    )


__all__ = [
    "ELEMENTS", "FIELDS", "NUMBERS", "SIZE", "SWIZZLES", "WIDTHS", "Field", "TensorMap", "decode",
    "of_tensor",
]  # fmt: skip
