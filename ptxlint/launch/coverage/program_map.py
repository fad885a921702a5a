"""Which programs a tuple of numbers belongs to, by working it out for every program.

Maps from programs to tiles that no digits describe, such as groups of which the last one is
smaller, are looked at one program at a time, up to `MOST_PROGRAMS`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.launch.under import UnderLaunch
from ptxlint.launches import Extent

MOST_PROGRAMS: Final = 1 << 20
_EXACT: Final = 1 << 62
"""Below this, sums of two fit 64 bits."""
_FOLLOWED: Final = frozenset({"ctaid", "fdiv", "div", "min", "max"})


class ProgramMap(NamedTuple):
    """Some numbers of each program: `programs` along the first axis of `numbers`."""

    programs: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def alike(self, most: int) -> list[tuple[Extent, Extent]]:
        """Pairs of programs with the same numbers, at most so many; none if all differ."""
        if len(self.programs) < 2:
            return []
        order = np.lexsort(self.numbers.T[::-1])
        ordered = self.numbers[order]
        same = np.nonzero((ordered[1:] == ordered[:-1]).all(axis=1))[0]
        # The first of those that are alike comes first: the order is stable.
        pairs = sorted((int(order[at]), int(order[at + 1])) for at in same)
        return [(self._program(a), self._program(b)) for a, b in pairs[:most]]

    def first_missing(
        self, counts: Sequence[int], limits: Sequence[tuple[Sequence[int], int]]
    ) -> tuple[tuple[int, ...] | None, int]:
        """The first combination of numbers, each below its count, that no program has, None if all
        are had; and how many there are.

        For each of `limits` a combination counts only if its sum with these weights is below a
        number.
        """
        shape = tuple(counts)
        wanted = np.ones(shape, dtype=bool)
        for weights, below in limits:
            total = np.zeros((1,) * len(shape), dtype=np.int64)
            for at, (weight, count) in enumerate(zip(weights, shape, strict=True)):
                sides = [count if axis == at else 1 for axis in range(len(shape))]
                total = total + (np.arange(count) * weight).reshape(sides)
            wanted &= total < below
        inside = ((self.numbers >= 0) & (self.numbers < np.asarray(shape))).all(axis=1)
        missing = wanted.copy()
        missing[tuple(self.numbers[inside].T)] = False
        tiles = int(wanted.sum())
        if not missing.any():
            return None, tiles
        return tuple(int(n) for n in np.unravel_index(int(missing.argmax()), shape)), tiles

    def _program(self, at: int) -> Extent:
        x, y, z = (int(number) for number in self.programs[at])
        return x, y, z


def is_of_program(number: Polynomial) -> bool:
    """True if nothing but the program's number decides about a number."""
    return all(atom.kind in _FOLLOWED for atom in number.all_atoms())


def program_map(
    under: UnderLaunch, numbers: Sequence[Polynomial], axes: Collection[str]
) -> ProgramMap | None:
    """The numbers of all programs that differ along some axes, the others at 0.

    None if there are too many programs, or a number is not one of the program alone.
    """
    grid = under.bound.grid
    extents = [extent if name in axes else 1 for name, extent in zip("xyz", grid, strict=True)]
    count = extents[0] * extents[1] * extents[2]
    if count > MOST_PROGRAMS or not numbers or not all(map(is_of_program, numbers)):
        return None
    at = np.arange(count, dtype=np.int64)
    programs = np.stack(
        (at % extents[0], at // extents[0] % extents[1], at // (extents[0] * extents[1])), axis=1
    )
    work = _Columns(programs)
    columns = [work.of(number) for number in numbers]
    if any(column is None for column in columns):
        return None
    return ProgramMap(programs, np.stack([c for c in columns if c is not None], axis=1))


class _Columns:
    """Numbers of many programs at once; None for what may not fit 64 bits."""

    def __init__(self, programs: NDArray[np.int64]) -> None:
        self._programs = programs
        self._known: dict[int, NDArray[np.int64] | None] = {}

    def of(self, poly: Polynomial) -> NDArray[np.int64] | None:
        # What an atom is made of has smaller numbers: so no atom waits for another one.
        for atom in poly.all_atoms():
            if atom.number not in self._known:
                self._known[atom.number] = self._atom(atom)
        return self._sum(poly)

    def _sum(self, poly: Polynomial) -> NDArray[np.int64] | None:
        atoms = poly.table.atoms
        total = np.zeros(len(self._programs), dtype=np.int64)
        bound = 0
        for monomial, scale in poly.terms.items():
            bound += abs(scale) * prod(_size(atoms[number]) for number in monomial)
            if bound >= _EXACT:
                return None
            term = np.full_like(total, scale)
            for number in monomial:
                factor = self._known[number]
                if factor is None:
                    return None
                term *= factor
            total += term
        return total

    def _atom(self, atom: Atom) -> NDArray[np.int64] | None:
        if atom.kind == "ctaid":
            return self._programs[:, "xyz".index(atom.data[0])]
        left = self._sum(atom.data[0])
        right = self._sum(atom.data[1]) if isinstance(atom.data[1], Polynomial) else None
        if isinstance(atom.data[1], int):
            right = np.full(len(self._programs), atom.data[1], dtype=np.int64)
        if left is None or right is None:
            return None
        if atom.kind in ("min", "max"):
            return np.minimum(left, right) if atom.kind == "min" else np.maximum(left, right)
        if (right == 0).any():
            return None
        if atom.kind == "fdiv":
            return left // right
        quotient = np.abs(left) // np.abs(right)
        return np.where((left < 0) == (right < 0), quotient, -quotient)


def _size(atom: Atom) -> int:
    return max(abs(atom.low), abs(atom.high))


__all__ = ["MOST_PROGRAMS", "ProgramMap", "is_of_program", "program_map"]
