"""What values hold where they are padding, carried forward with the marks.

For each value there is a *free* word, which contains whatever any lane of any thread may hold, and
for each condition of its marks the word of the elements for which that condition holds. Both are
computed in the order of the function, and again for what loops carry, until nothing changes: only
of values that are asked for, and of what these are made of. An
operand that is not marked with a condition holds its free word there, or, where it is the same for
all threads that the condition tells apart, a statistic: some finite number.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from ptxlint.dataflow import floats
from ptxlint.dataflow.conditions import (
    ANY_INDEX,
    Condition,
    Conditions,
    excludes,
    excludes_beyond,
    negative_beyond,
)
from ptxlint.dataflow.exchanges import moved_lanes
from ptxlint.dataflow.floats import BF16, BYTES, F16, F32, F64, FORMATS, Format
from ptxlint.dataflow.fragments import Element, Fragments, elements_of
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, implies
from ptxlint.dataflow.joins import Joins
from ptxlint.dataflow.lane_hops import LaneHop
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements, Way, whole_ways
from ptxlint.dataflow.obstacles import in_the_way_of_load
from ptxlint.dataflow.padding_marks import CONTRACTIONS, Marks
from ptxlint.dataflow.padding_matrices import Factor
from ptxlint.dataflow.padding_values import (
    DATA,
    HOPPING,
    UNKNOWN,
    Data,
    Dependences,
    Either,
    Evaluator,
    Found,
    Hypothesis,
    Number,
    Unknown,
    Word,
    as_float,
    computed,
    halves,
    is_arithmetic,
    join,
    negation,
    widened_word,
)
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.reductions import WHOLE, Node, Reductions
from ptxlint.dataflow.register_words import extended, loaded_bits, packed, whole_of
from ptxlint.dataflow.ssa_values import INSERT, MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.standing import Standing
from ptxlint.dataflow.uniformity import Uniformity
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
_BITS: Final = frozenset({"mov", "cvt", "prmt", "and", "or", "xor", "shl", "shr", "bfi", "bfe"})
"""Operations whose result depends on their operands' words alone."""
_BROUGHT: Final = frozenset({"ld", "ldu", "ldmatrix", "redux", "atom", "call"})
"""What gives data that is not made of the operands."""
_NO_VALUE: Final = -1
"""In place of a value that is not followed."""


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
        shared_is_finite: bool,
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
        self._unseen: Word = DATA if shared_is_finite else UNKNOWN
        """What a load from shared memory gives of which nobody knows where it comes from."""
        self.is_guessed = False
        """True if that was made use of."""
        self._transfer = _Transfer(
            self, ssa, guards, uniformity, reductions, dependences, steps, joins
        )
        self._free: dict[int, Word] = {}
        self._under: dict[int, dict[int, Word | None]] = {}
        """By value and condition. None is what is not known yet."""
        self._settled: dict[int, tuple[Word, Word]] = {}
        self._conditions_of: dict[int, tuple[Condition, ...]] = {}
        self._truths: dict[tuple[int, int], bool | None] = {}
        self._beyond: dict[tuple[int, int], list[Polynomial]] = {}
        self._implications: dict[tuple[int, int], int | None] = {}
        self._coverings: dict[tuple[int, int], tuple[int, ...]] = {}
        self._times: dict[int, int] = {}
        """By value: when it changed last."""
        self._wanted: set[int] = set()
        self._inputs: dict[int, list[int]] = {}
        self._readers: dict[int, list[int]] = {}
        """By value: the units that read it. Units are the values of joins, or ~instruction."""
        self._places: dict[int, tuple[int, int, int]] = {}
        self._changed: list[int] = []
        """The values that changed since that was last asked."""
        self._is_running = False
        self._has_given_up = False
        self._counts: dict[int, int] = {}
        self._now = 0
        self._behind: dict[tuple[int, int], tuple[int, ...]] = {}
        self._loaded: dict[object, tuple[Word | None, dict[int, Word | None]]] = {}
        self._sides: dict[object, Side | None] = {}
        self._matrices: dict[
            tuple[int, int], tuple[list[int], Word | None, dict[int, Word | None]]
        ] = {}
        self._plans: dict[int, _Plan | None] = {}
        self._operands: dict[int, list[tuple[int | None, Word]]] = {}
        self._known: dict[tuple[object, ...], tuple[Word, list[Word]]] = {}
        for value in ssa.at_entry:
            self._free[value] = UNKNOWN

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
        fresh = self._made_of([self._ssa.resolve(v) for v in values])
        if fresh:
            self._is_running = True
            self._run(fresh)
            self._is_running = False

    def assume_anything(self) -> None:
        """Take what comes from shared memory in an unknown way to be anything from now on."""
        self._unseen = UNKNOWN

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
        if opcode == "ldmatrix" or (opcode == "ld" and instr.shape.space == "shared"):
            for at in range(len(defs)):
                inputs += self._stored(instr, at)
        elif opcode not in _BROUGHT and not instr.shape.row.is_call:
            inputs = [resolve(v) for v in ssa.use_values[instr.index] if self._is_read(v)]
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
        self._free.clear()
        self._under.clear()

    def _set(self, value: int, free: Word, under: dict[int, Word | None]) -> None:
        old = self._free.get(value)
        changed = old is None or not (old is free or old == free)
        if changed:
            self._free[value] = free
        if under:
            held = self._under.get(value)
            if held != under:
                self._under[value] = under
                changed = True
        if changed:
            self._now += 1
            self._times[value] = self._now
            self._changed.append(value)

    def _asked(self, value: int) -> tuple[Condition, ...]:
        """The conditions under which a value is wanted."""
        found = self._conditions_of.get(value)
        if found is None:
            found = self._conditions_of[value] = self._marks.conditions_of(value)
            if found and value not in self._under:
                self._under[value] = dict.fromkeys([c.number for c in found])
        return found

    def _lookup(self, value: int, condition: Condition | None) -> Word | None:
        """The word of a resolved value; None if it is not known yet."""
        if condition is None:
            return self._free.get(value)
        asked = self._asked(value)
        under = self._under.get(value)
        if under is not None and condition.number in under:
            return under[condition.number]
        implied = self._implied(condition, asked) if asked else None
        if under is not None and asked:
            if implied is not None:
                return under[implied]
            covering = self._covered(condition, asked)
            if covering:
                return _join_all([under[number] for number in covering])
        bits = condition.bits or ANY_INDEX
        source = self._exchanged(value)
        if source is not None and not source[1] & bits:
            return self._lookup(source[0], condition)
        found = self._free.get(value)
        if found is None or self._dependences.of(value) & bits:
            return found
        return self._as_statistic(value, found)

    def _implied(self, condition: Condition, others: tuple[Condition, ...]) -> int | None:
        """The number of another condition that holds wherever this one does; None if none is known.

        One bound may be given in elements and in vectors of elements.
        """
        if condition.map is None or not condition.bits:
            return None
        key = condition.number, id(others)
        if key not in self._implications:
            self._implications[key] = next(
                (c.number for c in others if self._is_implied(condition, c)), None
            )
        return self._implications[key]

    def _is_implied(self, condition: Condition, other: Condition) -> bool:
        if other.map is None or not other.bits or other.bits & ~condition.bits:
            return False
        if other.fixed & ~condition.fixed or other.at != condition.at & other.fixed:
            return False
        if other.store >= 0:
            return False
        if other.rounds != condition.rounds or condition.store >= 0:
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
            if c.fixed and c.store < 0 and c.rounds == condition.rounds
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
        return None if source is None else (source, moved_lanes(instr))

    def _as_statistic(self, value: int, word: Word) -> Word:
        """What is the same for many lanes is taken to be finite."""
        held = self._settled.get(value)
        if held is not None and held[0] is word:
            return held[1]
        found = word
        if isinstance(word, Number):
            if word.value.point is None:
                found = Number(word.form, floats.assume_finite(word.value, word.form))
        elif isinstance(word, (Unknown, Either)) or (type(word) is tuple and _is_vague(word)):
            found = DATA
        self._settled[value] = word, found
        return found

    # Joins ------------------------------------------------------------------------------------
    def _phi(self, phi: int, block: int) -> None:
        ssa = self._ssa
        if ssa.resolve(phi) != phi:
            return
        operands = [ssa.resolve(v) for v in ssa.operands[phi]]
        sources = ssa.phi_sources(block)
        loop = self._reductions.loops.with_header(block)
        position = ssa.cfg.position
        back = [
            loop is not None and s >= 0 and self._reductions.loops.contains(loop, s)
            for s in sources
        ]
        is_header = any(back) or any(s >= 0 and position[s] >= position[block] for s in sources)
        if is_header and loop is None:
            self._set(phi, UNKNOWN, dict.fromkeys([c.number for c in self._asked(phi)], UNKNOWN))
            return
        free = self._joined(phi, operands, block, None, is_header)
        if free is None:
            return
        if not self._dependences.of(phi):
            free = DATA if is_header else self._as_statistic(phi, free)
        under: dict[int, Word | None] = {}
        asked = self._asked(phi)
        if asked and is_header:
            before = [
                self._marks.before(operand, block) if is_back else None
                for operand, is_back in zip(operands, back, strict=True)
            ]
            for condition in asked:
                words: list[Word | None] = []
                for operand, earlier in zip(operands, before, strict=True):
                    found = None if earlier is None else earlier.get(condition.number)
                    if earlier is not None and not found:
                        words.append(self._free.get(operand))
                        continue
                    words += [self._lookup(operand, c) for c in found or [condition]]
                    if found and all(len(c.rounds) > len(condition.rounds) for c in found):
                        # What was about one round says nothing of what the others left.
                        words.append(self._free.get(operand))
                under[condition.number] = _join_all(words)
        else:
            for condition in asked:
                under[condition.number] = self._joined(phi, operands, block, condition, False)
        if is_header:
            free, under = self._widened(phi, free, under)
        self._set(phi, free, under)

    def _joined(
        self,
        phi: int,
        operands: list[int],
        block: int,
        condition: Condition | None,
        is_header: bool,
    ) -> Word | None:
        """What comes in through those arms of a join that may be open."""
        words = [self._lookup(v, condition) for v in operands]
        if not is_header and len(operands) > 1:
            arms = self._joins.open_arms(block, lambda p: self.truth(p, condition))
            words = [w for w, is_open in zip(words, arms, strict=True) if is_open]
        return _join_all(words)

    def _widened(
        self, phi: int, free: Word, under: dict[int, Word | None]
    ) -> tuple[Word, dict[int, Word | None]]:
        count = self._counts[phi]
        if count <= _ROUNDS:
            return free, under
        if count > 2 * _ROUNDS:
            return UNKNOWN, dict.fromkeys(under, UNKNOWN)
        held = self._free.get(phi)
        if held is not None and held != free:
            free = widened_word(held, free)
        old = self._under.get(phi) or {}
        out: dict[int, Word | None] = {}
        for number, word in under.items():
            before = old.get(number)
            if word is not None and before is not None and before != word:
                word = widened_word(before, word)
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
                    conditions = self._asked(v)
                    self._set(v, UNKNOWN, dict.fromkeys([c.number for c in conditions], UNKNOWN))
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
        ssa = self._ssa
        asked = self._asked(value)
        if ssa.kind[value] == INSERT:
            self._set(value, UNKNOWN, dict.fromkeys([c.number for c in asked], UNKNOWN))
            return
        predicate, if_true, if_false = ssa.operands[value]
        a, b = ssa.resolve(if_true), ssa.resolve(if_false)
        if in_the_way_of_load(self._instrs[ssa.instr[value]]):
            # What is not loaded is as little known as where it was loaded from.
            a, b = (a, _NO_VALUE) if if_false == ssa.old(value) else (_NO_VALUE, b)
        free = self._chosen(self.truth(predicate, None), a, b, None)
        if free is None:
            return
        if not self._dependences.of(value):
            free = self._as_statistic(value, free)
        under = {c.number: self._chosen(self.truth(predicate, c), a, b, c) for c in asked}
        self._set(value, free, under)

    def _chosen(
        self, truth: bool | None, if_true: int, if_false: int, condition: Condition | None
    ) -> Word | None:
        arms = (if_true, if_false) if truth is None else (if_true if truth else if_false,)
        if _NO_VALUE in arms:
            return UNKNOWN
        return _join_all([self._lookup(arm, condition) for arm in arms])

    def _result(self, instr: Instr, at: int, value: int) -> None:
        """What an instruction writes to a register."""
        ssa = self._ssa
        if ssa.resolve(value) != value or ssa.kind[value] != RESULT:
            return
        opcode = instr.opcode
        if opcode == "ldmatrix" or (opcode == "ld" and instr.shape.space == "shared"):
            self._load(instr, at, value)
            return
        if opcode in HOPPING:
            hops = self._movements.hops(value)
            if hops:
                self._hopped(value, hops)
                return
        free = self._compute(instr, value, None)
        if free is None:
            return
        if not self._dependences.of(value) or self._is_combined(value):
            free = self._as_statistic(value, free)
        asked = self._asked(value)
        under: dict[int, Word | None] = {}
        for condition in asked:
            self._steps.left -= 1
            found = self._compute(instr, value, condition)
            if found is not None and not self._dependences.of(value) & (
                condition.bits or ANY_INDEX
            ):
                found = self._as_statistic(~value, found)
            under[condition.number] = found
        self._set(value, free, under)

    def _is_combined(self, value: int) -> bool:
        """True for what lanes make together, where it is known which lanes those are."""
        return self._conditions.width is not None and self._reductions.step(value) is not None

    def _compute(self, instr: Instr, value: int, condition: Condition | None) -> Word | None:
        plan = self._plans.get(instr.index, _NO_PLAN)
        if plan is _NO_PLAN:
            plan = self._plans[instr.index] = self._planned(instr)
        if plan is not None:
            words: list[Word] = []
            for source, constant in plan.operands:
                if source is None:
                    words.append(constant)
                    continue
                found = self._lookup(source, condition)
                if found is None:
                    return None
                words.append(found)
            return computed(instr, plan.form, words, plan.same, False)
        opcode = instr.opcode
        if opcode == "shfl":
            source = self._reductions.read(instr, instr.operands[1])
            return UNKNOWN if source is None else self._lookup(source, condition)
        if opcode in ("ld", "ldu", "redux", "atom", "call") or instr.shape.row.is_call:
            return self._brought(instr, value)
        if opcode in _BITS:
            return self._moved(instr, value, condition)
        return self._transfer.result(instr, value, condition)

    def _moved(self, instr: Instr, value: int, condition: Condition | None) -> Word | None:
        """What moves, packing and conversions make: the same of the same words, once."""
        inputs = self._operands.get(instr.index)
        if inputs is None:
            inputs = self._operands[instr.index] = self._operands_of(instr)
        key: list[object] = [instr.shape, self._ssa.result[value]]
        words: list[Word] = []
        for source, constant in inputs:
            word = constant if source is None else self._lookup(source, condition)
            if word is None:
                return None
            words.append(word)
            key.append(word if isinstance(word, int) else id(word))
        known = self._known.get(tuple(key))
        if known is None:
            found = self._transfer.result(instr, value, condition)
            if found is None:
                return None
            # The words are kept beside the result, as they are known by their identity.
            known = self._known[tuple(key)] = found, words
        return known[0]

    def _operands_of(self, instr: Instr) -> list[tuple[int | None, Word]]:
        """The operands after the first, those of vectors one by one: values or words."""
        out: list[tuple[int | None, Word]] = []
        for operand in instr.operands[1:]:
            for element in elements_of(operand):
                read = self._reductions.read(instr, element)
                known = read is not None or isinstance(element, Register)
                out.append((read, UNKNOWN if known else self._transfer.constant(instr, element)))
        return out

    def _brought(self, instr: Instr, value: int) -> Word:
        """What comes from memory or from other lanes."""
        uniform = not self._dependences.of(value)
        if uniform or (instr.opcode == "ld" and instr.shape.space in ("global", "")):
            return self._transfer.loaded(instr, value)
        return UNKNOWN

    def _planned(self, instr: Instr) -> _Plan | None:
        """The operands of plain arithmetic; None for everything else."""
        if not is_arithmetic(instr) or instr.opcode in ("div", "rcp"):
            return None
        operands: list[tuple[int | None, Word]] = []
        for operand in instr.operands[1:]:
            read = self._reductions.read(instr, operand)
            if read is None and isinstance(operand, Register):
                return None
            constant = UNKNOWN if read is not None else self._transfer.constant(instr, operand)
            operands.append((read, constant))
        same = (
            instr.opcode in ("mul", "fma")
            and len(operands) > 1
            and operands[0][0] is not None
            and operands[0][0] == operands[1][0]
        )
        return _Plan(FORMATS[instr.shape.type], operands, same)

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
        needed = [self._guards.of_predicate(predicate, truth) for truth in (True, False)]
        for truth, conjuncts in zip((True, False), needed, strict=True):
            if conjuncts is None:
                return not truth
            if condition is not None and any(self._is_false(c, condition) for c in conjuncts):
                return not truth
        known = ALWAYS
        if condition is not None and condition.conjunct is not None and not condition.fixed:
            known = frozenset({negation(condition.conjunct)})
        for truth, conjuncts in zip((True, False), needed, strict=True):
            if conjuncts is not None and all(implies(known, c) for c in conjuncts):
                return truth
        return None if condition is None else self._decide_beyond(predicate, needed, condition)

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
            self.is_guessed = True
            self._set(value, self._unseen, dict.fromkeys([c.number for c in asked], self._unseen))
            return
        count = len(parts)
        active = [self._active(instr, at, part, parts) for part in range(count)]
        keys = tuple([self._marks.together(instr, at, part * 2 // count) for part in range(count)])
        whole = whole_ways([[a.way for a in ways] for ways in active])
        if whole is not None:
            together = tuple([
                Arrival(way, tuple([ways[place].bits[0] for ways in active]))
                for place, way in enumerate(whole)
            ])  # fmt: skip
            found = [self._arrived(together, keys, asked)]
        else:
            found = [
                self._arrived(tuple(ways), (key,), asked)
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
            free = self._as_statistic(value, free)
        self._set(value, free, under)

    def _active(
        self, instr: Instr, at: int, part: int, parts: tuple[tuple[Way, ...], ...]
    ) -> list[Arrival]:
        """The ways into a part of a register that say something of their own."""
        count = len(parts)
        active = self._marks.active(instr, at, part * 2 // count)
        if count > 2:
            # Marks are of halves, which both of their parts come into.
            active = [(way, bits) for way, bits in active if way in parts[part]]
        return [Arrival(way, (bits,)) for way, bits in active]

    @staticmethod
    def _assembled(found: list[Word | None], bits: int, width: int, is_signed: bool) -> Word | None:
        """The word of a register of `width` bits whose lowest `bits` were loaded in these parts."""
        parts: list[Word] = []
        for word in found:
            if word is None:
                return None
            parts.append(word)
        word = parts[0] if len(parts) == 1 else whole_of(parts, bits // len(parts))
        return word if bits == width else extended(word, bits, width, is_signed)

    def _arrived(
        self,
        arrivals: tuple[Arrival, ...],
        together: tuple[tuple[tuple[int, int], ...], ...],
        asked: tuple[Condition, ...],
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """The free word of a loaded part, and its words under conditions."""
        ways: dict[object, Arrival] = {}
        for arrival in arrivals:
            ways.setdefault(self._state(arrival), arrival)
        key = tuple(ways), tuple([c.number for c in asked])
        held = self._loaded.get(key)
        if held is not None:
            return held
        distinct = list(ways.values())
        free = _join_all([self._started(a.way, None) for a in distinct])
        brought: dict[int, tuple[list[Word | None], set[int]]] = {}
        for place, (way, by_half) in enumerate(distinct):
            for half, bits in enumerate(by_half):
                for condition, final in self._marks.put_through(together[half], way.route, bits):
                    for number in final:
                        words, places = brought.setdefault(number, ([], set()))
                        words.append(self._started(way, condition))
                        places.add(place)
        under: dict[int, Word | None] = {}
        for condition in asked:
            self._steps.left -= 1
            found = brought.get(condition.number)
            if found is None:
                continue
            words, places = found
            stores = {distinct[p].way.store.index for p in places}
            for place, arrival in enumerate(distinct):
                if place not in places and self._may_bring(arrival.way, condition, stores):
                    words.append(self._started(arrival.way, self._own_of(arrival, condition)))
            under[condition.number] = _join_all(words)
        self._loaded[key] = free, under
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
            if there is not None and (there is here or self._is_implied(here, there)):
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

    def _state(self, arrival: Arrival) -> object:
        """What tells apart what may come a way."""
        way, bits = arrival
        if way.value is None:
            return way.route.number, bits, self._guards.own(way.store) is None
        if way.value < 0:
            return way.route.number, -1
        value = self._ssa.resolve(way.value)
        return way.route.number, bits, value, way.part, way.parts, self._times.get(value), way.maybe

    def _started(self, way: Way, condition: Condition | None) -> Word | None:
        """What a store puts into shared memory."""
        if way.maybe or (way.value is not None and way.value < 0):
            return UNKNOWN
        if way.value is None:
            return self._copied(way.store, condition)
        value = self._ssa.resolve(way.value)
        found = self._lookup(value, condition)
        return None if found is None else self._part_of(way.value, found, way.part, way.parts)

    def _copied(self, copy: Instr, condition: Condition | None) -> Word:
        """What a `cp.async` brings: data, or zeros where it is masked off."""
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
            free = self._as_statistic(value, free)
        self._set(value, free, under)

    def _part_from_lanes(
        self, value: int, hops: list[LaneHop], asked: tuple[Condition, ...], bits: int
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """The free word of `bits` bits of a register, and its words under conditions."""
        free = _join_all([self._from_lane(hop, None, bits) for hop in hops])
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
            under[condition.number] = _join_all(words)
        return free, under

    def _from_lane(self, hop: LaneHop, condition: Condition | None, width: int) -> Word | None:
        value = self._ssa.resolve(hop.value)
        found = self._lookup(value, condition)
        own = self.width(value)
        if found is not None and hop.parts > 1:
            return self._part_of(value, found, hop.part, hop.parts)
        if found is None or own == width:
            return found
        return extended(found, own, width) if own < width else halves(found, own)[0]

    def width(self, value: int) -> int:
        """How many bits the register of a value has."""
        return BITS.get(self._ssa.register[value].type, 32)

    def _part_of(self, value: int, word: Word, part: int, parts: int) -> Word:
        width = self.width(value)
        while parts > 1:
            half = part * 2 // parts
            word = halves(word, width)[half]
            parts //= 2
            part -= half * parts
            width //= 2
        return word

    # Products ---------------------------------------------------------------------------------
    def _product(self, instr: Instr, defs: tuple[int, ...]) -> None:
        fragments = self._marks.fragments_of(instr)
        form = FACTORS.get(instr.shape.types[0]) if instr.shape.types else None
        if fragments is None or form is None:
            for value in defs:
                made = self._ssa.written(value)
                conditions = self._asked(made)
                self._set(made, DATA, dict.fromkeys([c.number for c in conditions], UNKNOWN))
            return
        by_register: dict[int, list[Element]] = {}
        for element in fragments.result:
            by_register.setdefault(element.register, []).append(element)
        for register, elements in by_register.items():
            if register < len(defs):
                self._multiplied(
                    instr, fragments, form, elements, self._ssa.written(defs[register])
                )

    def _multiplied(
        self,
        instr: Instr,
        fragments: Fragments,
        form: Format,
        elements: list[Element],
        value: int,
    ) -> None:
        """A register of the result."""
        asked = self._asked(value)
        free: list[Word] = []
        under: dict[int, list[Word]] = {c.number: [] for c in asked}
        for element in elements:
            rows = self.side(instr, fragments, 0, element)
            columns = self.side(instr, fragments, 1, element)
            before = self._accumulated(instr, element, None)
            if rows is None or columns is None or before is None:
                return
            free.append(
                _summed(before, form, (rows.zero, rows.finite), (columns.zero, columns.finite))
            )
            for condition in asked:
                self._steps.left -= 1
                a = rows.under.get(condition.number, (rows.zero, rows.finite))
                b = columns.under.get(condition.number, (columns.zero, columns.finite))
                held = self._accumulated(instr, element, condition)
                if held is None:
                    return
                under[condition.number].append(_summed(held, form, a, b))
        width = BITS.get(self._ssa.register[value].type, 32)
        self._set(
            value, _packed(free, width), {n: _packed(words, width) for n, words in under.items()}
        )

    def _accumulated(
        self, instr: Instr, element: Element, condition: Condition | None
    ) -> Word | None:
        """The element of the accumulator that a result's element is added to."""
        kept: bool | None = True
        if instr.opcode == "wgmma":
            kept = self._movements.is_added_to(instr)
            if kept is False:
                return 0
        value = self._movements.accumulator(instr, element.register)
        if value is None:
            return 0
        found = self._lookup(self._ssa.resolve(value), condition)
        if found is None:
            return None
        found = self._part_of(value, found, element.part, element.parts)
        return found if kept else join(found, 0)

    def side(self, instr: Instr, fragments: Fragments, side: int, element: Element) -> Side | None:
        """What a factor's row (side 0) or column (1) holds of which a result's element is made.

        None while it is not known.
        """
        elements = fragments.second if side else fragments.first
        target = element.second if side else element.first
        form = FACTORS.get(instr.shape.types[1])
        if elements is None:
            return self._memory_side(instr, side, form, target, fragments)
        registers = elements_of(instr.operands[1 + side])
        own = [
            (self._reductions.read(instr, registers[e.register]), e)
            for e in elements
            if _meet(e.second if side else e.first, target)
        ]
        key = (
            side, id(target), instr.shape.types[1],
            tuple([(v, e.part, self._times.get(v, 0)) if v is not None else None for v, e in own]),
        )  # fmt: skip
        found = self._sides.get(key)
        if found is None:
            found = self._sides[key] = self._find_side(own, form, target, side, fragments)
        return found

    def _find_side(
        self,
        own: list[tuple[int | None, Element]],
        form: Format | None,
        target: LaneMap,
        side: int,
        fragments: Fragments,
    ) -> Side | None:
        zero = finite = True
        marked: dict[int, int] = {}
        zeros: dict[int, bool] = {}
        finites: dict[int, bool] = {}
        for value, e in own:
            self._steps.left -= 1
            if value is None:
                zero = finite = False
                continue
            word = self._lookup(value, None)
            if word is None:
                return None
            is_zero, is_finite = told(self._part_of(value, word, e.part, e.parts), form)
            zero, finite = zero and is_zero, finite and is_finite
            along = e.second if side else e.first
            lanes = fragments.lanes, fragments.lanes
            for condition, beyond in self._marks.going_on(value, e, along, target, lanes):
                found = self._lookup(value, condition)
                if found is None:
                    return None
                is_zero, is_finite = told(self._part_of(value, found, e.part, e.parts), form)
                marked[beyond] = marked.get(beyond, 0) + 1
                zeros[beyond] = zeros.get(beyond, True) and is_zero
                finites[beyond] = finites.get(beyond, True) and is_finite
        under: dict[int, tuple[bool, bool]] = {}
        for number, count in marked.items():
            whole = count >= len(own)
            under[number] = (
                (zeros[number] and (whole or zero)),
                (finites[number] and (whole or finite)),
            )
        return Side(zero, finite, under)

    def _memory_side(
        self,
        instr: Instr,
        side: int,
        form: Format | None,
        target: LaneMap,
        fragments: Fragments,
    ) -> Side | None:
        """A row or column of a factor in shared memory."""
        factor = self._marks.in_memory(instr, side)
        if factor is None:
            self.is_guessed = True
            return Side(False, form is None or self._is_stored_finite(), {})
        free, words = self.matrix(instr, side, factor)
        if free is None:
            return None
        element = factor.element
        along = element.second if side else element.first
        lanes = factor.lanes, fragments.lanes
        under: dict[int, tuple[bool, bool]] = {}
        for condition, beyond in self._marks.beyond(factor.bits, along, target, lanes):
            word = words.get(condition.number, free)
            if word is None:
                return None
            zero, finite = told(word, form)
            before = under.get(beyond, (True, True))
            under[beyond] = before[0] and zero, before[1] and finite
        return Side(*told(free, form), under)

    def matrix(
        self, instr: Instr, side: int, factor: Factor
    ) -> tuple[Word | None, dict[int, Word | None]]:
        """What the elements of a factor in shared memory hold, freely and by condition."""
        key = instr.index, side
        state = [factor.bits, *(self._time_of(way) for way in factor.ways)]
        held = self._matrices.get(key)
        if held is not None and held[0] == state:
            return held[1], held[2]
        free = _join_all([self._started(way, None) for way in factor.ways])
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
            under[number] = _join_all(words)
        self._matrices[key] = state, free, under
        return free, under

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

    def _time_of(self, way: Way) -> int:
        if way.value is None or way.value < 0:
            return 0
        return self._times.get(self._ssa.resolve(way.value), 0)

    def _is_stored_finite(self) -> bool:
        """True if shared memory is taken to hold finite numbers only."""
        return not isinstance(self._unseen, Unknown)


class Side(NamedTuple):
    """A row or column of a factor: whether it is all 0, whether finite, freely and by condition of
    the result."""

    zero: bool
    finite: bool
    under: dict[int, tuple[bool, bool]]


class _Plan(NamedTuple):
    """Plain arithmetic: its format, its operands (a value or a word), if the first two are one."""

    form: Format
    operands: list[tuple[int | None, Word]]
    same: bool


_NO_PLAN: Final = _Plan(F32, [], False)


class _Transfer(Evaluator):
    """The transfer functions of an evaluator over the words at hand."""

    def __init__(
        self,
        words: Words,
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
        self._words = words
        self._under: Condition | None = None
        self._is_missing_some = False

    def result(self, instr: Instr, value: int, condition: Condition | None) -> Word | None:
        """What an instruction writes; None while an operand is not known."""
        self._under = condition
        self._is_missing_some = False
        is_test = self.ssa.register[value].type == "pred"
        found = self._tested(instr, value) if is_test else self._transfer(instr, value)
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
            word = UNKNOWN if read is None else self._words._lookup(read, self._under)
            if word is None:
                self._is_missing_some = True
                word = UNKNOWN
            return Found(word, 0)
        return super()._source(instr, operand)

    def _outcome(self, predicate: int) -> tuple[bool | None, bool]:
        return self._words.truth(predicate, self._under), False

    def _truth(self, predicate: int) -> tuple[bool | None, bool]:
        return self._words.decided(predicate, self._under), False


def _is_vague(word: tuple[Any, ...]) -> bool:
    """True if nothing is known of a part of a word."""
    return any(
        _is_vague(half) if type(half) is tuple else isinstance(half, (Unknown, Either))
        for half in word
    )


def _join_all(words: Iterable[Word | None]) -> Word | None:
    """The join of all words that are known; None if none is."""
    found: Word | None = None
    for word in words:
        if word is None or word is found:
            continue
        found = word if found is None else join(found, word)
    return found


def _packed(words: list[Word], width: int) -> Word:
    """The elements of one register of `width` bits as its word."""
    if len(words) == 1:
        return words[0]
    return packed(words[0], words[1], width // 2) if len(words) == 2 else UNKNOWN


def _meet(own: LaneMap, target: LaneMap) -> bool:
    """True if threads with elements of a factor have rows (or columns) of the result's element."""
    still = ~(own.moving | target.moving)
    return not (own.constant ^ target.constant) & still


def told(word: Word, form: Format | None) -> tuple[bool, bool]:
    """Whether a factor's element is 0, and whether it is finite; without a format an integer."""
    if form is not None:
        if isinstance(word, Data):
            return False, True
        number = as_float(word, form)
        return number.is_zero, number.is_finite
    return isinstance(word, int) and not word, True


def _summed(before: Word, form: Format, a: tuple[bool, bool], b: tuple[bool, bool]) -> Word:
    """What an element holds once the products of a row and a column were added."""
    if (a[0] and b[1]) or (b[0] and a[1]):
        return before
    if a[1] and b[1] and as_float(before, form).is_finite:
        return DATA
    return Number(form, floats.anything(form))


__all__ = ["FACTORS", "Side", "Words", "told"]
