"""Control dependence: which branches decide whether a block runs.

Ferrante, Ottenstein and Warren, "The Program Dependence Graph and Its Use in Optimization" (1987):
block b depends on the edge (a, s) if b post-dominates s, and a is not always followed by b.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import (
    AbortFreePostDominatorsAnalysis,
    DominatorTree,
    PostDominatorsAnalysis,
)
from ptxlint.cfg.graph import Cfg, Condition
from ptxlint.facts import Analysis, Facts


class Dependence(NamedTuple):
    """The edge from `branch` to `target` (block indices) that decides."""

    branch: int
    target: int


class ControlDependence:
    """For each block the edges that it depends on, found when they are asked for.

    A function can have more dependences than blocks times blocks would allow to keep: in a nest
    of loops, an inner block depends on the latch of every loop around it.
    """

    __slots__ = ("_cfg", "_edges", "_found", "_places", "_stops", "_tree")

    def __init__(self, cfg: Cfg, post_dominators: DominatorTree) -> None:
        self._cfg = cfg
        self._tree = post_dominators
        self._edges = _branch_edges(cfg, post_dominators)
        self._places = [post_dominators.interval(edge.target)[0] for edge in self._edges]
        idom, depth = post_dominators.idom, post_dominators.depth
        self._stops = _RangeMinimum([depth[idom[edge.branch]] for edge in self._edges])
        self._found: dict[int, list[Dependence]] = {}

    def direct(self, block: int) -> list[Dependence]:
        """The edges that the block itself depends on; a loop's block may depend on its own."""
        found = self._found.get(block)
        if found is None:
            found = self._found[block] = self._find(block)
        return found

    def _find(self, block: int) -> list[Dependence]:
        # On an edge (a, s) depend the nodes of the tree from s up to, but without, a's parent: so
        # s lies below the block, and a's parent above it.
        numbers = self._stops.below(*self._range(block), self._tree.depth[block])
        return sorted(self._edges[number] for number in numbers)

    def _range(self, block: int) -> tuple[int, int]:
        """The numbers of the edges whose target lies below a block of the tree."""
        first, last = self._tree.interval(block)
        return bisect_left(self._places, first), bisect_right(self._places, last)

    def closure(self, block: int) -> list[Dependence]:
        """All edges that decide, directly or through other branches, ascending."""
        return self.closure_of((block,))

    def closure_of(self, blocks: Iterable[int]) -> list[Dependence]:
        """All edges that decide whether any of these blocks runs, ascending."""
        left = self._stops.copy()
        out: list[Dependence] = []
        seen: set[int] = set(blocks)
        work = list(seen)
        while work:
            block = work.pop()
            for number in left.below(*self._range(block), self._tree.depth[block]):
                # An edge that is found is not looked at again.
                left.remove(number)
                out.append(self._edges[number])
                branch = self._edges[number].branch
                if branch not in seen:
                    seen.add(branch)
                    work.append(branch)
        return sorted(out)

    def condition(self, dependence: Dependence) -> Condition | None:
        """The predicate and its value on an edge; None for an indirect branch."""
        return self._cfg.edge_condition(dependence.branch, dependence.target)

    def is_unconditional(self, block: int) -> bool:
        """True if every run of the function that comes to an end passes the block."""
        return self._cfg.position[block] >= 0 and not self.direct(block)


def _branch_edges(cfg: Cfg, tree: DominatorTree) -> list[Dependence]:
    """The edges that a decision chooses, by the place of their target in the tree's preorder."""
    edges = [
        Dependence(index, target)
        for index in cfg.rpo
        # The way out that an endless loop is given is no branch: only real edges decide.
        if len(cfg.blocks[index].succs) + bool(cfg.blocks[index].leave) > 1
        for target in cfg.blocks[index].succs
    ]
    edges.sort(key=lambda edge: tree.interval(edge.target)[0])
    return edges


_LARGE: Final = 1 << 60


class _RangeMinimum:
    """Finds the small values in a range of a list, in time that their number sets."""

    __slots__ = ("_minima", "_width")

    def __init__(self, values: list[int]) -> None:
        # A complete binary tree of minima: node n has the children 2n and 2n+1.
        width = 1
        while width < len(values):
            width *= 2
        minima = [_LARGE] * width + values + [_LARGE] * (width - len(values))
        for node in range(width - 1, 0, -1):
            minima[node] = min(minima[2 * node], minima[2 * node + 1])
        self._width = width
        self._minima = minima

    def copy(self) -> _RangeMinimum:
        """A copy to remove from."""
        other = _RangeMinimum([])
        other._width = self._width
        other._minima = self._minima.copy()
        return other

    def remove(self, index: int) -> None:
        """Make the value at an index larger than all."""
        minima = self._minima
        node = self._width + index
        minima[node] = _LARGE
        while node > 1:
            node //= 2
            minima[node] = min(minima[2 * node], minima[2 * node + 1])

    def below(self, low: int, high: int, bound: int) -> list[int]:
        """The indices from `low` up to `high` (excluded) of values less than `bound`."""
        minima = self._minima
        out: list[int] = []
        stack = [(1, 0, self._width)]
        while stack:
            node, start, end = stack.pop()
            if minima[node] >= bound or end <= low or start >= high:
                continue
            if end - start == 1:
                out.append(start)
                continue
            middle = (start + end) // 2
            stack.append((2 * node, start, middle))
            stack.append((2 * node + 1, middle, end))
        return out


class ControlDependenceAnalysis(Analysis[ControlDependence]):
    """Control dependence as facts of a function; a trap is a way out like any other."""

    name: ClassVar[str] = "control-dependence"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, PostDominatorsAnalysis)

    def run(self, facts: Facts) -> ControlDependence:
        """Compute the direct dependences."""
        return ControlDependence(facts.get(CfgAnalysis), facts.get(PostDominatorsAnalysis))


class AbortFreeControlDependenceAnalysis(Analysis[ControlDependence]):
    """Control dependence on the ways that do not end in a trap.

    What stands behind a failed assertion is not conditional on it: the failure ends the grid.
    """

    name: ClassVar[str] = "abort-free-control-dependence"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        CfgAnalysis,
        AbortFreePostDominatorsAnalysis,
    )

    def run(self, facts: Facts) -> ControlDependence:
        """Compute the direct dependences."""
        return ControlDependence(facts.get(CfgAnalysis), facts.get(AbortFreePostDominatorsAnalysis))
