"""How elements come from thread to thread: through shared memory and through tensor-core products.

Both ways are answered: what the condition of a stored element is for who loads it, and what the
condition of a loaded element was where it was stored. Iterations count as well: what is stored in
one round of a loop may be read in a later one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.fragments import Fragments, elements_of, fragments_of
from ptxlint.dataflow.lane_hops import LaneHop, LaneHops
from ptxlint.dataflow.lane_map import LaneMap, compose_some, readers
from ptxlint.dataflow.linear import Piece
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.shared_cells import Age, Write
from ptxlint.dataflow.shared_match import Source as GrainSource
from ptxlint.dataflow.shared_provenance import (
    Movement,
    OriginMemo,
    Passage,
    Payload,
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
_CARRIED: Final = "a loop carries the padding on in a way that is not recognised"
_NO_MAP: Final = f"{_ANOTHER_LAYOUT}: which lanes it is in is not linear in the thread's number"
_IN_PART: Final = f"{_ANOTHER_LAYOUT}: it is known for some of the threads alone that are read from"
_ANOTHER_LANE: Final = "`shfl` moves the padding to lanes that are not known"


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


class Route:
    """How what one instruction stored comes to who reads it, made and numbered by `Movements`.

    A reader's index i with `i & fixed == at` gets what thread `start` stored, xored with
    `images[k]` for each set bit k of i; `rounds` says of loops when that was. The index is that of
    a thread, or one into a matrix: see `MatrixArrivals`. Ways of equal routes share one object.
    """

    __slots__ = ("at", "fixed", "images", "is_of_any_round", "is_of_one_round", "number",
                 "outside", "rounds", "shape", "start", "store")  # fmt: skip

    def __init__(
        self,
        number: int,
        shape: int,
        store: int,
        piece: Piece,
        rounds: tuple[Age, ...],
        outside: tuple[int, ...],
    ) -> None:
        self.number = number
        self.shape = shape
        """What it has in common with routes that differ in `start` alone."""
        self.store = store
        """The instruction that stored it, or the first one of those that share the route."""
        self.fixed, self.at, self.start, self.images = piece
        self.rounds = rounds
        self.outside = outside
        """The headers of loops around the store of which `rounds` says nothing."""
        known = [age.rounds is not None for age in rounds]
        inside = [age.inside for age in rounds]
        self.is_of_any_round = bool(rounds) and not any(known) and not any(inside)
        """True if it is known to have been stored before the loops, but read in any round."""
        self.is_of_one_round = any(known)

    def push(self, stored: LaneMap) -> LaneMap | None:
        """A map over the storing threads as one over the reading indices.

        None if it holds for no thread that is read from, or for some that are read from by
        indices which are not given by fixing single bits.
        """
        found = compose_some(stored, self.start, self.images)
        if found is None:
            return None
        return found._replace(fixed=found.fixed | self.fixed, at=found.at | self.at)

    def meets(self, stored: LaneMap) -> bool:
        """True if some thread that is read from is one that a map holds for."""
        return readers(stored, self.start, self.images) is not False


class Way(NamedTuple):
    """One way in which a part of a register, or of a matrix element, may have come.

    It is part `part` of `parts` of the SSA value `value` that `store` stored, which is None for
    what a `cp.async` brings and -1 for a constant or what is not known. `maybe` says that older
    data may be read instead.
    """

    store: Instr
    value: int | None
    part: int
    parts: int
    maybe: bool
    route: Route


class MatrixArrivals(NamedTuple):
    """The ways into a factor that `wgmma` reads from shared memory.

    Its routes' reading index has the row of A or the column of B in its low `rows` bits, k in the
    next `depth` bits, and above these the bits of the thread index from 7 on, which tell
    warpgroups apart. `ways` is by part of an element: halves of a word for tf32, else one.
    """

    rows: int
    depth: int
    ways: tuple[tuple[Way, ...], ...]


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
        self._instrs = facts.function.instrs
        self._provenance: SharedProvenance = facts.get(SharedProvenanceAnalysis)
        combining = (reductions.recognised | reductions.members.keys()) - reductions.moves
        self._hops = LaneHops(facts, combining)
        self._back: dict[tuple[Any, ...], tuple[bool, Condition | None]] = {}
        self._headers: dict[int, tuple[int, ...]] = {}
        self._routes: dict[tuple[Any, ...], Route] = {}
        self._bundles: dict[tuple[int, int], tuple[Route, ...]] = {}
        self._times: dict[int, tuple[int, tuple[Age, ...], tuple[int, ...], int]] = {}
        """By write: a number for when it was done, its rounds, the loops of which they say nothing,
        and the instruction if that matters."""
        self._moments: dict[tuple[tuple[Age, ...], tuple[int, ...], int], int] = {}
        self._starts: dict[int, tuple[Instr, int | None, int, int, bool]] = {}
        """By way of the memo: its store, the part of a value that it stored, and `maybe`."""
        self._grains: dict[int, list[tuple[GrainSource, tuple[Route, ...]]]] = {}
        """By grain of shared memory: what comes to it from each payload, and how."""
        self._origins = OriginMemo()
        self._arrivals: dict[tuple[int, int], tuple[tuple[Way, ...], ...] | None] = {}
        self._matrices: dict[tuple[int, int], MatrixArrivals | None] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._through: dict[tuple[int, ...], Condition | None] = {}
        self._next_rounds: dict[tuple[int, int], Condition | None] = {}
        self.stores = [
            i
            for i in self._instrs
            if ssa.cfg.is_reachable(i)
            and (
                (i.opcode in ("st", "stmatrix") and i.shape.space == "shared")
                or (i.opcode == "cp" and i.shape.has("async") and len(i.operands) >= 3)
            )
        ]

    # Forward ----------------------------------------------------------------------------------
    def arrivals(self, load: Instr, at: int) -> tuple[tuple[Way, ...], ...] | None:
        """By part of register `at` of a load, lowest first, the ways it may have come, each once.

        None if they are not known: `why` says why. A register has as many parts as halves, or as
        bytes where single bytes are stored or loaded.
        """
        key = load.index, at
        if key not in self._arrivals:
            ways = self.ways(load, at)
            self._arrivals[key] = None if ways is None else tuple(map(self._arrived, ways))
        return self._arrivals[key]

    def matrix_arrivals(self, instr: Instr, operand: int) -> MatrixArrivals | None:
        """The ways into operand 1 (A) or 2 (B) of `wgmma`; None for one in registers, or if they
        are not known."""
        key = instr.index, operand
        if key not in self._matrices:
            found = None
            matrix = self._provenance.matrix(instr, operand)
            if matrix is not None and matrix.loaded is not None:
                parts = [part for part in matrix.loaded.parts if part is not None]
                ways = tuple(map(self._arrived, parts))
                found = MatrixArrivals(matrix.rows, matrix.depth, ways)
            self._matrices[key] = found
        return self._matrices[key]

    def through(self, route: Route, condition: Condition) -> Condition | None:
        """The condition of an element that came by a route, from that of what was stored.

        None if it is that of elements which do not come this way. A condition that nobody can tell
        is one that is `lost`, with the reason. For routes into matrices see `on_matrix`.
        """
        # Routes that begin in threads which the condition does not tell apart do the same.
        key = route.shape, route.start & condition.lanes, condition.number
        if key not in self._through:
            self._through[key] = self._go_through(route, condition)
        return self._through[key]

    def _go_through(self, route: Route, condition: Condition) -> Condition | None:
        if condition.lost:
            return condition
        moved = condition
        if condition.map is None:
            if condition.bits:
                return self._conditions.lost(_NO_MAP)
        else:
            found = route.push(condition.map)
            if found is None:
                return self._conditions.lost(_IN_PART) if route.meets(condition.map) else None
            moved = self._conditions.moved(condition, found)
        later = self._later(moved, route.rounds, route.outside, route.store)
        return None if later is None or self._is_void(later, route.rounds) else later

    def in_next_round(self, condition: Condition, header: int) -> Condition | None:
        """A condition of one round of a loop as the next round sees it.

        None if it does not hold in any round that follows on another one: there is no such round,
        or it is known not to in those that come. Lost if it is not known how the loop carries it.
        """
        key = condition.number, header
        if key not in self._next_rounds:
            self._next_rounds[key] = self._find_next_round(condition, header)
        return self._next_rounds[key]

    def _find_next_round(self, condition: Condition, header: int) -> Condition | None:
        if condition.lost:
            return condition
        later = self._conditions.earlier(condition, header)
        if later is None:
            return self._conditions.lost(_CARRIED)
        if later is condition or later.lost or later.conjunct is None:
            return later
        number = dict(later.rounds).get(header)
        return None if self._rounds.holds(later.conjunct, header, number, True) else later

    def on_matrix(
        self, route: Route, condition: Condition
    ) -> tuple[Condition, LaneMap | None] | None:
        """The condition of the elements of a matrix that came by a route; None if there are none.

        The map is over the matrix's index, and None for a condition that is lost or that no lane
        decides; the condition itself is the stored one in the round in which the matrix is read.
        `carry` puts the map in terms of the threads that hold another matrix, for which
        `Conditions.moved` then gives the condition.
        """
        if condition.lost:
            return condition, None
        map_ = condition.map
        if map_ is None:
            if condition.bits:
                return self._conditions.lost(_NO_MAP), None
        else:
            map_ = route.push(map_)
            if map_ is None:
                assert condition.map is not None
                is_met = route.meets(condition.map)
                return (self._conditions.lost(_IN_PART), None) if is_met else None
        later = self._later(condition, route.rounds, route.outside, route.store)
        if later is None or self._is_void(later, route.rounds, map_):
            return None
        return later, None if later.lost else map_

    def _arrived(self, movement: Movement) -> tuple[Way, ...]:
        known = self._origins
        routes = self._grains.get(movement.grain)
        if routes is None:
            routes = self._grains[movement.grain] = [
                (source, self._routes_of(source.write, pieces))
                for source, pieces in movement.origins(known)
            ]
        out: list[Way] = []
        for source, own in routes:
            number = movement.way(source, known)
            start = self._starts.get(number)
            if start is None:
                payload, maybe, _ = known.ways[number]
                start = self._starts[number] = (payload.instr, *self._place(payload), maybe)
            out += [Way(*start, route) for route in own]
        return tuple(dict.fromkeys(out))

    def _routes_of(self, write: Write, pieces: tuple[Piece, ...]) -> tuple[Route, ...]:
        # Writes and pieces live as long as the function's facts, so that they can be told by id.
        time = self._times.get(id(write))
        if time is None:
            headers = [age.header for age in write.rounds]
            outside = tuple([h for h in self._around(write.instr) if h not in headers])
            # What was stored in an unknown round is known by the instruction that stored it.
            known = not outside and all(age.rounds is not None for age in write.rounds)
            named = -1 if known else write.instr.index
            number = self._moments.setdefault((write.rounds, outside, named), len(self._moments))
            time = self._times[id(write)] = number, write.rounds, outside, named
        key = id(pieces), time[0]
        found = self._bundles.get(key)
        if found is None:
            found = tuple([self._route(piece, *time[1:], write.instr) for piece in pieces])
            self._bundles[key] = found
        return found

    def _route(
        self,
        piece: Piece,
        rounds: tuple[Age, ...],
        outside: tuple[int, ...],
        named: int,
        store: Instr,
    ) -> Route:
        key = piece, rounds, outside, named
        found = self._routes.get(key)
        if found is None:
            alike = piece.fixed, piece.at, piece.images, rounds, outside, store.index
            shape = self._shapes.setdefault(alike, len(self._shapes))
            found = Route(len(self._routes), shape, store.index, piece, rounds, outside)
            self._routes[key] = found
        return found

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
        return self._place(passage.payload)

    def _place(self, payload: Payload) -> tuple[int | None, int, int]:
        store = payload.instr
        if store.opcode == "cp":
            return None, 0, 1
        operand = elements_of(store.operands[1])[payload.operand]
        value = self._reductions.read(store, operand)
        if value is None:
            return -1, 0, 1
        width = _width(self._ssa, value)
        return value, payload.part, max(1, width // payload.bits)

    def _is_void(
        self, condition: Condition, rounds: tuple[Age, ...], to: LaneMap | None = None
    ) -> bool:
        """True if a condition that is the same for all threads is never met where it is read.

        `to` is its map there, where that is not the condition's own.
        """
        conjunct = condition.conjunct
        to = to or condition.map
        if conjunct is None or (condition.bits if to is None else not to.is_uniform):
            return False
        numbers = dict(condition.rounds)
        for age in rounds:
            if age.rounds is None:
                continue
            number = numbers.get(age.header, None if age.inside else age.rounds)
            later = age.inside and age.rounds > 0
            if self._rounds.holds(conjunct, age.header, number, later):
                return True
        return False

    def _later(
        self,
        condition: Condition,
        rounds: tuple[Age, ...],
        outside: tuple[int, ...],
        store: int,
    ) -> Condition | None:
        """A stored element's condition in the round of the load; None if it is read in no round."""
        ages = [*rounds, *(Age(h, None, False) for h in outside)]
        conditions = self._conditions
        for age in ages:
            varies = conditions.varies(condition, age.header)
            if age.rounds is None or (varies and not age.inside):
                if varies:
                    return conditions.stored(condition, store)
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
                return conditions.stored(condition, store)
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

    # Lanes ------------------------------------------------------------------------------------
    @property
    def has_hops(self) -> bool:
        """False if `hops` has nothing for any value."""
        return self._hops.has_some

    def hops(self, value: int) -> tuple[LaneHop, ...]:
        """How a register came from other lanes, if `shfl` brought it and combines nothing."""
        return self._hops.of(value)

    def hopped(self, hop: LaneHop, condition: Condition) -> list[Condition]:
        """What the condition of an element in another lane is for who gets it; none for others."""
        conditions = self._conditions
        if condition.lost or not condition.bits:
            return [condition]
        here = condition.map
        factor = None if here is None else hop.shift_factor(here)
        pieces = None if here is None else hop.push(here)
        if pieces is None or factor is None or (factor and condition.store >= 0):
            return [conditions.lost(_ANOTHER_LANE)]
        if hop.shift is not None and factor:
            raised = hop.shift.number * factor
            return [conditions.raised(condition, raised, piece) for piece in pieces]
        return [conditions.moved(condition, piece) for piece in pieces]

    def before_hop(
        self, hop: LaneHop, condition: Condition, known: Iterable[Condition]
    ) -> tuple[bool, Condition | None]:
        """Whether a condition is about some thread that gets its element this way, and what it is
        for who had it; None if that is not known. `known` are conditions that it may be."""
        to = condition.map
        if to is not None and (hop.at ^ to.at) & hop.fixed & to.fixed:
            return False, None
        if condition.lost:
            return True, None
        own = list(known)
        if not condition.bits and condition in own:
            return True, condition
        before = None if to is None else hop.pull(to)
        if before is not None:
            return True, self._conditions.moved(condition, before)
        return True, next((c for c in own if condition in self.hopped(hop, c)), None)

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

    def factor_type(self, instr: Instr) -> str:
        """The type of a product's factors, "" where the two differ or it is not known."""
        if instr.opcode != "tcgen05":
            return instr.shape.types[1]
        kinds = {
            matrix.kind
            for operand in (1, 2)
            if (matrix := self._provenance.matrix(instr, operand)) is not None
        }
        return kinds.pop() if len(kinds) == 1 else ""

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


def whole_ways(parts: list[list[Way]]) -> list[Way] | None:
    """The ways of a register as a whole, where its parts are those of one value side by side."""
    count = len(parts)
    if count < 2:
        return parts[0] if parts else None
    if count == 4:
        sides = whole_ways(parts[:2]), whole_ways(parts[2:])
        return None if sides[0] is None or sides[1] is None else whole_ways([sides[0], sides[1]])
    low, high = parts
    if len(low) != len(high):
        return None
    out: list[Way] = []
    for first, second in zip(low, high, strict=True):
        if first.store is not second.store or first.route is not second.route:
            return None
        if first.value is None or first.value < 0:
            if first.value != second.value:
                return None
            out.append(first)
            continue
        store, value, part, parts_of, maybe, route = first
        if second.value != value or second.part != part + 1 or second.parts != parts_of:
            return None
        if second.maybe != maybe or part % 2 or parts_of % 2:
            return None
        out.append(Way(store, value, part // 2, parts_of // 2, maybe, route))
    return out


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


__all__ = ["MatrixArrivals", "Movements", "Route", "Source", "Way", "whole_ways"]
