"""Where exact resources come from: what lies beside a file, else an assembler that is run."""

from __future__ import annotations

import os
from functools import lru_cache

from ptxlint.frontends.assembler_log import read_log
from ptxlint.frontends.cubin import CubinError, read_cubin
from ptxlint.frontends.stems import CUBIN, LOGS, beside
from ptxlint.frontends.toolkit import Assembled, assemble, find_assembler
from ptxlint.ir.module import Module
from ptxlint.resources import Resources

_MOST_BYTES = 256 << 20


def resources_beside(path: str) -> dict[str, Resources]:
    """What a `.cubin` and a log of `ptxas -v` (`.log`, `.ptxas`) of the same stem say of kernels,
    by name; the log where both do. Nothing if there are none, or none that can be read."""
    found: dict[str, Resources] = {}
    for suffix in LOGS:
        data = _bytes(beside(path, suffix))
        if data is not None:
            found = {**read_log(data.decode(errors="replace")), **found}
    data = cubin_beside(path)
    if data is not None:
        try:
            kernels = read_cubin(data, beside(path, CUBIN)).kernels
        except CubinError:
            return found
        for name, resources in kernels.items():
            known = found.get(name)
            found[name] = resources if known is None else known.completed(resources)
    return found


def cubin_beside(path: str) -> bytes | None:
    """The bytes of the `.cubin` of the same stem as a PTX file."""
    return _bytes(beside(path, CUBIN))


def _bytes(path: str) -> bytes | None:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def assembled(module: Module, given: str = "") -> Assembled:
    """What an assembler makes of a module. Raises `ToolError`."""
    return _assembled(module.source.text, module.arch, module.version, given, module.source.path)


@lru_cache(maxsize=8)
def _assembled(text: str, arch: str, version: tuple[int, int], given: str, path: str) -> Assembled:
    return assemble(text, arch, find_assembler(version, given), path)


def exact(module: Module, given: str = "") -> dict[str, Resources]:
    """The resources of a module's kernels from an assembler, the log first, then the cubin. Raises
    `ToolError`."""
    done = assembled(module, given)
    found = dict(done.resources)
    try:
        kernels = read_cubin(done.cubin).kernels
    except CubinError:
        return found
    for name, resources in kernels.items():
        known = found.get(name)
        found[name] = resources if known is None else known.completed(resources)
    return found


__all__ = ["assembled", "cubin_beside", "exact", "resources_beside"]
