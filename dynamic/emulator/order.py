"""In which order parted lanes take their turns, so that they meet again as early as they can.

A weak topological order (F. Bourdoncle, "Efficient chaotic iteration strategies with widenings",
1993): a block comes after those that lead to it, and the blocks of a loop stand together, before
what follows the loop. Lanes that are behind in this order go first; so those that left a loop wait
for the others, and the arms of a branch are both done before the block that they lead to.
"""

from __future__ import annotations

from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.graph import Cfg


def ranks(cfg: Cfg) -> list[int]:
    """By block, its place in the order; unreachable blocks come last."""
    order: list[int] = []
    _arrange(cfg, list(cfg.rpo), cfg.entry, order)
    out = [len(order)] * len(cfg.blocks)
    for place, block in enumerate(order):
        out[block] = place
    return out


def _arrange(cfg: Cfg, nodes: list[int], entry: int, out: list[int]) -> None:
    """Append blocks in order. Works on a list of open parts instead of recursing."""
    work: list[tuple[list[int], int]] = [(nodes, entry)]
    while work:
        part, head = work.pop()
        if len(part) == 1:
            out.append(part[0])
            continue
        inside = set(part)

        def onward(block: int, head: int = head, inside: set[int] = inside) -> list[int]:
            return [s for s in cfg.blocks[block].succs if s in inside and s != head]

        # Components come with those that are led to first: what is pushed last is done first.
        for component in strongly_connected(part, onward):
            position = cfg.position
            first = head if head in component else min(component, key=position.__getitem__)
            work.append((component, first))


__all__ = ["ranks"]
