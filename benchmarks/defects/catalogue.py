"""All defects."""

from __future__ import annotations

from typing import Final

from defects import arithmetic, barriers, blank, copies, memory, races
from defects.kit import Defect

DEFECTS: Final[tuple[Defect, ...]] = (
    *memory.DEFECTS, *blank.DEFECTS, *races.DEFECTS, *copies.DEFECTS, *barriers.DEFECTS,
    *arithmetic.DEFECTS,
)  # fmt: skip


__all__ = ["DEFECTS"]
