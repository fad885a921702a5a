"""What a launch promises of numbers in memory: of tensors that the kernel does not write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.dataflow.access import AccessAnalysis, Accesses
from ptxlint.facts import Facts
from ptxlint.launch.binding import Bound
from ptxlint.launch.writers import writers_of
from ptxlint.launches import DTYPE_BYTES, Tensor

if TYPE_CHECKING:
    from ptxlint.launch.memory import Bytes, Flags, Piece


class Promises:
    """The bounds of numbers in tensors, and all of their numbers, that the launch tells and the
    kernel does not write to.

    `is_shared` says that it is not known of all stores where they go: then numbers hold only where
    a run of all threads shows that nothing was written over them.
    """

    def __init__(self, facts: Facts, bound: Bound) -> None:
        self.is_shared = False
        self._by_instr: dict[int, tuple[int, int]] = {}
        self._told: set[int] = set()
        self._contents: dict[int, Tensor] = {}
        told = {n: r for n, r in bound.regions.items() if r.tensor.values is not None}
        if not told:
            return
        writers = writers_of(facts)
        if writers is None or not writers.bases <= bound.regions.keys():
            return
        written = {bound.regions[base].storage for base in writers.bases}
        self.is_shared = bool(writers.loose)
        accesses: Accesses = facts.get(AccessAnalysis)
        for access in accesses.in_global:
            region = told.get(access.base)
            if access.kind != "load" or region is None or region.storage in written:
                continue
            if region.tensor.values is not None and not self.is_shared:
                self._by_instr[access.instr.index] = region.tensor.values
            if region.tensor.contents is not None:
                self._told.add(access.instr.index)
                self._contents[region.storage] = region.tensor

    def of(self, instr: int) -> tuple[int, int] | None:
        """Bounds of what an instruction loads; None where nothing is promised."""
        return self._by_instr.get(instr)

    def is_told(self, instr: int) -> bool:
        """True if all numbers are known of which an instruction loads one."""
        return instr in self._told

    def pieces(self) -> dict[int, Piece]:
        """The memory that is told, by the numbers of storages."""
        from ptxlint.launch.memory import Piece, SharedPiece

        kind = SharedPiece if self.is_shared else Piece
        return {number: kind(*_bytes(tensor)) for number, tensor in self._contents.items()}


def _bytes(tensor: Tensor) -> tuple[Bytes, Flags]:
    """The bytes of a tensor's storage, and which of them are told."""
    import numpy as np

    width = DTYPE_BYTES[tensor.dtype]
    told = b"".join(
        (number % (1 << (8 * width))).to_bytes(width, "little") for number in tensor.contents or ()
    )
    data = np.frombuffer(told.ljust(tensor.storage_bytes, b"\0"), dtype=np.uint8).copy()
    return data, np.arange(len(data)) < len(told)


__all__ = ["Promises"]
