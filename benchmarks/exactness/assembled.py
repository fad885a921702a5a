"""One PTX file assembled for one architecture, and whatever its cubin and its log disagree on."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from drawing import Drawing, difference, drawn

from ptxlint.arch.targets import PtxVersion
from ptxlint.dataflow.spills import spills
from ptxlint.facts import Facts
from ptxlint.frontends.cubin import read_cubin
from ptxlint.frontends.sass import parse
from ptxlint.frontends.toolkit import (
    Assembled,
    Assembler,
    ToolError,
    assemble,
    disassemble,
    find_assembler,
)
from ptxlint.ir.module import Module
from ptxlint.resources import Resources

PARTS: Final = ("registers", "stack", "cumulative_stack", "shared", "barriers")
_TARGET: Final = re.compile(r"^\.target[ \t]+(sm_\w+)", re.MULTILINE)
_ALL_TARGETS: Final[PtxVersion] = (9, 0)
"""An assembler that reads this knows sm_75 to sm_121."""
_VERSION: Final = re.compile(r"^\.version[ \t]+(\d+)\.(\d+)", re.MULTILINE)


@dataclass
class Tally:
    """What was counted, each thing that did not agree, and why files were not taken."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)

    def held(self, what: str, fault: str) -> None:
        """Count something that was compared; a fault, if there is one, is kept."""
        self.counts[what] += 1
        if fault:
            self.counts[f"{what}, other"] += 1
            self.faults.append(fault)


def hold(path: Path, arch: str, tally: Tally) -> None:
    """Assemble a file for `arch` ("" for its own target) and count what agrees."""
    text = path.read_text(encoding="utf-8")
    target = _TARGET.search(text)
    if target is None:
        tally.rejected["it names no target"] += 1
        return
    arch = arch or target[1]
    text = f"{text[: target.start(1)]}{arch}{text[target.end(1) :]}"
    try:
        done = assemble(text, arch, _assembler(text), path.name)
    except ToolError as error:
        tally.rejected[_reason(str(error))] += 1
        return
    tally.counts["files"] += 1
    module = parse(disassemble(done.cubin, "-c", "-g"))
    tally.held("listings", "; ".join(f"{path.stem}: {p.message}" for p in module.problems[:3]))
    _hold_resources(path.stem, done, module, tally)
    _hold_code(path.stem, module, _drawn(done.cubin), tally)


def _assembler(text: str) -> Assembler:
    """The oldest one that reads the text and knows all architectures."""
    version = _VERSION.search(text)
    stated = (int(version[1]), int(version[2])) if version else (1, 0)
    return find_assembler(max(stated, _ALL_TARGETS))


def _reason(said: str) -> str:
    """The first of an assembler's complaints, without the file and the line."""
    found = re.search(r"(?:error|fatal) *: *(.*?)(?: ptxas|$)", said)
    return found[1] if found else said[:120]


def _drawn(cubin: bytes) -> dict[str, Drawing]:
    try:
        return drawn(disassemble(cubin, "-bbcfg"))
    except ToolError:
        return {}


def _hold_resources(name: str, done: Assembled, module: Module, tally: Tally) -> None:
    read = read_cubin(done.cubin).kernels
    by_name = {fn.name: fn for fn in module.functions}
    if set(read) != set(done.resources):
        tally.held("kernels", f"{name}: the cubin has other kernels than the log")
    for kernel, logged in done.resources.items():
        other = _other(logged, read.get(kernel, Resources("")))
        tally.held("kernels", f"{name}: {other}" if other else "")
        if logged.spill_stores is None or logged.spill_loads is None:
            continue
        expected = (logged.spill_stores.value, logged.spill_loads.value)
        found = _spilled(Facts(module, by_name[kernel]))
        if found is None:
            tally.counts["spills not told"] += 1
            continue
        fault = f"{name}: {found} bytes spill, {expected} in the log"
        tally.held("spills" if any(expected) else "no spills", fault if found != expected else "")


def _spilled(facts: Facts) -> tuple[int, int] | None:
    """Bytes stored and loaded, by the machine code; None if they may be those of an array."""
    found = spills(facts)
    return (found.stored, found.loaded) if found.is_certain else None


def _other(logged: Resources, read: Resources) -> str:
    """The numbers of a kernel that are not the same in log and cubin."""
    faults = []
    for part in PARTS:
        theirs, mine = getattr(logged, part), getattr(read, part)
        if theirs is not None and (mine is None or mine.value != theirs.value):
            says = "none" if mine is None else mine.value
            faults.append(f"{part} {theirs.value} in the log, {says} in the cubin")
    return "; ".join(faults)


def _hold_code(name: str, module: Module, drawings: dict[str, Drawing], tally: Tally) -> None:
    for fn in module.functions:
        tally.counts["instructions"] += len(fn.instrs)
        unknown = sorted({i.opcode for i in fn.instrs if not i.shape.row.known})
        fault = f"{name}: {fn.name}: unknown opcodes {', '.join(unknown)}"
        tally.held("functions", fault if unknown else "")
        drawing = drawings.get(fn.name)
        if drawing is None:
            tally.counts["not drawn"] += 1
            continue
        parted = difference(fn, drawing)
        tally.held("graphs", f"{name}: {fn.name}: {parted}" if parted else "")


__all__ = ["Tally", "hold"]
