"""Memory of the device, one allocation each."""

from __future__ import annotations

import ctypes

from .library import Driver


class Memory:
    """An allocation of exactly `size` bytes, of nothing for 0 bytes.

    The start is a multiple of 256. What lies behind the end may be mapped memory or not; a memory
    checker knows where it is.
    """

    def __init__(self, driver: Driver, size: int) -> None:
        self._driver = driver
        self.size = size
        self.address = 0
        if size:
            address = ctypes.c_uint64()
            driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            self.address = address.value

    def fill(self, byte: int) -> None:
        """Set every byte."""
        if self.size:
            at, size = ctypes.c_uint64(self.address), ctypes.c_size_t(self.size)
            self._driver.call("cuMemsetD8_v2", at, ctypes.c_ubyte(byte), size)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Copy bytes to the device. Raises ValueError if they do not fit."""
        self._check(offset, len(data))
        if data:
            at = ctypes.c_uint64(self.address + offset)
            self._driver.call("cuMemcpyHtoD_v2", at, data, ctypes.c_size_t(len(data)))

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Copy bytes from the device. Raises ValueError if there are not as many."""
        count = self.size - offset if size is None else size
        self._check(offset, count)
        data = ctypes.create_string_buffer(count)
        if count:
            at = ctypes.c_uint64(self.address + offset)
            self._driver.call("cuMemcpyDtoH_v2", data, at, ctypes.c_size_t(count))
        return data.raw

    def release(self) -> None:
        """Give it back."""
        if self.address:
            self._driver.call("cuMemFree_v2", ctypes.c_uint64(self.address))
            self.address = 0

    def _check(self, offset: int, count: int) -> None:
        if offset < 0 or count < 0 or offset + count > self.size:
            raise ValueError(f"{count} bytes from {offset} on, in memory of {self.size}")


class Variable(Memory):
    """A `.global` variable of a module: memory that the module owns."""

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        super().__init__(driver, 0)
        self.address = address
        self.size = size

    def release(self) -> None:
        """It goes with its module."""
