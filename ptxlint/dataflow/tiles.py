"""Tiles: how many indices a guard lets through at most, and for which size some are masked off.

A guard `size - index - 1 >= 0` compares a parameter with an index that is made of lanes, constants
and what moves from tile to tile: a CTA number or an iteration, times the tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple, TypeAlias

from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.polynomial import Atom, Monomial, Polynomial


class Tile(NamedTuple):
    """The parameter that a guard compares with, how many indices a whole tile has, and of how many
    one comparison decides (those of a vector access)."""

    parameter: str
    size: int
    step: int = 1


_Family: TypeAlias = "frozenset[tuple[Monomial, int]]"
"""What the guards of one tile share: all terms but lanes and constants."""


class Tiles:
    """The tiles of the guards of one function."""

    def __init__(self, conjuncts: Iterable[Conjunct]) -> None:
        self._spans: dict[_Family, int] = {}
        self._steps: dict[_Family, int] = {}
        for conjunct in conjuncts:
            poly = conjunct.polynomial
            if poly is not None:
                # `size - index - 1`: the greatest index is the least value.
                lanes, family = _lanes(poly), _family(poly)
                span = -lanes.range()[0]
                self._spans[family] = max(span, self._spans.get(family, 0))
                step = gcd(lanes.gcd(), lanes.constant + 1)
                self._steps[family] = gcd(step, self._steps.get(family, 0))

    def of(self, conjunct: Conjunct) -> Tile | None:
        """The tile of a guard; None if it compares no index with a parameter, or has no tile.

        What moves the index tells the size. Else it is the number of indices, rounded up to a
        power of two: a vector access checks only its first element.
        """
        poly = conjunct.polynomial
        bound = None if poly is None else _bound(poly)
        if poly is None or bound is None:
            return None
        family = _family(poly)
        size = max(_strides(poly), default=0)
        if not size:
            if not _lanes(poly).gcd():
                return None
            span = self._spans.get(family, -_lanes(poly).range()[0])
            size = 1 << max(0, span - 1).bit_length()
        step = self._steps.get(family, 1)
        if not 1 < size < 1 << 20 or size <= step:
            return None
        return Tile(str(bound.data[0]), size, max(1, step))


def _bound(poly: Polynomial) -> Atom | None:
    """The parameter that the index must stay below."""
    for atom in sorted(poly.atoms(), key=lambda a: a.number):
        if atom.kind == "param" and poly.coefficient(atom) == 1:
            return atom
    return None


def _is_lane(poly: Polynomial, monomial: Monomial) -> bool:
    return all(poly.table.atoms[n].kind == "bit" for n in monomial)


def _lanes(poly: Polynomial) -> Polynomial:
    """The terms made of lanes and constants."""
    return Polynomial(poly.table, {m: c for m, c in poly.terms.items() if _is_lane(poly, m)})


def _family(poly: Polynomial) -> _Family:
    return frozenset((m, c) for m, c in poly.terms.items() if not _is_lane(poly, m))


def _strides(poly: Polynomial) -> list[int]:
    """By how much the index moves with what is no lane and no parameter."""
    atoms = poly.table.atoms
    return [
        -coefficient
        for monomial, coefficient in poly.terms.items()
        if coefficient < -1
        and not _is_lane(poly, monomial)
        and not any(atoms[n].kind == "param" for n in monomial)
    ]
