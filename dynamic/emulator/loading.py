"""From a PTX text to a kernel that can be run, or what stands in the way."""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches

from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.engine.places import Places
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import MetadataError, load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.ir.verifier import verify


class EmulationError(ValueError):
    """A run that could not be done: the text says what is wrong, where, and what to do."""


def load(text: str, path: str) -> Module:
    """The module of a text; raises `EmulationError` with the place of the first fault."""
    module = parse(text, path)
    check(module)
    return module


def check(module: Module) -> None:
    """Raises `EmulationError` if a statement of the module could not be read."""
    problems = [p for p in (*module.problems, *verify(module)) if not p.note]
    if problems:
        line, column = module.source.position(problems[0].offset)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise EmulationError(
            f"{module.source.path}:{line}:{column}: {problems[0].message}{more}; nothing of the "
            "file is run"
        )


def pick(module: Module, name: str) -> Function:
    """The kernel of a name, the only one without. Raises `EmulationError`."""
    kernels, where = module.kernels(), module.source.path
    if not kernels:
        raise EmulationError(f"{where}: there is no kernel (.entry) in it")
    if not name and len(kernels) > 1:
        names = _listed([kernel.name for kernel in kernels])
        raise EmulationError(f"{where}: there are {len(kernels)} kernels, name one: {names}")
    found = next((kernel for kernel in kernels if name in ("", kernel.name)), None)
    if found is None:
        others = {function.name for function in module.functions}
        raise EmulationError(no_kernel(name, [k.name for k in kernels], others, where))
    return found


def no_kernel(name: str, kernels: list[str], functions: Collection[str], where: str) -> str:
    """What to say of a name that no kernel has."""
    if name in functions:
        return f"{where}: {name!r} is a device function; only kernels (.entry) are launched"
    near = get_close_matches(name, kernels, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there is {_listed(kernels)}"
    return f"{where}: no kernel is called {name!r}; {hint}"


def translated(module: Module, kernel: Function, places: Places) -> Emulator:
    """A kernel, ready to run. Raises `EmulationError` that names what is not run, with its line."""
    try:
        return Emulator(module, kernel)
    except UnsupportedError as error:
        raise EmulationError(refusal(error, places)) from None


def refusal(error: UnsupportedError, places: Places) -> str:
    """What an instruction is refused for, with its place."""
    place = places.of(error.instr)
    reason = f": {error.reason}" if error.reason else ""
    return (
        f"{place.path}:{place.line}:{place.column}: `{error.instr.shape.mnemonic}` is not run by "
        f"the emulator{reason}"
    )


def metadata_beside(path: str) -> KernelMetadata | None:
    """The metadata beside a file, if there is any that can be used."""
    try:
        return load_metadata(path) if os.path.exists(path) else None
    except MetadataError:
        return None


def _listed(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


__all__ = [
    "EmulationError", "check", "load", "metadata_beside", "no_kernel", "pick", "refusal",
    "translated",
]  # fmt: skip
