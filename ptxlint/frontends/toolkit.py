"""NVIDIA's command line tools: where they lie, and what they make of a file.

They come with Triton (`triton/backends/nvidia/bin`), or with a CUDA toolkit on the PATH. Triton is
not imported to find them. Each call has a time limit and works in a directory of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, NamedTuple

from ptxlint.arch.targets import PTX_RELEASES, PtxVersion
from ptxlint.frontends.assembler_log import read_log
from ptxlint.frontends.cubin import MAGIC
from ptxlint.frontends.tool_runs import ToolError, run
from ptxlint.resources import Resources

SECONDS: Final = 300.0
"""So long may an assembler take: the largest kernels known took three seconds (measured)."""
READING_SECONDS: Final = 60.0
"""So long may nvdisasm or cuobjdump take, which some damaged files send into a loop."""
_PROBE_SECONDS: Final = 20.0
_PROBE: Final = 1 << 20
"""Limits of the question which release a program is of."""
ASSEMBLERS: Final = ("ptxas", "ptxas-blackwell")
_UNKNOWN_TARGET: Final = "is not defined for option 'gpu-name'"
_NO_CODE: Final = "does not contain device code"
_RELEASE: Final = re.compile(r"release (\d+)\.(\d+)")


class Assembler(NamedTuple):
    """An assembler, the newest PTX ISA that it reads, and the CUDA release that it is of."""

    path: str
    version: PtxVersion
    release: tuple[int, int] = (0, 0)

    @property
    def who(self) -> str:
        """Who has spoken, where it was run: `ptxas 12.9 run here`."""
        return f"ptxas {self.release[0]}.{self.release[1]} run here"


class Extracted(NamedTuple):
    """Cubins of a file by name, and why there are no more; "" if these are all."""

    cubins: dict[str, bytes]
    fault: str = ""


class Assembled(NamedTuple):
    """What an assembler made of a text: the cubin, its log, the kernels' resources by name, and
    who says so."""

    cubin: bytes
    log: str
    resources: dict[str, Resources]
    who: str = ""


def find_tool(name: str) -> str:
    """The path of `nvdisasm` or `cuobjdump`. Raises `ToolError`."""
    for directory in (_of_triton(), None):
        found = shutil.which(name, path=directory) if directory != "" else None
        if found:
            return found
    raise ToolError(
        f"{name} is needed and not found: install Triton (pip install triton), or put the CUDA "
        "toolkit's bin directory on the PATH"
    )


def find_assembler(version: PtxVersion, given: str = "") -> Assembler:
    """The assembler for a PTX version: `given`, or the oldest at hand that reads it. Raises
    `ToolError`."""
    if given:
        path = shutil.which(given)
        if path is not None:
            return _sure(_assembler(path))
        if os.path.isdir(given):
            raise ToolError(f"{given} is a directory: name the ptxas in it")
        if os.path.exists(given):
            raise ToolError(f"{given} is not executable: chmod +x makes it so")
        raise ToolError(f"{given}: there is no such program")
    told = [_assembler(path) for path in _candidates()]
    found = sorted((a for a in told if isinstance(a, Assembler)), key=lambda a: a.version)
    if told and not found:
        # One that does not work is no obstacle while another does.
        _sure(told[0])
    if not found:
        raise ToolError(
            "no ptxas is found: install Triton (pip install triton), put the CUDA toolkit's bin "
            "directory on the PATH, or name one with --ptxas"
        )
    for assembler in found:
        if assembler.version >= version:
            return assembler
    newest = found[-1]
    major, minor = version
    raise ToolError(
        f"no ptxas reads PTX {major}.{minor}: {newest.path} reads up to "
        f"{newest.version[0]}.{newest.version[1]}; name a newer one with --ptxas"
    )


def assemble(
    text: str, arch: str, assembler: Assembler, path: str = "<ptx>", seconds: float = SECONDS
) -> Assembled:
    """The machine code of a PTX text. Raises `ToolError` with the assembler's own words, in which
    the text is called `path`."""
    with _workplace() as directory:
        source = os.path.join(directory, "kernel.ptx")
        target = os.path.join(directory, "kernel.cubin")
        with open(source, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
        words = [assembler.path, "-v", "-lineinfo", "-arch", arch, source, "-o", target]
        try:
            log = "".join(run(words, seconds)).replace(source, path)
        except ToolError as error:
            if _UNKNOWN_TARGET in str(error):
                message = f"{assembler.path} does not know {arch}: name another one with --ptxas"
                raise ToolError(message) from None
            raise ToolError(str(error).replace(source, path)) from None
        told = {name: r.found(assembler.who) for name, r in read_log(log).items()}
        return Assembled(_written(target, assembler), log, told, assembler.who)


def _written(path: str, assembler: Assembler) -> bytes:
    """What an assembler left behind. Raises `ToolError` if that is no cubin."""
    try:
        with open(path, "rb") as file:
            cubin = file.read()
    except OSError:
        cubin = b""
    if not cubin.startswith(MAGIC):
        raise ToolError(f"{assembler.path} ran and wrote no cubin: is it a ptxas?")
    return cubin


def disassemble(cubin: bytes, *options: str, seconds: float = READING_SECONDS) -> str:
    """What `nvdisasm` prints of a cubin. Raises `ToolError`."""
    with _workplace() as directory:
        source = os.path.join(directory, "kernel.cubin")
        with open(source, "wb") as file:
            file.write(cubin)
        try:
            return run([find_tool("nvdisasm"), *options, source], seconds)[0]
        except ToolError as error:
            raise ToolError(str(error).replace(source, "the cubin")) from None


def extract(file: bytes, seconds: float = READING_SECONDS) -> Extracted:
    """The cubins in a fat binary, an object, a library or an archive, by the names that
    `cuobjdump` gives them, in its order; of a damaged file those before the damage. Raises
    `ToolError` if there is none to be had."""
    fault = ""
    with _workplace() as directory:
        source = os.path.join(directory, "file")
        target = os.path.join(directory, "cubins")
        os.mkdir(target)
        with open(source, "wb") as stream:
            stream.write(file)
        try:
            run([find_tool("cuobjdump"), "-xelf", "all", source], seconds, target)
        except ToolError as error:
            if _NO_CODE in str(error):
                return Extracted({})
            fault = str(error).replace(source, "the file")
            if not os.listdir(target):
                raise ToolError(fault) from None
        found = {}
        for name in sorted(os.listdir(target), key=_by_number):
            with open(os.path.join(target, name), "rb") as cubin:
                # Names start with that of the file, which is ours.
                found[name.removeprefix("file.")] = cubin.read()
        return Extracted(found, fault)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else 0, part) for part in name.split(".")]


def _candidates() -> Iterable[str]:
    seen = set()
    for directory in (_of_triton(), None):
        if directory == "":
            continue
        for name in ASSEMBLERS:
            found = shutil.which(name, path=directory)
            if found and os.path.realpath(found) not in seen:
                seen.add(os.path.realpath(found))
                yield found


@cache
def _of_triton() -> str:
    """The directory of the tools that came with Triton, "" if there is none."""
    from importlib.util import find_spec

    spec = find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        return ""
    for place in spec.submodule_search_locations:
        directory = os.path.join(place, "backends", "nvidia", "bin")
        if os.path.isdir(directory):
            return directory
    return ""


@contextmanager
def _workplace() -> Iterator[str]:
    """A directory for the files of one call. Raises `ToolError` if none can be made or filled."""
    try:
        with tempfile.TemporaryDirectory(prefix="ptxlint-") as directory:
            yield directory
    except OSError as error:
        where = error.filename or "the temporary directory"
        raise ToolError(
            f"cannot write {where}: {error.strerror or error}; TMPDIR names another directory"
        ) from None


@cache
def _assembler(path: str) -> Assembler | ToolError:
    """An assembler and what it reads, by the CUDA release that it says it is of; or why that cannot
    be told, which is asked once."""
    try:
        found = _RELEASE.search("".join(run([path, "--version"], _PROBE_SECONDS, None, _PROBE)))
    except ToolError as error:
        return ToolError(f"{path} --version: {error}; is it a ptxas?")
    if found is None:
        return ToolError(f"{path} does not say which release it is: is it a ptxas?")
    release = (int(found[1]), int(found[2]))
    versions = [version for version, name in PTX_RELEASES if (of := _cuda(name)) and of <= release]
    return Assembler(path, max(versions, default=(1, 0)), release)


def _sure(found: Assembler | ToolError) -> Assembler:
    if isinstance(found, ToolError):
        raise ToolError(str(found))
    return found


def _cuda(name: str) -> tuple[int, int] | None:
    """`CUDA 12.8` as a pair of numbers; None for a driver's release."""
    word, _, number = name.partition(" ")
    if word != "CUDA":
        return None
    major, _, minor = number.partition(".")
    return int(major), int(minor)


__all__ = [
    "Assembled", "Assembler", "Extracted", "ToolError", "assemble", "disassemble", "extract",
    "find_assembler", "find_tool",
]  # fmt: skip
