"""Whether threads that must act together reach an instruction together.

Three answers: they do; they do not, with a launch that shows it; or it may be that they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import AbortFreeControlDependenceAnalysis, ControlDependence
from ptxlint.cfg.dominance import (
    NONE,
    AbortFreePostDominatorsAnalysis,
    DominatorsAnalysis,
    DominatorTree,
)
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.dataflow.thread_expression import ThreadExpression, thread_expression
from ptxlint.dataflow.thread_split import Condition, Route, Split, find_split
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register, SpecialRegister
from ptxlint.ir.pattern import fold

FULL_MASK: Final = 0xFFFFFFFF
_SEARCHES: Final = 40
"""Searches for a launch that may come to nothing in one function; the rest stays open."""
LOADS: Final = frozenset({"ld", "ldu", "atom"})


class Parting(NamedTuple):
    """Where threads part that should come to an instruction together.

    `branch` is where they part, the instruction itself if its guard does it. `exited`: those that
    go elsewhere leave the kernel, and do nothing any more after the ways from the branch have met
    again. `split` is a launch in which they do part; without one, `source` is what the condition
    was followed to (a load, a special register), None if that is nothing in particular, and `own`
    says that it is a load from an address made of the thread's index.
    """

    branch: Instr
    exited: bool
    split: Split | None
    source: Instr | None
    own: bool


class Convergence:
    """Answers for the instructions of one function."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._cfg: Cfg = facts.get(CfgAnalysis)
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._dominators: DominatorTree = facts.get(DominatorsAnalysis)
        self._control: ControlDependence = facts.get(AbortFreeControlDependenceAnalysis)
        self._post_dominators: DominatorTree = facts.get(AbortFreePostDominatorsAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self.assumes = self._uniformity.assumes
        self._expressions: dict[int, ThreadExpression | None] = {}
        self._splits: dict[tuple[int, int, int, Level, int], Split | None] = {}
        self._failures = 0
        self._ways: dict[int, dict[int, set[int]]] = {}

    def parting(self, instr: Instr, together: Level, mask: int = FULL_MASK) -> Parting | None:
        """Where the threads part of which `together` says how many should act as one.

        None if they surely do. With WARP only the lanes of `mask` count.
        """
        reach = self._uniformity.block_divergence(self._cfg.block_of[instr.index])
        exited = False
        if self._uniformity.guard_uniformity(instr) > together:
            branch = instr
        elif reach.level > together and reach.branch is not None:
            branch = reach.branch
        elif reach.exit_level > together and reach.exit_branch is not None:
            branch = reach.exit_branch
            exited = self._leaves(branch)
        else:
            return None
        guard = instr.index if instr.guard is not None else -1
        key = (self._cfg.block_of[instr.index], guard, branch.index, together, mask)
        if key not in self._splits:
            searching = self._failures < _SEARCHES
            found = self._find(instr, branch, together, mask) if searching else None
            self._failures += found is None
            self._splits[key] = found
        split = self._splits[key]
        if split is not None:
            return Parting(branch, exited, split, None, False)
        return Parting(branch, exited, None, *self._source(branch))

    def level(self, instr: Instr) -> Level:
        """The largest set of threads that reaches an instruction as a whole or not at all.

        Early exits do not count.
        """
        reach = self._uniformity.block_divergence(self._cfg.block_of[instr.index])
        return max(reach.level, self._uniformity.guard_uniformity(instr))

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

    def _source(self, branch: Instr) -> tuple[Instr | None, bool]:
        """What makes a branch's condition differ: a value from memory, else where it starts.

        And whether that is the one load on the way, from an address made of the thread's index.
        """
        values = self._ssa.use_values[branch.index]
        reasons = self._uniformity.explain(values[0]) if values else []
        loads = [r for r in reasons if r.opcode in LOADS and r.shape.space != "param"]
        if not loads:
            return (reasons[-1] if reasons else None), False
        own = len(loads) == 1 and loads[0].opcode != "atom" and _reads_index(reasons[-1])
        return loads[0], own

    def _find(self, instr: Instr, branch: Instr, together: Level, mask: int) -> Split | None:
        """A launch in which a thread comes to an instruction and one that should does not."""
        route = self._route(instr, branch, together)
        if route is None:
            return None
        return find_split(route, self._facts, lanes=together is Level.WARP, mask=mask)

    def _route(self, instr: Instr, branch: Instr, together: Level) -> Route | None:
        """What leads a thread to an instruction by way of a branch; None if it is not followed.

        What the threads in question decide alike by a value that is not followed may be left out.
        """
        home, fork = (self._cfg.block_of[i.index] for i in (instr, branch))
        always = self._decided(home, together)
        if always is None:
            return None
        guarded = self._uniformity.guard_uniformity(instr) > together
        if instr.guard is not None:
            turn = self._condition(instr, instr.shape.guard == "@")
            if turn is not None:
                always.append(turn)
            elif guarded:
                return None
        if branch is instr or self._dominators.strictly_dominates(fork, home):
            return Route(always, [], None)
        # A branch behind the instruction decides who comes again.
        before = self._decided(fork, together)
        target = self._only_target(fork, home)
        way = None if target is None else self._cfg.edge_condition(fork, target)
        turn = None if way is None else self._condition(branch, way[1])
        return None if before is None or turn is None else Route(always, before, turn)

    def _decided(self, home: int, together: Level) -> list[Condition] | None:
        """The conditions that hold on every way to a block; None if one is not followed.

        Branches that are passed after the block, for the next round of a loop, do not count.
        """
        found: list[Condition] = []
        for at in self._ways_to(home):
            end = self._cfg.terminator(at)
            if end is None or self._dominators.strictly_dominates(home, at):
                continue
            # Of a loop around a single block the branch comes after all else in it.
            if at == home or not self._dominators.dominates(at, home):
                continue
            target = self._only_target(at, home)
            way = None if target is None else self._cfg.edge_condition(at, target)
            condition = None if way is None else self._condition(end, way[1])
            if condition is not None:
                found.append(condition)
            elif self._uniformity.branch_uniformity(end) > together:
                return None
        return found

    def _only_target(self, branch: int, home: int) -> int | None:
        """The one way from a branch that leads to a block; None if there are several."""
        targets = self._ways_to(home).get(branch, ())
        return next(iter(targets)) if len(targets) == 1 else None

    def _ways_to(self, home: int) -> dict[int, set[int]]:
        """The branches that decide whether a block is reached, with the ways that lead there."""
        ways = self._ways.get(home)
        if ways is None:
            ways = self._ways[home] = {}
            for dependence in self._control.closure(home):
                ways.setdefault(dependence.branch, set()).add(dependence.target)
        return ways

    def _condition(self, guarded: Instr, wanted: bool) -> Condition | None:
        """That the guard of an instruction has a value; None if it is not followed."""
        at = guarded.index
        if at not in self._expressions:
            values = self._ssa.use_values[at]
            self._expressions[at] = (
                thread_expression(self._ssa, self._loops, values[0]) if values else None
            )
        expression = self._expressions[at]
        return None if expression is None else (expression, int(wanted))

    def other_ways(self, branch: Instr, instr: Instr) -> Iterator[int]:
        """The blocks that only threads reach which go elsewhere than to `instr` at a branch."""
        at = self._cfg.block_of[branch.index]
        taken = self._ways_to(self._cfg.block_of[instr.index]).get(at, set())
        for block in self._cfg.rpo:
            targets = self._ways_to(block).get(at)
            if targets and targets.isdisjoint(taken):
                yield block


def _reads_index(instr: Instr) -> bool:
    """True if an instruction reads what tells the lanes of a warp apart."""
    return any(
        isinstance(atom, SpecialRegister) and atom.name.startswith(("%tid", "%laneid"))
        for atom in instr.args
    )


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
        DominatorsAnalysis,
        AbortFreePostDominatorsAnalysis,
        AbortFreeControlDependenceAnalysis,
        UniformityAnalysis,
    )

    def run(self, facts: Facts) -> Convergence:
        """Nothing is computed yet."""
        return Convergence(facts)
