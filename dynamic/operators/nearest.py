"""Sizes that an operator takes together, next to some that it may not take.

`Operator.where` says yes or no and no more: that a size must be a power of two, or two sizes equal,
is found by asking. Candidates for each size are the one that is wanted, powers of two, multiples,
the other sizes, halves and doubles of them; sets of candidates are asked for in the order of how
far they are from what is wanted. Where none is taken, what people say is typical is moved toward
what is wanted, size by size.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from ptxlint.dynamic.operators.spec import Dim, Dims

ASKED: Final = 400
"""Sets of sizes that are asked for at most."""
_MULTIPLES: Final = (64, 32, 16, 8, 4, 2)


def nearest(
    dims: Mapping[str, Dim], wanted: Dims, takes: Callable[[Dims], bool]
) -> dict[str, int] | None:
    """The sizes themselves if `takes` says yes to them, else others; None if none were found.

    The same for the same answers.
    """
    candidates = {name: _candidates(name, dims, wanted) for name in dims}
    for sizes in islice(_by_distance(candidates), ASKED):
        if takes(sizes):
            return sizes
    for start in _starts(dims):
        if takes(start):
            return _toward(start, candidates, takes)
    return None


def _candidates(name: str, dims: Mapping[str, Dim], wanted: Dims) -> list[int]:
    """For one size, the most promising first: those that are no such size are left out."""
    dim, size = dims[name], wanted[name]
    above = 1 << max(size - 1, 0).bit_length()
    others = [wanted[other] for other in dims if other != name]
    related = [r for other in others for r in (2 * other, other // 2)]
    larger = [other for other in others if other > size]
    whole = [-(-size // step) * step for step in _MULTIPLES]
    last = [size + 1, size - 1, above // 4, dim.typical, dim.low, dim.high]
    every = (size, above, *larger, above // 2, *whole, *related, *last)
    return [n for n in dict.fromkeys(every) if n and dim.allows(n)] or [size]


def _by_distance(candidates: Mapping[str, list[int]]) -> Iterator[dict[str, int]]:
    """Sets of sizes, those first whose places in the lists add up to less."""
    names = list(candidates)
    start = (0,) * len(names)
    waiting = [(0, start)]
    seen = {start}
    while waiting:
        _, places = heapq.heappop(waiting)
        yield {name: candidates[name][at] for name, at in zip(names, places, strict=True)}
        for number, name in enumerate(names):
            further = (*places[:number], places[number] + 1, *places[number + 1 :])
            if further not in seen and further[number] < len(candidates[name]):
                seen.add(further)
                heapq.heappush(waiting, (sum(further), further))


def _starts(dims: Mapping[str, Dim]) -> Iterator[dict[str, int]]:
    """Sizes that may go together: typical ones, the least, the greatest, powers of two."""
    low = {name: dim.nearest(dim.low) or dim.low for name, dim in dims.items()}
    high = {name: dim.nearest(dim.high) or dim.high for name, dim in dims.items()}
    yield {name: dim.typical or low[name] for name, dim in dims.items()}
    yield {name: dim.typical or high[name] for name, dim in dims.items()}
    yield low
    yield high
    yield {name: 1 << (size.bit_length() - 1) for name, size in high.items() if size}


def _toward(
    start: Dims, candidates: Mapping[str, list[int]], takes: Callable[[Dims], bool]
) -> dict[str, int]:
    """Sizes that are taken, each in turn made the most promising one that is."""
    sizes = dict(start)
    for name, wanted in candidates.items():
        for size in wanted:
            if size == sizes[name]:
                break
            if takes({**sizes, name: size}):
                sizes[name] = size
                break
    return sizes


__all__ = ["ASKED", "nearest"]
