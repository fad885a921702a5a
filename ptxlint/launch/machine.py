"""Threads of a launch, run side by side through a slice of their kernel.

A lane is a thread of one of some CTAs; values are arrays over CTAs and threads. Lanes go through
the control-flow graph in reverse postorder, so that those which were parted wait for each other
where their ways meet. All that counts is exact: a lane whose way depends on what is not known (what
memory and other threads do not tell) is given up and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxlint.cfg.dominance import DominatorTree, PostDominatorsAnalysis
from ptxlint.cfg.graph import EXIT
from ptxlint.dataflow.ssa_values import MERGE, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS, FLOATS
from ptxlint.launch.binding import Bound
from ptxlint.launch.float_words import float_operation
from ptxlint.launch.lanes import Lanes
from ptxlint.launch.memory_steps import MemorySteps, RunMemory
from ptxlint.launch.slices import Slice, Target, value_read
from ptxlint.launch.warps import Exchange, exchange
from ptxlint.launch.words import (
    Flags,
    Numbers,
    Operation,
    Word,
    both_known,
    chosen,
    constant,
    loaded,
    operation,
)
from ptxlint.launches import Extent

if TYPE_CHECKING:
    from ptxlint.launch.under import UnderLaunch

_LANES_AT_ONCE: Final = 1 << 14
_SHARED_AT_ONCE: Final = 1 << 20
"""Bytes of shared memory of the CTAs that are run side by side."""
_LANES_A_UNIT: Final = 4096
"""So many lanes cost about as much as one step costs anyway."""

Values: TypeAlias = "dict[int, Word | None]"
Watcher: TypeAlias = "Callable[[Run, Flags | None], None]"
"""What is done when the lanes of a mask (None: all) come to a place."""
Reader: TypeAlias = "Callable[[Instr, Operand], Callable[[Run], Word | None]]"
"""Gives what an instruction reads by an operand."""


class Meeting(NamedTuple):
    """Lanes that come to an access which takes effect in them, all in one round of its loops.

    `lanes` is over CTAs and threads; in them `address` is what the machine has, and `size` the
    bytes that a copy reads (None: all that it can). `rounds` counts, by the block that heads a
    loop, how often a lane came round. `values` is what the slice's values are now.
    """

    target: Target
    lanes: Flags
    address: Numbers
    size: Numbers | None
    rounds: dict[int, NDArray[np.int64]]
    values: Values


class Machine:
    """Runs slices of one kernel under one launch. Steps are prepared once for all runs."""

    def __init__(
        self, ssa: Ssa, post_dominators: DominatorTree, bound: Bound, memory: MemorySteps
    ) -> None:
        self.ssa = ssa
        self.bound = bound
        self.memory = memory
        self._post_dominators = post_dominators
        position = ssa.cfg.position
        self.headers: frozenset[int] = frozenset(
            block.index
            for block in ssa.cfg.blocks
            if any(position[pred] >= position[block.index] >= 0 for pred in block.preds)
        )
        """Blocks that a way leads back to."""
        self._instrs = ssa.cfg.function.instrs
        self._operations: dict[tuple[int, int], Operation | None] = {}

    @classmethod
    def of(cls, under: UnderLaunch, *, promised: bool = True) -> Machine:
        """The machine of a kernel under a launch, with what that tells of memory; where stores may
        write over it, only if it is asked for (`promised`)."""
        promises = under.promises
        pieces = promises.pieces() if promised or not promises.is_shared else {}
        memory = MemorySteps(under.ssa, under.facts.module, under.accesses, under.bound, pieces)
        return cls(under.ssa, under.facts.get(PostDominatorsAnalysis), under.bound, memory)

    def at_once(self, slice_: Slice) -> int:
        """How many CTAs are run side by side."""
        width, height, depth = self.bound.block
        found = _LANES_AT_ONCE // max(1, width * height * depth)
        if self.memory.uses_shared(slice_.effects):
            found = min(found, _SHARED_AT_ONCE // max(1, self.memory.shared_bytes))
        return max(1, found)

    def is_followed(self, index: int) -> bool:
        """True if some result of an instruction can be computed."""
        instr = self._instrs[index]
        if instr.opcode in ("ld", "ldmatrix"):
            return instr.shape.space == "param" or self.memory.is_followed(instr)
        results = range(len(instr.defs))
        return any(
            self._operation(instr, result) is not None or exchange(instr, result) is not None
            for result in results
        )

    def companions(self, index: int) -> Iterable[int]:
        """Instructions that must be run for the results of one to be known."""
        if self._instrs[index].opcode in ("ld", "ldmatrix"):
            return self.memory.companions(index)
        return ()

    def _operation(self, instr: Instr, result: int) -> Operation | None:
        key = instr.index, result
        if key not in self._operations:
            self._operations[key] = operation(instr, result) or float_operation(instr, result)
        return self._operations[key]

    def run(
        self,
        slice_: Slice,
        ctas: Sequence[Extent],
        budget: int,
        watchers: Mapping[int, Watcher] | None = None,
    ) -> Run:
        """Run a slice in all threads of some CTAs; `budget` is in steps of up to 4,096 lanes.

        A watcher is called when lanes come to the instruction of that index.
        """
        return Run(self, slice_, Lanes(self.bound, ctas), budget, watchers or {})

    # Preparing --------------------------------------------------------------------------------
    def plan(self, slice_: Slice, watchers: Mapping[int, Watcher]) -> dict[int, list[Watcher]]:
        """By block, what there is to compute, in program order."""
        ssa, block_of = self.ssa, self.ssa.cfg.block_of
        wanted: list[tuple[int, int, int, Watcher]] = [
            (target.instr.index, -1, at, self._meeting(target))
            for at, target in enumerate(slice_.targets)
        ]
        wanted += [(index, -2, 0, watcher) for index, watcher in watchers.items()]
        effects = sorted(slice_.effects)
        wanted += [(i, -3, 0, self.memory.effect(i, self.reader)) for i in effects]
        for value in sorted(slice_.values):
            kind = ssa.kind[value]
            if kind == RESULT and self.is_followed(ssa.instr[value]):
                wanted.append((ssa.instr[value], kind, value, self._result(value)))
            elif kind == MERGE:
                wanted.append((ssa.instr[value], kind, value, self._merge(value)))
        out: dict[int, list[Watcher]] = {}
        for index, _, _, step in sorted(wanted, key=lambda w: w[:3]):
            out.setdefault(block_of[index], []).append(step)
        return out

    def _meeting(self, target: Target) -> Watcher:
        read = self.reader(target.instr, target.address.base)
        size = None if target.size is None else self.reader(target.instr, target.size)
        offset = np.uint64(target.address.offset & ((1 << 64) - 1))

        def step(run: Run, mask: Flags | None) -> None:
            run.meet(target, mask, read(run), offset, None if size is None else (size(run),))

        return step

    def _result(self, value: int) -> Watcher:
        ssa = self.ssa
        instr, result = self._instrs[ssa.instr[value]], ssa.result[value]
        if instr.opcode in ("ld", "ldmatrix"):
            if instr.shape.space != "param":
                return self.memory.loaded(instr, value, self.reader)
            word = self._parameter(instr, result)
            return lambda run, mask: run.set(value, word, mask)
        compute = self._operation(instr, result)
        together = exchange(instr, result)
        if together is not None:
            return self._exchanged(instr, value, together)
        if compute is None:
            return lambda run, mask: run.set(value, None, mask)
        followed = compute
        sources = instr.operands[1:]
        if instr.shape.opcode == "mov" and isinstance(sources[0], Vector):
            sources = sources[0].elements
        reads = [self.reader(instr, operand) for operand in sources]
        return lambda run, mask: run.set(value, followed([read(run) for read in reads]), mask)

    def _exchanged(self, instr: Instr, value: int, together: Exchange) -> Watcher:
        reads = [self.reader(instr, operand) for operand in instr.operands[1:]]
        # A lane whose guard is false has nothing to tell.
        is_guarded = bool(instr.shape.guard)

        def step(run: Run, mask: Flags | None) -> None:
            lanes = np.ones_like(run.given_up) if mask is None else mask
            word = None if is_guarded else together([read(run) for read in reads], lanes)
            run.set(value, word, mask)

        return step

    def _merge(self, value: int) -> Watcher:
        predicate, yes, no = (self.ssa.resolve(v) for v in self.ssa.operands[value])

        def step(run: Run, mask: Flags | None) -> None:
            get = run.values.get
            run.set(value, chosen(get(predicate), get(yes), get(no)), mask)

        return step

    def _parameter(self, instr: Instr, result: int) -> Word | None:
        """What a load from a parameter brings; None if the launch does not tell."""
        shape, target = instr.shape, instr.operands[0]
        address = instr.operands[1] if len(instr.operands) == 2 else None
        if (
            not isinstance(address, Address)
            or not isinstance(address.base, Symbol)
            or shape.type in FLOATS
        ):
            return None
        bits = BITS.get(shape.type, 0)
        if not 8 <= bits <= 64 or shape.type[0] not in "bsu":
            return None
        offset, register = address.offset, instr.defs[result]
        if isinstance(target, Vector):
            offset += bits // 8 * target.elements.index(register)
        name = address.base.name
        region = self.bound.regions.get(name)
        if region is not None:
            return constant(region.address) if not offset and bits == 64 else None
        number = self.bound.value(name, offset, 0, (1 << bits) - 1)
        return None if number is None else loaded(number, shape.type, register.type)

    def reader(self, instr: Instr, operand: Operand) -> Callable[[Run], Word | None]:
        """What an instruction reads by an operand."""
        if isinstance(operand, Register):
            value = value_read(self.ssa, instr, operand)
            return lambda run: run.values.get(value)
        if isinstance(operand, SpecialRegister) and operand.name != "WARP_SZ":
            name = operand.name
            return lambda run: run.lanes.special(name)
        if isinstance(operand, Negated) and operand.sign == "!":
            inner = self.reader(instr, operand.operand)
            one = np.uint64(1)

            def negated(run: Run) -> Word | None:
                found = inner(run)
                return None if found is None else Word(found.bits ^ one, found.known)

            return negated
        if isinstance(operand, Immediate):
            # The bits of a floating-point literal are those of a move of as many bits.
            number: int | None = operand.value if operand.kind != "dec" else None
        elif isinstance(operand, Symbol):
            address = self.memory.symbol(operand.name)
            return lambda run: address
        else:
            number = fold(operand)
        word = None if number is None else constant(number)
        return lambda run: word

    def meeting_point(self, block: int) -> int:
        """Where all ways from a block come together again; `EXIT` if nowhere else."""
        return self._post_dominators.idom[block]


class Run:
    """One run of a slice.

    `given_up` are the lanes whose way is not known; `unsure` those in which it is not known, by a
    target's instruction, whether it takes effect or where. `is_out_of_budget` says that not all
    rounds of all loops were run.
    """

    def __init__(
        self,
        machine: Machine,
        slice_: Slice,
        lanes: Lanes,
        budget: int,
        watchers: Mapping[int, Watcher],
    ) -> None:
        self.lanes = lanes
        self.values: Values = {}
        self.rounds: dict[int, NDArray[np.int64]] = {}
        self.given_up: Flags = np.zeros((len(lanes.ctas), lanes.threads), dtype=bool)
        self.unsure: dict[int, Flags] = {}
        self.is_out_of_budget = False
        memory = machine.memory
        shared = memory.shared_bytes if memory.uses_shared(slice_.effects) else 0
        self.memory = RunMemory(lanes, shared)
        """What its lanes write; once it is void, nothing that they do counts."""
        self._machine = machine
        self._slice = slice_
        self._plan = machine.plan(slice_, watchers)
        self.budget = budget
        """What is left."""
        self._step_cost = 1 + lanes.count // _LANES_A_UNIT
        self._met: list[Meeting] = []
        self._arrived: dict[int, dict[int, Flags]] = {}

    def meetings(self) -> Iterator[Meeting]:
        """Each time that lanes come to a target, in the order in which that happens."""
        cfg = self._machine.ssa.cfg
        position = cfg.position
        everywhere = np.ones_like(self.given_up)
        self._arrived = {cfg.entry: {EXIT: everywhere}} if self.lanes.count else {}
        while self._arrived:
            block = min(self._arrived, key=position.__getitem__)
            mask = self._enter(block, self._arrived.pop(block))
            steps = self._plan.get(block, ())
            self.budget -= self._step_cost * (1 + len(steps))
            if self.budget < 0:
                self.is_out_of_budget = True
                return
            given = None if mask.all() else mask
            for step in steps:
                step(self, given)
            if self._met:
                yield from self._met
                self._met.clear()
            self._leave(block, mask)

    def is_complete(self, target: Target) -> bool:
        """True if all that the lanes do at a target was met; when the run is over."""
        unsure = self.unsure.get(target.instr.index)
        return self.is_whole and (unsure is None or not unsure.any())

    @property
    def is_whole(self) -> bool:
        """True if all lanes came to their end; when the run is over."""
        return not (self.is_out_of_budget or self.memory.is_void or self.given_up.any())

    def set(self, value: int, word: Word | None, mask: Flags | None) -> None:
        """Give a value to the lanes of a mask."""
        old = self.values.get(value)
        if mask is None or value not in self.values or (old is None and word is None):
            self.values[value] = word
            return
        if word is None:
            assert old is not None
            self.values[value] = Word(old.bits, both_known(old.known, ~mask))
            return
        if old is None:
            self.values[value] = Word(word.bits, both_known(word.known, mask))
            return
        known: Flags | None = None
        if word.known is not None or old.known is not None:
            new_known = True if word.known is None else word.known
            known = np.where(mask, new_known, True if old.known is None else old.known)
        self.values[value] = Word(np.where(mask, word.bits, old.bits), known)

    def meet(
        self,
        target: Target,
        mask: Flags | None,
        address: Word | None,
        offset: np.uint64,
        size: tuple[Word | None] | None,
    ) -> None:
        """Note the lanes in which an access takes effect, and those in which that is not known."""
        lanes = np.ones_like(self.given_up) if mask is None else mask
        unsure = np.zeros_like(lanes)
        if target.predicate >= 0:
            word = self.values.get(self._machine.ssa.resolve(target.predicate))
            unsure, lanes = _parted(lanes, word)
            if word is not None:
                lanes = lanes & ((word.bits != 0) == (target.instr.shape.guard == "@"))
        bytes_read: Numbers | None = None
        if size is not None:
            more, lanes = _parted(lanes, size[0])
            unsure = unsure | more
            if size[0] is not None:
                bytes_read = size[0].bits
                lanes = lanes & (bytes_read != 0)
        more, lanes = _parted(lanes, address)
        unsure = unsure | more
        if unsure.any():
            before = self.unsure.get(target.instr.index)
            self.unsure[target.instr.index] = unsure if before is None else before | unsure
        if address is not None and lanes.any():
            self._met.append(
                Meeting(target, lanes, address.bits + offset, bytes_read, self.rounds, self.values)
            )

    # Control ----------------------------------------------------------------------------------
    def _enter(self, block: int, arrived: dict[int, Flags]) -> Flags:
        """Lanes that come into a block, its phis set to what each brings."""
        mask = next(iter(arrived.values()))
        for other in list(arrived.values())[1:]:
            mask = mask | other
        ssa = self._machine.ssa
        phis = [phi for phi in ssa.phis.get(block, ()) if phi in self._slice.values]
        if phis:
            sources = ssa.phi_sources(block)
            # All are read before one is written: a phi may be another one's operand.
            brought = []
            for source, lanes in arrived.items():
                at = sources.index(source) if source in sources else -1
                for phi in phis:
                    operand = ssa.resolve(ssa.operands[phi][at]) if at >= 0 else -1
                    brought.append((phi, self.values.get(operand), lanes))
            whole = len(arrived) == 1 and bool(mask.all())
            for phi, word, lanes in brought:
                self.set(phi, word, None if whole else lanes)
        self._count(block, arrived)
        return mask

    def _count(self, block: int, arrived: dict[int, Flags]) -> None:
        """Count the rounds of a loop by how often its header is come to from inside it."""
        position = self._machine.ssa.cfg.position
        if block not in self._machine.headers:
            return
        count = self.rounds.get(block)
        if count is None:
            count = np.zeros(self.given_up.shape, dtype=np.int64)
        for source, lanes in arrived.items():
            again = source >= 0 and position[source] >= position[block]
            count = np.where(lanes, count + 1 if again else 0, count)
        # What was handed out before stays what it was.
        self.rounds = {**self.rounds, block: count}

    def _leave(self, block: int, mask: Flags) -> None:
        """Send the lanes of a block on their way."""
        cfg = self._machine.ssa.cfg
        here = cfg.blocks[block]
        ways = cfg.edges_from(here)
        if len(ways) == 1:
            self._send(block, ways[0], mask)
            return
        if block not in self._slice.branches:
            self._send(block, self._machine.meeting_point(block), mask)
            return
        branch = cfg.terminator(block)
        predicate = None if branch is None else self._machine.ssa.guard_value(branch)
        word: Word | None = None
        if predicate is not None:
            word = self.values.get(self._machine.ssa.resolve(predicate))
        if word is None or any(cfg.edge_condition(block, way) is None for way in ways):
            self.given_up |= mask
            return
        lost, mask = _parted(mask, word)
        self.given_up |= lost
        holds = word.bits != 0
        for way in ways:
            condition = cfg.edge_condition(block, way)
            assert condition is not None
            self._send(block, way, mask & (holds == condition[1]))

    def _send(self, source: int, target: int, mask: Flags) -> None:
        if target == EXIT or not mask.any():
            return
        arrived = self._arrived.setdefault(target, {})
        before = arrived.get(source)
        arrived[source] = mask if before is None else before | mask


def _parted(lanes: Flags, word: Word | None) -> tuple[Flags, Flags]:
    """The lanes that do not know a word, and those that do."""
    if word is None:
        return lanes, np.zeros_like(lanes)
    if word.known is None:
        return np.zeros_like(lanes), lanes
    return lanes & ~word.known, lanes & word.known


__all__ = ["Lanes", "Machine", "Meeting", "Run"]
