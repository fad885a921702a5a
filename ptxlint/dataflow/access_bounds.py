"""Accesses under a bound on the index that they go by, and how far past the extent it lets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    Limit,
    Use,
    core_of,
    lanes_of,
    same_rounds,
    split_bound,
)
from ptxlint.dataflow.guards import Conjunction
from ptxlint.dataflow.polynomial import Monomial, Polynomial
from ptxlint.facts import Analysis, Facts


class Place(NamedTuple):
    """What accesses must have in common to be compared: the array, the tile, and the extent."""

    base: str
    core: Polynomial
    scale: Monomial
    element: int
    extent: Polynomial


class Bounded(NamedTuple):
    """An access under a bound: `lanes + shift + where the tile starts <= extent + margin`."""

    access: Access
    lanes: Polynomial
    shift: int
    margin: int
    elements: int
    """How many elements it touches."""


class Goes(NamedTuple):
    """The bounds in a guard on indices that an access goes by, and how many conjuncts of the guard
    compare lanes with an extent."""

    bounds: list[tuple[Limit, Use]]
    compared: int


class AccessBounds:
    """The bounds of accesses, by address and guard."""

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._bounds: dict[int, list[tuple[Place, Bounded]]] = {}
        self._known: dict[tuple[Polynomial, Conjunction], Goes] = {}

    def goes(self, access: Access) -> Goes:
        """What the guard of an access compares, in the order of its conjuncts."""
        key = (access.form, access.guard or frozenset())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compared(access)
        return found

    def _compared(self, access: Access) -> Goes:
        limits = [limit for limit in map(split_bound, access.guard or ()) if limit is not None]
        found = [(limit, self._accesses.use(access, limit.compared)) for limit in limits]
        compared = sum(1 for limit in limits if lanes_of(limit.compared).terms)
        return Goes([(limit, use) for limit, use in found if use is not None], compared)

    def of(self, access: Access) -> list[tuple[Place, Bounded]]:
        """The bounds of one of the function's accesses on indices that it goes by."""
        found = self._bounds.get(id(access))
        if found is None:
            found = self._bounds[id(access)] = list(self._find(access))
        return found

    def _find(self, access: Access) -> Iterator[tuple[Place, Bounded]]:
        for limit, use in self.goes(access).bounds:
            shift, rest = divmod(access.offset.terms.get(use.scale, 0), use.element)
            if rest:
                continue
            core = same_rounds(core_of(limit.compared))
            count = 1 if use.scale else max(1, access.width // use.element)
            margin = limit.bound.constant + shift
            yield (
                Place(access.base, core, use.scale, use.element, limit.extent),
                Bounded(access, lanes_of(limit.compared), shift, margin, count),
            )


class AccessBoundsAnalysis(Analysis[AccessBounds]):
    """Bounds of accesses; they are found when asked for."""

    name: ClassVar[str] = "access-bounds"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (AccessAnalysis,)

    def run(self, facts: Facts) -> AccessBounds:
        """Nothing is looked into yet."""
        return AccessBounds(facts.get(AccessAnalysis))


__all__ = ["AccessBounds", "AccessBoundsAnalysis", "Bounded", "Goes", "Place"]
