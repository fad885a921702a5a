"""Verdicts on accesses under a launch, held to what the accesses do (BND302, BND303, BND305).

Of each access to global memory the static half says that it stays inside its storage, that a
thread leaves it, or that this is open; and likewise of its alignment. The emulator tells which
accesses left their storage. *Proved*: no thread does. *Refuted*: in a whole run some thread does,
by this instruction.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.launch.analysis import Outcome

BEYOND = ("outside", "freed")
"""The faults of an access that leaves its storage."""


def judge(played: Played) -> Iterator[Judgement]:
    """Two judgements on each access: on its bounds and on its alignment."""
    for outcome in played.found.outcomes:
        instr = outcome.judged.access.instr
        for name, kinds, verdict in _verdicts(outcome):
            found = (played.faults.get((kind, instr.index)) for kind in kinds)
            fault = next((fault for fault in found if fault is not None), None)
            if fault is not None:
                told = f"program {fault.ctaid}, thread {fault.tid} {fault.message}"
                yield Judgement(name, verdict, VIOLATED, f"{instr}: {told}")
            elif verdict == "refuted" and not played.is_whole:
                yield Judgement(name, verdict, UNKNOWN)
            else:
                told = f"no thread does it, though {outcome.witness} should"
                yield Judgement(name, verdict, KEPT, f"{instr}: {told}")


def _verdicts(outcome: Outcome) -> list[tuple[str, tuple[str, ...], str]]:
    """Properties of an access with the kinds of fault that violate them, and what is said."""
    judged, witness = outcome.judged, outcome.witness
    bounds = "open"
    if witness is not None and witness.kind in ("above", "below"):
        bounds = "refuted"
    elif judged.never or judged.is_inside:
        bounds = "proved"
    out: list[tuple[str, tuple[str, ...], str]] = [("bounds", BEYOND, bounds)]
    if judged.region is not None and not judged.never:
        alignment = "proved" if judged.aligned and not judged.wraps else "open"
        if witness is not None and witness.kind == "misaligned":
            alignment = "refuted"
        out.append(("alignment", ("misaligned",), alignment))
    return out


__all__ = ["BEYOND", "judge"]
