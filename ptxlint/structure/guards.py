"""Whether something decides that an instruction of machine code runs.

An assembler makes branches and early exits of predicates and the other way round: all are guards
here, but for the branches of the loops around an instruction.
"""

from __future__ import annotations

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr

_BY_MAP = "UTMA"
"""Copies by a tensor map, which has bounds of its own."""


class MachineGuards:
    """The guards of one function of machine code."""

    def __init__(self, facts: Facts) -> None:
        self._cfg = facts.get(CfgAnalysis)
        self._loops = facts.get(LoopsAnalysis)
        self._dependence = facts.get(ControlDependenceAnalysis)
        self._blocks: dict[int, bool] = {}

    def is_guarded(self, instr: Instr) -> bool:
        """True if a predicate (`LDGSTS` takes it as an operand), a branch that is no loop's, or a
        tensor map decides."""
        if any(register.type == "pred" for register in instr.uses):
            return True
        if instr.opcode.startswith(_BY_MAP):
            return True
        block = self._cfg.block_at(instr).index
        known = self._blocks.get(block)
        if known is None:
            known = self._blocks[block] = self._is_decided(block)
        return known

    def _is_decided(self, block: int) -> bool:
        around: set[int] = set()
        loop = self._loops.innermost(block)
        while loop is not None:
            around.update(loop.blocks)
            loop = loop.parent
        return any(edge.branch not in around for edge in self._dependence.closure(block))


__all__ = ["MachineGuards"]
