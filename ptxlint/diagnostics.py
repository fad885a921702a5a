"""Findings: what ptxlint tells a person, with every place it speaks of."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ptxlint.source import SourceFrame

Severity: TypeAlias = Literal["error", "warning", "note"]
"""error: wrong or crashing for some launch we can name; warning: very likely a defect; note:
advice or an open obligation. Only errors and warnings make exit status 1."""

Confidence: TypeAlias = Literal["high", "medium", "low"]

SEVERITY_ORDER: Final[dict[str, int]] = {"error": 0, "warning": 1, "note": 2}


class Place(NamedTuple):
    """A place in a PTX file (line and column from 1) with the Python place behind it."""

    path: str
    line: int
    column: int
    source: SourceFrame | None = None
    chain: tuple[SourceFrame, ...] = ()
    """The inlining chain of `source`, innermost first."""


class Related(NamedTuple):
    """A second place that a finding speaks of, with what happens there."""

    message: str
    place: Place


class Finding(NamedTuple):
    """One finding in one kernel (or in a file, with `kernel` empty).

    `rule` is an identifier such as `RES101`, or `PARSE`, `INTERNAL`, `INPUT` for faults of the
    input or of a rule. `family` is from the vocabulary of families. `witness` is a launch point
    that shows the defect (`{"ctaid": …, "tid": …, "values": …}`), None without a launch.
    """

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    family: str
    message: str
    kernel: str
    arch: str
    place: Place
    related: tuple[Related, ...] = ()
    breaks_when: str = ""
    help: str = ""
    witness: dict[str, Any] | None = None
    fingerprint: str = ""
    exact: bool = True
    """False when numbers in the message are estimates."""
    archs: tuple[str, ...] = ()
    """All architectures on which this same finding was met, filled when findings are merged."""
    paths: tuple[str, ...] = ()
    """All files in which this same finding was met, filled when findings are merged."""
    label: str = ""
    """What stands at `place` itself, in a few words: printed after the caret."""
    occurrences: tuple[Place, ...] = ()
    """Every further place where this same finding was met, filled when findings are merged."""
    launch: dict[str, Any] | None = None
    """The launch under which this was found, as plain data: `grid`, `block`, `arguments`, `place`,
    and how many `more` launches show the same."""
