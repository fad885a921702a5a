"""Whether threads that should act together are sure to part.

Uniformity analysis tells which conditions *may* differ. Here a launch is looked for in which they
do: for every CTA size that the kernel allows, values of the parameters with which one thread comes
to a place and another one of its CTA, or of its warp, does not. What depends on memory is never
sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from ptxlint.dataflow.thread_expression import WARP, Launch, ThreadExpression
from ptxlint.facts import Facts

Condition: TypeAlias = tuple[ThreadExpression, int]
"""An expression and the value that it must have."""


class Route(NamedTuple):
    """What leads a thread to a place by way of a branch.

    `always` must hold on every way to the place, `before` on the way to the branch, and `turn` at
    the branch; `turn` is None if it is among `always`. Who does not turn does not come.
    """

    always: list[Condition]
    before: list[Condition]
    turn: Condition | None

    def conditions(self) -> list[Condition]:
        """All that a thread which comes fulfils."""
        return [*self.always, *self.before, *([] if self.turn is None else [self.turn])]

    def comes(self, launch: Launch, thread: int) -> bool | None:
        """True if a thread comes this way, False if it does not come at all, None if neither."""
        if not _all(self.always, launch, thread):
            return False
        if not _all(self.before, launch, thread):
            return None
        return self.turn is None or _all([self.turn], launch, thread)


_SIZES: Final = (32, 64, 128, 256, 512, 1024)
_USUAL: Final = 128
_LARGE: Final = 1 << 20


class Split(NamedTuple):
    """A launch in which one thread comes to a place and another does not.

    The launch is one CTA of `threads` threads with these parameter values; without any, all
    launches do. Threads are linear indices.
    """

    threads: int
    values: dict[str, int]
    comes: int
    stays_away: int
    warp: tuple[int, ...]
    """The threads of the first one's warp that come."""

    def describe(self) -> str:
        """The launch in words: `n = 65 in a CTA of 128 threads`."""
        named = [f"{name} = {value}" for name, value in self.values.items()]
        size = f"a CTA of {self.threads} threads"
        return f"{', '.join(named)} in {size}" if named else size


def find_split(route: Route, facts: Facts, *, lanes: bool, mask: int = 0xFFFFFFFF) -> Split | None:
    """A launch in which threads of a CTA part, or with `lanes` those of one warp.

    `mask` says which lanes of each warp count. None if for some allowed CTA size there may be no
    such launch, or the shape of the CTA decides and is not known.
    """
    found: Split | None = None
    for extents in _shapes(route.conditions(), facts):
        split = _split_at(route, extents, lanes, mask)
        if split is None:
            return None
        if found is None or split.threads == _USUAL:
            found = split
    return found


def _shapes(conditions: list[Condition], facts: Facts) -> list[tuple[int, int, int]]:
    """The CTA shapes to consider: the one that is fixed, else all usual sizes along x."""
    fixed = facts.function.directives.get("reqntid")
    if fixed:
        x, y, z, *_ = (*(int(extent) for extent in fixed), 1, 1)
        return [(x, y, z)]
    metadata = facts.metadata
    if metadata is not None and metadata.num_warps:
        return [(WARP * metadata.num_warps, 1, 1)]
    if not all(expression.is_linear() for expression, _ in conditions):
        return []
    most = facts.max_threads() or _SIZES[-1]
    return [(size, 1, 1) for size in _SIZES if size <= most]


def _split_at(route: Route, extents: tuple[int, int, int], lanes: bool, mask: int) -> Split | None:
    threads = extents[0] * extents[1] * extents[2]
    groups = list(_groups(threads, lanes, mask))
    conditions = route.conditions()
    names = list(dict.fromkeys(name for e, _ in conditions for name in e.parameters))
    common = [pair for pair in conditions if not pair[0].is_per_thread()]
    if len(common) == len(conditions):
        return None
    for values in _assignments(names, threads):
        launch = Launch(extents, values)
        if not _all(common, launch, 0):
            continue
        for group in groups:
            parted = _part(route, launch, group)
            if parted is not None:
                start = parted[0] // WARP * WARP
                warp = range(start, min(start + WARP, threads))
                coming = tuple(t for t in warp if route.comes(launch, t))
                return Split(threads, values, *parted, coming)
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


def _assignments(parameters: list[str], threads: int) -> Iterator[dict[str, int]]:
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


def _all(conditions: list[Condition], launch: Launch, thread: int) -> bool:
    return all(expression.value(launch, thread) == wanted for expression, wanted in conditions)


def _part(route: Route, launch: Launch, group: list[int]) -> tuple[int, int] | None:
    """A thread of the group that comes and one that does not."""
    comes = stays_away = -1
    for thread in group:
        answer = route.comes(launch, thread)
        if answer:
            comes = thread
        elif answer is False:
            stays_away = thread
        if comes >= 0 and stays_away >= 0:
            return comes, stays_away
    return None
