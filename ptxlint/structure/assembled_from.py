"""The PTX kernel that machine code was assembled from, where it is at hand."""

from __future__ import annotations

from typing import ClassVar

from ptxlint.facts import Analysis, Facts


class AssembledFrom(Analysis[Facts | None]):
    """The facts of the kernel of the same name in the PTX beside machine code. None if there is no
    such PTX, for PTX, and wherever nobody has looked for it: the engine does, and says so with
    `Facts.know`."""

    name: ClassVar[str] = "assembled-from"

    def run(self, facts: Facts) -> Facts | None:
        """Nothing is known of it here."""
        return None


__all__ = ["AssembledFrom"]
