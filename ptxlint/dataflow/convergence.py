"""Whether threads that must act together reach an instruction together.

Three answers: they do; they do not, with a launch that shows it; or it may be that they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import AbortFreeControlDependenceAnalysis, ControlDependence
from ptxlint.cfg.dominance import NONE, AbortFreePostDominatorsAnalysis, DominatorTree
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.dataflow.thread_expression import ThreadExpression, thread_expression
from ptxlint.dataflow.thread_split import Split, find_split
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register
from ptxlint.ir.pattern import fold

FULL_MASK = 0xFFFFFFFF


class Parting(NamedTuple):
    """Where threads part that should come to an instruction together.

    `branch` is where they part, the instruction itself if its guard does it. `exited`: those that
    go elsewhere leave the kernel, and do nothing any more after the ways from the branch have met
    again. `split` is a launch in which they do part;
    without one, `source` is what the condition was followed to (a load, a merge of ways), None if
    that is nothing in particular.
    """

    branch: Instr
    exited: bool
    split: Split | None
    source: Instr | None


class Convergence:
    """Answers for the instructions of one function."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._cfg: Cfg = facts.get(CfgAnalysis)
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._control: ControlDependence = facts.get(AbortFreeControlDependenceAnalysis)
        self._post_dominators: DominatorTree = facts.get(AbortFreePostDominatorsAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self.assumes = self._uniformity.assumes
        self._known: dict[tuple[int, bool, int], tuple[Split | None, Instr | None]] = {}

    def parting(self, instr: Instr, together: Level, mask: int = FULL_MASK) -> Parting | None:
        """Where the threads part of which `together` says how many should act as one.

        None if they surely do. With WARP only the lanes of `mask` count.
        """
        reach = self._uniformity.block_divergence(self._cfg.block_of[instr.index])
        lanes = together is Level.WARP
        if self._uniformity.guard_uniformity(instr) > together:
            return self._judge(instr, False, lanes, mask)
        if reach.level > together and reach.branch is not None:
            return self._judge(reach.branch, False, lanes, mask)
        if reach.exit_level > together and reach.exit_branch is not None:
            return self._judge(reach.exit_branch, self._leaves(reach.exit_branch), lanes, mask)
        return None

    def level(self, instr: Instr) -> Level:
        """The largest set of threads that reaches an instruction as a whole or not at all.

        Early exits do not count.
        """
        reach = self._uniformity.block_divergence(self._cfg.block_of[instr.index])
        return max(reach.level, self._uniformity.guard_uniformity(instr))

    def _judge(self, branch: Instr, exited: bool, lanes: bool, mask: int) -> Parting:
        key = (branch.index, lanes, mask)
        if key not in self._known:
            self._known[key] = self._find(branch, lanes, mask)
        return Parting(branch, exited, *self._known[key])

    def _leaves(self, branch: Instr) -> bool:
        """True if nothing but the end of the kernel stands where the ways from a branch meet."""
        cfg = self._cfg
        join = self._post_dominators.idom[cfg.block_of[branch.index]]
        while join not in (EXIT, NONE):
            block = cfg.blocks[join]
            if any(not i.shape.row.terminator for i in cfg.instructions(block)):
                return False
            join = self._post_dominators.idom[join]
        return True

    def _find(self, branch: Instr, lanes: bool, mask: int) -> tuple[Split | None, Instr | None]:
        values = self._ssa.use_values[branch.index]
        if not values:
            return None, None
        found = thread_expression(self._ssa, self._loops, values[0])
        if isinstance(found, ThreadExpression):
            return find_split(found, self._facts, lanes=lanes, mask=mask), None
        reasons = self._uniformity.explain(values[0])
        return None, reasons[-1] if reasons else found

    def other_ways(self, branch: Instr, instr: Instr) -> Iterable[int]:
        """The blocks that only threads reach which go elsewhere than to `instr` at a branch."""
        at = self._cfg.block_of[branch.index]
        closure = self._control.closure
        taken = {d.target for d in closure(self._cfg.block_of[instr.index]) if d.branch == at}
        for block in self._cfg.rpo:
            targets = {d.target for d in closure(block) if d.branch == at}
            if targets and targets.isdisjoint(taken):
                yield block


def constant_of(facts: Facts, instr: Instr, operand: int) -> int | None:
    """The integer that an operand is, if it is one or a register that is set to one."""
    atom = instr.operands[operand]
    if not isinstance(atom, Register):
        return fold(atom)
    ssa = facts.get(SsaAnalysis)
    value = ssa.resolve(ssa.use_values[instr.index][instr.uses.index(atom)])
    if ssa.kind[value] != RESULT or ssa.operands[value]:
        return None
    origin = ssa.cfg.function.instrs[ssa.instr[value]]
    if origin.shape.opcode != "mov" or len(origin.operands) != 2:
        return None
    return fold(origin.operands[1])


class ConvergenceAnalysis(Analysis[Convergence]):
    """Convergence as facts of a function; each instruction is judged when it is asked for."""

    name: ClassVar[str] = "convergence"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        CfgAnalysis,
        SsaAnalysis,
        LoopsAnalysis,
        AbortFreePostDominatorsAnalysis,
        AbortFreeControlDependenceAnalysis,
        UniformityAnalysis,
    )

    def run(self, facts: Facts) -> Convergence:
        """Nothing is computed yet."""
        return Convergence(facts)
