"""Guards: the conjunction of comparisons under which an instruction takes effect.

A conjunct is `polynomial >= 0` over mathematical integers, divided by the greatest common divisor
of its coefficients, so that the same bound computed twice is the same conjunct. What is no integer
comparison is a conjunct too, known only by its predicate. A guard that can never hold is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register
from ptxlint.ir.pattern import fold

_DEPTH: Final = 100
"""How deep a tree of predicates is followed."""


class Conjunct(NamedTuple):
    """`polynomial >= 0`; or, without a polynomial, `key` names a condition that holds."""

    polynomial: Polynomial | None
    key: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        if self.polynomial is not None:
            return f"{self.polynomial} >= 0"
        return f"{self.key[0]}({', '.join(map(str, self.key[1:]))})"


Conjunction: TypeAlias = frozenset[Conjunct]

ALWAYS: Final[Conjunction] = frozenset()
"""The guard that always holds. One that never holds is None."""

_MOST: Final = 64
"""Conjuncts that are kept apart; more are one condition that nothing is known of."""

_FLIPPED: Final = {
    "lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq",
    "lo": "hs", "hs": "lo", "ls": "hi", "hi": "ls",
}  # fmt: skip
_UNSIGNED_NAMES: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


class Guards:
    """Guards of predicates, blocks and instructions of one function."""

    def __init__(self, facts: Facts) -> None:
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self._dominators: DominatorTree = facts.get(DominatorsAnalysis)
        self._instrs = facts.function.instrs
        self._predicates: dict[tuple[int, bool], Conjunction | None] = {}
        self._blocks: dict[int, Conjunction | None] = {}

    def of_predicate(self, value: int, holds: bool = True) -> Conjunction | None:
        """What is known when the predicate is true (or false); None if it never is."""
        return self._predicate(value, holds, _DEPTH)

    def of_block(self, block: int) -> Conjunction | None:
        """What held on the way into a block: the edges that every path to it ends with."""
        chain = []
        current = block
        while current not in self._blocks:
            chain.append(current)
            parent = self._dominators.idom[current]
            if parent == current or parent < 0:
                break
            current = parent
        for current in reversed(chain):
            parent = self._dominators.idom[current]
            above = self._blocks.get(parent, ALWAYS) if parent != current else ALWAYS
            entering = self._entering(current)
            guard = both(above, entering)
            if guard is not None and entering is not None and len(guard) > _MOST:
                guard = entering | {Conjunct(None, ("path", current))}
            self._blocks[current] = guard
        return self._blocks[block]

    def own(self, instr: Instr) -> Conjunction | None:
        """The instruction's own guard: its predicate, and the source size of a `cp.async`."""
        guard: Conjunction | None = ALWAYS
        predicate = self.ssa.guard_value(instr)
        if predicate is not None:
            guard = self.of_predicate(predicate, instr.shape.guard == "@")
        size = _source_size(instr)
        if size is not None:
            guard = both(guard, self._nonzero(instr, size, _DEPTH))
        return guard

    def of_instr(self, instr: Instr) -> Conjunction | None:
        """Everything that holds when the instruction takes effect; None for dead code."""
        cfg = self.ssa.cfg
        if not cfg.is_reachable(instr):
            return None
        return both(self.of_block(cfg.block_of[instr.index]), self.own(instr))

    # Predicates -------------------------------------------------------------------------------
    def _predicate(self, value: int, holds: bool, depth: int) -> Conjunction | None:
        root, same = self.ssa.root(self.ssa.resolve(value))
        holds = holds == same
        key = (root, holds)
        if key in self._predicates:
            return self._predicates[key]
        unknown = frozenset({Conjunct(None, ("predicate", root, holds))})
        self._predicates[key] = unknown
        if depth > 0:
            found = self._decide(root, holds, depth - 1)
            if found is not _UNKNOWN and (found is None or len(found) <= _MOST):
                self._predicates[key] = found
        return self._predicates[key]

    def _decide(self, root: int, holds: bool, depth: int) -> Any:
        ssa = self.ssa
        kind = ssa.kind[root]
        if kind == PHI:
            return self._of_alternatives(ssa.operands[root], holds, depth)
        if kind == MERGE:
            return self._merged(root, holds, depth)
        if kind != RESULT:
            return _UNKNOWN
        instr = self._instrs[ssa.instr[root]]
        opcode = instr.opcode
        if opcode == "mov" and len(instr.operands) == 2:
            constant = fold(instr.operands[1])
            return _UNKNOWN if constant is None else (ALWAYS if bool(constant) == holds else None)
        if opcode in ("and", "or") and len(instr.operands) == 3:
            parts = [self._operand(instr, o, holds, depth) for o in instr.operands[1:]]
            if _UNKNOWN in parts:
                return _UNKNOWN
            return both(*parts) if (opcode == "and") == holds else either(*parts)
        if opcode == "setp" and not ssa.result[root]:
            return self._comparison(instr, holds, depth)
        return _UNKNOWN

    def _operand(self, instr: Instr, operand: Operand, holds: bool, depth: int) -> Any:
        if isinstance(operand, Negated) and operand.sign == "!":
            return self._operand(instr, operand.operand, not holds, depth)
        if isinstance(operand, Register):
            return self._predicate(self.symbolic.value_read(instr, operand), holds, depth)
        constant = fold(operand)
        return _UNKNOWN if constant is None else (ALWAYS if bool(constant) == holds else None)

    def _of_alternatives(self, values: Iterable[int], holds: bool, depth: int) -> Any:
        """A phi holds if the one that came in does: the only one that can, if it is just one."""
        found = [self._predicate(v, holds, depth) for v in values]
        possible = {f for f in found if f is not None}
        if not possible:
            return None
        return possible.pop() if len(possible) == 1 else _UNKNOWN

    def _merged(self, root: int, holds: bool, depth: int) -> Any:
        """`p ? t : f`: with a constant false arm it is a conjunction."""
        predicate, if_true, if_false = self.ssa.operands[root]
        yes = self._predicate(if_true, holds, depth)
        no = self._predicate(if_false, holds, depth)
        if no is None:
            return both(self._predicate(predicate, True, depth), yes)
        if yes is None:
            return both(self._predicate(predicate, False, depth), no)
        return _UNKNOWN

    def _comparison(self, instr: Instr, holds: bool, depth: int) -> Any:
        shape = instr.shape
        relation = shape.modifiers[0]
        kind = shape.type
        combined = len(instr.operands) == 4
        if combined and "and" not in shape.modifiers:
            return _UNKNOWN
        if combined and not holds:
            return _UNKNOWN
        known = self._compare(instr, relation, kind, holds)
        if combined:
            other = self._operand(instr, instr.operands[3], True, depth)
            return _UNKNOWN if _UNKNOWN in (known, other) else both(known, other)
        return known

    def _compare(self, instr: Instr, relation: str, kind: str, holds: bool) -> Any:
        if relation not in _FLIPPED or kind[:1] not in ("b", "u", "s"):
            return _UNKNOWN
        boolean = self._boolean(instr, relation, holds)
        if boolean is not _UNKNOWN:
            return boolean
        a, b = (self.symbolic.operand(instr, at) for at in (1, 2))
        if a is None or b is None:
            return _UNKNOWN
        if not holds:
            relation = _FLIPPED[relation]
        unsigned = kind[0] == "u" or relation in _UNSIGNED_NAMES
        relation = _UNSIGNED_NAMES.get(relation, relation)
        if unsigned and relation not in ("eq", "ne") and min(a.range()[0], b.range()[0]) < 0:
            return frozenset({Conjunct(None, ("unsigned", relation, a, b))})
        return _inequality(relation, a, b)

    def _boolean(self, instr: Instr, relation: str, holds: bool) -> Any:
        """`setp.ne r, 0` of `selp r, 1, 0, p` is p."""
        operands = instr.operands
        if relation not in ("eq", "ne") or fold(operands[2]) not in (0, 1):
            return _UNKNOWN
        if not isinstance(operands[1], Register):
            return _UNKNOWN
        value = self.ssa.resolve(self.symbolic.value_read(instr, operands[1]))
        if self.ssa.kind[value] != RESULT:
            return _UNKNOWN
        source = self._instrs[self.ssa.instr[value]]
        if source.opcode != "selp" or not isinstance(source.operands[3], Register):
            return _UNKNOWN
        arms = (fold(source.operands[1]), fold(source.operands[2]))
        if arms not in ((1, 0), (0, 1), (-1, 0), (0, -1)):
            return _UNKNOWN
        compared = fold(operands[2])
        if -1 in arms and compared:
            return _UNKNOWN
        truth = (relation == "ne") == (compared == 0)
        chosen = self.symbolic.value_read(source, source.operands[3])
        return self._predicate(chosen, (holds == truth) == (arms[1] == 0), _DEPTH // 2)

    def _nonzero(self, instr: Instr, operand: Operand, depth: int) -> Conjunction | None:
        """When an operand is not zero: nested `selp x, 0, p` are conjunctions."""
        constant = fold(operand)
        if constant is not None:
            return ALWAYS if constant else None
        if not isinstance(operand, Register) or depth <= 0:
            return frozenset({Conjunct(None, ("nonzero", instr.index))})
        value = self.ssa.resolve(self.symbolic.value_read(instr, operand))
        if self.ssa.kind[value] == RESULT:
            source = self._instrs[self.ssa.instr[value]]
            if source.opcode == "mov" and len(source.operands) == 2:
                return self._nonzero(source, source.operands[1], depth - 1)
            if source.opcode == "selp" and isinstance(source.operands[3], Register):
                chosen = self.symbolic.value_read(source, source.operands[3])
                for arm, other, holds in ((1, 2, True), (2, 1, False)):
                    if fold(source.operands[other]) == 0:
                        inner = self._nonzero(source, source.operands[arm], depth - 1)
                        return both(self._predicate(chosen, holds, depth - 1), inner)
        return frozenset({Conjunct(None, ("nonzero", value))})

    # Blocks -----------------------------------------------------------------------------------
    def _entering(self, block: int) -> Conjunction | None:
        """What the one edge into a block says; nothing if several lead there."""
        cfg = self.ssa.cfg
        preds = cfg.blocks[block].preds
        return ALWAYS if len(preds) != 1 or block == cfg.entry else self.of_edge(preds[0], block)

    def of_edge(self, source: int, target: int) -> Conjunction | None:
        """What holds when control goes from one block right to another; None if it never does."""
        cfg = self.ssa.cfg
        condition = cfg.edge_condition(source, target)
        branch = cfg.terminator(source)
        if condition is None or branch is None:
            return ALWAYS
        predicate = self.ssa.guard_value(branch)
        return ALWAYS if predicate is None else self.of_predicate(predicate, condition[1])


class _Unknown:
    """What cannot be split into conjuncts."""


_UNKNOWN: Final = _Unknown()


def both(left: Conjunction | None, right: Conjunction | None) -> Conjunction | None:
    """Both hold."""
    return None if left is None or right is None else left | right


def either(left: Conjunction | None, right: Conjunction | None) -> Any:
    """At least one holds: what both say, or nothing that a conjunction can say."""
    if left is None:
        return right
    if right is None or left == right:
        return left
    if not left or not right:
        return ALWAYS
    return _UNKNOWN


def implies(known: Conjunction, wanted: Conjunct) -> bool:
    """True if the conjunction certainly entails the conjunct."""
    if wanted in known:
        return True
    goal = wanted.polynomial
    if goal is None:
        return False
    return any(c.polynomial is not None and goal.least_above(c.polynomial) >= 0 for c in known)


def _inequality(relation: str, a: Polynomial, b: Polynomial) -> Any:
    """A relation between integers as conjuncts."""
    if relation == "eq":
        return both(_at_least_zero(a - b), _at_least_zero(b - a))
    if relation == "ne":
        low, high = (a - b).range()
        if low > 0 or high < 0:
            return ALWAYS
        if low == high == 0:
            return None
        # One side of an unequal pair that cannot be on the other.
        if low == 0:
            return _at_least_zero(a - b - 1)
        if high == 0:
            return _at_least_zero(b - a - 1)
        first, second = sorted((a, b), key=repr)
        return frozenset({Conjunct(None, ("unequal", first, second))})
    difference = b - a if relation in ("lt", "le") else a - b
    return _at_least_zero(difference - 1 if relation in ("lt", "gt") else difference)


def _at_least_zero(poly: Polynomial) -> Conjunction | None:
    """`poly >= 0`, divided by the common divisor; decided where the bounds decide it."""
    low, high = poly.range()
    if low >= 0:
        return ALWAYS
    if high < 0:
        return None
    divisor = poly.gcd()
    if divisor > 1:
        terms = {m: (c // divisor) for m, c in poly.terms.items() if m}
        constant = poly.constant // divisor
        if constant:
            terms[()] = constant
        poly = Polynomial(poly.table, terms)
    return frozenset({Conjunct(poly)})


def _source_size(instr: Instr) -> Operand | None:
    """The source size of a `cp.async`, which is 0 where the copy is masked off."""
    if instr.opcode != "cp" or not instr.shape.has("async") or len(instr.operands) < 4:
        return None
    return instr.operands[3] if instr.shape.has("ca") or instr.shape.has("cg") else None


class GuardsAnalysis(Analysis[Guards]):
    """Guards; they are found when asked for."""

    name: ClassVar[str] = "guards"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        SymbolicAnalysis,
        DominatorsAnalysis,
    )

    def run(self, facts: Facts) -> Guards:
        """Nothing is looked into yet."""
        return Guards(facts)
