"""What decides whether some accesses take place, and where: a backward slice of a function.

Weiser, "Program Slicing" (1984): the values that addresses and predicates are computed from, and
the branches that decide which of them are, or how often. A branch that is not among them makes no
difference, and can be passed to where its ways meet again, as far as they come to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Operand, Register


class Target(NamedTuple):
    """An access, and the operands that decide about it.

    `predicate` is the value of its guard, -1 without one; `size` the operand that says how many
    bytes it reads, if one does.
    """

    instr: Instr
    address: Address
    predicate: int
    size: Operand | None


class Slice(NamedTuple):
    """What must be computed for some targets. `branches` are blocks whose end decides, `effects`
    instructions that write to memory from which something is read, and barriers."""

    targets: tuple[Target, ...]
    values: frozenset[int]
    branches: frozenset[int]
    effects: frozenset[int] = frozenset()


def target_of(ssa: Ssa, instr: Instr) -> Target | None:
    """An access to global memory by `ld`, `st`, `atom`, `red` or `cp.async`; None for others."""
    at = 1 if instr.opcode == "cp" else 0
    for operand in instr.operands[at:]:
        if isinstance(operand, Address):
            predicate = ssa.guard_value(instr)
            size = instr.operands[3] if instr.opcode == "cp" and len(instr.operands) > 3 else None
            return Target(instr, operand, -1 if predicate is None else predicate, size)
    return None


def value_read(ssa: Ssa, instr: Instr, register: Register) -> int:
    """The value that an instruction reads in a register."""
    return ssa.resolve(ssa.use_values[instr.index][instr.uses.index(register)])


def slice_of(
    ssa: Ssa,
    control: ControlDependence,
    targets: Iterable[Target],
    is_followed: Callable[[int], bool],
    values: Iterable[int] = (),
    instrs: Iterable[int] = (),
    companions: Callable[[int], Iterable[int]] = lambda index: (),
    effects: Iterable[int] = (),
) -> Slice:
    """The slice of some targets, of some values besides, of whether some instructions run, and of
    the effects of some.

    What instructions that are not `is_followed` (by their index) compute is not known anyway, so
    that what they read is left out. `companions` are the instructions whose effects are needed for
    what an instruction computes.
    """
    slicer = _Slicer(ssa, control, is_followed, companions)
    slicer.add(values, instrs)
    slicer.add_effects(effects)
    return slicer.slice(tuple(targets))


class _Slicer:
    """Collects one slice."""

    def __init__(
        self,
        ssa: Ssa,
        control: ControlDependence,
        is_followed: Callable[[int], bool],
        companions: Callable[[int], Iterable[int]],
    ) -> None:
        self._ssa = ssa
        self._companions = companions
        self._effects: set[int] = set()
        self._control = control
        self._is_followed = is_followed
        self._values: set[int] = set()
        self._blocks: set[int] = set()
        self._branches: set[int] = set()
        self._work: list[int] = []

    def add(self, values: Iterable[int], instrs: Iterable[int]) -> None:
        """Values and instructions that are asked for besides."""
        self._work += values
        self._blocks.update(self._ssa.cfg.block_of[index] for index in instrs)

    def add_effects(self, instrs: Iterable[int]) -> None:
        """Instructions that are to take effect."""
        for index in instrs:
            if index not in self._effects:
                self._effects.add(index)
                self._work += self._ssa.use_values[index]
                self._blocks.add(self._ssa.cfg.block_of[index])

    def slice(self, targets: tuple[Target, ...]) -> Slice:
        cfg = self._ssa.cfg
        for target in targets:
            self._blocks.add(cfg.block_of[target.instr.index])
            if target.predicate >= 0:
                self._work.append(target.predicate)
            for operand in (target.address.base, target.size):
                if isinstance(operand, Register):
                    self._work.append(value_read(self._ssa, target.instr, operand))
        known = -1
        while known != len(self._branches) + len(self._blocks):
            known = len(self._branches) + len(self._blocks)
            self._collect_values()
            for edge in self._control.closure_of(sorted(self._blocks)):
                self._add_branch(edge.branch)
            self._collect_values()
        return Slice(
            targets,
            frozenset(self._values),
            frozenset(self._branches),
            frozenset(self._effects),
        )

    def _add_branch(self, block: int) -> None:
        if block in self._branches:
            return
        self._branches.add(block)
        branch = self._ssa.cfg.terminator(block)
        predicate = None if branch is None else self._ssa.guard_value(branch)
        if predicate is not None:
            self._work.append(predicate)

    def _collect_values(self) -> None:
        ssa = self._ssa
        while self._work:
            value = ssa.resolve(self._work.pop())
            if value in self._values:
                continue
            self._values.add(value)
            kind = ssa.kind[value]
            if kind == RESULT:
                if self._is_followed(ssa.instr[value]):
                    self._work += ssa.operands[value]
                    self._blocks.add(ssa.block_of(value))
                    self.add_effects(self._companions(ssa.instr[value]))
            elif kind == MERGE:
                self._work += ssa.operands[value]
                self._blocks.add(ssa.block_of(value))
            elif kind == PHI:
                self._work += ssa.operands[value]
                self._choose_way(ssa.phi_block[value])

    def _choose_way(self, block: int) -> None:
        """A phi takes its operand by the way that control comes."""
        cfg = self._ssa.cfg
        for source in cfg.blocks[block].preds:
            self._blocks.add(source)
            if len(cfg.edges_from(cfg.blocks[source])) > 1:
                self._add_branch(source)


__all__ = ["Slice", "Target", "slice_of", "target_of", "value_read"]
