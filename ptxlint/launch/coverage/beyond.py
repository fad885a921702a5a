"""What a program would do that the grid does not have."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.access import Access, Accesses
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.launch.coverage.views import span_of, steps_of
from ptxlint.launch.coverage.writes import Write
from ptxlint.launch.under import UnderLaunch

_PARTS: Final = ("fdiv", "div", "min", "max")


def is_let_in(accesses: Accesses, under: UnderLaunch, store: Write, axis: str) -> bool:
    """True if the first program behind the end of an axis would write to the same tensor, and masks
    that look at its number let it.

    `accesses` are those of the kernel alone: under the launch a mask that all programs of the grid
    meet is no more to be seen.
    """
    own = _access_of(accesses, store)
    if own is None or not is_masked(accesses, store, axis):
        return False
    point = _Point(under, axis, 0)
    for conjunct in own.guard or ():
        value = None if conjunct.polynomial is None else point.value(conjunct.polynomial)
        if value is None or value < 0:
            return False
    place, steps = point.place(own, store), steps_of(store.region.tensor)
    return place is not None and steps is not None and 0 <= place < span_of(steps)


def first_place(
    accesses: Accesses, under: UnderLaunch, store: Write, axis: str, before: int = 0
) -> int | None:
    """Where the first thread of the first program behind the end of an axis would write, or of one
    so many programs before, in bytes from the tensor's first element; None if it is not known."""
    own = _access_of(accesses, store)
    return None if own is None else _Point(under, axis, before).place(own, store)


def is_masked(accesses: Accesses, store: Write, axis: str) -> bool:
    """True if a mask looks at the program's number along an axis, or may do so."""
    own = _access_of(accesses, store)
    for conjunct in (own.guard or ()) if own is not None else ():
        poly = conjunct.polynomial
        if poly is None or any(a.kind == "ctaid" and a.data[0] == axis for a in poly.all_atoms()):
            return True
    return False


def _access_of(accesses: Accesses, store: Write) -> Access | None:
    return next((a for a in accesses.in_global if a.instr.index == store.instr.index), None)


class _Point:
    """The first thread of that program, in the first round of all loops."""

    def __init__(self, under: UnderLaunch, axis: str, before: int) -> None:
        self._bound = under.bound
        self._axis = axis
        self._before = before

    def place(self, access: Access, store: Write) -> int | None:
        """Where an access of the kernel goes, in bytes from the tensor that a store writes to."""
        same = self._bound.regions.get(access.base) == store.region
        return self.value(access.offset) if same else None

    def value(self, poly: Polynomial) -> int | None:
        """What a polynomial comes to; None if a part of it is not known."""
        atoms = poly.table.atoms
        total = 0
        for monomial, scale in poly.terms.items():
            for number in monomial:
                found = self._atom(atoms[number])
                if found is None:
                    return None
                scale *= found
            total += scale
        return total

    def _atom(self, atom: Atom) -> int | None:
        kind, data = atom.kind, atom.data
        if kind in ("bit", "index"):
            return 0
        if kind in ("ctaid", "nctaid", "ntid"):
            at = "xyz".index(data[0])
            if kind == "ctaid":
                return self._bound.grid[at] - self._before if data[0] == self._axis else 0
            return (self._bound.grid if kind == "nctaid" else self._bound.block)[at]
        if kind == "param":
            low = atom.low if atom.low > -(1 << 64) else 0
            high = atom.high if atom.high < 1 << 64 else (1 << 64) - 1
            if (high - low + 1) & (high - low):
                return None
            return self._bound.value(data[0], data[1], low, high)
        if kind not in _PARTS:
            return None
        left = self.value(data[0])
        right = self.value(data[1]) if isinstance(data[1], Polynomial) else data[1]
        if left is None or right is None:
            return None
        if kind in ("min", "max"):
            return int(min(left, right) if kind == "min" else max(left, right))
        if not right:
            return None
        if kind == "fdiv":
            return int(left // right)
        return int(abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1)


__all__ = ["first_place", "is_let_in", "is_masked"]
