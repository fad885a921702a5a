"""Which Python line a failing run points at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ptxlint.dynamic.families.registry import all_families
from ptxlint.dynamic.runners.knowledge import KernelKnowledge, Said
from ptxlint.dynamic.runners.outcome import Outcome

from .plan import Open, errors, near, open_obligations, place_of
from .verdict import Failure, Place

_VALUES: Final = frozenset(
    "tail-mask accumulation rescale nonfinite precision stride coverage guard bounds overflow "
    "rerun sync".split()
)
"""Static families that wrong values may come from."""
_OF_KIND: Final = {
    "reference": _VALUES,
    "canaries": frozenset({"bounds", "guard", "overflow", "coverage", "stride"}),
    "poison": frozenset({"coverage", "rerun", "guard", "stride"}),
    "surroundings": frozenset({"bounds", "guard", "tail-mask", "overflow", "stride"}),
    "sanitizer": frozenset({"bounds", "guard", "overflow", "sync", "rerun", "nonfinite"}),
    "repeat": frozenset({"rerun", "sync", "coverage"}),
    "programs": frozenset({"rerun", "sync", "coverage"}),
    "warps": frozenset({"sync", "coverage", "rerun"}),
    "rerun": frozenset({"rerun"}),
    "crash": frozenset({"bounds", "guard", "overflow"}),
    "hang": frozenset({"sync"}),
}
"""By the kind of an outcome, the static families that it may come from."""


def explained(
    outcome: Outcome, kernels: Sequence[KernelKnowledge], tested: Open | None = None
) -> tuple[Failure, ...]:
    """What a failing run says is wrong: one failure for each refuted property that it may come
    from; else one that points at what was being tested, at what was left open, or at the kernel."""
    may = _OF_KIND.get(outcome.kind, frozenset())
    refuted = [(kernel, said) for kernel, said in errors(kernels) if said["family"] in may]
    if refuted:
        return tuple(
            found(kernel, said)._replace(seen=outcome, confirmed=True) for kernel, said in refuted
        )
    seen = [said for said in outcome.findings if said.get("severity") == "error"]
    if outcome.kind == "sanitizer" and seen:
        return (_failure(outcome, place_of(seen[0]), seen[0].get("rule", ""), seen[0]),)
    decided = {static for static in _decided_by(outcome.case.family) if static in may}
    left = [tested] if tested is not None else [
        one for one in open_obligations(kernels) if one.said["family"] in decided
    ]  # fmt: skip
    for one in left:
        place = place_of(one.said, one.kernel)
        if place is not None:
            return (_failure(outcome, place, one.said["rule"], one.said),)
    last = outcome.kernels[-1] if outcome.kernels else ""
    for kernel in kernels:
        if kernel.path and kernel.name == (last or kernel.name):
            place = Place(near(kernel.path), kernel.line)
            return (_failure(outcome, place, "", None)._replace(kernel=kernel.name),)
    return (_failure(outcome, None, "", None),)


def found(kernel: KernelKnowledge, said: Said) -> Failure:
    """A refuted property, which no run has shown so far."""
    return Failure(
        said["family"],
        said["message"],
        place_of(said, kernel),
        said["rule"],
        kernel.name,
        said.get("breaks_when") or "",
        said.get("witness"),
        confirmed=False,
    )


def _failure(outcome: Outcome, place: Place | None, rule: str, said: Said | None) -> Failure:
    kernel = str(said.get("kernel", "")) if said else ""
    family = outcome.case.family
    return Failure(family, outcome.reason or outcome.kind, place, rule, kernel, seen=outcome)


def _decided_by(family: str) -> tuple[str, ...]:
    known = all_families().get(family)
    return known.decides if known else ()


__all__ = ["explained", "found"]
