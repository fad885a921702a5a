"""Where padding goes: which conditions of which loads may show in a value.

A mark is a condition ("this element lies beyond the bound") together with the load of the source
that masks it. Marks spread forward from masked loads with the data: operations on one element keep
them, movements to other threads put their conditions in terms of these, what combines elements
keeps the conditions that all of them share. The halves of a packed register have marks of their
own. Where a movement is not understood the mark goes on with a condition of which nothing can be
asked, and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, NamedTuple

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.agenda import Agenda
from ptxlint.dataflow.conditions import ANY_INDEX, Condition, Conditions
from ptxlint.dataflow.exchanges import moved_lanes
from ptxlint.dataflow.fragments import (
    Element,
    Fragments,
    carry,
    depends_on,
    elements_of,
)
from ptxlint.dataflow.joins import Joins
from ptxlint.dataflow.lane_bits import LANE
from ptxlint.dataflow.lane_hops import LaneHop
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements, Route, Way
from ptxlint.dataflow.padding_demand import Demand
from ptxlint.dataflow.padding_matrices import Factor, Factors, Passed
from ptxlint.dataflow.reductions import WHOLE, Leaf, Node, Reduction, Reductions
from ptxlint.dataflow.register_words import loaded_bits
from ptxlint.dataflow.ssa_values import INSERT, MERGE, Ssa
from ptxlint.dataflow.tensor_instruction import is_tensor_product
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.facts import Budget
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Operand, Vector
from ptxlint.ir.types import BITS

CONTRACTIONS: Final = frozenset({"mma", "wgmma", "tcgen05", "wmma"})
_PASSES: Final = 24
"""So often all instructions are looked at before what loops carry is given up."""
_MOST_MARKS: Final = 96
"""So many marks are told apart on one value."""
_WIDE: Final = frozenset({"b32", "u32", "s32"})
_PACKED: Final = frozenset({"f16x2", "bf16x2", "f32x2"})
_WHOLE_WIDTH: Final = 32
_UNITED, _BY_HALF = 1, 2
"""How plain operations on elements of one thread make marks: of both halves together, or apart."""
_ENDS: Final = frozenset({"st", "stmatrix", "red", "bra", "call", "bar", "barrier"})
IN_TENSORS: Final = "the layouts of tensor memory are not followed"
_SPECIAL: Final = (
    CONTRACTIONS
    | _ENDS
    | {"ld", "ldmatrix", "ldu", "atom", "red", "shfl", "redux"}
    | {"mov", "cvt", "prmt", "and", "shl", "shr"}
)
"""What is more than an operation whose results have the marks of all operands."""
_IN_MEMORY: Final = "the layout of a factor in shared memory is not known"
_IN_PART: Final = "only a part of an axis is combined"
_CROWDED: Final = "padding of too many places meets in one value"
_SEVERAL_WAYS: Final = "the padding's place in a matrix is not known"


class Mark(NamedTuple):
    """A condition and the number of the load that it is of."""

    condition: Condition
    load: int


class Entry:
    """The ways into a part of a loaded register, and what was last found to come of their marks.

    `covered` has the places of ways that another one covers unless a mark changes with one of
    the loops with these headers: the same was stored before the loop, whichever round reads it.
    """

    __slots__ = ("covered", "put", "result", "seen", "together", "ways")

    def __init__(self, ways: tuple[Way, ...]) -> None:
        self.ways = ways
        self.seen = -1
        self.put: list[int] | None = None
        self.result = 0
        self.together: Together = ()
        self.covered: dict[int, tuple[int, ...]] = {}
        wide = [way for way in ways if way.route.is_of_any_round]
        if not wide or len(wide) == len(ways):
            return
        general = set(map(_geometry, wide))
        for place, way in enumerate(ways):
            if way.route.is_of_one_round and _geometry(way) in general:
                self.covered[place] = tuple([age.header for age in way.route.rounds])


def _geometry(way: Way) -> tuple[object, ...]:
    """What a way has in common with those of the same data in other rounds."""
    route = way.route
    headers = tuple([age.header for age in route.rounds])
    piece = route.fixed, route.at, route.start, route.images, route.outside, headers
    return (way.store.index, *way[1:5], *piece)


Together = tuple[tuple[int, int, int], ...]
"""What comes into a part of a register: the shapes of the routes, where in what was stored each
begins as far as that matters to its marks, and these marks."""
Halves = tuple[int, int]
"""The marks of the low and of the high half of a register, as bits."""
NONE: Final[Halves] = (0, 0)


class Marks:
    """The marks of all values of a function."""

    def __init__(
        self,
        ssa: Ssa,
        uniformity: Uniformity,
        reductions: Reductions,
        conditions: Conditions,
        movements: Movements,
        joins: Joins,
        steps: Budget,
    ) -> None:
        self._ssa = ssa
        self._uniformity = uniformity
        self._reductions = reductions
        self._loops: LoopForest = reductions.loops
        self._conditions = conditions
        self._movements = movements
        self._factors = Factors(movements, conditions)
        self._joins = joins
        self._steps = steps
        self._work = Budget(steps.limit)
        """Marks that may be looked at while they spread, as many as the analysis has steps; past
        that they are lost."""
        self._instrs = ssa.cfg.function.instrs
        self.all: list[Mark] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._of: dict[int, Halves] = {}
        self._agenda = Agenda(ssa)
        self._demand = Demand(ssa, reductions)
        self._stores = frozenset([store.index for store in movements.stores])
        self._is_shared_marked = False
        self._unplaced: set[int] = set()
        """What reads shared memory and may get anything that is stored there."""
        self._followed_values: set[int] = set()
        """Results and values from other lanes of which it is noted what they are made of."""
        self._stored: set[int] = set()
        self.version = 0
        """It changes with the marks of what comes through shared memory."""
        self._seen: dict[tuple[int, int], int] = {}
        self._common: dict[int, int] = {}
        self._apart: dict[tuple[int, tuple[int, ...]], int] = {}
        self._crowded: set[int] = set()
        """Values with more marks than are told apart."""
        self._at_loads: dict[int, int] = {}
        self._at_copies: dict[int, int] = {}
        self._in_tensors = 0
        """The marks of what may lie in tensor memory."""
        self._results: dict[object, int] = {}
        self._entries: dict[tuple[int, int, int], Entry | None] = {}
        self._steady: dict[tuple[int, tuple[int, ...]], bool] = {}
        self._passed: dict[object, dict[int, dict[int, Condition]]] = {}
        self._sums: dict[tuple[int, ...], tuple[list[Condition], dict[int, tuple[int, ...]]]] = {}
        self._became: dict[object, dict[int, dict[int, tuple[int, ...]]]] = {}
        self._members: dict[int, tuple[Mark, ...]] = {}
        self._lanes: dict[int, int] = {}
        """By set of marks: what `_lanes_of` has found."""
        self._distinct: dict[int, tuple[Condition, ...]] = {}
        self._followed: dict[tuple[int, int], int] = {}
        self._told: dict[int, int] = {}
        self._going: dict[tuple[int, int, int, int], tuple[int, int]] = {}
        self._beyond: dict[tuple[int, int, int, tuple[int, int]], int] = {}
        self._sides: dict[object, list[tuple[int, int, LaneMap]]] = {}
        self._maps: dict[LaneMap, LaneMap] = {}
        self._plain: dict[Shape, int] = {}
        self._kept_marks: dict[tuple[int, int, int, tuple[int, ...]], int] = {}
        self._products: dict[object, dict[int, tuple[int, int, bool]]] = {}
        self._registers: dict[
            int, tuple[tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...]]
        ] = {}
        """By product: see `_read_by`."""
        self._fragments: dict[int, tuple[Fragments, Fragments]] = {}
        self._rounds: dict[tuple[int, int], int] = {}
        self._shuffles: dict[tuple[int, int], int] = {}
        self._after: dict[tuple[int, int, int, tuple[int, int]], int] = {}
        self.exchanged: dict[int, Instr] = {}
        """By mark: an exchange between lanes that mixes it with others in an unknown way."""
        self.carried: dict[int, int] = {}
        """By mark: the header of a loop that carries it from round to round."""
        self.unknown: dict[int, Instr] = {}
        """By mark: an instruction of which nobody knows what it makes of it."""
        self.updates: dict[int, Instr] = {}
        """By mark: an atomic update that it reaches."""
        self.of_byte: Callable[[int, int], int] | None = None
        """Says what marks a byte has, once all have spread; till then it has those of its half."""
        self._kept: dict[tuple[int, int, int], bool] = {}
        self.is_kept: Callable[[int, int, Condition], bool] | None = None
        """Tells of a phi, what is handed on to it and a condition that holds in a round whether
        that round hands it on as it was."""
        self.is_complete = True
        """False if the way round loops was given up."""
        self._deferred: set[int] = set()
        """Instructions that combine what is not marked alike."""
        self._is_settled = False
        """False as long as what is combined may still get the conditions that the rest of it has:
        only then is it said to have lost them."""

    # Marks ------------------------------------------------------------------------------------
    def number(self, condition: Condition, load: int) -> int:
        """The bit of a mark."""
        key = condition.number, load
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            self.all.append(Mark(condition, load))
        return found

    def put(self, value: int, marks: int) -> None:
        """Say what a masked load puts on its value."""
        self._at_loads[value] = self._at_loads.get(value, 0) | marks

    def put_copy(self, copy: Instr, marks: int) -> None:
        """Say what a masked `cp.async` brings."""
        self._at_copies[copy.index] = self._at_copies.get(copy.index, 0) | marks

    def of(self, value: int, part: int = WHOLE, parts: int = 1) -> int:
        """The marks of a value or a part of it, as bits."""
        low, high = self._of.get(self._ssa.resolve(value), NONE)
        if part == WHOLE or parts == 1:
            return low | high
        half = (low, high)[part * 2 // parts]
        if half and self.of_byte is not None and parts <= 4:
            if parts == 4:
                return self.of_byte(value, part)
            return self.of_byte(value, 2 * part) | self.of_byte(value, 2 * part + 1)
        return half

    def of_copy(self, copy: Instr) -> int:
        """The marks of what a `cp.async` brings."""
        return self._at_copies.get(copy.index, 0)

    def of_half(self, value: int, half: int) -> int:
        """The marks that have spread to half of a value, whatever its bytes are."""
        return self._get(value)[half]

    def put_on(self, value: int) -> int:
        """The marks that come to a value first: those of a masked load, or of what decides it."""
        return self._at_loads.get(value, 0)

    def conditions_of(self, value: int) -> tuple[Condition, ...]:
        """The conditions of a value's marks, each once."""
        low, high = self._of.get(self._ssa.resolve(value), NONE)
        return self.conditions_in(low | high)

    def conditions_in(self, bits: int) -> tuple[Condition, ...]:
        """The conditions of a set of marks, each once; one object for one set."""
        found = self._distinct.get(bits)
        if found is None:
            found = self._distinct[bits] = tuple(
                dict.fromkeys([mark.condition for mark in self.each(bits)])
            )
        return found

    def before(self, value: int, header: int) -> dict[int, list[Condition]]:
        """By the number of a condition at a loop's header: those of what a round leaves."""
        out: dict[int, list[Condition]] = {}
        for condition in self.conditions_of(value):
            later = self._following(condition, header)
            if later >= 0:
                out.setdefault(later, []).append(condition)
        return out

    def of_node(self, node: Node) -> int:
        """The marks of a reduction's node."""
        return self.of(node.value) if node.part == WHOLE else self.of(node.value, node.part, 2)

    def of_leaf(self, leaf: Leaf) -> int:
        """The marks of what goes into a reduction."""
        if leaf.product is None:
            return self.of_node(leaf.node)
        found = 0
        for operand in leaf.product.operands[1:3]:
            value = self._reductions.read(leaf.product, operand)
            if value is not None:
                part = leaf.node.part
                found |= self.of(value) if part == WHOLE else self.of(value, part, 2)
        return found

    def each(self, bits: int) -> tuple[Mark, ...]:
        """The marks of a set, in order."""
        found = self._members.get(bits)
        if found is None:
            found = self._members[bits] = tuple([self.all[number] for number in _bits(bits)])
        self._work.left -= 1 + (len(found) >> 2)
        return found

    def _conditions_of(self, bits: int) -> int:
        """The numbers of the conditions of a set of marks, as bits."""
        found = self._told.get(bits)
        if found is None:
            found = 0
            for mark in self.each(bits):
                found |= 1 << mark.condition.number
            self._told[bits] = found
        return found

    # Spreading --------------------------------------------------------------------------------
    def spread(self) -> None:
        """Carry all marks on until nothing changes.

        Sweeps go through the function in reverse postorder and stop at what reads something that
        has changed since it was last looked at, so that straight code is looked at once.
        """
        agenda = self._agenda
        for reduction in self._reductions.all:
            if not reduction.partial and not reduction.warps:
                self._watch_leaves(reduction)
        for value in self._at_loads:
            agenda.add_definition(value)
        if self._at_copies:
            self._look_into_shared()
        for _ in range(_PASSES):
            for step in agenda.sweep():
                if step < 0:
                    self._join(~step)
                else:
                    self._instr(self._instrs[step])
            if agenda.is_empty:
                if not self._deferred:
                    return
                self._is_settled = True
                for index in self._deferred:
                    agenda.add(index)
                self._deferred.clear()
            if self._steps.spent or self._work.spent:
                break
        self.is_complete = False

    def _look_into_shared(self) -> None:
        """Have all looked at that read shared memory, once there is something with marks there."""
        agenda = self._agenda
        if self._is_shared_marked:
            for index in self._unplaced:
                agenda.add(index)
            return
        self._is_shared_marked = True
        for instr in self._instrs:
            if instr.opcode in ("wgmma", "tcgen05") or _reads_shared(instr):
                agenda.add(instr.index)

    def _set(self, value: int, marks: Halves) -> None:
        old = self._of.get(value)
        if old is None:
            if marks == NONE or not self._uniformity.dependence(value) & ANY_INDEX:
                return
            old = NONE
        new = old[0] | marks[0], old[1] | marks[1]
        if new == old:
            return
        if value in self._crowded or (new[0] | new[1]).bit_count() > _MOST_MARKS:
            self._crowded.add(value)
            new = self._lost(_CROWDED, new[0]), self._lost(_CROWDED, new[1])
            if new == old:
                return
        self._of[value] = new
        self._agenda.add_readers(value)
        if value in self._stored:
            self.version += 1

    def _get(self, value: int) -> Halves:
        return self._of.get(self._ssa.resolve(value), NONE)

    def _join(self, phi: int) -> None:
        ssa = self._ssa
        if ssa.resolve(phi) != phi:
            return
        block = ssa.phi_block[phi]
        loop = self._loops.with_header(block)
        low = high = self._at_loads.get(phi, 0)
        for source, operand in zip(ssa.phi_sources(block), ssa.operands[phi], strict=True):
            marks = self._get(operand)
            if marks is NONE:
                continue
            if loop is not None and source >= 0 and self._loops.contains(loop, source):
                if phi in self._reductions.accumulators:
                    marks = self._lasting(marks[0], block), self._lasting(marks[1], block)
                else:
                    marks = self._not_kept(phi, operand, marks, block)
                marks = self._next(marks[0], block), self._next(marks[1], block)
            low |= marks[0]
            high |= marks[1]
        if low or high:
            self._set(phi, (low, high))

    def note_recurrences(self, entering: Callable[[int, int], list[int]]) -> None:
        """Note padding of single rounds that changes what a loop carries by arithmetic.

        `entering` tells what goes into what is handed on to a phi.
        """
        for block, phis in self._ssa.phis.items():
            loop = self._loops.with_header(block)
            if loop is None:
                continue
            sources = self._ssa.phi_sources(block)
            for phi in phis:
                if self._ssa.resolve(phi) != phi or phi in self._reductions.accumulators:
                    continue
                for source, operand in zip(sources, self._ssa.operands[phi], strict=True):
                    if source >= 0 and self._loops.contains(loop, source):
                        self._note_recurrence(phi, operand, entering(phi, operand), block)

    def _is_apart(self, condition: Condition, header: int) -> bool:
        return not condition.lost and self._conditions.varies(condition, header)

    def _note_recurrence(self, phi: int, carried: int, values: list[int], header: int) -> None:
        bits = 0
        for value in values:
            bits |= self.of(value)
        for mark in self.each(bits):
            condition = mark.condition
            if not self._is_apart(condition, header):
                continue
            if not self._is_handed_on(phi, carried, condition):
                self.carried.setdefault(self.number(*mark), header)

    def _is_handed_on(self, phi: int, carried: int, condition: Condition) -> bool:
        """True if a round that a condition is about hands on a phi as it was."""
        key = phi, carried, condition.number
        known = self._kept.get(key)
        if known is None:
            is_kept = self.is_kept
            known = is_kept is not None and is_kept(phi, carried, condition)
            self._kept[key] = known
        return known

    def _not_kept(self, phi: int, carried: int, marks: Halves, header: int) -> Halves:
        """The marks of padding that changes what a loop hands on from round to round."""
        if self.is_kept is None:
            return marks
        drop = 0
        for mark in self.each(marks[0] | marks[1]):
            condition = mark.condition
            if condition.lost or not self._conditions.varies(condition, header):
                continue
            known = self._is_handed_on(phi, carried, condition)
            drop |= known << self.number(*mark)
        return marks[0] & ~drop, marks[1] & ~drop

    def _lasting(self, bits: int, header: int) -> int:
        """The marks that are the same in all rounds: the others are judged where a sum over the
        rounds takes them in."""
        out = 0
        for mark in self.each(bits):
            if mark.condition.lost or not self._conditions.varies(mark.condition, header):
                out |= 1 << self.number(*mark)
        return out

    def _next(self, bits: int, header: int) -> int:
        """The marks of one iteration as the next one sees them."""
        known = self._rounds.get((bits, header))
        if known is not None:
            return known
        out = 0
        for mark in self.each(bits):
            number = self._following(mark.condition, header)
            if number < 0:
                continue
            later = self._conditions.all[number]
            if later.lost and not mark.condition.lost:
                self.carried.setdefault(self.number(*mark), header)
            out |= 1 << self.number(later, mark.load)
        self._rounds[bits, header] = out
        return out

    def _following(self, condition: Condition, header: int) -> int:
        """The number of a condition of one iteration as the next one sees it; -1 if it does not
        hold wherever a next one comes."""
        key = condition.number, header
        found = self._followed.get(key)
        if found is None:
            later = self._movements.in_next_round(condition, header)
            found = self._followed[key] = -1 if later is None else later.number
        return found

    def _instr(self, instr: Instr) -> None:
        ssa = self._ssa
        defs = ssa.def_values[instr.index]
        self._steps.left -= 1
        self._work.left -= 1
        shape = instr.shape
        way = self._plain.get(shape)
        if way is None:
            way = self._plain[shape] = _plainness(shape)
        if way and defs and instr.index not in self._reductions.members:
            self._spread_plainly(instr, defs, way == _UNITED)
            return
        opcode = instr.opcode
        if shape.row.is_call or not shape.row.known or (opcode == "st" and shape.space == "param"):
            self._unknown(instr)
        if opcode == "tcgen05":
            self._tensor(instr, defs)
            return
        if not defs:
            if instr.index in self._stores:
                self._look_into_shared()
            elif opcode == "red":
                self._update(instr)
            elif opcode == "bra" and instr.guard is not None:
                self._branch(instr)
            return
        if opcode in ("ld", "ldmatrix", "ldu"):
            self._load(instr, defs)
            return
        if opcode in CONTRACTIONS:
            self._product(instr, defs)
            return
        if opcode == "atom":
            self._update(instr)
            return
        if opcode in _ENDS:
            return
        data = [v for v in ssa.use_values[instr.index] if self._get(v) is not NONE]
        member = self._reductions.members.get(instr.index)
        # What goes into a result counts even if no step on the way there has marks.
        if data or (member is not None and instr is self._reductions.all[member].at):
            if opcode in ("shfl", "redux"):
                self._exchange(instr, defs[0])
            else:
                for at, value in enumerate(defs):
                    if self._has_hopped(value):
                        continue
                    marks = self._elementwise(instr, at, data)
                    if member is not None and ssa.register[value].type == "pred":
                        # What a reduction decides by comparing is part of it.
                        continue
                    if member is not None and self._work.spent:
                        low, high = (self._lost(self._steps.reason, half) for half in marks)
                        marks = low, high
                    elif member is not None:
                        marks = self._combined(self._reductions.all[member], instr, value, marks)
                    self._written(value, marks)
        for value in defs:
            if ssa.kind[value] in (MERGE, INSERT):
                self._merged(value)

    def _spread_plainly(self, instr: Instr, defs: tuple[int, ...], united: bool) -> None:
        """Let the results of an operation have what its operands have: half by half, or all."""
        ssa = self._ssa
        known, resolve = self._of, ssa.resolve
        low = high = 0
        for value in ssa.use_values[instr.index]:
            marks = known.get(resolve(value))
            if marks is not None:
                low |= marks[0]
                high |= marks[1]
        if united:
            low = high = low | high
        may_hop = self._movements.has_hops
        for value in defs:
            if (low or high) and not (may_hop and self._has_hopped(value)):
                self._written(value, (low, high))
            if ssa.kind[value] in (MERGE, INSERT):
                self._merged(value)

    def _written(self, value: int, marks: Halves) -> None:
        """Put marks on what an instruction writes, and on what its register holds after it."""
        ssa = self._ssa
        made = ssa.written(value)
        self._set(made, marks)
        if made != value:
            self._merged(value)

    def _merged(self, value: int) -> None:
        low = high = self._at_loads.get(value, 0)
        for operand in self._ssa.operands[value]:
            marks = self._get(operand)
            low |= marks[0]
            high |= marks[1]
        if low or high:
            self._set(value, (low, high))

    def _unknown(self, instr: Instr) -> None:
        for number in _bits(self.of_all(instr)):
            self.unknown.setdefault(number, instr)

    def _branch(self, instr: Instr) -> None:
        """Let joins have the marks of what decides them."""
        low, high = self._get(self._ssa.use_values[instr.index][0])
        if low or high:
            for phi in self._joins.decided_by(instr):
                old = self._at_loads.get(phi, 0)
                new = self._at_loads[phi] = old | low | high
                if new != old:
                    self._agenda.add_definition(phi)

    def _update(self, instr: Instr) -> None:
        for number in _bits(self.of_all(instr)):
            self.updates.setdefault(number, instr)

    # One element ------------------------------------------------------------------------------
    def _elementwise(self, instr: Instr, at: int, data: list[int]) -> Halves:
        """The marks of result `at` of an operation on elements of its own thread."""
        shape = instr.shape
        opcode = shape.opcode
        if opcode == "mov":
            return self._moved(instr, at)
        if opcode == "selp" or shape.type in _PACKED:
            low = high = 0
            for value in data:
                marks = self._get(value)
                low |= marks[0]
                high |= marks[1]
            return low, high
        if opcode == "cvt":
            return self._converted(instr, data)
        if opcode in ("prmt", "and", "shl", "shr"):
            halves = self._bits(instr)
            if halves is not None:
                return halves
        both = 0
        for value in data:
            marks = self._get(value)
            both |= marks[0] | marks[1]
        return both, both

    def _operand(self, instr: Instr, operand: Operand) -> Halves:
        value = self._reductions.read(instr, operand)
        return NONE if value is None else self._of.get(value, NONE)

    def _moved(self, instr: Instr, at: int) -> Halves:
        target, source = instr.operands[0], instr.operands[-1]
        if isinstance(source, Vector):
            parts = [self._operand(instr, o) for o in source.elements]
            if len(parts) == 2:
                (a, b), (c, d) = parts
                return a | b, c | d
            both = 0
            for low, high in parts:
                both |= low | high
            return both, both
        marks = self._operand(instr, source)
        if isinstance(target, Vector):
            both = marks[at] if len(target.elements) == 2 else marks[0] | marks[1]
            return both, both
        return marks

    def _converted(self, instr: Instr, data: list[int]) -> Halves:
        types = instr.shape.types
        if len(types) == 2 and types[0] in ("f16x2", "bf16x2") and len(instr.operands) == 3:
            # The first source goes to the high half.
            high, low = (self._operand(instr, o) for o in instr.operands[1:3])
            return low[0] | low[1], high[0] | high[1]
        both = 0
        for value in data:
            marks = self._get(value)
            both |= marks[0] | marks[1]
        if len(types) != 2 or instr.shape.has("sat"):
            return both, both
        if types[0] in _WIDE and types[1] in ("u16", "b16"):
            return both, 0
        if types[1] in _WIDE and types[0] in ("u16", "b16"):
            narrow = self._operand(instr, instr.operands[1])[0]
            return narrow, narrow
        return both, both

    def _bits(self, instr: Instr) -> Halves | None:
        """Halves that are moved by `prmt`, shifts by 16 and masks of a half."""
        constant = self._reductions.constant(instr, instr.operands[-1])
        if constant is None or BITS.get(instr.shape.type, 0) != 32:
            return None
        first = self._operand(instr, instr.operands[1])
        if instr.opcode == "prmt":
            second = self._operand(instr, instr.operands[2])
            parts = (*first, *second)
            out = []
            for shift in (0, 8):
                low, high = constant >> shift & 7, constant >> shift + 4 & 7
                out.append(parts[low // 2] | parts[high // 2])
            return out[0], out[1]
        constant &= 0xFFFFFFFF
        if instr.opcode == "and":
            low = first[0] if constant & 0xFFFF else 0
            return low, first[1] if constant >> 16 else 0
        if constant != 16 or instr.shape.type.startswith("s"):
            return None
        return (0, first[0]) if instr.opcode == "shl" else (first[1], 0)

    # Other threads ----------------------------------------------------------------------------
    def _exchange(self, instr: Instr, value: int) -> None:
        known = self._reductions
        if not self._ssa.users(value):
            # A scan's last exchange may be there for its other results alone.
            return
        combines = instr.index in known.recognised or instr.index in known.members
        if instr.opcode == "redux" or (combines and instr.index not in known.moves):
            # What is combined has its marks where it is combined.
            member = self._reductions.members.get(instr.index)
            if instr.index in known.shifts:
                marks = self._operand(instr, instr.operands[1])
                lanes = known.scanned(instr)
                self._written(value, (self._of_row(marks[0], lanes), self._of_row(marks[1], lanes)))
            if member is None or instr.opcode != "redux":
                return
            marks = self._operand(instr, instr.operands[1])
            self._written(value, self._combined(self._reductions.all[member], instr, value, marks))
            return
        if self._has_hopped(value):
            return
        low, high = self._operand(instr, instr.operands[1])
        lanes = moved_lanes(instr)
        self._written(
            value, (self._shuffled(instr, low, lanes), self._shuffled(instr, high, lanes))
        )

    def _of_row(self, bits: int, lanes: int) -> int:
        """The marks that are the same for all of the lanes that a scan combines."""
        out = 0
        for mark in self.each(bits):
            if mark.condition.lost or not mark.condition.bits & lanes:
                out |= 1 << self.number(*mark)
        return out

    def _has_hopped(self, value: int) -> bool:
        """Put the marks of elements of other lanes on a value that `shfl` and `selp` move them to;
        False if it is no such value."""
        hops = self._movements.hops(value) if self._movements.has_hops else ()
        if not hops:
            return False
        if value not in self._followed_values:
            self._followed_values.add(value)
            self._agenda.watch([hop.value for hop in hops], self._ssa.instr[value])
        narrow = self._width(value) < _WHOLE_WIDTH
        halves: list[dict[int, dict[int, Condition]]] = [{}, {}]
        for hop in hops:
            low, high = self._brought(hop)
            for half, bits in enumerate((low, 0 if narrow else high)):
                for load, conditions in self._hopped(hop, bits).items():
                    halves[half].setdefault(load, {}).update(conditions)
        first, second = (self._summed_up(found, (value, half)) for half, found in enumerate(halves))
        self._written(value, (first, first if narrow else second))
        return True

    def hopped(
        self, value: int, half: int, hop: LaneHop
    ) -> Iterator[tuple[Condition, tuple[int, ...]]]:
        """The conditions of what comes from other lanes one way into half of a register, each with
        the numbers of what becomes of it."""
        became = self._became.get((value, half), {})
        for mark in self.each(self._brought(hop)[half]):
            numbers: tuple[int, ...] = ()
            for there in self._movements.hopped(hop, mark.condition):
                numbers += became.get(mark.load, {}).get(there.number, ())
            yield mark.condition, numbers

    def _brought(self, hop: LaneHop) -> Halves:
        """The marks of what comes from another lane, by the half of the register that it is for."""
        low, high = self._get(hop.value)
        if self._width(hop.value) < _WHOLE_WIDTH:
            low, high = low | high, 0
        if hop.parts > 1:
            low, high = (low, high)[hop.part * 2 // hop.parts], 0
        return (0, low) if hop.into * 2 // hop.split else (low, high)

    def _width(self, value: int) -> int:
        return BITS.get(self._ssa.register[value].type, _WHOLE_WIDTH)

    def _hopped(self, hop: LaneHop, bits: int) -> dict[int, dict[int, Condition]]:
        """By load and number the conditions of what comes from other lanes one way."""
        key = hop[1:], bits
        found = self._passed.get(key)
        if found is None:
            found = self._passed[key] = {}
            for mark in self.each(bits):
                for condition in self._movements.hopped(hop, mark.condition):
                    found.setdefault(mark.load, {})[condition.number] = condition
        return found

    def _shuffled(self, instr: Instr, bits: int, lanes: int) -> int:
        """The marks that stay true of what comes from another lane."""
        known = self._shuffles.get((bits, lanes))
        if known is not None:
            return known
        out = 0
        for mark in self.each(bits):
            condition = mark.condition
            number = self.number(*mark)
            if not condition.lost and not condition.bits & lanes:
                out |= 1 << number
                continue
            self.exchanged.setdefault(number, instr)
        self._shuffles[bits, lanes] = out
        return out

    def _combined(self, reduction: Reduction, instr: Instr, value: int, marks: Halves) -> Halves:
        """The marks that stay on what a reduction combines.

        In a scan each lane keeps its own: what it gets of others is judged where it comes in.
        """
        if reduction.partial:
            return self._without_earlier(instr, marks)
        if self._ssa.resolve(value) == reduction.result and not reduction.warps:
            shared = self.shared_by_all(reduction)
            left = self._left_apart(reduction, instr, shared)
            return marks[0] & shared | left, marks[1] & shared | left
        # What came through shared memory has conditions in terms of the lanes behind it.
        lanes = ANY_INDEX & LANE if instr.opcode == "redux" else 0
        for node in (Node(value), Node(value, 0), Node(value, 1)):
            step = self._reductions.step_at(node)
            lanes |= 0 if step is None else step.lanes
        common = self._conditions_of_all(instr)
        low = self._staying(marks[0], common, lanes, reduction.loops)
        if marks[1] == marks[0]:
            return low, low
        return low, self._staying(marks[1], common, lanes, reduction.loops)

    def _staying(self, bits: int, common: int, lanes: int, loops: tuple[int, ...]) -> int:
        """The marks whose conditions are among the common ones and the same over what is
        combined."""
        key = bits, common, lanes, loops
        known = self._kept_marks.get(key)
        if known is None:
            known = 0
            for mark in self.each(bits):
                condition = mark.condition
                if not common >> condition.number & 1 or condition.bits & lanes:
                    continue
                if not self._conditions.varies_in_any(condition, loops):
                    known |= 1 << self.number(*mark)
            self._kept_marks[key] = known
        return known

    def _watch_leaves(self, reduction: Reduction) -> None:
        """Have the result of a reduction looked at again when the marks of a leaf change."""
        values = []
        for leaf in reduction.leaves:
            if leaf.init:
                continue
            values.append(leaf.node.value)
            if leaf.product is not None:
                values += self._ssa.use_values[leaf.product.index]
        self._agenda.watch(values, reduction.at.index)

    def _without_earlier(self, instr: Instr, marks: Halves) -> Halves:
        """The marks of what one thread sums up in a scan, without those of its earlier elements."""
        found = self._reductions.newest(instr)
        if found is None:
            return marks
        (low, high), before = self._get(found[0]), self._get(found[1])
        own = low | high
        earlier = (before[0] | before[1]) & ~own
        newest = [m for m in self.each(own) if m.condition.map is not None]
        drop = 0
        for mark in self.each(earlier):
            if any(self._is_beside(mark, other) for other in newest):
                drop |= 1 << self.number(*mark)
        return marks[0] & ~drop, marks[1] & ~drop

    def _is_beside(self, mark: Mark, other: Mark) -> bool:
        """True if two marks are of elements of one tile that lie some steps apart in one thread."""
        a, b = mark.condition, other.condition
        if a.map is None or b.map is None:
            return False
        same = (a.fixed, a.at, a.rounds, a.store) == (b.fixed, b.at, b.rounds, b.store)
        if not same or a.map.basis != b.map.basis or a.rest is None or b.rest is None:
            return False
        return (a.rest - b.rest).is_constant

    def _conditions_of_all(self, instr: Instr) -> int:
        """The numbers of the conditions that all have which are marked and combined, as bits.

        Where only some of them are padding the result is a mixture, to be judged by its leaves.
        """
        fused = instr.opcode in ("fma", "mad")
        factors, common = 0, -1
        for place, operand in enumerate(instr.operands[1:]):
            value = self._reductions.read(instr, operand)
            bits = 0 if value is None else self.of(value)
            if not bits:
                continue
            if fused and place < 2:
                factors |= self._conditions_of(bits)
            else:
                common &= self._conditions_of(bits)
        return common & factors if factors else common

    def _left_apart(self, reduction: Reduction, instr: Instr, shared: int) -> int:
        """Marks for conditions on an axis of which only a part is combined: all of the part may be
        padding, so that its result is as well."""
        taken = [leaf for leaf in reduction.leaves if not leaf.init]
        leaves = [self.of_leaf(leaf) & ~shared for leaf in taken]
        key = id(reduction), tuple(leaves)
        known = self._apart.get(key)
        if known is None:
            known = self._apart[key] = self._find_apart(reduction, taken, leaves)
        if known and not self._is_settled:
            self._deferred.add(instr.index)
            return 0
        return known

    def _find_apart(self, reduction: Reduction, taken: list[Leaf], leaves: list[int]) -> int:
        out = found = 0
        for bits in leaves:
            found |= bits
        groups: dict[tuple[int, object], list[tuple[list[Condition], int]]] = {}
        for mark in self.each(found):
            condition = mark.condition
            if not condition.bits & ~reduction.lanes:
                continue
            if condition.lost:
                out |= 1 << self.number(*mark)
            elif self._conditions.may_hold(condition):
                groups.setdefault((mark.load, self._conditions.bound(condition)), [])
        is_handed = any(leaf.handed for leaf in taken)
        if not is_handed:
            for bits, leaf in zip(leaves, taken, strict=True):
                for group, own in self._by_bound(bits, groups).items():
                    groups[group].append((own, leaf.lanes))
        for group, parts in groups.items():
            whole = None if is_handed else self._all_of_part(parts, reduction.loops)
            if whole and len(parts) < len(taken):
                # Some leaf is no padding of this bound.
                whole = []
            if whole is None:
                whole = [self._conditions.lost(_IN_PART)]
            for condition in whole:
                out |= 1 << self.number(condition, group[0])
        return out

    def _by_bound(
        self, bits: int, groups: Container[tuple[int, object]]
    ) -> dict[tuple[int, object], list[Condition]]:
        """The conditions of marks by load and bound, for those that are asked for."""
        found: dict[tuple[int, object], list[Condition]] = {}
        bound = self._conditions.bound
        for mark in self.each(bits):
            group = mark.load, bound(mark.condition)
            if group in groups:
                found.setdefault(group, []).append(mark.condition)
        return found

    def _all_of_part(
        self, parts: list[tuple[list[Condition], int]], loops: tuple[int, ...]
    ) -> list[Condition] | None:
        """Conditions one of which holds where all that is combined lies beyond a bound; None if
        they are not known.

        All of it does only where each leaf does, over all of its lanes, so that any one will do.
        `parts` are the conditions of leaves and the lanes over which they are combined.
        """
        conditions = self._conditions
        best: list[Condition] | None = None
        for own, lanes in parts:
            whole: list[Condition] = []
            for condition in own:
                least = conditions.least(condition, lanes)
                if least is None or conditions.varies_in_any(condition, loops):
                    return None
                if conditions.may_hold(least) and least not in whole:
                    whole.append(least)
            if best is None or len(whole) < len(best):
                best = whole
        return best

    def shared_by_all(self, reduction: Reduction) -> int:
        """The marks whose condition is the same for all that a reduction combines."""
        common: set[int] | None = None
        for leaf in reduction.leaves:
            if leaf.init:
                continue
            own = {m.condition.number for m in self.each(self.of_leaf(leaf))}
            common = own if common is None else common & own
        out = 0
        for number in sorted(common or ()):
            condition = self._conditions.all[number]
            if self.is_the_same(reduction, condition):
                for mark, place in list(self._numbers.items()):
                    if mark[0] == number:
                        out |= 1 << place
        return out

    def is_shared_by_all(self, reduction: Reduction, condition: Condition) -> bool:
        """True if the condition is that of all leaves of a reduction, once all marks are known."""
        common = self._common.get(id(reduction))
        if common is None:
            common = -1
            for leaf in reduction.leaves:
                if not leaf.init:
                    common &= self._conditions_of(self.of_leaf(leaf))
            self._common[id(reduction)] = common
        return bool(common >> condition.number & 1)

    def is_the_same(self, reduction: Reduction, condition: Condition) -> bool:
        """True if a condition does not differ over what is combined: lanes, warps, iterations."""
        if condition.lost or condition.bits & reduction.lanes:
            return False
        if condition.bits and any(leaf.handed for leaf in reduction.leaves):
            return False
        if reduction.warps and condition.bits & (ANY_INDEX & ~LANE):
            return False
        return not self._conditions.varies_in_any(condition, reduction.loops)

    # Shared memory ----------------------------------------------------------------------------
    def _load(self, instr: Instr, defs: tuple[int, ...]) -> None:
        ssa = self._ssa
        shared = _reads_shared(instr)
        for at, value in enumerate(defs):
            if shared and self._demand.of(value):
                low, high = self._loaded(instr, at, 0), self._loaded(instr, at, 1)
                width = BITS.get(ssa.register[value].type, 32)
                if loaded_bits(instr, width) < width:
                    # Zeros, or copies of a sign, lie above what is loaded.
                    low |= high
                    high = low if instr.shape.type.startswith("s") else 0
                self._written(value, (low, high))
            if ssa.kind[value] in (MERGE, INSERT):
                self._merged(value)

    def _loaded(self, instr: Instr, at: int, half: int) -> int:
        """The marks of half of a register that is loaded from shared memory."""
        entry = self._entry(instr, at, half)
        if entry is None:
            self._unplaced.add(instr.index)
            return self._lost(self._movements.why(instr), self._all_stored())
        if entry.seen == self.version:
            return entry.result
        entry.seen = self.version
        put = [self._put_by(way) for way in entry.ways]
        if entry.put == put:
            return entry.result
        entry.put = put
        if self._work.spent:
            held = entry.result
            for bits in put:
                held |= bits
            entry.result = self._lost(self._steps.reason, held)
            return entry.result
        # Registers of one load differ in what they read more than in the way there, and threads
        # that no mark tells apart are as good as each other.
        first: dict[tuple[int, int, int], Route] = {}
        covered = entry.covered
        for place, bits in enumerate(put):
            if not bits or (place in covered and self._is_said_by_another(entry, place, bits)):
                continue
            route = entry.ways[place].route
            lanes = self._lanes.get(bits)
            if lanes is None:
                lanes = self._lanes[bits] = self._lanes_of(bits)
            first[route.shape, route.start & lanes, bits] = route
        together = entry.together = tuple(first)
        out = self._results.get(together)
        if out is None:
            out = self._results[together] = self._put_through(together, first)
        entry.result = out
        return out

    def _lanes_of(self, bits: int) -> int:
        """The bits of the thread index on which the conditions of a set of marks depend."""
        out = 0
        for mark in self.each(bits):
            out |= mark.condition.lanes
        return out

    def _entry(self, instr: Instr, at: int, half: int) -> Entry | None:
        """The ways into half of a loaded register; None if they are not known."""
        key = instr.index, at, half
        if key not in self._entries:
            parts = self._movements.arrivals(instr, at)
            found = None
            if parts is not None:
                inside = len(parts) // 2
                chosen = parts[half * inside : (half + 1) * inside] if inside else parts
                ways = tuple([way for part in chosen for way in part])
                twin = self._entries.get((instr.index, at, 0)) if half else None
                found = twin if twin is not None and twin.ways == ways else Entry(ways)
                self._watch(ways, instr)
            self._entries[key] = found
        return self._entries[key]

    def _watch(self, ways: Iterable[Way], reader: Instr) -> None:
        """Take notice where the marks of what comes these ways change."""
        values = [w.value for w in ways if w.value is not None and w.value >= 0]
        self._stored.update(map(self._ssa.resolve, values))
        self._agenda.watch(values, reader.index)

    def _is_said_by_another(self, entry: Entry, place: int, bits: int) -> bool:
        """True if another way says the same of all rounds that this one says of a certain one."""
        headers = entry.covered.get(place)
        if headers is None:
            return False
        key = bits, headers
        found = self._steady.get(key)
        if found is None:
            found = self._steady[key] = not any(
                self._conditions.varies(mark.condition, header)
                for mark in self.each(bits)
                for header in headers
            )
        return found

    def active(self, instr: Instr, at: int, half: int) -> list[tuple[Way, int]]:
        """The ways into half of a register that say something of their own, with their marks."""
        entry = self._entry(instr, at, half)
        if entry is None:
            return []
        out = []
        for place, way in enumerate(entry.ways):
            bits = self._put_by(way)
            if place not in entry.covered or not self._is_said_by_another(entry, place, bits):
                out.append((way, bits))
        return out

    def together(self, instr: Instr, at: int, half: int) -> Together:
        """The routes and marks that come into half of a register, as a key."""
        entry = self._entry(instr, at, half)
        return () if entry is None else entry.together

    def put_through(
        self, together: Together, route: Route, bits: int
    ) -> Iterator[tuple[Condition, tuple[int, ...]]]:
        """The conditions of what comes one way, each with the numbers of what becomes of it."""
        became = self.became(together)
        for mark in self.each(bits):
            there = self._movements.through(route, mark.condition)
            if there is not None and mark.load in became:
                yield mark.condition, became[mark.load].get(there.number, ())

    def became(self, together: Together) -> dict[int, dict[int, tuple[int, ...]]]:
        """By load and condition, of what comes by some routes: the numbers of what becomes of
        it."""
        return self._became.get(together, {})

    def _lost(self, reason: str, bits: int) -> int:
        """Marks of the loads that a set of marks is of, of which no more than this is known."""
        out = 0
        if bits:
            lost = self._conditions.lost(reason)
            for load in sorted({mark.load for mark in self.each(bits)}):
                out |= 1 << self.number(lost, load)
        return out

    def _put_through(self, together: Together, ways: dict[tuple[int, int, int], Route]) -> int:
        """What a load makes of the marks of all that it reads, by route and marks."""
        found: dict[int, dict[int, Condition]] = {}
        for way, route in ways.items():
            passed = self._passed.get(way)
            if passed is None:
                passed = self._passed[way] = self._pass(route, way[2])
            for load, conditions in passed.items():
                found.setdefault(load, {}).update(conditions)
        return self._summed_up(found, together)

    def _summed_up(self, found: dict[int, dict[int, Condition]], key: object = None) -> int:
        """Marks of the conditions of each load, in fewer ones where that is possible."""
        out = 0
        became = self._became[key] = {}
        for load, conditions in found.items():
            together = tuple(conditions)
            self._work.left -= 1
            summed_up = self._sums.get(together)
            if summed_up is None:
                self._work.left -= len(together)
                summed_up = self._conditions.summed_up(list(conditions.values()))
                self._sums[together] = summed_up
            became[load] = summed_up[1]
            for condition in summed_up[0]:
                out |= 1 << self.number(condition, load)
        return out

    def _pass(self, route: Route, bits: int) -> dict[int, dict[int, Condition]]:
        """By load and number the conditions of what comes one way."""
        found: dict[int, dict[int, Condition]] = {}
        for mark in self.each(bits):
            self._work.left -= 1
            condition = self._movements.through(route, mark.condition)
            if condition is not None:
                found.setdefault(mark.load, {})[condition.number] = condition
        return found

    def _put_by(self, way: Way) -> int:
        """The marks of what one way into a load starts from."""
        if way.value is None:
            return self._at_copies.get(way.store.index, 0)
        return 0 if way.value < 0 else self.of(way.value, way.part, way.parts)

    def _all_stored(self, reader: Instr | None = None) -> int:
        """The marks of everything that goes to shared memory, or of what a product reads there."""
        out = 0
        for _, _, bits in self.stored(reader):
            out |= bits
        return out

    def stores_behind(self, reader: Instr) -> frozenset[int] | None:
        """The stores behind a product's factors in shared memory; None if some are not known."""
        return self._movements.behind_matrices(reader)

    def stored(self, reader: Instr | None = None) -> Iterator[tuple[Instr, int | None, int]]:
        """What goes to shared memory: store, value (None for a copy), marks."""
        wanted = None if reader is None else self._movements.behind_matrices(reader)
        for store in self._movements.stores:
            if wanted is not None and store.index not in wanted:
                continue
            if store.opcode == "cp":
                yield store, None, self._at_copies.get(store.index, 0)
                continue
            for operand in elements_of(store.operands[1]):
                value = self._reductions.read(store, operand)
                if value is not None:
                    yield store, value, self.of(value)

    # Products ---------------------------------------------------------------------------------
    def _product(self, instr: Instr, defs: tuple[int, ...]) -> None:
        known = self._movements.fragments(instr)
        if known is None:
            self._unknown_product(instr, defs)
            return
        if self._work.spent:
            self._unplaced.add(instr.index)
            stored = self._all_stored(instr) if instr.opcode == "wgmma" else 0
            marks = self._lost(self._steps.reason, self.of_all(instr) | stored)
            for value in defs:
                self._written(value, (marks, marks))
            return
        fragments = self._interned(known)
        registers = self._registers.get(instr.index)
        if registers is None:
            registers = self._registers[instr.index] = self._read_by(instr, fragments)
        in_memory = 0
        held: list[object] = []
        for side in (0, 1):
            values = registers[side]
            if values is not None:
                held.append(self._all_of(values))
                continue
            factor = self.in_memory(instr, side)
            if factor is None:
                self._unplaced.add(instr.index)
                in_memory = self._lost(_IN_MEMORY, self._all_stored(instr))
            held.append(None if factor is None else (id(factor.element), factor.bits))
        # Products of one shape whose factors have the same marks bring the same to the result.
        key = id(fragments), *held
        brought = self._products.get(key)
        if brought is None:
            brought = self._products[key] = self._brought_by(instr, fragments)
        added = self._all_of(registers[2])
        for register, (low, high, is_whole) in brought.items():
            if register >= len(defs):
                continue
            own = added[register] if register < len(added) else NONE
            if is_whole:
                own = own[0] | own[1], own[0] | own[1]
            self._written(defs[register], (low | own[0] | in_memory, high | own[1] | in_memory))

    def _all_of(self, values: tuple[int, ...]) -> tuple[Halves, ...]:
        known = self._of
        return tuple([known.get(value, NONE) for value in values])

    def _read_by(
        self, instr: Instr, fragments: Fragments
    ) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None, tuple[int, ...]]:
        """The values of a product's factors, None for one in memory, and of its accumulator by
        register; -1 for what is no value."""
        read = self._reductions.read
        sides: list[tuple[int, ...] | None] = []
        for side in (0, 1):
            found = None
            if fragments[side] is not None:
                values = [read(instr, r) for r in elements_of(instr.operands[1 + side])]
                found = tuple([-1 if value is None else value for value in values])
            sides.append(found)
        added: list[int | None] = []
        if instr.opcode != "wgmma" or self._movements.is_added_to(instr) is not False:
            count = 1 + max([element.register for element in fragments.result], default=-1)
            added = [self._movements.accumulator(instr, at) for at in range(count)]
        return sides[0], sides[1], tuple([-1 if value is None else value for value in added])

    def _brought_by(self, instr: Instr, fragments: Fragments) -> dict[int, tuple[int, int, bool]]:
        """By register of the result: the marks of the factors that go to its halves, and whether
        it is one element."""
        factors = self.factors(instr, fragments)
        sides = [[f for f in factors if f[1] == side] for side in (0, 1)]
        brought: dict[tuple[int, int], int] = {}
        out: dict[int, tuple[int, int, bool]] = {}
        for element in fragments.result:
            marks = 0
            for along, shared in ((0, element.first), (1, element.second)):
                key = along, id(shared)
                found = brought.get(key)
                if found is None:
                    found = 0
                    lanes = self.lanes_of(instr, along, fragments)
                    for factor, _, coordinate in sides[along]:
                        found |= self._all_behind(factor, coordinate, shared, lanes)
                    brought[key] = found
                marks |= found
            low, high, is_whole = out.get(element.register, (0, 0, False))
            if element.parts == 1:
                out[element.register] = low | marks, high | marks, True
            elif element.part * 2 // element.parts:
                out[element.register] = low, high | marks, is_whole
            else:
                out[element.register] = low | marks, high, is_whole
        return out

    def _unknown_product(self, instr: Instr, defs: tuple[int, ...]) -> None:
        bits = self.of_all(instr)
        marks = self._lost(f"the layout of `{instr.shape.mnemonic}` is not known", bits)
        for value in defs:
            self._written(value, (marks, marks))

    def _tensor(self, instr: Instr, defs: tuple[int, ...]) -> None:
        """Into tensor memory and out of it again: where in it elements lie is not followed."""
        kind = instr.shape.modifiers[0]
        if kind == "ld":
            for value in defs:
                self._written(value, (self._in_tensors, self._in_tensors))
        elif kind in ("st", "cp", "mma"):
            new = self._lost(IN_TENSORS, self._going_to_tensors(instr)) & ~self._in_tensors
            if new:
                self._in_tensors |= new
                for other in self._instrs:
                    if other.opcode == "tcgen05" and other.defs:
                        self._agenda.add(other.index)

    def _going_to_tensors(self, instr: Instr) -> int:
        """The marks of what a store, a copy or a product puts into tensor memory."""
        kind = instr.shape.modifiers[0]
        if kind == "st":
            return self.of_all(instr)
        fragments = None if kind == "cp" else self.fragments_of(instr)
        is_known = fragments is not None and not self._work.spent
        if not is_known or any(self.in_memory(instr, side) is None for side in (0, 1)):
            self._unplaced.add(instr.index)
            return self._all_stored() if kind == "cp" else self.of_all(instr)
        assert fragments is not None
        bits = 0
        for marks, _, _ in self.factors(instr, fragments):
            bits |= marks
        return bits

    def factor_type(self, instr: Instr) -> str:
        """The type of a product's factors, "" if it is not known."""
        return self._movements.factor_type(instr)

    def of_all(self, instr: Instr) -> int:
        """The marks of all that an instruction reads, in memory too."""
        bits = 0
        if instr.opcode == "wgmma" or is_tensor_product(instr):
            bits = self._all_stored(instr)
        if instr.opcode == "tcgen05":
            bits |= self._in_tensors
        for value in self._ssa.use_values[instr.index]:
            low, high = self._get(value)
            bits |= low | high
        return bits

    def factors(self, instr: Instr, fragments: Fragments) -> list[tuple[int, int, LaneMap]]:
        """The marks of the factors' elements that go on to the result.

        Each with 0 for rows or 1 for columns, and the element's coordinate there.
        """
        out = []
        for side, elements in ((0, fragments.first), (1, fragments.second)):
            marks = self.of_factor(instr, side, elements)
            # What is in memory has one element, known by where its coordinates lie.
            where = id(fragments) if elements is not None else id(marks[0][0]) if marks else 0
            key = where, side, tuple([bits for _, bits in marks])
            found = self._sides.get(key)
            if found is None:
                lanes = self.lanes_of(instr, side, fragments)[0]
                found = self._sides[key] = self._factor(lanes, marks, side)
            out += found
        return out

    def lanes_of(self, instr: Instr, side: int, fragments: Fragments) -> tuple[int, int]:
        """The bits of the index that the layout of a factor uses, and of that of the result."""
        factor = None if fragments[side] is not None else self.in_memory(instr, side)
        return (fragments.lanes if factor is None else factor.lanes), fragments.lanes

    def in_memory(self, instr: Instr, side: int) -> Factor | None:
        """A factor in shared memory with its marks; None if it is not known how it was stored."""
        factor = self._factors.of(instr, side)
        if factor is None:
            return None
        place = instr.index, side
        if self._seen.get(place) == self.version:
            return factor
        if place not in self._seen:
            self._watch(factor.ways, instr)
        self._seen[place] = self.version
        put = [self._put_by(way) for way in factor.ways]
        if factor.put == put:
            return factor
        factor.put = put
        found: dict[int, dict[int, Condition]] = {}
        there: list[tuple[int, Mark, int]] = []
        for at, (way, bits) in enumerate(zip(factor.ways, put, strict=True)):
            for mark in self.each(bits):
                self._work.left -= 1
                condition = self._factors.through(way, mark.condition)
                if condition is not None:
                    found.setdefault(mark.load, {})[condition.number] = condition
                    there.append((at, mark, condition.number))
        key = "factor", instr.index, side
        factor.bits = self._summed_up(found, key)
        became = self._became[key]
        factor.passed = [
            Passed(at, mark.condition, became[mark.load].get(number, ()))
            for at, mark, number in there
        ]
        return factor

    def _factor(
        self, lanes: int, marks: list[tuple[Element, int]], side: int
    ) -> list[tuple[int, int, LaneMap]]:
        """The marks of one factor's elements that go on to the result: see `factors`."""
        out = []
        # By place along k: the conditions of all elements there, and those of any.
        every: dict[LaneMap, int] = {}
        some: dict[LaneMap, int] = {}
        for element, bits in dict.fromkeys(marks):
            k = element.second if side == 0 else element.first
            told = self._conditions_of(bits)
            every[k] = every.get(k, -1) & told
            some[k] = some.get(k, 0) | told
        self._work.left -= len(marks) >> 1
        always = -1
        for told in some.values():
            always &= told
        for element, bits in marks:
            if not bits:
                continue
            along, across = element.first, element.second
            if side:
                along, across = across, along
            kept, asked = self._going_on(bits, along, across, lanes)
            if asked:
                # What no lane decides may tell blocks of k apart, not rows: it then holds in all
                # rows of this block of k, and in some other block it does not.
                ends = every[across] & ~always
                for mark in self.each(asked):
                    if not ends >> mark.condition.number & 1:
                        kept |= 1 << self.number(*mark)
            if kept:
                out.append((kept, side, along))
        return list(dict.fromkeys(out))

    def _going_on(self, bits: int, along: LaneMap, across: LaneMap, lanes: int) -> tuple[int, int]:
        """Those of a factor's marks that go on to the result, and those that may."""
        key = bits, id(along), id(across), lanes
        found = self._going.get(key)
        if found is None:
            kept = asked = 0
            for mark in self.each(bits):
                self._work.left -= 1
                goes = self.goes_on(mark.condition, along, across, lanes)
                if goes is None:
                    asked |= 1 << self.number(*mark)
                elif goes:
                    kept |= 1 << self.number(*mark)
            found = self._going[key] = kept, asked
        return found

    def fragments_of(self, instr: Instr) -> Fragments | None:
        """The layouts of a product, with equal coordinates being one object."""
        known = self._movements.fragments(instr)
        return None if known is None else self._interned(known)

    def going_on(
        self,
        value: int,
        element: Element,
        along: LaneMap,
        target: LaneMap,
        lanes: tuple[int, int],
    ) -> Iterator[tuple[Condition, int]]:
        """The conditions of a factor's element, each with its number where the result has it."""
        bits = self.of(value, element.part, element.parts)
        yield from self.beyond(bits, along, target, lanes)

    def beyond(
        self, bits: int, along: LaneMap, target: LaneMap, lanes: tuple[int, int]
    ) -> Iterator[tuple[Condition, int]]:
        """The conditions of a set of marks, each with its number where the result has it."""
        for mark in self.each(bits):
            there = self.behind(mark.condition, along, target, lanes)
            if there is not None:
                yield mark.condition, there.number

    def _interned(self, fragments: Fragments) -> Fragments:
        """The same layouts, with equal coordinates being one object."""
        found = self._fragments.get(id(fragments))
        if found is None:
            first, second, result = [
                None if elements is None else tuple([self._shared(e) for e in elements])
                for elements in fragments[:3]
            ]
            made = Fragments(first, second, result or (), fragments.lanes)
            # The given one is kept too, as it is known by its identity.
            found = self._fragments[id(fragments)] = fragments, made
        return found[1]

    def _shared(self, element: Element) -> Element:
        first, second = element.first, element.second
        maps = self._maps
        return element._replace(
            first=maps.setdefault(first, first), second=maps.setdefault(second, second)
        )

    def of_factor(
        self, instr: Instr, side: int, elements: tuple[Element, ...] | None
    ) -> list[tuple[Element, int]]:
        """The elements of a factor with their marks."""
        if elements is None:
            factor = self.in_memory(instr, side)
            return [] if factor is None else [(factor.element, factor.bits)]
        registers = elements_of(instr.operands[1 + side])
        out = []
        for element in elements:
            value = self._reductions.read(instr, registers[element.register])
            bits = 0 if value is None else self.of(value, element.part, element.parts)
            out.append((element, bits))
        return out

    def goes_on(
        self, condition: Condition, along: LaneMap, across: LaneMap, lanes: int
    ) -> bool | None:
        """True if a factor's condition goes on to rows (or columns) of the result.

        One that differs along k alone ends in the product, which sums over k. `along` is the
        coordinate that the factor shares with the result, `across` is k. None if that depends on
        where else the condition holds.
        """
        if condition.lost:
            return True
        if not condition.bits and not self._conditions.is_carried(condition):
            # All of the CTA is padding, in all rounds.
            return False
        if condition.map is None:
            return True
        if depends_on(condition.map, along, lanes):
            return True
        return False if depends_on(condition.map, across, lanes) else None

    def _all_behind(
        self, bits: int, source: LaneMap, target: LaneMap, lanes: tuple[int, int]
    ) -> int:
        """A factor's marks in terms of the result's elements."""
        key = bits, id(source), id(target), lanes
        found = self._beyond.get(key)
        if found is None:
            found = 0
            for mark in self.each(bits):
                self._work.left -= 1
                condition = self.behind(mark.condition, source, target, lanes)
                if condition is not None:
                    found |= 1 << self.number(condition, mark.load)
            self._beyond[key] = found
        return found

    def behind(
        self, condition: Condition, source: LaneMap, target: LaneMap, lanes: tuple[int, int]
    ) -> Condition | None:
        """A factor's condition in terms of the result's elements; None for other elements.

        `lanes` are the bits of the two's indices that their layouts use.
        """
        if condition.lost:
            return self._conditions.lost(condition.lost)
        if condition.map is None:
            return self._conditions.lost(_SEVERAL_WAYS)
        # Coordinates are kept, one object each, so that identity tells them apart.
        key = condition.number, id(source), id(target), lanes
        found = self._after.get(key)
        if found is None:
            carried = carry(condition.map, source, target, *lanes)
            if carried is None:
                found = self._conditions.lost(_SEVERAL_WAYS).number
            elif carried.map is None:
                found = -1
            else:
                moved = self._conditions.moved(condition, carried.map)
                found = self._conditions.estranged(moved).number
            self._after[key] = found
        return None if found < 0 else self._conditions.all[found]


def _plainness(shape: Shape) -> int:
    """What kind of plain operation instructions of a shape are, 0 for any other instruction."""
    opcode = shape.opcode
    if shape.row.is_call or not shape.row.known or opcode in _SPECIAL:
        return 0
    return _BY_HALF if opcode == "selp" or shape.type in _PACKED else _UNITED


def _reads_shared(instr: Instr) -> bool:
    """True for a load from shared memory."""
    opcode = instr.opcode
    return opcode == "ldmatrix" or (opcode in ("ld", "ldu") and instr.shape.space == "shared")


def _bits(marks: int) -> Iterator[int]:
    while marks:
        lowest = marks & -marks
        yield lowest.bit_length() - 1
        marks ^= lowest


__all__ = ["CONTRACTIONS", "IN_TENSORS", "Mark", "Marks"]
