"""Tensor maps as the hardware reads them, made by the driver.

https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html
"""

from __future__ import annotations

import ctypes
from typing import Final

from ptxlint.dynamic.emulator.tensor_map import ELEMENTS, SIZE, TensorMap

from .library import Driver

_ALIGNMENT: Final = 64
_TYPES: Final = {
    "u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8,
    "bf16": 9,
}  # fmt: skip
"""CUtensorMapDataType by the types of PTX; `tensormap.replace` has other numbers."""
_NO_PROMOTION: Final = 0
"""What is fetched into the L2 cache along with a tile: it changes no number."""


def encoded(driver: Driver, found: TensorMap) -> bytes:
    """The 128 bytes of a map. Raises `CudaError` for one that the hardware does not take."""
    rank = len(found.extents)
    room = ctypes.create_string_buffer(SIZE + _ALIGNMENT)
    # The map is written to a multiple of 64 bytes.
    lead = -ctypes.addressof(room) % _ALIGNMENT
    driver.call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(ctypes.addressof(room) + lead),
        ctypes.c_int(_TYPES[ELEMENTS[found.element]]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(found.address),
        (ctypes.c_uint64 * rank)(*found.extents),
        (ctypes.c_uint64 * max(rank - 1, 1))(*found.strides),
        (ctypes.c_uint32 * rank)(*found.box),
        (ctypes.c_uint32 * rank)(*found.steps),
        ctypes.c_int(found.interleave),
        ctypes.c_int(found.swizzle),
        ctypes.c_int(_NO_PROMOTION),
        ctypes.c_int(found.fill),
    )
    return room.raw[lead : lead + SIZE]
