"""Threads that show what is not proved to be wrong.

The place where a number is largest under the guards is found on the polynomials; then one thread is
run there with the machine's words. Only what it does counts: a thread whose way or address depends
on what is not known shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.extremes import Box
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.symbolic import Wrap
from ptxlint.launch.binding import Region
from ptxlint.launch.obligations import word
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.walk import Met, Thread, Walk

STEPS: Final = 30_000
"""Instructions that one thread is run for."""
_MOST_RUNS: Final = 60
"""Threads that are run for one launch."""
_ORDER: Final = {"ctaid": 0, "index": 1, "bit": 2}
_WORD: Final = 1 << 64
_TWO_PARTS: Final[dict[str, Callable[[int, int], int]]] = {
    "fdiv": lambda a, b: a // b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "min": min,
    "max": max,
}


class Witness(NamedTuple):
    """A thread that shows it. `kind` is `overflow`, `above`, `below` or `misaligned`; `offset` is
    in bytes from the pointer; `value` is the number that does not fit, for an overflow, and `since`
    the axis and the first number of a CTA along it from which on it does not, if that is so."""

    kind: str
    thread: Thread
    offset: int
    value: int = 0
    wrap: Wrap | None = None
    since: tuple[str, int] | None = None


class Witnesses:
    """Looks for threads of one launch."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._walk = Walk(under.ssa, under.bound)
        self._left = _MOST_RUNS
        self._tried: set[tuple[int, Thread]] = set()

    def of(self, judged: Judged) -> Witness | None:
        """A thread that accesses what it must not by this instruction; None if none is found."""
        region = judged.region
        if region is None or judged.never:
            return None
        for thread in self._threads(judged):
            if self._left <= 0:
                return None
            key = judged.access.instr.index, thread
            if key in self._tried:
                continue
            self._tried.add(key)
            self._left -= 1
            for met in self._walk.meetings(thread, judged.access.instr, STEPS):
                found = self._shown(judged, region, thread, met)
                if found is not None:
                    return found
        return None

    def ctas(self, judged: Judged) -> list[tuple[int, int, int]]:
        """The CTAs in which a number is as large or small as the guards let it be."""
        return [thread.ctaid for thread in self._threads(judged)]

    def _shown(self, judged: Judged, region: Region, thread: Thread, met: Met) -> Witness | None:
        access = judged.access
        width = access.width if met.size < 0 else met.size
        offset = (met.address - region.address + _WORD // 2) % _WORD - _WORD // 2
        is_outside = offset < region.low or offset + width > region.high
        point = _Point(self._under, thread, met)
        meant = point.value(access.offset)
        if meant is not None and not access.base:
            meant -= region.address
        if meant is not None:
            meant = (meant + _WORD // 2) % _WORD - _WORD // 2
        if is_outside or (meant is not None and meant != offset):
            for wrap in judged.wraps:
                value = point.value(wrap.polynomial)
                low, high = word(wrap)
                if value is not None and not low <= value <= high:
                    since = self._since(judged, wrap, upwards=value > high)
                    return Witness("overflow", thread, offset, value, wrap, since)
        if is_outside and (meant is None or meant == offset):
            return Witness("below" if offset < region.low else "above", thread, offset)
        if not judged.aligned and met.address % access.width:
            return Witness("misaligned", thread, offset)
        return None

    def _since(self, judged: Judged, wrap: Wrap, *, upwards: bool) -> tuple[str, int] | None:
        """The axis of the grid along which a number grows most, and where it grows too large."""
        goal = wrap.polynomial if upwards else -wrap.polynomial
        limit = word(wrap)[1] if upwards else -word(wrap)[0]
        grown = [a for a in goal.atoms() if a.kind == "ctaid" and goal.coefficient(a) > 0]
        if not grown:
            return None
        atom = max(grown, key=lambda a: (goal.coefficient(a) * a.high, -a.number))
        box = self._under.box(judged.access.guard or frozenset(), (goal,))
        low, high = 0, atom.high
        while low < high:
            middle = (low + high) // 2
            if box.fixed(atom.number, middle).range(goal)[1] > limit:
                high = middle
            else:
                low = middle + 1
        return str(atom.data[0]), low

    # Where to look ----------------------------------------------------------------------------
    def _threads(self, judged: Judged) -> Iterator[Thread]:
        """Threads in which a number is as large or small as the guards let it be."""
        access = judged.access
        goals: list[Polynomial] = []
        for wrap in judged.wraps[:3]:
            low, high = wrap.polynomial.range()
            least, most = word(wrap)
            goals += [wrap.polynomial] if high > most else []
            goals += [-wrap.polynomial] if low < least else []
        goals += [] if judged.above else [access.offset]
        goals += [] if judged.below else [-access.offset]
        guard = access.guard or frozenset()
        for goal in goals:
            yield self._extreme(self._under.box(guard, (goal,)), goal)
            # A guard that wraps with the number lets through what it seems to hold back.
            yield self._extreme(self._under.box(frozenset(), (goal,)), goal)
        if not judged.aligned:
            grid, block = self._under.bound.grid, self._under.bound.block
            for at in (0, 1):
                for lane in (0, 1):
                    yield Thread((min(at, grid[0] - 1), 0, 0), (min(lane, block[0] - 1), 0, 0))

    def _extreme(self, box: Box, goal: Polynomial) -> Thread:
        """The thread that makes a number as large as it can be, one atom after the other."""
        wanted: dict[int, Atom] = {}
        for poly in (goal, *box.facts):
            for atom in poly.all_atoms():
                if atom.kind in _ORDER:
                    wanted[atom.number] = atom
        order = sorted(
            wanted.values(),
            key=lambda a: (_ORDER[a.kind], -abs(goal.coefficient(a)), -a.number),
        )
        fixed: dict[int, int] = {}
        for atom in order:
            low, high = box.of_atom(atom.number)
            if low >= high or box.is_empty:
                fixed[atom.number] = low
                continue
            value = _best(box, goal, atom, low, high)
            fixed[atom.number] = value
            box = box.fixed(atom.number, value)
        ctaid, tid = [0, 0, 0], [0, 0, 0]
        for number, value in fixed.items():
            atom = wanted[number]
            axis = "xyz".index(atom.data[0]) if atom.kind != "index" else 0
            if atom.kind == "ctaid":
                ctaid[axis] = value
            elif atom.kind == "bit" and value:
                tid[axis] |= 1 << atom.data[1]
        block, grid = self._under.bound.block, self._under.bound.grid
        return Thread(
            _within(ctaid, grid),
            _within(tid, block),
        )


def _within(place: list[int], extent: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = (max(0, min(at, size - 1)) for at, size in zip(place, extent, strict=True))
    return x, y, z


def _best(box: Box, goal: Polynomial, atom: Atom, low: int, high: int) -> int:
    """The value of an atom that lets a number be largest and keeps to the facts."""
    ends: list[tuple[int, int, int]] = []
    for rank, value in enumerate((high, low)):
        trial = box.fixed(atom.number, value)
        if not trial.is_empty:
            ends.append((trial.range(goal)[1], -rank, value))
    if ends:
        return max(ends)[2]
    # Neither end can be: somewhere between.
    return (low + high) // 2


class _Point:
    """Polynomials at one thread, in the rounds that its loops are in."""

    def __init__(self, under: UnderLaunch, thread: Thread, met: Met) -> None:
        self._under = under
        self._thread = thread
        self._met = met
        self._known: dict[int, int | None] = {}

    def value(self, poly: Polynomial) -> int | None:
        """What a polynomial comes to; None if a part of it is not known."""
        total = 0
        atoms = poly.table.atoms
        for monomial, scale in poly.terms.items():
            for number in monomial:
                found = self._atom(atoms[number])
                if found is None:
                    return None
                scale *= found
            total += scale
        return total

    def _atom(self, atom: Atom) -> int | None:
        # Quotients lie in each other no deeper than atoms may be made of atoms.
        if atom.number not in self._known:
            self._known[atom.number] = self._evaluated(atom)
        return self._known[atom.number]

    def _evaluated(self, atom: Atom) -> int | None:
        kind, data = atom.kind, atom.data
        if atom.low == atom.high:
            return atom.low
        if kind == "bit":
            axis, bit = data
            return self._thread.tid["xyz".index(axis)] >> int(bit) & 1
        if kind == "ctaid":
            return self._thread.ctaid["xyz".index(data[0])]
        if kind == "index":
            return self._met.rounds.get(data[0])
        if kind == "select":
            truth = self._met.values.get(data[0])
            return None if truth is None else self.value(data[1 if truth else 2])
        if kind not in _TWO_PARTS:
            return None
        a: int | None = self.value(data[0])
        b: int | None = self.value(data[1]) if isinstance(data[1], Polynomial) else data[1]
        if a is None or b is None or (kind == "div" and not b):
            return None
        return _TWO_PARTS[kind](a, b)


__all__ = ["Witness", "Witnesses"]
