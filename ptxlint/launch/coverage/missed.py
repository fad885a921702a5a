"""Elements of the outputs that no thread of a launch writes, and whether that is a fault.

A launch may well write a part of a tensor: a slot of a cache, one slice of several, the rows of one
sequence; another launch may fill the rest. So an element that is never written is a fault only
where the kernel itself shows that it was meant: its masks let in tiles beyond the grid, or there
are as many programs as tiles and the map from one to the other leaves tiles out; or no mask looks
at the program, the tensor was never written before, and all but a part of the last tile is. Any
other such element of a tensor that was never written is an open question, and of a tensor that was,
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.dataflow.access import Accesses
from ptxlint.launch.binding import Region
from ptxlint.launch.coverage.beyond import first_place, is_let_in, is_masked
from ptxlint.launch.coverage.complete import Found, Missing, completeness
from ptxlint.launch.coverage.conditions import Conditions
from ptxlint.launch.coverage.views import Step, span_of, steps_of
from ptxlint.launch.coverage.writes import Output, Write, Writes, is_from_memory
from ptxlint.launch.under import UnderLaunch

if TYPE_CHECKING:
    from ptxlint.launch.coverage.runs import Runs

_MOST_ELEMENTS: Final = 1 << 22
"""Elements of a tensor that are looked for one by one."""
FRESH: Final = "uninitialised"


class Missed(NamedTuple):
    """The word on one tensor: proved to be written as a whole, refuted by an element that is not
    and should be, or open. `why` tells the cause of what is refuted: `mask`, `map` or `tail`."""

    region: Region
    status: str
    reason: str
    missing: Missing | None = None
    why: str = ""
    store: Write | None = None

    @property
    def is_fresh(self) -> bool:
        """True if nothing wrote to the tensor before."""
        return self.region.tensor.fresh == FRESH


class Looking:
    """Looks at the outputs of one launch. `accesses` are those of the kernel without a launch, with
    masks that no size has decided yet."""

    def __init__(
        self, under: UnderLaunch, writes: Writes, accesses: Accesses, runs: Callable[[], Runs]
    ) -> None:
        self._under = under
        self._writes = writes
        self._accesses = accesses
        self._runs = runs
        self._conditions = Conditions(under)

    def missed(self) -> Iterator[Missed]:
        """The word on each tensor, where there is one."""
        for output in self._writes.outputs:
            for region in output.regions:
                word = self._look_at(output, region)
                if word is not None:
                    yield word

    def _look_at(self, output: Output, region: Region) -> Missed | None:
        is_fresh = region.tensor.fresh == FRESH
        steps = steps_of(region.tensor)
        if steps is None:
            return None
        stores = self._near(output, region, span_of(steps))
        first = stores[0] if stores else output.stores[0]
        found = Found(reason=output.unknown)
        if not output.unknown:
            found = completeness(self._under, region, stores, self._conditions)
            if not found.is_complete and found.missing is None and is_fresh:
                found = self._by_running(region, stores, found)
        if found.is_complete:
            return Missed(region, "proved", "every element is written", store=first)
        missing = found.missing
        if missing is not None:
            missing = self._with_axis(missing, steps, stores)
        if missing is not None and not self._writes.elsewhere and not self._is_updated(output):
            why = self._fault(region, missing, stores)
            if why:
                reason = "an element is written by no thread"
                return Missed(region, "refuted", reason, missing, why, first)
        if not is_fresh:
            return None
        reason = found.reason or "a part is not written by this launch; another one may do so"
        return Missed(region, "open", reason, missing, "", first)

    def _near(self, output: Output, region: Region, span: int) -> list[Write]:
        """The stores that may write to a tensor."""
        found = []
        for store in output.stores:
            low, high = self._under.box(store.guard, (store.place,)).range(store.place)
            if high + store.width > -region.low and low < span - region.low:
                found.append(store)
        return found

    def _is_updated(self, output: Output) -> bool:
        """True if atomic updates may write what stores do not."""
        return bool(output.atomics)

    def _by_running(self, region: Region, stores: list[Write], found: Found) -> Found:
        """Run all threads, if they are few enough."""
        if prod(region.tensor.shape) > _MOST_ELEMENTS:
            return found
        runs = self._runs()
        programs = runs.all_programs()
        if programs is None or runs.is_spent:
            return found
        if any(is_from_memory(self._under, store) for store in stores):
            return found._replace(reason="an address is made of a number that is loaded")
        cells = runs.cells(stores, programs)
        if cells is None:
            return found
        from ptxlint.launch.coverage.cells import first_missing

        offset = first_missing(cells, region)
        if offset is None:
            return Found(is_complete=True)
        return Found(missing=Missing(offset, "cells")) if cells.is_whole else found

    # Faults -------------------------------------------------------------------------------------
    def _fault(self, region: Region, missing: Missing, stores: list[Write]) -> str:
        """What shows that a missing element was meant to be written; "" if nothing does."""
        if missing.by == "map":
            return "map"
        if not missing.axis:
            return ""
        if any(is_let_in(self._accesses, self._under, s, missing.axis) for s in stores):
            return "mask"
        is_bare = not any(is_masked(self._accesses, store, missing.axis) for store in stores)
        is_tail = region.tensor.fresh == FRESH and missing.is_tail and is_bare
        return "tail" if is_tail else ""

    def _with_axis(self, missing: Missing, steps: list[Step], stores: list[Write]) -> Missing:
        """What is missing, with the axis on which the first program beyond the grid would write
        just there: an axis with one program is no digit of a place."""
        if missing.axis:
            return missing
        for axis, extent in zip("xyz", self._under.bound.grid, strict=True):
            for store in stores if extent == 1 else ():
                places = [first_place(self._accesses, self._under, store, axis, n) for n in (0, 1)]
                if places[0] == missing.offset and places[1] is not None:
                    tile = missing.offset - places[1]
                    is_tail = len(steps) == 1 and span_of(steps) - missing.offset < tile
                    return missing._replace(axis=axis, is_tail=is_tail)
        return missing


__all__ = ["FRESH", "Looking", "Missed"]
