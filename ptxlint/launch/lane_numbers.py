"""Polynomials in the lanes of a run: what a number is meant to be, whatever word it is kept in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.ir.types import BITS
from ptxlint.launch.lanes import Lanes
from ptxlint.launch.machine import Values
from ptxlint.launch.words import Flags, signed, unsigned

_EXACT: Final = 1 << 62
"""Below this, sums of two fit 64 bits; other numbers are kept as Python's."""


WORDS: Final = ("opaque", "load")
"""Atoms that stand for a value of the kernel as it is."""


class Number(NamedTuple):
    """Integers by lane, none further from 0 than `bound`; `known` where, None for everywhere."""

    found: NDArray[Any]
    bound: int
    known: Flags | None = None


class LaneNumbers:
    """Polynomials at one moment of a run."""

    def __init__(
        self,
        lanes: Lanes,
        rounds: dict[int, NDArray[np.int64]],
        values: Values,
        ssa: Ssa,
    ) -> None:
        self._lanes = lanes
        self._rounds = rounds
        self._values = values
        self._ssa = ssa
        self._atoms: dict[int, Number | None] = {}

    def of(self, poly: Polynomial) -> Number | None:
        """What a polynomial comes to; None if a part of it is nowhere known."""
        # What an atom is made of has smaller numbers: so no atom waits for another one.
        for atom in poly.all_atoms():
            self._atom(atom)
        return self._of(poly)

    def _of(self, poly: Polynomial) -> Number | None:
        parts: list[tuple[int, list[Number]]] = []
        bound = 0
        known: Flags | None = None
        for monomial, scale in poly.terms.items():
            factors = []
            size = abs(scale)
            for number in monomial:
                found = self._atom(poly.table.atoms[number])
                if found is None:
                    return None
                factors.append(found)
                size *= max(1, found.bound)
                if found.known is not None:
                    known = found.known if known is None else known & found.known
            bound += size
            parts.append((scale, factors))
        kind: Any = np.int64 if bound < _EXACT else object
        total = np.zeros((1, 1), dtype=kind)
        for scale, factors in parts:
            term = np.full((1, 1), scale, dtype=kind)
            for factor in factors:
                term = term * factor.found.astype(kind, copy=False)
            total = total + term
        return Number(total, bound, known)

    def _atom(self, atom: Atom) -> Number | None:
        if atom.number not in self._atoms:
            self._atoms[atom.number] = self._evaluated(atom)
        return self._atoms[atom.number]

    def _evaluated(self, atom: Atom) -> Number | None:
        kind, data = atom.kind, atom.data
        if atom.low == atom.high:
            size = abs(atom.low)
            dtype: Any = np.int64 if size < _EXACT else object
            return Number(np.full((1, 1), atom.low, dtype=dtype), size)
        if kind in ("bit", "ctaid"):
            word = self._lanes.special(f"%{'tid' if kind == 'bit' else 'ctaid'}.{data[0]}")
            assert word is not None
            found = word.bits.view(np.int64)
            if kind == "bit":
                found = found >> np.int64(data[1]) & np.int64(1)
            return _bounded(found, None)
        if kind == "index":
            rounds = self._rounds.get(data[0])
            return None if rounds is None else _bounded(rounds, None)
        if kind == "select" and len(data) == 3:
            return self._selected(*data)
        if kind in WORDS:
            return self._word(atom)
        return self._of_two(kind, *data) if kind in _TWO_PARTS and len(data) == 2 else None

    def _word(self, atom: Atom) -> Number | None:
        """A value of the kernel, read as the atom's bounds have it."""
        value = int(atom.data[0])
        word = self._values.get(self._ssa.resolve(value))
        width = BITS.get(self._ssa.register[value].type, 0)
        if word is None or not 8 <= width <= 64 or (atom.low >= 0 and width == 64):
            return None
        if atom.low < 0:
            return _bounded(signed(word.bits, width), word.known)
        return _bounded(unsigned(word.bits, width).view(np.int64), word.known)

    def _selected(self, predicate: int, yes: Polynomial, no: Polynomial) -> Number | None:
        word = self._values.get(self._ssa.resolve(predicate))
        a, b = self._of(yes), self._of(no)
        if word is None or a is None or b is None:
            return None
        known = word.known
        for part in (a, b):
            if part.known is not None:
                known = part.known if known is None else known & part.known
        return _bounded(np.where(word.bits != 0, a.found, b.found), known)

    def _of_two(self, kind: str, left: Polynomial, right: Polynomial | int) -> Number | None:
        a = self._of(left)
        b = self._of(right) if isinstance(right, Polynomial) else _whole(right)
        if a is None or b is None:
            return None
        known = a.known
        if b.known is not None:
            known = b.known if known is None else known & b.known
        if kind in ("fdiv", "div"):
            is_zero = b.found == 0
            if is_zero.any():
                known = ~is_zero if known is None else known & ~is_zero
            b = Number(np.where(is_zero, 1, b.found), b.bound)
        wide: Any = np.int64 if max(a.bound, b.bound) < _EXACT else object
        found = _TWO_PARTS[kind](a.found.astype(wide), b.found.astype(wide))
        return _bounded(found, known)


def _whole(number: int) -> Number:
    kind: Any = np.int64 if abs(number) < _EXACT else object
    return Number(np.full((1, 1), number, dtype=kind), abs(number))


def _bounded(found: NDArray[Any], known: Flags | None) -> Number:
    if not found.size:
        return Number(found, 0, known)
    return Number(found, max(abs(int(found.min())), abs(int(found.max()))), known)


def _towards_zero(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    quotient = abs(a) // abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient)


_TWO_PARTS: Final[dict[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]]] = {
    "fdiv": lambda a, b: a // b,
    "div": _towards_zero,
    "min": np.minimum,
    "max": np.maximum,
    # The smaller of two unsigned words, of which a negative number is a large one.
    "umin": lambda a, b: np.where(a < 0, b, np.minimum(a, b)),
}


__all__ = ["WORDS", "LaneNumbers", "Number"]
