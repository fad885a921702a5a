"""One kernel on one architecture: what is told of it beside the others."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final, NamedTuple

from ptxlint.arch.occupancy import Occupancy
from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.comparison.changes import Where
from ptxlint.comparison.measures import residency, resources_of
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.verdicts import Opinions, Said
from ptxlint.diagnostics import Finding
from ptxlint.facts import Facts
from ptxlint.frontends.toolkit import ToolError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.obligations import Obligation, Status
from ptxlint.resources import Resources
from ptxlint.structure.profile import Profile, class_of, profile

RANK: Final[dict[str, int]] = {"proved": 0, "open": 1, "refuted": 2}
"""Verdicts, the worst last."""
NOWHERE: Final = Where("", 0)
"""The line of what has none in the source."""


class Guarded(NamedTuple):
    """Global accesses of one kind on one line: how many a guard keeps inside, of how many."""

    guarded: int
    total: int

    @property
    def word(self) -> str:
        """`all`, `some` or `none` of them are guarded."""
        return "all" if self.guarded == self.total else "some" if self.guarded else "none"


class Portrait(NamedTuple):
    """One kernel on one architecture, measured.

    `barriers` counts instructions where the warps of a CTA meet, `waits` those that wait for an
    mbarrier. `guards` are by line of the source and kind of access (`load`, `store`, `atomic`,
    `async`), `lines` count instructions by line and class. `verdicts` are the worst of each rule on
    each line, `findings` the first error or warning of each rule. `machine` counts the cubin beside
    the file; None if there is none.
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

    @property
    def arch(self) -> str:
        """The architecture that the kernel was compiled for."""
        return self.kernel.arch

    @property
    def cfg(self) -> Cfg:
        """The control-flow graph."""
        return self.facts.get(CfgAnalysis)

    @property
    def tensor(self) -> tuple[str, ...]:
        """The opcodes that run on tensor cores, in alphabetical order."""
        return tuple(sorted(self.profile.tensor))

    @property
    def spilled(self) -> int | None:
        """Bytes that spills store and load, each counted once in the text; None is unknown."""
        known = [a.value for a in (self.resources.spill_stores, self.resources.spill_loads) if a]
        return sum(known) if known else None

    def worst(self, rule: str) -> Status | None:
        """The worst verdict of a rule anywhere in the kernel; None if it says nothing."""
        found = [o.status for (name, _), o in self.verdicts.items() if name == rule]
        return max(found, key=RANK.__getitem__, default=None)


def portrait(kernel: KernelRecord, opinions: Opinions | None, ptxas: str | None) -> Portrait:
    """Measure one kernel. `ptxas` is as in `resources_of`."""
    notes: list[str] = []
    resources = resources_of(kernel, ptxas, notes)
    fits = residency(kernel, resources)
    if fits is None and resources.registers is not None:
        notes.append(_why_unknown(kernel))
    machine = _machine(kernel, notes)
    said = None if opinions is None else opinions.of(kernel)
    return Portrait(
        kernel,
        Facts(kernel.module, kernel.function),
        profile(kernel.function),
        sum(map(_is_meeting, kernel.function.instrs)),
        sum(map(_is_wait, kernel.function.instrs)),
        _guards(kernel),
        Counter((_line(kernel, i), class_of(i)) for i in kernel.function.instrs),
        resources,
        fits,
        {} if said is None else _verdicts(said),
        {} if said is None else _findings(said),
        tuple(notes),
        machine,
    )


def source_hash(kernel: KernelRecord) -> str:
    """A hash of Triton's own IR beside a kernel, which does not know the architecture; "" if there
    is none."""
    try:
        with open(kernel.path.removesuffix(".ptx") + ".ttir", "rb") as file:
            return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _why_unknown(kernel: KernelRecord) -> str:
    if kernel.function.max_threads() is None:
        return "occupancy is not known: the kernel does not fix its threads (.reqntid, .maxntid)"
    return f"occupancy is not known: no limits of {kernel.arch} are in the tables"


def _line(kernel: KernelRecord, instr: Instr) -> Where:
    """The line of the source behind an instruction; `NOWHERE` where none is known, since lines of
    the PTX are others on each architecture."""
    frame = kernel.module.python_frame(instr.loc)
    if frame is None or frame.line < 1:
        return NOWHERE
    return Where(frame.path, frame.line)


def _is_meeting(instr: Instr) -> bool:
    """True where the warps of a CTA, or the CTAs of a cluster, meet."""
    words = instr.shape.modifiers
    if instr.opcode not in ("bar", "barrier") or "warp" in words:
        return False
    return bool({"sync", "red", "wait"} & {*words})


def _is_wait(instr: Instr) -> bool:
    words = instr.shape.modifiers
    return instr.opcode == "mbarrier" and bool({"try_wait", "test_wait"} & {*words})


def _guards(kernel: KernelRecord) -> dict[tuple[Where, str], Guarded]:
    found: dict[tuple[Where, str], Guarded] = {}
    for instr in kernel.function.instrs:
        kind = class_of(instr)
        effect = memory_of(instr.shape)
        if kind == "barrier" or "global" not in (*effect.reads, *effect.writes):
            continue
        key = _line(kernel, instr), kind
        guarded, total = found.get(key, (0, 0))
        found[key] = Guarded(guarded + _is_guarded(instr), total + 1)
    return found


def _is_guarded(instr: Instr) -> bool:
    """True if a predicate, a size at run time or a tensor map keeps an access inside."""
    if instr.shape.guard:
        return True
    # cp.async with a source size reads that many bytes only; a tensor map has bounds of its own.
    words = instr.shape.modifiers
    if "tensor" in words:
        return True
    return instr.opcode == "cp" and "bulk" not in words and len(instr.operands) > 3


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


__all__ = ["NOWHERE", "RANK", "Guarded", "Portrait", "portrait", "source_hash"]
