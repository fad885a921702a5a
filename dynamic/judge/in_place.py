"""Verdicts on warps that work in place, held to races within a program (HAZ602).

*Proved*: with a program run alone, no two warps access one byte of the array, one of them writing
another number to it, without a barrier between them. *Refuted* is said of what barriers allow, not
of one order in which warps come: a run that sees the race counts as one, and one that does not
tells nothing.

Programs of one launch are for HAZ601. Not judged: arrays whose storage other arguments share, as
the rule speaks of one array, and proofs that assume strides which keep elements apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.launches import Extent

NAME = "in place"
_PROGRAMS: Final = 3
"""So many programs of a launch are run, each alone."""


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each array that is read and written."""
    verdicts, _ = played.said("HAZ602")
    if not verdicts:
        return
    base_of = {access.instr: access.base for access in played.facts.get(AccessAnalysis).in_global}
    racing: set[str] | None = None
    for verdict in verdicts:
        base = "" if verdict.at is None else base_of.get(verdict.at, "")
        if not base or verdict.assumes or _is_shared(played, base):
            yield Judgement(NAME, verdict.status, UNKNOWN)
            continue
        if racing is None:
            racing = {base_of.get(fault.instr, "") for fault in _races(played)}
        is_racing = base in racing
        kept = UNKNOWN if verdict.status == "refuted" else KEPT
        what = f"warps race in {base}: {verdict.reason}"
        yield Judgement(NAME, verdict.status, VIOLATED if is_racing else kept, what)


def _is_shared(played: Played, base: str) -> bool:
    """True if other arguments lie in the storage of an array."""
    region = played.bound.regions.get(base)
    others = [r for r in played.bound.regions.values() if region and r.storage == region.storage]
    return len(others) != 1


def _races(played: Played) -> list[Fault]:
    x, y, z = played.bound.grid
    drawn = np.random.default_rng(played.seed).integers(x * y * z, size=_PROGRAMS)
    found = []
    for n in dict.fromkeys([0, *drawn.tolist()]):
        program: Extent = n % x, n // x % y, n // (x * y)
        ran = played.run(only=[program], sanitize=Sanitize(races=True))
        found += [fault for fault in ran.outcome.faults if fault.kind == "race"]
    return found


__all__ = ["judge"]
