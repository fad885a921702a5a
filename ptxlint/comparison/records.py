"""The kernels of files, directories and bundles, ready to be compared: PTX or machine code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os.path import splitext
from typing import NamedTuple

from ptxlint.engine.resources import assembled, cubin_beside, machine_resources, resources_beside
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.frontends.discovery import STDIN, Input, InputFault, discover, read_code
from ptxlint.frontends.machine_code import MachineCodeError, disassembled
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.sass import parse as parse_sass
from ptxlint.frontends.toolkit import ToolError
from ptxlint.frontends.triton_cache import MetadataError, load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.resources import METADATA, Amount, Resources
from ptxlint.structure.canonical import Kernel, canonical


class KernelRecord:
    """One kernel of one file. What is dear to know is found when it is asked for.

    `level` is `ptx`, or `sass` for machine code; `cubin` are the bytes of machine code that was no
    listing already.
    """

    def __init__(
        self,
        item: Input,
        module: Module,
        function: Function,
        metadata: KernelMetadata | None = None,
        level: str = "ptx",
        cubin: bytes | None = None,
    ) -> None:
        self.item = item
        self.module = module
        self.function = function
        self.metadata = metadata
        self.level = level
        self.cubin = cubin
        self._identity = self._shape = ""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.function.name

    @property
    def placed(self) -> Kernel:
        """The kernel with the module that it stands in."""
        return Kernel(self.function, self.module)

    @property
    def facts(self) -> Facts:
        """What is known of the kernel, kept for as long as somebody holds it."""
        return Facts(self.module, self.function)

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.item.path

    @property
    def arch(self) -> str:
        """The architecture that it was compiled for, such as `sm_90a`."""
        return self.module.arch

    @property
    def is_machine(self) -> bool:
        """True for machine code."""
        return self.level == "sass"

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

    def resources(self, notes: list[str]) -> Resources:
        """What the cubin itself, a cubin, a log or metadata beside the file say, without running an
        assembler. What of it cannot be used goes to `notes`."""
        if self.is_machine:
            known = machine_resources(self.facts, self.cubin, self.path)
        else:
            beside = resources_beside(self.path, self.arch, notes)
            known = beside.get(self.name, Resources(self.arch))
        if self.metadata is not None and self.metadata.shared is not None:
            known = known._replace(dynamic_shared=Amount(self.metadata.shared, METADATA))
        return known

    def cubin_beside(self) -> bytes | None:
        """The cubin of the same stem as a PTX file; None of machine code, and if there is none."""
        return None if self.is_machine else cubin_beside(self.path)

    def machine_code(self) -> KernelRecord | None:
        """A PTX kernel as machine code, of the cubin beside it; None if that has no such kernel.
        Raises `ToolError` if it cannot be disassembled."""
        data = self.cubin_beside()
        path = splitext(self.path)[0] + ".cubin"
        code = None if data is None else self._in(data, path)
        if code is not None and base(code.arch) != base(self.arch):
            raise ToolError(f"{path} is for {code.arch}, and the PTX beside it for {self.arch}")
        return code

    def assembled(self, ptxas: str) -> KernelRecord | None:
        """A PTX kernel as the machine code that an assembler makes of it; `ptxas` names one, "" is
        the one that fits. Raises `ToolError`."""
        return self._in(assembled(self.module, ptxas).cubin, f"{self.path} (assembled)")

    def _in(self, cubin: bytes, path: str) -> KernelRecord | None:
        """The kernel of this name in a cubin."""
        module = _listed(cubin, path)
        function = next((f for f in module.functions if f.name == self.name), None)
        if function is None:
            return None
        text = self.module.source.text
        item = Input(path, module.source.text, self.metadata, ptx=text)
        return KernelRecord(item, module, function, self.metadata, "sass", cubin)

    def __repr__(self) -> str:
        return f"KernelRecord({self.name} {self.arch} {self.level} {self.path})"


class Loaded(NamedTuple):
    """The kernels of one side, and what could not be read, in words."""

    kernels: list[KernelRecord]
    faults: list[str]


def base(arch: str) -> str:
    """An architecture without the letter behind its number."""
    return arch.rstrip("af")


def load(paths: Sequence[str | Input]) -> Loaded:
    """All kernels that these paths stand for, in a fixed order: of PTX, and of machine code beside
    which no PTX of the same stem lies."""
    kernels: list[KernelRecord] = []
    faults: list[str] = []
    for item in discover(paths, machine_code=True):
        if isinstance(item, InputFault):
            if not item.is_note:
                faults.append(_told(item))
            continue
        code = read_code(item)
        if isinstance(code, InputFault):
            faults.append(_told(code))
            continue
        module = (parse_sass if code.is_machine else parse)(code.text, item.path)
        problems = [p for p in module.problems if not p.note]
        if problems:
            line, column = module.source.position(problems[0].offset)
            faults.append(f"{item.path}:{line}:{column}: {problems[0].message}")
        metadata = item.metadata
        if metadata is None and item.path != STDIN:
            metadata = _beside(item.path, faults)
        level = "sass" if code.is_machine else "ptx"
        if code.cubin is not None:
            # Disassembled once: whoever checks it gets the listing.
            item = item._replace(text=code.text, cubin=None)
        kernels += [
            KernelRecord(item, module, fn, metadata, level, code.cubin) for fn in module.kernels()
        ]
    return Loaded(kernels, faults)


def _told(fault: InputFault) -> str:
    """What cannot be read, and what to do."""
    advice = f" ({fault.hint})" if fault.hint else ""
    return f"{fault.path}: {fault.message}{advice}"


def _beside(path: str, faults: list[str]) -> KernelMetadata | None:
    try:
        return load_metadata(path)
    except MetadataError as error:
        faults.append(str(error))
        return None


@lru_cache(maxsize=4)
def _listed(cubin: bytes, path: str) -> Module:
    """A cubin read as its listing, once for all kernels in it. Raises `ToolError`."""
    try:
        return parse_sass(disassembled(cubin), path)
    except MachineCodeError as error:
        raise ToolError(f"{path}: {error}") from None


__all__ = ["KernelRecord", "Loaded", "base", "load"]
