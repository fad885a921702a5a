"""What reports have to say of a failure, in words."""

from __future__ import annotations

from math import isfinite
from typing import Final

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.runners.outcome import Outcome

from ..verdict import Failure

_LOST: Final = ("raises", "hang", "crash", "exit", "memory", "output", "device")
"""Kinds of outcomes that no comparison came to."""


def headline(failure: Failure) -> str:
    """What failed (`subject`), and what is wrong."""
    shown = failure.shown
    reason = failure.reason if failure.rule or shown is None else shown.reason or shown.kind
    return f"{subject(failure)}: {reason}"


def subject(failure: Failure) -> str:
    """The rule; else what became of the process, where that is what is wrong; else the family of
    stress tests."""
    shown = failure.shown
    lost = shown.kind if shown is not None and shown.kind in _LOST else ""
    return failure.rule or lost or failure.family


def inputs(case: Case) -> str:
    """What a case runs on: `n=3 rows=1, float32, graded values, seed 0`."""
    sizes = " ".join(f"{name}={size}" for name, size in case.dims.items())
    layout = "" if case.layout == "contiguous" else f", {case.layout}"
    return f"{sizes or 'no sizes'}, {case.dtype}, {case.values} values, seed {case.seed}{layout}"


def errors(outcome: Outcome) -> str:
    """The largest error of the outputs; empty where no finite number is off."""
    off = [c for c in outcome.compared if c.wrong and isfinite(c.max_abs) and c.max_abs > 0]
    if not off:
        return ""
    worst = max(off, key=lambda compared: compared.max_abs)
    return f"largest error {worst.max_abs:.3g} ({worst.max_ulp:.3g} ulp) in {worst.output}"


def details(failure: Failure) -> list[str]:
    """Lines below the headline."""
    out = []
    shown, seen = failure.shown, failure.seen
    if shown is None:
        out.append("no run has shown it")
    else:
        # Without a rule the reason is the headline.
        kind = "" if not failure.rule else f": {shown.reason or shown.kind}"
        out.append(f"with {inputs(shown.case)}{kind}")
        if errors(shown):
            out.append(errors(shown))
    if seen is not None and seen is not shown:
        out.append(f"first seen with {inputs(seen.case)}")
    if failure.breaks_when:
        out.append(f"breaks when: {failure.breaks_when}")
    if failure.replay:
        out.append(f"again: ptxlint replay {failure.replay}")
    return out


__all__ = ["details", "errors", "headline", "inputs", "subject"]
