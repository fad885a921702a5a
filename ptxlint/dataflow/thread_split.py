"""Whether a value is sure to differ between threads that should act together.

Uniformity analysis tells what *may* differ. Here a launch is looked for in which it does: for
every CTA size that the kernel allows, values of the parameters with which two threads of a CTA,
or two lanes of a warp, compute different values. What depends on memory is never sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.thread_expression import WARP, Launch, ThreadExpression
from ptxlint.facts import Facts

_SIZES: Final = (32, 64, 128, 256, 512, 1024)
_LARGE: Final = 1 << 20


class Split(NamedTuple):
    """Two threads of one CTA, by linear index, in which a value differs.

    The launch is one CTA of `threads` threads with these parameter values; without any, all
    launches do.
    """

    threads: int
    values: dict[str, int]
    first: int
    second: int

    def describe(self) -> str:
        """The launch in words: `n = 65 in a CTA of 128 threads`."""
        named = [f"{name} = {value}" for name, value in self.values.items()]
        size = f"a CTA of {self.threads} threads"
        return f"{', '.join(named)} in {size}" if named else size


def find_split(
    expression: ThreadExpression, facts: Facts, *, lanes: bool, mask: int = 0xFFFFFFFF
) -> Split | None:
    """A launch in which the value differs within a CTA, or with `lanes` within one warp.

    `mask` says which lanes of each warp count. None if for some allowed CTA size there may be no
    such launch, or the shape of the CTA decides and is not known.
    """
    shapes = _shapes(expression, facts)
    found: Split | None = None
    for extents in shapes:
        split = _split_at(expression, extents, lanes, mask)
        if split is None:
            return None
        if found is None or split.threads == 128:
            found = split
    return found


def _shapes(expression: ThreadExpression, facts: Facts) -> list[tuple[int, int, int]]:
    """The CTA shapes to consider: the one that is fixed, else all usual sizes along x."""
    fixed = facts.function.directives.get("reqntid")
    if fixed:
        x, y, z, *_ = (*(int(extent) for extent in fixed), 1, 1)
        return [(x, y, z)]
    metadata = facts.metadata
    if metadata is not None and metadata.num_warps:
        return [(WARP * metadata.num_warps, 1, 1)]
    if not expression.is_linear():
        return []
    most = facts.max_threads() or _SIZES[-1]
    return [(size, 1, 1) for size in _SIZES if size <= most]


def _split_at(
    expression: ThreadExpression, extents: tuple[int, int, int], lanes: bool, mask: int
) -> Split | None:
    threads = extents[0] * extents[1] * extents[2]
    groups = list(_groups(threads, lanes, mask))
    for values in _assignments(expression.parameters, threads):
        launch = Launch(extents, values)
        for group in groups:
            found = _difference(lambda t: expression.value(launch, t), group)  # noqa: B023
            if found is not None:
                return Split(threads, values, *found)
    return None


def _groups(threads: int, lanes: bool, mask: int) -> Iterator[list[int]]:
    """Threads to compare with each other: the lanes of some warps, or of the CTA a selection."""
    last = (threads - 1) // WARP * WARP
    if lanes:
        for start in dict.fromkeys((0, threads // 2 // WARP * WARP, last)):
            group = range(start, min(start + WARP, threads))
            yield [t for t in group if mask >> (t - start) & 1]
    else:
        every = dict.fromkeys([*range(min(WARP, threads)), *range(0, threads, WARP), threads - 1])
        yield list(every)


def _assignments(parameters: tuple[str, ...], threads: int) -> Iterator[dict[str, int]]:
    """Values of the parameters to try; few, since most conditions split at the first."""
    if not parameters:
        yield {}
        return
    half = threads // 2 + 1
    candidates = (half, threads + half, 1, 2, 17, 0, threads - 1, 100)
    for value in candidates:
        yield dict.fromkeys(parameters, value)
    if len(parameters) > 1:
        for rest in (_LARGE, 1):
            for name in parameters[:4]:
                for value in candidates[:4]:
                    yield {**dict.fromkeys(parameters, rest), name: value}


def _difference(value: Callable[[int], int], group: list[int]) -> tuple[int, int] | None:
    if not group:
        return None
    first = value(group[0])
    for thread in group[1:]:
        if value(thread) != first:
            return group[0], thread
    return None
