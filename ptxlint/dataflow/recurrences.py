"""What a round of a loop leaves as it was: `h = a * h + x` where a is 1 and x is 0.

Padding of one round goes on to the next ones with what the loop carries. Where the padding is the
neutral element of each step on the way round, nothing of it does.
"""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import FORMATS, AbstractFloat
from ptxlint.dataflow.padding_values import Evaluator, as_float
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand

_DEEPEST: Final = 48
_MOST_VALUES: Final = 256
_STEPS: Final = frozenset({"mov", "selp", "add", "sub", "mul", "fma"})
_ENDS: Final = frozenset({"ld", "ldmatrix", "atom", "shfl", "redux", "mma", "wgmma", "wmma",
                          "tcgen05", "call"})  # fmt: skip
"""What brings data of other threads, to be judged by itself."""
_ZERO: Final = 0.0
_ONE: Final = 1.0


class Recurrences:
    """Answers about what the loops of one function carry."""

    def __init__(self, ssa: Ssa, reductions: Reductions) -> None:
        self._ssa = ssa
        self._reductions = reductions
        self._loops = reductions.loops
        self._reaching: dict[tuple[int, int], bool] = {}

    def keeps(self, evaluator: Evaluator, phi: int, carried: int) -> bool:
        """True if a round in which the evaluator's hypothesis holds hands on the phi as it was.

        `carried` is what it hands on.
        """
        if not self._may_keep(phi, carried):
            return False
        seen: dict[int, bool] = {}
        return self._is_same(evaluator, phi, carried, seen, _DEEPEST)

    def _may_keep(self, phi: int, carried: int) -> bool:
        """True if what is handed on is made of the phi by steps that have neutral elements."""
        key = phi, carried
        found = self._reaching.get(key)
        if found is None:
            found = self._reaching[key] = self._reaches(phi, self._ssa.resolve(carried))
        return found

    def _reaches(self, phi: int, carried: int) -> bool:
        ssa = self._ssa
        work, seen = [carried], {carried}
        while work and len(seen) < _MOST_VALUES:
            value = work.pop()
            if value == phi:
                return True
            instr = self._reductions.definition(value)
            is_step = instr is not None and instr.opcode in _STEPS and len(instr.defs) == 1
            is_join = ssa.kind[value] in (MERGE, PHI)
            for operand in map(ssa.resolve, ssa.operands[value] if is_step or is_join else ()):
                if operand not in seen:
                    seen.add(operand)
                    work.append(operand)
        return False

    def entering(self, phi: int, carried: int) -> list[int]:
        """The values that go into what a loop makes of a phi on the way to the next round.

        None of them is made of the phi; nothing where it does not go on by arithmetic. What a join
        of branches takes instead of it goes on as it is, with what is known of it.
        """
        ssa = self._ssa
        above: dict[int, list[int]] = {}
        work = [ssa.resolve(carried)]
        while work and len(above) < _MOST_VALUES:
            value = work.pop()
            if value in above:
                continue
            instr = self._reductions.definition(value)
            is_header = (
                ssa.kind[value] == PHI and self._loops.with_header(ssa.phi_block[value]) is not None
            )
            ends = is_header or (instr is not None and instr.opcode in _ENDS)
            above[value] = [] if ends else [ssa.resolve(v) for v in ssa.operands[value]]
            work += above[value]
        users: dict[int, list[int]] = {}
        for value, operands in above.items():
            for operand in operands:
                users.setdefault(operand, []).append(value)
        made, work = {phi}, [phi]
        while work:
            for user in users.get(work.pop(), ()):
                if user not in made:
                    made.add(user)
                    work.append(user)
        made.discard(phi)
        inside = [v for value in sorted(made) if ssa.kind[value] != PHI for v in above[value]]
        return [v for v in dict.fromkeys(inside) if v != phi and v not in made]

    def _is_same(
        self, evaluator: Evaluator, phi: int, value: int, seen: dict[int, bool], depth: int
    ) -> bool:
        value = self._ssa.resolve(value)
        if value == phi:
            return True
        if depth <= 0:
            return False
        known = seen.get(value)
        if known is None:
            seen[value] = False
            known = seen[value] = self._is_made_same(evaluator, phi, value, seen, depth - 1)
        return known

    def _is_made_same(
        self, evaluator: Evaluator, phi: int, value: int, seen: dict[int, bool], depth: int
    ) -> bool:
        ssa = self._ssa
        kind = ssa.kind[value]
        if kind == PHI:
            if self._loops.with_header(ssa.phi_block[value]) is not None:
                return False
            return all(self._is_same(evaluator, phi, v, seen, depth) for v in ssa.operands[value])
        if kind == MERGE:
            predicate, *arms = ssa.operands[value]
            return self._chosen(evaluator, phi, predicate, arms, seen, depth)
        instr = self._reductions.definition(value) if kind == RESULT else None
        if instr is None or instr.guard is not None or len(instr.defs) != 1:
            return False
        read = [self._reductions.read(instr, o) for o in instr.operands[1:]]
        opcode = instr.opcode
        if opcode == "mov" and read[0] is not None:
            return self._is_same(evaluator, phi, read[0], seen, depth)
        if opcode == "selp":
            first, second, predicate_value = read
            if first is None or second is None or predicate_value is None:
                return False
            return self._chosen(evaluator, phi, predicate_value, [first, second], seen, depth)
        if instr.shape.type not in FORMATS or instr.shape.has("sat"):
            return False
        same = [v is not None and self._is_same(evaluator, phi, v, seen, depth) for v in read]
        return self._is_neutral(evaluator, instr, same)

    def _chosen(
        self,
        evaluator: Evaluator,
        phi: int,
        predicate: int,
        arms: list[int],
        seen: dict[int, bool],
        depth: int,
    ) -> bool:
        """True if what a predicate chooses of two values is the phi."""
        word = evaluator.of(predicate).word
        if isinstance(word, int):
            arms = [arms[0 if word else 1]]
        return all(self._is_same(evaluator, phi, v, seen, depth) for v in arms)

    def _is_neutral(self, evaluator: Evaluator, instr: Instr, same: list[bool]) -> bool:
        """True if all but one operand, the phi, are neutral."""
        operands = instr.operands[1:]

        def is_exactly(at: int, number: float) -> bool:
            return self._number(evaluator, instr, operands[at]).point == number

        opcode = instr.opcode
        if opcode in ("add", "mul") and len(operands) == 2:
            neutral = _ZERO if opcode == "add" else _ONE
            return any(same[at] and is_exactly(1 - at, neutral) for at in (0, 1))
        if opcode == "sub":
            return same[0] and is_exactly(1, _ZERO)
        if opcode != "fma":
            return False
        if same[2]:
            mode = floats.Mode(FORMATS[instr.shape.type])
            a, b = (self._number(evaluator, instr, o) for o in operands[:2])
            return floats.multiply(a, b, mode).is_zero
        return is_exactly(2, _ZERO) and any(same[at] and is_exactly(1 - at, _ONE) for at in (0, 1))

    def _number(self, evaluator: Evaluator, instr: Instr, operand: Operand) -> AbstractFloat:
        return as_float(evaluator.held_by(instr, operand).word, FORMATS[instr.shape.type])


__all__ = ["Recurrences"]
