"""A program folded into few stretches of instructions, so that a picture of it has room."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Stretch(NamedTuple):
    """Instructions `start` up to, not including, `end`; the fewest and the most that are live
    behind one of them."""

    start: int
    end: int
    low: int
    high: int


def folded(
    live: Sequence[int], keys: Sequence[tuple[Hashable, Hashable]], most: int
) -> list[Stretch]:
    """At most `most` stretches (two or more), in order, that cover all instructions.

    A key is the loop and the line of an instruction. Neighbours of one key belong together; of the
    others the shortest are joined first, and those of different loops last. `n log n` steps.
    """
    starts = [at for at in range(len(keys)) if not at or keys[at] != keys[at - 1]]
    ends = [*starts[1:], len(keys)]
    count = len(starts)
    after = [*range(1, count), -1]
    before = list(range(-1, count - 1))
    is_alive = [True] * count
    first_loop = [keys[at][0] for at in starts]
    last_loop = list(first_loop)

    def cost(left: int) -> tuple[bool, int, int, int, int]:
        right = after[left]
        size = ends[right] - starts[left]
        return last_loop[left] != first_loop[right], size, left, starts[left], ends[right]

    heap = [cost(at) for at in range(count - 1)]
    heapq.heapify(heap)
    left_over = count
    while left_over > max(2, most) and heap:
        entry = heapq.heappop(heap)
        left = entry[2]
        if not is_alive[left] or after[left] < 0 or entry != cost(left):
            continue
        right = after[left]
        ends[left], last_loop[left], after[left] = ends[right], last_loop[right], after[right]
        is_alive[right] = False
        left_over -= 1
        if after[left] >= 0:
            before[after[left]] = left
            heapq.heappush(heap, cost(left))
        if before[left] >= 0:
            heapq.heappush(heap, cost(before[left]))
    return [
        Stretch(starts[at], ends[at], min(live[starts[at] : ends[at]]),
                max(live[starts[at] : ends[at]]))
        for at in range(count) if is_alive[at]
    ]  # fmt: skip


__all__ = ["Stretch", "folded"]
