"""Whether control can get from one place to another without passing a barrier of the CTA.

Barriers cut each block into segments. Whatever may hold a barrier counts as one (a call, a wait on
an mbarrier), and so does one that is guarded: where there is a path, nothing that this function
names keeps the warps apart.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, ClassVar

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr


def keeps_warps_apart(instr: Instr) -> bool:
    """True for what may make a warp wait for the others of its CTA."""
    opcode, shape = instr.opcode, instr.shape
    if opcode in ("bar", "barrier"):
        return not shape.has("warp") and not shape.has("arrive")
    waits = opcode == "mbarrier" and any("wait" in modifier for modifier in shape.modifiers)
    return waits or opcode == "call"


class BarrierPaths:
    """Barrier-free paths between segments, `(block, number of barriers before it)`."""

    def __init__(self, cfg: Cfg, loops: LoopForest) -> None:
        self._cfg = cfg
        self._loops = loops
        self._barriers: list[list[int]] = [
            [i.index for i in cfg.instructions(block) if keeps_warps_apart(i)]
            for block in range(len(cfg.blocks))
        ]
        self._reached: list[int] | None = None

    def segment(self, instr: Instr) -> tuple[int, int]:
        """Where an instruction stands."""
        block = self._cfg.block_of[instr.index]
        return block, bisect_left(self._barriers[block], instr.index)

    def within_round(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """True if a path leads from one segment to the other and takes no loop's back edge."""
        if first[0] == second[0]:
            return first == second
        return self._meet(first, second) and self._enters(first[0], second[0])

    def to_next_round(self, first: tuple[int, int], second: tuple[int, int], loop: Loop) -> bool:
        """True if a path leads from one segment to the other in the next round of a loop."""
        if not self._meet(first, second):
            return False
        latches = [b for b in loop.latches if b == first[0] or self._enters(first[0], b)]
        if not any(not self._barriers[b] or b == first[0] for b in latches):
            return False
        header = loop.header
        if second[0] == header:
            return True
        return not self._barriers[header] and self._enters(header, second[0])

    def _meet(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """True if nothing follows the first in its block and nothing comes before the second."""
        return first[1] == len(self._barriers[first[0]]) and second[1] == 0

    def _enters(self, first: int, second: int) -> bool:
        """True if control gets from the end of a block into another, by no barrier or back edge."""
        return bool(self._forward(first) >> second & 1)

    def _forward(self, block: int) -> int:
        """The blocks that are entered from the end of one without a barrier or a back edge, as
        bits."""
        if self._reached is None:
            self._reached = self._reach()
        return self._reached[block]

    def _reach(self) -> list[int]:
        """By block the blocks that are so entered from its end, for all blocks at once."""
        blocks, ways = self._cfg.blocks, self._ways()
        reached = [0] * len(blocks)
        order = [*reversed(self._cfg.rpo)]
        order += sorted(set(range(len(blocks))).difference(order))
        changed = True
        while changed:
            # Once is enough, but for loops with several ways in and for code that is never reached.
            changed = False
            for block in order:
                found = 0
                for target in ways[block]:
                    found |= 1 << target
                    if not self._barriers[target]:
                        found |= reached[target]
                changed = changed or found != reached[block]
                reached[block] = found
        return reached

    def _ways(self) -> list[list[int]]:
        """By block where its edges lead, those back to the head of a loop apart."""
        return [
            [t for t in block.succs if t >= 0 and not self._is_back(block.index, t)]
            for block in self._cfg.blocks
        ]

    def _is_back(self, source: int, target: int) -> bool:
        loop = self._loops.with_header(target)
        return loop is not None and source in loop.latches


class BarrierPathsAnalysis(Analysis[BarrierPaths]):
    """Barrier-free paths; they are found when asked for."""

    name: ClassVar[str] = "barrier-paths"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, LoopsAnalysis)

    def run(self, facts: Facts) -> BarrierPaths:
        """Only barriers are looked for yet."""
        return BarrierPaths(facts.get(CfgAnalysis), facts.get(LoopsAnalysis))
