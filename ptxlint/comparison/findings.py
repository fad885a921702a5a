"""A comparison as findings, for the formats that know nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.comparison.changes import values, where
from ptxlint.comparison.difference import Difference
from ptxlint.comparison.report import DiffReport
from ptxlint.diagnostics import Finding, Place, Related, Severity
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.pseudo import PseudoRule
from ptxlint.engine.python_source import PythonSources
from ptxlint.ir.instruction import Instr
from ptxlint.wording import counted


def _kind(id: str, name: str, summary: str, why: str, fix: str) -> PseudoRule:
    return PseudoRule(
        id, name, "note", summary, why, fix, category="comparison", family="semantics"
    )


CONSTANT: Final = _kind(
    "DIF801",
    "constant-changed",
    "A constant is another one than in the old build; the instructions are the same.",
    "Registers and instruction counts do not show it, and the kernel computes something else.",
    "Look at the Python line; if the change is meant, accept it in the baseline.",
)
STRUCTURE: Final = _kind(
    "DIF802",
    "structure-changed",
    "Instructions were added or removed, or have other operands; or a declaration is another one.",
    "What the kernel computes, or how, has changed; the lines say where.",
    "Look at the Python lines; if the change is meant, accept it in the baseline.",
)
RESOURCES: Final = _kind(
    "DIF803",
    "resources-changed",
    "Registers, spills, shared memory or occupancy are others than in the old build.",
    "A kernel that spills or fits an SM less often is slower, though its results are the same.",
    "Look at what the lines that changed keep alive; a smaller tile or more warps need less.",
)
VERDICT: Final = _kind(
    "DIF804",
    "verdict-worse",
    "A property that was proved is open or refuted now.",
    "What could be relied on before cannot be any more.",
    "Check the new build; the rule that is named says what is missing.",
)
KINDS: Final = (CONSTANT, STRUCTURE, RESOURCES, VERDICT)


def findings(report: DiffReport) -> list[Finding]:
    """One finding for each change of each pair: an error where the pair fails on it, else a
    note."""
    words = {id(d): frozenset(w) for d, w in report.failures}
    numbers = Fingerprints()
    out: list[Finding] = []
    for difference in report.changed:
        fails = words.get(id(difference), frozenset())
        out += _of_pair(difference, fails, numbers)
    return out


def _of_pair(
    difference: Difference, fails: frozenset[str], numbers: Fingerprints
) -> Iterator[Finding]:
    new = Places(difference.new.module, PythonSources(("",)))
    old = Places(difference.old.module, PythonSources(("",)))
    whole = new.of_function(difference.new.function)
    seen = set()
    for change, key in zip(difference.alignment.changed, _told(difference), strict=True):
        if key in seen:
            continue
        seen.add(key)
        message = f"a constant is {key[1]}, was {key[0]}"
        related = Related("in the old build", old.of(change.old))
        severity: Severity = "error" if "constants" in fails else "note"
        yield _finding(
            difference, CONSTANT, message, new.of(change.new), severity, numbers, related
        )
    severity = "error" if "structural" in fails else "note"
    removed, added = difference.alignment.removed, difference.alignment.added
    if removed or added:
        message = f"{len(added)} instructions were added and {len(removed)} removed"
        place = new.of(added[0]) if added else whole
        yield _finding(
            difference, STRUCTURE, message, place, severity, numbers, *_was(old, removed)
        )
    rewired = difference.alignment.rewired
    if rewired:
        message = f"{counted(len(rewired), 'instruction')} with other operands"
        was = Related("in the old build", old.of(rewired[0][0]))
        place = new.of(rewired[0][1])
        yield _finding(difference, STRUCTURE, message, place, severity, numbers, was)
    severity = "error" if {"structural", "constants"} & fails else "note"
    for declared in difference.alignment.declared:
        message = f"{declared.title} is {declared.new or 'gone'}, was {declared.old or 'not there'}"
        yield _finding(difference, STRUCTURE, message, whole, severity, numbers)
    if difference.resources:
        told_deltas = "; ".join(
            f"{d.name} {'?' if d.old is None else f'{d.old:g}'} → "
            f"{'?' if d.new is None else f'{d.new:g}'}"
            for d in difference.resources
        )
        bad = any(w not in ("structural", "constants", "verdicts") for w in fails)
        yield _finding(
            difference, RESOURCES, told_deltas, whole, "error" if bad else "note", numbers
        )
    for verdict in difference.verdicts:
        if verdict.is_worse:
            message = f"{verdict.rule} got worse"
            place = whole
            if verdict.example is not None:
                message += f": {verdict.example.reason}"
                place = verdict.example.place or whole
            severity = "error" if "verdicts" in fails else "note"
            yield _finding(difference, VERDICT, message, place, severity, numbers)


def _told(difference: Difference) -> list[tuple[object, ...]]:
    """Old value, new value and new line of each changed constant."""
    out: list[tuple[object, ...]] = []
    for change in difference.alignment.changed:
        old, new = values(change.old_constant, change.new_constant, change.old)
        out.append((old, new, where(difference.new.module, change.new)))
    return out


def _was(old: Places, removed: tuple[Instr, ...]) -> list[Related]:
    return [Related("removed from here", old.of(removed[0]))] if removed else []


def _finding(
    difference: Difference,
    kind: PseudoRule,
    message: str,
    place: Place,
    severity: Severity,
    numbers: Fingerprints,
    *related: Related,
) -> Finding:
    kernel = difference.new
    return Finding(
        kind.id, kind.name, severity, "high", kind.family, message, kernel.name, kernel.arch,
        place, related=tuple(related), help=kind.fix,
        fingerprint=numbers.next(kind.id, kernel.name, message),
    )  # fmt: skip


__all__ = ["KINDS", "findings"]
