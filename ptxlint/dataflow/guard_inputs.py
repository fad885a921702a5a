"""Which inputs of a kernel the guard of an access depends on for certain, so that no assembler can
drop them.

A conjunct depends on an input if there are values of all others for which it holds with one value
of that input and not with another: such values are looked for, and found by evaluating. Where the
access happens, then, is another matter for another value of the input. A conjunct with a value
that the analysis does not see into tells nothing, since that may follow any input.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.guards import Conjunct, Conjunction, GuardsAnalysis
from ptxlint.dataflow.inputs import MEMORY, THREAD, Input, parameter_addresses
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr

_TRIED: Final = (0, 1, 2, 1 << 10, 1 << 20, (1 << 31) - 1, -1, -(1 << 31))
"""Values of an input that are put into a conjunct."""
_OTHERS: Final = (0, 1, 64)
"""Values of all other inputs meanwhile."""
_LEAVES: Final = ("param", "load", "ctaid", "bit", "index", "nctaid", "ntid", "symbol")
_MADE: Final = ("fdiv", "div", "min", "max")
_AXES: Final = "xyz"


class Point(NamedTuple):
    """Values of what conditions are made of: those that are set, by the number of the atom, and
    one for all others, or the nearest that they can have; the bits of the thread's number are 0."""

    settings: tuple[tuple[int, int], ...]
    others: int


class Condition(NamedTuple):
    """`polynomial >= 0`, or `polynomial != 0`, and the atoms at the bottom of it, by number."""

    polynomial: Polynomial
    is_unequal: bool
    leaves: dict[int, Atom]

    def value(self, point: Point) -> int | None:
        """The polynomial at a point; None where it divides by zero."""
        leaves = self.leaves.values()
        others = point.others
        values = {a.number: 0 if a.kind == "bit" else _within(a, others) for a in leaves}
        values.update(point.settings)
        try:
            return _value(self.polynomial, values)
        except ZeroDivisionError:
            return None

    def holds(self, point: Point) -> bool | None:
        """Whether it is so at a point; None where it divides by zero."""
        value = self.value(point)
        if value is None:
            return None
        return value != 0 if self.is_unequal else value >= 0


class GuardInputs:
    """The inputs that guards in one function of PTX depend on. `arch` is the one that it is
    assembled for, which says where parameters lie."""

    def __init__(self, facts: Facts, arch: str) -> None:
        self._guards = facts.get(GuardsAnalysis)
        self._addresses = parameter_addresses(facts.function, arch)
        self._threads = _threads_along_x(facts.function)
        self._cfg, self._loops = facts.get(CfgAnalysis), facts.get(LoopsAnalysis)
        self._conditions: dict[Conjunct, Condition | None] = {}
        self._known: dict[Conjunct, frozenset[Input]] = {}

    def of(self, instr: Instr) -> frozenset[Input] | None:
        """What the guard of an instruction depends on, as far as that is certain; None if it never
        runs."""
        by_conjunct = self.by_conjunct(instr)
        if by_conjunct is None:
            return None
        return frozenset().union(*by_conjunct.values())

    def by_conjunct(self, instr: Instr) -> dict[Conjunct, frozenset[Input]] | None:
        """The same for each conjunct that depends on something for certain."""
        guard: Conjunction | None = self._guards.of_instr(instr)
        if guard is None:
            return None
        block = self._cfg.block_of[instr.index]
        found: dict[Conjunct, frozenset[Input]] = {}
        for conjunct in guard:
            if conjunct not in self._conditions:
                self._conditions[conjunct] = _condition(conjunct)
            condition = self._conditions[conjunct]
            if condition is not None and self._is_of_this_round(condition, block):
                if conjunct not in self._known:
                    self._known[conjunct] = frozenset(self._find(condition))
                found[conjunct] = self._known[conjunct]
        return found

    def _is_of_this_round(self, condition: Condition, block: int) -> bool:
        """True if all that a condition speaks of is of loops around the block. How many rounds a
        loop has had when it is left follows from inputs; and what it loaded in its last one, as a
        lock that was waited for, keeps nothing from running."""
        for atom in condition.leaves.values():
            loop = self._loops.innermost(atom.block) if atom.block >= 0 else None
            while loop is not None:
                if not self._loops.contains(loop, block):
                    return False
                loop = loop.parent
        return True

    def _find(self, condition: Condition) -> set[Input]:
        found = set()
        for atom in condition.leaves.values():
            named = self._input(atom)
            if named is not None and named not in found and self._failing(condition, atom):
                found.add(named)
        return found

    def failing(self, instr: Instr, known: frozenset[Input]) -> set[Point]:
        """Points at which an instruction does not run, and runs or not by inputs beyond those that
        are known: at another value of such an input what fails here holds."""
        found: set[Point] = set()
        for conjunct, inputs in (self.by_conjunct(instr) or {}).items():
            condition = self._conditions[conjunct]
            if condition is not None and not inputs <= known:
                for atom in condition.leaves.values():
                    if self._input(atom) not in (None, *known):
                        found.update(self._failing(condition, atom))
        return found

    def fails(self, instr: Instr, point: Point) -> bool:
        """True if it is certain that an instruction does not run at a point."""
        by_conjunct = self.by_conjunct(instr)
        if by_conjunct is None:
            return True
        conditions = [self._conditions[conjunct] for conjunct in by_conjunct]
        return any(c is not None and c.holds(point) is False for c in conditions)

    def _input(self, atom: Atom) -> Input | None:
        if atom.kind == "param":
            name, offset = atom.data
            start = self._addresses.get(name)
            return None if start is None else Input("param", start + offset)
        if atom.kind == "ctaid":
            return Input("ctaid", _AXES.index(str(atom.data[0])))
        if atom.kind == "load":
            return MEMORY
        return THREAD if atom.kind == "bit" else None

    def _failing(self, condition: Condition, atom: Atom) -> list[Point]:
        """Points at which the condition fails that holds for another value of the atom; of a bit of
        the thread's number, for another thread."""
        if atom.kind == "bit":
            return [*self._other_threads(condition), *_parted(condition, atom)]
        found = []
        for others in _OTHERS:
            tried = [Point(((atom.number, _within(atom, v)),), others) for v in _TRIED]
            found += _told_apart(condition, tried)
        return found

    def _other_threads(self, condition: Condition) -> list[Point]:
        """The threads for which a condition of nothing but their number fails, if it holds for
        others."""
        leaves = condition.leaves.values()
        if self._threads is None or any(a.kind != "bit" or a.data[0] != "x" for a in leaves):
            return []
        threads = [
            Point(tuple((a.number, tid >> a.data[1] & 1) for a in leaves), 0)
            for tid in range(self._threads)
        ]
        return _told_apart(condition, threads)


def _told_apart(condition: Condition, points: list[Point]) -> list[Point]:
    """Those of some points at which a condition fails, if it holds at others."""
    holds = [condition.holds(point) for point in points]
    return (
        [p for p, held in zip(points, holds, strict=True) if held is False] if True in holds else []
    )


def _threads_along_x(fn: Function) -> int | None:
    """How many threads a CTA has, if they are numbered along one axis and are fixed."""
    extents = [int(extent) for extent in fn.directives.get("reqntid", ())]
    return extents[0] if extents and all(extent == 1 for extent in extents[1:]) else None


def _condition(conjunct: Conjunct) -> Condition | None:
    """A conjunct as a condition on its leaves; None if it cannot be seen into."""
    poly, is_unequal = conjunct.polynomial, False
    if poly is None:
        if conjunct.key[0] != "unequal":
            return None
        one, other = conjunct.key[1:3]
        poly, is_unequal = one - other, True
    inside = {number for atom in poly.atoms() for number in atom.inner}
    atoms = [poly.table.atoms[number] for number in inside]
    if any(a.kind not in _LEAVES and a.kind not in _MADE for a in atoms):
        return None
    leaves = {a.number: a for a in sorted(atoms, key=lambda a: a.number) if a.kind in _LEAVES}
    return Condition(poly, is_unequal, leaves)


def _parted(condition: Condition, bit: Atom) -> list[Point]:
    """Points at which a condition fails by a bit of the thread's number alone: `n - tid >= 1` does
    for tid 1, and not for tid 0, at `n = 1`."""
    found = []
    for atom in condition.leaves.values():
        if atom.kind in ("param", "load", "ctaid"):
            for others in _OTHERS:
                for value in _near(condition, atom, others):
                    known = (atom.number, value)
                    both = [Point((known, (bit.number, b)), others) for b in (0, 1)]
                    found += _told_apart(condition, both)
    return found


def _near(condition: Condition, atom: Atom, others: int) -> list[int]:
    """Values of an atom near that at which a condition changes, if it is linear in the atom."""
    start, following = (condition.value(Point(((atom.number, v),), others)) for v in (0, 1))
    if start is None or following is None or start == following:
        return []
    near = -start // (following - start)
    return [value for value in (near - 1, near, near + 1) if atom.low <= value <= atom.high]


def _within(atom: Atom, value: int) -> int:
    return max(atom.low, min(atom.high, value))


def _value(poly: Polynomial, values: dict[int, int]) -> int:
    """A polynomial at these values of its leaves; `values` keeps those of what is made of them."""
    total = 0
    for monomial, coefficient in poly.terms.items():
        product = coefficient
        for number in monomial:
            if number not in values:
                values[number] = _made(poly.table.atoms[number], values)
            product *= values[number]
        total += product
    return total


def _made(atom: Atom, values: dict[int, int]) -> int:
    one, other = atom.data
    left = _value(one, values)
    if atom.kind == "fdiv":
        return left // int(other)
    right = _value(other, values)
    if atom.kind == "div":
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return min(left, right) if atom.kind == "min" else max(left, right)


__all__ = ["GuardInputs"]
