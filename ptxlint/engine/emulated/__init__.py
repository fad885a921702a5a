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
NAMES: Final = {rule.name: rule.id for rule in EMULATED}
"""Identifier by name."""


def identifier(word: str) -> str:
    """The identifier behind an identifier or a name, in any case; "" if there is none."""
    return word.upper() if word.upper() in NAMES.values() else NAMES.get(word.lower(), "")


__all__ = ["EMULATED", "NAMES", "EmulatedRule", "identifier"]
