"""Which made-up contents of tensors a finding depends on.

Indices, lengths and addresses that lie in tensors decide where a kernel goes, and a run on contents
that nobody gave may go where no real one does. So what decides on a finding is followed back, over
data and branches (`ptxlint.launch.slices`), to the loads that numbers come from. That is a matter
of the kernel alone: it takes in all that may decide, and costs nothing in a run without findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence, ControlDependenceAnalysis
from ptxlint.dataflow.shared_cells import writes_shared
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.inputs import Inputs
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Address, Operand, Register, Symbol
from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.slices import slice_of, value_read

_BY_WAY: Final = frozenset({"deadlock", "divergence", "hang", "trap"})
"""Kinds of faults that branches alone decide on."""
_BY_NUMBERS: Final = "not_finite"
"""The kind that what is computed with decides on."""
_BRINGS_SHARED: Final = frozenset({"ld", "ldmatrix", "wgmma", "atom"})
"""What brings numbers from shared memory."""


class Decider(NamedTuple):
    """A tensor whose contents are made up, where a number of it that decides is read, and what it
    holds, in words."""

    name: str
    load: Instr
    how: str


class MadeUp:
    """The made-up contents of one launch of a kernel."""

    def __init__(self, module: Module, kernel: Function, bound: Bound, inputs: Inputs) -> None:
        self._facts = Facts(module, kernel)
        self._bound = bound
        self._inputs = inputs
        self._instrs = kernel.instrs

    # A run without findings does not look into the kernel.
    @cached_property
    def _ssa(self) -> Ssa:
        found: Ssa = self._facts.get(SsaAnalysis)
        return found

    @cached_property
    def _control(self) -> ControlDependence:
        found: ControlDependence = self._facts.get(ControlDependenceAnalysis)
        return found

    @cached_property
    def _to_shared(self) -> list[int]:
        """The instructions that write to shared memory."""
        return [i.index for i in self._instrs if writes_shared(i)]

    def behind(self, fault: Fault) -> list[Decider]:
        """The tensors that may decide on a fault, in the order of their loads; each once."""
        found: dict[str, Decider] = {}
        for load, region in self._loads(fault):
            how = self._inputs.made_up(region.name, region.tensor)
            if how and region.name not in found:
                found[region.name] = Decider(region.name, load, how)
        return list(found.values())

    def _loads(self, fault: Fault) -> Iterator[tuple[Instr, Region]]:
        """What is read from tensors on the way to a fault, with the tensor."""
        is_number = fault.kind == _BY_NUMBERS
        everything = self._brought(fault, is_number, through_shared=True)
        direct = everything
        if not is_number and any(self._companions(index) for index in everything):
            direct = self._brought(fault, is_number, through_shared=False)
        for index in sorted(everything):
            if not _reads_global(self._instrs[index]):
                continue
            # Numbers of all kinds meet in shared memory, where they are not told apart; addresses
            # are hardly made of those with a fraction.
            for region in self._regions(self._instrs[index]):
                if index in direct or "float" not in region.tensor.dtype:
                    yield self._instrs[index], region

    def _brought(self, fault: Fault, is_number: bool, through_shared: bool) -> set[int]:
        """The instructions that bring numbers from memory on the way to a fault, and others."""
        # What is not finite is made at the first place; the second one only stores it.
        places = (fault.instr, None if is_number else fault.origin)
        instrs = [i for i in places if i is not None]
        companions = self._companions if through_shared else lambda index: ()
        piece = slice_of(
            self._ssa,
            self._control,
            (),
            lambda index: True,
            [value for i in instrs for value in self._deciding(i, fault.kind)],
            [i.index for i in instrs],
            companions,
            companions(fault.instr.index) if is_number else (),
        )
        made = {self._ssa.instr[v] for v in piece.values if self._ssa.kind[v] == RESULT}
        return made | piece.effects

    def _deciding(self, instr: Instr, kind: str) -> Iterable[int]:
        """The values that decide, of those that an instruction reads."""
        if kind in _BY_WAY:
            return ()
        is_blank = kind == "uninitialised"
        if kind == _BY_NUMBERS or (not is_blank and memory_of(instr.shape) == ((), ())):
            return self._ssa.use_values[instr.index]
        # A number that is blank comes of a mask or a way, whatever it is made of besides.
        guard = self._ssa.guard_value(instr)
        own = () if guard is None or (is_blank and instr.opcode == "bra") else (guard,)
        return [*self._addresses(instr), *own]

    def _addresses(self, instr: Instr) -> list[int]:
        """The values that an instruction's addresses, coordinates and sizes are made of."""
        parts = [
            part
            for operand in instr.operands
            if isinstance(operand, Address)
            for part in (operand.base, *operand.rest)
        ]
        if instr.opcode == "cp":
            parts += [o for o in instr.operands if isinstance(o, Register)]
        return [value_read(self._ssa, instr, p) for p in parts if isinstance(p, Register)]

    def _companions(self, index: int) -> Iterable[int]:
        """What may have written what an instruction reads in shared memory."""
        instr = self._instrs[index]
        if instr.opcode in _BRINGS_SHARED and "shared" in memory_of(instr.shape).reads:
            return self._to_shared
        return ()

    def _regions(self, instr: Instr) -> Iterator[Region]:
        """The tensors that an instruction reads from, by the parameters in its addresses."""
        names = dict.fromkeys(_symbols(instr))
        seen: set[int] = set()
        work = self._addresses(instr)
        while work:
            value = self._ssa.resolve(work.pop())
            if value in seen:
                continue
            seen.add(value)
            if self._ssa.kind[value] == RESULT:
                made = self._instrs[self._ssa.instr[value]]
                # An index that is loaded is no pointer into where it lies itself.
                if _reads_global(made):
                    continue
                names |= dict.fromkeys(_symbols(made))
            work += self._ssa.operands[value]
        for name in names:
            region = self._bound.regions.get(name) or self._bound.descriptors.get(name)
            if region is not None and region.storage >= 0:
                yield region


def _reads_global(instr: Instr) -> bool:
    """True if an instruction brings something from global memory, or from where it is not said."""
    return not {"", "global"}.isdisjoint(memory_of(instr.shape).reads)


def _symbols(instr: Instr) -> Iterator[str]:
    """The variables that an instruction names."""
    for operand in instr.operands:
        base: Operand = operand.base if isinstance(operand, Address) else operand
        if isinstance(base, Symbol):
            yield base.name


__all__ = ["Decider", "MadeUp"]
