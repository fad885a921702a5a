"""What a launch promises of numbers in memory: of tensors that the kernel does not write to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses
from ptxlint.facts import Facts
from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.told_numbers import CopiedNumbers, found_by_atomics, is_element
from ptxlint.launch.writers import Writers, storages_of, writers_of
from ptxlint.launches import DTYPE_BYTES, Tensor

if TYPE_CHECKING:
    from ptxlint.launch.memory import Bytes, Flags, Piece


class Promises:
    """The bounds of numbers in tensors, and all of their numbers, that the launch tells and the
    kernel does not write to.

    `is_shared` says that it is not known of all stores where they go: then numbers hold only where
    a run of all threads shows that nothing was written over them. Without `counts` nothing is
    promised that depends on how many threads there are.
    """

    def __init__(self, facts: Facts, bound: Bound, *, counts: bool = True) -> None:
        self.is_shared = False
        self._by_instr: dict[int, tuple[int, int]] = {}
        self._told: set[int] = set()
        self._contents: dict[int, Tensor] = {}
        self._copied: CopiedNumbers | None = None
        self._source: dict[int, tuple[Region, ...]] = {}
        """The tensors that an instruction's numbers are from, where they are told."""
        self._instrs = facts.function.instrs
        told = {n: r for n, r in bound.regions.items() if r.tensor.values is not None}
        if not told:
            return
        writers = writers_of(facts)
        if writers is None:
            return
        written = storages_of(writers.bases, bound)
        if written is None:
            return
        self.is_shared = bool(writers.loose)
        accesses: Accesses = facts.get(AccessAnalysis)
        if not self.is_shared:
            # An autotuner adds as often as it likes.
            if counts and bound.launch.autotuned is None:
                self._follow_atomics(facts, bound, writers)
            self._follow_copies(facts, accesses, bound, written)
        for access in accesses.in_global:
            region = told.get(access.base)
            if access.kind != "load" or region is None or region.storage in written:
                continue
            self._source[access.instr.index] = (region,)
            values = region.tensor.values
            if values is not None and not self.is_shared and is_element(access.instr, region):
                self._by_instr[access.instr.index] = values
            if region.tensor.contents is not None:
                self._told.add(access.instr.index)
                self._contents[region.storage] = region.tensor

    def _follow_atomics(self, facts: Facts, bound: Bound, writers: Writers) -> None:
        """What atomic operations find in told tensors that they alone write."""
        by_storage: dict[int, list[Access]] = {}
        for access in writers.located:
            by_storage.setdefault(bound.regions[access.base].storage, []).append(access)
        others = storages_of(writers.mapped, bound)
        for storage, updates in by_storage.items():
            values = bound.regions[updates[0].base].tensor.values
            if values is not None and others is not None and storage not in others:
                found = found_by_atomics(facts, bound, storage, values, updates)
                self._by_instr |= found
                self._source |= dict.fromkeys(found, (bound.regions[updates[0].base],))

    def _follow_copies(
        self, facts: Facts, accesses: Accesses, bound: Bound, written: set[int]
    ) -> None:
        """What is copied to shared memory from told tensors."""
        sources = {
            access.instr.index: region
            for access in accesses.in_global
            if access.kind == "copy"
            and (region := bound.regions.get(access.base)) is not None
            and region.tensor.values is not None
            and region.storage not in written
        }
        self._source |= {copy: (region,) for copy, region in sources.items()}
        if sources or self._by_instr:
            self._copied = CopiedNumbers(facts, sources, self._by_instr.get)

    def of(self, instr: int) -> tuple[int, int] | None:
        """Bounds of each number that an instruction loads; None where nothing is promised."""
        if instr not in self._by_instr and self._copied is not None:
            load = self._instrs[instr]
            found = self._copied.of(load) if load.shape.space == "shared" else None
            if found is None:
                return None
            self._by_instr[instr], brought = found
            self._source[instr] = tuple(r for i in brought for r in self._source.get(i, ()))
        return self._by_instr.get(instr)

    @property
    def is_empty(self) -> bool:
        """True if nothing is promised."""
        return not self._by_instr and not self._told and self._copied is None

    @property
    def told(self) -> Iterable[int]:
        """The instructions that load from tensors of which all numbers are known."""
        return sorted(self._told)

    def is_told(self, instr: int) -> bool:
        """True if all numbers are known of which an instruction loads one."""
        return instr in self._told

    def words(self, instrs: Iterable[int]) -> tuple[str, ...]:
        """What is promised of the tensors that some instructions load from."""
        regions = dict.fromkeys(r for i in instrs for r in self._source.get(i, ()))
        found = [(region.name, region.tensor.values) for region in regions]
        return tuple(
            sorted({f"{name} holds {ends[0]} … {ends[1]}" for name, ends in found if ends})
        )

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
