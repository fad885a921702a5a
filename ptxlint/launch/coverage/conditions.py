"""The conditions under which a store takes place: all of them, so that it does where they hold.

A guard says what holds where a store takes place; other branches may decide about it, too, and some
of what it says holds anyway, such as the end of a loop that comes before. Here the conditions come
from the branches that the store depends on: each must be one that every way to the store takes, and
its predicate a conjunction of comparisons.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.cfg.control_dependence import ControlDependence, ControlDependenceAnalysis
from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.guards import Conjunct, shifted
from ptxlint.dataflow.loop_bounds import first_round_flag
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Register
from ptxlint.launch.under import UnderLaunch

_DEPTH: Final = 40


class Condition(NamedTuple):
    """`polynomial >= 0`; with `header`, in all rounds but the first of the loop at that block."""

    polynomial: Polynomial
    header: int = -1


class Conditions:
    """Answers about the stores of one kernel under one launch."""

    def __init__(self, under: UnderLaunch) -> None:
        self._under = under
        self._ssa = under.ssa
        self._cfg = under.ssa.cfg
        self._control: ControlDependence = under.facts.get(ControlDependenceAnalysis)
        self._blocks: dict[int, list[Condition] | None] = {}
        self._exact: dict[int, bool] = {}

    def of(self, store: Instr) -> list[Condition] | None:
        """The conditions of a store; None if more decides about it than conditions can say."""
        block = self._cfg.block_of[store.index]
        if block not in self._blocks:
            self._blocks[block] = self._of_block(block)
        path = self._blocks[block]
        predicate = self._ssa.guard_value(store)
        if path is None or predicate is None:
            return path
        own = self._of_predicate(predicate, store.shape.guard == "@")
        return None if own is None else [*own, *path]

    def _of_block(self, block: int) -> list[Condition] | None:
        edges = self._edges_above(block)
        latches: set[int] = set()
        found: list[Condition] = []
        loop: Loop | None = self._under.loops.innermost(block)
        while loop is not None:
            rounds = self._rounds(loop)
            if rounds is None:
                return None
            found += rounds
            latches.update(loop.latches)
            loop = loop.parent
        for branch, target in self._control.closure(block):
            if branch in latches:
                continue
            condition = self._cfg.edge_condition(branch, target)
            terminator = self._cfg.terminator(branch)
            predicate = None if terminator is None else self._ssa.guard_value(terminator)
            if (branch, target) not in edges or condition is None or predicate is None:
                return None
            own = self._of_predicate(predicate, condition[1])
            if own is None:
                return None
            found += own
        return found

    def _of_predicate(self, predicate: int, holds: bool) -> list[Condition] | None:
        """What a predicate says, if it says no more than comparisons do."""
        conjuncts = self._under.guards.of_predicate(predicate, holds)
        if conjuncts is None or not self._is_exact(predicate, _DEPTH):
            return None
        found = [Condition(c.polynomial) for c in sorted(conjuncts, key=repr) if c.polynomial]
        return found if len(found) == len(conjuncts) else None

    def _edges_above(self, block: int) -> set[tuple[int, int]]:
        """The edges that every way to a block takes."""
        found: set[tuple[int, int]] = set()
        dominators = self._under.guards.dominators
        current = block
        while 0 <= current < len(self._cfg.blocks) and current != self._cfg.entry:
            preds = self._cfg.blocks[current].preds
            if len(preds) == 1:
                found.add((preds[0], current))
            current = dominators.idom[current]
        return found

    def _rounds(self, loop: Loop) -> list[Condition] | None:
        """What is not negative in the rounds that a loop comes to."""
        if len(loop.latches) != 1:
            return None
        latch = loop.latches[0]
        condition = self._cfg.edge_condition(latch, loop.header)
        branch = self._cfg.terminator(latch)
        predicate = None if branch is None else self._ssa.guard_value(branch)
        if condition is None or predicate is None or not self._is_exact(predicate, _DEPTH):
            return None
        goes_on = self._under.guards.of_predicate(predicate, condition[1])
        if goes_on is None:
            return None
        found: list[Condition] = []
        for conjunct in sorted(goes_on, key=repr):
            poly = _as_bound(conjunct, loop)
            before = None if poly is None else shifted(Conjunct(poly), loop.header, -1, None)
            if before is None or before.polynomial is None:
                return None
            found.append(Condition(before.polynomial, loop.header))
        return found

    def _is_exact(self, predicate: int, depth: int) -> bool:
        """True if a predicate is a comparison, or made of comparisons in ways that guards follow
        exactly."""
        root = self._ssa.root(self._ssa.resolve(predicate))[0]
        if root not in self._exact:
            self._exact[root] = False
            self._exact[root] = depth > 0 and self._find_exact(root, depth - 1)
        return self._exact[root]

    def _find_exact(self, root: int, depth: int) -> bool:
        ssa = self._ssa
        kind = ssa.kind[root]
        if kind == PHI:
            # All but this one may be another predicate than the guard takes it for.
            return first_round_flag(ssa, self._under.loops, root) is not None
        if kind == MERGE:
            return all(self._is_exact(value, depth) for value in ssa.operands[root])
        if kind != RESULT:
            return False
        instr = self._cfg.function.instrs[ssa.instr[root]]
        if instr.opcode == "mov":
            return isinstance(instr.operands[1], Immediate)
        if instr.opcode not in ("setp", "and", "or", "xor", "not"):
            return False
        for operand, value in zip(instr.uses, ssa.use_values[instr.index], strict=True):
            if operand.type == "pred":
                if not self._is_exact(value, depth):
                    return False
            elif not self._is_followed(value, depth):
                return False
        return True

    def _is_followed(self, value: int, depth: int) -> bool:
        """True for an integer that is no predicate in disguise, or an exact one."""
        ssa = self._ssa
        value = ssa.resolve(value)
        if ssa.kind[value] != RESULT:
            return True
        instr = self._cfg.function.instrs[ssa.instr[value]]
        if instr.opcode not in ("selp", "and", "or", "xor", "shl", "shr", "prmt"):
            return True
        for operand, read in zip(instr.uses, ssa.use_values[instr.index], strict=True):
            if not isinstance(operand, Register):
                continue
            if operand.type == "pred":
                if not self._is_exact(read, depth):
                    return False
            elif depth <= 0 or not self._is_followed(read, depth - 1):
                return False
        return True


def _as_bound(conjunct: Conjunct, loop: Loop) -> Polynomial | None:
    """What a loop goes on for, as a bound on its round.

    A loop that goes on while two numbers differ, which come one step nearer each round, does so
    while the distance is positive, if it was at first.
    """
    if conjunct.polynomial is not None:
        return conjunct.polynomial
    if conjunct.key[0] != "unequal":
        return None
    gap: Polynomial = conjunct.key[1] - conjunct.key[2]
    atoms = gap.atoms()
    if len(atoms) != 1 or len(gap.terms) > 2:
        return None
    (atom,) = atoms
    step, start = gap.coefficient(atom), gap.constant
    if atom.kind != "index" or atom.data[0] != loop.header or not step or start % step:
        return None
    # It ends with the round whose number this is.
    last = -start // step
    return gap.table.constant(last - 1) - gap.table.plain(atom) if last >= 0 else None


__all__ = ["Condition", "Conditions"]
