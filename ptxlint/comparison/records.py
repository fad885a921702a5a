"""The kernels of files, directories and bundles, ready to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxlint.engine.resources import cubin_beside, resources_beside
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input, InputFault, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.sass import parse as parse_sass
from ptxlint.frontends.toolkit import disassemble
from ptxlint.frontends.triton_cache import MetadataError, load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.resources import METADATA, Amount, Resources
from ptxlint.structure.canonical import Kernel, canonical


class KernelRecord:
    """One kernel of one file. What is dear to know is found when it is asked for."""

    def __init__(
        self, item: Input, module: Module, function: Function, metadata: KernelMetadata | None
    ) -> None:
        self.item = item
        self.module = module
        self.function = function
        self.metadata = metadata
        self._identity = self._shape = ""
        self._machine: list[Kernel] | None = None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.function.name

    @property
    def placed(self) -> Kernel:
        """The kernel with the module that it stands in."""
        return Kernel(self.function, self.module)

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.item.path

    @property
    def arch(self) -> str:
        """The architecture that it was compiled for, such as `sm_90a`."""
        return self.module.arch

    @property
    def identity(self) -> str:
        """What kernels that differ in names alone have in common."""
        if not self._identity:
            self._hash()
        return self._identity

    @property
    def shape(self) -> str:
        """What kernels that differ in names and constants have in common."""
        if not self._shape:
            self._hash()
        return self._shape

    def _hash(self) -> None:
        found = canonical(self.placed)
        self._identity, self._shape = found.identity, found.shape

    def resources(self) -> Resources:
        """What a cubin, a log or metadata beside the file say, without running an assembler."""
        known = resources_beside(self.path).get(self.name, Resources(self.arch))
        if self.metadata is not None and self.metadata.shared is not None:
            known = known._replace(dynamic_shared=Amount(self.metadata.shared, METADATA))
        return known

    def machine_code(self) -> Kernel | None:
        """The kernel in the cubin beside the file; None if there is none. Raises `ToolError` if it
        cannot be disassembled."""
        if self._machine is None:
            data = cubin_beside(self.path)
            listing = "" if data is None else disassemble(data, "-c", "-g")
            module = parse_sass(listing, self.path)
            found = [Kernel(f, module) for f in module.functions if f.name == self.name]
            self._machine = found[:1]
        return self._machine[0] if self._machine else None

    def __repr__(self) -> str:
        return f"KernelRecord({self.name} {self.arch} {self.path})"


class Loaded(NamedTuple):
    """The kernels of one side, and what could not be read, in words."""

    kernels: list[KernelRecord]
    faults: list[str]


def load(paths: Sequence[str | Input]) -> Loaded:
    """All kernels that these paths stand for, in a fixed order."""
    kernels: list[KernelRecord] = []
    faults: list[str] = []
    for item in discover(paths):
        if isinstance(item, InputFault):
            if not item.is_note:
                faults.append(f"{item.path}: {item.message}")
            continue
        text = read(item)
        if isinstance(text, InputFault):
            faults.append(f"{text.path}: {text.message}")
            continue
        module = parse(text, item.path)
        problems = [p for p in module.problems if not p.note]
        if problems:
            line, column = module.source.position(problems[0].offset)
            faults.append(f"{item.path}:{line}:{column}: {problems[0].message}")
        metadata = item.metadata
        if metadata is None:
            metadata = _beside(item.path, faults)
        kernels += [KernelRecord(item, module, fn, metadata) for fn in module.kernels()]
    return Loaded(kernels, faults)


def _beside(path: str, faults: list[str]) -> KernelMetadata | None:
    try:
        return load_metadata(path)
    except MetadataError as error:
        faults.append(str(error))
        return None


__all__ = ["KernelRecord", "Loaded", "load"]
