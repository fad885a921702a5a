"""What a comparison over architectures is told with, shared by its renderers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from ptxlint.comparison.architectures import ArchitectureReport, Family, Structure
from ptxlint.comparison.changes import Where
from ptxlint.comparison.portrait import Portrait
from ptxlint.comparison.surprises import Surprise
from ptxlint.resources import Amount
from ptxlint.structure.profile import Profile
from ptxlint.wording import counted

MOST_LINES: Final = 6
"""So many lines with other instructions are told of an architecture."""
UNKNOWN: Final = "–"
_HEADINGS: Final = {
    "spills": "spills",
    "tensor": "tensor cores",
    "copies": "asynchronous copies",
    "guards": "guards",
    "barriers": "barriers",
    "verdicts": "verdict",
}
_RESOURCES: Final = {
    "registers": "registers", "spill_stores": "spill stores (B)", "spill_loads": "spill loads (B)",
    "stack": "stack (B)", "shared": "static shared memory (B)",
    "dynamic_shared": "dynamic shared memory (B)", "barriers": "named barriers",
}  # fmt: skip


class Row(NamedTuple):
    """One line of a table: a part of the report, a name, a cell for each architecture."""

    part: str
    name: str
    cells: tuple[str, ...]

    @property
    def is_even(self) -> bool:
        """True if all architectures have the same."""
        return len(set(self.cells)) == 1


def title(family: Family) -> str:
    """The kernel's name, and that it is machine code."""
    return f"{family.name}, machine code" if family.level == "sass" else family.name


def rows(family: Family) -> list[Row]:
    """The table of one kernel."""
    return [*_structure(family), *_resources(family), *_verdicts(family), *_machine(family)]


def _structure(family: Family) -> list[Row]:
    first = family.archs[0]
    shown = family.portraits
    out = [
        Row("structure", "code", tuple(_code(s, first) for s in family.structures)),
        Row("structure", "control flow", tuple(_graph(s, first) for s in family.structures)),
        Row("structure", "blocks", tuple(str(len(p.cfg.reachable)) for p in shown)),
        Row("structure", "instructions", tuple(f"{p.profile.instructions:,}" for p in shown)),
    ]
    classes = sorted({name for p in shown for name in p.profile.classes})
    return [
        *out,
        *(
            _row("structure", f"· {name}", [p.profile.classes[name] for p in shown])
            for name in classes
        ),
        Row("structure", "tensor cores", tuple(_times(p.profile.tensor) for p in shown)),
        Row("structure", "asynchronous copies", tuple(_times(p.profile.copies) for p in shown)),
        _row("structure", "CTA barriers", [p.barriers for p in shown]),
        _row("structure", "mbarrier waits", [p.waits for p in shown]),
        Row("structure", "guarded global accesses", tuple(_guarded(p) for p in shown)),
    ]


def _row(part: str, name: str, numbers: list[int]) -> Row:
    return Row(part, name, tuple(f"{number:,}" for number in numbers))


def _code(structure: Structure, first: str) -> str:
    if structure.arch == first:
        return "the first"
    return {
        "identical": f"as on {first}", "constants": "other constants", "order": "another order",
        "different": "another one",
    }[structure.code]  # fmt: skip


def _graph(structure: Structure, first: str) -> str:
    if structure.arch == first:
        return "the first"
    if structure.graph == "same":
        return f"as on {first}"
    word = "not decided" if structure.graph == "undecided" else "parts"
    if structure.parting is None or structure.parting.theirs is None:
        return word
    block, where = structure.parting.theirs
    return f"{word} at B{block} ({short(str(where))})"


def short(path: str) -> str:
    """A path without its directories."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _times(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {times:,}" for name, times in sorted(counts.items())) or "none"


def _guarded(p: Portrait) -> str:
    guarded = sum(g.guarded for g in p.guards.values())
    return f"{guarded:,} of {sum(g.total for g in p.guards.values()):,}"


def _resources(family: Family) -> list[Row]:
    out = []
    for field, name in _RESOURCES.items():
        amounts: list[Amount | None] = [getattr(p.resources, field) for p in family.portraits]
        if any(amounts):
            out.append(Row("resources", name, tuple(_amount(a) for a in amounts)))
    known = [p.resources.registers for p in family.portraits]
    if any(known):
        cells = tuple(UNKNOWN if a is None else a.source for a in known)
        out.append(Row("resources", "registers known from", cells))
        out.append(Row("resources", "occupancy", tuple(_occupancy(p) for p in family.portraits)))
        limits = tuple(
            ", ".join(p.residency.limiters) if p.residency is not None else UNKNOWN
            for p in family.portraits
        )
        out.append(Row("resources", "limited by", limits))
    return out


def _amount(amount: Amount | None) -> str:
    return UNKNOWN if amount is None else f"{amount.value:,}"


def _occupancy(p: Portrait) -> str:
    found = p.residency
    if found is None:
        return UNKNOWN
    return f"{100 * found.fraction:.0f} % ({counted(found.ctas_per_sm, 'CTA')} an SM)"


def _verdicts(family: Family) -> list[Row]:
    rules = sorted({rule for p in family.portraits for rule, _ in p.verdicts})
    out = [
        Row("verdicts", rule, tuple(_statuses(p, rule) for p in family.portraits)) for rule in rules
    ]
    for rule in sorted({rule for p in family.portraits for rule in p.findings}):
        cells = tuple(
            p.findings[rule].severity if rule in p.findings else "none" for p in family.portraits
        )
        out.append(Row("findings", rule, cells))
    return out


def _statuses(p: Portrait, rule: str) -> str:
    counts = Counter(o.status for (name, _), o in p.verdicts.items() if name == rule)
    found = [f"{counts[s]} {s}" for s in ("proved", "open", "refuted") if counts[s]]
    return ", ".join(found) or UNKNOWN


def _machine(family: Family) -> list[Row]:
    """The machine code beside PTX."""
    known = [p.machine for p in family.portraits]
    if not any(known):
        return []
    names = sorted({name for m in known if m is not None for name in m.classes})

    def row(name: str, cell: Callable[[Profile], str]) -> Row:
        cells = tuple(UNKNOWN if m is None else cell(m) for m in known)
        return Row("machine code", f"machine code: {name}", cells)

    return [
        row("instructions", lambda m: f"{m.instructions:,}"),
        *(row(name, lambda m, name=name: f"{m.classes[name]:,}") for name in names),  # type: ignore[misc]
        row("tensor cores", lambda m: _times(m.tensor)),
        row("asynchronous copies", lambda m: _times(m.copies)),
    ]


def partings(family: Family) -> list[str]:
    """Where each architecture's code parts from that of the first."""
    first = family.archs[0]
    out = []
    for structure in family.structures:
        found = structure.parting
        if found is None:
            continue
        if found.ours is not None and found.theirs is not None:
            ours, theirs = (f"B{block}, {where}" for block, where in (found.ours, found.theirs))
            out.append(f"{structure.arch}: control flow parts at {theirs} ({first}: {ours})")
        shown = [
            f"{_place(where)} {name} {there:,} → {here:,}"
            for where, name, there, here in found.lines[:MOST_LINES]
        ]
        more = len(found.lines) - MOST_LINES
        if more > 0:
            shown.append(f"and {more:,} more")
        if shown:
            out.append(f"{structure.arch} beside {first}: {'; '.join(shown)}")
    return out


def _place(where: Where) -> str:
    return str(where) if where.line else "no line"


def surprise(found: Surprise) -> str:
    """One surprise as a line."""
    rule = f" {found.rule}" if found.rule else ""
    place = f" at {found.where}" if found.where is not None and found.where.line else ""
    archs = ", ".join(found.archs)
    return f"{_HEADINGS[found.kind]}{rule}{place}: {archs}: {found.here} (usual: {found.usual})"


def summary(report: ArchitectureReport) -> str:
    """The last line of a report."""
    number = sum(len(f.surprises) for f in report.families)
    alone = f", {len(report.alone)} on one architecture alone" if report.alone else ""
    return (
        f"{counted(len(report.families), 'kernel')} compared{alone}; {counted(number, 'surprise')}"
        f" ({report.seconds:.2f} s)"
    )


__all__ = [
    "MOST_LINES",
    "UNKNOWN",
    "Row",
    "partings",
    "rows",
    "short",
    "summary",
    "surprise",
    "title",
]
