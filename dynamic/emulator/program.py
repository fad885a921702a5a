"""A kernel as the emulator runs it: segments of steps, and how each one ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ptxlint.dynamic.emulator.batch import Step

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch, Mask
    from ptxlint.dynamic.emulator.frame import Frame
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr


class Segment:
    """Instructions that run without a break: part of a basic block, up to a place where lanes may
    part or wait.

    `rank` orders segments so that lanes which are behind go first: those of a loop before what
    follows it. `end` says where the lanes go on.
    """

    __slots__ = ("end", "frame", "instrs", "rank", "steps")

    def __init__(self, rank: tuple[int, ...], frame: Frame) -> None:
        self.rank = rank
        self.frame = frame
        self.steps: list[Step] = []
        self.instrs: list[Instr] = []
        """One for each step."""
        self.end: Callable[[Batch, Mask], None] = _nowhere


def _nowhere(batch: Batch, mask: Mask) -> None:
    batch.leave(mask)


class Program(NamedTuple):
    """All segments of a kernel and of what it calls; the first one is where it begins.

    `registers` counts them over all frames; `local` and `parameter_bytes` are in bytes, a lane and
    a kernel.
    """

    kernel: Function
    segments: list[Segment]
    registers: int
    local: int
    shared: int
    parameter_bytes: int


__all__ = ["Program", "Segment"]
