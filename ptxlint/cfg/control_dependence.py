"""Control dependence: which branches decide whether a block runs.

Ferrante, Ottenstein and Warren, "The Program Dependence Graph and Its Use in Optimization" (1987):
block b depends on the edge (a, s) if b post-dominates s, and a is not always followed by b.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import (
    AbortFreePostDominatorsAnalysis,
    DominatorTree,
    PostDominatorsAnalysis,
)
from ptxlint.cfg.graph import EXIT, Cfg, Condition
from ptxlint.facts import Analysis, Facts


class Dependence(NamedTuple):
    """The edge from `branch` to `target` (block indices) that decides."""

    branch: int
    target: int


class ControlDependence:
    """For each block the edges that it depends on."""

    __slots__ = ("_cfg", "_direct")

    def __init__(self, cfg: Cfg, post_dominators: DominatorTree) -> None:
        self._cfg = cfg
        self._direct = _direct_dependences(cfg, post_dominators)

    def direct(self, block: int) -> list[Dependence]:
        """The edges that the block itself depends on; a loop's block may depend on its own."""
        return self._direct[block]

    def closure(self, block: int) -> list[Dependence]:
        """All edges that decide, directly or through other branches, in order of discovery."""
        return self.closure_of((block,))

    def closure_of(self, blocks: Iterable[int]) -> list[Dependence]:
        """All edges that decide whether any of these blocks runs."""
        direct = self._direct
        out: dict[Dependence, None] = {}
        seen: set[int] = set(blocks)
        work = list(seen)
        while work:
            for dependence in direct[work.pop()]:
                out[dependence] = None
                if dependence.branch not in seen:
                    seen.add(dependence.branch)
                    work.append(dependence.branch)
        return list(out)

    def condition(self, dependence: Dependence) -> Condition | None:
        """The predicate and its value on an edge; None for an indirect branch."""
        return self._cfg.edge_condition(dependence.branch, dependence.target)

    def is_unconditional(self, block: int) -> bool:
        """True if every run of the function that ends passes the block."""
        return not self._direct[block]


def _direct_dependences(cfg: Cfg, tree: DominatorTree) -> list[list[Dependence]]:
    out: list[list[Dependence]] = [[] for _ in cfg.blocks]
    idom = tree.idom
    for index in cfg.rpo:
        block = cfg.blocks[index]
        # The way out that an endless loop is given is no branch: only real edges decide.
        if len(block.succs) + bool(block.leave) < 2:
            continue
        stop = idom[index]
        for target in block.succs:
            dependence = Dependence(index, target)
            runner = target
            while runner not in (stop, EXIT):
                out[runner].append(dependence)
                runner = idom[runner]
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
