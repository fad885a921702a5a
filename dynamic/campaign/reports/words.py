"""What reports have to say of a failure, in words."""

from __future__ import annotations

from math import isfinite

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.runners.outcome import Compared, Outcome

from ..verdict import Failure


def headline(failure: Failure) -> str:
    """Rule or family, and what is wrong."""
    return f"{failure.rule or failure.family}: {failure.reason}"


def inputs(case: Case) -> str:
    """What a case runs on: `n=3 rows=1, float32, graded values, seed 0`."""
    sizes = " ".join(f"{name}={size}" for name, size in case.dims.items())
    layout = "" if case.layout == "contiguous" else f", {case.layout}"
    return f"{sizes or 'no sizes'}, {case.dtype}, {case.values} values, seed {case.seed}{layout}"


def errors(outcome: Outcome) -> str:
    """How far off the outputs are; empty where nothing was compared or nothing is wrong."""
    return "; ".join(_error(compared) for compared in outcome.compared if compared.wrong)


def _error(compared: Compared) -> str:
    place = ", ".join(str(index) for index in compared.worst)
    off = f"output {compared.output}: {compared.wrong:,} of {compared.elements:,} elements off"
    if compared.nonfinite:
        off += f", {compared.nonfinite:,} of them NaN or infinite"
    if isfinite(compared.max_abs) and compared.max_abs > 0:
        off += f"; largest error {compared.max_abs:.3g} ({compared.max_ulp:.3g} ulp)"
    return f"{off}; at [{place}] {compared.got:.6g}, expected {compared.expected:.6g}"


def details(failure: Failure) -> list[str]:
    """Lines below the headline."""
    out = []
    shown = failure.shown
    if shown is None:
        out.append("no run has shown it")
    else:
        # The reason is the headline where there is no rule.
        kind = "" if not failure.rule else f" ({shown.kind}: {shown.reason})"
        out.append(f"with {inputs(shown.case)}{kind}")
        if errors(shown):
            out.append(errors(shown))
    if failure.breaks_when:
        out.append(f"breaks when: {failure.breaks_when}")
    if failure.replay:
        out.append(f"again: ptxlint replay {failure.replay}")
    return out


__all__ = ["details", "errors", "headline", "inputs"]
