"""Abstract floats of all values of a function under one scenario.

A scenario says what loads give (any finite number, or one and the same), which predicates are
taken to hold or not, and what loops start from. Values are evaluated forwards to a fixpoint: phis
and shared memory join, loops widen. There is one abstract value for all threads and all rounds.

What is taken for granted: a loop that can be skipped is run at least once, sizes and parameters
of floating-point type are positive, factors of tensor-core products are finite; and, if the
scenario says `full`, sizes that bound an access are so large that they mask nothing. With these a
value that is nothing but NaN or infinite is that in some launch.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import BF16, F16, F32, F64, FORMATS, AbstractFloat, Format
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, GuardsAnalysis
from ptxlint.dataflow.padding_values import (
    DATA,
    UNKNOWN,
    Data,
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
)
from ptxlint.dataflow.polynomial import INFINITY, Polynomial
from ptxlint.dataflow.reductions import WHOLE, Node, ReductionsAnalysis
from ptxlint.dataflow.register_words import whole_of
from ptxlint.dataflow.shared_provenance import (
    Movement,
    SharedProvenance,
    SharedProvenanceAnalysis,
)
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.dataflow.value_flow import ValueFlow, ValueFlowAnalysis
from ptxlint.facts import Analysis, Budget, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Address, Immediate, Negated, Operand, Register, Symbol, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_SWEEPS: Final = 24
_WIDEN_AFTER: Final = 3
_MOST_PARTINGS: Final = 6
"""How often what loops carry is parted before each is a group of its own."""
_TENSOR: Final = frozenset({"mma", "wgmma", "wmma", "tcgen05"})
_LOADS: Final = frozenset({"ld", "ldu", "ldmatrix"})
_ACCESSES: Final = frozenset({"ld", "st", "cp", "atom", "red"})
_SHARED_STORES: Final = frozenset({"st", "stmatrix"})
_ORDERED: Final = frozenset("lt le gt ge eq ne".split())
_FLIPPED: Final = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_EIGHT_BITS: Final = frozenset({"e4m3x2", "e5m2x2"})


class Scenario(NamedTuple):
    """`data` is what loads of numbers give.

    With `full` all tiles are full. `truths` fixes predicates, by their root. `starts` replaces what
    phis at the heads of loops hold before the first round. `once` is the header of a loop that is
    looked at in its first round only. `nonpositive` are results of arithmetic, or halves of them
    (`WHOLE` for all of a value), that are known not to be above 0. With `overflows` an exponential
    is infinite, too, if its exponent may be so large.
    """

    data: Data = DATA
    full: bool = True
    once: int = -1
    truths: Mapping[int, bool] = {}
    starts: Mapping[int, Word] = {}
    nonpositive: Mapping[int, tuple[int, ...]] = {}
    overflows: bool = False


class Plan(NamedTuple):
    """Plain arithmetic: its operands are values, or words where they are constants.

    With `same` the first two are one value.
    """

    instr: Instr
    form: Format
    operands: tuple[int | Found, ...]
    same: bool


def _as_whole(parts: list[list[Node]]) -> tuple[list[Node], ...]:
    """Halves that come from the same registers together are those registers, where all do."""
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    if 2 * len(pairs) == len(parts) and all(_are_halves(low, high) for low, high in pairs):
        return tuple([Node(n.value) for n in low] for low, _ in pairs)
    return tuple(parts)


def _are_halves(low: list[Node], high: list[Node]) -> bool:
    """True for the low and the high halves of the same registers."""
    return len(low) == len(high) and all(
        a.value == b.value and (a.part, b.part) == (0, 1) for a, b in zip(low, high, strict=True)
    )


class Turn(NamedTuple):
    """A value to work out, and the others of its group.

    It is joined over rounds, or decided by its inputs alone, or neither. `inputs` are groups.
    `plan` is there for plain arithmetic.
    """

    value: int
    group: int
    others: tuple[int, ...]
    joins: bool
    local: bool
    inputs: tuple[int, ...]
    plan: Plan | None


class FloatSources:
    """What values are made of, and how control goes, as far as numbers decide it.

    The same for all slices of a function; found when it is first asked for.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.guards = facts.get(GuardsAnalysis)
        self.reductions = facts.get(ReductionsAnalysis)
        self.flow: ValueFlow = facts.get(ValueFlowAnalysis)
        self.ssa = self.guards.ssa
        self.loops = self.flow.loops
        self._post = facts.get(PostDominatorsAnalysis)
        self._instrs = facts.function.instrs
        self._parameters = frozenset(p.name for p in facts.function.params)
        self.stores, self.is_fed_from_outside = self._shared_memory()
        self.inputs_of: dict[int, tuple[int, ...]] = {}
        self._provenance: SharedProvenance = facts.get(SharedProvenanceAnalysis)
        self.handed: dict[int, tuple[list[Node], ...]] = {}
        """By load of shared memory: what may have been stored for it, or for its low and its high
        half; empty if that is not known."""
        self.skips = self._skipping_edges()
        self.branches = self._deciding_branches()
        self.tails = self._access_guards()
        self._heads: dict[int, object] = {}
        self.groups: dict[int, int] = {}
        """By value the number of its group; see `FloatSlice.program`."""
        self.known_groups: dict[object, int] = {}
        """The groups by what makes them, those of loops apart."""
        self._outcomes: dict[int, tuple[int | None, int | None]] = {}
        self._constants: dict[Shape, tuple[int, ...]] = {}
        self._plain: dict[Shape, bool] = {}

    def inputs(self, value: int) -> tuple[int, ...]:
        """The resolved values that a resolved value is computed from."""
        found = self.inputs_of.get(value)
        if found is None:
            ssa, resolve = self.ssa, self.ssa.resolve
            instr = self._instrs[ssa.instr[value]] if ssa.kind[value] == RESULT else None
            if instr is not None and ssa.register[value].type != "pred" and self._is_plain(instr):
                read = ssa.use_values[instr.index][1 if instr.shape.guard else 0 :]
                found = self.inputs_of[value] = tuple([resolve(v) for v in read])
                self._heads[value] = self._of_operands(value, instr)
            else:
                found = self.inputs_of[value] = tuple(map(resolve, self._inputs(value)))
        return found

    def _is_plain(self, instr: Instr) -> bool:
        """True for what is computed from registers and constants, and from nothing else."""
        found = self._plain.get(instr.shape)
        if found is None:
            shape = instr.shape
            found = self._plain[shape] = not (
                shape.opcode in _LOADS
                or shape.opcode in _TENSOR
                or shape.opcode in ("atom", "call", "setp", "selp")
                or (shape.opcode == "cvt" and shape.type[:1] in ("s", "u"))
                or any(isinstance(o, Address) for o in instr.operands)
            )
        return found

    def _skipping_edges(self) -> set[tuple[int, int]]:
        """The edges around a loop that are taken when it has no round at all."""
        cfg = self.ssa.cfg
        found: set[tuple[int, int]] = set()
        for loop in self.loops.loops:
            outside = [p for p in cfg.blocks[loop.header].preds if not self.loops.contains(loop, p)]
            if len(outside) != 1:
                continue
            inner, at = loop.header, outside[0]
            while len(cfg.blocks[at].succs) == 1 and len(cfg.blocks[at].preds) == 1:
                inner, at = at, cfg.blocks[at].preds[0]
            succs = cfg.blocks[at].succs
            if len(succs) == 2 and inner in succs:
                other = succs[0] if succs[1] == inner else succs[1]
                if self._post.strictly_dominates(other, at):
                    found.add((at, other))
        return found

    def _deciding_branches(self) -> dict[tuple[int, int], tuple[int, bool]]:
        """By edge the predicate that leads there, and its truth, of comparisons of numbers."""
        cfg = self.ssa.cfg
        found: dict[tuple[int, int], tuple[int, bool]] = {}
        for index in cfg.rpo:
            branch = cfg.terminator(index)
            if branch is None or branch.guard is None:
                continue
            predicate = self.ssa.guard_value(branch)
            if predicate is None or not self._is_about_numbers(predicate):
                continue
            for target in cfg.blocks[index].succs:
                condition = cfg.edge_condition(index, target)
                if condition is not None:
                    found[index, target] = (predicate, condition[1])
        return found

    def _is_about_numbers(self, predicate: int) -> bool:
        root = self.ssa.root(self.ssa.resolve(predicate))[0]
        instr = self.reductions.definition(root)
        if instr is None or instr.opcode != "setp":
            return False
        return instr.shape.type in FORMATS or bool(self.compared_bits(instr))

    def compared_bits(self, instr: Instr) -> tuple[int, ...]:
        """The number whose bits a `setp` compares with a constant; nothing if it does not."""
        if instr.shape.type not in ("u32", "b32", "s32") or len(instr.operands) != 3:
            return ()
        value = self.reductions.read(instr, instr.operands[1])
        if value is None or fold(instr.operands[2]) is None:
            return ()
        made = self.reductions.definition(value)
        numeric = made is not None and (
            made.shape.type == "f32" or (made.opcode == "selp" and made.shape.type == "b32")
        )
        return (value,) if numeric else ()

    def _shared_memory(self) -> tuple[list[int], bool]:
        """The values stored to shared memory, and whether something else writes it."""
        stored: list[int] = []
        outside = False
        cfg = self.ssa.cfg
        for instr in self.facts.instructions(lambda shape: "shared" in memory_of(shape).writes):
            if not cfg.is_reachable(instr):
                continue
            if instr.opcode in _SHARED_STORES and instr.shape.space == "shared":
                for values in self.flow.operand_values(instr)[1:]:
                    stored += values
            elif instr.opcode not in _LOADS:
                outside = True
        return [self.ssa.resolve(v) for v in dict.fromkeys(stored)], outside

    def is_parameter(self, instr: Instr) -> bool:
        """True for a load of a parameter of the function itself."""
        return any(isinstance(a, Symbol) and a.name in self._parameters for a in instr.args)

    def is_shared_load(self, instr: Instr) -> bool:
        return instr.opcode in _LOADS and instr.shape.space == "shared"

    def _handed(self, value: int, instr: Instr) -> tuple[list[Node], ...]:
        """What a load gets from stores to shared memory."""
        loaded = self._provenance.of(instr)
        at = self.ssa.result[value]
        if at < len(loaded) and loaded[at].bits == 16:
            parts = [self._payloads(part) for part in loaded[at].parts]
            width = BITS.get(self.ssa.register[value].type, 0)
            if width == 16 * len(parts) and None not in parts:
                return _as_whole([p for p in parts if p is not None])
        nodes = self.reductions.stored_before(value)
        return (nodes,) if nodes else ()

    def _payloads(self, movement: Movement | None) -> list[Node] | None:
        """The 16-bit registers, or halves of registers, that a part of a load may be."""
        if movement is None or movement.maybe:
            return None
        found: list[Node] = []
        for payload in movement.payloads:
            if payload.instr.opcode not in _SHARED_STORES:
                return None
            data = payload.instr.operands[1]
            element = data.elements[payload.operand] if isinstance(data, Vector) else data
            value = self.reductions.read(payload.instr, element)
            if value is None:
                return None
            width = BITS.get(self.ssa.register[value].type, 0)
            if width not in (16, 32):
                return None
            found.append(Node(value, payload.part if width == 32 else WHOLE))
        return found

    def reads_anything(self, value: int) -> bool:
        """True for a load of shared memory of which it is not known what was stored there."""
        return value in self.handed and not self.handed[value]

    def _inputs(self, value: int) -> Iterable[int]:
        """The values that this one is computed from, those of a predicate included."""
        ssa = self.ssa
        kind = ssa.kind[value]
        if kind != RESULT:
            return ssa.operands[value]
        instr = self._instrs[ssa.instr[value]]
        opcode = instr.opcode
        if self.is_shared_load(instr):
            handed = self.handed[value] = self._handed(value, instr)
            return [node.value for nodes in handed for node in nodes]
        if opcode in _LOADS or opcode in ("atom", "call"):
            return ()
        if opcode in _TENSOR:
            return self.accumulator(value, instr)
        if opcode == "setp" and instr.shape.type not in FORMATS and not _is_boolean(instr):
            return self.compared_bits(instr)
        operands = self.flow.operand_values(instr)
        return [
            v
            for at, values in enumerate(operands)
            for v in values
            if not isinstance(instr.operands[at], Address)
        ]

    def accumulator(self, value: int, instr: Instr) -> tuple[int, ...]:
        """What a tensor-core product adds to, for one element of its result."""
        results = [self.ssa.resolve(v) for v in self.ssa.def_values[instr.index]]
        operands = self.flow.operand_values(instr)
        if instr.opcode == "wgmma":
            added = operands[0] if self.flow.accumulates(instr) else ()
        else:
            added = operands[3] if instr.opcode == "mma" and len(operands) > 3 else ()
        if len(added) != len(results) or value not in results:
            return ()
        return (added[results.index(value)],)

    def _access_guards(self) -> Conjunction:
        """The conjuncts under which memory is accessed."""
        found: set[Conjunct] = set()
        for instr in self.facts.instructions(_accesses_memory):
            if instr.shape.guard or instr.opcode == "cp":
                found |= self.guards.own(instr) or ALWAYS
        return frozenset(found)

    def joins(self, value: int) -> bool:
        """True for values that are joined over rounds: phis of loops, loads of shared memory."""
        kind = self.ssa.kind[value]
        if kind == PHI:
            block = self.ssa.phi_block[value]
            position = self.ssa.cfg.position
            return any(
                p >= 0 and position[p] >= position[block] for p in self.ssa.phi_sources(block)
            )
        instr = self.reductions.definition(value)
        return instr is not None and self.is_shared_load(instr)

    # Values that are computed alike --------------------------------------------------------------
    def head(self, value: int) -> object:
        """All that a value depends on besides its inputs: two values with the same head whose
        inputs hold the same words hold the same word."""
        found = self._heads.get(value)
        if found is None:
            found = self._heads[value] = self._head(value)
        return found

    def _head(self, value: int) -> object:
        ssa = self.ssa
        kind, register = ssa.kind[value], ssa.register[value]
        if kind == PHI:
            return PHI, ssa.phi_block[value], BITS.get(register.type)
        if kind == MERGE:
            predicate, *arms = ssa.operands[value]
            read = self._compared_arms(predicate, arms)
            if not ssa.is_only_write(value):
                return MERGE, BITS.get(register.type), read
            # Where it is not written nothing is: the other arm is all there is.
            inputs, written = self.inputs(value), ssa.resolve(ssa.written(value))
            return (MERGE, inputs.index(written)) if written in inputs else value
        if kind != RESULT:
            return kind
        instr = self._instrs[ssa.instr[value]]
        opcode, shape = instr.opcode, instr.shape
        if register.type == "pred":
            if opcode == "setp" and not self.inputs(value) and shape.type not in FORMATS:
                # A comparison of indices and sizes is as good as another with the same outcome.
                return "outcome", self.outcomes(value)
            return self._of_operands(value, instr), self.outcomes(value)
        if self.is_shared_load(instr):
            handed = self.handed.get(value, ())
            parts = tuple(tuple(node.part for node in nodes) for nodes in handed)
            return "shared", BITS.get(register.type), parts
        if opcode in _LOADS:
            return "load", shape.space, shape.type, self.is_parameter(instr)
        if opcode in _TENSOR:
            return "product"
        if opcode in ("atom", "call") or any(isinstance(o, Address) for o in instr.operands):
            return value
        if (
            opcode == "cvt"
            and shape.types[:1]
            and shape.types[0] in FORMATS
            and shape.type[0] in "su"
        ):
            # What it is depends on the bounds of the integer.
            return value
        if opcode == "selp":
            *arms, predicate = ssa.use_values[instr.index][1 if shape.guard else 0 :] or (-1,)
            is_read = predicate >= 0 and ssa.register[predicate].type == "pred"
            read = self._compared_arms(predicate, arms) if is_read else ()
            return BITS.get(register.type), read, self._of_operands(value, instr)
        return self._of_operands(value, instr)

    def outcomes(self, predicate: int) -> tuple[int | None, int | None]:
        """What a predicate is by its comparisons of integers, 1 or 0 or not known: in any launch,
        and where all sizes are large."""
        found = self._outcomes.get(predicate)
        if found is None:
            found = self._outcomes[predicate] = self._outcome(predicate)
        return found

    def _outcome(self, predicate: int) -> tuple[int | None, int | None]:
        full: int | None = None
        for truth in (True, False):
            needed = self.guards.of_predicate(predicate, truth)
            if needed is None:
                known = int(not truth)
                return known, known if full is None else full
            if not needed:
                return int(truth), int(truth) if full is None else full
            if full is None and needed <= self.tails and _holds_for_large_sizes(needed):
                full = int(truth)
        return None, full

    def _of_operands(self, value: int, instr: Instr) -> object:
        """The instruction without its registers, and whether it reads one value twice."""
        shape = instr.shape
        slots = self._constants.get(shape)
        if slots is None:
            slots = tuple(i for i, a in enumerate(instr.args) if type(a) is not Register)
            self._constants[shape] = slots
        inputs = self.inputs(value)
        same = len(inputs) > 1 and inputs[0] == inputs[1]
        constants = tuple([instr.args[i] for i in slots]) if slots else ()
        return shape, self.ssa.result[value], same, constants

    def _compared_arms(self, predicate: int, arms: Iterable[int]) -> object:
        """Which arms of a selection its predicate compares, and at which operand."""
        ssa = self.ssa
        root, same = ssa.root(ssa.resolve(predicate))
        instr = self.reductions.definition(root)
        if instr is None or instr.opcode != "setp" or instr.shape.type not in FORMATS:
            return same
        read = tuple(ssa.resolve(v) for v in ssa.use_values[instr.index])
        return same, tuple(tuple(ssa.resolve(arm) == v for v in read) for arm in arms)


class FloatSourcesAnalysis(Analysis[FloatSources]):
    """What numbers are made of."""

    name: ClassVar[str] = "float-sources"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        GuardsAnalysis,
        ReductionsAnalysis,
        ValueFlowAnalysis,
        PostDominatorsAnalysis,
        SharedProvenanceAnalysis,
    )

    def run(self, facts: Facts) -> FloatSources:
        """Find what controls numbers; the rest is found when asked for."""
        return FloatSources(facts)


class FloatSlice:
    """What some targets are made of, in the order of evaluation: the same for all scenarios."""

    def __init__(self, facts: Facts, targets: Iterable[int]) -> None:
        self.facts = facts
        self.sources: FloatSources = facts.get(FloatSourcesAnalysis)
        self.reductions = self.sources.reductions
        self.guards = self.sources.guards
        self.flow = self.sources.flow
        self.loops = self.sources.loops
        self.ssa = self.sources.ssa
        self.branches = self.sources.branches
        self.shares = False
        """True if something reads shared memory of which it is not known what was stored."""
        self.order = self._in_order(targets)
        self._plain: list[Turn] = []
        self._turns: dict[int, tuple[bool, bool, Plan | None]] = {}

    def _in_order(self, targets: Iterable[int]) -> list[int]:
        """What the targets are made of, in reverse postorder of the blocks."""
        ssa, sources = self.ssa, self.sources
        work = [ssa.resolve(v) for v in targets]
        work += [ssa.resolve(predicate) for predicate, _ in self.branches.values()]
        seen: set[int] = set()
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            work += [v for v in sources.inputs(value) if v not in seen]
            if not self.shares and sources.reads_anything(value):
                self.shares = True
                work += sources.stores
        position, block_of, instr = ssa.cfg.position, ssa.block_of, ssa.instr
        return sorted(seen, key=lambda v: (position[block_of(v)], instr[v], v))

    def program(self, told: Mapping[int, object]) -> list[Turn]:
        """How the values are worked out, in order: one of each group.

        `told` is what a scenario says of single values, which no other way of telling them has.
        """
        if not self._plain:
            self._plain = self._program(self._grouped({}))
        return self._plain if self._is_even(told) else self._program(self._grouped(told))

    def _is_even(self, told: Mapping[int, object]) -> bool:
        """True if the same is told of all values of a group."""
        groups = self.sources.groups
        said = {groups[v]: what for v, what in told.items() if v in groups}
        return all(
            told.get(v) == said[turn.group]
            for turn in (self._plain if said else ())
            if turn.group in said
            for v in (turn.value, *turn.others)
        )

    def _program(self, groups: dict[int, int]) -> list[Turn]:
        inputs_of = self.sources.inputs_of
        members: dict[int, list[int]] = {}
        for value in self.order:
            members.setdefault(groups[value], []).append(value)
        return [
            self._turn(v, group, tuple(others), tuple({groups[i] for i in inputs_of[v]}))
            for group, (v, *others) in members.items()
        ]

    def _turn(
        self, value: int, group: int, others: tuple[int, ...], inputs: tuple[int, ...]
    ) -> Turn:
        known = self._turns.get(value)
        if known is None:
            instr = self.reductions.definition(value)
            joins = self.sources.joins(value)
            local = not joins and instr is not None and instr.opcode != "selp"
            plan = self._plan(instr) if instr is not None and local else None
            known = self._turns[value] = (joins, local, plan)
        joins, local, plan = known
        return Turn(value, group, others, joins, local, inputs, plan)

    def _plan(self, instr: Instr) -> Plan | None:
        """How an instruction is worked out if it is plain arithmetic on registers and constants."""
        if not is_arithmetic(instr):
            return None
        read = self.reductions.read
        operands: list[int | Found] = []
        for operand in instr.operands[1:]:
            value = read(instr, operand)
            if value is not None:
                operands.append(value)
            elif isinstance(operand, Immediate):
                operands.append(Found(_Arithmetic(self).operand(instr, operand), 0))
            else:
                return None
        same = len(operands) > 1 and operands[0] == operands[1] and isinstance(operands[0], int)
        return Plan(instr, FORMATS[instr.shape.type], tuple(operands), same)

    def _grouped(self, told: Mapping[int, object]) -> dict[int, int]:
        """By value the number of its group, all of which hold the same word.

        Values of one head whose inputs are in the same groups are a group: unrolled code computes
        the same for each of many registers. What loops carry is taken to be of one group until the
        inputs from later rounds are not. Where nothing is told slices have their groups in common.
        """
        groups = {} if told else self.sources.groups
        known: dict[object, int] = {} if told else self.sources.known_groups
        fresh = [v for v in self.order if v not in groups]
        parted = told
        for _ in range(_MOST_PARTINGS):
            new: dict[object, int] = {}
            early = self._numbered(fresh, parted, groups, known, new)
            ends: dict[int, tuple[int, ...]] = {}
            members: dict[int, set[object]] = {}
            for value in early:
                ends[value] = tuple([groups[i] for i in self.sources.inputs_of[value]])
                members.setdefault(groups[value], set()).add(ends[value])
            if all(len(ends_of) == 1 for ends_of in members.values()):
                known.update(new)
                return groups
            parted = {**told, **{v: (groups[v], end) for v, end in ends.items()}}
            for value in fresh:
                del groups[value]
        self._numbered(fresh, {**told, **{value: (value,) for value in early}}, groups, known, {})
        return groups

    def _numbered(
        self,
        fresh: list[int],
        parted: Mapping[int, object],
        groups: dict[int, int],
        known: Mapping[object, int],
        new: dict[object, int],
    ) -> list[int]:
        """Number the groups of values; returns those that have an input which comes after them.

        The groups that what makes them tells by itself are put into `new`.
        """
        early: list[int] = []
        parts: dict[object, int] = {}
        inputs_of, head = self.sources.inputs_of, self.sources.head
        get = groups.get
        for value in fresh:
            inputs = tuple([get(v, -1) for v in inputs_of[value]])
            if -1 in inputs or value in parted:
                if -1 in inputs:
                    early.append(value)
                key = (head(value), inputs, parted.get(value))
                groups[value] = parts.setdefault(key, value)
            else:
                plain = (head(value), inputs)
                found = known.get(plain)
                groups[value] = new.setdefault(plain, value) if found is None else found
        return early


class _Arithmetic(Evaluator):
    """What instructions make of words, which are handed in."""

    def __init__(self, part: FloatSlice) -> None:
        super().__init__(
            part.ssa, part.guards, part.facts.get(UniformityAnalysis), part.reductions,
            Hypothesis(None, ALWAYS, 0), Budget(1 << 60),
        )  # fmt: skip
        self.words: dict[int, Found] = self._memo

    def of(self, value: int) -> Found:
        """The word of a value; unknown if it was not evaluated."""
        return self._memo.get(self.ssa.resolve(value), Found(UNKNOWN, 0))

    def result(self, instr: Instr, value: int) -> Word:
        """What an instruction makes of the words that it reads."""
        return self._transfer(instr, value).word

    def operand(self, instr: Instr, operand: Operand) -> Word:
        """What an instruction reads."""
        return self._source(instr, operand).word

    def _by_statistic(self, instr: Instr, values: list[AbstractFloat]) -> bool:
        return False


class FloatValues:
    """The words of the values of a slice in one scenario.

    A value that has none is never computed in this scenario.
    """

    def __init__(self, part: FloatSlice, scenario: Scenario) -> None:
        self.part = part
        self.scenario = scenario
        self.ssa = ssa = part.ssa
        self._arithmetic = _Arithmetic(part)
        self._words = self._arithmetic.words
        self._data = scenario.data
        self._instructions = part.facts.function.instrs
        self._roots = {ssa.root(p)[0]: t == ssa.root(p)[1] for p, t in scenario.truths.items()}
        self._sources = part.sources
        self._stores = part.sources.stores if part.shares else []
        self._anything: Word | None = self._data if part.sources.is_fed_from_outside else None
        self.settled = self._run()
        """False if the values did not come to a fixpoint; then nothing may be concluded."""

    def word(self, value: int) -> Word | None:
        """What a value holds; None if it is never computed."""
        found = self._words.get(self.ssa.resolve(value))
        return None if found is None else found.word

    def number(self, value: int, form: Format, part: int = WHOLE) -> AbstractFloat | None:
        """A value, or a half of it, read as a number; None if it is never computed."""
        word = self.word(value)
        return None if word is None else _read(word, form, part)

    def operand(
        self, instr: Instr, at: int, form: Format, part: int = WHOLE
    ) -> AbstractFloat | None:
        """An operand, or a half of it, read as a number, constants included."""
        operand = instr.operands[at]
        if isinstance(operand, Register):
            read = self.part.reductions.read(instr, operand)
            return None if read is None else self.number(read, form, part)
        return _read(self._arithmetic.operand(instr, operand), form, part)

    def inputs(self, value: int) -> tuple[int, ...]:
        """The values that a value is computed from, resolved."""
        value = self.ssa.resolve(value)
        if self._sources.reads_anything(value):
            return tuple(self._sources.stores)
        return self._sources.inputs_of.get(value, ())

    def live_blocks(self) -> set[int]:
        """The blocks that some thread enters."""
        cfg = self.ssa.cfg
        seen = {cfg.entry}
        work = [cfg.entry]
        while work:
            block = work.pop()
            for target in cfg.blocks[block].succs:
                if target not in seen and not self._is_dead(block, target):
                    seen.add(target)
                    work.append(target)
        return seen

    # Control flow -----------------------------------------------------------------------------
    def _is_dead(self, block: int, target: int) -> bool:
        """True if no thread goes that way, as far as it is known by now."""
        decided = self.part.branches.get((block, target))
        if decided is None:
            return False
        word = self.word(decided[0])
        return word is None or (isinstance(word, int) and bool(word) != decided[1])

    # Order and fixpoint -----------------------------------------------------------------------
    def _run(self) -> bool:
        """Sweep over the values until none changes; False if that takes too long."""
        program = self.part.program(self._told())
        words, nonpositive = self._words, self.scenario.nonpositive
        powers = self._powers() if self.scenario.overflows else frozenset()
        moved: dict[int, int] = {}
        """By group the step in which its word changed last."""
        looked = [0] * len(program)
        """The step in which each turn was taken last."""
        step = 0
        for sweep in range(_SWEEPS):
            changed = False
            for at, (value, group, others, joins, local, inputs, plan) in enumerate(program):
                before = words.get(value)
                if local and before is not None:
                    # What was worked out, of what has not changed since, stands.
                    last = looked[at]
                    for v in inputs:
                        if moved.get(v, 0) > last:
                            break
                    else:
                        continue
                step += 1
                looked[at] = step
                found = self._step(value) if plan is None else self._planned(plan)
                if found is None:
                    continue
                if value in nonpositive:
                    found = Found(self._lowered(value, found.word, nonpositive[value]), 0)
                elif value in powers:
                    found = Found(self._raised(value, found.word), 0)
                if joins and before is not None:
                    word = self._join(value, before.word, found.word)
                    if word != before.word and sweep >= _WIDEN_AFTER:
                        word = _widened(before.word, word)
                    found = Found(word, 0)
                if before is None or before.word != found.word:
                    words[value] = found
                    for other in others:
                        words[other] = found
                    moved[group] = step
                    changed = True
            self._anything = self._share()
            if not changed:
                return True
        return False

    def _lowered(self, value: int, word: Word, parts: tuple[int, ...]) -> Word:
        """A word without what is above 0 in it, or in these halves of it."""
        instr = self.part.reductions.definition(value)
        form = None if instr is None else FORMATS.get(instr.shape.types[0].removesuffix("x2"))
        if form is None:
            return word
        if WHOLE in parts:
            return _at_most_zero(word, form)
        low, high = halves(word, 2 * form.bits)
        return (
            _at_most_zero(low, form) if 0 in parts else low,
            _at_most_zero(high, form) if 1 in parts else high,
        )

    def _powers(self) -> frozenset[int]:
        """The exponentials."""
        made = self.part.reductions.definition
        return frozenset(
            v for v in self.part.order if (i := made(v)) is not None and i.opcode == "ex2"
        )

    def _raised(self, value: int, word: Word) -> Word:
        """An exponential, infinite if its exponent may be above what the format holds."""
        instr = self._instructions[self.ssa.instr[value]]
        form = FORMATS.get(instr.shape.type.removesuffix("x2"))
        if form is None:
            return UNKNOWN
        if not instr.shape.type.endswith("x2"):
            return self._with_overflow(instr, word, form, WHOLE)
        low, high = halves(word, 2 * form.bits)
        return (
            self._with_overflow(instr, low, form, 0),
            self._with_overflow(instr, high, form, 1),
        )

    def _with_overflow(self, instr: Instr, word: Word, form: Format, part: int) -> Word:
        exponent = self.operand(instr, 1, form, part)
        if exponent is not None and exponent.high < math.log2(form.largest):
            return word
        number = as_float(word, form)
        return Number(form, AbstractFloat(number.lo, number.hi, number.ninf, True, number.nan))

    def _told(self) -> dict[int, object]:
        """What the scenario says of single values."""
        told: dict[int, object] = {**self.scenario.starts, **self.scenario.nonpositive}
        if self._roots:
            ssa = self.ssa
            for value in self.part.order:
                if ssa.register[value].type == "pred":
                    root, same = ssa.root(value)
                    if root in self._roots:
                        told[value] = self._roots[root] == same
        return told

    def _planned(self, plan: Plan) -> Found | None:
        """What plain arithmetic gives; None while an operand is not known."""
        known = self._words
        words: list[Word] = []
        for operand in plan.operands:
            found = known.get(operand) if type(operand) is int else operand
            if found is None:
                return None
            words.append(found.word)  # type: ignore[union-attr]
        return Found(computed(plan.instr, plan.form, words, plan.same, False), 0)

    def _step(self, value: int) -> Found | None:
        """The word of a value from what is known now; None while that is too little."""
        ssa, words = self.ssa, self._words
        kind = ssa.kind[value]
        if kind == PHI:
            return self._of_phi(value)
        if kind == MERGE:
            return self._of_merge(value)
        if kind != RESULT:
            return Found(UNKNOWN, 0)
        instr = self._instructions[ssa.instr[value]]
        if self._sources.is_shared_load(instr):
            return self._of_shared(value, instr)
        if instr.opcode == "selp":
            return self._of_selection(value, instr)
        if any(v not in words for v in self._sources.inputs_of[value]):
            return None
        return self._of_result(value, instr)

    # Joins ------------------------------------------------------------------------------------
    def _of_phi(self, phi: int) -> Found | None:
        ssa, words = self.ssa, self._words
        block = ssa.phi_block[phi]
        start = self.scenario.starts.get(phi)
        loop = self.part.loops.with_header(block)
        word: Word | None = start
        for source, operand in zip(ssa.phi_sources(block), ssa.operands[phi], strict=True):
            inside = loop is not None and source >= 0 and self.part.loops.contains(loop, source)
            if (source, block) in self._sources.skips or (start is not None and not inside):
                continue
            if source >= 0 and self._is_dead(source, block):
                continue
            if inside and self.scenario.once == block:
                continue
            found = words.get(ssa.resolve(operand))
            if found is not None:
                word = found.word if word is None else self._join(phi, word, found.word)
        return None if word is None else Found(word, 0)

    def _of_merge(self, value: int) -> Found | None:
        predicate, if_true, if_false = self.ssa.operands[value]
        if self.ssa.is_only_write(value):
            # Where it is not written a register holds nothing that a kernel may use.
            return self._words.get(self.ssa.resolve(self.ssa.written(value)))
        truth = self._holds(predicate)
        if truth is _LATER:
            return None
        return self._either(
            value, truth, lambda t: self._arm(predicate, if_true if t else if_false, bool(t))
        )

    def _of_selection(self, made: int, instr: Instr) -> Found | None:
        operand = instr.operands[3]
        predicate = self.part.reductions.read(instr, operand)
        negated = isinstance(operand, Negated)
        if negated:
            predicate = self.part.flow.operand_values(instr)[3][0]
        truth = None if predicate is None else self._holds(predicate)
        if truth is _LATER:
            return None

        def arm(chosen: bool) -> Found | None:
            source = instr.operands[1 if chosen != negated else 2]
            value = self.part.reductions.read(instr, source)
            if value is None:
                return Found(self._arithmetic.operand(instr, source), 0)
            if predicate is None:
                return self._words.get(value)
            return self._arm(predicate, value, chosen)

        return self._either(made, truth, arm)

    def _either(self, made: int, truth: object, arm: object) -> Found | None:
        """One arm where the predicate is known, else both joined."""
        assert callable(arm)
        if truth is not None:
            found: Found | None = arm(truth)
            return found
        yes, no = arm(True), arm(False)
        if yes is None or no is None:
            return None
        return Found(self._join(made, yes.word, no.word), 0)

    def _join(self, value: int, a: Word, b: Word) -> Word:
        """What may be either, in the register of a value."""
        return _joined(a, b, BITS.get(self.ssa.register[value].type, 32))

    def _arm(self, predicate: int, value: int, truth: bool) -> Found | None:
        """An arm of a selection, narrowed by what its predicate says of it."""
        value = self.ssa.resolve(value)
        found = self._words.get(value)
        if found is None:
            return None
        root, same = self.ssa.root(self.ssa.resolve(predicate))
        instr = self.part.reductions.definition(root)
        if instr is None or instr.opcode != "setp" or instr.shape.type not in FORMATS:
            return found
        if self.ssa.result[root] or len(instr.operands) != 3:
            return found
        form = FORMATS[instr.shape.type]
        for at, other in ((1, 2), (2, 1)):
            if self.part.reductions.read(instr, instr.operands[at]) != value:
                continue
            bound = self.operand(instr, other, form)
            if bound is None or bound.point is None:
                continue
            relation = instr.shape.modifiers[0]
            narrowed = _narrowed(
                form, as_float(found.word, form), relation, bound.point, truth == same, at == 2
            )
            return found if narrowed is None else Found(Number(form, narrowed), 0)
        return found

    def _of_shared(self, value: int, instr: Instr) -> Found | None:
        """What was stored before the barrier before a load; else all that is ever stored."""
        handed = self._sources.handed.get(value, ())
        if handed:
            words = [self._of_nodes(value, nodes) for nodes in handed]
            parts = [word for word in words if word is not None]
            if len(parts) < len(words):
                return None
            width = BITS.get(self.ssa.register[value].type, 32)
            return Found(whole_of(parts, width // len(parts)), 0)
        return None if self._anything is None else Found(self._anything, 0)

    def _of_nodes(self, value: int, nodes: list[Node]) -> Word | None:
        """What one of these is, as far as it is known by now."""
        word: Word | None = None
        for node in nodes:
            if self.ssa.resolve(node.value) in self._words:
                found = self._arithmetic.node(node, 16).word
                word = found if word is None else self._join(value, word, found)
        return word

    def _share(self) -> Word | None:
        """Whatever shared memory may hold, as far as it is known by now."""
        word: Word | None = self._data if self._sources.is_fed_from_outside else None
        seen: set[int] = set()
        for stored in self._stores:
            known = self._words.get(stored)
            # A group holds one and the same.
            if known is not None and id(known) not in seen:
                seen.add(id(known))
                word = known.word if word is None else _joined(word, known.word)
        return word

    # Results ----------------------------------------------------------------------------------
    def _of_result(self, value: int, instr: Instr) -> Found:
        opcode, shape = instr.opcode, instr.shape
        if self.ssa.register[value].type == "pred":
            return Found(self._predicate_word(value, instr), 0)
        if opcode in _LOADS:
            return Found(self._loaded(instr), 0)
        if opcode in _TENSOR:
            return Found(self._product_word(value), 0)
        if opcode == "shfl":
            return Found(self._arithmetic.operand(instr, instr.operands[1]), 0)
        if opcode == "redux":
            return Found(self._combined_lanes(instr), 0)
        if opcode == "cvt" and shape.types and shape.types[0] in _EIGHT_BITS:
            high, low = (self._arithmetic.operand(instr, o) for o in instr.operands[1:3])
            return Found((_coarse(low), _coarse(high)), 0)
        if opcode == "cvt" and len(shape.types) == 2:
            to, of = shape.types
            if to in FORMATS and of[0] in "su":
                return Found(self._from_index(instr, FORMATS[to]), 0)
        return Found(self._arithmetic.result(instr, value), 0)

    def _combined_lanes(self, instr: Instr) -> Word:
        """The largest or least number of a warp; what combines integers is not followed."""
        form = FORMATS.get(instr.shape.type)
        if form is None:
            return UNKNOWN
        number = as_float(self._arithmetic.operand(instr, instr.operands[1]), form)
        if not instr.shape.has("NaN") and (number.finite or number.ninf or number.pinf):
            # Lanes that hold NaN give way to the others.
            number = AbstractFloat(number.lo, number.hi, number.ninf, number.pinf)
        return Number(form, floats.absolute(number) if instr.shape.has("abs") else number)

    def _loaded(self, instr: Instr) -> Word:
        space, kind = instr.shape.space, instr.shape.type
        if space == "param":
            if not self._sources.is_parameter(instr):
                # The result of a call.
                return UNKNOWN
            form = F64 if kind.endswith("64") else F32
            positive = AbstractFloat(form.normal, form.largest)
            return Number(form, positive) if kind[1:] in ("32", "64") else DATA
        return UNKNOWN if space == "local" else self._data

    def _product_word(self, value: int) -> Word:
        """A tensor-core product of finite factors: NaN in the accumulator stays."""
        for added in self._sources.inputs_of[value]:
            word = self._words[added].word
            if isinstance(word, Unknown):
                return UNKNOWN
            if isinstance(word, Number) and not word.value.is_finite:
                certain = word.value.point is not None and word.value.nan
                return word if certain else UNKNOWN
        return DATA

    def _from_index(self, instr: Instr, form: Format) -> Word:
        """An integer as a number; sizes are positive."""
        word = self._arithmetic.operand(instr, instr.operands[1])
        if isinstance(word, int):
            return self._arithmetic.result(instr, self.ssa.def_values[instr.index][0])
        poly = self.part.guards.symbolic.operand(instr, 1)
        if poly is not None:
            low = least(poly)
            if 1 <= low < 1 << 62:
                return Number(form, floats.finite(form, float(low)))
        return DATA

    # Predicates -------------------------------------------------------------------------------
    def _holds(self, predicate: int) -> object:
        """True, False, None for either, or `_LATER`."""
        word = self._words.get(self.ssa.resolve(predicate))
        if word is None:
            return _LATER
        return bool(word.word) if isinstance(word.word, int) else None

    def _predicate_word(self, value: int, instr: Instr) -> Word:
        root, same = self.ssa.root(value)
        fixed = self._roots.get(root)
        if fixed is not None:
            return int(fixed == same)
        opcode = instr.opcode
        if opcode == "setp" and instr.shape.type in FORMATS and not self.ssa.result[value]:
            found = self._compared(instr)
            if found is not None:
                return int(found)
        elif opcode == "setp" and not self.ssa.result[value]:
            found = self._compared_bits(instr)
            if found is not None:
                return int(found)
        elif opcode in ("and", "or", "xor", "not", "mov"):
            found = self._combined(instr)
            if found is not None:
                return int(found)
        known = self._sources.outcomes(value)[self.scenario.full]
        return UNKNOWN if known is None else known

    def _compared(self, instr: Instr) -> bool | None:
        if len(instr.operands) != 3:
            return None
        form = FORMATS[instr.shape.type]
        left, right = (self.operand(instr, at, form) for at in (1, 2))
        if left is None or right is None:
            return None
        return floats.compare(instr.shape.modifiers[0], left, right)

    def _compared_bits(self, instr: Instr) -> bool | None:
        """A comparison of a number's bits with a constant, as libraries tell NaN and infinities."""
        compared = self._sources.compared_bits(instr)
        word = self.word(compared[0]) if compared else None
        bound = fold(instr.operands[2])
        if not isinstance(word, Number) or word.form is not F32 or bound is None:
            return None
        signed = instr.shape.type == "s32" and instr.shape.modifiers[0] in _ORDERED
        low, high = _bit_range(word.value, signed)
        bound &= 0xFFFFFFFF
        if signed and bound >> 31:
            bound -= 1 << 32
        limits = AbstractFloat(float(low), float(high))
        relation = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(
            instr.shape.modifiers[0], instr.shape.modifiers[0]
        )
        return floats.compare(relation, limits, floats.exactly(float(bound)))

    def _combined(self, instr: Instr) -> bool | None:
        values = [self._truth_of(instr, o) for o in instr.operands[1:]]
        opcode = instr.opcode
        if opcode == "and":
            return False if False in values else None if None in values else True
        if opcode == "or":
            return True if True in values else None if None in values else False
        if None in values:
            return None
        if opcode == "xor":
            return values[0] != values[1]
        return not values[0] if opcode == "not" else values[0]

    def _truth_of(self, instr: Instr, operand: Operand) -> bool | None:
        if isinstance(operand, Negated):
            inner = self._truth_of(instr, operand.operand)
            return None if inner is None else not inner
        constant = fold(operand)
        if constant is not None:
            return bool(constant)
        value = self.part.reductions.read(instr, operand)
        word = None if value is None else self.word(value)
        return bool(word) if isinstance(word, int) else None


def _at_most_zero(word: Word, form: Format) -> Word:
    number = as_float(word, form)
    top = min(number.hi, 0.0)
    return Number(form, AbstractFloat(min(number.lo, top), top, number.ninf, False, number.nan))


def _read(word: Word, form: Format, part: int) -> AbstractFloat:
    """A word, or a half of it, as a number."""
    return as_float(word if part == WHOLE else halves(word, 2 * form.bits)[part], form)


class _Later:
    """A predicate that is not evaluated yet."""


_LATER: Final = _Later()


def _bit_range(number: AbstractFloat, signed: bool) -> tuple[int, int]:
    """The least and the greatest bit pattern of an f32, read as an integer."""
    found: list[int] = []
    if number.nan:
        found += [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF]
    if number.pinf:
        found.append(0x7F800000)
    if number.ninf:
        found.append(0xFF800000)
    if number.finite:
        if number.may_be_zero:
            found += [0, 0x80000000]
        found += [_bits(number.lo), _bits(number.hi)]
        found += [1] if number.hi > 0.0 >= number.lo else []
        found += [0x80000001] if number.lo < 0.0 <= number.hi else []
    if signed:
        found = [bits - (1 << 32) if bits >> 31 else bits for bits in found]
    return min(found, default=0), max(found, default=0)


def _bits(value: float) -> int:
    """The bits of an f32."""
    return int.from_bytes(struct.pack("<f", value), "little")


def _accesses_memory(shape: Shape) -> bool:
    return shape.opcode in _ACCESSES and shape.space in ("global", "shared", "")


def _is_boolean(instr: Instr) -> bool:
    return any(isinstance(o, Negated) for o in instr.operands) or len(instr.operands) == 4


def _joined(a: Word, b: Word, width: int = 32) -> Word:
    """What may be either. Bits that are an infinity beside data are that in one format."""
    if isinstance(a, int) and isinstance(b, int) and a != b and width in _FORMATS_OF:
        return _joined_constants(a, b, width)
    for x, y in ((a, b), (b, a)):
        if type(x) is tuple and (type(y) is tuple or isinstance(y, int)):
            half = width // 2
            (xl, xh), (yl, yh) = halves(x, width), halves(y, width)
            return _joined(xl, yl, half), _joined(xh, yh, half)
        if isinstance(x, Data) and isinstance(y, int):
            if y == 0:
                return x if x.sample == 0.0 else DATA
            return _joined_bits(x, y, width)
        if isinstance(x, Data) and type(y) is tuple:
            pair: tuple[Any, ...] = y
            return _joined(x, pair[0], width // 2), _joined(x, pair[1], width // 2)
    return join(a, b)


def _joined_constants(a: int, b: int, width: int) -> Word:
    """Either of two constants: numbers if one is NaN or an infinity as such."""
    forms = (F32,) if width == 32 else (F16, BF16)
    for form in forms:
        numbers = floats.decode(form, a), floats.decode(form, b)
        if any(n.ninf or n.pinf or (n.nan and width == 32) for n in numbers):
            return Number(form, floats.join(*numbers))
    return join(a, b)


def _joined_bits(data: Data, bits: int, width: int) -> Word:
    """Data or a constant that may be an infinity."""
    if width == 32:
        low, high = bits & 0xFFFF, bits >> 16 & 0xFFFF
        if low == high and _infinite_format(low) is not None:
            half = _joined_bits(data, low, 16)
            return half, half
    form = F32 if width == 32 else _infinite_format(bits) if width == 16 else None
    if form is not None and not floats.decode(form, bits).is_finite:
        return Number(form, floats.join(floats.decode(form, bits), as_float(data, form)))
    finite = all(floats.decode(f, bits).is_finite for f in _FORMATS_OF.get(width, ()))
    return DATA if finite and width in _FORMATS_OF else UNKNOWN


_FORMATS_OF: Final = {32: (F32, F16, BF16), 16: (F16, BF16)}


def _infinite_format(bits: int) -> Format | None:
    """The 16-bit format in which a pattern is an infinity."""
    for form in (F16, BF16):
        number = floats.decode(form, bits)
        if number.ninf or number.pinf:
            return form
    return None


def _widened(before: Word, after: Word) -> Word:
    """A bound that moved goes to the end of the format, or to zero on its way there."""
    if type(before) is tuple and type(after) is tuple:
        old_halves: tuple[Any, ...] = before
        new_halves: tuple[Any, ...] = after
        low, high = (
            new if old == new else _widened(old, new)
            for old, new in zip(old_halves, new_halves, strict=True)
        )
        return low, high
    if not (isinstance(before, Number) and isinstance(after, Number)):
        if isinstance(after, Number):
            return after
        return UNKNOWN if not isinstance(after, Data) else after
    old, new, form = before.value, after.value, after.form
    if not (old.finite and new.finite):
        return after
    lo, hi = new.lo, new.hi
    if lo < old.lo:
        lo = 0.0 if lo >= 0.0 else -form.largest
    if hi > old.hi:
        hi = 0.0 if hi <= 0.0 else form.largest
    return Number(form, AbstractFloat(lo, hi, new.ninf, new.pinf, new.nan))


def _coarse(word: Word) -> Word:
    """An eight-bit number made of an f32: whether it is NaN is all that is kept."""
    number = as_float(word, F32)
    if number.point is not None and number.nan:
        return Number(F16, number)
    return DATA if number.is_finite else UNKNOWN


def _narrowed(
    form: Format, a: AbstractFloat, relation: str, bound: float, truth: bool, swapped: bool
) -> AbstractFloat | None:
    """The values that compare so with a number; None if nothing is known of the relation."""
    unordered = len(relation) == 3 and relation.endswith("u")
    base = relation[:2]
    if base not in _ORDERED or bound != bound:
        return None
    # NaN makes ordered relations false and unordered ones true.
    nan = a.nan and truth == unordered
    if not truth:
        base = _FLIPPED[base]
    if swapped:
        base = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(base, base)
    lo, hi, ninf, pinf = a.lo, a.hi, a.ninf, a.pinf
    if base == "eq":
        return AbstractFloat(
            max(lo, bound), min(hi, bound), ninf and bound == -floats.INF,
            pinf and bound == floats.INF, nan,
        )  # fmt: skip
    if base == "ne":
        if bound == 0.0:
            lo = form.smallest if lo == 0.0 else lo
            hi = -form.smallest if hi == 0.0 else hi
        ninf, pinf = ninf and bound != -floats.INF, pinf and bound != floats.INF
        return AbstractFloat(lo, hi, ninf, pinf, nan)
    if base in ("gt", "ge"):
        strict = base == "gt"
        least = form.smallest if strict and bound == 0.0 else bound
        return AbstractFloat(
            max(lo, least), hi, ninf and bound == -floats.INF and not strict,
            pinf and not (strict and bound == floats.INF), nan,
        )  # fmt: skip
    strict = base == "lt"
    most = -form.smallest if strict and bound == 0.0 else bound
    return AbstractFloat(
        lo, min(hi, most), ninf and not (strict and bound == -floats.INF),
        pinf and bound == floats.INF and not strict, nan,
    )  # fmt: skip


def least(poly: Polynomial) -> int:
    """A lower bound of an integer whose parameters are at least 1."""
    atoms = poly.table.atoms
    total = 0
    for monomial, coefficient in poly.terms.items():
        low = high = 1
        for number in monomial:
            atom = atoms[number]
            least = max(atom.low, 1) if atom.kind in ("param", "nctaid") else atom.low
            if least < 0:
                return -INFINITY
            low, high = low * least, high * atom.high
        total += coefficient * (low if coefficient > 0 else high)
    return total


def _holds_for_large_sizes(guard: Conjunction) -> bool:
    """True if every conjunct holds when all sizes that bound it are large: the tail is no tail."""
    for conjunct in guard:
        poly = conjunct.polynomial
        if poly is None:
            return False
        atoms = poly.table.atoms
        grows = False
        for monomial, coefficient in poly.terms.items():
            if any(atoms[n].kind == "param" for n in monomial):
                if coefficient < 0 or len(monomial) != 1:
                    return False
                grows = True
            elif any(atoms[n].kind in ("load", "opaque", "select") for n in monomial):
                return False
        if not grows:
            return False
    return True


__all__ = ["FloatSlice", "FloatValues", "Scenario", "least"]
