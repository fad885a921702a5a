"""What explains a kind of finding of `ptxlint emulate`."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.diagnostics import Confidence, Severity
from ptxlint.rulekit import Sample


class EmulatedRule(NamedTuple):
    """A finding that a run makes, with the fields of a `Rule` that explain it.

    `watch` is the word of `--sanitize` that looks for it. Samples are run under their launches; the
    lines that must be reported are marked as in those of rules.
    """

    id: str
    name: str
    summary: str
    why: str
    fix: str
    family: str
    bad: tuple[Sample, ...]
    good: tuple[Sample, ...]
    watch: str = "memory"
    severity: Severity = "error"
    confidence: Confidence = "high"
    category: str = "emulation"
    preview: bool = False
    refs: tuple[str, ...] = ()


__all__ = ["EmulatedRule"]
