"""Kernels over architectures: which builds are the same kernel, and how they stand side by side."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from ptxlint.comparison.changes import Where, where
from ptxlint.comparison.levels import OneLevel, of_one_level
from ptxlint.comparison.portrait import Portrait, portrait, source_hash
from ptxlint.comparison.records import KernelRecord, load
from ptxlint.comparison.report import NothingError
from ptxlint.comparison.surprises import KINDS, Surprise, surprises
from ptxlint.comparison.verdicts import Opinions
from ptxlint.frontends.target_filter import wanted
from ptxlint.structure.graph import isomorphism, parting

_NUMBER = re.compile(r"\d+")


class Parting(NamedTuple):
    """Where a graph parts from that of the first architecture: a block and its line on each side;
    `lines` have other instructions, as (line, class, count there, count here), largest first."""

    ours: tuple[int, Where] | None
    theirs: tuple[int, Where] | None
    lines: tuple[tuple[Where, str, int, int], ...]


class Structure(NamedTuple):
    """One architecture's code beside that of the first. `code` is `identical` (but for names),
    `constants`, `order` (as many instructions of each class on each line, but not the same ones in
    the same order) or `different`; `graph` is `same`, `different` or `undecided`; `parting` is None
    where the code is not different."""

    arch: str
    code: str
    graph: str
    parting: Parting | None


class Family(NamedTuple):
    """One kernel on two architectures or more, in their order."""

    name: str
    """The kernel's name; with that of its file where several kernels have it."""
    portraits: tuple[Portrait, ...]
    structures: tuple[Structure, ...]
    surprises: tuple[Surprise, ...]
    notes: tuple[str, ...]

    @property
    def level(self) -> str:
        """`ptx` or `sass`: what stands side by side."""
        return self.portraits[0].level

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures, the oldest first."""
        return tuple(p.arch for p in self.portraits)


class ArchitectureReport(NamedTuple):
    """All kernels that are there for two architectures, those that are not (`alone`), what could
    not be read, and the kinds of surprises that fail."""

    families: tuple[Family, ...]
    alone: tuple[KernelRecord, ...]
    faults: tuple[str, ...]
    fail_on: frozenset[str]
    seconds: float

    @property
    def failures(self) -> list[tuple[Family, Surprise]]:
        """The surprises that fail."""
        return [(f, s) for f in self.families for s in f.surprises if s.kind in self.fail_on]

    @property
    def exit_code(self) -> int:
        """2 if something could not be read, else 1 if a surprise fails, else 0."""
        return 2 if self.faults else 1 if self.failures else 0


class Grouping(NamedTuple):
    """Builds that are one kernel, each group with a note; the rest stands alone."""

    groups: list[tuple[list[KernelRecord], str]]
    alone: list[KernelRecord]


def compare_architectures(
    paths: list[str],
    *,
    opinions: Opinions | None = None,
    ptxas: str | None = "",
    archs: tuple[str, ...] = (),
    kernels: tuple[str, ...] = (),
    fail_on: Iterable[str] = (),
) -> ArchitectureReport:
    """Compare the kernels of some files over their architectures, of `archs` and `kernels` alone if
    these are given. `ptxas` is as in `resources_of`. Raises `NothingError` if no kernel is there
    for two architectures."""
    start = time.perf_counter()
    loaded = load(paths)
    faults = list(loaded.faults)
    found = []
    for kernel in loaded.kernels:
        if not kernel.arch:
            faults.append(f"{kernel.path}: no .target says which architecture {kernel.name} is for")
        elif wanted(kernel.arch, archs) and (not kernels or kernel.name in kernels):
            found.append(kernel)
    grouping = group(found)
    if not grouping.groups:
        raise NothingError(_why_nothing(paths, loaded.kernels, found, faults, archs, kernels))
    names = Counter(members[0].name for members, _ in grouping.groups)
    alone = list(grouping.alone)
    families = []
    for members, note in grouping.groups:
        level = of_one_level(members, ptxas)
        faults += level.faults
        if len(level.kernels) < 2:
            alone += level.kernels
            continue
        title = _title(members, names[members[0].name] > 1)
        notes = [note] * bool(note) + level.notes
        families.append(_family(title, level, notes, opinions, ptxas))
    faults += dict.fromkeys(text for f in families for p in f.portraits for text in p.faults)
    words = frozenset(fail_on)
    # Who turns assemblers off and asks for everything asks for what is known without.
    if "spills" in words and (ptxas is not None or words != frozenset(KINDS)):
        faults += _undecided(families)
    return ArchitectureReport(
        tuple(families),
        tuple(alone),
        tuple(faults),
        words,
        time.perf_counter() - start,
    )


def _undecided(families: list[Family]) -> list[str]:
    """Builds of which nobody says whether they spill, which was asked for."""
    return [
        f"{family.name} on {p.arch}: it is not known whether it spills"
        for family in families
        for p in family.portraits
        if p.spilled is None
    ]


def _why_nothing(
    paths: list[str],
    there: list[KernelRecord],
    found: list[KernelRecord],
    faults: list[str],
    archs: tuple[str, ...],
    kernels: tuple[str, ...],
) -> str:
    head = f"{', '.join(paths)}: there is nothing to compare"
    if not there:
        return f"{head}: {'; '.join(faults) or 'no kernel is in it'}"
    # What could not be read may be the other architecture.
    unread = "".join(f"; not read: {fault}" for fault in faults)
    names = sorted({k.name for k in there})
    if kernels and not {*kernels} & {*names}:
        return f"{head}: there is no kernel {', '.join(kernels)}; there are {', '.join(names[:9])}"
    all_archs = ", ".join(sorted({k.arch for k in there if k.arch}, key=_order))
    if archs and not found:
        return f"{head}: nothing is for {', '.join(archs)}; there are {all_archs}{unread}"
    mine = sorted({k.arch for k in found}, key=_order)
    if len(mine) == 1:
        return f"{head}: all is for {mine[0]}, and a comparison needs two architectures{unread}"
    return (
        f"{head}: no kernel is there for two architectures ("
        + "; ".join(f"{a}: {_names(k for k in found if k.arch == a)}" for a in mine)
        + f"){unread}"
    )


def _names(kernels: Iterable[KernelRecord]) -> str:
    names = sorted({k.name for k in kernels})
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def group(kernels: list[KernelRecord]) -> Grouping:
    """Which builds are one kernel: by name; of several with one name PTX and machine code apart, by
    the name of their file, by Triton's IR beside them, by their parameters and warps; then in the
    order of their files, with a note that says so."""
    groups: list[tuple[list[KernelRecord], str]] = []
    left = list(kernels)
    keys: tuple[Callable[[KernelRecord], Hashable], ...] = (
        lambda k: "",
        lambda k: k.level,
        lambda k: (k.level, _file_name(k)),
        lambda k: (k.level, source_hash(k), *_settings(k)) if source_hash(k) else None,
        lambda k: (k.level, source_hash(k)) if source_hash(k) else None,
        lambda k: (k.level, tuple((p.type, p.vector) for p in k.function.params), *_settings(k)),
    )
    for key in keys:
        left = _grouped(left, key, groups)
    left = _in_order(left, groups)
    place = {id(k): at for at, k in enumerate(kernels)}
    for members, _ in groups:
        members.sort(key=lambda k: _order(k.arch))
    groups.sort(key=lambda g: (g[0][0].name, min(place[id(k)] for k in g[0])))
    return Grouping(groups, left)


def _settings(kernel: KernelRecord) -> tuple[int | None, int | None]:
    data = kernel.metadata
    return (None, None) if data is None else (data.num_warps, data.num_stages)


def _order(arch: str) -> tuple[int, str]:
    number = _NUMBER.search(arch)
    return (int(number[0]) if number else 0, arch)


def _buckets(
    kernels: list[KernelRecord], key: Callable[[KernelRecord], Hashable]
) -> list[list[KernelRecord]]:
    out: dict[Hashable, list[KernelRecord]] = {}
    for kernel in kernels:
        found = key(kernel)
        if found is not None:
            out.setdefault((kernel.name, found), []).append(kernel)
    return list(out.values())


def _grouped(
    kernels: list[KernelRecord],
    key: Callable[[KernelRecord], Hashable],
    groups: list[tuple[list[KernelRecord], str]],
) -> list[KernelRecord]:
    """Group what has a key in common and is there once for each architecture; return the rest."""
    taken = set()
    for members in _buckets(kernels, key):
        archs = Counter(k.arch for k in members)
        if len(archs) > 1 and max(archs.values()) == 1:
            groups.append((members, ""))
            taken |= {id(k) for k in members}
    return [k for k in kernels if id(k) not in taken]


def _in_order(
    kernels: list[KernelRecord], groups: list[tuple[list[KernelRecord], str]]
) -> list[KernelRecord]:
    alone = []
    for members in _buckets(kernels, lambda k: ""):
        by_arch: dict[str, list[KernelRecord]] = {}
        for kernel in members:
            by_arch.setdefault(kernel.arch, []).append(kernel)
        for at in range(max(map(len, by_arch.values()))):
            row = [of[at] for of in by_arch.values() if at < len(of)]
            if len(row) > 1:
                note = (
                    "several builds have this name: these go together by the order of their files"
                )
                groups.append((row, note))
            else:
                alone += row
    return alone


def _title(kernels: list[KernelRecord], is_repeated: bool) -> str:
    name = kernels[0].name
    return f"{name} ({_file_name(kernels[0])})" if is_repeated else name


def _file_name(kernel: KernelRecord) -> str:
    return kernel.path.replace("\\", "/").rsplit("/", 1)[-1]


def _family(
    name: str,
    level: OneLevel,
    notes: list[str],
    opinions: Opinions | None,
    ptxas: str | None,
) -> Family:
    portraits = tuple(portrait(k, opinions, ptxas, level.origins.get(id(k))) for k in level.kernels)
    notes = notes + [f"{p.arch}: {text}" for p in portraits for text in p.notes]
    first = portraits[0]
    return Family(
        name,
        portraits,
        tuple(_structure(first, p) for p in portraits),
        tuple(surprises(portraits)),
        tuple(notes),
    )


def _structure(first: Portrait, here: Portrait) -> Structure:
    ours, theirs = first.kernel, here.kernel
    if ours.identity == theirs.identity:
        return Structure(here.arch, "identical", "same", None)
    graph = isomorphism(first.cfg, here.cfg).verdict
    if ours.shape == theirs.shape:
        return Structure(here.arch, "constants", graph, None)
    found = None if graph == "same" else parting(first.cfg, here.cfg)
    a = b = None
    if found is not None:
        a, b = _block(first, found[0]), _block(here, found[1])
    keys = {*first.lines, *here.lines}
    lines = [(*key, first.lines[key], here.lines[key]) for key in keys]
    lines = [row for row in lines if row[2] != row[3]]
    if not lines and found is None:
        return Structure(here.arch, "order", graph, None)
    lines.sort(key=lambda row: (-abs(row[2] - row[3]), row[0], row[1]))
    return Structure(here.arch, "different", graph, Parting(a, b, tuple(lines)))


def _block(here: Portrait, block: int) -> tuple[int, Where]:
    """A block with the line at its end, which is where it parts."""
    instrs = here.cfg.instructions(block)
    if not instrs:
        return block, Where(here.kernel.path, 0)
    return block, where(here.kernel.module, instrs[-1])


__all__ = [
    "ArchitectureReport", "Family", "Grouping", "Parting", "Structure", "compare_architectures",
    "group",
]  # fmt: skip
