"""Sums of exponentials relative to their own maximum: they are at least 1.

The lane that holds the maximum adds exp(0). What must be seen is that each score of the maximum is
among the exponents, with the same factor as the maximum itself, and that the sum is taken over all
lanes that the maximum is. Sums that a loop carries are taken to be rescaled, which is a question of
its own (`ptxlint.dataflow.online_softmax`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow.floats import F32, FORMATS, decode
from ptxlint.dataflow.masked_maximum import MaskedMaxima, MaskedMaximaAnalysis
from ptxlint.dataflow.maximum_trees import not_above
from ptxlint.dataflow.nonfinite import Nonfinite, NonfiniteAnalysis
from ptxlint.dataflow.padding_values import ANY_INDEX, Dependences
from ptxlint.dataflow.reductions import WHOLE, Node, Reductions, ReductionsAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, Ssa
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.dataflow.value_flow import CHOICE, ValueFlow
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Operand, Symbol

_MAX_TERMS: Final = 4_096
_MAX_STEPS: Final = 64
_COPIES: Final = frozenset({"mov", "cvt", "shfl", "redux"})


class Multiple(NamedTuple):
    """A node times a number times some values."""

    node: Node
    number: float
    factors: tuple[int, ...] = ()

    def times(self, node: Node, number: float = 1.0, factors: tuple[int, ...] = ()) -> Multiple:
        """The same multiple of a multiple of another node."""
        return Multiple(node, self.number * number, tuple(sorted(self.factors + factors)))


class ExponentialSums:
    """Answers about divisors of a function, found when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._nonfinite: Nonfinite = facts.get(NonfiniteAnalysis)
        self._maxima: MaskedMaxima = facts.get(MaskedMaximaAnalysis)
        self.reductions: Reductions = facts.get(ReductionsAnalysis)
        self.flow: ValueFlow = self._nonfinite.flow
        self.ssa: Ssa = self.flow.ssa
        self._dependences = Dependences(self.ssa, facts.get(UniformityAnalysis), self.reductions)
        self._known: dict[int, bool] = {}
        self._parameters = frozenset(p.name for p in facts.function.params)
        self._below: dict[int, set[Node]] = {}
        self._base: dict[int, dict[Node, list[tuple[Node, Multiple]]]] = {}

    def is_divisor(self, division: Instr) -> bool:
        """True if a division is by a sum of exponentials that is at least 1."""
        values = self.flow.operand_values(division)[-1]
        if len(values) != 1:
            return False
        value = self.ssa.resolve(values[0])
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._is_sum(value)
        return known

    def nonpositive(self) -> dict[int, tuple[int, ...]]:
        """The exponents that are not above 0, by value its halves: multiples of a score or of the
        maximum before, less the same multiple of the maximum."""
        found: dict[int, tuple[int, ...]] = {}
        for instr in self._nonfinite.exponentials:
            halves = (0, 1) if instr.shape.type.endswith("x2") else (WHOLE,)
            for half in halves:
                argument = self._node(instr, instr.operands[1], half)
                if argument is not None and self._is_nonpositive(argument):
                    value, part = argument
                    found[value] = (*found.get(value, ()), part)
        return found

    def _is_nonpositive(self, argument: Node) -> bool:
        if self.reductions.definition(argument.value) is None:
            return False
        return any(
            subtracted.number < 0.0
            and all(map(self._is_parameter, subtracted.factors))
            and score in self._not_above(root)
            for root, score, subtracted in self._differences(argument)
        )

    def _not_above(self, root: int) -> set[Node]:
        """The scores, and what rounds carry, that certainly are not above a maximum."""
        found = self._below.get(root)
        if found is None:
            found = self._below[root] = not_above(self._maxima.trees.of(root))
        return found

    def _is_parameter(self, value: int) -> bool:
        """True for a parameter of the kernel, which is taken to be positive."""
        instr = self.reductions.definition(value)
        if instr is None or instr.opcode != "ld" or instr.shape.space != "param":
            return False
        return any(isinstance(a, Symbol) and a.name in self._parameters for a in instr.args)

    def _is_sum(self, value: int) -> bool:
        terms = self._terms(value)
        if terms is None:
            return False
        covered: dict[int, set[int]] = {}
        for term in terms:
            found = self._relative(term)
            if found is not None and found[1].part == WHOLE:
                covered.setdefault(found[0], set()).add(found[1].value)
        free = self._dependences.of(value) & ANY_INDEX
        for root, scores in covered.items():
            maximum = self._maxima.trees.of(root)
            if maximum.scores is None or not scores.issuperset(maximum.scores):
                continue
            if not free & self._maxima.combined_bits(maximum):
                return True
        return False

    # Sums -------------------------------------------------------------------------------------
    def _terms(self, value: int) -> list[Node] | None:
        """The exponentials that a sum adds up; None if it adds anything else."""
        work = [self.reductions.node(Node(value))]
        seen = set(work)
        out: list[Node] = []
        for node in work:
            if len(seen) > _MAX_TERMS:
                return None
            instr = self.reductions.definition(node.value)
            if instr is not None and instr.opcode == "ex2":
                out.append(node)
                continue
            inner = self._added(node, instr)
            if inner is None:
                return None
            for source in inner:
                if source not in seen:
                    seen.add(source)
                    work.append(source)
        return out

    def _added(self, node: Node, instr: Instr | None) -> list[Node] | None:
        """What a node is the sum of, constants of 0 and factors of what is carried apart."""
        ssa = self.ssa
        if ssa.kind[node.value] in (PHI, MERGE):
            return self._nodes(
                [(v, node.part) for v, role in self.flow.sources(node.value) if role != CHOICE]
            )
        if instr is None:
            return [] if self._is_zero(node.value) else None
        if instr.opcode == "ld" and instr.shape.space == "shared":
            stored = self.reductions.stored_before(node.value)
            return [self.reductions.node(n) for n in stored] or None
        if self._is_zero(node.value):
            return []
        if instr.opcode == "add" and instr.shape.type.removesuffix("x2") in FORMATS:
            return self._operands(instr, (1, 2), node.part)
        if instr.opcode == "fma":
            added = self._operands(instr, (3,), node.part)
            carried = self._carried(instr, node.part)
            return None if added is None or carried is None else added + carried
        if instr.opcode == "mul":
            return self._carried(instr, node.part)
        if instr.opcode == "selp":
            return self._operands(instr, (1, 2), node.part)
        if instr.opcode in _COPIES:
            return self._operands(instr, (1,), node.part)
        return None

    def _carried(self, instr: Instr, part: int) -> list[Node] | None:
        """What a loop carries, where a product is its rescaling by an exponential."""
        factors = [self._node(instr, instr.operands[at], part) for at in (1, 2)]
        for one, other in (factors, reversed(factors)):
            if one is None or other is None:
                continue
            scale = self.reductions.definition(other.value)
            if scale is not None and scale.opcode == "ex2" and self._is_carried(one):
                return [one]
        return None

    def _is_carried(self, node: Node) -> bool:
        return self.ssa.kind[node.value] == PHI

    def _operands(self, instr: Instr, places: tuple[int, ...], part: int) -> list[Node] | None:
        out = []
        for at in places:
            operand = instr.operands[at]
            node = self._node(instr, operand, part)
            if node is not None:
                out.append(node)
            elif not (isinstance(operand, Immediate) and _number(operand) == 0.0):
                return None
        return out

    def _node(self, instr: Instr, operand: Operand, part: int) -> Node | None:
        value = self.reductions.read(instr, operand)
        kept = part if instr.shape.type.endswith("x2") else WHOLE
        return None if value is None else self.reductions.node(Node(value, kept))

    def _nodes(self, pairs: list[tuple[int, int]]) -> list[Node]:
        return [self.reductions.node(Node(self.ssa.resolve(v), part)) for v, part in pairs]

    def _is_zero(self, value: int) -> bool:
        return self.flow.constant(value) == 0

    # Exponents --------------------------------------------------------------------------------
    def _relative(self, term: Node) -> tuple[int, Node] | None:
        """(maximum, score) if an exponential is of a multiple of their difference."""
        instr = self.reductions.definition(term.value)
        argument = None if instr is None else self._node(instr, instr.operands[1], term.part)
        if argument is None:
            return None
        return next(((root, s) for root, s, _ in self._differences(argument)), None)

    def _differences(self, argument: Node) -> Iterator[tuple[int, Node, Multiple]]:
        """(maximum, score, the multiple of the maximum) of which an exponent is the difference."""
        # A score may be a sum itself: then it is one term.
        ways = [self._linear(argument), self._linear(argument, 1)]
        pairs = [parts for parts in ways if parts is not None and len(parts) == 2]
        for score, subtracted in ((p[at], p[1 - at]) for p in pairs for at in (0, 1)):
            roots = self._maxima.trees.maxima_of(*subtracted.node)
            if len(roots) != 1:
                continue
            start = self._multiple_of(subtracted, roots[0])
            chosen = None if start is None else self._agreed(score, start, roots[0])
            if chosen is not None and start is not None:
                yield roots[0], chosen, start

    def _linear(self, argument: Node, sums: int = _MAX_STEPS) -> list[Multiple] | None:
        """What an exponent is a sum of multiples of; so many sums are taken apart."""
        work = [Multiple(argument, 1.0)]
        out: list[Multiple] = []
        for item in work:
            if len(work) > _MAX_STEPS:
                return None
            instr = self.reductions.definition(item.node.value)
            inner = None if instr is None else self._expanded(item, instr)
            if inner is None or (len(inner) > 1 and not sums):
                out.append(item)
            else:
                sums -= len(inner) > 1
                work += inner
        return out

    def _expanded(self, item: Multiple, instr: Instr) -> list[Multiple] | None:
        part = item.node.part
        opcode = instr.opcode
        if opcode in ("add", "sub"):
            nodes = [self._node(instr, instr.operands[at], part) for at in (1, 2)]
            if None in nodes:
                return None
            signs = (1.0, 1.0 if opcode == "add" else -1.0)
            return [item.times(n, s) for n, s in zip(nodes, signs, strict=True) if n is not None]
        if opcode in ("mul", "fma"):
            product = self._product(item, instr)
            if product is None or opcode == "mul":
                return None if product is None else [product]
            added = self._node(instr, instr.operands[3], part)
            return None if added is None else [product, item.times(added)]
        if opcode == "neg":
            node = self._node(instr, instr.operands[1], part)
            return None if node is None else [item.times(node, -1.0)]
        return None

    def _product(self, item: Multiple, instr: Instr) -> Multiple | None:
        """A product as the multiple of one factor: of the one that is not the same everywhere."""
        for at, other in ((1, 2), (2, 1)):
            node = self._node(instr, instr.operands[at], item.node.part)
            if node is None:
                continue
            number = self._constant(instr, instr.operands[other], item.node.part)
            if number is not None:
                return item.times(node, number)
            factor = self._node(instr, instr.operands[other], item.node.part)
            if factor is not None and not self._dependences.of(factor.value):
                return item.times(node, 1.0, (factor.value,))
        return None

    def _constant(self, instr: Instr, operand: Operand, part: int) -> float | None:
        if isinstance(operand, Immediate):
            return _number(operand)
        node = self._node(instr, operand, part)
        bits = None if node is None else self.flow.constant(node.value)
        return None if bits is None else decode(F32, bits).point

    def _multiple_of(self, item: Multiple, root: int) -> Multiple | None:
        """An item as a multiple of the maximum that it is made of."""
        return next((m for m in self._walked(item) if m.node.value == root), None)

    def _agreed(self, score: Multiple, subtracted: Multiple, root: int) -> Node | None:
        """The score of a maximum that another multiple is, with its factor but for the sign."""
        part = score.node.part
        for copy in self._copies(score.node.value) if part == WHOLE else (score.node.value,):
            for chosen, multiple in self._bases(root).get(Node(copy, part), ()):
                number = subtracted.number * multiple.number
                factors = tuple(sorted(subtracted.factors + multiple.factors))
                if factors == score.factors and isclose(number, -score.number, rel_tol=1e-6):
                    return chosen
        return None

    def _bases(self, root: int) -> dict[Node, list[tuple[Node, Multiple]]]:
        """What the scores of a maximum are multiples of: (score, the maximum's multiple of it).

        What a loop carries counts as a score of the maximum that a round ends with.
        """
        found = self._base.get(root)
        if found is None:
            found = self._base[root] = {}
            tree = self._maxima.trees.of(root)
            scores = set(tree.scores or ())
            carried = {start.phi for start in tree.starts}
            for item in self._walked(Multiple(Node(root), 1.0)):
                if item.node in carried:
                    found.setdefault(item.node, []).append((item.node, item))
                elif item.node.value in scores:
                    for inner in self._walked(item):
                        known = found.setdefault(inner.node, [])
                        known.append((item.node, inner))
        return found

    def _copies(self, value: int) -> set[int]:
        """A value and what it is a copy of, in whatever width."""
        out = {value}
        for _ in range(8):
            instr = self.reductions.definition(value)
            if instr is None or instr.opcode not in ("mov", "cvt"):
                break
            read = self.reductions.read(instr, instr.operands[1])
            if read is None:
                break
            value = read
            out.add(value)
        return out

    def _walked(self, start: Multiple) -> Iterator[Multiple]:
        """All that a multiple is made of on the way down, itself first."""
        work = [start]
        seen = {start.node}
        for item in work:
            yield item
            if len(seen) > _MAX_TERMS:
                break
            for found in self._inner(item):
                if found.node not in seen:
                    seen.add(found.node)
                    work.append(found)

    def _inner(self, item: Multiple) -> list[Multiple]:
        value, part = item.node
        instr = self.reductions.definition(value)
        if instr is not None and instr.opcode in ("mul", "neg"):
            found = self._expanded(item, instr)
            return found or []
        if instr is not None and instr.opcode == "max":
            nodes = [self._node(instr, o, part) for o in instr.operands[1:]]
            return [item.times(n) for n in nodes if n is not None]
        if instr is not None and instr.opcode == "redux":
            node = self._node(instr, instr.operands[1], part)
            return [] if node is None else [item.times(node)]
        return [item.times(node) for node in self._maxima.trees.scaled(item.node)]


def _number(operand: Immediate) -> float:
    return operand.as_float("f32")


class ExponentialSumsAnalysis(Analysis[ExponentialSums]):
    """Sums of exponentials as facts of a function."""

    name: ClassVar[str] = "exponential-sums"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        NonfiniteAnalysis,
        MaskedMaximaAnalysis,
    )

    def run(self, facts: Facts) -> ExponentialSums:
        """Nothing is looked at yet."""
        return ExponentialSums(facts)


__all__ = ["ExponentialSums", "ExponentialSumsAnalysis"]
