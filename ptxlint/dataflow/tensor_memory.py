"""Accumulators in tensor memory: what `tcgen05.mma` adds to, and who reads it.

A tensor memory address is a lane in its upper and a column in its lower 16 bits (PTX ISA, "Tensor
Memory Addressing"). Regions begin where a product writes or reads and where `tcgen05.st` writes;
an access belongs to the region that begins last at or before its column, in the same lanes of the
same allocation. The allocation is the address that `tcgen05.alloc` left in shared memory. What a
warp adds for its own lanes, whole multiples of 65,536, is left out. An address that is not
understood may be any region.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ptxlint.dataflow.polynomial import Atom
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.dataflow.value_flow import ValueFlow, ValueFlowAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Negated, Operand

_Place = tuple[Atom, int, int]
"""Allocation, lane, column."""


class Product(NamedTuple):
    """A `tcgen05.mma`. `adds` is None when a predicate decides whether it adds to the region.

    A product that begins anew in the first round of its loop and adds in all others adds.
    """

    instr: Instr
    region: int | None
    adds: bool | None


class Touch(NamedTuple):
    """A read or write of tensor memory by anything but an accumulator; region None is any."""

    instr: Instr
    region: int | None


class TensorMemory:
    """The products into tensor memory, what else reads it, and what else writes it."""

    def __init__(self, facts: Facts) -> None:
        self.products: list[Product] = []
        self.reads: list[Touch] = []
        self.writes: list[Touch] = []
        instrs = facts.instructions(lambda shape: shape.opcode == "tcgen05")
        if not instrs:
            return
        self._symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self._flow: ValueFlow = facts.get(ValueFlowAnalysis)
        products = [i for i in instrs if i.shape.modifiers[0] == "mma"]
        stores = [i for i in instrs if i.shape.modifiers[0] == "st"]
        places = {self._place(i, o) for i in (*products, *stores) for o in i.operands}
        self._starts = sorted((p for p in places if p is not None), key=lambda p: p[1:])
        for instr in products:
            region = self._region(instr, instr.operands[0])
            self.products.append(Product(instr, region, self._adds(instr)))
            self.reads += [
                Touch(instr, self._region(instr, operand))
                for operand in instr.operands[1:]
                if isinstance(operand, Address)
            ]
        for instr in instrs:
            self._note(instr)

    def reads_of(self, region: int) -> list[Instr]:
        """What may read a region."""
        return [read.instr for read in self.reads if read.region in (None, region)]

    def writes_of(self, region: int) -> list[Instr]:
        """What may write a region, products apart."""
        return [write.instr for write in self.writes if write.region in (None, region)]

    def _note(self, instr: Instr) -> None:
        kind = instr.shape.modifiers[0]
        addresses = [o for o in instr.operands if isinstance(o, Address)]
        if kind in ("ld", "shift"):
            self.reads += [Touch(instr, self._region(instr, o)) for o in addresses]
        if kind in ("st", "cp", "shift"):
            self.writes += [Touch(instr, self._region(instr, o)) for o in addresses]

    def _place(self, instr: Instr, operand: Operand) -> _Place | None:
        if not isinstance(operand, Address):
            return None
        poly = self._symbolic.address(instr, operand)
        if poly is None:
            return None
        bases = [a for a in poly.atoms() if a.kind == "load" and poly.coefficient(a) == 1]
        if len(bases) != 1:
            return None
        rest = poly - poly.table.plain(bases[0])
        if any(monomial and k % (1 << 16) for monomial, k in rest.terms.items()):
            return None
        return bases[0], rest.constant >> 16, rest.constant & 0xFFFF

    def _region(self, instr: Instr, operand: Operand) -> int | None:
        place = self._place(instr, operand)
        if place is None or any(start[0] != place[0] for start in self._starts):
            return None
        found = None
        for number, start in enumerate(self._starts):
            if start[1] == place[1] and start[2] <= place[2]:
                found = number
        return found

    def _adds(self, instr: Instr) -> bool | None:
        form = instr.shape.form
        if form is None:
            return None
        for at, spec in enumerate(form.operands):
            if spec.type == "pred" and at < len(instr.operands):
                if self._flow.is_false(instr, at):
                    return False
                return True if self._adds_later(instr, at) else None
        return None

    def _adds_later(self, instr: Instr, at: int) -> bool:
        """True if a predicate is true, or is in every round of the loop but the first."""
        flow = self._flow
        if flow.is_true(instr, at):
            return True
        values = flow.operand_values(instr)[at]
        loop = flow.loops.innermost(flow.ssa.cfg.block_of[instr.index])
        if len(values) != 1 or loop is None or isinstance(instr.operands[at], Negated):
            return False
        phi = flow.ssa.resolve(values[0])
        if not flow.is_header_phi(phi, loop):
            return False
        latch = flow.carried(phi, loop)[1]
        return bool(latch) and all(flow.constant(value) == 1 for value in latch)


class TensorMemoryAnalysis(Analysis[TensorMemory]):
    """Accumulators in tensor memory as facts of a function."""

    name: ClassVar[str] = "tensor-memory"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = ()

    def run(self, facts: Facts) -> TensorMemory:
        """Only functions with `tcgen05` cost anything."""
        return TensorMemory(facts)


__all__ = ["Product", "TensorMemory", "TensorMemoryAnalysis", "Touch"]
