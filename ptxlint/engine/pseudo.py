"""Identifiers of findings that no rule in `rules/` makes: faults of the input, of a rule, and of
suppression comments. They are listed and explained like rules."""

from __future__ import annotations

from typing import Final, NamedTuple


class PseudoRule(NamedTuple):
    """A finding kind of the engine itself, with the fields of a `Rule` that explain it."""

    id: str
    name: str
    severity: str
    summary: str
    why: str
    fix: str
    confidence: str = "high"
    category: str = "input"
    family: str = "input"
    preview: bool = False
    refs: tuple[str, ...] = ()


PARSE: Final = PseudoRule(
    "PARSE",
    "parse",
    "error",
    "The PTX text has a fault: a statement that does not parse, an undeclared name, a bad operand.",
    "A statement that cannot be read is left out of the analysis, so nothing is known about what "
    "it does. ptxas would reject the file as well. An opcode that is unknown to ptxlint is "
    "reported once a module as a note: its results are then treated as unknown.",
    "Correct the statement that the message points at, or regenerate the file. If ptxas accepts "
    "the file, this is a bug of ptxlint: please report it with the statement.",
)
INTERNAL: Final = PseudoRule(
    "INTERNAL",
    "internal",
    "error",
    "A rule or an analysis crashed; the other rules finished.",
    "What the named rule would have said about this kernel is missing from the report.",
    "This is a bug of ptxlint or of a plugin: please report it with the kernel and the message. "
    "Until it is corrected, leave the rule out with --ignore.",
)
INPUT: Final = PseudoRule(
    "INPUT",
    "input",
    "error",
    "Something that was asked for cannot be read: a missing or empty file, binary data, a "
    "directory without PTX.",
    "What is not read is not checked, and a clean exit status would claim that it was.",
    "Name a readable PTX text file, or a directory that has files named *.ptx.",
)
UNUSED: Final = PseudoRule(
    "SUP001",
    "unused-suppression",
    "warning",
    "A suppression comment holds back no finding.",
    "The defect it excused is gone, or the comment stands on the wrong line or names the wrong "
    "rule. Left in place, it will hide the next defect on that line. In a Python file only those "
    "comments are judged whose line is part of a kernel that was checked, for rules that ran.",
    "Delete the comment, or move it to the line of the finding.",
    category="suppression",
    family="suppression",
)
MALFORMED: Final = PseudoRule(
    "SUP002",
    "invalid-suppression",
    "warning",
    "A suppression comment has no reason or is not understood, so it does not hold.",
    "Whoever reads the code next must be able to judge whether the excuse still stands.",
    "Write `ptxlint: ignore[RULE] reason`, with one or more rule identifiers, separated by commas.",
    category="suppression",
    family="suppression",
)
VERDICT_WORSE: Final = PseudoRule(
    "BAS901",
    "verdict-worse",
    "warning",
    "A property that was proved in the baseline is open or refuted now.",
    "What could be relied on when the baseline was made cannot be any more. It is told under "
    "`check --baseline` for each kernel and rule whose verdicts got worse; as a note where the "
    "kernel itself is the same.",
    "Look at the change that the verdict's reason points at; if it is meant, write the baseline "
    "anew with `ptxlint baseline`.",
    category="baseline",
    family="baseline",
)
NUMBERS_WORSE: Final = PseudoRule(
    "BAS902",
    "numbers-worse",
    "note",
    "A kernel takes more registers or spills more than in the baseline, or guards fewer accesses.",
    "None of this need be wrong, and all of it is worth a look: spills cost time (they are a "
    "warning), and a guard that is gone may have been needed. Registers and spills are compared "
    "where an assembler, a log, a cubin or metadata tells them on both sides.",
    "Look at what the change keeps alive or no longer masks (`ptxlint diff` tells by Python "
    "line); if it is meant, write the baseline anew with `ptxlint baseline`.",
    category="baseline",
    family="baseline",
)
STALE: Final = PseudoRule(
    "BAS903",
    "baseline-stale",
    "note",
    "Entries of the baseline do not occur any more, or their kernels were not checked.",
    "What is kept in a baseline is held back: left there, an entry hides the same defect when it "
    "comes back. A baseline of which no kernel at all was checked is a warning.",
    "Take them out with `ptxlint baseline --update`, which takes in no new finding.",
    category="baseline",
    family="baseline",
)

BASELINE_RULES: Final = (VERDICT_WORSE, NUMBERS_WORSE, STALE)
PSEUDO_RULES: Final = (INPUT, INTERNAL, PARSE, UNUSED, MALFORMED, *BASELINE_RULES)
FAILURES: Final = frozenset({"PARSE", "INTERNAL", "INPUT"})
"""Kinds that mean: something asked for could not be analysed. They cannot be ignored."""
