"""NVIDIA's command line tools: where they lie, and what they make of a file.

They come with Triton (`triton/backends/nvidia/bin`), or with a CUDA toolkit on the PATH. Triton is
not imported to find them. Each call has a time limit and works in a directory of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from ptxlint.arch.targets import PTX_RELEASES, PtxVersion
from ptxlint.frontends.assembler_log import read_log
from ptxlint.resources import Resources

SECONDS: Final = 300.0
"""So long may one call take: the largest kernels known took three seconds (measured)."""
ASSEMBLERS: Final = ("ptxas", "ptxas-blackwell")
_NO_CODE: Final = "does not contain device code"
_RELEASE: Final = re.compile(r"release (\d+)\.(\d+)")


class ToolError(RuntimeError):
    """A tool that is missing or failed: what is wrong, and what to do."""


class Assembler(NamedTuple):
    """An assembler, the newest PTX ISA that it reads, and the CUDA release that it is of."""

    path: str
    version: PtxVersion
    release: tuple[int, int] = (0, 0)

    @property
    def who(self) -> str:
        """Who has spoken, where it was run: `ptxas 12.9 run here`."""
        return f"ptxas {self.release[0]}.{self.release[1]} run here"


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
        if path is None:
            raise ToolError(f"{given}: there is no such program")
        return _assembler(path)
    found = sorted(map(_assembler, _candidates()), key=lambda a: a.version)
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
    with tempfile.TemporaryDirectory(prefix="ptxlint-") as directory:
        source = os.path.join(directory, "kernel.ptx")
        target = os.path.join(directory, "kernel.cubin")
        with open(source, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        words = [assembler.path, "-v", "-lineinfo", "-arch", arch, source, "-o", target]
        try:
            log = _run(words, seconds).replace(source, path)
        except ToolError as error:
            raise ToolError(str(error).replace(source, path)) from None
        with open(target, "rb") as binary:
            told = {name: r.found(assembler.who) for name, r in read_log(log).items()}
            return Assembled(binary.read(), log, told, assembler.who)


def disassemble(cubin: bytes, *options: str, seconds: float = SECONDS) -> str:
    """What `nvdisasm` prints of a cubin. Raises `ToolError`."""
    with tempfile.TemporaryDirectory(prefix="ptxlint-") as directory:
        source = os.path.join(directory, "kernel.cubin")
        with open(source, "wb") as file:
            file.write(cubin)
        try:
            return _run([find_tool("nvdisasm"), *options, source], seconds, output_only=True)
        except ToolError as error:
            raise ToolError(str(error).replace(source, "the cubin")) from None


def extract(file: bytes, seconds: float = SECONDS) -> dict[str, bytes]:
    """The cubins in a fat binary, an object, a library or an archive, by the names that
    `cuobjdump` gives them, in its order. Raises `ToolError`."""
    with tempfile.TemporaryDirectory(prefix="ptxlint-") as directory:
        source = os.path.join(directory, "file")
        target = os.path.join(directory, "cubins")
        os.mkdir(target)
        with open(source, "wb") as stream:
            stream.write(file)
        try:
            _run([find_tool("cuobjdump"), "-xelf", "all", source], seconds, directory=target)
        except ToolError as error:
            if _NO_CODE in str(error):
                return {}
            raise ToolError(str(error).replace(source, "the file")) from None
        found = {}
        for name in sorted(os.listdir(target), key=_by_number):
            with open(os.path.join(target, name), "rb") as cubin:
                # Names start with that of the file, which is ours.
                found[name.removeprefix("file.")] = cubin.read()
        return found


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else 0, part) for part in name.split(".")]


def _run(
    words: list[str], seconds: float, output_only: bool = False, directory: str | None = None
) -> str:
    name = os.path.basename(words[0])
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=directory,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} took longer than {seconds:,.0f} seconds") from None
    except OSError as error:
        raise ToolError(f"{words[0]} cannot be run: {error.strerror or error}") from None
    out, err = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
    if done.returncode:
        said = " ".join((err or out).split())[:500] or f"exit status {done.returncode}"
        raise ToolError(f"{name} failed: {said}")
    return out if output_only else out + err


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


@cache
def _assembler(path: str) -> Assembler:
    """An assembler and what it reads, by the CUDA release that it says it is of."""
    found = _RELEASE.search(_run([path, "--version"], 60.0))
    if found is None:
        raise ToolError(f"{path} does not say which release it is: is it a ptxas?")
    release = (int(found[1]), int(found[2]))
    versions = [version for version, name in PTX_RELEASES if (of := _cuda(name)) and of <= release]
    return Assembler(path, max(versions, default=(1, 0)), release)


def _cuda(name: str) -> tuple[int, int] | None:
    """`CUDA 12.8` as a pair of numbers; None for a driver's release."""
    word, _, number = name.partition(" ")
    if word != "CUDA":
        return None
    major, _, minor = number.partition(".")
    return int(major), int(minor)


__all__ = [
    "Assembled", "Assembler", "ToolError", "assemble", "disassemble", "extract", "find_assembler",
    "find_tool",
]  # fmt: skip
