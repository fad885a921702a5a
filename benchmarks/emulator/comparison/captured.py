"""Launches captured from libraries (`ptxlint capture`): kernels without a reference.

Inputs are random, and what the launch tells is taken as it is. How far right results may be apart
is found by trial: see `disturbed`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.cuda_driver import Context, Module, Placement
from ptxlint.dynamic.cuda_driver import run as launch_on_gpu
from ptxlint.dynamic.emulator.inputs import RandomInputs
from ptxlint.dynamic.emulator.launched import run_launch, storages_of, tensors_of
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.frontends.discovery import Input, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module as Ptx
from ptxlint.launch.binding import Bound, bind

Array = np.ndarray[Any, Any]
MOST_BYTES: Final = 4 << 20
"""Of all tensors of a launch together."""
MOST_CTAS: Final = 64
LAUNCHES: Final = 4
"""So many launches of a kernel, of different builds first."""
_HASH: Final = re.compile(r"_[0-9a-f]{8}$")


class CapturedCase(NamedTuple):
    """One launch of a kernel of a bundle; `number` is its place among those of the file."""

    library: str
    bundle: str
    kernel: str
    file: str
    number: int

    @property
    def key(self) -> str:
        """Its name among all cases."""
        return f"{self.library}/{self.kernel}/{self.file.rpartition('_')[2]}-{self.number}"

    @property
    def cubin(self) -> Path:
        """The file of its cubin."""
        return load(self.bundle, self.file).cubin

    def types(self) -> dict[str, str]:
        """The type of each tensor's elements, by torch's names."""
        bound = load(self.bundle, self.file).bound(self.number)
        regions = (*bound.regions.values(), *bound.descriptors.values())
        return {region.name: region.tensor.dtype for region in regions}

    @property
    def has_atomics(self) -> bool:
        """True if it adds to global memory by atomics, whose order nobody says."""
        instrs = load(self.bundle, self.file).function.instrs
        return any(i.opcode in ("atom", "red") and not i.shape.has("shared") for i in instrs)

    def on_gpu(self, context: Context, image: bytes) -> dict[str, Array]:
        """Elements of the tensors that are written, by argument. Raises `PlacementError`,
        `CudaError`."""
        loaded = load(self.bundle, self.file)
        bound = loaded.bound(self.number)
        module = Module(context.driver, image)
        placement = Placement(context.driver, loaded.function, bound, loaded.metadata)
        storages = storages_of(bound, RandomInputs())
        for number, storage in storages.items():
            placement.memories[number].fill(0)
            if storage.contents is not None:
                placement.write(number, storage.contents.tobytes())
        launch_on_gpu(
            module.function(self.kernel), bound.grid, bound.block, placement.parameters,
            max(0, bound.shared), bound.launch.cluster,
        )  # fmt: skip
        context.synchronise()
        bytes_ = {n: np.frombuffer(placement.read(n), np.uint8) for n in storages}
        out = changed(tensors_of(bound, bytes_), inputs_of(bound))
        placement.release()
        module.release()
        return out | {"checksum": checksum(bound)}

    def in_emulator(self, sanitize: Sanitize = MEMORY) -> dict[str, Array]:
        """The same of the emulator, with what it found wrong as a text under `faults`. Raises
        `UnsupportedError`, `InputError`."""
        loaded = load(self.bundle, self.file)
        bound = loaded.bound(self.number)
        emulator = Emulator(loaded.module, loaded.function)
        ran = run_launch(
            emulator, bound, RandomInputs(), metadata=loaded.metadata, sanitize=sanitize
        )
        out = changed(ran.outputs, inputs_of(bound))
        kinds = sorted({fault.kind for fault in ran.outcome.faults} - {"blank"})
        if not ran.outcome.is_complete:
            kinds.append("no end")
        told = {"faults": np.array(", ".join(kinds)), "checksum": checksum(bound)}
        return out | told


class Loaded(NamedTuple):
    """A kernel's file of a bundle."""

    item: Input
    module: Ptx
    function: Function
    cubin: Path
    metadata: Any

    def bound(self, number: int) -> Bound:
        """A launch laid against the parameters."""
        reader = PythonReader(PythonSources(("",)))
        names = KernelWords(self.module, self.function, reader).parameters(self.function)
        return bind(self.function, self.item.launches[number], names, self.metadata)


def checksum(bound: Bound) -> Array:
    """That of all tensors before a launch, which both sides must have alike."""
    found = 0
    for name, values in sorted(inputs_of(bound).items()):
        found = zlib.crc32(name.encode() + values.tobytes(), found)
    return np.array([found], dtype=np.uint32)


def changed(after: dict[str, Array], before: dict[str, Array]) -> dict[str, Array]:
    """The tensors that a launch wrote to."""
    return {n: a for n, a in after.items() if n not in before or (a != before[n]).any()}


def inputs_of(bound: Bound) -> dict[str, Array]:
    """All tensors before a launch; blank memory is zeros."""
    bytes_ = {}
    for number, storage in storages_of(bound, RandomInputs()).items():
        blank = np.zeros(storage.size, dtype=np.uint8)
        bytes_[number] = blank if storage.contents is None else storage.contents.view(np.uint8)
    return tensors_of(bound, bytes_)


@lru_cache(maxsize=4)
def _items(bundle: str) -> dict[str, Input]:
    found = [item for item in discover([bundle]) if isinstance(item, Input)]
    return {Path(item.path).stem: item for item in found}


@lru_cache(maxsize=16)
def load(bundle: str, file: str) -> Loaded:
    """A kernel's file, with its launches."""
    item = _items(bundle)[file]
    text = read(item)
    assert isinstance(text, str) or hasattr(text, "text"), text
    module = parse(text, item.path)
    (function,) = module.kernels()
    metadata = item.metadata or load_metadata(item.path)
    return Loaded(item, module, function, Path(item.path).with_suffix(".cubin"), metadata)


def cases(bundle: str, most: int = LAUNCHES) -> Iterator[CapturedCase]:
    """Launches of a bundle that are small, at most so many of each kernel."""
    library = Path(bundle).name
    by_kernel: dict[str, list[tuple[int, str]]] = {}
    for file, item in _items(bundle).items():
        for number, launch in enumerate(item.launches):
            if _is_small(launch):
                kernel = launch.kernel or _HASH.sub("", file)
                by_kernel.setdefault(kernel, []).append((number, file))
    for kernel, found in sorted(by_kernel.items()):
        for number, file in sorted(found)[:most]:
            yield CapturedCase(library, bundle, kernel, file, number)


def _is_small(launch: Any) -> bool:
    sizes = {}
    for argument in launch.arguments.values():
        tensor = getattr(argument, "tensor", argument)
        if hasattr(tensor, "storage_bytes"):
            sizes[tensor.storage] = tensor.storage_bytes
    return prod(launch.grid) <= MOST_CTAS and sum(sizes.values()) <= MOST_BYTES
