"""A kernel in numbers: what a baseline keeps of its text."""

from __future__ import annotations

from ptxlint.engine.baseline.entries import Measures
from ptxlint.engine.resources import resources_beside
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import STDIN
from ptxlint.ir.function import Function
from ptxlint.resources import Amount
from ptxlint.structure.canonical import canonical
from ptxlint.structure.profile import profile

_GLOBAL = ("global", "")
_KINDS = ("load", "store", "atomic", "async")


def measure(function: Function, path: str, metadata: KernelMetadata | None) -> Measures:
    """The measures of a kernel in a file."""
    form, counts = canonical(function), profile(function)
    reached = {
        access: number
        for access, number in counts.accesses.items()
        if access.space in _GLOBAL and access.kind in _KINDS
    }
    registers, spills = _resources(function.name, path, metadata)
    return Measures(
        form.identity,
        form.shape,
        counts.instructions,
        sum(reached.values()),
        sum(number for access, number in reached.items() if access.guarded),
        registers,
        spills,
    )


def _resources(
    name: str, path: str, metadata: KernelMetadata | None
) -> tuple[int | None, int | None]:
    """Registers and bytes of spills, from a log or cubin beside the file, else from metadata."""
    registers = spills = None
    if metadata is not None:
        registers, spills = metadata.registers, metadata.spills
    known = resources_beside(path).get(name) if path != STDIN else None
    if known is not None:
        registers = _value(known.registers, registers)
        stores, loads = known.spill_stores, known.spill_loads
        if stores is not None and loads is not None:
            spills = stores.value + loads.value
    return registers, spills


def _value(amount: Amount | None, other: int | None) -> int | None:
    return other if amount is None else amount.value


__all__ = ["measure"]
