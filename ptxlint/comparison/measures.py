"""What a kernel takes of an SM, and how much of it fits there."""

from __future__ import annotations

from typing import Final

from ptxlint.arch.occupancy import Occupancy, occupancy
from ptxlint.comparison.records import KernelRecord
from ptxlint.engine.analyse import find_arch
from ptxlint.engine.resources import exact
from ptxlint.frontends.toolkit import ToolError
from ptxlint.resources import Resources

_WARP: Final = 32


def resources_of(
    kernel: KernelRecord, ptxas: str | None, notes: list[str], faults: list[str] | None = None
) -> Resources:
    """The resources of a kernel: what a cubin or a log says, else what an assembler makes of PTX
    (`ptxas` names it, "" is the one that fits, None runs none). Spills that no log tells are
    counted in the machine code. Why something is not known goes to `notes`, once; that an assembler
    which was named does not do what it is named for also to `faults`."""
    known = kernel.resources(notes)
    if known.registers is None and not kernel.is_machine and ptxas is not None:
        try:
            found = exact(kernel.module, ptxas).get(kernel.name)
        except ToolError as error:
            message = f"resources are not exact: {error}"
            _once(notes, message)
            if ptxas and faults is not None:
                _once(faults, message)
            return known
        known = known if found is None else found.completed(known)
    if known.spill_stores is None and kernel.is_machine:
        _once(notes, f"spills are not known: local memory of {kernel.path} holds arrays, too")
    return known


def residency(kernel: KernelRecord, resources: Resources) -> Occupancy | None:
    """What of a kernel fits an SM; None if its architecture, threads or registers are not known."""
    arch = find_arch(kernel.arch)
    threads = threads_of(kernel, resources)
    if arch is None or threads is None or resources.registers is None:
        return None
    shared = sum(a.value for a in (resources.shared, resources.dynamic_shared) if a is not None)
    barriers = resources.barriers.value if resources.barriers is not None else 0
    try:
        return occupancy(arch, resources.registers.value, threads, shared, barriers)
    except ValueError:
        return None


def threads_of(kernel: KernelRecord, resources: Resources) -> int | None:
    """The threads of a CTA, where the kernel, its cubin or its metadata fix them."""
    threads = kernel.function.max_threads() or resources.threads
    warps = kernel.metadata.num_warps if kernel.metadata is not None else None
    return threads or (warps * _WARP if warps else None)


def _once(notes: list[str], message: str) -> None:
    if message not in notes:
        notes.append(message)


__all__ = ["residency", "resources_of", "threads_of"]
