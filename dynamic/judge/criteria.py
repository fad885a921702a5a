"""All criteria that one run of a launch is held to, and the rules whose verdicts they judge."""

from __future__ import annotations

from typing import Final

from ptxlint.dynamic.judge import (
    accesses,
    apart,
    coverage,
    first_reads,
    in_place,
    rerun,
    sync,
    tiles,
    views,
    wraps,
)
from ptxlint.dynamic.judge.replay import Criterion

CRITERIA: Final[tuple[Criterion, ...]] = (
    accesses.judge,
    wraps.judge,
    coverage.judge,
    apart.judge,
    views.judge,
    tiles.judge,
    first_reads.judge,
    rerun.judge,
    in_place.judge,
    sync.judge,
)
RULES: Final = {
    "bounds": ("BND302", "BND305"),
    "alignment": ("BND303",),
    wraps.NAME: ("BND301",),
    coverage.NAME: ("BND307",),
    apart.NAME: ("HAZ601",),
    views.NAME: ("BND306",),
    tiles.NAME: ("MSK203",),
    first_reads.NAME: ("HAZ603",),
    rerun.NAME: ("HAZ604",),
    in_place.NAME: ("HAZ602",),
    sync.BARRIERS: ("SYN501",),
    sync.WARP_OPERATIONS: ("SYN502",),
}
"""By the property that is judged."""

__all__ = ["CRITERIA", "RULES"]
