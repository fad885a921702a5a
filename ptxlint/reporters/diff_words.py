"""What a comparison is told with, shared by its renderers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.comparison.changes import Where, constants, instructions, operands
from ptxlint.comparison.difference import Delta, Difference
from ptxlint.comparison.verdicts import VerdictChange
from ptxlint.structure.alignment import Alignment, Redeclared
from ptxlint.structure.profile import Access
from ptxlint.wording import counted

KINDS: Final = {
    "identical": "identical",
    "renamed": "renamed only",
    "constants": "constants only",
    "structural": "structural",
}
_UNITS: Final = {
    "registers": "", "spill_stores": " B", "spill_loads": " B", "stack": " B", "shared": " B",
    "dynamic_shared": " B", "barriers": "", "occupancy": "",
}  # fmt: skip
_NAMES: Final = {
    "spill_stores": "spill stores", "spill_loads": "spill loads",
    "shared": "static shared memory", "dynamic_shared": "dynamic shared memory",
}  # fmt: skip
_MOST: Final = 12
"""So many lines of one kind are told."""
_LONGEST: Final = 120
"""So many characters of a declaration are shown."""


def title(difference: Difference) -> str:
    """The kernel's name, with its new one if that is another."""
    old, new = difference.old, difference.new
    name = old.name if old.name == new.name else f"{old.name} → {new.name}"
    arch = old.arch if old.arch == new.arch else f"{old.arch} → {new.arch}"
    return f"{name} ({arch})"


def lines(difference: Difference) -> list[tuple[str, str]]:
    """All that is told of a pair: headings with a text each."""
    out = [
        ("constant", f"{c.old} → {c.new} at {_at(c.old_where, c.new_where)}{_times(c.times)}")
        for c in constants(difference)
    ]
    removed, added = instructions(difference)
    for heading, changes in (("only old", removed), ("only new", added)):
        out += [(heading, f"{c.mnemonic} at {c.where}{_times(c.times)}") for c in changes[:_MOST]]
        if len(changes) > _MOST:
            rest = sum(c.times for c in changes[_MOST:])
            out.append((heading, f"and {counted(rest, 'more instruction')}"))
    rewired = operands(difference)
    out += [
        ("operands", f"{c.mnemonic} at {_at(c.old_where, c.new_where)}{_times(c.times)}")
        for c in rewired[:_MOST]
    ]
    if len(rewired) > _MOST:
        rest = sum(c.times for c in rewired[_MOST:])
        out.append(("operands", f"and of {counted(rest, 'more instruction')}"))
    out += [("declaration", declaration(d)) for d in difference.alignment.declared[:_MOST]]
    if len(difference.alignment.declared) > _MOST:
        out.append(("declaration", f"and {len(difference.alignment.declared) - _MOST:,} more"))
    if difference.kind == "structural" and difference.graph != "same":
        word = {"different": "is another one", "undecided": "may be another one (not decided)"}
        out.append(("graph", f"the control-flow graph {word[difference.graph]}"))
    out += [("resource", delta(d, _UNITS.get(d.name, ""))) for d in difference.resources]
    out += [("instructions", delta(d)) for d in difference.classes]
    out += [("accesses", access(*a)) for a in difference.accesses]
    if difference.machine is not None:
        out.append(("machine code", machine(difference.machine)))
    out += [("verdict", verdict(v)) for v in difference.verdicts]
    out += [("note", note) for note in difference.notes]
    return out


def _at(old: Where, new: Where) -> str:
    return str(old) if old == new else f"{old} → {new}"


def _times(times: int) -> str:
    return f" ({times} times)" if times > 1 else ""


def delta(change: Delta, unit: str = "") -> str:
    """A number on both sides."""
    if change.name == "occupancy":
        old, new = (f"{100 * (x or 0):.0f} %" for x in (change.old, change.new))
    else:
        old, new = ("unknown" if x is None else f"{x:,.0f}{unit}" for x in (change.old, change.new))
    name = _NAMES.get(change.name, change.name)
    return f"{name} {old} → {new}" + (f" ({change.source})" if change.source else "")


def access(kind: Access, old: int, new: int) -> str:
    """How many accesses of a kind there are on both sides."""
    guard = "guarded " if kind.guarded else "unguarded "
    return f"{guard}{kind.space or 'generic'} {kind.kind} {old} → {new}"


def declaration(change: Redeclared) -> str:
    """A declaration on both sides."""
    old, new = (_shortened(text) or "none" for text in (change.old, change.new))
    return f"{change.title}: {old} → {new}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def machine(alignment: Alignment) -> str:
    """What has changed in machine code."""
    if alignment.kind != "structural":
        return KINDS[alignment.kind]
    removed, added = len(alignment.removed), len(alignment.added)
    text = f"structural, {counted(removed, 'instruction')} removed, {added:,} added"
    others = len(alignment.rewired)
    return f"{text}, {others:,} with other operands" if others else text


def verdict(change: VerdictChange) -> str:
    """One rule's verdicts on both sides."""
    old, new = (" ".join(_statuses(counts)) or "none" for counts in (change.old, change.new))
    word = "worse: " if change.is_worse else ""
    reason = f": {change.example.reason}" if change.example is not None else ""
    return f"{word}{change.rule} {old} → {new}{reason}"


def _statuses(counts: dict[str, int]) -> Iterator[str]:
    for status in ("proved", "open", "refuted"):
        if counts.get(status):
            yield f"{counts[status]} {status}"


__all__ = ["KINDS", "access", "declaration", "delta", "lines", "machine", "title", "verdict"]
