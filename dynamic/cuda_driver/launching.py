"""Launching a kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Final

from ptxlint.launches import Extent

from .module import Function

_CLUSTER_DIMENSION: Final = 4


class _Cluster(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("x", ctypes.c_uint),
        ("y", ctypes.c_uint),
        ("z", ctypes.c_uint),
        ("rest", ctypes.c_char * 52),
    ]
    """CUlaunchAttribute: a number, and 64 bytes of value behind 8 bytes."""


class _Config(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Cluster)),
        ("count", ctypes.c_uint),
    ]
    """CUlaunchConfig."""


def run(
    function: Function,
    grid: Extent,
    block: Extent,
    parameters: Sequence[bytes],
    shared: int = 0,
    cluster: Extent = (1, 1, 1),
) -> None:
    """Start a kernel; what it does is seen when the context is synchronised.

    `grid` is in CTAs and `cluster` in CTAs too, `block` in threads, `shared` in bytes of dynamic
    shared memory. `parameters` are the bytes of each parameter of the PTX, in order. Raises
    `CudaError` for what the device refuses.
    """
    function.allow(shared, prod(cluster))
    buffers = [ctypes.create_string_buffer(data, len(data)) for data in parameters]
    pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    config = _Config((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), shared)
    if prod(cluster) > 1:
        x, y, z = cluster
        attribute = _Cluster(_CLUSTER_DIMENSION, b"", x, y, z, b"")
        config.attributes = ctypes.pointer(attribute)
        config.count = 1
    function.driver.call("cuLaunchKernelEx", ctypes.byref(config), function.handle, pointers, None)
