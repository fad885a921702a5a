"""Whoever runs the cases of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ptxlint.dynamic.cases.case import Case

from .knowledge import Described, KernelKnowledge
from .outcome import Outcome


class WorkerError(Exception):
    """An operator that cannot be asked anything: its spec does not load, takes forever, or kills
    whoever loads it. The text is for people, with file and line where they are known."""


class Worker(Protocol):
    """Runs cases of one operator, out of the reach of what its code does."""

    def describe(self) -> Described:
        """The operator. Raises `WorkerError`."""

    def allowed(self, candidates: Sequence[Mapping[str, int]]) -> tuple[bool, ...]:
        """For each set of sizes, whether the operator takes them together. Raises `WorkerError`."""

    def nearest(self, wanted: Mapping[str, int]) -> dict[str, int] | None:
        """These sizes if the operator takes them together, else such next to them as it does; None
        if none were found. Raises `WorkerError`."""

    def run(self, case: Case) -> Outcome:
        """What a case comes to, whatever the kernel does: hang, crash and exit are outcomes."""

    def check(self) -> tuple[KernelKnowledge, ...]:
        """What the static half says of all kernels launched so far, under these launches. Raises
        `WorkerError` if the process that knew of them is gone."""

    def close(self) -> None:
        """Let the process go."""


__all__ = ["Worker", "WorkerError"]
