"""A device and its primary context."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Final, NamedTuple

from .library import Driver

_MAJOR: Final = 75
_MINOR: Final = 76


class Device(NamedTuple):
    """What a device says of itself; `memory` in bytes, `capability` as in (9, 0)."""

    name: str
    capability: tuple[int, int]
    memory: int

    @property
    def arch(self) -> str:
        """`sm_90` for capability 9.0."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


class Context:
    """The primary context of a device, current in this thread as long as it is entered.

    An error such as an illegal address ends a context for good: every later call of the process
    fails. What may go wrong so belongs in a process of its own.
    """

    def __init__(self, driver: Driver | None = None, ordinal: int = 0) -> None:
        self.driver = driver or Driver()
        self._number = ctypes.c_int()
        self.driver.call("cuDeviceGet", ctypes.byref(self._number), ordinal)
        self.device = self._describe()

    def __enter__(self) -> Context:
        handle = ctypes.c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(handle), self._number)
        self.driver.call("cuCtxSetCurrent", handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.driver.call("cuDevicePrimaryCtxRelease_v2", self._number)

    def synchronise(self) -> None:
        """Wait until all that was launched has run. Raises `CudaError` for what went wrong."""
        self.driver.call("cuCtxSynchronize")

    def _describe(self) -> Device:
        name = ctypes.create_string_buffer(256)
        self.driver.call("cuDeviceGetName", name, len(name), self._number)
        memory = ctypes.c_size_t()
        self.driver.call("cuDeviceTotalMem_v2", ctypes.byref(memory), self._number)
        capability = self._attribute(_MAJOR), self._attribute(_MINOR)
        return Device(name.value.decode(), capability, memory.value)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.driver.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._number)
        return value.value
