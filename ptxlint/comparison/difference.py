"""What has changed from one build of a kernel to another."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from ptxlint.cfg.build import build
from ptxlint.comparison.measures import residency, resources_of
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.verdicts import Opinions, VerdictChange, changes
from ptxlint.frontends.toolkit import ToolError
from ptxlint.resources import Amount
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
        alignment = align(old.placed, new.placed)
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
        ours = resources_of(old, self._ptxas, notes)
        theirs = resources_of(new, self._ptxas, notes)
        out = []
        for name in COUNTED:
            before, after = getattr(ours, name), getattr(theirs, name)
            if before is not None or after is not None:
                known = after or before
                out.append(Delta(name, _value(before), _value(after), known.source))
        before, after = residency(old, ours), residency(new, theirs)
        if before is not None and after is not None:
            out.append(Delta("occupancy", before.fraction, after.fraction, "calculated"))
        return [delta for delta in out if delta.old != delta.new]


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
