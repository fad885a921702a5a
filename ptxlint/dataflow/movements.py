"""How elements come from thread to thread: through shared memory and through tensor-core products.

Both ways are answered: what the condition of a stored element is for who loads it, and what the
condition of a loaded element was where it was stored. Iterations count as well: what is stored in
one round of a loop may be read in a later one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.fragments import Fragments, elements_of, fragments_of
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.shared_cells import Age
from ptxlint.dataflow.shared_provenance import (
    Movement,
    Passage,
    SharedProvenance,
    SharedProvenanceAnalysis,
)
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_ANOTHER_LAYOUT: Final = "the padding passes through shared memory in another layout"


class Source(NamedTuple):
    """What a part of a loaded register may be: a part of a value that was stored, or of a copy.

    `value` is None for what a `cp.async` brings. `condition` is that of the load in terms of the
    threads that stored, None if nothing is known there. `maybe` says that older data may be read
    instead.
    """

    store: Instr
    value: int | None
    part: int
    parts: int
    condition: Condition | None
    maybe: bool


class Movements:
    """The movements of one function."""

    def __init__(
        self,
        facts: Facts,
        ssa: Ssa,
        reductions: Reductions,
        conditions: Conditions,
        rounds: Rounds,
    ) -> None:
        self._ssa = ssa
        self._reductions = reductions
        self._conditions = conditions
        self._rounds = rounds
        self.is_zero: Callable[[Passage, Condition], bool] | None = None
        """Tells if what a passage starts from is 0 under a condition."""
        self._instrs = facts.function.instrs
        self._provenance: SharedProvenance = facts.get(SharedProvenanceAnalysis)
        self._ahead: dict[tuple[Any, ...], Condition | bool | None] = {}
        self._back: dict[tuple[Any, ...], tuple[bool, Condition | None]] = {}
        self._headers: dict[int, tuple[int, ...]] = {}
        self.stores = [
            i
            for i in self._instrs
            if ssa.cfg.is_reachable(i)
            and (
                (i.opcode in ("st", "stmatrix") and i.shape.space == "shared")
                or (i.opcode == "cp" and i.shape.has("async") and len(i.operands) >= 3)
            )
        ]

    # Shared memory ----------------------------------------------------------------------------
    def ways(self, load: Instr, at: int) -> tuple[Movement, ...] | None:
        """How the parts of register `at` of a load came, lowest first; None if not known."""
        found = self._provenance.of(load)
        if at >= len(found):
            return None
        out = []
        for movement in found[at].parts:
            if movement is None:
                return None
            out.append(movement)
        return tuple(out) or None

    def why(self, load: Instr) -> str:
        """Why it is not known how data came to a load."""
        found = self._provenance.why(load)
        return f"{_ANOTHER_LAYOUT}: {found}" if found else _ANOTHER_LAYOUT

    def stored(self, passage: Passage) -> tuple[int | None, int, int]:
        """The value that a passage starts from, the part of it and how many parts it has."""
        payload = passage.payload
        store = payload.instr
        if store.opcode == "cp":
            return None, 0, 1
        operand = elements_of(store.operands[1])[payload.operand]
        value = self._reductions.read(store, operand)
        if value is None:
            return -1, 0, 1
        width = _width(self._ssa, value)
        return value, payload.part, max(1, width // payload.bits)

    def forward(self, load: Instr, passage: Passage, condition: Condition) -> Condition | None:
        """What a stored element's condition is for the load; None if that reads others."""
        if condition.lost:
            return condition
        store = passage.payload.instr
        # Without a map it matters what the element is, and not where it is alone.
        element = passage.payload if condition.map is None and condition.bits else store.index
        key = condition.number, passage[1:5], element, passage.rounds
        found = self._ahead.get(key, False)
        if found is False:
            found = self._ahead[key] = self._find_forward(load, passage, condition)
        return found if isinstance(found, Condition) else None

    def _find_forward(
        self, load: Instr, passage: Passage, condition: Condition
    ) -> Condition | None:
        if condition.map is None:
            if condition.bits:
                is_zero = self.is_zero is not None and self.is_zero(passage, condition)
                return self._conditions.lost(self.why(load), is_zero)
            moved = condition
        else:
            here = condition.map
            found = passage.push(here)
            if found is None:
                if here.fixed and not self._meets(passage, here):
                    return None
                return self._conditions.lost(self.why(load))
            moved = self._conditions.moved(condition, found)
        later = self._read_later(moved, load, passage)
        return None if later is not None and self._is_void(later, passage) else later

    def _is_void(self, condition: Condition, passage: Passage) -> bool:
        """True if a condition that is the same for all threads is never met where it is read."""
        conjunct = condition.conjunct
        to = condition.map
        if conjunct is None or (condition.bits if to is None else not to.is_uniform):
            return False
        numbers = dict(condition.rounds)
        for age in passage.rounds:
            if age.rounds is None:
                continue
            number = numbers.get(age.header, None if age.inside else age.rounds)
            later = age.inside and age.rounds > 0
            if self._rounds.holds(conjunct, age.header, number, later):
                return True
        return False

    def _read_later(self, condition: Condition, load: Instr, passage: Passage) -> Condition | None:
        """A stored element's condition in the round of the load; None if it is read in no round."""
        store = passage.payload.instr
        headers = [age.header for age in passage.rounds]
        others = [h for h in self._around(store) if h not in headers]
        ages = [*passage.rounds, *(Age(h, None, False) for h in others)]
        conditions = self._conditions
        for age in ages:
            varies = conditions.varies(condition, age.header)
            if age.rounds is None or (varies and not age.inside):
                if varies:
                    return conditions.stored(condition, store.index)
                continue
            found: Condition | None = condition
            if age.inside:
                if varies:
                    found = conditions.later(condition, age.header, -age.rounds)
            elif condition.map is not None:
                found = conditions.in_round(condition, age.header, age.rounds)
                if found is None:
                    return None
            if found is None:
                return conditions.stored(condition, store.index)
            condition = found
        return condition

    def _stored_earlier(
        self, condition: Condition, load: Instr, passage: Passage
    ) -> tuple[bool, Condition | None]:
        """A loaded element's condition in the round of the store, and whether there is one."""
        store = passage.payload.instr
        headers = [age.header for age in passage.rounds]
        others = [h for h in self._around(store) if h not in headers]
        conditions = self._conditions
        if any(conditions.varies(condition, h) for h in others):
            return True, None
        for age in passage.rounds:
            if not conditions.varies(condition, age.header):
                continue
            if age.rounds is None:
                return True, None
            number = dict(condition.rounds).get(age.header, age.rounds)
            # In a certain round only some of the stores are read.
            if number != age.rounds and not (age.inside and number > age.rounds):
                return False, None
            found = (
                conditions.later(condition, age.header, age.rounds)
                if age.inside
                else conditions.before(condition, age.header, age.rounds)
            )
            if found is None:
                return True, None
            condition = found
        return True, condition

    @staticmethod
    def _meets(passage: Passage, stored: Any) -> bool:
        """True if the load reads from threads that a map holds for."""
        free = 0
        for image in passage.images:
            free |= image
        return not (passage.start ^ stored.at) & stored.fixed & ~free

    def sources(
        self, load: Instr, at: int, condition: Condition | None
    ) -> list[list[Source]] | None:
        """What each part of register `at` of a load may be; None if that is not known."""
        ways = self.ways(load, at)
        if ways is None:
            return None
        return [self._sources(load, movement, condition) for movement in ways]

    def _sources(
        self, load: Instr, movement: Movement, condition: Condition | None
    ) -> list[Source]:
        stores = {p.payload.instr.index for p in movement.passages}
        is_stored = condition is not None and condition.store in stores
        out = []
        for passage in movement.passages:
            store = passage.payload.instr
            before = None
            if condition is not None:
                # An element that one store brought came from no other one.
                if is_stored and condition.store != store.index:
                    continue
                if condition.map is not None and not _overlaps(passage, condition.map):
                    continue
                is_read, before = self._backward(load, passage, condition)
                if not is_read:
                    continue
            value, part, parts = self.stored(passage)
            source = Source(store, value, part, parts, before, passage.maybe)
            if source not in out:
                out.append(source)
        return out

    def _backward(
        self, load: Instr, passage: Passage, condition: Condition
    ) -> tuple[bool, Condition | None]:
        if condition.lost:
            return True, None
        if condition.map is None:
            if condition.bits:
                return True, None
            return self._stored_earlier(condition, load, passage)
        geometry = passage[1:5]
        key = condition.number, geometry, passage.payload.instr.index, passage.rounds
        found = self._back.get(key)
        if found is None:
            found = self._back[key] = self._find_backward(load, passage, condition)
        return found

    def _find_backward(
        self, load: Instr, passage: Passage, condition: Condition
    ) -> tuple[bool, Condition | None]:
        assert condition.map is not None
        found = passage.pull(condition.map)
        if found is None:
            return True, None
        if condition.store == passage.payload.instr.index:
            return True, self._conditions.as_stored(condition, found)
        moved = self._conditions.moved(condition, found)
        return self._stored_earlier(moved, load, passage)

    # Time -------------------------------------------------------------------------------------
    def _around(self, instr: Instr) -> tuple[int, ...]:
        """The headers of the loops that an instruction is in."""
        block = self._ssa.cfg.block_of[instr.index]
        found = self._headers.get(block)
        if found is None:
            headers = []
            loop = self._reductions.loops.innermost(block)
            while loop is not None:
                headers.append(loop.header)
                loop = loop.parent
            found = self._headers[block] = tuple(headers)
        return found

    # Products ---------------------------------------------------------------------------------
    def fragments(self, instr: Instr) -> Fragments | None:
        """The layouts of a product."""
        width = self._conditions.width
        return None if width is None else fragments_of(instr, width)

    def accumulator(self, instr: Instr, register: int) -> int | None:
        """The value of a register of the accumulator before the product; None for a constant."""
        operand = instr.operands[0 if instr.opcode == "wgmma" else 3]
        registers: tuple[Operand, ...] = elements_of(operand)
        if register >= len(registers):
            return None
        if instr.opcode == "wgmma":
            return _updated(self._ssa, instr, operand, register)
        return self._reductions.read(instr, registers[register])

    def behind_matrices(self, instr: Instr) -> frozenset[int] | None:
        """The stores behind the factors in shared memory; None if some may not be known."""
        found: set[int] = set()
        for operand in (1, 2):
            matrix = self._provenance.matrix(instr, operand)
            if matrix is None:
                continue
            if matrix.loaded is None:
                return None
            for movement in matrix.loaded.parts:
                if movement is None or movement.maybe:
                    return None
                found |= {p.instr.index for p in movement.payloads}
        return frozenset(found)

    def is_added_to(self, instr: Instr) -> bool | None:
        """Whether `wgmma` adds to its accumulator; None if a predicate decides."""
        operand = instr.operands[5 if instr.shape.has("sp") else 3]
        constant = fold(operand)
        if constant is not None:
            return bool(constant)
        value = self._reductions.read(instr, operand)
        if value is None:
            return None
        made = self._reductions.definition(value)
        if made is None or made.opcode != "mov" or len(made.operands) != 2:
            return None
        constant = fold(made.operands[1])
        return None if constant is None else bool(constant)


def _updated(ssa: Ssa, instr: Instr, operand: Operand, register: int) -> int | None:
    """What a register of the accumulator of `wgmma` holds before it."""
    assert isinstance(operand, Vector)
    wanted = operand.elements[register]
    for used, value in zip(instr.uses, ssa.use_values[instr.index], strict=True):
        if used is wanted:
            return ssa.resolve(value)
    return None


def _overlaps(passage: Passage, loaded: Any) -> bool:
    """True if a map of the loading threads holds for some that data come to this way."""
    return not (passage.at ^ loaded.at) & passage.fixed & loaded.fixed


def _width(ssa: Ssa, value: int) -> int:
    return BITS.get(ssa.register[value].type, 32)


__all__ = ["Movements", "Source"]
