"""Whether padding lies along an axis that a reduction across warps, or a scan, does not combine.

Such a reduction moves what it combines to other threads on the way, through shared memory or by
`shfl`. A condition of one of its leaves is followed along with that, to where it is the same for
everything that comes together, or differs.
"""

from __future__ import annotations

from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.movements import Movements
from ptxlint.dataflow.padding_marks import Marks
from ptxlint.dataflow.reductions import WHOLE, Leaf, Node, Reduction, Reductions
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.facts import Budget
from ptxlint.ir.instruction import Instr

_State = tuple[Node, int]
"""A node and the number of a condition of what it holds."""


class _Tree:
    """The nodes of a reduction, by what they are made of and what is made of them."""

    __slots__ = ("below", "initial", "known", "reduction", "root", "up")

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.up: dict[Node, list[Node]] = {}
        self.below: dict[Node, list[Node]] = {}
        for above, node in dict.fromkeys(reduction.edges):
            self.up.setdefault(node, []).append(above)
            self.below.setdefault(above, []).append(node)
        self.initial = {leaf.node for leaf in reduction.leaves if leaf.init}
        self.known: dict[_State, bool] = {}


class Axes:
    """The axes of the reductions of one function."""

    def __init__(
        self,
        ssa: Ssa,
        reductions: Reductions,
        conditions: Conditions,
        movements: Movements,
        marks: Marks,
        steps: Budget,
    ) -> None:
        self._ssa = ssa
        self._reductions = reductions
        self._conditions = conditions
        self._movements = movements
        self._marks = marks
        self._steps = steps
        self._trees: dict[int, _Tree] = {}
        self._numbers: dict[Node, frozenset[int]] = {}

    def is_apart(self, reduction: Reduction, leaf: Leaf, condition: Condition) -> bool:
        """True if all that a leaf is combined with is padding wherever the leaf is.

        False for reductions whose nodes stay in their lanes, and where that is not known.
        """
        if not reduction.edges or self._steps.spent:
            return False
        tree = self._trees.get(id(reduction))
        if tree is None:
            tree = self._trees[id(reduction)] = _Tree(reduction)
        start = leaf.node, condition.number
        if start not in tree.known:
            self._follow(tree, start)
        return tree.known[start]

    def _follow(self, tree: _Tree, start: _State) -> None:
        """Find out about a state and all those that it leads to."""
        work, seen = [start], {start}
        before: dict[_State, list[_State]] = {}
        failed: list[_State] = []
        for state in work:
            self._steps.left -= 1
            for above in tree.up.get(state[0], ()):
                numbers = self._passed(tree, *state, above)
                if numbers is None:
                    failed.append(state)
                    break
                for number in numbers:
                    later = above, number
                    known = tree.known.get(later)
                    if known is False:
                        failed.append(state)
                    elif known is None:
                        before.setdefault(later, []).append(state)
                        if later not in seen:
                            seen.add(later)
                            work.append(later)
        lost = set(failed)
        while failed:
            for state in before.get(failed.pop(), ()):
                if state not in lost:
                    lost.add(state)
                    failed.append(state)
        for state in work:
            tree.known[state] = state not in lost

    def _passed(self, tree: _Tree, node: Node, number: int, above: Node) -> list[int] | None:
        """The numbers of what a condition is for what a node is combined into; None if that is not
        padding as a whole."""
        condition = self._conditions.all[number]
        if condition.lost or self._conditions.varies_in_any(condition, tree.reduction.loops):
            return None
        made = self._made(above.value)
        if made is not None and made.opcode == "ld":
            numbers = self._loaded(made, above, node, number)
        elif made is not None and made.index in self._reductions.moves:
            numbers = self._hopped(above, node, number)
        else:
            lanes = 0
            step = self._reductions.step_at(above)
            if step is not None:
                lanes = step.lanes
            elif made is not None and made.opcode == "shfl":
                lanes = self._reductions.scanned(made)
            if condition.bits & lanes:
                return None
            others = [n for n in tree.below[above] if n not in tree.initial]
            if any(number not in self._of(other) for other in others):
                return None
            numbers = [number]
        if numbers is None or not self._of(above).issuperset(numbers):
            return None
        return numbers

    def _made(self, value: int) -> Instr | None:
        """What makes a value, or loads what is merged into it."""
        ssa = self._ssa
        return self._reductions.definition(
            ssa.written(value) if ssa.kind[value] == MERGE else value
        )

    def _of(self, node: Node) -> frozenset[int]:
        """The numbers of the conditions that a node is marked with."""
        found = self._numbers.get(node)
        if found is None:
            marks = self._marks
            conditions = marks.conditions_in(marks.of_node(node))
            found = self._numbers[node] = frozenset([c.number for c in conditions])
        return found

    def _loaded(self, load: Instr, above: Node, node: Node, number: int) -> list[int] | None:
        """The conditions of what is loaded from shared memory, for all ways that it may come."""
        value = above.value
        if self._ssa.kind[value] == MERGE:
            value = self._ssa.written(value)
        at = self._ssa.result[value]
        if above.part != WHOLE or self._movements.arrivals(load, at) is None:
            return None
        together = self._marks.together(load, at, 0)
        own: set[int] = set()
        brought: list[tuple[int, int, set[int]]] = []
        for way, bits in self._marks.active(load, at, 0):
            if way.maybe or way.value is None or way.value < 0:
                return None
            is_own = self._reductions.node(Node(way.value)) == node
            found: set[int] = set()
            for condition, final in self._marks.put_through(together, way.route, bits):
                found.update(final)
                if is_own and condition.number == number:
                    own.update(final)
            brought.append((way.route.fixed, way.route.at, found))
        return self._for_all(own, brought)

    def _hopped(self, above: Node, node: Node, number: int) -> list[int] | None:
        """The conditions of what comes from other lanes."""
        hops = self._movements.hops(above.value)
        if not hops or above.part != WHOLE:
            return None
        own: set[int] = set()
        brought: list[tuple[int, int, set[int]]] = []
        for hop in hops:
            if hop.split > 1 or hop.parts > 1:
                return None
            found: set[int] = set()
            for condition, final in self._marks.hopped(above.value, 0, hop):
                found.update(final)
                if condition.number == number and self._reductions.node(Node(hop.value)) == node:
                    own.update(final)
            brought.append((hop.fixed, hop.at, found))
        return self._for_all(own, brought)

    def _for_all(self, own: set[int], brought: list[tuple[int, int, set[int]]]) -> list[int] | None:
        """Conditions that hold whichever way something has come; None if one does not."""
        for number in own:
            to = self._conditions.all[number].map
            for fixed, at, found in brought:
                apart = to is not None and (at ^ to.at) & fixed & to.fixed
                if number not in found and not apart:
                    return None
        return sorted(own)


__all__ = ["Axes"]
