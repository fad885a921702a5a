"""What holds in each round of a loop because it came to that round.

Pipelined loops fetch in one round what a later one reads. Where that round does not come the copy
is masked off; where it is read the round has come.
"""

from __future__ import annotations

from ptxlint.cfg.loops import Loop, LoopForest
from ptxlint.dataflow.guards import Conjunct, Guards, implies, shifted
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import Ssa


class Rounds:
    """Answers about the loops of one function."""

    def __init__(self, ssa: Ssa, loops: LoopForest, guards: Guards) -> None:
        self._ssa = ssa
        self._loops = loops
        self._guards = guards
        self._coming: dict[int, list[Conjunct]] = {}

    def holds(self, conjunct: Conjunct, header: int, number: int | None, later: bool) -> bool:
        """True if a conjunct holds in each round of a loop, or in round `number` of it.

        `later` says that it is not the first round. A round but the first has followed on one that
        found the loop to go on.
        """
        loop = self._loops.with_header(header)
        conjunct = conjunct if loop is None else self._signed(loop, conjunct)
        if loop is None or (
            (number == 0 or not (later or number)) and not self._at_first(loop, conjunct, header)
        ):
            return False
        if number == 0:
            return True
        for own in self._continues(loop):
            before = shifted(own, header, -1, number)
            if _key(before) == _key(conjunct) or implies(frozenset({before}), conjunct):
                return True
        return False

    def _at_first(self, loop: Loop, conjunct: Conjunct, header: int) -> bool:
        """True if a conjunct holds in the first round."""
        first = shifted(conjunct, header, 0, 0)
        poly = first.polynomial
        if poly is not None and poly.range()[0] >= 0:
            return True
        for block in self._ssa.cfg.blocks[header].preds:
            if self._loops.contains(loop, block):
                continue
            known = self._guards.of_block(block)
            if known is None or not (implies(known, first) or self._entered(block, header, first)):
                return False
        return True

    def _entered(self, block: int, header: int, conjunct: Conjunct) -> bool:
        """True if the way from a block into a loop is taken only where a conjunct holds."""
        cfg = self._ssa.cfg
        condition = cfg.edge_condition(block, header)
        branch = cfg.terminator(block)
        predicate = None if branch is None else self._ssa.guard_value(branch)
        if condition is None or predicate is None:
            return False
        needed = self._guards.of_predicate(predicate, condition[1])
        return needed is None or implies(needed, conjunct)

    def _continues(self, loop: Loop) -> list[Conjunct]:
        """What holds at the end of a round if another one follows."""
        found = self._coming.get(loop.header)
        if found is None:
            found = self._coming[loop.header] = []
            if len(loop.latches) == 1:
                cfg = self._ssa.cfg
                condition = cfg.edge_condition(loop.latches[0], loop.header)
                branch = cfg.terminator(loop.latches[0])
                predicate = None if branch is None else self._ssa.guard_value(branch)
                if condition is not None and predicate is not None:
                    needed = self._guards.of_predicate(predicate, condition[1])
                    found += [self._signed(loop, c) for c in sorted(needed or (), key=repr)]
        return found

    def _signed(self, loop: Loop, conjunct: Conjunct) -> Conjunct:
        """An unsigned comparison as a signed one, where its greater side is no negative number.

        That it is none must be known on every way into the loop.
        """
        if conjunct.polynomial is not None or conjunct.key[0] != "unsigned":
            return conjunct
        _, relation, low, high = conjunct.key
        if relation not in ("lt", "le") or low.range()[0] < 0:
            return conjunct
        wanted = Conjunct(high)
        for block in self._ssa.cfg.blocks[loop.header].preds:
            if self._loops.contains(loop, block):
                continue
            known = self._guards.of_block(block)
            if known is not None and not implies(known, wanted):
                return conjunct
        return Conjunct(high - low - 1 if relation == "lt" else high - low)


def _key(conjunct: Conjunct) -> tuple[object, ...]:
    if conjunct.polynomial is not None:
        return ("polynomial", conjunct.polynomial)
    kind, *data = conjunct.key
    if kind == "unequal":
        gap = data[0] - data[1]
        divisor = max(1, gap.gcd())
        if gap.constant % divisor == 0:
            gap = Polynomial(gap.table, {m: c // divisor for m, c in gap.terms.items()})
        return ("unequal", min((gap, -gap), key=repr))
    return tuple(conjunct.key)


__all__ = ["Rounds", "shifted"]
