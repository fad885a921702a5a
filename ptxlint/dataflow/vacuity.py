"""Conditions that hold nowhere, or only where nothing comes of it.

An element may lie beyond a bound in a round that no launch comes to where it is used: then there is
no such padding. Or it does so only in CTAs that lie beyond the bound as a whole, which mask off
everything that they would store. How far the grid goes is not known, but then it is no matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.conditions import Condition, Rounds
from ptxlint.dataflow.guards import Guards
from ptxlint.dataflow.inequalities import contradict
from ptxlint.dataflow.lane_map import split
from ptxlint.dataflow.polynomial import INFINITY, AtomTable, Polynomial
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.standing import Standing
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.facts import Budget
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of

_NOWHERE: Final = "no element that is used lies beyond this bound"
_IDLE: Final = "a block with such padding stores nothing"
VACUOUS: Final = frozenset({_NOWHERE, _IDLE})
"""The reasons for which a condition is of no matter."""
_OWN_MEMORY: Final = frozenset({"shared", "local", "tmem"})
_MOST_GUARDS: Final = 12
"""So many kinds of guards of stores are told apart."""

_Facts = tuple[Polynomial, ...]


class Vacuity:
    """Answers about the conditions of one function."""

    def __init__(
        self,
        ssa: Ssa,
        loops: LoopForest,
        guards: Guards,
        standing: Standing,
        uniformity: Uniformity,
        width: int | None,
        steps: Budget,
    ) -> None:
        self._ssa = ssa
        self._loops = loops
        self._guards = guards
        self._standing = standing
        self._uniformity = uniformity
        self._width = width
        self._steps = steps
        self._facts: dict[int, _Facts] = {}
        self._stores: list[_Facts] | None = None
        self._found: dict[tuple[Polynomial, Rounds, int], str] = {}

    def reason(self, condition: Condition, block: int) -> str:
        """Why nothing comes of a condition on what is used in a block, "" if that is not known."""
        rest, to = condition.rest, condition.map
        if rest is None or to is None or self._width is None:
            return ""
        beyond = rest + ((to.constant | to.moving) - 1)
        key = beyond, condition.rounds, block
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._find(beyond, condition.rounds, block)
        return found

    def _find(self, beyond: Polynomial, rounds: Rounds, block: int) -> str:
        known = [beyond, *self._facts_of(block)]
        for header, number in rounds:
            known += _of_round(beyond.table, header, number)
        self._steps.left -= 1
        if contradict(known):
            return _NOWHERE
        stores = self._all_stores()
        if not stores or len(stores) > _MOST_GUARDS:
            return ""
        for store in stores:
            self._steps.left -= 1
            if not contradict([*known, *store]):
                return ""
        return _IDLE

    # What is known where something is used ----------------------------------------------------
    def _facts_of(self, block: int) -> _Facts:
        """What holds for all of a CTA where it comes to a block, in this round of its loops."""
        found = self._facts.get(block)
        if found is None:
            headers = set()
            loop = self._loops.innermost(block)
            while loop is not None:
                headers.add(loop.header)
                loop = loop.parent
            found = self._facts[block] = tuple(self._of_all(self._standing.at(block), headers))
        return found

    def _of_all(self, known: Iterable[Polynomial], headers: set[int]) -> Iterator[Polynomial]:
        """What bounds say of a CTA as a whole, if they are about these loops' rounds or none."""
        for poly in known:
            if not self._is_steady(poly, headers):
                continue
            parts = split(poly, self._width or 0, self._uniformity)
            if parts is not None:
                rest, to = parts
                yield rest + (to.constant | to.moving)

    def _is_steady(self, poly: Polynomial, headers: set[int]) -> bool:
        """True if a polynomial changes with the numbers of these loops' rounds alone."""
        for atom in poly.all_atoms():
            if atom.kind == "index":
                if atom.data[0] not in headers:
                    return False
            elif atom.block >= 0 and self._loops.in_cycle(atom.block):
                return False
        return True

    # What a CTA leaves ------------------------------------------------------------------------
    def _all_stores(self) -> list[_Facts]:
        """The guards of all that a CTA leaves, as facts about the CTA; those alike together."""
        if self._stores is None:
            self._stores = list(self._find_stores())
        return self._stores

    def _find_stores(self) -> Iterator[_Facts]:
        merged: dict[frozenset[frozenset[tuple[tuple[int, ...], int]]], dict[object, Polynomial]]
        merged = {}
        for instr in self._ssa.cfg.function.instrs:
            if not _leaves_something(instr):
                continue
            guard = self._guards.of_instr(instr)
            if guard is None:
                continue
            # Of guards that differ in constants alone the weakest stands for all of them.
            terms: dict[frozenset[tuple[tuple[int, ...], int]], Polynomial] = {}
            bounds = [c.polynomial for c in sorted(guard, key=repr) if c.polynomial is not None]
            for poly in self._of_all(bounds, set()):
                moving = frozenset((m, c) for m, c in poly.terms.items() if m)
                held = terms.get(moving)
                if moving and (held is None or poly.constant < held.constant):
                    terms[moving] = poly
            weakest = merged.setdefault(frozenset(terms), {})
            for moving, poly in terms.items():
                other = weakest.get(moving)
                if other is None or poly.constant > other.constant:
                    weakest[moving] = poly
        for weakest in merged.values():
            yield tuple(weakest.values())


def _of_round(table: AtomTable, header: int, number: int) -> list[Polynomial]:
    """That a loop is in this round."""
    index = table.plain(table.atom("index", (header,), 0, INFINITY, header))
    return [index - number, -index + number]


def _leaves_something(instr: Instr) -> bool:
    """False for what certainly changes nothing but the registers and memory of its own CTA."""
    shape = instr.shape
    if shape.row.is_call or not shape.row.known:
        return True
    # CTAs of a cluster see each other's shared memory.
    if instr.opcode == "mapa" or any("cluster" in modifier for modifier in shape.modifiers):
        return True
    return not _OWN_MEMORY.issuperset(memory_of(shape).writes)


__all__ = ["VACUOUS", "Vacuity"]
