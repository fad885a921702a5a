"""What has changed from one build of a kernel to another."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from ptxlint.arch import Arch
from ptxlint.arch.occupancy import occupancy
from ptxlint.cfg.build import build
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.verdicts import Opinions, VerdictChange, changes
from ptxlint.engine.analyse import find_arch
from ptxlint.engine.resources import exact
from ptxlint.frontends.toolkit import ToolError
from ptxlint.resources import Amount, Resources
from ptxlint.structure.alignment import Alignment, align
from ptxlint.structure.graph import isomorphism
from ptxlint.structure.profile import Access, Profile, profile

COUNTED: Final = (
    "registers", "spill_stores", "spill_loads", "stack", "shared", "dynamic_shared", "barriers",
)  # fmt: skip
"""The resources that are compared, in the order of reports."""


class Delta(NamedTuple):
    """A number on both sides; None is unknown."""

    name: str
    old: float | None
    new: float | None
    source: str = ""

    @property
    def change(self) -> float:
        """The new number less the old one; 0 if one is not known."""
        return 0 if self.old is None or self.new is None else self.new - self.old


class Difference(NamedTuple):
    """A pair of kernels. `graph` is `same`, `different` or `undecided`; `notes` say what could
    not be found out."""

    old: KernelRecord
    new: KernelRecord
    alignment: Alignment
    graph: str
    resources: tuple[Delta, ...]
    classes: tuple[Delta, ...]
    accesses: tuple[tuple[Access, int, int], ...]
    verdicts: tuple[VerdictChange, ...]
    notes: tuple[str, ...]
    machine: Alignment | None = None
    """The machine code of both, where a cubin lies beside each."""

    @property
    def kind(self) -> str:
        """`identical`, `renamed`, `constants` or `structural`."""
        return self.alignment.kind


class Comparer:
    """Compares pairs; with `ptxas` ("" for the one that fits) resources come from an assembler,
    without (None) from what lies beside the files."""

    def __init__(self, opinions: Opinions | None, ptxas: str | None) -> None:
        self._opinions = opinions
        self._ptxas = ptxas

    def difference(self, old: KernelRecord, new: KernelRecord) -> Difference:
        """What has changed in one pair."""
        alignment = align(old.function, new.function)
        if alignment.kind in ("identical", "renamed") and old.arch == new.arch:
            return Difference(old, new, alignment, "same", (), (), (), (), ())
        notes: list[str] = []
        ours, theirs = profile(old.function), profile(new.function)
        machine = _machine(old, new, notes)
        said: list[VerdictChange] = []
        if self._opinions is not None:
            said = changes(self._opinions.of(old), self._opinions.of(new))
        resources = tuple(self._resources(old, new, notes))
        return Difference(
            old,
            new,
            alignment,
            isomorphism(build(old.function), build(new.function)).verdict,
            resources,
            tuple(_classes(ours, theirs)),
            tuple(_accesses(ours, theirs)),
            tuple(said),
            tuple(notes),
            machine,
        )

    def _resources(self, old: KernelRecord, new: KernelRecord, notes: list[str]) -> list[Delta]:
        ours, theirs = self._exact(old, notes), self._exact(new, notes)
        out = []
        for name in COUNTED:
            before, after = getattr(ours, name), getattr(theirs, name)
            if before is not None or after is not None:
                known = after or before
                out.append(Delta(name, _value(before), _value(after), known.source))
        warps = [_occupancy(k, r) for k, r in ((old, ours), (new, theirs))]
        if None not in warps:
            out.append(Delta("occupancy", warps[0], warps[1], "calculated"))
        return [delta for delta in out if delta.old != delta.new]

    def _exact(self, kernel: KernelRecord, notes: list[str]) -> Resources:
        known = kernel.resources()
        if self._ptxas is None or known.spill_stores is not None:
            return known
        try:
            found = exact(kernel.module, self._ptxas).get(kernel.name)
        except ToolError as error:
            message = f"resources are not exact: {error}"
            if message not in notes:
                notes.append(message)
            return known
        return known if found is None else found.completed(known)


def _machine(old: KernelRecord, new: KernelRecord, notes: list[str]) -> Alignment | None:
    """The machine code of two kernels side by side."""
    try:
        ours, theirs = old.machine_code(), new.machine_code()
    except ToolError as error:
        notes.append(f"machine code is not compared: {error}")
        return None
    return None if ours is None or theirs is None else align(ours, theirs)


def _value(amount: Amount | None) -> float | None:
    return None if amount is None else amount.value


def _occupancy(kernel: KernelRecord, resources: Resources) -> float | None:
    """Warps of an SM that are resident, of those that it holds; None if that is not known."""
    arch: Arch | None = find_arch(kernel.arch)
    threads = kernel.function.max_threads()
    if arch is None or threads is None or resources.registers is None:
        return None
    shared = sum(a.value for a in (resources.shared, resources.dynamic_shared) if a is not None)
    try:
        return occupancy(arch, resources.registers.value, threads, shared).fraction
    except ValueError:
        return None


def _classes(old: Profile, new: Profile) -> list[Delta]:
    names = sorted({*old.classes, *new.classes})
    deltas = [Delta("instructions", old.instructions, new.instructions)]
    deltas += [Delta(name, old.classes[name], new.classes[name]) for name in names]
    return [delta for delta in deltas if delta.change]


def _accesses(old: Profile, new: Profile) -> list[tuple[Access, int, int]]:
    before: Counter[Access] = old.accesses
    kinds = sorted({*before, *new.accesses})
    return [(k, before[k], new.accesses[k]) for k in kinds if before[k] != new.accesses[k]]


__all__ = ["COUNTED", "Comparer", "Delta", "Difference"]
