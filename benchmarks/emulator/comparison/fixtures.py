"""Launches of the fixtures, whose references say how far right results may be apart."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures"))

from references import emulated
from references.kit import Expected

from ptxlint.dynamic.cuda_driver import Context, Memory, Module, encoded
from ptxlint.dynamic.cuda_driver import run as launch_on_gpu
from ptxlint.dynamic.emulator.arena import Allocation
from ptxlint.dynamic.emulator.elements import kept_as, to_numbers

from .instructions import for_driver
from .store import CHECKSUM, MOST

Array = np.ndarray[Any, Any]
ARCHS: Final = ("sm_80", "sm_90")
SIZES: Final = 6
"""So many launches of a build at most."""


class FixtureCase(NamedTuple):
    """One launch of a build; `number` is its place among those of the reference."""

    arch: str
    name: str
    number: int

    @property
    def key(self) -> str:
        """Its name among all cases."""
        return f"{self.arch}/{self.name}/{self.number}"

    @property
    def cubin(self) -> str:
        """The file of its cubin, in the folder of them."""
        return f"{self.arch}/{self.name}.cubin"

    @property
    def build(self) -> emulated.Build:
        """The build that is launched."""
        return emulated.build(self.name, self.arch)

    def ptx(self) -> bytes:
        """Its PTX, for a driver to assemble."""
        return for_driver(self.build.path.read_text(encoding="utf-8"))

    def on_gpu(self, context: Context, image: bytes) -> dict[str, Array]:
        """Elements of the outputs by argument, and a checksum of the inputs."""
        laid = _Laid(self)
        module = Module(context.driver, image)
        memories = {}
        for allocation in laid.allocations():
            memory = Memory(context.driver, allocation.end - allocation.start)
            memories[allocation.start] = memory
            memory.fill(0)
            if allocation.name in laid.before:
                memory.write(laid.before[allocation.name].tobytes())
        build, placed, kernel = laid.build, laid.placed, laid.found.kernel
        parameters = dict(placed.values)
        for name, allocation in placed.pointers.items():
            parameters[name] = memories[allocation.start].address.to_bytes(8, "little")
        for name, (allocation, found) in placed.maps.items():
            moved = found._replace(address=memories[allocation.start].address)
            parameters[name] = encoded(context.driver, moved)
        sent = [parameters.get(p.name, b"\0" * (p.size or 8)) for p in kernel.params]
        launch_on_gpu(
            module.function(build.kernel), laid.launch.grid, laid.block, sent, build.shared
        )
        context.synchronise()
        out = {}
        for name in laid.expected:
            allocation = placed.tensors[name][1]
            out[name] = laid.rows(name, np.frombuffer(memories[allocation.start].read(), np.uint8))
        for memory in memories.values():
            memory.release()
        module.release()
        return out | {"checksum": laid.checksum()}

    def in_emulator(self) -> dict[str, Array]:
        """The same of the emulator. Raises `UnsupportedError`."""
        laid = _Laid(self)
        outcome = laid.found.run(
            laid.launch.grid, laid.block, laid.placed.parameters(), laid.arena, laid.build.shared
        )
        assert outcome.is_complete, self.key
        out = {}
        for name in laid.expected:
            out[name] = laid.rows(name, laid.arena.contents(laid.placed.tensors[name][1]))
        return out | {"checksum": laid.checksum()}

    def compared(self, mine: dict[str, Array], theirs: dict[str, Array]) -> dict[str, Any]:
        """What the table tells of each output."""
        laid = _Laid(self)
        out = {}
        for name, expected in laid.expected.items():
            kind = laid.build.constants[name]
            count = int(mine[name + CHECKSUM][1])
            step = -(-count // MOST) or 1
            slack = np.broadcast_to(expected.slack, expected.values.shape).ravel()[::step]
            kept = Expected(expected.values.ravel()[::step], slack)
            is_equal = bool((mine[name + CHECKSUM] == theirs[name + CHECKSUM]).all())
            compared = _compared(mine[name], theirs[name], kept, kind, count)
            out[name] = compared | {"equal": is_equal}
        return out


class _Laid:
    """A launch laid out for both sides."""

    def __init__(self, case: FixtureCase) -> None:
        self.build = case.build
        self.found = emulated.emulator(self.build.path)
        sizes = list(self.build.reference.sizes(self.build.constants))[case.number]
        self.launch = self.build.reference.launch(
            sizes, self.build.constants, np.random.default_rng(0)
        )
        self.arena = self.found.arena()
        self.placed = emulated.place(self.found, self.launch, self.build, self.arena)
        self.block = emulated.block_of(self.found)
        self.before = {}
        for name, (tensor, _) in self.placed.tensors.items():
            laid_out = emulated.laid_out(tensor, self.build.constants[name])
            if laid_out is not None:
                self.before[name] = laid_out
        assert self.build.reference.expect is not None
        self.expected: dict[str, Expected] = self.build.reference.expect(
            self.placed.given, self.build.constants
        )

    def allocations(self) -> list[Allocation]:
        """All memory of the launch: of tensors, and what is only pointed to."""
        found = [allocation for _, allocation in self.placed.tensors.values()]
        known = {allocation.start for allocation in found}
        return found + [a for a in self.placed.pointers.values() if a.start not in known]

    def rows(self, name: str, bytes_: Array) -> Array:
        """The elements of an output, out of its storage."""
        tensor = self.placed.tensors[name][0]
        return np.array(emulated.rows_of(bytes_, tensor, self.build.constants[name]))

    def checksum(self) -> Array:
        """That of all contents before the launch, which both sides must have alike."""
        found = 0
        for before in self.before.values():
            found = zlib.crc32(before.tobytes(), found)
        return np.array([found], dtype=np.uint32)


def cases() -> Iterator[FixtureCase]:
    """All launches that are compared."""
    for arch in ARCHS:
        for name in emulated.names(arch):
            build = emulated.build(name, arch)
            count = len(list(build.reference.sizes(build.constants))[:SIZES])
            for number in range(count):
                yield FixtureCase(arch, name, number)


def _compared(
    mine: Array, theirs: Array, expected: Expected, kind: str, count: int
) -> dict[str, Any]:
    """How many elements differ in a bit, by how much, and how far both are from the reference, in
    parts of what it allows."""
    torch_name = emulated.TORCH_NAMES[kind]
    width = kept_as(torch_name).itemsize
    words = [np.ascontiguousarray(a).view(f"u{width}") for a in (mine, theirs)]
    numbers = [to_numbers(a.view(kept_as(torch_name)), torch_name) for a in words]
    differs = words[0] != words[1]
    differs &= ~(np.isnan(numbers[0].astype(float)) & np.isnan(numbers[1].astype(float)))
    with np.errstate(invalid="ignore"):
        apart = np.abs(numbers[0].astype(np.float64) - numbers[1])
    bound = np.broadcast_to(expected.bound(kind), apart.shape)
    share = np.where(differs, apart / np.maximum(bound, 1e-300), 0)
    return {
        "elements": count,
        "seen": int(differs.size),
        "differ": int(differs.sum()),
        "apart": float(apart[differs].max(initial=0)),
        "share_of_bound": float(share.max(initial=0)),
        "emulator": emulated.compare(numbers[0], expected, kind).worst,
        "gpu": emulated.compare(numbers[1], expected, kind).worst,
    }
