"""The page on what was held against the assembler, from the record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "exactness.md"
Rows = dict[str, dict[str, Any]]
"""What `run.py` records, by directory and architecture."""
HEAD: Final = """# Resources and machine code against the assembler

What ptxlint reads in cubins and in machine code, held against what the assembler's own log
(`ptxas -v`) and `nvdisasm` say: kernels captured from libraries ([capturing](bundle.md)), and the
fixtures. `python benchmarks/exactness/run.py DIRECTORY...` compares the kernels of your own bundles
and caches, and writes this page.

**{kernels} kernels** in {files} cubins, {instructions} instructions: {verdict}.

*equal* counts kernels of whose numbers **all** agree: {parts}.
*spills* are kernels that spill by the log, and of how many the bytes of `STL` and `LDL` in the
machine code are those of the log; where local memory holds arrays, or functions are called, machine
code does not tell spills apart (*not told*). *read* counts functions of whose listing each line and
each opcode is known. *graphs* are functions whose graph of control flow is the one that
`nvdisasm -bbcfg` draws; *not drawn* are those that it gives up on. *not for it* are files that the
assembler does not take for this target.

| kernels of | for | kernels | equal | spills | not told | read | graphs | not drawn | not for it |
|---|---|---|---|---|---|---|---|---|---|
"""
_PARTS: Final = ("registers", "stack", "shared", "barriers")


def written(rows: Rows) -> str:
    """The whole page."""
    total: Counter[str] = Counter()
    lines, faults = [], []
    for key, row in sorted(rows.items()):
        name, _, arch = key.rpartition(" ")
        total.update(row["counts"])
        lines.append(_line(name, "its target" if arch == "own" else arch, row))
        faults += [f"- {key}: {f}" for f in row["faults"]]
    verdict = "all agree" if not faults else f"{len(faults)} do not agree"
    head = HEAD.format(
        kernels=f"{total['kernels']:,}", files=f"{total['files']:,}",
        instructions=f"{total['instructions']:,}", parts=", ".join(_PARTS), verdict=verdict,
    )  # fmt: skip
    ending = ["", "## What does not agree", "", *faults] if faults else []
    return head + "\n".join([*lines, *ending]) + "\n"


def _line(name: str, arch: str, row: dict[str, Any]) -> str:
    counts = Counter(row["counts"])
    cells = [
        name, arch, counts["kernels"], counts["kernels"] - counts["kernels, other"],
        _of(counts, "spills") if counts["spills"] else 0, counts["spills not told"],
        _of(counts, "functions"), _of(counts, "graphs"), counts["not drawn"],
        sum(row["rejected"].values()),
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _of(counts: Counter[str], what: str) -> str:
    return f"{counts[what] - counts[f'{what}, other']} of {counts[what]}"


__all__ = ["PAGE", "written"]
