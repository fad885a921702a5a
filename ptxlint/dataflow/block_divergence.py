"""Which blocks threads may reach apart from each other, and which branch parted them.

Two ways of being apart are told from each other. *Diverged*: a branch sent some threads here and
others elsewhere, and those others go on to other instructions that threads execute together.
*Exited*: the others are on their way out of the kernel and will meet no such instruction any more.
From sm_70 on, a barrier waits only for the threads that have not exited (CUDA C++ Programming
Guide, "Independent Thread Scheduling"); before, it counted whole warps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence
from ptxlint.cfg.dominance import ABORTS, post_dominators
from ptxlint.cfg.graph import EXIT, Block, Cfg
from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.lane_bits import Level
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import converges


class BlockDivergence(NamedTuple):
    """How far threads reach a block together.

    `level` is the largest set of threads that reaches it as a whole or not at all, as far as
    branches decide that keep both sides in the kernel; `branch` is the branch that parts them,
    None if `level` is GRID. `exit_level` and `exit_branch` say the same of early ways out: the
    threads that are still there may be a part only of the set that `exit_level` names. Of blocks
    behind which no threads meet any more, such as the last one, only `level` speaks.
    """

    level: Level
    branch: Instr | None
    exit_level: Level
    exit_branch: Instr | None


_TOGETHER = BlockDivergence(Level.GRID, None, Level.GRID, None)


class BlockDivergences:
    """Divergence of all blocks of a function, given the level of each block's branch."""

    def __init__(
        self,
        cfg: Cfg,
        control: ControlDependence,
        loops: LoopForest,
        level_of: Callable[[int], Level],
    ) -> None:
        self._cfg = cfg
        self._loops = loops
        self._level_of = level_of
        staying = _reaching(cfg, _meeting_blocks(cfg))
        ending = _reaching(cfg, [i for i in cfg.exits if cfg.blocks[i].leave not in ABORTS])
        leaving = self._early_exits(staying, ending)
        self._parted = self._spread(cfg, control, cfg.rpo)
        if len(ending) < len(cfg.rpo):
            # Ways that end in a trap are no part of `control`.
            whole = ControlDependence(cfg, post_dominators(cfg))
            self._parted.update(self._spread(cfg, whole, [b for b in cfg.rpo if b not in ending]))
        if leaving:
            rest, rest_control = _without_exits(cfg, staying, leaving)
            inside = [b for b in cfg.rpo if b in staying]
            for block in inside:
                self._parted.pop(block, None)
            self._parted.update(self._spread(rest, rest_control, inside))
        self._exited = self._spread_exits(leaving, staying)

    def of(self, block: int) -> BlockDivergence:
        """The divergence of a block; unreachable blocks count as reached by all."""
        parted, exited = self._parted.get(block), self._exited.get(block)
        if parted is None and exited is None:
            return _TOGETHER
        level, branch = parted or (Level.GRID, EXIT)
        exit_level, exit_branch = exited or (Level.GRID, EXIT)
        return BlockDivergence(level, self._instr(branch), exit_level, self._instr(exit_branch))

    def _instr(self, branch: int) -> Instr | None:
        return None if branch == EXIT else self._cfg.terminator(branch)

    def _spread(
        self, cfg: Cfg, control: ControlDependence, blocks: list[int]
    ) -> dict[int, tuple[Level, int]]:
        """Level and branch for the blocks that depend on a divergent branch, directly or not."""
        dependents: dict[int, list[int]] = {}
        for block in blocks:
            for dependence in control.direct(block):
                dependents.setdefault(dependence.branch, []).append(block)
        out: dict[int, tuple[Level, int]] = {}
        for level in (Level.THREAD, Level.WARP, Level.CTA):
            for branch in dependents:
                if self._level_of(branch) is not level:
                    continue
                work = [branch]
                while work:
                    for block in dependents.get(work.pop(), ()):
                        if block not in out:
                            out[block] = (level, branch)
                            work.append(block)
        return out

    def _early_exits(self, staying: set[int], ending: set[int]) -> dict[int, list[int]]:
        """Blocks to those of their targets from which no thread meets others again.

        A block that can come back to itself is no early exit: its threads have met others, and
        leave a loop in which the rest goes on to meet.
        """
        out: dict[int, list[int]] = {}
        cfg = self._cfg
        for index in cfg.rpo:
            block = cfg.blocks[index]
            targets = cfg.edges_from(block)
            if index not in staying or len(targets) < 2:
                continue
            gone = [t for t in targets if t not in staying]
            if len(gone) == len(targets) or self._loops.in_cycle(index):
                continue
            # A way that can only end in a trap ends the whole grid.
            if any(t in ending or (t == EXIT and block.leave not in ABORTS) for t in gone):
                out[index] = gone
        return out

    def _spread_exits(
        self, leaving: dict[int, list[int]], staying: set[int]
    ) -> dict[int, tuple[Level, int]]:
        """Level and branch for the blocks that stand behind an early exit."""
        ranked = []
        for branch in leaving:
            parted = self._parted.get(branch)
            ranked.append((max(self._level_of(branch), parted[0] if parted else 0), branch))
        ranked.sort(reverse=True)
        out: dict[int, tuple[Level, int]] = {}
        for level, branch in ranked:
            if level == Level.GRID:
                break
            work = [branch]
            seen = {branch}
            while work:
                for block in self._cfg.blocks[work.pop()].succs:
                    if block in staying and block not in seen and block not in out:
                        seen.add(block)
                        out[block] = (Level(level), branch)
                        work.append(block)
        return out


def _meeting_blocks(cfg: Cfg) -> list[int]:
    """The blocks with an instruction that threads execute together, or with a call."""
    instrs = cfg.function.instrs
    meets: dict[Shape, bool] = {}
    found = []
    for index in cfg.rpo:
        block = cfg.blocks[index]
        for at in range(block.start, block.end):
            shape = instrs[at].shape
            answer = meets.get(shape)
            if answer is None:
                answer = meets[shape] = converges(shape) or shape.row.is_call
            if answer:
                found.append(index)
                break
    return found


def _reaching(cfg: Cfg, ends: list[int]) -> set[int]:
    """The blocks from which a path leads to one of these."""
    found = set(ends)
    work = list(ends)
    while work:
        for pred in cfg.blocks[work.pop()].preds:
            if pred not in found:
                found.add(pred)
                work.append(pred)
    return found


def _without_exits(
    cfg: Cfg, staying: set[int], leaving: dict[int, list[int]]
) -> tuple[Cfg, ControlDependence]:
    """The graph as the threads see it that take no early exit, and its control dependence."""
    blocks = []
    for block in cfg.blocks:
        copy = Block(block.index, block.start, block.end)
        gone = leaving.get(block.index, ())
        copy.succs = [t for t in block.succs if t not in gone]
        copy.leave = "" if EXIT in gone else block.leave
        copy.condition, copy.fallthrough = block.condition, block.fallthrough
        blocks.append(copy)
    rest = Cfg(cfg.function, blocks, cfg.block_of)
    return rest, ControlDependence(rest, post_dominators(rest, aborting=False))
