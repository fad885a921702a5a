"""One thread of a launch, run through its kernel with the machine's words.

Integers and predicates that follow from parameters and from the thread's place are computed as the
machine does, wrap included (PTX ISA, "Integer Arithmetic Instructions"); what comes from memory,
from other threads or from floating point is not known, and the run ends where it decides the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.thread_expression import extension, operation
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS
from ptxlint.launch.binding import Bound

_WORD: Final = (1 << 64) - 1
_AXES: Final = {"x": 0, "y": 1, "z": 2}
_Read: TypeAlias = "Callable[[dict[int, int | None]], int | None]"
_Step: TypeAlias = "Callable[[dict[int, int | None]], None]"


class Thread(NamedTuple):
    """A thread by the numbers of its CTA and of itself in it."""

    ctaid: tuple[int, int, int]
    tid: tuple[int, int, int]


class Met(NamedTuple):
    """An instruction that takes effect: its address as the machine has it, the rounds of the loops
    by the block that heads each, and how many bytes it accesses (-1: all that it can)."""

    address: int
    rounds: dict[int, int]
    values: dict[int, int | None]
    size: int


class Walk:
    """Runs threads of one launch. Steps are prepared once for all threads."""

    def __init__(self, ssa: Ssa, bound: Bound) -> None:
        self._ssa = ssa
        self._bound = bound
        self._steps: dict[int, _Step | None] = {}
        self._reads_thread: set[int] = set()
        """Instructions whose steps are those of one thread."""
        self._thread = Thread((0, 0, 0), (0, 0, 0))

    def meetings(self, thread: Thread, target: Instr, most: int) -> Iterator[Met]:
        """Each time that a thread comes to an instruction which takes effect then.

        Ends after so many instructions, and where the way is not known.
        """
        ssa, cfg = self._ssa, self._ssa.cfg
        self._thread = thread
        values: dict[int, int | None] = {}
        rounds: dict[int, int] = {}
        # What depends on the thread is prepared anew.
        for index in self._reads_thread:
            self._steps.pop(index, None)
        self._reads_thread.clear()
        block, came_from = cfg.entry, -1
        while most > 0:
            self._enter(block, came_from, values)
            self._count(block, came_from, rounds)
            for instr in cfg.instructions(block):
                most -= 1
                if instr is target:
                    met = self._meet(instr, values)
                    if met is not None:
                        yield Met(met[0], dict(rounds), values, met[1])
                step = self._step(instr)
                if step is not None:
                    step(values)
                else:
                    for value in ssa.def_values[instr.index]:
                        values[value] = values[ssa.written(value)] = None
            following = self._next(block, values)
            if following is None:
                return
            came_from, block = block, following

    def _enter(self, block: int, source: int, values: dict[int, int | None]) -> None:
        """Give the phis of a block what comes in."""
        ssa = self._ssa
        phis = ssa.phis.get(block, ())
        if not phis:
            return
        sources = ssa.phi_sources(block)
        if source not in sources:
            values.update(dict.fromkeys(phis))
            return
        at = sources.index(source)
        incoming = [values.get(ssa.operands[phi][at]) for phi in phis]
        values.update(zip(phis, incoming, strict=True))

    def _count(self, block: int, source: int, rounds: dict[int, int]) -> None:
        """Count the rounds of a loop by how often its header is come to from inside it."""
        position = self._ssa.cfg.position
        if source >= 0 and position[source] >= position[block]:
            rounds[block] = rounds.get(block, 0) + 1
        else:
            rounds[block] = 0

    def _next(self, block: int, values: dict[int, int | None]) -> int | None:
        """The block that follows; None at the end, and where that is not known."""
        cfg = self._ssa.cfg
        here = cfg.blocks[block]
        ways = cfg.edges_from(here)
        if len(ways) == 1:
            return ways[0] if ways[0] in here.succs else None
        branch = cfg.terminator(block)
        predicate = None if branch is None else self._ssa.guard_value(branch)
        truth = None if predicate is None else values.get(predicate)
        if truth is None:
            return None
        for way in ways:
            condition = cfg.edge_condition(block, way)
            if condition is not None and condition[1] == bool(truth):
                return way if way in here.succs else None
        return None

    def _meet(self, instr: Instr, values: dict[int, int | None]) -> tuple[int, int] | None:
        """The address of an access and its bytes; None if it takes no effect or is not known."""
        ssa = self._ssa
        predicate = ssa.guard_value(instr)
        if predicate is not None:
            truth = values.get(predicate)
            if truth is None or bool(truth) != (instr.shape.guard == "@"):
                return None
        size = -1
        if instr.opcode == "cp" and len(instr.operands) > 3:
            known = self._reader(instr, instr.operands[3])(values)
            if not known:
                return None
            size = known
        at = 1 if instr.opcode == "cp" else None
        for number, operand in enumerate(instr.operands):
            if isinstance(operand, Address) and (at is None or number == at):
                base = self._reader(instr, operand.base)(values)
                return None if base is None else ((base + operand.offset) & _WORD, size)
        return None

    # Steps ------------------------------------------------------------------------------------
    def _step(self, instr: Instr) -> _Step | None:
        if instr.index not in self._steps:
            self._steps[instr.index] = self._made(instr)
        return self._steps[instr.index]

    def _made(self, instr: Instr) -> _Step | None:
        """What an instruction does to the values; None if its results are not known."""
        ssa = self._ssa
        defined = ssa.def_values[instr.index]
        if not defined:
            return lambda values: None
        computes: list[tuple[int, int, Callable[..., int] | None]] = []
        for at, value in enumerate(defined):
            computes.append((value, ssa.written(value), _compute(instr, at)))
        if instr.shape.opcode in ("ld", "ldu"):
            return self._parameter(instr)
        if all(compute is None for _, _, compute in computes):
            return None
        reads = [self._reader(instr, operand) for operand in instr.operands[1:]]
        guard = ssa.guard_value(instr)
        wanted = instr.shape.guard == "@"

        def step(values: dict[int, int | None]) -> None:
            read = [r(values) for r in reads]
            is_known = None not in read
            taken: bool | None = True
            if guard is not None:
                truth = values.get(guard)
                taken = None if truth is None else bool(truth) == wanted
            for value, written, compute in computes:
                found = compute(*read) if compute is not None and is_known else None
                values[written] = found
                if value != written:
                    old = values.get(ssa.old(value))
                    values[value] = found if taken else None if taken is None else old

        return step

    def _parameter(self, instr: Instr) -> _Step | None:
        """A load from a parameter."""
        shape, ssa = instr.shape, self._ssa
        address = instr.operands[1] if len(instr.operands) == 2 else None
        target = instr.operands[0]
        if (
            shape.space != "param"
            or not isinstance(address, Address)
            or not isinstance(address.base, Symbol)
            or not isinstance(target, Register)
            or shape.guard
            or shape.type[0] == "f"
        ):
            return None
        name, offset = address.base.name, address.offset
        bits = BITS.get(shape.type, 32)
        region = self._bound.regions.get(name)
        if region is not None:
            found: int | None = region.address if not offset and bits == 64 else None
        else:
            found = self._bound.value(name, offset, 0, (1 << bits) - 1)
        if found is None:
            return None
        word = extension(shape.type, target.type)(found)
        (value,) = ssa.def_values[instr.index]

        def step(values: dict[int, int | None]) -> None:
            values[value] = word

        return step

    def _reader(self, instr: Instr, operand: Operand) -> _Read:
        """What an instruction reads, from the values."""
        if isinstance(operand, Register):
            value = self._ssa.use_values[instr.index][instr.uses.index(operand)]
            return lambda values: values.get(value)
        if isinstance(operand, Immediate):
            constant = operand.value if operand.kind == "int" else None
            return lambda values: constant
        if isinstance(operand, SpecialRegister):
            self._reads_thread.add(instr.index)
            special = self._place(operand.name)
            return lambda values: special
        if isinstance(operand, Negated) and operand.sign == "!":
            inner = self._reader(instr, operand.operand)

            def negated(values: dict[int, int | None]) -> int | None:
                found = inner(values)
                return None if found is None else found ^ 1

            return negated
        folded = None if isinstance(operand, Symbol) else fold(operand)
        return lambda values: folded

    def _place(self, name: str) -> int | None:
        """What a special register holds in the thread; None if that is not followed."""
        base, _, axis = name.partition(".")
        at = _AXES.get(axis)
        block, grid = self._bound.block, self._bound.grid
        ctaid, tid = self._thread
        if at is not None:
            held = {"%tid": tid, "%ctaid": ctaid, "%ntid": block, "%nctaid": grid}.get(base)
            return None if held is None else held[at]
        if name == "%laneid":
            return (tid[0] + block[0] * (tid[1] + block[1] * tid[2])) % 32
        return 32 if name == "WARP_SZ" else None


def _compute(instr: Instr, result: int) -> Callable[..., int] | None:
    """What computes a result from the source operands; None if it is not followed."""
    shape = instr.shape
    if shape.opcode == "cvta":
        return lambda a: a
    if shape.opcode == "mul" and shape.has("hi") and shape.type[0] in "us":
        bits, signed = BITS[shape.type], shape.type[0] == "s"
        mask = (1 << bits) - 1

        def read(a: int) -> int:
            a &= mask
            return a - (1 << bits) if signed and a >> (bits - 1) else a

        return lambda a, b: (read(a) * read(b) >> bits) & mask
    return operation(instr, result)


__all__ = ["Met", "Thread", "Walk"]
