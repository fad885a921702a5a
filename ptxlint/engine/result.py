"""What the check of one file gives, before files are put together."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxlint.diagnostics import Finding
from ptxlint.engine.baseline.entries import Measures
from ptxlint.engine.suppression import Suppression
from ptxlint.facts import KernelMetadata
from ptxlint.ir.function import Function, RegisterDeclaration
from ptxlint.obligations import Obligation


class KernelSummary(NamedTuple):
    """One checked kernel.

    `registers` counts the virtual registers that it declares, by class (`pred`, `b16`, `b32`,
    `b64`, …); `metadata` is what travelled beside it.
    """

    name: str
    arch: str
    path: str
    line: int
    instructions: int
    registers: dict[str, int]
    metadata: dict[str, Any] = {}  # noqa: RUF012
    launches: int = 0
    """Launches that the kernel was checked under."""
    left_out: tuple[tuple[str, int], ...] = ()
    """Why launches of it were not used, and how many."""
    spent: tuple[str, ...] = ()
    """Analyses that ran out of their budget."""
    measures: Measures | None = None
    """Hashes and numbers, where a baseline is asked for."""
    resources: dict[str, Any] = {}  # noqa: RUF012
    """What an assembler, a log or a cubin says, as `Resources.as_data`."""


class FileResult(NamedTuple):
    """All that one file gave. `skipped` names its target when `--arch` left the file out."""

    path: str
    findings: tuple[Finding, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    kernels: tuple[KernelSummary, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    used: frozenset[tuple[Suppression, str]] = frozenset()
    covered: frozenset[Suppression] = frozenset()
    """Comments that stand on code which was checked."""
    suppressed: int = 0
    lines: int = 0
    seconds: dict[str, float] = {}  # noqa: RUF012
    """Wall time by stage: `parse`, `verify`, `analysis NAME`, `rule ID`."""
    skipped: str = ""
    met: frozenset[int] = frozenset()
    """Which launches of the options are of this file."""
    is_machine: bool = False
    """Machine code, not PTX."""


def summarise(
    function: Function, arch: str, path: str, line: int, metadata: KernelMetadata | None
) -> KernelSummary:
    """The summary of one kernel."""
    counts: dict[str, int] = {}
    for item in function.items:
        if isinstance(item, RegisterDeclaration):
            name = register_class(item.type)
            count = item.vector * sum(number or 1 for _, number in item.names)
            counts[name] = counts.get(name, 0) + count
    beside = {}
    if metadata is not None:
        fields = ("num_warps", "num_stages", "shared", "registers", "spills")
        beside = {f: getattr(metadata, f) for f in fields if getattr(metadata, f) is not None}
    registers = dict(sorted(counts.items()))
    return KernelSummary(function.name, arch, path, line, len(function.instrs), registers, beside)


def register_class(type_name: str) -> str:
    """The register class of a type: `pred`, or `b` and the width."""
    from ptxlint.ir.types import bits

    return "pred" if type_name == "pred" else f"b{bits(type_name)}"
