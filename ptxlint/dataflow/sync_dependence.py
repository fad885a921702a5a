"""Where threads that a branch parted meet again, and what they bring along.

Two effects besides data flow make values differ between threads. *At joins*: a phi picks its
operand by the way a thread came, so it depends on the branches that chose the way. *After loops*:
threads that leave in different iterations carry values of different iterations out.

Values are compared per instance: one execution of the block with the same iteration counts of the
loops around it. So the operand that a loop header takes, from outside or from a latch, is no choice
of a branch; that of several latches is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence
from ptxlint.cfg.dominance import DominatorTree
from ptxlint.cfg.graph import Cfg
from ptxlint.cfg.loops import LoopForest


class Choice(NamedTuple):
    """Ways into a block between which branches choose.

    `ways` are positions in the block's predecessors. A phi that takes one value on all of them
    does not depend on the choice. No ways: it always depends.
    """

    ways: tuple[int, ...]
    branches: list[int]


class Cycle:
    """A loop, or a cycle with several entries: its blocks and the branches that end it."""

    __slots__ = ("blocks", "branches")

    def __init__(self, blocks: frozenset[int], branches: list[int]) -> None:
        self.blocks = blocks
        self.branches = branches
        """Blocks whose branch decides, directly or through others, when a thread leaves."""


class SyncDependence:
    """The branches behind joins and loop exits of one function."""

    def __init__(
        self,
        cfg: Cfg,
        dominators: DominatorTree,
        control: ControlDependence,
        loops: LoopForest,
    ) -> None:
        self._cfg = cfg
        self._dominators = dominators
        self._control = control
        self._loops = loops
        self._irreducible = frozenset(b for region in loops.irreducible for b in region.blocks)
        self._all_branches: list[int] | None = None

    def all_branches(self) -> list[int]:
        """The reachable blocks with more than one way on."""
        if self._all_branches is None:
            self._all_branches = [b for b in self._cfg.rpo if self._parts(b)]
        return self._all_branches

    def join_choices(self, block: int) -> list[Choice]:
        """The choices between ways into a block, with the branches that make them."""
        preds = self._cfg.blocks[block].preds
        if block in self._irreducible:
            # Iterations of a cycle with several entries cannot be told apart: anything goes.
            return [Choice((), self.all_branches())]
        loop = self._loops.with_header(block)
        latches = set(loop.latches) if loop is not None else set()
        classes: tuple[list[int], list[int]] = ([], [])
        for way, source in enumerate(preds):
            classes[source in latches].append(way)
        return [
            Choice(tuple(ways), self._choosers(block, [preds[way] for way in ways]))
            for ways in classes
            if len(ways) > 1
        ]

    def cycles(self) -> list[Cycle]:
        """The cycles of the function with the branches that end them."""
        found = []
        for loop in self._loops.loops:
            blocks = frozenset(loop.blocks)
            exits = [
                (source, target)
                for source in blocks
                for target in self._cfg.blocks[source].succs
                if target not in blocks
            ]
            found.append(Cycle(blocks, self._closure(exits, blocks.__contains__, None)))
        found += [
            Cycle(frozenset(region.blocks), self.all_branches())
            for region in self._loops.irreducible
        ]
        return found

    def _parts(self, block: int) -> bool:
        return len(self._cfg.edges_from(self._cfg.blocks[block])) > 1

    def _choosers(self, block: int, sources: list[int]) -> list[int]:
        """The branches that choose between several ways into a block.

        If two ways from a branch meet first in `block`, then the branch lies under the nearest
        common dominator of the ways, and the last edge of one of them is control dependent on it,
        through branches on that way.
        """
        top = self._dominators.nearest_common(sources)
        return self._closure(
            [(source, block) for source in sources],
            lambda b: self._dominators.dominates(top, b),
            top,
        )

    def _closure(
        self, edges: Iterable[tuple[int, int]], within: Callable[[int], bool], stop: int | None
    ) -> list[int]:
        """The branches among the blocks `within` that decide whether one of the edges is taken.

        What `stop` itself depends on is not asked for.
        """
        found: dict[int, None] = {}
        seen: set[int] = set()
        work: list[int] = []
        for source, _ in edges:
            if self._parts(source):
                found[source] = None
            if source != stop and source not in seen:
                seen.add(source)
                work.append(source)
        while work:
            for dependence in self._control.direct(work.pop()):
                branch = dependence.branch
                if not within(branch):
                    continue
                found[branch] = None
                if branch != stop and branch not in seen:
                    seen.add(branch)
                    work.append(branch)
        return list(found)
