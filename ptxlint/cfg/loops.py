"""Natural loops, their nesting, and the cycles that are no natural loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.facts import Analysis, Facts


class Loop:
    """A natural loop: the blocks that reach one of its latches without passing the header.

    `latches` are the sources of its back edges; loops that share a header are one loop. `depth`
    is 1 for an outermost loop. `own_blocks` are in no inner loop, the header first.
    """

    __slots__ = ("children", "depth", "header", "index", "latches", "own_blocks", "parent")

    def __init__(self, index: int, header: int, latches: list[int]) -> None:
        self.index = index
        self.header = header
        self.latches = latches
        self.parent: Loop | None = None
        self.children: list[Loop] = []
        self.depth = 1
        self.own_blocks: list[int] = []

    @property
    def blocks(self) -> list[int]:
        """All blocks of the loop, inner loops included, in ascending order."""
        return sorted(b for loop in self.descendants() for b in loop.own_blocks)

    def descendants(self) -> Iterator[Loop]:
        """This loop and all inside it, each before its children."""
        stack = [self]
        while stack:
            loop = stack.pop()
            yield loop
            stack.extend(reversed(loop.children))

    def __repr__(self) -> str:
        return f"Loop(header {self.header}, latches {self.latches}, depth {self.depth})"


class IrreducibleRegion(NamedTuple):
    """A cycle of blocks with several entries: control can get in without passing one header."""

    blocks: tuple[int, ...]
    entries: tuple[int, ...]


class LoopForest:
    """All loops of a function. `loops` lists each before those inside it."""

    __slots__ = ("_cfg", "_innermost", "irreducible", "loops")

    def __init__(self, cfg: Cfg, dominators: DominatorTree) -> None:
        self._cfg = cfg
        self._innermost: list[Loop | None] = [None] * len(cfg.blocks)
        back_edges = _back_edges(cfg, dominators)
        self.loops = self._find(back_edges)
        self.irreducible = _irreducible_regions(cfg, back_edges)

    def innermost(self, block: int) -> Loop | None:
        """The innermost natural loop around a block."""
        return self._innermost[block]

    def depth(self, block: int) -> int:
        """How many natural loops are around a block."""
        loop = self._innermost[block]
        return loop.depth if loop is not None else 0

    def contains(self, loop: Loop, block: int) -> bool:
        """True if the block belongs to the loop or to one inside it."""
        inner = self._innermost[block]
        while inner is not None and inner.depth > loop.depth:
            inner = inner.parent
        return inner is loop

    def in_cycle(self, block: int) -> bool:
        """True if control can come back to the block: in a loop or an irreducible region."""
        return self._innermost[block] is not None or any(
            block in region.blocks for region in self.irreducible
        )

    def with_header(self, block: int) -> Loop | None:
        """The loop that has this block as its header."""
        loop = self._innermost[block]
        return loop if loop is not None and loop.header == block else None

    def exits(self, loop: Loop) -> list[tuple[int, int]]:
        """The edges that leave the loop, as (block inside, block outside or `EXIT`)."""
        cfg = self._cfg
        inside = set(loop.blocks)
        return [
            (index, target)
            for index in sorted(inside)
            for target in cfg.edges_from(cfg.blocks[index])
            if target == EXIT or target not in inside
        ]

    def preheader(self, loop: Loop) -> int | None:
        """The one block outside that leads to the header and nowhere else; None if there is none.

        The entry block has a way in that is no block, so a loop around it has no preheader.
        """
        blocks = self._cfg.blocks
        outside = [p for p in blocks[loop.header].preds if not self.contains(loop, p)]
        if len(outside) != 1 or loop.header == self._cfg.entry:
            return None
        block = blocks[outside[0]]
        return outside[0] if len(block.succs) == 1 and not block.leave else None

    def _find(self, back_edges: dict[int, list[int]]) -> list[Loop]:
        """Find the loops from the inside out, by the position of their headers."""
        position = self._cfg.position
        headers = sorted(back_edges, key=position.__getitem__)
        loops = [Loop(i, header, back_edges[header]) for i, header in enumerate(headers)]
        outer = list(range(len(loops)))
        for loop in reversed(loops):
            self._claim(loop, loops, outer)
        for index in self._cfg.rpo:
            inner = self._innermost[index]
            if inner is not None:
                inner.own_blocks.append(index)
        for loop in loops:
            if loop.parent is not None:
                loop.parent.children.append(loop)
                loop.depth = loop.parent.depth + 1
        return loops

    def _claim(self, loop: Loop, loops: list[Loop], outer: list[int]) -> None:
        """Walk back from the latches: take free blocks, and whole loops found before.

        `outer` leads from a loop's index towards that of the outermost loop found around it.
        """
        blocks, innermost = self._cfg.blocks, self._innermost
        innermost[loop.header] = loop
        work = list(loop.latches)
        while work:
            index = work.pop()
            owner = innermost[index]
            if owner is None:
                innermost[index] = loop
                work += blocks[index].preds
                continue
            root = _root(outer, owner.index)
            if root != loop.index:
                outer[root] = loop.index
                loops[root].parent = loop
                work += blocks[loops[root].header].preds


def _root(outer: list[int], index: int) -> int:
    """Follow `outer` to its end, halving the path."""
    while outer[index] != index:
        outer[index] = outer[outer[index]]
        index = outer[index]
    return index


def _back_edges(cfg: Cfg, dominators: DominatorTree) -> dict[int, list[int]]:
    """Header to the sources of the edges that lead back to it."""
    out: dict[int, list[int]] = {}
    dominates, position, blocks = dominators.dominates, cfg.position, cfg.blocks
    for index in cfg.rpo:
        for target in blocks[index].succs:
            if position[target] <= position[index] and dominates(target, index):
                out.setdefault(target, []).append(index)
    return out


def _irreducible_regions(cfg: Cfg, back_edges: dict[int, list[int]]) -> list[IrreducibleRegion]:
    """The cycles that are left when the back edges of natural loops are taken away."""
    back = {(source, header) for header, latches in back_edges.items() for source in latches}
    position, blocks = cfg.position, cfg.blocks
    retreating = any(
        position[target] <= position[index] and (index, target) not in back
        for index in cfg.rpo
        for target in blocks[index].succs
    )
    if not retreating:
        return []

    def forward(index: int) -> list[int]:
        return [t for t in blocks[index].succs if (index, t) not in back]

    regions: list[IrreducibleRegion] = []
    for component in strongly_connected(cfg.rpo, forward):
        if len(component) > 1:
            inside = set(component)
            entries = sorted(
                index
                for index in component
                if index == cfg.entry
                or any(p not in inside and (p, index) not in back for p in blocks[index].preds)
            )
            regions.append(IrreducibleRegion(tuple(sorted(component)), tuple(entries)))
    regions.sort(key=lambda region: region.entries)
    return regions


class LoopsAnalysis(Analysis[LoopForest]):
    """The loops as facts of a function."""

    name: ClassVar[str] = "loops"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, DominatorsAnalysis)

    def run(self, facts: Facts) -> LoopForest:
        """Find the loops and the irreducible regions."""
        return LoopForest(facts.get(CfgAnalysis), facts.get(DominatorsAnalysis))
