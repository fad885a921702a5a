"""What `ptxlint emulate` may find, explained as rules are: `ptxlint rule EMU905`.

Texts and samples alone: `ptxlint.dynamic.emulator` finds them, and nothing here loads it.
"""

from __future__ import annotations

from typing import Final

from ptxlint.engine.emulated.arrivals import ARRIVALS
from ptxlint.engine.emulated.memory import MEMORY
from ptxlint.engine.emulated.rule import EmulatedRule
from ptxlint.engine.emulated.synchronisation import SYNCHRONISATION
from ptxlint.engine.emulated.values import VALUES

EMULATED: Final[tuple[EmulatedRule, ...]] = tuple(
    sorted((*MEMORY, *SYNCHRONISATION, *VALUES, *ARRIVALS), key=lambda rule: rule.id)
)
"""By identifier."""

__all__ = ["EMULATED", "EmulatedRule"]
