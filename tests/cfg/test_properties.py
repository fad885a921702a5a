"""Dominance, control dependence and loops against their definitions, on random graphs."""

from __future__ import annotations

from collections.abc import Iterable

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import build
from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.control_dependence import ControlDependence, Dependence
from ptxlint.cfg.dominance import ABORTS, NONE, DominatorTree, dominators, post_dominators
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.cfg.loops import LoopForest
from ptxlint.frontends.ptx import parse

KINDS = ("on", "on", "jump", "branch", "branch", "branch", "table", "return", "guarded", "trap")


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """A kernel's body of up to ten labelled blocks with random ends."""
    size = draw(st.integers(1, 10))
    label = st.integers(0, size - 1)
    lines: list[str] = []
    for index in range(size):
        lines.append(f"L{index}: mov.u32 %r1, {index};")
        kind = draw(st.sampled_from(KINDS))
        if kind == "jump":
            lines.append(f"bra L{draw(label)};")
        elif kind == "branch":
            lines.append(f"@%p1 bra L{draw(label)};")
        elif kind == "table":
            targets = draw(st.lists(label, min_size=1, max_size=4))
            lines.append(f"T{index}: .branchtargets {', '.join(f'L{t}' for t in targets)};")
            lines.append(f"brx.idx %r1, T{index};")
        elif kind == "return":
            lines.append("ret;")
        elif kind == "guarded":
            lines.append(draw(st.sampled_from(("@%p1 ret;", "@!%p1 exit;", "@%p1 trap;"))))
        elif kind == "trap":
            lines.append("trap;")
    return "\n".join(lines)


def graph_of(body: str) -> Cfg:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
    module = parse(f"{text}.reg .pred %p<2>;\n.reg .b32 %r<2>;\n{body}\n}}\n")
    assert not module.problems
    return build(module.functions[0])


cfgs = bodies().map(graph_of)
examples = settings(derandomize=True, deadline=None)


def edges_of(cfg: Cfg) -> list[tuple[int, int]]:
    """The edges between reachable blocks, those to EXIT included."""
    return [(i, t) for i in cfg.rpo for t in cfg.edges_from(cfg.blocks[i])]


def reach(start: int, edges: Iterable[tuple[int, int]], without: int | None = None) -> set[int]:
    """The nodes that a path from `start` leads to, not through `without`."""
    succs: dict[int, list[int]] = {}
    for source, target in edges:
        succs.setdefault(source, []).append(target)
    if start == without:
        return set()
    seen, work = {start}, [start]
    while work:
        for target in succs.get(work.pop(), []):
            if target not in seen and target != without:
                seen.add(target)
                work.append(target)
    return seen


def flip(edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(b, a) for a, b in edges]


def with_ways_out(cfg: Cfg, edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add an edge to EXIT from each strongly connected set that is never left."""
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(cfg.rpo)
    added = []
    for component in networkx.strongly_connected_components(graph):
        leaves = any(graph.has_edge(a, b) for a in component for b in set(graph) - component)
        if not leaves and component != {EXIT}:
            added.append((max(component, key=cfg.rpo.index), EXIT))
    return edges + added


def check_tree(tree: DominatorTree, root: int, edges: list[tuple[int, int]], size: int) -> None:
    """Compare a tree with the definition of dominance over these edges."""
    nodes = reach(root, edges)
    everything = [*range(size), EXIT]
    dominated = {a: nodes - reach(root, edges, without=a) for a in nodes}
    for a in everything:
        for b in everything:
            expected = a in nodes and b in dominated[a]
            assert tree.dominates(a, b) == expected, (a, b)
            assert tree.strictly_dominates(a, b) == (expected and a != b)
    for node in everything:
        above = [a for a in nodes if a != node and node in dominated[a]]
        nearest = [a for a in above if all(a in dominated[other] for other in above)]
        assert tree.idom[node] == (nearest[0] if nearest else NONE)
        assert sorted(tree.chain(node)) == sorted([*above, node] if node in nodes else [])
    for node in nodes - {EXIT}:
        expected_frontier = {
            b
            for a, b in edges
            if a in dominated[node] and b in nodes and (b not in dominated[node] or b == node)
        }
        assert set(tree.frontiers[node]) - {EXIT} == expected_frontier - {EXIT}


@examples
@given(cfgs)
def test_dominators(cfg: Cfg) -> None:
    edges = [(a, b) for a, b in edges_of(cfg) if b != EXIT]
    check_tree(dominators(cfg), 0, edges, len(cfg.blocks))


@examples
@given(cfgs)
def test_post_dominators(cfg: Cfg) -> None:
    edges = with_ways_out(cfg, edges_of(cfg))
    check_tree(post_dominators(cfg), EXIT, flip(edges), len(cfg.blocks))


@examples
@given(cfgs)
def test_post_dominators_without_traps(cfg: Cfg) -> None:
    edges = edges_of(cfg)
    full = with_ways_out(cfg, edges)
    good_ends = {a for a, b in full if b == EXIT and cfg.blocks[a].leave not in ABORTS}
    doomed = {i for i in cfg.rpo if not reach(i, edges) & good_ends}
    if 0 not in doomed:
        # From a block that goes on, neither a way to a trap nor a guarded trap counts.
        traps = {(i, EXIT) for i in cfg.rpo if i not in doomed and cfg.blocks[i].leave in ABORTS}
        full = [(a, b) for a, b in full if a in doomed or (b not in doomed and (a, b) not in traps)]
    check_tree(post_dominators(cfg, aborting=False), EXIT, flip(full), len(cfg.blocks))


@examples
@given(cfgs, st.data())
def test_nearest_common_dominator(cfg: Cfg, data: st.DataObject) -> None:
    tree = dominators(cfg)
    chosen = data.draw(st.lists(st.sampled_from(cfg.rpo), min_size=1, max_size=4))
    common = tree.nearest_common(chosen)
    shared = set.intersection(*(set(tree.chain(node)) for node in chosen))
    assert common in shared
    assert all(tree.dominates(other, common) for other in shared)


@examples
@given(cfgs, st.data())
def test_iterated_frontier(cfg: Cfg, data: st.DataObject) -> None:
    tree = dominators(cfg)
    chosen = data.draw(st.sets(st.sampled_from(cfg.rpo)))
    expected: set[int] = set()
    while True:
        more = {f for node in chosen | expected for f in tree.frontiers[node]}
        if more <= expected:
            break
        expected |= more
    assert tree.iterated_frontier(chosen) == expected


@examples
@given(cfgs)
def test_control_dependence(cfg: Cfg) -> None:
    tree = post_dominators(cfg)
    dependence = ControlDependence(cfg, tree)
    edges = edges_of(cfg)
    branching = {a for a in cfg.rpo if sum(x == a for x, _ in edges) > 1}
    for block in range(len(cfg.blocks)):
        expected = {
            (a, s)
            for a, s in edges
            if a in branching
            and s != EXIT
            and tree.dominates(block, s)
            and not tree.strictly_dominates(block, a)
        }
        assert set(dependence.direct(block)) == expected
        closure: set[tuple[int, int]] = set()
        work = [block]
        while work:
            for found in dependence.direct(work.pop()):
                if found not in closure:
                    closure.add(found)
                    work.append(found.branch)
        assert set(dependence.closure(block)) == closure


@examples
@given(cfgs)
def test_natural_loops(cfg: Cfg) -> None:
    tree = dominators(cfg)
    forest = LoopForest(cfg, tree)
    edges = [(a, b) for a, b in edges_of(cfg) if b != EXIT]
    back = [(a, b) for a, b in edges if tree.dominates(b, a)]
    bodies = {
        header: {header}.union(
            *(reach(a, flip(edges), without=header) for a, b in back if b == header)
        )
        for header in {b for _, b in back}
    }
    assert {loop.header: set(loop.blocks) for loop in forest.loops} == bodies
    for loop in forest.loops:
        assert sorted(loop.latches) == sorted(a for a, b in back if b == loop.header)
        inside = bodies[loop.header]
        around = [h for h, body in bodies.items() if inside < body]
        assert loop.depth == len(around) + 1
        parent = min(around, key=lambda h: len(bodies[h]), default=None)
        assert (loop.parent.header if loop.parent else None) == parent
        assert set(forest.exits(loop)) == {
            (a, b) for a, b in edges_of(cfg) if a in inside and b not in inside
        }
        for block in range(len(cfg.blocks)):
            assert forest.contains(loop, block) == (block in inside)
        check_preheader(cfg, forest.preheader(loop), loop.header, inside)
    for block in range(len(cfg.blocks)):
        assert forest.depth(block) == sum(block in body for body in bodies.values())


def check_preheader(cfg: Cfg, preheader: int | None, header: int, inside: set[int]) -> None:
    entering = [p for p in cfg.rpo if header in cfg.blocks[p].succs and p not in inside]
    only = entering[0] if len(entering) == 1 and header != 0 else None
    if only is not None and cfg.edges_from(cfg.blocks[only]) == [header]:
        assert preheader == only
    else:
        assert preheader is None


@examples
@given(cfgs)
def test_irreducible_regions(cfg: Cfg) -> None:
    tree = dominators(cfg)
    forest = LoopForest(cfg, tree)
    edges = [(a, b) for a, b in edges_of(cfg) if b != EXIT]
    graph = networkx.DiGraph([(a, b) for a, b in edges if not tree.dominates(b, a)])
    expected = {
        tuple(sorted(c)) for c in networkx.strongly_connected_components(graph) if len(c) > 1
    }
    assert {region.blocks for region in forest.irreducible} == expected
    for region in forest.irreducible:
        assert len(region.entries) > 1
    cyclic = networkx.DiGraph(edges)
    for block in cfg.rpo:
        on_cycle = any(block in reach(s, edges) for s in cfg.blocks[block].succs)
        assert forest.in_cycle(block) == on_cycle, cyclic.edges


@examples
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30))
def test_strongly_connected(edges: list[tuple[int, int]]) -> None:
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(9))
    found = strongly_connected(range(9), lambda node: graph.successors(node))
    expected = {frozenset(c) for c in networkx.strongly_connected_components(graph)}
    assert {frozenset(c) for c in found} == expected
    place = {node: at for at, component in enumerate(found) for node in component}
    assert all(place[b] <= place[a] for a, b in edges)


def deep_nest(depth: int) -> str:
    """`depth` loops, each inside the last."""
    heads = "".join(f"H{i}: mov.u32 %r1, 1;\n" for i in range(depth))
    return heads + "".join(f"@%p1 bra H{i};\n" for i in reversed(range(depth))) + "ret;"


def early_exits(count: int) -> str:
    return "@%p1 bra END;\nmov.u32 %r1, 1;\n" * count + "END: ret;"


def ladder(count: int) -> str:
    """Two rails: every rung can be entered from both."""
    rungs = "".join(f"A{i}: @%p1 bra B{i + 1};\nB{i}: @%p1 bra A{i + 1};\n" for i in range(count))
    return f"{rungs}A{count}: mov.u32 %r1, 1;\nB{count}: ret;"


@pytest.mark.parametrize(
    "body",
    [deep_nest(5000), early_exits(20000), ladder(5000)],
    ids=["deep nest", "early exits", "ladder"],
)
def test_large_graphs_neither_recurse_nor_explode(body: str) -> None:
    cfg = graph_of(body)
    tree, post = dominators(cfg), post_dominators(cfg)
    last = cfg.exits[-1]
    assert tree.dominates(0, last)
    assert post.dominates(EXIT, 0)
    forest = LoopForest(cfg, tree)
    assert max((loop.depth for loop in forest.loops), default=0) in (0, 5000)
    dependence = ControlDependence(cfg, post)
    middle = len(cfg.blocks) // 2
    assert dependence.closure(middle) == dependence.closure_of([middle])
    assert all(isinstance(d, Dependence) for d in dependence.direct(middle))
