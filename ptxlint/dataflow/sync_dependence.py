"""Where threads that a branch parted meet again, and what they bring along.

Two effects besides data flow make values differ between threads. *At joins*: a phi picks its
operand by the way a thread came, so it depends on the branches that chose the way. *After loops*:
threads that leave in different iterations carry values of different iterations out.

Threads are compared that execute a block at the same time. Where they meet is not fixed: at the
nearest post-dominator of the branch that parted them, or earlier, iteration by iteration. What is
said here holds for both. In a reducible loop threads come to the header either all from outside or
all from latches, so the choice between these two is no choice of a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence
from ptxlint.cfg.dominance import DominatorTree, post_dominators
from ptxlint.cfg.graph import Block, Cfg
from ptxlint.cfg.loops import Loop, LoopForest


class Choice(NamedTuple):
    """Ways into a block between which branches choose.

    `ways` are positions in the block's predecessors. A phi that takes one value on all of them
    does not depend on the choice. No ways: it always depends.
    """

    ways: tuple[int, ...]
    branches: list[int]


class Cycle:
    """A loop, or a cycle with several entries: its blocks and the branches that end it.

    In a cycle that is `mixing`, threads of different iterations may meet inside: they wait at a
    block of the cycle while others go round without coming to it.
    """

    __slots__ = ("blocks", "branches", "mixing")

    def __init__(self, blocks: frozenset[int], branches: list[int], mixing: bool) -> None:
        self.blocks = blocks
        self.branches = branches
        """Blocks whose branch decides, directly or through others, how often a thread goes round
        before it leaves, or meets others."""
        self.mixing = mixing


class SyncDependence:
    """The branches behind joins and loop exits of one function.

    `meetings` is the tree of post-dominators without ways that end in a trap: where threads meet.
    """

    def __init__(
        self,
        cfg: Cfg,
        dominators: DominatorTree,
        meetings: DominatorTree,
        control: ControlDependence,
        loops: LoopForest,
    ) -> None:
        self._cfg = cfg
        self._dominators = dominators
        self._meetings = meetings
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
        meetings = self._meetings_inside()
        for loop in self._loops.loops:
            blocks = frozenset(loop.blocks)
            exits = [
                (source, target)
                for source in blocks
                for target in self._cfg.blocks[source].succs
                if target not in blocks
            ]
            found.append(Cycle(blocks, self._closure(exits, blocks.__contains__, None), False))
            if loop.header in meetings:
                around = self._branches_around(loop, meetings[loop.header])
                if around:
                    found.append(Cycle(blocks, around, True))
        found += [
            Cycle(frozenset(region.blocks), self.all_branches(), True)
            for region in self._loops.irreducible
        ]
        return found

    def _meetings_inside(self) -> dict[int, list[int]]:
        """Loops, by header, to the branches in them whose threads meet again in the loop.

        The loop is the innermost one that holds both the branch and its post-dominator.
        """
        found: dict[int, list[int]] = {}
        for branch in self.all_branches():
            meeting = self._meetings.idom[branch]
            loop = self._loops.innermost(branch)
            while loop is not None and (meeting < 0 or not self._loops.contains(loop, meeting)):
                loop = loop.parent
            if loop is not None and meeting != loop.header:
                found.setdefault(loop.header, []).append(branch)
        return found

    def _branches_around(self, loop: Loop, branches: list[int]) -> list[int]:
        """Those of the branches from which a thread can go round the loop without coming to the
        block where the threads of the branch meet.

        That is one that does not post-dominate the branch once the back edges are ways out.
        """
        number = {index: at for at, index in enumerate(sorted(loop.blocks))}
        # The header comes first, whatever its place in the text: it is the entry.
        entry = number[loop.header]
        number[sorted(loop.blocks)[0]], number[loop.header] = entry, 0
        body = [Block(at, 0, 0) for at in range(len(number))]
        for index, at in number.items():
            block = self._cfg.blocks[index]
            inside = [t for t in block.succs if t in number and t != loop.header]
            body[at].succs = [number[t] for t in inside]
            body[at].leave = block.leave or ("end" if len(inside) < len(block.succs) else "")
        rounds = post_dominators(Cfg(self._cfg.function, body, []), aborting=False)
        return [
            branch
            for branch in branches
            if not rounds.dominates(number[self._meetings.idom[branch]], number[branch])
        ]

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
