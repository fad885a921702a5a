"""What a kernel takes of an SM, and how much of it fits there."""

from __future__ import annotations

from ptxlint.arch.occupancy import Occupancy, occupancy
from ptxlint.comparison.records import KernelRecord
from ptxlint.engine.analyse import find_arch
from ptxlint.engine.resources import exact
from ptxlint.frontends.toolkit import ToolError
from ptxlint.resources import Resources


def resources_of(kernel: KernelRecord, ptxas: str | None, notes: list[str]) -> Resources:
    """The resources of a kernel: what lies beside it, else what an assembler says (`ptxas` names
    it, "" is the one that fits, None runs none). Why they are not exact goes to `notes`, once."""
    known = kernel.resources()
    if ptxas is None or known.spill_stores is not None:
        return known
    try:
        found = exact(kernel.module, ptxas).get(kernel.name)
    except ToolError as error:
        message = f"resources are not exact: {error}"
        if message not in notes:
            notes.append(message)
        return known
    return known if found is None else found.completed(known)


def residency(kernel: KernelRecord, resources: Resources) -> Occupancy | None:
    """What of a kernel fits an SM; None if its architecture, threads or registers are not known."""
    arch = find_arch(kernel.arch)
    threads = kernel.function.max_threads()
    if arch is None or threads is None or resources.registers is None:
        return None
    shared = sum(a.value for a in (resources.shared, resources.dynamic_shared) if a is not None)
    try:
        return occupancy(arch, resources.registers.value, threads, shared)
    except ValueError:
        return None


__all__ = ["residency", "resources_of"]
