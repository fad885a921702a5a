"""One kernel on one architecture: what is told of it beside the others."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final, NamedTuple

from ptxlint.arch.occupancy import Occupancy
from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.comparison.changes import Where
from ptxlint.comparison.guards import NOWHERE, Guarded, guards, line
from ptxlint.comparison.measures import residency, resources_of, threads_of
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.spill_lines import SpilledAt, spill_lines
from ptxlint.comparison.verdicts import Opinions, Said
from ptxlint.diagnostics import Finding
from ptxlint.facts import Facts
from ptxlint.frontends.stems import beside
from ptxlint.frontends.toolkit import ToolError
from ptxlint.ir.instruction import Instr
from ptxlint.obligations import Obligation, Status
from ptxlint.resources import Resources
from ptxlint.structure.profile import Profile, class_of, profile

_WAITS: Final = frozenset(("try_wait", "test_wait", "TRYWAIT", "PHASECHK"))
RANK: Final[dict[str, int]] = {"proved": 0, "open": 1, "refuted": 2}
"""Verdicts, the worst last."""
_PATHS: Final = {
    **dict.fromkeys(("HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA"), "mma"),
    **dict.fromkeys(("HGMMA", "IGMMA", "QGMMA", "BGMMA"), "wgmma"),
    **dict.fromkeys(("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCMXQMMA"), "tcgen05"),
}
"""The instructions of PTX that tensor-core instructions of machine code stand for."""


class Portrait(NamedTuple):
    """One kernel on one architecture, measured.

    `barriers` counts instructions where the warps of a CTA meet, `waits` those that wait for an
    mbarrier. `guards` are by line of the source and kind of access (`load`, `store`, `atomic`,
    `async`), `lines` count instructions by line and class. `verdicts` are the worst of each rule on
    each line, `findings` the first error or warning of each rule. `machine` counts the cubin beside
    PTX; None if there is none.
    """

    kernel: KernelRecord
    facts: Facts
    profile: Profile
    barriers: int
    waits: int
    guards: dict[tuple[Where, str], Guarded]
    lines: Counter[tuple[Where, str]]
    resources: Resources
    residency: Occupancy | None
    verdicts: dict[tuple[str, Where], Obligation]
    findings: dict[str, Finding]
    notes: tuple[str, ...]
    machine: Profile | None = None
    spill_lines: tuple[SpilledAt, ...] = ()
    """The lines on which it spills, most bytes first, where its machine code is at hand."""
    faults: tuple[str, ...] = ()
    """Those of the notes that say that something asked for was not done."""

    @property
    def arch(self) -> str:
        """The architecture that the kernel was compiled for."""
        return self.kernel.arch

    @property
    def cfg(self) -> Cfg:
        """The control-flow graph."""
        return self.facts.get(CfgAnalysis)

    @property
    def level(self) -> str:
        """`ptx` or `sass`."""
        return self.kernel.level

    @property
    def tensor(self) -> tuple[str, ...]:
        """The instructions that run on tensor cores, as PTX calls them, in alphabetical order."""
        return tuple(sorted({_PATHS.get(name, name) for name in self.profile.tensor}))

    @property
    def spilled(self) -> int | None:
        """Bytes that spills store and load, each counted once in the text; None is unknown."""
        known = [a.value for a in (self.resources.spill_stores, self.resources.spill_loads) if a]
        return sum(known) if known else None

    def worst(self, rule: str) -> Status | None:
        """The worst verdict of a rule anywhere in the kernel; None if it says nothing."""
        found = [o.status for (name, _), o in self.verdicts.items() if name == rule]
        return max(found, key=RANK.__getitem__, default=None)


def portrait(
    kernel: KernelRecord,
    opinions: Opinions | None,
    ptxas: str | None,
    origin: KernelRecord | None = None,
) -> Portrait:
    """Measure one kernel. `ptxas` is as in `resources_of`; `origin` is the PTX of machine code that
    was made for the comparison."""
    notes: list[str] = []
    source = kernel if origin is None else origin
    faults: list[str] = []
    resources = resources_of(source, ptxas, notes, faults)
    fits = residency(source, resources)
    if fits is None and resources.registers is not None:
        notes.append(_why_unknown(source, resources))
    if kernel.is_machine and not kernel.module.files:
        notes.append(f"{kernel.path} names no lines of a source")
    facts = kernel.facts
    machine = _machine(kernel, notes)
    spilled = spill_lines(kernel, resources, ptxas, notes)
    said = None if opinions is None else opinions.of(kernel)
    return Portrait(
        kernel,
        facts,
        profile(kernel.function),
        sum(map(_is_meeting, kernel.function.instrs)),
        sum(map(_is_wait, kernel.function.instrs)),
        guards(kernel, facts),
        Counter((line(kernel, i), class_of(i)) for i in kernel.function.instrs),
        resources,
        fits,
        {} if said is None else _verdicts(said),
        {} if said is None else _findings(said),
        tuple(notes),
        machine,
        spilled,
        tuple(faults),
    )


def source_hash(kernel: KernelRecord) -> str:
    """A hash of Triton's own IR beside a kernel, which does not know the architecture; "" if there
    is none."""
    try:
        with open(beside(kernel.path, ".ttir"), "rb") as file:
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _why_unknown(kernel: KernelRecord, resources: Resources) -> str:
    if threads_of(kernel, resources) is None:
        return "occupancy is not known: the kernel does not fix its threads (.reqntid, .maxntid)"
    return f"occupancy is not known: no limits of {kernel.arch} are in the tables"


def _is_meeting(instr: Instr) -> bool:
    """True where the warps of a CTA, or the CTAs of a cluster, meet."""
    words = instr.shape.modifiers
    if instr.opcode == "UCGABAR_WAIT":
        return True
    if instr.opcode not in ("bar", "barrier", "BAR") or "warp" in words:
        return False
    return bool({"sync", "red", "wait", "SYNC", "RED"} & {*words})


def _is_wait(instr: Instr) -> bool:
    words = instr.shape.modifiers
    return instr.opcode in ("mbarrier", "SYNCS") and bool(_WAITS & {*words})


def _findings(said: Said) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for finding in said.findings:
        if finding.severity in ("error", "warning"):
            found.setdefault(finding.rule, finding)
    return found


def _verdicts(said: Said) -> dict[tuple[str, Where], Obligation]:
    found: dict[tuple[str, Where], Obligation] = {}
    for verdict in said.obligations:
        key = (verdict.rule or verdict.family), _place(verdict)
        known = found.get(key)
        if known is None or RANK[verdict.status] > RANK[known.status]:
            found[key] = verdict
    return found


def _place(verdict: Obligation) -> Where:
    if verdict.place is None or verdict.place.source is None:
        return NOWHERE
    return Where(verdict.place.source.path, verdict.place.source.line)


def _machine(kernel: KernelRecord, notes: list[str]) -> Profile | None:
    try:
        code = kernel.machine_code()
    except ToolError as error:
        notes.append(f"machine code is not read: {error}")
        return None
    return None if code is None else profile(code.function)


__all__ = ["RANK", "Portrait", "portrait", "source_hash"]
