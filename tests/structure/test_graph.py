"""Graphs held against each other: the order of blocks does not matter, the number of steps does."""

from __future__ import annotations

import random

from ptxlint.cfg.build import build
from ptxlint.cfg.graph import Cfg
from ptxlint.frontends.ptx import parse
from ptxlint.structure.graph import isomorphism


def graph(edges: dict[int, list[int]], order: list[int]) -> Cfg:
    """A graph whose blocks stand in this order in the text; block 0 is first."""
    lines = [
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p;"
    ]
    for at in order:
        succs = edges[at]
        lines.append(f"B{at}:")
        lines += [f"  @%p bra B{to};" for to in succs[:-1]]
        lines.append(f"  bra B{succs[-1]};" if succs else "  ret;")
    return build(parse("\n".join([*lines, "}"])).kernels()[0])


DIAMOND = {0: [1, 2], 1: [3], 2: [4], 3: [5, 1], 4: [5], 5: []}


def test_the_order_of_the_text_does_not_matter() -> None:
    first = graph(DIAMOND, [0, 1, 2, 3, 4, 5])
    for seed in range(6):
        order = [1, 2, 3, 4, 5]
        random.Random(seed).shuffle(order)
        found = isomorphism(first, graph(DIAMOND, [0, *order]))
        assert found.verdict == "same"
        assert sorted(found.blocks) == sorted(found.blocks.values()) == sorted(first.reachable)


def test_another_edge_is_told() -> None:
    other = {**DIAMOND, 3: [5, 2]}
    assert isomorphism(
        graph(DIAMOND, [0, 1, 2, 3, 4, 5]), graph(other, [0, 1, 2, 3, 4, 5])
    ).verdict == ("different")


def test_another_entry_or_way_out_is_told() -> None:
    ring = {0: [1], 1: [2], 2: [0, 3], 3: []}
    other = {0: [1], 1: [2, 3], 2: [0], 3: []}
    assert isomorphism(graph(ring, [0, 1, 2, 3]), graph(other, [0, 1, 2, 3])).verdict == "different"


def test_a_search_that_takes_too_long_is_not_decided() -> None:
    # Two regular graphs that hashes do not tell apart, with their blocks in another order.
    edges = {at: [(at + 1) % 24, (at + 5) % 24] for at in range(24)}
    order = list(range(1, 24))
    random.Random(1).shuffle(order)
    first, second = graph(edges, list(range(24))), graph(edges, [0, *order])
    found = isomorphism(first, second, most_steps=2)
    assert found.verdict == "undecided"
    assert found.steps == 3
    assert isomorphism(first, second).verdict == "same"
