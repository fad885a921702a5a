"""What values hold where they are padding, carried forward with the marks.

For each value there is a *free* word, which contains whatever any lane of any thread may hold, and
for each condition of its marks the word of the elements for which that condition holds. Both are
computed in the order of the function, and again for what loops carry, until nothing changes: only
of values that are asked for, and of what these are made of. An
operand that is not marked with a condition holds its free word there, or, where it is the same for
all threads that the condition tells apart, a statistic: some finite number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from ptxlint.dataflow import floats
from ptxlint.dataflow.conditions import (
    ANY_INDEX,
    Condition,
    Conditions,
    excludes,
    excludes_beyond,
    negative_beyond,
)
from ptxlint.dataflow.factor_lines import Line, Place, added, meet
from ptxlint.dataflow.floats import BF16, BYTES, F16, F32, F64, FORMATS, AbstractFloat, Format
from ptxlint.dataflow.fragments import Element, Fragments, elements_of
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, implies
from ptxlint.dataflow.joins import Joins
from ptxlint.dataflow.lane_hops import LaneHop
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements, Way, whole_ways
from ptxlint.dataflow.obstacles import in_the_way_of_load
from ptxlint.dataflow.padding_marks import CONTRACTIONS, Marks, Together
from ptxlint.dataflow.padding_matrices import Factor
from ptxlint.dataflow.padding_values import (
    DATA,
    HOPPING,
    UNKNOWN,
    Dependences,
    Evaluator,
    Found,
    Hypothesis,
    Number,
    Unknown,
    Word,
    as_float,
    halves,
    is_finite_word,
    join,
    negation,
    widened_word,
)
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.reductions import WHOLE, Leaf, Node, Reduction, Reductions, narrow_type
from ptxlint.dataflow.register_words import extended, loaded_bits, packed, whole_of
from ptxlint.dataflow.ssa_values import INSERT, MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.standing import Standing
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.dataflow.word_table import Cell, WordTable
from ptxlint.facts import Budget
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register
from ptxlint.ir.types import BITS

FACTORS: Final = {"f16": F16, "bf16": BF16, "tf32": F32, "f32": F32, "f64": F64, **BYTES}
"""The formats of what products take; other types are integers, which are all finite."""
_ROUNDS: Final = 5
"""So often what a loop carries is joined before it is widened, and again before it is given up."""
_PASSES: Final = 16
_SPLIT: Final = 6
"""By so many bits of the thread's number a condition is split into pieces."""
_BROUGHT: Final = frozenset({"ld", "ldu", "ldmatrix", "redux", "atom", "call"})
"""What gives data that is not made of the operands."""
_COPY: Final = 0
"""A word is another one."""
_COMPUTE: Final = 1
"""It is made of others."""
_SELECT: Final = 2
"""It is one of two others, which must be known."""
_TEST: Final = 7
"""It is a predicate, which guards may decide, or is made of others."""
_JOIN: Final = 3
"""It is any of some others, as far as they are known."""
_CHOOSE: Final = 4
"""It is one of two others as the third says, or either."""
_ENTER: Final = 5
"""It is that of an arm of a join that is open."""
_FOLD: Final = 6
"""It is what a reduction makes of all others."""


_Memo = dict[tuple[int, ...], Word]
"""Results by the identities of the words that they are made of."""
_Source = tuple[int, "Cell | None"]
"""A value that is read, or where a constant is."""
_NO_VALUE: Final = -1
_NO_MEMO: Final[_Memo] = {}


class _Recipe:
    """How an instruction makes a value of others, freely and under all conditions."""

    __slots__ = (
        "asked", "by_statistic", "dependence", "divisor", "folds", "is_of_data", "kind", "memo",
        "predicate", "settles", "sources", "value",
    )  # fmt: skip

    def __init__(self, value: int, dependence: int, asked: tuple[Condition, ...]) -> None:
        self.value = value
        self.dependence = dependence
        """The bits of the thread index that the value depends on."""
        self.asked = asked
        self.kind = _COMPUTE
        self.sources: list[_Source] = []
        self.settles = False
        """True if what it freely holds is the same for many lanes."""
        self.is_of_data = False
        """True for a predicate that is not of indices alone."""
        self.predicate = _NO_VALUE
        """What chooses between two operands."""
        self.divisor = _NO_VALUE
        self.folds: dict[int, _Fold] = {}
        """By condition: what a reduction makes of padding alone."""
        self.memo = self.by_statistic = _NO_MEMO
        """What is known of results, and of quotients by what is the same for many lanes."""


class _Node:
    """How one word is made: of the words in some cells, in one of the ways above."""

    __slots__ = ("block", "cells", "condition", "kind", "number")

    def __init__(self, kind: int, cells: list[Cell], condition: Condition | None) -> None:
        self.kind = kind
        self.cells = cells
        self.condition = condition
        self.number = -1 if condition is None else condition.number
        self.block = -1
        """That of the join which is entered."""


class _Fold(_Node):
    """How the result of a reduction is made where all that goes into it is padding."""

    __slots__ = ("reduction",)

    def __init__(self, reduction: Reduction, cells: list[Cell], condition: Condition) -> None:
        super().__init__(_FOLD, cells, condition)
        self.reduction = reduction


class _Program:
    """How a value is made, freely and under each condition that it is wanted under."""

    __slots__ = ("free", "is_header", "is_unknown", "settles", "under")

    def __init__(self) -> None:
        self.free = _Node(_JOIN, [], None)
        self.under: list[_Node] = []
        self.settles = False
        """True if what it freely holds is the same for many lanes."""
        self.is_header = False
        self.is_unknown = False


_Stored = tuple["Word | None", dict[int, "Word | None"]]
"""What is in shared memory, freely and by condition."""


class Arrival(NamedTuple):
    """A way through shared memory, and by half of the register the marks of what comes."""

    way: Way
    bits: tuple[int, ...]


class Words:
    """The words of all values of a function, freely and under the conditions of its marks."""

    def __init__(
        self,
        ssa: Ssa,
        guards: Guards,
        uniformity: Uniformity,
        reductions: Reductions,
        dependences: Dependences,
        conditions: Conditions,
        movements: Movements,
        marks: Marks,
        joins: Joins,
        standing: Standing,
        steps: Budget,
        stored: Callable[[], list[int]],
    ) -> None:
        self._ssa = ssa
        self._guards = guards
        self._reductions = reductions
        self._dependences = dependences
        self._conditions = conditions
        self._movements = movements
        self._marks = marks
        self._joins = joins
        self._standing = standing
        self._steps = steps
        self._instrs = ssa.cfg.function.instrs
        self._stored_anywhere = stored
        """What gives the values that go to shared memory."""
        self._is_shared_finite: bool | None = None
        """Whether these are all finite, if that was asked."""
        self._unseen: Word = DATA
        """What a load from shared memory gives of which nobody knows where it comes from."""
        self._is_guessed = False
        """True if that was made use of."""
        self._transfer = _Transfer(ssa, guards, uniformity, reductions, dependences, steps, joins)
        self._table = WordTable()
        self._truths: dict[tuple[int, int], bool | None] = {}
        self._needed: dict[int, list[Conjunction | None]] = {}
        """By predicate: what is known where it holds, and where it does not."""
        self._opposites: dict[int, Conjunct] = {}
        self._beyond: dict[tuple[int, int], list[Polynomial]] = {}
        self._implications: dict[tuple[int, int], int | None] = {}
        self._coverings: dict[tuple[int, int], tuple[int, ...]] = {}
        self._behind: dict[tuple[int, int], tuple[int, ...]] = {}
        self._copies: dict[tuple[int, int], Word] = {}
        self._is_running = False
        self._forget()

    def _forget(self) -> None:
        """Begin anew: no word is known."""
        self._conditions_of: dict[int, tuple[Condition, ...]] = {}
        self._free: dict[int, Cell] = {}
        self._under: dict[int, dict[int, Cell]] = {}
        """By value and condition."""
        self._statistics: dict[int, Cell] = {}
        """By value: what it holds as the same for many lanes."""
        self._covered_by: dict[int, list[tuple[Cell, list[Cell]]]] = {}
        """By value: where the join of some of its words is."""
        self._cells: dict[int, dict[int, Cell]] = {}
        """By condition and value: where the value's word is."""
        self._times: dict[int, int] = {}
        """By value: when it changed last."""
        self._wanted: set[int] = set()
        self._inputs: dict[int, list[int]] = {}
        self._readers: dict[int, list[int]] = {}
        """By value: the units that read it. Units are the values of joins, or ~instruction."""
        self._places: dict[int, tuple[int, int, int]] = {}
        self._changed: list[int] = []
        """The values that changed since that was last asked."""
        self._has_given_up = False
        self._counts: dict[int, int] = {}
        self._now = 0
        self._products: dict[int, _Product | None] = {}
        self._lines: dict[object, Line] = {}
        self._matrices: dict[tuple[int, int], tuple[int, int, list[int], _Stored]] = {}
        self._programs: dict[int, _Program] = {}
        self._recipes: dict[int, _Recipe | None] = {}
        self._constants: dict[object, Cell] = {}
        self._memos: dict[object, tuple[_Memo, _Memo]] = {}
        self._looked_into: set[int] = set()
        """The products whose factors in shared memory were asked for."""
        for value in self._ssa.at_entry:
            self._free[value] = [UNKNOWN]

    # Answers ----------------------------------------------------------------------------------
    def free(self, value: int) -> Word:
        """What a value may hold in any lane."""
        return self._answer(value, None)

    def under(self, value: int, condition: Condition) -> Word:
        """What a value holds where a condition does."""
        return self._answer(value, condition)

    def part(self, value: int, part: int, parts: int, condition: Condition | None) -> Word:
        """A part of a value: see `free` and `under`."""
        return self._part_of(value, self._answer(value, condition), part, parts)

    def told(self, word: Word, form: Format | None) -> tuple[bool, bool]:
        """Whether a word that was found here is 0 as a factor's element, and whether finite."""
        return self._table.told(word, form)

    def node(self, node: Node, width: int, condition: Condition | None) -> Word:
        """The word of a node of a reduction; `width` is that of the node."""
        found = self._answer(node.value, condition)
        return found if node.part == WHOLE else halves(found, width * 2)[node.part]

    def _answer(self, value: int, condition: Condition | None) -> Word:
        value = self._ssa.resolve(value)
        if value not in self._wanted:
            self.want([value])
        if self._is_running or self._has_given_up:
            return UNKNOWN
        found = self._lookup(value, condition)
        return UNKNOWN if found is None else found

    def operand(self, instr: Instr, operand: Operand, condition: Condition | None) -> Word:
        """What an operand holds: see `free` and `under`."""
        read = self._reductions.read(instr, operand)
        if read is not None:
            return self._answer(read, condition)
        is_only_written = isinstance(operand, Register)
        return UNKNOWN if is_only_written else self._transfer.constant(instr, operand)

    def put(
        self, store: Instr, value: int | None, part: int, parts: int, condition: Condition
    ) -> Word:
        """A part of what goes to shared memory, where a condition holds; None: by a copy."""
        if value is None:
            return self._copied(store, condition)
        return self.part(value, part, parts, condition)

    def in_memory(self, instr: Instr, side: int, condition: Condition | None) -> Word:
        """What the elements of a factor in shared memory hold."""
        factor = self._marks.in_memory(instr, side)
        if instr.index not in self._looked_into:
            self._looked_into.add(instr.index)
            self.want(self._stored_for(instr))
        if factor is None or self._is_running or self._has_given_up:
            return UNKNOWN
        free, words = self.matrix(instr, side, factor)
        found = free
        if condition is not None:
            number: int | None = condition.number
            if number not in words:
                number = self._implied(condition, self._marks.conditions_in(factor.bits))
            found = free if number is None else words.get(number, free)
        return UNKNOWN if found is None else found

    # The passes -------------------------------------------------------------------------------
    def want(self, values: Iterable[int]) -> None:
        """Compute values, and all that they are made of.

        What is asked for while that goes on, and not yet known, is taken to be anything.
        """
        if self._is_running:
            return
        self._compute([self._ssa.resolve(v) for v in values])
        if self._is_guessed and self._is_shared_finite is None:
            self._is_shared_finite = self.shared_is_finite

    def _compute(self, values: list[int]) -> None:
        fresh = self._made_of(values)
        if fresh:
            self._is_running = True
            self._run(fresh)
            self._is_running = False

    @property
    def shared_is_finite(self) -> bool:
        """True if shared memory holds finite numbers only, as long as the data is finite.

        Of what comes from there in an unknown way it is first taken for granted that it is, which
        then what is stored there must be.
        """
        found = self._is_shared_finite
        if found is None:
            if self._is_running:
                return False
            self._is_shared_finite = True
            stored = self._stored_anywhere()
            self._compute([self._ssa.resolve(v) for v in stored])
            found = all(is_finite_word(self.free(value)) for value in stored)
            self._is_shared_finite = found
            if not found:
                self._unseen = UNKNOWN
                if self._is_guessed:
                    wanted = list(self._wanted)
                    self._forget()
                    self._compute(wanted)
        return found

    def _made_of(self, values: list[int]) -> list[int]:
        """The units that are not known yet of which values are made."""
        wanted, unit_inputs, readers = self._wanted, self._inputs, self._readers
        fresh: list[int] = []
        work = [v for v in values if v not in wanted]
        while work:
            value = work.pop()
            if value in wanted:
                continue
            wanted.add(value)
            unit = self._unit(value)
            if unit is None or unit in unit_inputs:
                continue
            inputs = unit_inputs[unit] = self._inputs_of(unit)
            fresh.append(unit)
            for read in inputs:
                readers.setdefault(read, []).append(unit)
                if read not in wanted:
                    work.append(read)
        return fresh

    def _unit(self, value: int) -> int | None:
        """What makes a value: the value itself for a join, or ~instruction; None if nothing."""
        ssa = self._ssa
        if ssa.kind[value] == PHI:
            return value if ssa.phi_block[value] in ssa.cfg.position else None
        at = ssa.instr[value]
        return ~at if at >= 0 and ssa.cfg.block_of[at] in ssa.cfg.position else None

    def _inputs_of(self, unit: int) -> list[int]:
        """The values that a unit is computed from."""
        ssa = self._ssa
        resolve = ssa.resolve
        if unit >= 0:
            inputs = [resolve(v) for v in ssa.operands[unit]]
            region = self._joins.region(ssa.phi_block[unit]) if len(inputs) > 1 else None
            if region is not None:
                inputs += [
                    resolve(branch.predicate)
                    for branch in region.branches.values()
                    if self.is_of_data(branch.predicate)
                ]
            return inputs
        instr = self._instrs[~unit]
        defs = ssa.def_values[instr.index]
        opcode = instr.opcode
        inputs = []
        member = self._reductions.members.get(instr.index)
        reduction = None if member is None else self._reductions.all[member]
        if reduction is not None and instr is reduction.at:
            behind = [v for leaf in reduction.leaves for v in self._behind_leaf(leaf)]
            inputs += [resolve(v) for v in behind if v is not None]
        if opcode == "ldmatrix" or (opcode == "ld" and instr.shape.space == "shared"):
            for at in range(len(defs)):
                inputs += self._stored(instr, at)
        elif opcode not in _BROUGHT and not instr.shape.row.is_call:
            register, is_of_data = ssa.register, self.is_of_data
            inputs += [
                resolve(v)
                for v in ssa.use_values[instr.index]
                if register[v].type != "pred" or is_of_data(v)
            ]
            if opcode in HOPPING:
                hops = self._movements.hops
                inputs += [resolve(h.value) for v in defs for h in hops(ssa.written(v))]
            elif opcode == "wgmma":
                inputs += self._stored_for(instr)
        for value in defs:
            if ssa.kind[value] in (MERGE, INSERT):
                inputs += [resolve(v) for v in ssa.operands[value] if self._is_read(v)]
        return inputs

    def _is_read(self, value: int) -> bool:
        """False for predicates of indices: those are decided by what they compare."""
        return self._ssa.register[value].type != "pred" or self.is_of_data(value)

    def _place_of(self, unit: int) -> tuple[int, int, int]:
        """Where a unit comes in the order of the function."""
        ssa = self._ssa
        if unit >= 0:
            return ssa.cfg.position[ssa.phi_block[unit]], 0, unit
        return ssa.cfg.position[ssa.cfg.block_of[~unit]], 1, ~unit

    def _run(self, fresh: list[int]) -> None:
        """Compute units until nothing changes; if that comes to no end nothing is known."""
        places, readers, changed = self._places, self._readers, self._changed
        for unit in fresh:
            places[unit] = self._place_of(unit)
        later: set[int] = set(fresh)
        for _ in range(_PASSES):
            work = [(places[unit], unit) for unit in later]
            heapify(work)
            queued = later
            later = set()
            while work:
                place, unit = heappop(work)
                queued.discard(unit)
                self._counts[unit] = self._counts.get(unit, 0) + 1
                self._steps.left -= 1
                if unit >= 0:
                    self._phi(unit, self._ssa.phi_block[unit])
                else:
                    self._instr(self._instrs[~unit])
                if not changed:
                    continue
                for value in changed:
                    for reader in readers.get(value, ()):
                        if places[reader] <= place:
                            later.add(reader)
                        elif reader not in queued:
                            queued.add(reader)
                            heappush(work, (places[reader], reader))
                changed.clear()
            if not later:
                return
            if self._steps.spent:
                break
        self._has_given_up = True

    def _set(self, value: int, free: Word, under: dict[int, Word | None]) -> None:
        """Note what a value holds: words of the table."""
        cell = self._free_cell(value)
        changed = cell[0] is not free
        if changed:
            cell[0] = free
            settled = self._statistics.get(value)
            if settled is not None:
                settled[0] = self._table.statistic(free)
        if under:
            cells = self._under[value]
            for number, word in under.items():
                cell = cells[number]
                if cell[0] is not word:
                    cell[0] = word
                    changed = True
        if changed:
            for joined, parts in self._covered_by.get(value, ()):
                joined[0] = self._table.joined([part[0] for part in parts])
            self._now += 1
            self._times[value] = self._now
            self._changed.append(value)

    def _set_all(self, value: int, word: Word) -> None:
        """Note that nothing more is known of a value under its conditions than of it freely."""
        self._set(value, word, dict.fromkeys([c.number for c in self._asked(value)], word))

    def _asked(self, value: int) -> tuple[Condition, ...]:
        """The conditions under which a value is wanted."""
        found = self._conditions_of.get(value)
        if found is None:
            found = self._conditions_of[value] = self._marks.conditions_of(value)
            if found:
                self._under[value] = {c.number: [None] for c in found}
        return found

    def _lookup(self, value: int, condition: Condition | None) -> Word | None:
        """The word of a resolved value; None if it is not known yet."""
        return self._cell(value, condition)[0]

    def _free_cell(self, value: int) -> Cell:
        cell = self._free.get(value)
        if cell is None:
            cell = self._free[value] = [None]
        return cell

    def _cell(self, value: int, condition: Condition | None) -> Cell:
        """Where the word of a resolved value is."""
        if condition is None:
            return self._free_cell(value)
        cells = self._cells.get(condition.number)
        if cells is None:
            cells = self._cells[condition.number] = {}
        found = cells.get(value)
        if found is None:
            found = cells[value] = self._find_cell(value, condition)
        return found

    def _find_cell(self, value: int, condition: Condition) -> Cell:
        asked = self._asked(value)
        if asked:
            under = self._under[value]
            if condition.number in under:
                return under[condition.number]
            implied = self._implied(condition, asked)
            if implied is not None:
                return under[implied]
            covering = self._covered(condition, asked)
            if covering:
                return self._any_of(value, [under[number] for number in covering])
        bits = condition.bits or ANY_INDEX
        source = self._exchanged(value)
        if source is not None and not source[1] & bits:
            return self._cell(source[0], condition)
        free = self._free_cell(value)
        if self._dependences.of(value) & bits:
            return free
        settled = self._statistics.get(value)
        if settled is None:
            word = None if free[0] is None else self._table.statistic(free[0])
            settled = self._statistics[value] = [word]
        return settled

    def _any_of(self, value: int, cells: list[Cell]) -> Cell:
        """Where the join of some words of a value is."""
        found: Cell = [self._table.joined([cell[0] for cell in cells])]
        self._covered_by.setdefault(value, []).append((found, cells))
        return found

    def _constant(self, word: Word) -> Cell:
        """Where a word is that never changes."""
        word = self._table.of(word)
        return self._constants.setdefault(id(word), [word])

    def _implied(self, condition: Condition, others: tuple[Condition, ...]) -> int | None:
        """The number of another condition that holds wherever this one does; None if none is known.

        One bound may be given in elements and in vectors of elements.
        """
        if condition.map is None or not condition.bits:
            return None
        key = condition.number, id(others)
        if key not in self._implications:
            self._implications[key] = next(
                (c.number for c in others if self.is_implied(condition, c)), None
            )
        return self._implications[key]

    def is_implied(self, condition: Condition, other: Condition, lanes: int = 0) -> bool:
        """True if another condition holds wherever one does, and tells apart no more threads than
        that one, or than those that differ in some lanes."""
        if other.map is None or not other.bits or other.bits & ~(condition.bits | lanes):
            return False
        if other.fixed & ~condition.fixed or other.at != condition.at & other.fixed:
            return False
        if other.store >= 0:
            return False
        if condition.store >= 0 or not set(other.rounds) <= set(condition.rounds):
            return False
        if self._conditions.family(condition) != self._conditions.family(other):
            return False
        self._steps.left -= 1
        return other.conjunct is not None and excludes(condition, other.conjunct)

    def _covered(self, condition: Condition, others: tuple[Condition, ...]) -> tuple[int, ...]:
        """The numbers of conditions about some threads each, of which one holds wherever this one
        does; none if that is not known."""
        if condition.map is None or not condition.bits:
            return ()
        key = condition.number, id(others)
        found = self._coverings.get(key)
        if found is None:
            found = self._coverings[key] = self._find_covering(condition, others)
        return found

    def _find_covering(
        self, condition: Condition, others: tuple[Condition, ...]
    ) -> tuple[int, ...]:
        family = self._conditions.family
        parts = [
            c
            for c in others
            if c.fixed and c.store < 0 and set(c.rounds) <= set(condition.rounds)
            and family(c) == family(condition)
        ]  # fmt: skip
        fixed = 0
        for part in parts:
            fixed |= part.fixed
        if not parts or condition.store >= 0 or fixed.bit_count() > _SPLIT:
            return ()
        found: dict[int, None] = {}
        for piece in self._conditions.pieces(condition, fixed):
            self._steps.left -= 1
            if self._conditions.may_hold(piece):
                over = next((c for c in parts if self._is_over(piece, c)), None)
                if over is None:
                    return ()
                found[over.number] = None
        return tuple(found)

    def _is_over(self, piece: Condition, other: Condition) -> bool:
        """True if a condition holds in all threads in which one does that is about no more."""
        if other.fixed & ~piece.fixed or other.at != piece.at & other.fixed:
            return False
        return other.conjunct is not None and excludes(piece, other.conjunct)

    def _exchanged(self, value: int) -> tuple[int, int] | None:
        """What a `shfl` reads, and from lanes that differ in which bits."""
        if self._ssa.kind[value] != RESULT:
            return None
        instr = self._instrs[self._ssa.instr[value]]
        if instr.opcode != "shfl" or self._ssa.result[value]:
            return None
        source = self._reductions.read(instr, instr.operands[1])
        return None if source is None else (source, self._reductions.scanned(instr))

    # Joins ------------------------------------------------------------------------------------
    def _phi(self, phi: int, block: int) -> None:
        program = self._programs.get(phi)
        if program is None:
            if self._ssa.resolve(phi) != phi:
                return
            program = self._programs[phi] = self._entered(phi, block)
        if program.is_unknown:
            self._set_all(phi, UNKNOWN)
            return
        free = self._evaluated(program.free)
        if free is None:
            return
        if program.settles:
            free = DATA if program.is_header else self._table.statistic(free)
        under = {node.number: self._evaluated(node) for node in program.under}
        if program.is_header:
            free, under = self._widened(phi, free, under)
        self._set(phi, free, under)

    def _entered(self, phi: int, block: int) -> _Program:
        """What comes into a join or the head of a loop."""
        ssa = self._ssa
        operands = [ssa.resolve(v) for v in ssa.operands[phi]]
        sources = ssa.phi_sources(block)
        loop = self._reductions.loops.with_header(block)
        position = ssa.cfg.position
        back = [
            loop is not None and s >= 0 and self._reductions.loops.contains(loop, s)
            for s in sources
        ]
        is_header = any(back) or any(s >= 0 and position[s] >= position[block] for s in sources)
        asked = self._asked(phi)
        program = _Program()
        program.is_header = is_header
        program.is_unknown = is_header and loop is None
        program.settles = not self._dependences.of(phi)
        program.free = self._join(operands, block, None, is_header)
        if not is_header:
            program.under = [self._join(operands, block, c, False) for c in asked]
        elif asked and not program.is_unknown:
            before = [
                self._marks.before(operand, block) if is_back else None
                for operand, is_back in zip(operands, back, strict=True)
            ]
            is_fetched = all(
                self._is_fetched(v) for v, is_back in zip(operands, back, strict=True) if is_back
            )
            for condition in asked:
                cells: list[Cell] = []
                for operand, earlier in zip(operands, before, strict=True):
                    # In the first round there may be no such padding.
                    is_first = earlier is None and is_fetched
                    if is_first and not self._conditions.may_hold_in(condition, block, 0):
                        continue
                    found = None if earlier is None else earlier.get(condition.number)
                    if earlier is not None and not found:
                        cells.append(self._free_cell(operand))
                        continue
                    cells += [self._cell(operand, c) for c in found or [condition]]
                    if found and all(len(c.rounds) > len(condition.rounds) for c in found):
                        # What was about one round says nothing of what the others left.
                        cells.append(self._free_cell(operand))
                program.under.append(_Node(_JOIN, cells, condition))
        return program

    def _is_fetched(self, value: int) -> bool:
        """True for what is loaded as it is, so that no round makes anything of the one before."""
        at = self._ssa.instr[self._reductions.node(Node(value)).value]
        return at >= 0 and self._instrs[at].opcode in ("ld", "ldu", "ldmatrix")

    def _join(
        self, operands: list[int], block: int, condition: Condition | None, is_header: bool
    ) -> _Node:
        """What comes in through those arms of a join that may be open."""
        cells = [self._cell(v, condition) for v in operands]
        if is_header or len(operands) < 2:
            return _Node(_JOIN, cells, condition)
        region = self._joins.region(block)
        branches = [] if region is None else list(region.branches.values())
        if any(
            self.is_of_data(b.predicate) and self.decided(b.predicate, condition) is None
            for b in branches
        ):
            node = _Node(_ENTER, cells, condition)
            node.block = block
            return node
        return _Node(_JOIN, self._open(cells, block, condition), condition)

    def _open(self, cells: list[Cell], block: int, condition: Condition | None) -> list[Cell]:
        """The cells of the arms of a join that may be open."""
        arms = self._joins.open_arms(block, lambda p: self.truth(p, condition))
        return [cell for cell, is_open in zip(cells, arms, strict=True) if is_open]

    def _widened(
        self, phi: int, free: Word, under: dict[int, Word | None]
    ) -> tuple[Word, dict[int, Word | None]]:
        count = self._counts[phi]
        if count <= _ROUNDS:
            return free, under
        if count > 2 * _ROUNDS:
            return UNKNOWN, dict.fromkeys(under, UNKNOWN)
        held = self._free_cell(phi)[0]
        if held is not None and held is not free:
            free = self._table.of(widened_word(held, free))
        old = self._under.get(phi) or {}
        out: dict[int, Word | None] = {}
        for number, word in under.items():
            before = old[number][0]
            if word is not None and before is not None and before is not word:
                word = self._table.of(widened_word(before, word))
            out[number] = word
        return free, out

    # Instructions -----------------------------------------------------------------------------
    def _instr(self, instr: Instr) -> None:
        ssa = self._ssa
        defs = ssa.def_values[instr.index]
        if not defs:
            return
        opcode = instr.opcode
        resolve = ssa.resolve
        if self._counts[~instr.index] > 3 * _ROUNDS:
            for value in defs:
                made = ssa.written(value)
                for v in {made, value}:
                    self._set_all(v, UNKNOWN)
            return
        if opcode in CONTRACTIONS:
            self._product(instr, defs)
        else:
            for at, value in enumerate(defs):
                self._result(instr, at, ssa.written(value))
        for value in defs:
            if ssa.kind[value] in (MERGE, INSERT) and resolve(value) == value:
                self._merge(value)

    def _merge(self, value: int) -> None:
        program = self._programs.get(value)
        if program is None:
            program = self._programs[value] = self._merged(value)
        if program.is_unknown:
            self._set_all(value, UNKNOWN)
            return
        free = self._evaluated(program.free)
        if free is None:
            return
        if program.settles:
            free = self._table.statistic(free)
        self._set(value, free, {node.number: self._evaluated(node) for node in program.under})

    def _merged(self, value: int) -> _Program:
        """What is in a register after it was written under a predicate."""
        ssa = self._ssa
        program = _Program()
        program.is_unknown = ssa.kind[value] == INSERT
        if program.is_unknown:
            return program
        predicate, if_true, if_false = ssa.operands[value]
        arms: list[int | None] = [ssa.resolve(if_true), ssa.resolve(if_false)]
        if in_the_way_of_load(self._instrs[ssa.instr[value]]):
            # What is not loaded is as little known as where it was loaded from.
            arms[1 if if_false == ssa.old(value) else 0] = None
        program.settles = not self._dependences.of(value)
        conditions = self._asked(value)
        program.free, *program.under = [
            self._choice(predicate, [None if a is None else self._cell(a, c) for a in arms], c)
            for c in (None, *conditions)
        ]
        return program

    def _choice(
        self, predicate: int, arms: list[Cell | None], condition: Condition | None
    ) -> _Node:
        """One of two arms, or either, as a predicate says; None: an arm that may be anything."""
        first, second = [self._constant(UNKNOWN) if a is None else a for a in arms]
        truth = self.decided(predicate, condition)
        if truth is not None:
            return _Node(_JOIN, [first if truth else second], condition)
        if not self.is_of_data(predicate):
            return _Node(_JOIN, [first, second], condition)
        test = self._cell(self._ssa.resolve(predicate), condition)
        return _Node(_CHOOSE, [first, second, test], condition)

    def _evaluated(self, node: _Node) -> Word | None:
        """What a join of words gives."""
        kind, cells = node.kind, node.cells
        if kind == _CHOOSE:
            first, second, test = cells
            truth = test[0]
            if isinstance(truth, int):
                return first[0] if truth else second[0]
            cells = [first, second]
        elif kind == _ENTER:
            cells = self._open(cells, node.block, node.condition)
        if len(cells) == 1:
            return cells[0][0]
        return self._table.joined([cell[0] for cell in cells])

    def _result(self, instr: Instr, at: int, value: int) -> None:
        """What an instruction writes to a register."""
        recipe = self._recipes.get(value)
        if recipe is None:
            if value in self._recipes:
                self._moved_in(instr, at, value)
                return
            recipe = self._recipes[value] = self._planned(instr, value)
            if recipe is None:
                self._moved_in(instr, at, value)
                return
        free = self._computed(instr, recipe, None, self._free)
        if free is None:
            return
        table = self._table
        if recipe.settles:
            free = table.statistic(free)
        under: dict[int, Word | None] = {}
        asked = recipe.asked
        self._steps.left -= len(asked)
        for condition in asked:
            number = condition.number
            cells = self._cells.get(number)
            if cells is None:
                cells = self._cells[number] = {}
            fold = recipe.folds.get(number) if recipe.folds else None
            if fold is None:
                found = self._computed(instr, recipe, condition, cells)
            else:
                found = self._folded(fold, free)
            if found is not None and not recipe.dependence & (condition.bits or ANY_INDEX):
                found = table.statistic(found)
            under[number] = found
        self._set(value, free, under)

    def _moved_in(self, instr: Instr, at: int, value: int) -> None:
        """A register that comes from other threads."""
        ssa = self._ssa
        if ssa.resolve(value) != value or ssa.kind[value] != RESULT:
            return
        if self._is_loading(instr):
            self._load(instr, at, value)
        else:
            self._hopped(value, self._movements.hops(value))

    def _computed(
        self, instr: Instr, recipe: _Recipe, condition: Condition | None, cells: dict[int, Cell]
    ) -> Word | None:
        """What a value holds under a condition; None while an operand is not known.

        `cells` are those under the condition that were looked up already.
        """
        kind = recipe.kind
        sources = recipe.sources
        if kind != _COMPUTE:
            if kind == _SELECT:
                return self._selected(recipe, condition)
            if kind == _TEST:
                truth = self.decided(recipe.value, condition)
                if truth is not None:
                    return int(truth)
                if not recipe.is_of_data:
                    return UNKNOWN
            else:
                return self._source(sources[0], condition)[0]
        key = []
        for read, constant in sources:
            cell = cells.get(read)
            if cell is None:
                cell = constant if constant is not None else self._cell(read, condition)
            word = cell[0]
            if word is None:
                return None
            key.append(id(word))
        memo = recipe.memo
        if recipe.divisor >= 0:
            bits = ANY_INDEX if condition is None else condition.bits or ANY_INDEX
            if not self._dependences.of(recipe.divisor) & bits:
                # A statistic is taken not to be 0.
                memo = recipe.by_statistic
        together = tuple(key)
        known = memo.get(together)
        if known is None:
            found = self._transfer.result(self, instr, recipe.value, condition)
            if found is None:
                return None
            known = memo[together] = self._table.of(found)
        return known

    def _source(self, source: _Source, condition: Condition | None) -> Cell:
        read, constant = source
        return self._cell(read, condition) if constant is None else constant

    def _selected(self, recipe: _Recipe, condition: Condition | None) -> Word | None:
        """One of two operands, as a predicate says."""
        first, second = recipe.sources
        if recipe.predicate >= 0:
            truth = self.truth(recipe.predicate, condition)
            if truth is not None:
                return self._source(first if truth else second, condition)[0]
        a, b = self._source(first, condition)[0], self._source(second, condition)[0]
        return None if a is None or b is None else self._table.joined((a, b))

    def _planned(self, instr: Instr, value: int) -> _Recipe | None:
        """How a result is computed; None if it comes from other threads."""
        ssa = self._ssa
        opcode = instr.opcode
        if ssa.resolve(value) != value or ssa.kind[value] != RESULT or self._is_loading(instr):
            return None
        if opcode in HOPPING and self._movements.hops(value):
            return None
        dependence = self._dependences.of(value)
        recipe = _Recipe(value, dependence, self._asked(value))
        recipe.settles = not dependence or self._is_combined(value)
        reduction = self._result_of(instr, value) if recipe.asked else None
        if reduction is not None:
            for c in recipe.asked:
                if not self._marks.is_shared_by_all(reduction, c):
                    fold = _Fold(reduction, self._leaf_cells(reduction, c), c)
                    recipe.folds[c.number] = fold
        operands = instr.operands
        if opcode == "shfl":
            recipe.kind = _COPY
            recipe.sources = [self._operand(instr, operands[1])]
        elif opcode in ("ld", "ldu", "redux", "atom", "call") or instr.shape.row.is_call:
            recipe.kind = _COPY
            recipe.sources = [(_NO_VALUE, self._constant(self._brought(instr, value)))]
        elif opcode == "selp":
            recipe.kind = _SELECT
            recipe.sources = [self._operand(instr, o) for o in operands[1:3]]
            register = operands[3]
            if isinstance(register, Register):
                recipe.predicate = self._guards.symbolic.value_read(instr, register)
        else:
            self._plan_arithmetic(instr, recipe)
        return recipe

    def _result_of(self, instr: Instr, value: int) -> Reduction | None:
        """The reduction of floats within threads and warps of which a value is the result."""
        member = self._reductions.members.get(instr.index)
        reduction = None if member is None else self._reductions.all[member]
        if reduction is None or reduction.partial or reduction.warps:
            return None
        if reduction.type not in FORMATS or reduction.operator not in ("add", "max", "min"):
            return None
        return reduction if self._ssa.resolve(value) == reduction.result else None

    def _leaf_cells(self, reduction: Reduction, condition: Condition) -> list[Cell]:
        """Where the words are of all that goes into a reduction: of a product both factors."""
        return [
            self._leaf_cell(value, condition, leaf.lanes)
            for leaf in reduction.leaves
            for value in self._behind_leaf(leaf)
        ]

    def _leaf_cell(self, value: int | None, condition: Condition, lanes: int) -> Cell:
        """Where the word of a leaf is if a condition holds in all lanes of the reduction."""
        if value is None:
            return self._constant(UNKNOWN)
        own = next((c for c in self._asked(value) if self.is_implied(condition, c, lanes)), None)
        return self._cell(value, condition) if own is None else self._under[value][own.number]

    def _behind_leaf(self, leaf: Leaf) -> list[int | None]:
        """The value of a leaf, or the factors of what an `fma` adds."""
        if leaf.product is None:
            return [self._ssa.resolve(leaf.node.value)]
        return [self._reductions.read(leaf.product, o) for o in leaf.product.operands[1:3]]

    def _folded(self, node: _Fold, free: Word | None) -> Word | None:
        """What a reduction makes of elements that all are padding: 0 of zeros, or a maximum of
        them; what it freely gives if they are something else."""
        reduction = node.reduction
        form = FORMATS[reduction.type]
        cells = iter(node.cells)
        total: AbstractFloat | None = None
        for leaf in reduction.leaves:
            numbers: list[AbstractFloat] = []
            narrow = leaf.narrow if leaf.product is None else narrow_type(leaf.product)
            for _ in range(1 if leaf.product is None else 2):
                word = next(cells)[0]
                if word is None:
                    return None
                if leaf.node.part != WHOLE:
                    word = halves(word, form.bits * 2)[leaf.node.part]
                numbers.append(as_float(word, FORMATS.get(narrow, form)))
            number = numbers[0]
            if len(numbers) > 1:
                number = floats.multiply(number, numbers[1], floats.Mode(form))
            if leaf.absolute:
                number = floats.absolute(number)
            if reduction.operator == "add" and not number.is_zero:
                return free
            total = number if total is None else floats.join(total, number)
        return free if total is None else self._table.of(Number(form, total))

    def _plan_arithmetic(self, instr: Instr, recipe: _Recipe) -> None:
        """Operands, and results known by their words, of what gives the same for the same words."""
        if self._ssa.register[recipe.value].type == "pred":
            recipe.kind = _TEST
            recipe.is_of_data = self.is_of_data(recipe.value)
        operands = instr.operands
        elements = [e for operand in operands[1:] for e in elements_of(operand)]
        recipe.sources = sources = [self._operand(instr, e) for e in elements]
        same = len(sources) > 1 and sources[0][0] == sources[1][0] != _NO_VALUE
        held = [e for o in operands for e in elements_of(o) if isinstance(e, Register)]
        types = tuple([register.type for register in held])
        key = instr.shape, self._ssa.result[recipe.value], len(operands), types, same
        known = self._memos.get(key)
        if known is None:
            known = self._memos[key] = {}, {}
        recipe.memo, recipe.by_statistic = known
        if instr.opcode in ("div", "rcp"):
            recipe.divisor = sources[-1][0]

    @staticmethod
    def _is_loading(instr: Instr) -> bool:
        """True for a load from shared memory."""
        return instr.opcode == "ldmatrix" or (
            instr.opcode == "ld" and instr.shape.space == "shared"
        )

    def _is_combined(self, value: int) -> bool:
        """True for what lanes make together, where it is known which lanes those are."""
        return self._conditions.width is not None and self._reductions.step(value) is not None

    def _operand(self, instr: Instr, operand: Operand) -> _Source:
        """The value of an operand, or the cell of a constant."""
        read = self._reductions.read(instr, operand)
        if read is not None:
            return read, None
        is_only_written = isinstance(operand, Register)
        word = UNKNOWN if is_only_written else self._transfer.constant(instr, operand)
        return _NO_VALUE, self._constant(word)

    def _brought(self, instr: Instr, value: int) -> Word:
        """What comes from memory or from other lanes."""
        uniform = not self._dependences.of(value)
        if uniform or (instr.opcode == "ld" and instr.shape.space in ("global", "")):
            return self._transfer.loaded(instr, value)
        return UNKNOWN

    # Predicates -------------------------------------------------------------------------------
    def truth(self, predicate: int, condition: Condition | None) -> bool | None:
        """Whether a predicate holds under a condition, by indices or by data; None if unknown."""
        found = self.decided(predicate, condition)
        if found is None and self.is_of_data(predicate):
            word = self._lookup(self._ssa.resolve(predicate), condition)
            if isinstance(word, int):
                return bool(word)
        return found

    def is_of_data(self, predicate: int) -> bool:
        """True unless a predicate compares nothing but indices and sizes."""
        return self._transfer._is_of_data(predicate)

    def decided(self, predicate: int, condition: Condition | None) -> bool | None:
        """Whether a predicate of indices holds under a condition."""
        key = predicate, -1 if condition is None else condition.number
        if key not in self._truths:
            self._truths[key] = self._decide(predicate, condition)
        return self._truths[key]

    def _decide(self, predicate: int, condition: Condition | None) -> bool | None:
        needed = self._needed.get(predicate)
        if needed is None:
            needed = [self._guards.of_predicate(predicate, truth) for truth in (True, False)]
            self._needed[predicate] = needed
        if_true, if_false = needed
        if if_true is None:
            return False
        if condition is None:
            return True if if_false is None or not if_true else None if if_false else False
        if self._is_any_false(if_true, condition):
            return False
        if if_false is None:
            return True
        if self._is_any_false(if_false, condition):
            return True
        known = ALWAYS
        if condition.conjunct is not None and not condition.fixed:
            opposite = self._opposites.get(condition.number)
            if opposite is None:
                opposite = self._opposites[condition.number] = negation(condition.conjunct)
            known = frozenset((opposite,))
        for truth, conjuncts in ((True, if_true), (False, if_false)):
            if not conjuncts or (known and all(implies(known, c) for c in conjuncts)):
                return truth
        return self._decide_beyond(predicate, needed, condition)

    def _is_any_false(self, conjuncts: Conjunction, condition: Condition) -> bool:
        """True if one of some conjuncts does not hold where a condition does."""
        return any(self._is_false(c, condition) for c in conjuncts)

    def _decide_beyond(
        self, predicate: int, needed: list[Conjunction | None], condition: Condition
    ) -> bool | None:
        """Whether a predicate holds under a condition, by what bounds indices where it is made."""
        root, _ = self._ssa.root(self._ssa.resolve(predicate))
        if self._ssa.kind[root] != RESULT:
            return None
        for negative in self._negative(self._ssa.block_of(root), condition):
            for truth, conjuncts in zip((True, False), needed, strict=True):
                self._steps.left -= 1
                if any(excludes_beyond(condition, negative, c) for c in conjuncts or ()):
                    return not truth
        return None

    def _negative(self, block: int, condition: Condition) -> list[Polynomial]:
        """What is negative in a block where a condition holds, by the block's bounds."""
        key = block, condition.number
        found = self._beyond.get(key)
        if found is None:
            made = [negative_beyond(condition, bound) for bound in self._standing.at(block)]
            found = self._beyond[key] = [poly for poly in made if poly is not None]
        return found

    def _is_false(self, conjunct: Conjunct, condition: Condition) -> bool:
        false = condition.conjunct
        if false is None:
            return False
        return implies(frozenset({conjunct}), false) or excludes(condition, conjunct)

    # Other threads ----------------------------------------------------------------------------
    def _stored(self, load: Instr, at: int) -> tuple[int, ...]:
        """The values that a register may be loaded from."""
        key = load.index, at
        found = self._behind.get(key)
        if found is None:
            resolve = self._ssa.resolve
            parts = self._movements.arrivals(load, at) or ()
            found = self._behind[key] = tuple(
                {
                    resolve(w.value)
                    for ways in parts
                    for w in ways
                    if w.value is not None and w.value >= 0
                }
            )
        return found

    def _load(self, instr: Instr, at: int, value: int) -> None:
        """A register that is loaded from shared memory."""
        parts = self._movements.arrivals(instr, at)
        asked = self._asked(value)
        if parts is None or len(parts) not in (1, 2, 4):
            self._is_guessed = True
            self._set(value, self._unseen, dict.fromkeys([c.number for c in asked], self._unseen))
            return
        count = len(parts)
        active = [self._active(instr, at, part, parts) for part in range(count)]
        keys = tuple([self._marks.together(instr, at, part * 2 // count) for part in range(count)])
        whole = whole_ways([[way for way, _ in ways] for ways in active])
        if whole is not None:
            marks = zip(*[[bits for _, bits in ways] for ways in active], strict=True)
            together = [Arrival(way, bits) for way, bits in zip(whole, marks, strict=True)]
            found = [self._arrived(together, keys, asked)]
        else:
            found = [
                self._arrived([Arrival(way, (bits,)) for way, bits in ways], (key,), asked)
                for ways, key in zip(active, keys, strict=True)
            ]
        width = BITS.get(self._ssa.register[value].type, 32)
        bits = loaded_bits(instr, width)
        is_signed = instr.shape.type.startswith("s")
        free = self._assembled([f for f, _ in found], bits, width, is_signed)
        under: dict[int, Word | None] = {}
        for condition in asked:
            parts_under = [u.get(condition.number, f) for f, u in found]
            under[condition.number] = self._assembled(parts_under, bits, width, is_signed)
        if free is None:
            return
        if not self._dependences.of(value):
            free = self._table.statistic(free)
        self._set(value, free, under)

    def _active(
        self, instr: Instr, at: int, part: int, parts: tuple[tuple[Way, ...], ...]
    ) -> list[tuple[Way, int]]:
        """The ways into a part of a register that say something of their own, with the marks."""
        count = len(parts)
        active = self._marks.active(instr, at, part * 2 // count)
        if count > 2:
            # Marks are of halves, which both of their parts come into.
            active = [(way, bits) for way, bits in active if way in parts[part]]
        return active

    def _assembled(
        self, found: list[Word | None], bits: int, width: int, is_signed: bool
    ) -> Word | None:
        """The word of a register of `width` bits whose lowest `bits` were loaded in these parts."""
        parts: list[Word] = []
        for word in found:
            if word is None:
                return None
            parts.append(word)
        if len(parts) == 1 and bits == width:
            return parts[0]
        word = whole_of(parts, bits // len(parts))
        return self._table.of(word if bits == width else extended(word, bits, width, is_signed))

    def _arrived(
        self,
        arrivals: list[Arrival],
        together: tuple[Together, ...],
        asked: tuple[Condition, ...],
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """The free word of a loaded part, and its words under conditions."""
        marks, through = self._marks, self._movements.through
        free = self._table.joined([self._started(a.way, None) for a in arrivals])
        under: dict[int, Word | None] = {}
        if not asked:
            return free, under
        wanted = {condition.number for condition in asked}
        became = [marks.became(routes) for routes in together]
        brought: dict[int, dict[int, list[int]]] = {}
        """By number and way: the conditions of what is stored that become that one."""
        for place, (way, by_half) in enumerate(arrivals):
            route = way.route
            for half, bits in enumerate(by_half):
                into = became[half]
                for condition, load in marks.each(bits):
                    there = through(route, condition)
                    if there is None or load not in into:
                        continue
                    for number in into[load].get(there.number, ()):
                        if number in wanted:
                            ways = brought.setdefault(number, {})
                            ways.setdefault(place, []).append(condition.number)
        conditions = self._conditions.all
        for condition in asked:
            self._steps.left -= 1
            places = brought.get(condition.number)
            if places is None:
                continue
            words = [
                self._started(arrivals[place].way, conditions[number])
                for place, numbers in places.items()
                for number in dict.fromkeys(numbers)
            ]
            if len(places) < len(arrivals):
                stores = {arrivals[p].way.store.index for p in places}
                for place, arrival in enumerate(arrivals):
                    if place not in places and self._may_bring(arrival.way, condition, stores):
                        words.append(self._started(arrival.way, self._own_of(arrival, condition)))
            under[condition.number] = self._table.joined(words)
        return free, under

    def _own_of(self, arrival: Arrival, condition: Condition) -> Condition | None:
        """A condition of what was stored that holds where this one does for who reads it.

        What was stored before a loop is read in one round: there the two may say the same.
        """
        way, by_half = arrival
        here = self._in_its_round(condition, way)
        if here is None:
            return None
        for mark in dict.fromkeys(m for bits in by_half for m in self._marks.each(bits)):
            self._steps.left -= 1
            there = self._movements.through(way.route, mark.condition)
            if there is None or there.lost:
                continue
            there = self._in_its_round(there, way)
            if there is not None and (there is here or self.is_implied(here, there)):
                return mark.condition
        return None

    def _in_its_round(self, condition: Condition, way: Way) -> Condition | None:
        """A condition in the round in which what was stored before a loop is read."""
        found: Condition | None = condition
        for age in way.route.rounds:
            if found is not None and age.rounds is not None and not age.inside:
                found = self._conditions.before(found, age.header, age.rounds)
        return found

    def _may_bring(self, way: Way, condition: Condition, stores: set[int]) -> bool:
        """True if a condition may hold for threads and rounds in which data come this way."""
        to, route = condition.map, way.route
        if condition.store in stores and way.store.index != condition.store:
            return False
        if to is not None and (route.at ^ to.at) & route.fixed & to.fixed:
            return False
        rounds = dict(condition.rounds)
        for age in route.rounds:
            number = rounds.get(age.header)
            if age.rounds is None:
                continue
            if number is None:
                if not age.inside and not self._conditions.may_hold_in(
                    condition, age.header, age.rounds
                ):
                    return False
            elif number != age.rounds and not (age.inside and number > age.rounds):
                return False
        return True

    def _started(self, way: Way, condition: Condition | None) -> Word | None:
        """What a store puts into shared memory."""
        if way.value is None:
            return UNKNOWN if way.maybe else self._copied(way.store, condition)
        if way.maybe or way.value < 0:
            return UNKNOWN
        value = self._ssa.resolve(way.value)
        found = self._cell(value, condition)[0]
        if found is None or way.parts == 1:
            return found
        return self._table.part(found, self.width(value), way.part, way.parts)

    def _copied(self, copy: Instr, condition: Condition | None) -> Word:
        """What a `cp.async` brings: data, or zeros where it is masked off."""
        key = copy.index, -1 if condition is None else condition.number
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = self._table.of(self._find_copied(copy, condition))
        return found

    def _find_copied(self, copy: Instr, condition: Condition | None) -> Word:
        guard = self._guards.own(copy)
        if guard is None:
            return 0
        if condition is None or copy.guard is not None:
            return DATA
        return 0 if any(self._is_false(c, condition) for c in guard) else DATA

    def _hopped(self, value: int, hops: tuple[LaneHop, ...]) -> None:
        """A register that comes from other lanes."""
        count = hops[0].split
        bits = self.width(value) // count
        asked = self._asked(value)
        parts = [[h for h in hops if h.into == into] for into in range(count)]
        found = [self._part_from_lanes(value, ways, asked, bits) for ways in parts]
        free = self._assembled([f for f, _ in found], bits * count, bits * count, False)
        if free is None:
            return
        under: dict[int, Word | None] = {}
        for condition in asked:
            words = [u[condition.number] for _, u in found]
            under[condition.number] = self._assembled(words, bits * count, bits * count, False)
        if not self._dependences.of(value):
            free = self._table.statistic(free)
        self._set(value, free, under)

    def _part_from_lanes(
        self, value: int, hops: list[LaneHop], asked: tuple[Condition, ...], bits: int
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """The free word of `bits` bits of a register, and its words under conditions."""
        free = self._table.joined([self._from_lane(hop, None, bits) for hop in hops])
        brought: dict[int, tuple[list[Word | None], set[int]]] = {}
        for place, hop in enumerate(hops):
            for half in (0, 1):
                for condition, final in self._marks.hopped(value, half, hop):
                    for number in final:
                        words, places = brought.setdefault(number, ([], set()))
                        words.append(self._from_lane(hop, condition, bits))
                        places.add(place)
        under: dict[int, Word | None] = {}
        for condition in asked:
            words, places = brought.get(condition.number, ([], set()))
            to = condition.map
            for place, hop in enumerate(hops):
                apart = to is not None and (hop.at ^ to.at) & hop.fixed & to.fixed
                if place not in places and not apart:
                    words.append(self._from_lane(hop, None, bits))
            under[condition.number] = self._table.joined(words)
        return free, under

    def _from_lane(self, hop: LaneHop, condition: Condition | None, width: int) -> Word | None:
        value = self._ssa.resolve(hop.value)
        found = self._lookup(value, condition)
        own = self.width(value)
        if found is not None and hop.parts > 1:
            return self._part_of(value, found, hop.part, hop.parts)
        if found is None or own == width:
            return found
        return self._table.of(extended(found, own, width) if own < width else halves(found, own)[0])

    def width(self, value: int) -> int:
        """How many bits the register of a value has."""
        return BITS.get(self._ssa.register[value].type, 32)

    def _part_of(self, value: int, word: Word, part: int, parts: int) -> Word:
        return self._table.part(word, self.width(value), part, parts)

    # Products ---------------------------------------------------------------------------------
    def _product(self, instr: Instr, defs: tuple[int, ...]) -> None:
        if instr.index in self._products:
            product = self._products[instr.index]
        else:
            product = self._products[instr.index] = self._multiplied(instr, defs)
        if product is None:
            for value in defs:
                made = self._ssa.written(value)
                conditions = self._asked(made)
                self._set(made, DATA, dict.fromkeys([c.number for c in conditions], UNKNOWN))
            return
        table, times, now = self._table, self._times, self._now
        for line in product.lines:
            line.refresh(table, times, now)
        for memory in product.memory:
            if not self._look_at(instr, memory):
                return
        for register in product.registers:
            self._steps.left -= len(register.nodes) - 1
            free: Word | None = None
            under: dict[int, Word | None] = {}
            for number, sums in register.nodes:
                words: list[Word] = []
                for rows, columns, cell, part, parts in sums:
                    before = cell[0]
                    if before is None or rows.free is None or columns.free is None:
                        break
                    held = table.part(before, register.width, part, parts)
                    if product.may_start:
                        held = table.of(join(held, 0))
                    a = rows.under.get(number, rows.free)
                    b = columns.under.get(number, columns.free)
                    words.append(added(table, held, product.form, a, b))
                if len(words) < len(sums):
                    break
                if number < 0:
                    free = self._packed(words, register.width)
                else:
                    under[number] = self._packed(words, register.width)
            else:
                if free is not None:
                    self._set(register.value, free, under)

    def _packed(self, words: list[Word], width: int) -> Word:
        """The elements of one register of `width` bits as its word."""
        if len(words) == 1:
            return words[0]
        both = packed(words[0], words[1], width // 2) if len(words) == 2 else UNKNOWN
        return self._table.of(both)

    def _multiplied(self, instr: Instr, defs: tuple[int, ...]) -> _Product | None:
        """What the registers of a product's result are made of; None if that is not known."""
        fragments = self._marks.fragments_of(instr)
        form = FACTORS.get(instr.shape.types[0]) if instr.shape.types else None
        if fragments is None or form is None:
            return None
        product = _Product(form)
        is_added_to = instr.opcode != "wgmma" or self._movements.is_added_to(instr)
        product.may_start = is_added_to is None
        lines: dict[tuple[int, int], Line] = {}
        makers = [self._lines_of(instr, fragments, side, product) for side in (0, 1)]
        by_register: dict[int, list[Element]] = {}
        for element in fragments.result:
            by_register.setdefault(element.register, []).append(element)
        for register, elements in by_register.items():
            if register >= len(defs):
                continue
            value = self._ssa.written(defs[register])
            before = self._movements.accumulator(instr, register) if is_added_to else None
            sides: list[tuple[Line, Line]] = []
            for element in elements:
                pair = []
                for side, target in enumerate((element.first, element.second)):
                    key = side, id(target)
                    if key not in lines:
                        lines[key] = makers[side](target)
                    pair.append(lines[key])
                sides.append((pair[0], pair[1]))
            found = _Register(value, self.width(value))
            for condition in (None, *self._asked(value)):
                cell = self._constant(0)
                if before is not None:
                    cell = self._cell(self._ssa.resolve(before), condition)
                sums = [
                    (rows, columns, cell, element.part, element.parts)
                    for (rows, columns), element in zip(sides, elements, strict=True)
                ]
                found.nodes.append((-1 if condition is None else condition.number, sums))
            product.registers.append(found)
        product.lines = [line for line in lines.values() if not line.is_of_memory]
        return product

    def _lines_of(
        self, instr: Instr, fragments: Fragments, side: int, product: _Product
    ) -> Callable[[LaneMap], Line]:
        """What makes the rows (side 0) or columns (1) of a factor."""
        elements = fragments.second if side else fragments.first
        form = FACTORS.get(instr.shape.types[1])
        if elements is None:
            return self._lines_in_memory(instr, fragments, side, form, product)
        registers = elements_of(instr.operands[1 + side])
        values = tuple([self._reductions.read(instr, r) for r in registers])

        def line(target: LaneMap) -> Line:
            key = side, id(fragments), id(target), form and form.name, values
            found = self._lines.get(key)
            if found is None:
                along = [(e, e.second if side else e.first) for e in elements]
                own = [(e, a, values[e.register]) for e, a in along if meet(a, target)]
                places = [
                    self._place(value, e, a, target, fragments.lanes)
                    for e, a, value in own
                    if value is not None
                ]
                found = self._lines[key] = Line(form, places, len(places) == len(own))
            return found

        return line

    def _place(
        self, value: int, element: Element, along: LaneMap, target: LaneMap, lanes: int
    ) -> Place:
        """Where the word of an element of a factor is."""
        going_on = self._marks.going_on(value, element, along, target, (lanes, lanes))
        under = [(number, self._cell(value, condition)) for condition, number in going_on]
        width = self.width(value)
        return Place(value, self._cell(value, None), width, element.part, element.parts, under)

    def _lines_in_memory(
        self,
        instr: Instr,
        fragments: Fragments,
        side: int,
        form: Format | None,
        product: _Product,
    ) -> Callable[[LaneMap], Line]:
        """What makes the rows or columns of a factor in shared memory."""
        factor = self._marks.in_memory(instr, side)
        if factor is None:
            self._is_guessed = True
            unknown = Line.of_memory()
            unknown.free = False, form is None or self._is_stored_finite()
            return lambda target: unknown
        memory = _Memory(side, factor, form)
        product.memory.append(memory)
        element = factor.element
        along = element.second if side else element.first
        lanes = factor.lanes, fragments.lanes

        def line(target: LaneMap) -> Line:
            found = Line.of_memory()
            beyond = self._marks.beyond(factor.bits, along, target, lanes)
            memory.lines.append((found, [(c.number, number) for c, number in beyond]))
            return found

        return line

    def _look_at(self, instr: Instr, memory: _Memory) -> bool:
        """Look at a factor in shared memory; False if it is not known yet."""
        state = self.matrix(instr, memory.side, memory.factor)
        if state is memory.state:
            return True
        free, words = state
        if free is None:
            return False
        told = self._table.told
        for line, beyond in memory.lines:
            line.free = told(free, memory.form)
            line.under = {}
            for inner, number in beyond:
                word = words.get(inner, free)
                if word is None:
                    return False
                zero, finite = told(word, memory.form)
                before = line.under.get(number, (True, True))
                line.under[number] = before[0] and zero, before[1] and finite
        memory.state = state
        return True

    def matrix(
        self, instr: Instr, side: int, factor: Factor
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """What the elements of a factor in shared memory hold, freely and by condition."""
        key = instr.index, side
        held = self._matrices.get(key)
        if held is not None:
            times, then = self._times, held[1]
            is_same = held[0] == factor.bits
            if is_same and (then == self._now or not any(times.get(v, 0) > then for v in held[2])):
                return held[3]
        resolve = self._ssa.resolve
        stored = [
            resolve(way.value) for way in factor.ways if way.value is not None and way.value >= 0
        ]
        free = self._table.joined([self._started(way, None) for way in factor.ways])
        brought: dict[int, tuple[list[Word | None], set[int]]] = {}
        for place, condition, became in factor.passed:
            self._steps.left -= 1
            for number in became:
                words, places = brought.setdefault(number, ([], set()))
                words.append(self._started(factor.ways[place], condition))
                places.add(place)
        under: dict[int, Word | None] = {}
        for number, (words, places) in brought.items():
            condition = self._conditions.all[number]
            stores = {factor.ways[p].store.index for p in places}
            for place, way in enumerate(factor.ways):
                if place not in places and self._may_bring(way, condition, stores):
                    words.append(self._started(way, None))
            under[number] = self._table.joined(words)
        found = free, under
        self._matrices[key] = factor.bits, self._now, stored, found
        return found

    def _stored_for(self, instr: Instr) -> list[int]:
        """The values that are stored for the factors in shared memory of a product."""
        found = [self._marks.in_memory(instr, side) for side in (0, 1)]
        return [
            self._ssa.resolve(way.value)
            for factor in found
            if factor is not None
            for way in factor.ways
            if way.value is not None and way.value >= 0
        ]

    def _is_stored_finite(self) -> bool:
        """True if shared memory is taken to hold finite numbers only."""
        return not isinstance(self._unseen, Unknown)


class _Register:
    """A register of a product's result. `nodes` says, freely (-1) and by condition, of which row
    and column each element is the product, and to which part of which word it is added."""

    __slots__ = ("nodes", "value", "width")

    def __init__(self, value: int, width: int) -> None:
        self.value = value
        self.width = width
        self.nodes: list[tuple[int, list[tuple[Line, Line, Cell, int, int]]]] = []


class _Memory:
    """A factor in shared memory, and its lines with the conditions there and in the result."""

    __slots__ = ("factor", "form", "lines", "side", "state")

    def __init__(self, side: int, factor: Factor, form: Format | None) -> None:
        self.side = side
        self.factor = factor
        self.form = form
        self.lines: list[tuple[Line, list[tuple[int, int]]]] = []
        self.state: object = None
        """What was there when that was looked at last."""


class _Product:
    """A product: its lines in registers and in memory, and its result."""

    __slots__ = ("form", "lines", "may_start", "memory", "registers")

    def __init__(self, form: Format) -> None:
        self.form = form
        self.may_start = False
        """True if it may also be added to 0 instead of the accumulator."""
        self.lines: list[Line] = []
        self.memory: list[_Memory] = []
        self.registers: list[_Register] = []


class _Transfer(Evaluator):
    """The transfer functions of an evaluator over the words at hand."""

    def __init__(
        self,
        ssa: Ssa,
        guards: Guards,
        uniformity: Uniformity,
        reductions: Reductions,
        dependences: Dependences,
        steps: Budget,
        joins: Joins,
    ) -> None:
        super().__init__(
            ssa, guards, uniformity, reductions, Hypothesis(None, ALWAYS, 0), steps,
            dependences=dependences, joins=joins,
        )  # fmt: skip
        self._words: Words | None = None
        self._under: Condition | None = None
        self._is_missing_some = False

    def result(
        self, words: Words, instr: Instr, value: int, condition: Condition | None
    ) -> Word | None:
        """What an instruction writes; None while an operand is not known."""
        self._words = words
        self._under = condition
        self._is_missing_some = False
        is_test = self.ssa.register[value].type == "pred"
        found = self._tested(instr, value) if is_test else self._transfer(instr, value)
        # Words hold this one, which need not hold them.
        self._words = None
        return None if self._is_missing_some else found.word

    def loaded(self, instr: Instr, value: int) -> Word:
        """Data as it lies in a register after a load."""
        return self._as_loaded(instr, value, DATA)

    def constant(self, instr: Instr, operand: Operand) -> Word:
        """The word of an operand that is no register."""
        return super()._source(instr, operand).word

    def is_uniform(self, value: int) -> bool:
        """True if a value is the same for all threads that the condition tells apart."""
        bits = ANY_INDEX if self._under is None else self._under.bits or ANY_INDEX
        return not self._dependences.of(value) & bits

    def _source(self, instr: Instr, operand: Operand) -> Found:
        if isinstance(operand, Register):
            read = self._reductions.read(instr, operand)
            assert self._words is not None
            word = UNKNOWN if read is None else self._words._lookup(read, self._under)
            if word is None:
                self._is_missing_some = True
                word = UNKNOWN
            return Found(word, 0)
        return super()._source(instr, operand)

    def _outcome(self, predicate: int) -> tuple[bool | None, bool]:
        assert self._words is not None
        return self._words.truth(predicate, self._under), False

    def _truth(self, predicate: int) -> tuple[bool | None, bool]:
        assert self._words is not None
        return self._words.decided(predicate, self._under), False


__all__ = ["FACTORS", "Words"]
