"""A GPU through the CUDA driver alone, without torch or Triton: memory, modules, launches.

A launch of `ptxlint.launches` runs here with each storage in an allocation of exactly its size, so
that what goes beyond a tensor goes beyond its allocation.
"""

from __future__ import annotations

from .context import Context, Device
from .launching import run
from .library import CudaError, Driver, NoDriverError
from .memory import Memory
from .module import Function, Module
from .placement import Placement, PlacementError
from .tensor_map import encoded

__all__ = [
    "Context",
    "CudaError",
    "Device",
    "Driver",
    "Function",
    "Memory",
    "Module",
    "NoDriverError",
    "Placement",
    "PlacementError",
    "encoded",
    "run",
]
