"""All defects."""

from __future__ import annotations

from typing import Final

from defects import barriers, blank, copies, memory, numbers, races
from defects.kit import Defect

DEFECTS: Final[tuple[Defect, ...]] = (
    *memory.DEFECTS, *blank.DEFECTS, *races.DEFECTS, *copies.DEFECTS, *barriers.DEFECTS,
    *numbers.DEFECTS,
)  # fmt: skip


__all__ = ["DEFECTS"]
