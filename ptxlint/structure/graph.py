"""Whether two control-flow graphs are the same, and which block is which.

First the blocks are tried in the order of the text, which settles nearly all builds of one kernel;
then Weisfeiler-Lehman hashes tell most that differ apart; then an exact search, with its steps
counted (networkx: VF2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from warnings import catch_warnings, simplefilter

from ptxlint.cfg.graph import EXIT, Cfg

if TYPE_CHECKING:
    from networkx import DiGraph

MOST_STEPS: Final = 20_000
"""So many pairs of blocks are tried before a comparison is given up as not decided."""


class Isomorphism(NamedTuple):
    """`verdict` is `same`, `different` or `undecided`; `blocks` maps the blocks of the first graph
    to those of the second if they are the same. `steps` were counted."""

    verdict: str
    blocks: dict[int, int]
    steps: int


def isomorphism(first: Cfg, second: Cfg, most_steps: int = MOST_STEPS) -> Isomorphism:
    """Compare the reachable parts of two graphs: entries, edges, ways out."""
    ours, theirs = sorted(first.reachable), sorted(second.reachable)
    if len(ours) != len(theirs):
        return Isomorphism("different", {}, 0)
    in_order = dict(zip(ours, theirs, strict=True))
    if all(_edges(first, a, in_order) == _edges(second, b) for a, b in in_order.items()):
        return Isomorphism("same", in_order, len(ours))
    return _searched(_drawn(first), _drawn(second), most_steps)


def parting(first: Cfg, second: Cfg) -> tuple[int, int] | None:
    """The first two blocks at which two graphs part, walked side by side from their entries; None
    if the walk meets no difference."""
    there: dict[int, int] = {first.entry: second.entry}
    back: dict[int, int] = {second.entry: first.entry}
    waiting = [(first.entry, second.entry)]
    for ours, theirs in waiting:
        mine, other = first.blocks[ours], second.blocks[theirs]
        if len(mine.succs) != len(other.succs) or mine.leave != other.leave:
            return ours, theirs
        for a, b in zip(mine.succs, other.succs, strict=True):
            if a not in there and b not in back:
                there[a], back[b] = b, a
                waiting.append((a, b))
            elif there.get(a) != b or back.get(b) != a:
                return ours, theirs
    return None


def _edges(cfg: Cfg, block: int, renamed: dict[int, int] | None = None) -> tuple[Any, ...]:
    """Where a block leads to, and how it leaves."""
    succs = cfg.blocks[block].succs
    named = succs if renamed is None else [renamed.get(at, EXIT) for at in succs]
    return sorted(named), cfg.blocks[block].leave


def _drawn(cfg: Cfg) -> DiGraph:
    from networkx import DiGraph

    graph = DiGraph()
    for block in cfg.reachable:
        kind = f"{cfg.blocks[block].leave}/{block == cfg.entry}"
        graph.add_node(block, kind=kind)
        graph.add_edges_from((block, at) for at in cfg.blocks[block].succs)
    return graph


class _TooLongError(Exception):
    """More steps than are allowed."""


def _searched(first: DiGraph, second: DiGraph, most_steps: int) -> Isomorphism:
    from networkx import weisfeiler_lehman_graph_hash as hashed
    from networkx.algorithms.isomorphism import DiGraphMatcher, categorical_node_match

    with catch_warnings():
        # networkx says in each release that hashes of another release are others.
        simplefilter("ignore", UserWarning)
        is_alike = hashed(first, node_attr="kind") == hashed(second, node_attr="kind")
    if not is_alike:
        return Isomorphism("different", {}, first.number_of_nodes())
    steps = 0

    class Counted(DiGraphMatcher):  # type: ignore[misc, unused-ignore]
        """A matcher that gives up."""

        def semantic_feasibility(self, one: Any, other: Any) -> bool:
            """Count, then ask as usual."""
            nonlocal steps
            steps += 1
            if steps > most_steps:
                raise _TooLongError
            return bool(super().semantic_feasibility(one, other))

    matcher = Counted(first, second, node_match=categorical_node_match("kind", ""))
    try:
        same = matcher.is_isomorphic()
    except (_TooLongError, RecursionError):
        return Isomorphism("undecided", {}, steps)
    if not same:
        return Isomorphism("different", {}, steps)
    return Isomorphism("same", dict(matcher.mapping), steps)


__all__ = ["MOST_STEPS", "Isomorphism", "isomorphism", "parting"]
