"""Verdicts on accesses under a launch, held to what the accesses do.

Of each access to global memory the static half says that it stays inside its storage, that a
thread leaves it, or that this is open; and likewise of its alignment. The emulator runs the launch
and tells which accesses left their storage. A proof is contradicted by an access that did, a
refutation by a program that was run whole and did not.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.inputs import Inputs
from ptxlint.dynamic.emulator.launched import Ran, run_launch
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.engine.analyse import find_arch
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes, Outcome
from ptxlint.launch.binding import Bound, bind
from ptxlint.launches import Launch

_TURNS = 20_000


class Contradiction(NamedTuple):
    """A verdict that a run disproves."""

    kernel: str
    launch: Launch
    property: str
    verdict: str
    met: str


class Replay(NamedTuple):
    """One launch, judged. `counts` are of accesses by (property, verdict, what happened)."""

    counts: Counter[tuple[str, str, str]]
    contradictions: list[Contradiction]


def replay(
    emulator: Emulator, launch: Launch, metadata: KernelMetadata | None, inputs: Inputs
) -> Replay:
    """Judge what is said of a kernel under a launch.

    Raises `BindingError` for a launch that does not fit and `InputError` for one that cannot be
    laid out.
    """
    module, kernel = emulator.module, emulator.kernel
    bound = bind(kernel, launch, {}, metadata)
    facts = Facts(module, kernel, find_arch(module.arch), metadata)
    facts.launches = (launch,)
    (found,) = facts.get(LaunchAnalysis)
    ran = run_launch(emulator, bound, inputs, most_turns=_TURNS)
    return _compared(bound, found, ran)


def _compared(bound: Bound, found: LaunchOutcomes, ran: Ran) -> Replay:
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[Contradiction] = []
    met: dict[str, dict[int, Fault]] = {}
    for fault in ran.outcome.faults:
        met.setdefault(fault.kind, {})[fault.instr.index] = fault
    is_whole = ran.outcome.is_complete and not ran.sampled
    for outcome in found.outcomes:
        index = outcome.judged.access.instr.index
        for name, kind, verdict in _verdicts(outcome):
            fault = met.get(kind, {}).get(index)
            happened = "violated" if fault is not None else "kept"
            counts[name, verdict, happened] += 1
            is_wrong = (verdict == "proved" and fault is not None) or (
                verdict == "refuted" and fault is None and is_whole
            )
            if is_wrong:
                text = f"{outcome.judged.access.instr}: {_told(outcome, fault)}"
                wrong.append(
                    Contradiction(
                        found.under.facts.function.name, bound.launch, name, verdict, text
                    )
                )
    return Replay(counts, wrong)


def _told(outcome: Outcome, fault: Fault | None) -> str:
    if fault is not None:
        return f"program {fault.ctaid}, thread {fault.tid} {fault.message}"
    return f"no thread does it, though {outcome.witness} should"


def _verdicts(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Properties of an access with the kind of fault that violates them, and what is said."""
    judged, witness = outcome.judged, outcome.witness
    bounds = "open"
    if witness is not None and witness.kind in ("above", "below"):
        bounds = "refuted"
    elif judged.never or judged.is_inside:
        bounds = "proved"
    out = [("bounds", "outside", bounds)]
    if judged.region is not None and not judged.never:
        alignment = "proved" if judged.aligned and not judged.wraps else "open"
        if witness is not None and witness.kind == "misaligned":
            alignment = "refuted"
        out.append(("alignment", "misaligned", alignment))
    return out


__all__ = ["Contradiction", "Replay", "replay"]
