"""What a comparison is told with, shared by its renderers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.comparison.changes import InstructionChange, Where, constants, instructions, operands
from ptxlint.comparison.difference import CodeDifference, Delta, Difference
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.report import DiffReport
from ptxlint.comparison.spill_lines import told
from ptxlint.comparison.verdicts import VerdictChange
from ptxlint.structure.alignment import Redeclared
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
_SPILLED: Final = 3
"""So many lines are named on which a kernel spills."""
_LONGEST: Final = 120
"""So many characters of a declaration are shown."""


def title(difference: Difference) -> str:
    """The kernel's name, with its new one if that is another."""
    old, new = difference.old, difference.new
    name = old.name if old.name == new.name else f"{old.name} → {new.name}"
    arch = old.arch if old.arch == new.arch else f"{old.arch} → {new.arch}"
    level = ", machine code" if difference.code.level == "sass" else ""
    return f"{name} ({arch}{level})"


def unknown(difference: Difference, words: tuple[str, ...]) -> str:
    """The words of `--fail-on` that cannot be answered for a pair."""
    return f"{', '.join(words)} of {title(difference)}: one side or both do not say"


def level(kernel: KernelRecord) -> str:
    """A kernel's architecture, and that it is machine code."""
    return f"{kernel.arch}, machine code" if kernel.is_machine else kernel.arch


def kind(difference: Difference) -> str:
    """What the pair is, at each level that was compared."""
    first = KINDS[difference.kind]
    if difference.machine is None:
        return first
    return f"PTX {first}, machine code {KINDS[difference.machine.kind]}"


def tally(report: DiffReport) -> str:
    """How many pairs are of which kind, and how many of them were compared as machine code."""
    found = [f"{report.count(k)} {name}" for k, name in KINDS.items() if report.count(k)]
    levels = [d.levels for d in report.differences]
    machine = sum(codes[0].level == "sass" for codes in levels)
    both = sum(len(codes) > 1 for codes in levels)
    told = [f"{machine} of machine code"] if machine else []
    told += [f"{both} of both levels"] if both else []
    return (", ".join(found) or "none") + (f" ({', '.join(told)})" if told else "")


def lines(difference: Difference) -> list[tuple[str, str]]:
    """All that is told of a pair: headings with a text each."""
    out = _of_code(difference.code)
    out += [("resource", delta(d, _UNITS.get(d.name, ""))) for d in difference.resources]
    out += [
        ("spills", f"{side} {told(spilled, _SPILLED)}")
        for side, spilled in (("old", difference.old_spills), ("new", difference.new_spills))
        if spilled
    ]
    if difference.machine is not None:
        out.append(("machine code", KINDS[difference.machine.kind]))
        out += [("machine code", f"{name}: {text}") for name, text in _of_code(difference.machine)]
    out += [("verdict", verdict(v)) for v in difference.verdicts]
    out += [("note", note) for note in difference.notes]
    return out


def _of_code(code: CodeDifference) -> list[tuple[str, str]]:
    """What has changed at one level."""
    out = [
        ("constant", f"{c.old} → {c.new} at {_at(c.old_where, c.new_where)}{_times(c.times)}")
        for c in constants(code)
    ]
    removed, added = instructions(code)
    for heading, changes in (("only old", removed), ("only new", added)):
        out += [(heading, _instruction(c)) for c in changes[:_MOST]]
        if len(changes) > _MOST:
            rest = sum(c.times for c in changes[_MOST:])
            out.append((heading, f"and {counted(rest, 'more instruction')}"))
    rewired = operands(code)
    out += [
        ("operands", f"{c.mnemonic} at {_at(c.old_where, c.new_where)}{_times(c.times)}")
        for c in rewired[:_MOST]
    ]
    if len(rewired) > _MOST:
        rest = sum(c.times for c in rewired[_MOST:])
        out.append(("operands", f"and of {counted(rest, 'more instruction')}"))
    declared = code.alignment.declared
    out += [("declaration", declaration(d)) for d in declared[:_MOST]]
    if len(declared) > _MOST:
        out.append(("declaration", f"and {len(declared) - _MOST:,} more"))
    if code.kind == "structural" and code.graph != "same":
        word = {"different": "is another one", "undecided": "may be another one (not decided)"}
        out.append(("graph", f"the control-flow graph {word[code.graph]}"))
    out += [("instructions", delta(d)) for d in code.classes]
    out += [("accesses", access(*a)) for a in code.accesses]
    return out


def _instruction(change: InstructionChange) -> str:
    constant = f" {change.constant}" if change.constant else ""
    return f"{change.mnemonic}{constant} at {change.where}{_times(change.times)}"


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


def verdict(change: VerdictChange) -> str:
    """One rule's verdicts on both sides."""
    old, new = (" ".join(_statuses(counts)) or "none" for counts in (change.old, change.new))
    word = "worse: " if change.is_worse else ""
    reason = f": {change.example.reason}" if change.example is not None else ""
    at = f" at {change.at}" if change.at is not None else ""
    return f"{word}{change.rule}{at} {old} → {new}{reason}"


def _statuses(counts: dict[str, int]) -> Iterator[str]:
    for status in ("proved", "open", "refuted", "found"):
        if counts.get(status):
            yield f"{counts[status]} {status}"


__all__ = ["KINDS", "access", "delta", "kind", "level", "lines", "tally", "title", "verdict"]
