"""Padding that is let through in rows alone which are padding themselves.

A causal mask keeps the keys up to the query's own number. A key beyond the size that it keeps is
met by queries beyond the size: what it adds goes to rows that are padding, and those are judged by
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.conditions import Condition
from ptxlint.dataflow.guards import Conjunction, Guards
from ptxlint.dataflow.inequalities import contradict
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register


class PaddedRows:
    """Answers about the `selp` of one function."""

    def __init__(self, guards: Guards, loops: LoopForest) -> None:
        self._guards = guards
        self._loops = loops

    def takes(
        self,
        select: Instr,
        condition: Condition,
        rows: Iterable[Condition],
        is_neutral: Callable[[Operand], bool],
    ) -> bool:
        """True if each operand that is chosen where a condition holds is neutral, or one of some
        other conditions holds where it is chosen."""
        register = select.operands[3]
        if not isinstance(register, Register) or select.guard is not None:
            return False
        predicate = self._guards.symbolic.value_read(select, register)
        for truth, operand in ((True, select.operands[1]), (False, select.operands[2])):
            needed = self._guards.of_predicate(predicate, truth)
            if needed is None or is_neutral(operand):
                continue
            if not any(self._is_within(select, condition, needed, row) for row in rows):
                return False
        return True

    def _is_within(
        self, select: Instr, condition: Condition, needed: Conjunction, row: Condition
    ) -> bool:
        """True if a row is padding wherever the condition and what is needed hold."""
        beyond, valid = _bound(condition), _bound(row)
        if beyond is None or valid is None:
            return False
        headers = set(self._headers(select))
        known = [c.polynomial for c in sorted(needed, key=repr) if c.polynomial is not None]
        inside = [p for p in known if self._is_of_this_round(p, headers)]
        return contradict([-beyond - 1, valid, *inside])

    def _headers(self, select: Instr) -> Iterator[int]:
        loop = self._loops.innermost(self._guards.ssa.cfg.block_of[select.index])
        while loop is not None:
            yield loop.header
            loop = loop.parent

    @staticmethod
    def _is_of_this_round(poly: Polynomial, headers: set[int]) -> bool:
        return all(a.kind != "index" or a.data[0] in headers for a in poly.all_atoms())


def _bound(condition: Condition) -> Polynomial | None:
    """What is negative where a condition holds, and only there."""
    if condition.fixed or condition.rounds or condition.store >= 0 or condition.conjunct is None:
        return None
    return condition.conjunct.polynomial


__all__ = ["PaddedRows"]
