"""A launch in the memory of the device: a place for each storage, bytes for each parameter."""

from __future__ import annotations

from typing import Final

from ptxlint.dynamic.emulator.host_maps import maps_of
from ptxlint.dynamic.emulator.inputs import InputError
from ptxlint.facts import KernelMetadata
from ptxlint.ir.function import Function as Kernel
from ptxlint.launch.binding import Bound, Region

from .library import Driver
from .memory import Memory
from .tensor_map import encoded

_WIDEST: Final = 16
"""Bytes of the widest access of a thread; what is aligned to more is aligned to these."""


class PlacementError(ValueError):
    """A launch that cannot be run so; the text says why."""


class Placement:
    """The storages of a bound launch, each in an allocation of exactly its size.

    `parameters` are the bytes of the kernel's parameters, in order; `addresses` where the first
    element of each pointer's tensor lies, by parameter; `memories` the allocations by the number of
    the storage. One that is promised to be aligned to less than 16 bytes is no better aligned: it
    begins so many bytes into its allocation. `metadata` tells how the compiler cuts the tiles of
    descriptors. Raises `PlacementError` for arguments of which the launch does not tell enough,
    `CudaError` where memory runs out or a tensor map is none.
    """

    def __init__(
        self,
        driver: Driver,
        kernel: Kernel,
        bound: Bound,
        metadata: KernelMetadata | None = None,
    ) -> None:
        self._driver = driver
        self.memories: dict[int, Memory] = {}
        self._leads: dict[int, int] = {}
        self.addresses: dict[str, int] = {}
        for name, region in bound.regions.items():
            self.addresses[name] = self._address(region)
        self._maps = self._tensor_maps(bound, metadata)
        self.parameters = [self._bytes(v.name, v.size, bound) for v in kernel.params]

    def write(self, storage: int, data: bytes) -> None:
        """Fill a storage from its first byte on."""
        self.memories[storage].write(data, self._leads[storage])

    def read(self, storage: int) -> bytes:
        """All bytes of a storage."""
        return self.memories[storage].read(self._leads[storage])

    def release(self) -> None:
        """Give the memory back."""
        for memory in self.memories.values():
            memory.release()

    def _address(self, region: Region) -> int:
        """Where the first element goes; its storage is allocated when it is met first."""
        # The made-up address has the alignment that was promised, and no better one.
        lead = (region.address + region.low) % _WIDEST
        memory = self.memories.get(region.storage)
        if memory is None:
            size = region.high - region.low
            memory = Memory(self._driver, lead + size if size else 0)
            self.memories[region.storage] = memory
            self._leads[region.storage] = lead if size else 0
        return memory.address + lead - region.low

    def _tensor_maps(self, bound: Bound, metadata: KernelMetadata | None) -> dict[str, bytes]:
        """The maps of descriptors, by parameter."""
        starts = {}
        for region in bound.descriptors.values():
            starts[region.storage] = self._address(region) + region.low
        try:
            found = maps_of(bound, starts, metadata)
        except InputError as error:
            raise PlacementError(str(error)) from None
        return {name: encoded(self._driver, one) for name, one in found.items()}

    def _bytes(self, name: str, size: int | None, bound: Bound) -> bytes:
        if name in self._maps:
            return self._maps[name]
        if size is None:
            raise PlacementError(f"{name}: the kernel does not say how large it is")
        number = self.addresses.get(name, bound.values.get((name, 0)))
        if number is None:
            shown = bound.names.get(name, name)
            raise PlacementError(f"`{shown}` ({name}): the launch does not tell its value")
        return (number % (1 << 8 * size)).to_bytes(size, "little")
