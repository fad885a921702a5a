"""Checks that an SSA form is one: single definitions that dominate their uses."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.cfg.dominance import DominatorTree
from ptxlint.dataflow.ssa_values import ENTRY, INSERT, MERGE, PHI, RESULT, Ssa
from ptxlint.ir.operand import Register


def verify(ssa: Ssa, dominators: DominatorTree) -> list[str]:
    """All violations found, as sentences; empty for a sound form.

    Only reachable code is held to dominance. Costs a pass over all values.
    """
    checker = _Checker(ssa, dominators)
    # The other checks index by value: they need lists that are whole.
    return list(checker.lists()) or [*checker.instructions(), *checker.values()]


class _Checker:
    def __init__(self, ssa: Ssa, dominators: DominatorTree) -> None:
        self._ssa = ssa
        self._dominators = dominators
        self._cfg = ssa.cfg

    def lists(self) -> Iterator[str]:
        """The parallel lists have one length, and operands exist."""
        ssa, count = self._ssa, len(self._ssa)
        for name in ("instr", "result", "operands", "register"):
            if len(getattr(ssa, name)) != count:
                yield f"list {name} has {len(getattr(ssa, name))} of {count} entries"
        for value, operands in enumerate(ssa.operands):
            if any(not 0 <= operand < count for operand in operands):
                yield f"value {value} has an operand that does not exist: {operands}"

    def instructions(self) -> Iterator[str]:
        """Uses and definitions are of the registers that the instruction names."""
        ssa = self._ssa
        defined: set[int] = set()
        for instr in self._cfg.function.instrs:
            uses, defs = ssa.use_values[instr.index], ssa.def_values[instr.index]
            yield from self._aligned(instr.index, instr.uses, uses)
            yield from self._aligned(instr.index, instr.defs, defs)
            for value in defs:
                if value in defined:
                    yield f"value {value} has two definitions"
                if ssa.instr[value] != instr.index:
                    yield f"value {value} is not made by instruction {instr.index}"
            defined.update(defs)
            if self._cfg.is_reachable(instr):
                for value in uses:
                    yield from self._before(value, instr.index, f"instruction {instr.index}")

    def _aligned(
        self, at: int, registers: tuple[Register, ...], values: tuple[int, ...]
    ) -> Iterator[str]:
        if len(registers) != len(values):
            yield f"instruction {at}: {len(values)} values for {len(registers)} registers"
            return
        for register, value in zip(registers, values, strict=True):
            if self._ssa.register[value] is not register:
                yield f"instruction {at}: {register} stands for a value of another register"

    def values(self) -> Iterator[str]:
        """Operands of phis and merges are there in time."""
        ssa = self._ssa
        for value, kind in enumerate(ssa.kind):
            if kind == PHI:
                yield from self._phi(value)
            elif kind in (RESULT, MERGE, INSERT):
                at = ssa.instr[value]
                if kind == RESULT and ssa.operands[value] != ssa.use_values[at]:
                    yield f"value {value} does not read what its instruction reads"
                if self._cfg.is_reachable(self._cfg.function.instrs[at]):
                    for operand in ssa.operands[value]:
                        yield from self._before(operand, at, f"value {value}", merged=True)

    def _phi(self, value: int) -> Iterator[str]:
        ssa, block = self._ssa, self._ssa.phi_block[value]
        sources = ssa.phi_sources(block)
        if len(sources) != len(ssa.operands[value]):
            yield f"phi {value} has {len(ssa.operands[value])} operands for {len(sources)} ways"
            return
        for source, operand in zip(sources, ssa.operands[value], strict=True):
            if ssa.register[operand] is not ssa.register[value]:
                yield f"phi {value} merges a value of another register"
            if source == ENTRY:
                if ssa.block_of(operand) != self._cfg.entry or ssa.instr[operand] >= 0:
                    yield f"phi {value} takes value {operand} from the entry"
            elif not self._dominators.dominates(ssa.block_of(operand), source):
                yield f"phi {value}: value {operand} does not reach the end of block {source}"

    def _before(self, value: int, at: int, user: str, merged: bool = False) -> Iterator[str]:
        """`value` comes before instruction `at`, or is made by it too if `merged`."""
        made = self._ssa.instr[value]
        home, block = self._ssa.block_of(value), self._cfg.block_of[at]
        if made >= 0 and home == block:
            if made > at or (made == at and not merged):
                yield f"{user} reads value {value}, which is made later"
        elif not self._dominators.dominates(home, block):
            yield f"{user} reads value {value}, which does not dominate it"
