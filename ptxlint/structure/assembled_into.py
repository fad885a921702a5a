"""The machine code that a PTX kernel was assembled into, where it is at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ptxlint.facts import Analysis, Facts


class MachineCode:
    """The machine code of a kernel. It is read when somebody asks, since that takes a tool."""

    __slots__ = ("_facts", "_load")

    def __init__(self, load: Callable[[], Facts | None]) -> None:
        self._load: Callable[[], Facts | None] | None = load
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts | None:
        """Its facts; None if it cannot be read."""
        if self._load is not None:
            load, self._load = self._load, None
            self._facts = load()
        return self._facts


class AssembledInto(Analysis[MachineCode | None]):
    """The kernel of the same name in the cubin that an assembler made of the PTX, or that lies
    beside it. None if there is none, for machine code, and wherever nobody has looked for it: the
    engine does, and says so with `Facts.know`."""

    name: ClassVar[str] = "assembled-into"

    def run(self, facts: Facts) -> MachineCode | None:
        """Nothing is known of it here."""
        return None


__all__ = ["AssembledInto", "MachineCode"]
