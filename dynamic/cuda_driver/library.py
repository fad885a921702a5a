"""The functions of libcuda, the CUDA driver API.

https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

LIBRARY: Final = "libcuda.so.1"


class NoDriverError(RuntimeError):
    """This machine has no CUDA driver; the text says what was looked for."""


class CudaError(RuntimeError):
    """A call of the driver that failed.

    `call` is the function, `name` what CUDA calls the error (`CUDA_ERROR_ILLEGAL_ADDRESS`), and
    `details` what else was said, such as the assembler's messages.
    """

    def __init__(self, call: str, name: str, details: str = "") -> None:
        super().__init__(f"{call}: {name}{f': {details}' if details else ''}")
        self.call = call
        self.name = name
        self.details = details


class Driver:
    """The driver of this machine, initialised. Raises `NoDriverError`, `CudaError`."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NoDriverError(f"no CUDA driver: {error}") from None
        self.call("cuInit", 0)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function. Raises `CudaError` if it answers anything but success."""
        code = int(getattr(self._library, function)(*arguments))
        if code:
            raise CudaError(function, self._name(code))

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {code}"
