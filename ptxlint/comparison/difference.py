"""What has changed from one build of a kernel to another."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from ptxlint.cfg.build import build
from ptxlint.comparison.constant_memory import with_memory
from ptxlint.comparison.levels import alike, machine_code
from ptxlint.comparison.measures import residency, resources_of
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.spill_lines import SpilledAt, spill_lines
from ptxlint.comparison.verdicts import Opinions, VerdictChange, changes, lines_of
from ptxlint.engine.resources import logs_beside
from ptxlint.resources import Amount, Resources
from ptxlint.structure.alignment import Alignment, align
from ptxlint.structure.graph import isomorphism
from ptxlint.structure.guards import MachineGuards
from ptxlint.structure.profile import Access, Profile, profile

COUNTED: Final = (
    "registers", "spill_stores", "spill_loads", "stack", "shared", "dynamic_shared", "barriers",
)  # fmt: skip
"""The resources that are compared, in the order of reports."""
_SPILLS: Final = ("spill_stores", "spill_loads")
_DYNAMIC: Final = "dynamic_shared"
UNCHANGED: Final = ("identical", "renamed")


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


class CodeDifference(NamedTuple):
    """The code of a pair at one level, PTX or machine code. `graph` is `same`, `different` or
    `undecided`."""

    old: KernelRecord
    new: KernelRecord
    alignment: Alignment
    graph: str = "same"
    classes: tuple[Delta, ...] = ()
    accesses: tuple[tuple[Access, int, int], ...] = ()

    @property
    def level(self) -> str:
        """`ptx` or `sass`."""
        return self.new.level

    @property
    def kind(self) -> str:
        """`identical`, `renamed`, `constants` or `structural`."""
        return self.alignment.kind

    @property
    def is_changed(self) -> bool:
        """True if more than names is another."""
        return self.kind not in UNCHANGED


class Difference(NamedTuple):
    """A pair of kernels. `code` is what was compared first, `machine` the machine code of both
    where that is PTX and a cubin lies beside each; `notes` say what could not be found out, and
    what was compared in its place."""

    old: KernelRecord
    new: KernelRecord
    code: CodeDifference
    resources: tuple[Delta, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()
    notes: tuple[str, ...] = ()
    machine: CodeDifference | None = None
    unknown: tuple[str, ...] = ()
    """The numbers that one side does not have, of `COUNTED` and `occupancy`; the machine code,
    where it was not compared."""
    old_spills: tuple[SpilledAt, ...] = ()
    new_spills: tuple[SpilledAt, ...] = ()
    """The lines on which each side spills, where the bytes differ."""
    faults: tuple[str, ...] = ()
    """Those of the notes that say that something asked for was not done."""

    @property
    def kind(self) -> str:
        """The kind of `code`."""
        return self.code.kind

    @property
    def is_changed(self) -> bool:
        """True if more than names is another, at either level, or a resource is."""
        return any(code.is_changed for code in self.levels) or bool(self.resources)

    @property
    def levels(self) -> tuple[CodeDifference, ...]:
        """What was compared, level by level."""
        return (self.code,) if self.machine is None else (self.code, self.machine)


class Comparer:
    """Compares pairs; with `ptxas` ("" for the one that fits) resources come from an assembler,
    without (None) from what lies beside the files."""

    def __init__(self, opinions: Opinions | None, ptxas: str | None) -> None:
        self._opinions = opinions
        self._ptxas = ptxas

    def difference(self, old: KernelRecord, new: KernelRecord) -> Difference:
        """What has changed in one pair. Raises `UnlikeError` if nothing of it can be compared."""
        notes: list[str] = []
        first = alike(old, new, self._ptxas, notes)
        code = _code(*first, notes)
        second = machine_code(first, code.is_changed, notes) if code.level == "ptx" else None
        machine = None if second is None else _code(*second, notes)
        is_changed = code.is_changed or (machine is not None and machine.is_changed)
        if not is_changed and old.arch == new.arch:
            known = tuple(_told_otherwise(old, new, machine or code))
            return Difference(old, new, code, known, notes=tuple(notes), machine=machine)
        said: list[VerdictChange] = []
        if self._opinions is not None:
            told = code if code.is_changed or machine is None else machine
            lines = lines_of(told.old, told.new, told.alignment.both)
            ours, theirs = map(self._opinions.of, (told.old, told.new))
            said = changes(ours, theirs, *lines)
        faults: list[str] = []
        before = resources_of(old, self._ptxas, notes, faults)
        after = resources_of(new, self._ptxas, notes, faults)
        deltas, unknown = _resources((old, before), (new, after))
        spilled: list[tuple[SpilledAt, ...]] = [(), ()]
        if any(delta.name in _SPILLS for delta in deltas):
            spilled = [
                spill_lines(kernel, found, self._ptxas, notes)
                for kernel, found in ((old, before), (new, after))
            ]
        if code.level == "ptx" and machine is None:
            unknown.append("machine-code")
        return Difference(
            old,
            new,
            code,
            tuple(deltas),
            tuple(said),
            tuple(notes),
            machine,
            tuple(unknown),
            spilled[0],
            spilled[1],
            tuple(faults),
        )


def _told_otherwise(old: KernelRecord, new: KernelRecord, code: CodeDifference) -> list[Delta]:
    """The resources of the same code that what lies beside both sides says are others: those of
    another assembler's log, of metadata, of machine code that numbers its registers anew."""
    is_renumbered = code.level == "sass" and code.kind == "renamed"
    if not is_renumbered and _beside(old) == _beside(new):
        return []
    deltas, _ = _resources((old, old.resources([])), (new, new.resources([])))
    return [delta for delta in deltas if delta.change]


def _beside(kernel: KernelRecord) -> tuple[object, ...]:
    metadata = kernel.metadata
    told = (None, None) if metadata is None else (metadata.shared, metadata.num_warps)
    return (*told, logs_beside(kernel.path))


def _resources(
    first: tuple[KernelRecord, Resources], second: tuple[KernelRecord, Resources]
) -> tuple[list[Delta], list[str]]:
    """The numbers that differ, and the names of those that one side does not have."""
    (old, ours), (new, theirs) = first, second
    out: list[Delta] = []
    unknown: list[str] = []
    for name in COUNTED:
        before, after = getattr(ours, name), getattr(theirs, name)
        # A kernel that is not Triton's may have no dynamic shared memory that anyone knows of.
        if (before is None) != (after is None) or (before is None and name != _DYNAMIC):
            unknown.append(name)
        if before is not None or after is not None:
            out.append(Delta(name, _value(before), _value(after), _source(before, after)))
    before, after = residency(old, ours), residency(new, theirs)
    if before is not None and after is not None:
        out.append(Delta("occupancy", before.fraction, after.fraction, "calculated"))
    else:
        unknown.append("occupancy")
    return [delta for delta in out if delta.old != delta.new], unknown


def _code(old: KernelRecord, new: KernelRecord, notes: list[str]) -> CodeDifference:
    """The code of both at one level."""
    alignment = align(old.placed, new.placed)
    if new.is_machine:
        alignment = with_memory(alignment, old, new, notes)
    if alignment.kind in UNCHANGED:
        return CodeDifference(old, new, alignment)
    ours, theirs = _profile(old), _profile(new)
    return CodeDifference(
        old,
        new,
        alignment,
        isomorphism(build(old.function), build(new.function)).verdict,
        tuple(_classes(ours, theirs)),
        tuple(_accesses(ours, theirs)),
    )


def _profile(kernel: KernelRecord) -> Profile:
    if not kernel.is_machine:
        return profile(kernel.function)
    return profile(kernel.function, MachineGuards(kernel.facts).is_guarded)


def _value(amount: Amount | None) -> float | None:
    return None if amount is None else amount.value


def _source(old: Amount | None, new: Amount | None) -> str:
    """Who says a number; both sides, where they have it from different places."""
    found = [amount.source for amount in (old, new) if amount is not None]
    return ", then ".join(dict.fromkeys(found))


def _classes(old: Profile, new: Profile) -> list[Delta]:
    names = sorted({*old.classes, *new.classes})
    deltas = [Delta("instructions", old.instructions, new.instructions)]
    deltas += [Delta(name, old.classes[name], new.classes[name]) for name in names]
    return [delta for delta in deltas if delta.change]


def _accesses(old: Profile, new: Profile) -> list[tuple[Access, int, int]]:
    before: Counter[Access] = old.accesses
    kinds = sorted({*before, *new.accesses})
    return [(k, before[k], new.accesses[k]) for k in kinds if before[k] != new.accesses[k]]


__all__ = ["COUNTED", "UNCHANGED", "CodeDifference", "Comparer", "Delta", "Difference"]
