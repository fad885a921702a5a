"""The threads of some CTAs of a launch, side by side in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ptxlint.launch.binding import Bound
from ptxlint.launch.warps import WARP
from ptxlint.launch.words import Word, constant
from ptxlint.launches import Extent

_MOST_CTAS: Final = 1 << 30
_AXES: Final = {"x": 0, "y": 1, "z": 2}


class Lanes:
    """The threads of some CTAs of a launch: CTAs along the first axis, threads along the second."""

    def __init__(self, bound: Bound, ctas: Sequence[Extent]) -> None:
        width, height, depth = bound.block
        self.ctas = list(ctas)
        self.threads = width * height * depth
        self.count = len(self.ctas) * self.threads
        self._bound = bound
        thread = np.arange(self.threads, dtype=np.uint64)[None, :]
        self._thread = thread
        self._tid = (
            thread % np.uint64(width),
            thread // np.uint64(width) % np.uint64(height),
            thread // np.uint64(width * height),
        )
        places = np.array(self.ctas, dtype=np.uint64).reshape(-1, 3)
        self._ctaid = tuple(places[:, at : at + 1] for at in range(3))
        wide, high, _ = bound.grid
        every = [(x + wide * (y + high * z)) % _MOST_CTAS for x, y, z in self.ctas]
        self.numbers = np.array(every, dtype=np.int64)
        """Of each CTA, in the order of the grid; those of a larger grid repeat."""

    def thread(self, number: int) -> Extent:
        """The place of a thread in its CTA."""
        width, height, _ = self._bound.block
        return number % width, number // width % height, number // (width * height)

    def special(self, name: str) -> Word | None:
        """What a special register holds; None if that is not followed."""
        base, _, axis = name.partition(".")
        at = _AXES.get(axis)
        if at is not None:
            if base == "%tid":
                return Word(self._tid[at])
            if base == "%ctaid":
                return Word(self._ctaid[at])
            extents = {"%ntid": self._bound.block, "%nctaid": self._bound.grid}.get(base)
            return None if extents is None else constant(extents[at])
        if name == "%laneid":
            return Word(self._thread % np.uint64(WARP))
        return constant(WARP) if name == "WARP_SZ" else None


__all__ = ["Lanes"]
