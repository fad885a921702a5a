"""Guards: the conjunction of comparisons under which an instruction takes effect.

A conjunct is `polynomial >= 0` over mathematical integers, divided by the greatest common divisor
of its coefficients, so that the same bound computed twice is the same conjunct. What is no integer
comparison is a conjunct too, known only by its predicate. A guard that can never hold is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.flag_bits import FlagBits
from ptxlint.dataflow.loop_bounds import first_round_flag, last_index
from ptxlint.dataflow.polynomial import INFINITY, Atom, Polynomial, remembered
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register
from ptxlint.ir.pattern import fold

_DEPTH: Final = 100
"""How deep a tree of predicates is followed."""
_NESTED: Final = 4
"""So often it is asked within each other what held on the way to a block."""


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
_HOLDS: Final[dict[str, Callable[[int], bool]]] = {
    "lt": lambda gap: gap < 0, "le": lambda gap: gap <= 0, "gt": lambda gap: gap > 0,
    "ge": lambda gap: gap >= 0, "eq": lambda gap: gap == 0, "ne": lambda gap: gap != 0,
}  # fmt: skip
_UNSIGNED_NAMES: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


class Guards:
    """Guards of predicates, blocks and instructions of one function."""

    def __init__(self, facts: Facts) -> None:
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self.dominators: DominatorTree = facts.get(DominatorsAnalysis)
        self._instrs = facts.function.instrs
        self._predicates: dict[tuple[int, bool], Conjunction | None] = {}
        self._blocks: dict[int, Conjunction | None] = {}
        self._nested = 0
        self._flags = FlagBits(self.ssa)

    def of_predicate(self, value: int, holds: bool = True) -> Conjunction | None:
        """What is known when the predicate is true (or false); None if it never is."""
        return self._predicate(value, holds, _DEPTH)

    def of_block(self, block: int) -> Conjunction | None:
        """What held on the way into a block: the edges that every path to it ends with."""
        chain = []
        current = block
        while current not in self._blocks:
            chain.append(current)
            parent = self.dominators.idom[current]
            if parent == current or parent < 0:
                break
            current = parent
        for current in reversed(chain):
            parent = self.dominators.idom[current]
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
            return self._of_phi(root, holds, depth)
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

    def _of_phi(self, root: int, holds: bool, depth: int) -> Any:
        ssa, loops = self.ssa, self.symbolic.loops
        flag = first_round_flag(ssa, loops, root)
        if flag is not None:
            table = self.symbolic.table
            header = flag[0].header
            index = table.plain(table.atom("index", (header,), 0, INFINITY, header))
            return _at_least_zero(-index if flag[1] == holds else index - 1)
        found = self._of_rounds(root, holds, depth)
        if found is not None:
            return found
        two = self._of_two_rounds(root, holds, depth)
        if two is not _UNKNOWN:
            return two
        return self._of_alternatives(ssa.operands[root], holds, depth)

    def _of_rounds(self, root: int, holds: bool, depth: int) -> Conjunction | None:
        """What a predicate says that each round of a loop works out for the next one.

        None if that is not the same as what the first round is given.
        """
        ssa, loops = self.ssa, self.symbolic.loops
        header = ssa.phi_block[root]
        loop = loops.with_header(header)
        if loop is None:
            return None
        first: set[Any] = set()
        later: set[Any] = set()
        for source, operand in zip(ssa.phi_sources(header), ssa.operands[root], strict=True):
            inside = source >= 0 and loops.contains(loop, source)
            (later if inside else first).add(self._predicate(operand, holds, depth))
        if len(first) != 1 or len(later) != 1:
            return None
        (given,), (made,) = first, later
        if given is None or made is None or any(c.polynomial is None for c in given | made):
            return None
        if any(self._is_changing(c.polynomial, loop) for c in made):
            return None
        found: Conjunction | None = ALWAYS
        begin: Conjunction | None = ALWAYS
        for conjunct in made:
            before = shifted(conjunct, header, -1, None)
            assert before.polynomial is not None
            found = both(found, frozenset({before}))
            start = shifted(before, header, 0, 0)
            assert start.polynomial is not None
            begin = both(begin, _at_least_zero(start.polynomial))
        return found if begin == given else None

    def _of_two_rounds(self, root: int, holds: bool, depth: int) -> Any:
        """A predicate that is one thing in the first round of a loop and what that round works out
        in the second one, which is the last."""
        ssa, loops = self.ssa, self.symbolic.loops
        header = ssa.phi_block[root]
        loop = loops.with_header(header)
        last = None
        if loop is not None:
            last = last_index(ssa, loops, loop, self.symbolic.operand)
        if loop is None or last is None or last > 1:
            return _UNKNOWN
        given: list[set[Conjunction | None]] = [set(), set()]
        for source, operand in zip(ssa.phi_sources(header), ssa.operands[root], strict=True):
            number = int(source >= 0 and loops.contains(loop, source))
            given[number].add(self._predicate(operand, holds, depth))
        if any(len(found) != 1 for found in given):
            return _UNKNOWN
        rounds = [self._in_first_round(found.pop(), loop) for found in given]
        if None in rounds:
            return _UNKNOWN
        table = self.symbolic.table
        atom = table.atom("index", (header,), 0, last, header)
        atom.high = min(atom.high, last)
        index = table.plain(atom)
        out: Conjunction | None = ALWAYS
        for own, other, elsewhere in zip(
            rounds, reversed(rounds), (index, -index + 1), strict=True
        ):
            for poly in own or ():
                # In the other round it says nothing, unless the same holds there.
                spared = 0 if poly in (other or ()) else max(0, -poly.range()[0])
                out = both(out, _at_least_zero(poly + elsewhere * spared))
        return out

    def _in_first_round(
        self, conjunction: Conjunction | None, loop: Loop
    ) -> list[Polynomial] | None:
        """What is not negative where a conjunction holds in the first round of a loop; None if that
        is not known. What never holds is a negative number."""
        if conjunction is None:
            return [self.symbolic.table.constant(-1)]
        out: list[Polynomial] = []
        for conjunct in sorted(conjunction, key=repr):
            poly = shifted(conjunct, loop.header, 0, 0).polynomial
            if poly is None or self._is_changing(poly, loop) or poly.range()[0] <= -INFINITY:
                return None
            out.append(poly)
        return out

    def _is_changing(self, poly: Polynomial, loop: Loop) -> bool:
        """True if a polynomial changes from round to round of a loop by more than its index."""
        contains = self.symbolic.loops.contains
        for atom in poly.atoms():
            if atom.kind == "index" and atom.data[0] == loop.header:
                continue
            inner = (poly.table.atoms[number] for number in atom.inner)
            if any(a.block >= 0 and contains(loop, a.block) for a in inner):
                return True
        return False

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
        if unsigned and relation not in ("eq", "ne") and not self._are_unsigned(instr, (a, b)):
            return frozenset({Conjunct(None, ("unsigned", relation, a, b))})
        chosen = _chosen(a - b)
        if chosen is not None:
            root, *gaps = chosen
            yes, no = (_HOLDS[relation](gap) for gap in gaps)
            if yes == no:
                return ALWAYS if yes else None
            return self._predicate(root, yes, _DEPTH // 2)
        return _inequality(relation, a, b)

    def _are_unsigned(self, instr: Instr, words: tuple[Polynomial, Polynomial]) -> bool:
        """True if words are no negative numbers, or not where control comes to an instruction."""
        signed = [word for word in words if word.range()[0] < 0]
        if not signed or self._nested >= _NESTED:
            return not signed
        self._nested += 1
        known = self.of_block(self.ssa.cfg.block_of[instr.index])
        self._nested -= 1
        return known is None or all(implies(known, Conjunct(word)) for word in signed)

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
        if source.opcode == "and" and fold(operands[2]) == 0:
            flag = self._flags.tested(value)
            if flag is None:
                return _UNKNOWN
            wanted = holds == (relation == "ne")
            if isinstance(flag, bool):
                return ALWAYS if flag == wanted else None
            return self._predicate(flag[0], flag[1] == wanted, _DEPTH // 2)
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

    def at_entry(self, loop: Loop, poly: Polynomial) -> bool:
        """True if a number is not negative wherever a loop is entered."""
        if poly.range()[0] >= 0:
            return True
        poly = undivided(poly)
        for atom in sorted(poly.atoms(), key=lambda a: a.number):
            # The smaller of two is not negative if neither is.
            parts = self.smaller_of(atom) if poly.coefficient(atom) > 0 else None
            if parts is not None:
                return all(self.at_entry(loop, poly.substitute({atom: p})) for p in parts)
        for block in self.ssa.cfg.blocks[loop.header].preds:
            if block in loop.latches:
                continue
            known = both(self.of_block(block), self.of_edge(block, loop.header))
            if known is not None and not implies(known, Conjunct(poly)):
                return False
        return True

    def smaller_of(self, atom: Atom) -> tuple[Polynomial, Polynomial] | None:
        """The two numbers of which an atom is the smaller one, as unsigned words unless it is a
        `min`; None for other atoms."""
        if atom.kind in ("min", "umin"):
            return atom.data[0], atom.data[1]
        value = atom.data[0] if atom.kind == "opaque" else -1
        if value < 0 or self.ssa.kind[value] != RESULT:
            return None
        instr = self._instrs[self.ssa.instr[value]]
        if instr.opcode != "min" or not instr.shape.type.startswith("u"):
            return None
        a, b = (self.symbolic.operand(instr, at) for at in (1, 2))
        return None if a is None or b is None else (a, b)

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


def shifted(conjunct: Conjunct, header: int, rounds: int, number: int | None) -> Conjunct:
    """A conjunct put in terms of a round that many rounds earlier, or of round `number`."""

    def later(poly: Polynomial) -> Polynomial:
        for atom in poly.atoms():
            if atom.kind == "index" and atom.data[0] == header:
                table = poly.table
                index = table.plain(atom) if number is None else table.constant(number)
                return poly.substitute({atom: index + rounds})
        return poly

    if conjunct.polynomial is not None:
        return Conjunct(later(conjunct.polynomial))
    parts = [later(p) if isinstance(p, Polynomial) else p for p in conjunct.key]
    return Conjunct(None, tuple(parts))


def implies(known: Conjunction, wanted: Conjunct) -> bool:
    """True if the conjunction certainly entails the conjunct."""
    if wanted in known:
        return True
    goal = wanted.polynomial
    if goal is None:
        return False
    plain = undivided(goal)
    for conjunct in known:
        given = conjunct.polynomial
        if given is None:
            continue
        if goal.least_above(given) >= 0:
            return True
        other = undivided(given)
        if (plain is not goal or other is not given) and plain.least_above(other) >= 0:
            return True
    return False


@remembered
def undivided(poly: Polynomial) -> Polynomial:
    """A polynomial that is negative where the given one is, with divisions taken out.

    k floor(p / d) + k r + c >= 0 says that floor(p / d) is at least -r - floor(c / k), and so p at
    least d times that, for whole numbers r and positive k; a negative k that it is at most so much.
    """
    for _ in range(_NESTED):
        found = _without_division(poly)
        if found is None:
            break
        poly = found
    return poly


def _without_division(poly: Polynomial) -> Polynomial | None:
    table = poly.table
    # A quotient within another one has a smaller number: the outer ones go first.
    for monomial in sorted(poly.terms, reverse=True):
        factor = poly.terms[monomial]
        atom = table.atoms[monomial[0]] if len(monomial) == 1 else None
        # A sign bit, which divisions of signed words add, is left to its bounds.
        if atom is None or atom.kind != "fdiv" or atom.high - atom.low <= 2:
            continue
        size = abs(factor)
        if any(m and c % size for m, c in poly.terms.items()):
            continue
        rest = {m: c // size for m, c in poly.terms.items() if m != monomial}
        part, divisor = atom.data
        bound = Polynomial(table, {m: c for m, c in rest.items() if c}) * divisor
        found: Polynomial = part + bound if factor > 0 else bound - part + (divisor - 1)
        return found
    return None


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
        if low == 0 and not _is_tested(a - b):
            return _at_least_zero(a - b - 1)
        if high == 0 and not _is_tested(a - b):
            return _at_least_zero(b - a - 1)
        first, second = sorted((a, b), key=repr)
        return frozenset({Conjunct(None, ("unequal", first, second))})
    difference = b - a if relation in ("lt", "le") else a - b
    return _at_least_zero(difference - 1 if relation in ("lt", "gt") else difference)


def _chosen(gap: Polynomial) -> tuple[int, int, int] | None:
    """A predicate and two numbers, of which it chooses the first one where it holds; None if a
    polynomial is not just that."""
    terms = [monomial for monomial in gap.terms if monomial]
    if len(terms) != 1 or len(terms[0]) != 1:
        return None
    atom = gap.table.atoms[terms[0][0]]
    if atom.kind != "select" or not (atom.data[1].is_constant and atom.data[2].is_constant):
        return None
    yes, no = (gap.terms[terms[0]] * arm.constant + gap.constant for arm in atom.data[1:])
    return atom.data[0], yes, no


def _is_tested(poly: Polynomial) -> bool:
    """True for bits that are picked from a word of which more is not known: a flag, no index."""
    atoms = poly.table.atoms
    return any(
        atoms[number].kind in ("opaque", "load", "select")
        for atom in poly.atoms()
        if atom.kind == "fdiv"
        for number in atom.inner
    )


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
