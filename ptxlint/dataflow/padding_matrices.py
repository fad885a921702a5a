"""Padding in factors that `wgmma` reads from shared memory.

Such a factor is one element for all of its rows and places along k: its coordinates are the bits of
an index into the matrix, in place of a thread's. What was stored with a condition has one over that
index, and `carry` puts it in terms of the threads that hold the result.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.fragments import Element, in_memory
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements, Way, whole_ways
from ptxlint.ir.instruction import Instr

_GROUP: Final = 7
"""The bits of the thread index below those that tell warpgroups apart."""


class Passed(NamedTuple):
    """What comes one way: the condition where it was stored, and the numbers of what becomes of
    it in the matrix."""

    place: int
    condition: Condition
    became: tuple[int, ...]


class Factor:
    """A factor in shared memory. `lanes` are the bits of its index that its coordinates use."""

    __slots__ = ("bits", "element", "lanes", "passed", "put", "ways")

    def __init__(self, element: Element, lanes: int, ways: list[Way]) -> None:
        self.element = element
        self.lanes = lanes
        self.ways = ways
        self.put: list[int] | None = None
        """By way: the marks of what was stored."""
        self.bits = 0
        """The marks of the element."""
        self.passed: list[Passed] = []


class Factors:
    """The factors in shared memory of one function's products."""

    def __init__(self, movements: Movements, conditions: Conditions) -> None:
        self._movements = movements
        self._conditions = conditions
        self._known: dict[tuple[int, int], Factor | None] = {}
        self._maps: dict[LaneMap, LaneMap] = {}
        self._through: dict[tuple[int, int, int], Condition | None] = {}

    def of(self, instr: Instr, side: int) -> Factor | None:
        """The factor on a side (0 first, 1 second) of `wgmma`; None if it is not known how it was
        stored. It is one object, whichever marks it has by now."""
        key = instr.index, side
        if key not in self._known:
            self._known[key] = self._find(instr, side)
        return self._known[key]

    def _find(self, instr: Instr, side: int) -> Factor | None:
        arrivals = self._movements.matrix_arrivals(instr, 1 + side)
        width = self._conditions.width
        if arrivals is None or width is None:
            return None
        ways = whole_ways([list(part) for part in arrivals.ways])
        if ways is None:
            return None
        above = max(0, width - _GROUP)
        element, lanes = in_memory(side, arrivals.rows, arrivals.depth, above)
        maps = self._maps
        # Coordinates are kept, one object each, so that identity tells them apart.
        first, second = (maps.setdefault(m, m) for m in (element.first, element.second))
        return Factor(element._replace(first=first, second=second), lanes, ways)

    def through(self, way: Way, condition: Condition) -> Condition | None:
        """A stored element's condition over the matrix's index; None if it is of other ones."""
        key = way.route.shape, way.route.start & condition.lanes, condition.number
        if key not in self._through:
            found = self._movements.on_matrix(way.route, condition)
            there = None
            if found is not None:
                there, to = found
                there = there if to is None else self._conditions.moved(there, to)
            self._through[key] = there
        return self._through[key]


__all__ = ["Factor", "Factors", "Passed"]
