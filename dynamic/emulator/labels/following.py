"""Those who follow a run instruction by instruction, beside the registers of one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame
    from ptxlint.dynamic.emulator.program import Segment
    from ptxlint.ir.instruction import Instr


class Follower(Protocol):
    """Keeps a kind of labels."""

    def follow(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> Iterator[None]:
        """Look at an instruction before it is run in the lanes of a mask (its guard not yet
        counted), yield once, and look at what came of it. `step` is what it does, for those who
        run it once more on something else."""

    def arrive(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        """Lanes come to an instruction at which they may part or wait: a branch, a barrier. What
        lanes of a warp do together is followed too, once all are there."""


class Followers:
    """All who follow one batch."""

    def __init__(self, batch: Batch, followers: Sequence[Follower]) -> None:
        self._batch = batch
        self._followers = list(followers)

    def around(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> None:
        """Run a step, and let everybody follow."""
        following = [one.follow(frame, instr, step, mask) for one in self._followers]
        for one in following:
            next(one, None)
        step(self._batch, mask)
        for one in following:
            next(one, None)

    def end(self, segment: Segment, mask: Mask) -> None:
        """Lanes come to the end of a segment."""
        if len(segment.instrs) > len(segment.steps):
            for one in self._followers:
                one.arrive(segment.frame, segment.instrs[-1], mask)


__all__ = ["Follower", "Followers"]
