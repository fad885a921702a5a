"""A kernel in numbers: what a baseline keeps of its text."""

from __future__ import annotations

from ptxlint.engine.baseline.entries import Measures
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.ir.sass.function import SassFunction
from ptxlint.resources import Amount, Resources
from ptxlint.structure.canonical import Kernel, canonical
from ptxlint.structure.profile import Profile, profile

_GLOBAL = ("global", "")
_KINDS = ("load", "store", "atomic", "async")


def measure(kernel: Kernel, metadata: KernelMetadata | None, known: Resources | None) -> Measures:
    """The measures of a kernel; `known` is what an assembler, a log or a cubin says of it."""
    form, counts = canonical(kernel), _profile(kernel)
    reached = {
        access: number
        for access, number in counts.accesses.items()
        if access.space in _GLOBAL and access.kind in _KINDS
    }
    registers, spills = _resources(metadata, known)
    return Measures(
        form.identity,
        form.shape,
        counts.instructions,
        sum(reached.values()),
        sum(number for access, number in reached.items() if access.guarded),
        registers,
        spills,
    )


def _profile(kernel: Kernel) -> Profile:
    if not isinstance(kernel.function, SassFunction):
        return profile(kernel.function)
    from ptxlint.structure.guards import MachineGuards

    guards = MachineGuards(Facts(kernel.module, kernel.function))
    return profile(kernel.function, guards.is_guarded)


def _resources(
    metadata: KernelMetadata | None, known: Resources | None
) -> tuple[int | None, int | None]:
    """Registers and bytes of spills, else those of the metadata."""
    registers = spills = None
    if metadata is not None:
        registers, spills = metadata.registers, metadata.spills
    if known is not None:
        registers = _value(known.registers, registers)
        stores, loads = known.spill_stores, known.spill_loads
        if stores is not None and loads is not None:
            spills = stores.value + loads.value
    return registers, spills


def _value(amount: Amount | None, other: int | None) -> int | None:
    return other if amount is None else amount.value


__all__ = ["measure"]
