"""The lines of the source on which a kernel spills, from its machine code."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.comparison.places import Where
from ptxlint.comparison.records import KernelRecord
from ptxlint.dataflow.spills import spills
from ptxlint.facts import Facts
from ptxlint.frontends.toolkit import ToolError
from ptxlint.resources import Resources


class SpilledAt(NamedTuple):
    """Bytes that the machine code of one line stores to local memory and loads, each counted once
    in the text."""

    where: Where
    stored: int
    loaded: int


def spill_lines(
    kernel: KernelRecord, resources: Resources, ptxas: str | None, notes: list[str]
) -> tuple[SpilledAt, ...]:
    """The lines on which a kernel spills, most bytes first; none if it does not, if its machine
    code is not at hand, and for code that names no lines. `ptxas` is as in `resources_of`. Why the
    code cannot be read goes to `notes`."""
    amounts = (resources.spill_stores, resources.spill_loads)
    if not any(amount is not None and amount.value for amount in amounts):
        return ()
    try:
        code = _machine_code(kernel, ptxas)
    except ToolError as error:
        notes.append(f"the lines that spill are not known: {error}")
        return ()
    if code is None:
        return ()
    found = spills(Facts(code.module, code.function))
    return tuple(
        SpilledAt(Where(line.path, line.line), line.stored, line.loaded)
        for line in found.lines
        if line.line
    )


def _machine_code(kernel: KernelRecord, ptxas: str | None) -> KernelRecord | None:
    if kernel.is_machine:
        return kernel
    code = kernel.machine_code()
    return kernel.assembled(ptxas) if code is None and ptxas is not None else code


def told(lines: tuple[SpilledAt, ...], most: int) -> str:
    """Lines in words: "at a.py:42 (1,172 B stored, 680 B loaded), a.py:46 (8 B stored)"."""
    word = "at" if len(lines) <= most else "most at"
    return f"{word} {', '.join(f'{line.where} ({_bytes(line)})' for line in lines[:most])}"


def _bytes(line: SpilledAt) -> str:
    parts = ((line.stored, "stored"), (line.loaded, "loaded"))
    return ", ".join(f"{count:,} B {word}" for count, word in parts if count)


__all__ = ["SpilledAt", "spill_lines", "told"]
