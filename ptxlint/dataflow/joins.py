"""Which ways into a join are open where the outcome of some branches is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr

_MOST_BLOCKS: Final = 64
"""A join whose region has more blocks is taken to be open from everywhere."""


class Branch(NamedTuple):
    """A block's two ways on: by its predicate value, where that holds and where it does not."""

    predicate: int
    if_true: int
    if_false: int


class Region(NamedTuple):
    """The blocks between a join and its immediate dominator, that one included.

    `branches` are those of them that end with a condition.
    """

    entry: int
    blocks: frozenset[int]
    branches: dict[int, Branch]


class Joins:
    """The regions before the joins of a function; found when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._dominators: DominatorTree = facts.get(DominatorsAnalysis)
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._regions: dict[int, Region | None] = {}
        self._decided: dict[int, list[int]] | None = None

    def region(self, block: int) -> Region | None:
        """The region before a join, None if it is too large."""
        if block not in self._regions:
            self._regions[block] = self._find(block)
        return self._regions[block]

    def _find(self, block: int) -> Region | None:
        blocks = self._ssa.cfg.blocks
        entry = self._dominators.idom[block]
        if entry < 0 or entry == block:
            return None
        found = {entry}
        work = [p for p in blocks[block].preds if p != entry]
        while work:
            current = work.pop()
            if current in found:
                continue
            found.add(current)
            if len(found) > _MOST_BLOCKS or current == block:
                return None
            work += blocks[current].preds
        branches = {}
        for at in found:
            branch = self._branch(at)
            if branch is not None:
                branches[at] = branch
        return Region(entry, frozenset(found), branches)

    def _branch(self, block: int) -> Branch | None:
        cfg = self._ssa.cfg
        held = cfg.blocks[block]
        last = cfg.terminator(held)
        if held.condition is None or last is None:
            return None
        predicate = self._ssa.guard_value(last)
        targets = [s for s in held.succs if s != held.fallthrough]
        if predicate is None or len(targets) > 1:
            return None
        taken = targets[0] if targets else -1
        ways = (taken, held.fallthrough) if held.condition[1] else (held.fallthrough, taken)
        return Branch(predicate, *ways)

    def decided_by(self, branch: Instr) -> list[int]:
        """The phis whose value depends on which way a branch goes: at joins and loop headers."""
        if self._decided is None:
            self._decided = self._find_decided()
        return self._decided.get(self._ssa.cfg.block_of[branch.index], [])

    def _find_decided(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for block, phis in self._ssa.phis.items():
            loop = self._loops.with_header(block)
            region = self.region(block)
            deciding: set[int] = set() if region is None else set(region.branches)
            if loop is not None:
                deciding = {source for source, _ in self._loops.exits(loop)}
            for at in deciding:
                found.setdefault(at, []).extend(phis)
        return found

    def open_arms(self, block: int, truth: Callable[[int], bool | None]) -> list[bool]:
        """For each source of the join's phis: whether control may come that way.

        `truth` says what is known of a predicate's value.
        """
        sources = self._ssa.phi_sources(block)
        region = self.region(block)
        if region is None:
            return [True] * len(sources)
        blocks = self._ssa.cfg.blocks
        taken: set[int] = set()
        seen = {region.entry}
        work = [region.entry]
        while work:
            current = work.pop()
            ways = blocks[current].succs
            branch = region.branches.get(current)
            known = None if branch is None else truth(branch.predicate)
            if branch is not None and known is not None:
                way = branch.if_true if known else branch.if_false
                ways = [way] if way >= 0 else []
            for way in ways:
                if way == block:
                    taken.add(current)
                elif way in region.blocks and way not in seen:
                    seen.add(way)
                    work.append(way)
        arms = [source in taken for source in sources]
        return arms if any(arms) else [True] * len(sources)


class JoinsAnalysis(Analysis[Joins]):
    """Regions before joins."""

    name: ClassVar[str] = "joins"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        DominatorsAnalysis,
        LoopsAnalysis,
    )

    def run(self, facts: Facts) -> Joins:
        """Nothing is looked into yet."""
        return Joins(facts)


__all__ = ["Branch", "Joins", "JoinsAnalysis", "Region"]
