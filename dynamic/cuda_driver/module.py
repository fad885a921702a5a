"""Modules: a cubin, or PTX that the driver assembles."""

from __future__ import annotations

import ctypes
from typing import Final

from .library import CudaError, Driver
from .memory import Variable

_ERROR_LOG: Final = 5
_ERROR_LOG_BYTES: Final = 6
_LOG_SIZE: Final = 1 << 14
_MOST_DYNAMIC_SHARED: Final = 8
_NON_PORTABLE_CLUSTER: Final = 14
_SHARED_WITHOUT_ASKING: Final = 48 << 10
_PORTABLE_CLUSTER: Final = 8


class Module:
    """What is loaded. Raises `CudaError`, whose details are the assembler's messages for PTX."""

    def __init__(self, driver: Driver, image: bytes) -> None:
        self._driver = driver
        self._handle = ctypes.c_void_p()
        log = ctypes.create_string_buffer(_LOG_SIZE)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_SIZE)
        # PTX ends in a zero byte.
        text = image if image.startswith(b"\x7fELF") else image + b"\0"
        try:
            driver.call("cuModuleLoadDataEx", ctypes.byref(self._handle), text, 2, options, values)
        except CudaError as error:
            details = log.value.decode(errors="replace").strip()
            raise CudaError(error.call, error.name, details) from None

    def function(self, name: str) -> Function:
        """A kernel of the module."""
        handle = ctypes.c_void_p()
        self._driver.call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        return Function(self._driver, handle)

    def variable(self, name: str) -> Variable:
        """A variable in global memory."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._driver.call(
            "cuModuleGetGlobal_v2",
            ctypes.byref(address),
            ctypes.byref(size),
            self._handle,
            name.encode(),
        )
        return Variable(self._driver, address.value, size.value)

    def release(self) -> None:
        """Unload it; its functions and variables are gone then."""
        self._driver.call("cuModuleUnload", self._handle)


class Function:
    """A kernel that can be launched."""

    def __init__(self, driver: Driver, handle: ctypes.c_void_p) -> None:
        self.driver = driver
        self.handle = handle

    def allow(self, shared: int, cluster: int) -> None:
        """Ask for what has to be asked for: much shared memory (bytes), clusters of many CTAs."""
        if shared > _SHARED_WITHOUT_ASKING:
            self._set(_MOST_DYNAMIC_SHARED, shared)
        if cluster > _PORTABLE_CLUSTER:
            self._set(_NON_PORTABLE_CLUSTER, 1)

    def _set(self, attribute: int, value: int) -> None:
        self.driver.call("cuFuncSetAttribute", self.handle, attribute, value)
