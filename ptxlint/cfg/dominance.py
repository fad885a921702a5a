"""Dominators, post-dominators and dominance frontiers.

Immediate dominators by semi-NCA (Georgiadis, "Linear-Time Algorithms for Dominators and Related
Problems", 2005), frontiers as in Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
Nothing here recurses: functions of tens of thousands of blocks are common input.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.facts import Analysis, Facts

NONE: Final = -2
"""The immediate dominator of the root and of an unreachable block."""

ABORTS: Final = frozenset({"trap", "abort"})
"""Values of `Block.leave` that end the whole grid with an error."""


class DominatorTree:
    """A dominator or post-dominator tree over block indices.

    In a tree of post-dominators the root is the virtual block `EXIT`, which every query accepts.
    Unreachable blocks dominate nothing and are dominated by nothing, themselves included.
    """

    __slots__ = (
        "_first",
        "_frontiers",
        "_last",
        "_preds",
        "children",
        "depth",
        "idom",
        "preorder",
        "root",
    )

    def __init__(self, root: int, idom: list[int], preds: list[list[int]]) -> None:
        # All lists have one element more than there are blocks: index EXIT (-1) is the last.
        self.root = root
        self.idom = idom
        """Immediate dominator of each block (and of `EXIT`, last); `NONE` if it has none."""
        self.children: list[list[int]] = [[] for _ in idom]
        for node in range(len(idom) - 1):
            if idom[node] != NONE:
                self.children[idom[node]].append(node)
        self._preds = preds
        self._frontiers: list[list[int]] | None = None
        self._number()

    def _number(self) -> None:
        """Preorder intervals: a dominates b if and only if b's number lies in a's interval."""
        size = len(self.idom)
        self._first = [-1] * size
        self._last = [-2] * size
        self.depth = [-1] * size
        """Distance of each node from the root; -1 for an unreachable block."""
        order: list[int] = []
        stack = [self.root]
        while stack:
            node = stack.pop()
            self._first[node] = len(order)
            self.depth[node] = self.depth[self.idom[node]] + 1 if order else 0
            order.append(node)
            stack.extend(reversed(self.children[node]))
        sizes = [1] * size
        for node in reversed(order):
            self._last[node] = self._first[node] + sizes[node] - 1
            if node != self.root:
                sizes[self.idom[node]] += sizes[node]
        self.preorder = order
        """Tree nodes, each before its children."""

    def dominates(self, a: int, b: int) -> bool:
        """True if every path from the root to `b` passes `a`; a block dominates itself. O(1)."""
        return self._first[a] <= self._first[b] <= self._last[a]

    def strictly_dominates(self, a: int, b: int) -> bool:
        """True if `a` dominates `b` and they differ. O(1)."""
        return self._first[a] < self._first[b] <= self._last[a]

    def interval(self, node: int) -> tuple[int, int]:
        """First and last place in `preorder` of what the node dominates; empty if unreachable."""
        return self._first[node], self._last[node]

    def nearest_common(self, nodes: Iterable[int]) -> int:
        """The nearest node that dominates all of these; `NONE` if one is unreachable."""
        common = NONE
        for node in nodes:
            if self._first[node] < 0:
                return NONE
            if common == NONE:
                common = node
            while not self.dominates(common, node):
                common = self.idom[common]
        return common

    def chain(self, node: int) -> list[int]:
        """The node and its dominators up to the root; empty for an unreachable block."""
        if self._first[node] < 0:
            return []
        out = [node]
        while node != self.root:
            node = self.idom[node]
            out.append(node)
        return out

    @property
    def frontiers(self) -> list[list[int]]:
        """The dominance frontier of each block, in ascending order; computed on first use.

        Block b is in the frontier of a if a dominates a predecessor of b and not strictly b.
        """
        if self._frontiers is None:
            self._frontiers = self._compute_frontiers()
        return self._frontiers

    def _compute_frontiers(self) -> list[list[int]]:
        idom, first = self.idom, self._first
        frontiers: list[list[int]] = [[] for _ in idom]
        for node, preds in enumerate(self._preds):
            if first[node] < 0:
                continue
            stop = idom[node]
            for runner in preds:
                if first[runner] < 0:
                    continue
                # Once a node has it, so have all above: the walk costs what it adds.
                while runner != stop and (not frontiers[runner] or frontiers[runner][-1] != node):
                    frontiers[runner].append(node)
                    runner = idom[runner]
                    if runner == NONE:
                        break
        return frontiers

    def iterated_frontier(self, blocks: Iterable[int]) -> set[int]:
        """The closure of the frontier over these blocks: where merges of their values belong."""
        frontiers = self.frontiers
        out: set[int] = set()
        work = list(blocks)
        while work:
            for node in frontiers[work.pop()]:
                if node not in out:
                    out.add(node)
                    work.append(node)
        return out


def dominators(cfg: Cfg) -> DominatorTree:
    """The dominator tree of the reachable blocks, rooted at the entry."""
    blocks = cfg.blocks
    succs = [b.succs for b in blocks]
    preds = [b.preds for b in blocks]
    succs.append([])
    preds.append([])
    return DominatorTree(cfg.entry, _immediate(cfg.entry, succs, preds), preds)


def post_dominators(cfg: Cfg, aborting: bool = True) -> DominatorTree:
    """The post-dominator tree of the reachable blocks, rooted at `EXIT`.

    A loop that never ends gets one way out, at the last block in reverse postorder of each
    strongly connected set of blocks that control cannot leave.

    Without `aborting`, ways that can only end in a trap do not count (unless all do): a trap
    ends the grid, so the threads that go on see the rest of the function as unconditional.
    """
    size = len(cfg.blocks) + 1
    forward: list[list[int]] = [[] for _ in range(size)]
    backward: list[list[int]] = [[] for _ in range(size)]
    doomed = None if aborting else _doomed(cfg)
    for node in cfg.rpo:
        block = cfg.blocks[node]
        targets = cfg.edges_from(block)
        if doomed is not None and node not in doomed:
            # A guarded trap leaves from a block that goes on.
            gone = {EXIT} if block.leave in ABORTS else frozenset()
            targets = [t for t in targets if t not in doomed and t not in gone]
        for target in targets:
            forward[node].append(target)
            backward[target].append(node)
    for node in _endless(cfg):
        forward[node].append(EXIT)
        backward[EXIT].append(node)
    return DominatorTree(EXIT, _immediate(EXIT, backward, forward), forward)


def _reaching(cfg: Cfg, ends: Iterable[int]) -> set[int]:
    """The reachable blocks from which a path leads to one of these."""
    found = set(ends)
    work = list(found)
    while work:
        for pred in cfg.blocks[work.pop()].preds:
            if pred not in found:
                found.add(pred)
                work.append(pred)
    return found


def _endless(cfg: Cfg) -> list[int]:
    """One block of each strongly connected set that is never left once it is entered."""
    leaving = _reaching(cfg, cfg.exits)
    stuck = [i for i in cfg.rpo if i not in leaving]
    out: list[int] = []
    if stuck:
        blocks = cfg.blocks
        for component in strongly_connected(stuck, lambda i: blocks[i].succs):
            inside = set(component)
            if all(inside.issuperset(blocks[i].succs) for i in component):
                out.append(max(component, key=cfg.position.__getitem__))
    return out


def _doomed(cfg: Cfg) -> frozenset[int] | None:
    """The blocks from which every path ends in a trap; None if there is no trap or nothing else."""
    traps = [i for i in cfg.exits if cfg.blocks[i].leave in ABORTS]
    if not traps:
        return None
    others = [i for i in cfg.exits if cfg.blocks[i].leave not in ABORTS]
    surviving = _reaching(cfg, [*others, *_endless(cfg)])
    doomed = _reaching(cfg, traps) - surviving
    return None if cfg.entry in doomed else frozenset(doomed)


def _immediate(root: int, succs: list[list[int]], preds: list[list[int]]) -> list[int]:
    """Immediate dominators by semi-NCA; `NONE` for the root and for what it does not reach.

    All work is done on preorder numbers of a depth-first walk.
    """
    order, parent, number = _depth_first(root, succs)
    size = len(order)
    semi = list(range(size))
    label = list(range(size))
    ancestor = parent.copy()
    for w in range(size - 1, 0, -1):
        best = parent[w]
        for pred in preds[order[w]]:
            v = number[pred]
            if v < 0:
                continue
            if v > w:
                v = semi[_lowest(v, w, ancestor, label, semi)]
            if v < best:
                best = v
        semi[w] = best
    idom = parent
    for w in range(1, size):
        candidate, limit = idom[w], semi[w]
        while candidate > limit:
            candidate = idom[candidate]
        idom[w] = candidate
    out = [NONE] * len(succs)
    for w in range(1, size):
        out[order[w]] = order[idom[w]]
    return out


def _depth_first(root: int, succs: list[list[int]]) -> tuple[list[int], list[int], list[int]]:
    """Preorder of a depth-first walk, parents by preorder number, and node to number (or -1)."""
    number = [-1] * len(succs)
    order: list[int] = []
    parent: list[int] = []
    stack = [(root, 0)]
    while stack:
        node, above = stack.pop()
        if number[node] >= 0:
            continue
        here = number[node] = len(order)
        order.append(node)
        parent.append(above)
        stack.extend((target, here) for target in reversed(succs[node]) if number[target] < 0)
    return order, parent, number


def _lowest(v: int, limit: int, ancestor: list[int], label: list[int], semi: list[int]) -> int:
    """The node of least semidominator on the linked path from `v`; compresses the path.

    Linked are the nodes numbered above `limit`.
    """
    path: list[int] = []
    while ancestor[v] > limit:
        path.append(v)
        v = ancestor[v]
    best, root = label[v], ancestor[v]
    for u in reversed(path):
        if semi[label[u]] < semi[best]:
            best = label[u]
        else:
            label[u] = best
        ancestor[u] = root
    return best


class DominatorsAnalysis(Analysis[DominatorTree]):
    """The dominator tree as facts of a function."""

    name: ClassVar[str] = "dominators"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis,)

    def run(self, facts: Facts) -> DominatorTree:
        """Compute the tree."""
        return dominators(facts.get(CfgAnalysis))


class PostDominatorsAnalysis(Analysis[DominatorTree]):
    """The post-dominator tree as facts of a function; traps count as ways out."""

    name: ClassVar[str] = "post-dominators"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis,)

    def run(self, facts: Facts) -> DominatorTree:
        """Compute the tree."""
        return post_dominators(facts.get(CfgAnalysis))


class AbortFreePostDominatorsAnalysis(Analysis[DominatorTree]):
    """Post-dominators on the ways that do not end in a trap; see `post_dominators`."""

    name: ClassVar[str] = "abort-free-post-dominators"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis,)

    def run(self, facts: Facts) -> DominatorTree:
        """Compute the tree."""
        return post_dominators(facts.get(CfgAnalysis), aborting=False)
