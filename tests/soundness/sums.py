"""Sums of builds, held to their references in float64 over sizes of some tiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ptxlint.dynamic.judge.accumulation import RULES, Held, Size, hold
from ptxlint.dynamic.judge.verdicts import said

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated, rounds  # noqa: E402
from references import launches as LAUNCHES  # noqa: E402, N812

WRONG_BY_FORMULA = frozenset({"rmsnorm_buggy"})
"""Builds whose references tell a fault that none of the rules is about."""


def judged(build: Any) -> Held | None:
    """What comes out for a build; None for a kernel that sums up nothing, or whose fault is of
    another kind."""
    if build.kernel not in rounds.AXES or build.name in WRONG_BY_FORMULA:
        return None
    emulator = emulated.emulator(build.path)
    found = said(emulator.module, emulator.kernel, LAUNCHES.metadata(build), RULES)

    def measure(size: Size) -> float | None:
        sizes = rounds.sizes(build, *size)
        if sizes is None:
            return None
        held = emulated.hold(build, sizes)
        assert not held.faults, held.faults[:1]
        assert not held.stray, held.stray
        return max(miss.worst for miss in held.misses.values())

    return hold({rule: one.status for rule, one in found.items()}, measure)
