"""Where exact resources come from: what lies beside a file, else an assembler that is run."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from ptxlint.engine.baseline.entries import base
from ptxlint.frontends.assembler_log import read_log
from ptxlint.frontends.cubin import CubinError, read_cubin
from ptxlint.frontends.stems import CUBIN, LOGS, beside
from ptxlint.frontends.toolkit import Assembled, ToolError, assemble, disassemble, find_assembler
from ptxlint.ir.module import Module
from ptxlint.resources import CUBIN as BY_CUBIN
from ptxlint.resources import SASS, Amount, Resources

if TYPE_CHECKING:
    from ptxlint.facts import Facts

_MOST_BYTES = 256 << 20


def resources_beside(path: str, arch: str, faults: list[str]) -> dict[str, Resources]:
    """What a `.cubin` and a log of `ptxas -v` (`.log`, `.ptxas`) of the same stem say of kernels
    for an architecture, by name; the log where both do. The path may be that of the cubin. What
    cannot be read, and what is for another architecture, is left out, and told in `faults`."""
    found: dict[str, Resources] = {}
    for suffix in LOGS:
        data = _bytes(beside(path, suffix))
        if data is not None:
            where = f"log {os.path.basename(beside(path, suffix))}"
            log = _fitting(read_log(data.decode(errors="replace")), arch, where, faults)
            found = {**{name: told.found(where) for name, told in log.items()}, **found}
    data = cubin_beside(path)
    if data is None:
        return found
    where = f"cubin {os.path.basename(beside(path, CUBIN))}"
    try:
        kernels = read_cubin(data, beside(path, CUBIN)).kernels
    except CubinError as error:
        faults.append(str(error))
        return found
    return _completed(found, _fitting(kernels, arch, where, faults), data, where)


def _fitting(
    found: dict[str, Resources], arch: str, where: str, faults: list[str]
) -> dict[str, Resources]:
    """What is for an architecture; that nothing is goes to `faults`."""
    fitting = {name: told for name, told in found.items() if base(told.arch) == base(arch)}
    if found and not fitting:
        archs = ", ".join(sorted({told.arch for told in found.values()}))
        faults.append(f"the {where} beside is for {archs}, and not for {arch}: it is not used")
    return fitting


def machine_resources(facts: Facts, cubin: bytes | None, path: str) -> Resources:
    """What a kernel of machine code takes: what a log or a cubin beside it says, else its own
    cubin, else what its listing says and what is counted in it."""
    from ptxlint.dataflow.spills import spills

    name, arch = facts.function.name, facts.module.arch
    known = Resources(arch)
    own = {} if cubin is None else _kernels(cubin, f"cubin {os.path.basename(path)}")
    # A file may hold code for several architectures, and what lies beside it is for one.
    for told in (resources_beside(path, arch, []).get(name), own.get(name)):
        if told is not None and base(told.arch) == base(arch):
            known = known.completed(told)
    registers = facts.function.directives.get("registers")
    if known.registers is None and registers:
        known = known._replace(registers=Amount(int(registers[0]), SASS))
    if known.spill_stores is None and (found := spills(facts)).is_certain:
        known = known._replace(
            spill_stores=Amount(found.stored, SASS), spill_loads=Amount(found.loaded, SASS)
        )
    return known


def _kernels(cubin: bytes, where: str) -> dict[str, Resources]:
    """The attributes of a cubin's kernels; none if it cannot be read."""
    try:
        kernels = read_cubin(cubin).kernels
    except CubinError:
        return {}
    return {name: told.found(where) for name, told in kernels.items()}


def resources_in(cubin: bytes, where: str = "") -> dict[str, Resources]:
    """What a cubin says of its kernels, by name; nothing if it cannot be read. `where` is as in
    `Amount`."""
    return _completed({}, _kernels(cubin, where), cubin, where)


def cubin_beside(path: str) -> bytes | None:
    """The bytes of the `.cubin` of the same stem as a PTX file, or of that cubin itself."""
    return _bytes(beside(path, CUBIN))


def logs_beside(path: str) -> tuple[bytes | None, ...]:
    """The bytes of each log of the same stem; None where there is none."""
    return tuple(_bytes(beside(path, suffix)) for suffix in LOGS)


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
    kernels = _kernels(done.cubin, done.who)
    return _completed(dict(done.resources), kernels, done.cubin, done.who)


def _completed(
    found: dict[str, Resources], kernels: dict[str, Resources], cubin: bytes, where: str
) -> dict[str, Resources]:
    """What is known, and what a cubin says of its kernels beyond that."""
    for name, told in kernels.items():
        resources, known = told.found(where), found.get(name)
        known = resources if known is None else known.completed(resources)
        if known.spill_stores is None:
            known = _with_spills(known, name, cubin, where)
        found[name] = known
    return found


def _with_spills(known: Resources, name: str, cubin: bytes, where: str) -> Resources:
    """Resources with the spills that the machine code shows, unless an array in local memory may be
    taken for them."""
    frame = known.stack
    if frame is not None and not frame.value:
        # A kernel without a frame has no local memory that it could spill to.
        none = Amount(0, BY_CUBIN, where)
        return known._replace(spill_stores=none, spill_loads=none)
    from ptxlint.dataflow.spills import spills

    try:
        facts = machine_facts(cubin).get(name)
    except ToolError:
        return known
    found = None if facts is None else spills(facts)
    if found is None or not found.is_certain:
        return known
    counted = f"SASS of {where}" if where else ""
    return known._replace(
        spill_stores=Amount(found.stored, SASS, counted),
        spill_loads=Amount(found.loaded, SASS, counted),
    )


@lru_cache(maxsize=8)
def machine_facts(cubin: bytes) -> dict[str, Facts]:
    """The kernels of a cubin by name, disassembled. Raises `ToolError`."""
    from ptxlint.facts import Facts
    from ptxlint.frontends.sass import parse

    module = parse(disassemble(cubin, "-c", "-gi"))
    return {kernel.name: Facts(module, kernel) for kernel in module.kernels()}


__all__ = [
    "assembled", "cubin_beside", "exact", "logs_beside", "machine_facts", "machine_resources",
    "resources_beside", "resources_in",
]  # fmt: skip
