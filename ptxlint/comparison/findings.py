"""A comparison as findings, for the formats that know nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.comparison.changes import changed, values, where
from ptxlint.comparison.difference import CodeDifference, Difference
from ptxlint.comparison.records import KernelRecord
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
_OF_CODE: Final = frozenset(("structural", "constants", "machine-code", "verdicts"))
"""Words of `--fail-on` that are no resources."""
UNPAIRED: Final = _kind(
    "DIF805",
    "kernel-unpaired",
    "A kernel is in one build alone.",
    "Nothing was compared with it: it was removed, added, or renamed and changed at once.",
    "If that is meant, accept it; `--fail-on removed` and `--fail-on added` fail on it.",
)
KINDS: Final = (CONSTANT, STRUCTURE, RESOURCES, VERDICT, UNPAIRED)


def findings(report: DiffReport) -> list[Finding]:
    """One finding for each change of each pair: an error where the pair fails on it, else a
    note."""
    words = {id(d): frozenset(w) for d, w in report.failures}
    numbers = Fingerprints()
    out: list[Finding] = []
    for difference in report.changed:
        fails = words.get(id(difference), frozenset())
        out += _of_pair(difference, fails, numbers)
    failing = {id(kernel) for kernel, _ in report.missing}
    for side, kernels in (("old", report.removed), ("new", report.added)):
        for kernel in kernels:
            severity: Severity = "error" if id(kernel) in failing else "note"
            message = f"this kernel is in the {side} build alone"
            place = _places(kernel).of_function(kernel.function)
            out.append(_told_of(kernel, UNPAIRED, message, place, severity, numbers))
    return out


def _of_pair(
    difference: Difference, fails: frozenset[str], numbers: Fingerprints
) -> Iterator[Finding]:
    whole = _places(difference.code.new).of_function(difference.code.new.function)
    for code in difference.levels:
        yield from _of_code(difference, code, fails, numbers)
    others = sorted(fails - _OF_CODE)
    if difference.resources or others:
        told = [
            f"{d.name} {'?' if d.old is None else f'{d.old:g}'} → "
            f"{'?' if d.new is None else f'{d.new:g}'}"
            for d in difference.resources
        ]
        told += [f"fails on {', '.join(others)}"] if others else []
        severity: Severity = "error" if others else "note"
        yield _finding(difference, RESOURCES, "; ".join(told), whole, severity, numbers)
    for verdict in difference.verdicts:
        if verdict.is_worse:
            message = f"{verdict.rule} got worse"
            place = whole
            if verdict.example is not None:
                message += f": {verdict.example.reason}"
                place = verdict.example.place or whole
            severity = _severity(fails, "verdicts")
            yield _finding(difference, VERDICT, message, place, severity, numbers)


def _of_code(
    difference: Difference, code: CodeDifference, fails: frozenset[str], numbers: Fingerprints
) -> Iterator[Finding]:
    """The constants and instructions that have changed at one level."""
    new, old = _places(code.new), _places(code.old)
    is_second = code is difference.machine
    suffix = " in machine code" if code.level == "sass" else ""
    kind, word = code.alignment, "machine-code" if code.level == "sass" else ""
    seen = set()
    for change, key in zip(changed(code), _told(code), strict=True):
        if key in seen:
            continue
        seen.add(key)
        message = f"a constant is {key[1]}, was {key[0]}{suffix}"
        related = Related("in the old build", old.of(change.old))
        severity = _severity(fails, word, "" if is_second else "constants")
        yield _finding(
            difference, CONSTANT, message, new.of(change.new), severity, numbers, related
        )
    severity = _severity(fails, word, "" if is_second else "structural")
    removed, added = kind.removed, kind.added
    if removed or added:
        message = f"{len(added)} instructions were added and {len(removed)} removed{suffix}"
        place = new.of(added[0]) if added else new.of_function(code.new.function)
        yield _finding(
            difference, STRUCTURE, message, place, severity, numbers, *_was(old, removed)
        )
    if kind.rewired:
        before, after = kind.rewired[0]
        message = f"{counted(len(kind.rewired), 'instruction')} with other operands{suffix}"
        was = Related("in the old build", old.of(before))
        yield _finding(difference, STRUCTURE, message, new.of(after), severity, numbers, was)
    if not is_second:
        severity = _severity(fails, "structural", "constants")
    whole = new.of_function(code.new.function)
    for declared in kind.declared:
        message = f"{declared.title} is {declared.new or 'gone'}, was {declared.old or 'not there'}"
        yield _finding(difference, STRUCTURE, message, whole, severity, numbers)


def _severity(fails: frozenset[str], *words: str) -> Severity:
    return "error" if fails.intersection(words) else "note"


def _places(kernel: KernelRecord) -> Places:
    return Places(kernel.module, PythonSources(("",)))


def _told(code: CodeDifference) -> list[tuple[object, ...]]:
    """Old value, new value and new line of each changed constant."""
    out: list[tuple[object, ...]] = []
    for change in changed(code):
        old, new = values(change.old_constant, change.new_constant, change.old)
        out.append((old, new, where(code.new.module, change.new)))
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
    return _told_of(difference.new, kind, message, place, severity, numbers, *related)


def _told_of(
    kernel: KernelRecord,
    kind: PseudoRule,
    message: str,
    place: Place,
    severity: Severity,
    numbers: Fingerprints,
    *related: Related,
) -> Finding:
    return Finding(
        kind.id, kind.name, severity, "high", kind.family, message, kernel.name, kernel.arch,
        place, related=tuple(related), help=kind.fix,
        fingerprint=numbers.next(kind.id, kernel.name, message),
    )  # fmt: skip


__all__ = ["KINDS", "findings"]
