"""Bounds of numbers that come from told tensors on a way round: through copies to shared memory,
and as what atomic operations found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.access import Access
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.dataflow.thread_expression import operation
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register, SpecialRegister, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS
from ptxlint.launch.binding import Bound, Region
from ptxlint.launches import DTYPE_BYTES

if TYPE_CHECKING:
    from ptxlint.dataflow.shared_provenance import Movement, Passage

_HALF: Final = 16
"""Bits of what shared memory is followed by."""
_DEPTH: Final = 8
"""How many selections of a size lie in each other."""
Bounds: TypeAlias = "tuple[int, int]"


class CopiedNumbers:
    """Told numbers that come through shared memory. Triton brings indices there that a loop fetches
    ahead (`cp.async`), and what one thread finds by an atomic operation for all."""

    def __init__(
        self,
        facts: Facts,
        sources: dict[int, Region],
        told: Callable[[int], Bounds | None],
    ) -> None:
        self._facts = facts
        self._sources = sources
        """By copy: the told tensor that it copies from."""
        self._told = told
        """Bounds of what an instruction brings from global memory."""
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._from: dict[int, None] = {}

    def of(self, load: Instr) -> tuple[Bounds, tuple[int, ...]] | None:
        """Bounds of each number that a load from shared memory brings, and the instructions that
        brought them from global memory."""
        kind = load.shape.type
        if load.opcode != "ld" or kind[0] not in "bus":
            return None
        from ptxlint.dataflow.shared_provenance import SharedProvenanceAnalysis

        found: list[Bounds] = []
        self._from = {}
        for register in self._facts.get(SharedProvenanceAnalysis).of(load):
            if register.bits != _HALF or len(register.parts) * _HALF != BITS[kind]:
                return None
            bounds = self._joined(register.parts, BITS[kind] // 8)
            if bounds is None:
                return None
            found.append(bounds)
        if not found or len(found) != len(load.defs):
            return None
        return _around(found), tuple(self._from)

    def _joined(self, parts: tuple[Movement | None, ...], width: int) -> Bounds | None:
        """Bounds of a number whose halves, the lowest first, come by these ways."""
        whole = [part for part in parts if part is not None]
        if len(whole) != len(parts):
            return None
        first, count = whole[0].passages, len(parts)
        for number, part in enumerate(whole):
            if [_shifted(p, number) for p in first] != list(part.passages):
                return None
        bounds: list[Bounds] = []
        for passage in first:
            payload = passage.payload
            if passage.maybe and (any(passage.images) or not self._is_by_first(payload.instr)):
                return None
            if payload.instr.opcode == "cp":
                told = self._copied(payload.instr, width)
            else:
                told = self._stored(payload.instr, payload.operand, width)
            if told is None or payload.part % count:
                return None
            bounds.append(told)
        return _around(bounds) if bounds else None

    def _copied(self, copy: Instr, width: int) -> Bounds | None:
        """Bounds of the numbers that a copy brings; 0 where it fills instead."""
        region = self._sources.get(copy.index)
        if region is None or region.tensor.values is None:
            return None
        if DTYPE_BYTES[region.tensor.dtype] != width:
            return None
        low, high = region.tensor.values
        self._from[copy.index] = None
        if len(copy.operands) <= 3:
            return low, high
        whole = fold(copy.operands[2])
        if whole is None or not self._is_all_or_nothing(copy, copy.operands[3], whole, _DEPTH):
            return None
        return min(low, 0), max(high, 0)

    def _is_by_first(self, store: Instr) -> bool:
        """True if the first thread of a CTA carries out a store that all might: then it is done,
        if all of them store to the same place."""
        ssa = self._ssa
        predicate = ssa.guard_value(store)
        truth = None if predicate is None else self._in_first(predicate, _DEPTH)
        return truth is not None and bool(truth) == (store.shape.guard == "@")

    def _in_first(self, value: int, depth: int) -> int | None:
        """What a value is in the first thread of each CTA; None if that is not known."""
        ssa = self._ssa
        value = ssa.resolve(value)
        if ssa.kind[value] != RESULT or depth <= 0:
            return None
        instr = self._facts.function.instrs[ssa.instr[value]]
        compute = operation(instr, ssa.result[value])
        read: list[int] = []
        for operand in instr.operands[1:]:
            if isinstance(operand, Register):
                at = ssa.use_values[instr.index][instr.uses.index(operand)]
                found = self._in_first(at, depth - 1)
            elif isinstance(operand, SpecialRegister):
                found = 0 if operand.name.startswith(("%tid.", "%laneid")) else None
            else:
                found = fold(operand)
            if found is None:
                return None
            read.append(found)
        return None if compute is None else compute(*read)

    def _stored(self, store: Instr, at: int, width: int) -> Bounds | None:
        """Bounds of a number that a store puts into shared memory."""
        source = store.operands[1]
        register = source.elements[at] if isinstance(source, Vector) else source
        if store.opcode != "st" or BITS.get(store.shape.type) != 8 * width:
            return None
        if not isinstance(register, Register):
            return None
        values = self._ssa.use_values[store.index]
        return self._bounds(values[store.uses.index(register)], width, _DEPTH)

    def _bounds(self, value: int, width: int, depth: int) -> Bounds | None:
        """Bounds of a value that is told, or a constant where its mask does not hold."""
        ssa = self._ssa
        value = ssa.resolve(value)
        if BITS.get(ssa.register[value].type) != 8 * width or depth <= 0:
            return None
        if ssa.kind[value] == MERGE:
            arms = [self._bounds(arm, width, depth - 1) for arm in ssa.operands[value][1:]]
            found = [arm for arm in arms if arm is not None]
            return _around(found) if len(found) == len(arms) else None
        if ssa.kind[value] != RESULT:
            return None
        instr = self._facts.function.instrs[ssa.instr[value]]
        if instr.opcode == "mov":
            constant = fold(instr.operands[1])
            return None if constant is None or constant < 0 else (constant, constant)
        if instr.opcode not in ("ld", "atom") or BITS.get(instr.shape.type) != 8 * width:
            return None
        self._from[instr.index] = None
        return self._told(instr.index) if instr.shape.space == "global" else None

    def _is_all_or_nothing(self, instr: Instr, operand: Operand, whole: int, depth: int) -> bool:
        """True if a size is certainly 0 or that of the whole copy."""
        constant = fold(operand)
        if constant is not None:
            return constant in (0, whole)
        if not isinstance(operand, Register) or depth <= 0:
            return False
        ssa = self._ssa
        value = ssa.resolve(ssa.use_values[instr.index][instr.uses.index(operand)])
        if ssa.kind[value] != RESULT:
            return False
        made = self._facts.function.instrs[ssa.instr[value]]
        if made.opcode not in ("selp", "mov"):
            return False
        chosen = made.operands[1:3] if made.opcode == "selp" else made.operands[1:2]
        return all(self._is_all_or_nothing(made, o, whole, depth - 1) for o in chosen)


def _shifted(passage: Passage, parts: int) -> Passage:
    """The same way of a part that lies so many parts further in what is stored."""
    payload = passage.payload
    return passage._replace(payload=payload._replace(part=payload.part + parts))


def found_by_atomics(
    facts: Facts, bound: Bound, storage: int, values: Bounds, updates: Iterable[Access]
) -> dict[int, Bounds]:
    """By atomic operation, the bounds of what it finds in a told tensor that nothing else writes.

    Each of them adds what is not negative, at most once a thread. Empty if that is not so, or if
    the sum might not fit.
    """
    symbolic: Symbolic = facts.get(SymbolicAnalysis)
    loops: LoopForest = facts.get(LoopsAnalysis)
    block_of = facts.get(SsaAnalysis).cfg.block_of
    threads = 1
    for extent in (*bound.grid, *bound.block):
        threads *= extent
    low, high = values
    found: dict[int, int] = {}
    total = 0
    for access in updates:
        instr = access.instr
        added = instr.operands[-1]
        if access.kind != "atomic" or not instr.shape.has("add") or isinstance(added, Vector):
            return {}
        if not is_element(instr, bound.regions[access.base]):
            return {}
        poly = symbolic.operand_of(instr, added)
        if instr.shape.type[0] not in "bus" or loops.innermost(block_of[instr.index]) is not None:
            return {}
        least, most = (-1, -1) if poly is None else poly.range()
        if least < 0:
            return {}
        found[instr.index] = least
        total += threads * most
    regions = [region for region in bound.regions.values() if region.storage == storage]
    width = min(DTYPE_BYTES[region.tensor.dtype] for region in regions)
    if high + total >= 1 << (8 * width - 1):
        return {}
    # What a thread finds is without what it adds itself.
    return {index: (low, high + total - own) for index, own in found.items()}


def is_element(instr: Instr, region: Region) -> bool:
    """True if an instruction accesses numbers as the tensor has them, not several at once."""
    return BITS.get(instr.shape.type, 0) == 8 * DTYPE_BYTES[region.tensor.dtype]


def _around(bounds: list[Bounds]) -> Bounds:
    return min(low for low, _ in bounds), max(high for _, high in bounds)


__all__ = ["CopiedNumbers", "found_by_atomics", "is_element"]
