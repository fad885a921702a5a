"""Strongly connected components (Tarjan 1972), without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def strongly_connected(
    nodes: Iterable[int], succs: Callable[[int], Iterable[int]]
) -> list[list[int]]:
    """The components of the graph over `nodes`, each before those that lead into it.

    `succs` may name nodes outside of `nodes`: those edges are ignored.
    """
    # 0: not seen; a number: on the stack; -1: done or outside.
    low = dict.fromkeys(nodes, 0)
    components: list[list[int]] = []
    stack: list[int] = []
    counter = 0
    for root in list(low):
        if low[root]:
            continue
        counter += 1
        low[root] = counter
        stack.append(root)
        walk: list[tuple[int, int, Iterator[int]]] = [(root, counter, iter(succs(root)))]
        while walk:
            node, number, rest = walk[-1]
            for target in rest:
                seen = low.get(target, -1)
                if seen == 0:
                    counter += 1
                    low[target] = counter
                    stack.append(target)
                    walk.append((target, counter, iter(succs(target))))
                    break
                if 0 < seen < low[node]:
                    low[node] = seen
            else:
                walk.pop()
                if low[node] == number:
                    components.append(_pop_component(stack, node, low))
                elif low[node] < low[walk[-1][0]]:
                    low[walk[-1][0]] = low[node]
    return components


def _pop_component(stack: list[int], root: int, low: dict[int, int]) -> list[int]:
    """Take the component of `root` off the stack and mark it done."""
    component: list[int] = []
    while True:
        node = stack.pop()
        low[node] = -1
        component.append(node)
        if node == root:
            return component
