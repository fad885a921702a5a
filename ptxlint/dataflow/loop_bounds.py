"""How often a loop can come round, where constants decide that.

Loops of few rounds that compilers did not unroll count with constants: up to a number, until two
numbers are equal, or by a flag that is true in the first round alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptxlint.cfg.loops import Loop, LoopForest
from ptxlint.dataflow.polynomial import INFINITY, Polynomial
from ptxlint.dataflow.ssa_values import PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.pattern import fold

_FLIPPED: Final = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


def constant_predicate(ssa: Ssa, value: int) -> bool | None:
    """What a predicate is that is a constant moved to a register; None for any other."""
    root, same = ssa.root(ssa.resolve(value))
    if ssa.kind[root] != RESULT:
        return None
    instr = ssa.cfg.function.instrs[ssa.instr[root]]
    if instr.opcode != "mov" or len(instr.operands) != 2:
        return None
    constant = fold(instr.operands[1])
    return None if constant is None else bool(constant) == same


def first_round_flag(ssa: Ssa, loops: LoopForest, value: int) -> tuple[Loop, bool] | None:
    """The loop in whose first round alone a header phi is the given constant, the opposite of
    what it is in all other rounds; None if it is no such flag."""
    if ssa.kind[value] != PHI:
        return None
    block = ssa.phi_block[value]
    loop = loops.with_header(block)
    if loop is None:
        return None
    first: set[bool | None] = set()
    other: set[bool | None] = set()
    for source, operand in zip(ssa.phi_sources(block), ssa.operands[value], strict=True):
        inside = source >= 0 and loops.contains(loop, source)
        (other if inside else first).add(constant_predicate(ssa, operand))
    if len(first) != 1 or len(other) != 1:
        return None
    (begin,), (later,) = first, other
    return None if begin is None or later is None or begin == later else (loop, begin)


def last_index(
    ssa: Ssa,
    loops: LoopForest,
    loop: Loop,
    operand: Callable[[Instr, int], Polynomial | None],
    enters: Callable[[Polynomial], bool] = lambda poly: poly.range()[0] >= 0,
) -> int | None:
    """A bound of the number that a round can have, the first one being 0; None if not known.

    `operand` gives an instruction's operand in terms of the loop's index, `enters` tells whether
    a number is not negative where the loop is entered.
    """
    if len(loop.latches) != 1:
        return None
    cfg = ssa.cfg
    condition = cfg.edge_condition(loop.latches[0], loop.header)
    branch = cfg.terminator(loop.latches[0])
    predicate = None if branch is None else ssa.guard_value(branch)
    if condition is None or predicate is None:
        return None
    root, same = ssa.root(ssa.resolve(predicate))
    goes_on = condition[1] == same
    flag = first_round_flag(ssa, loops, root)
    if flag is not None and flag[0] is loop:
        # The second round is the last one: the flag no longer says to go on.
        return 1 if flag[1] == goes_on else None
    if ssa.kind[root] != RESULT or ssa.result[root]:
        return None
    instr = cfg.function.instrs[ssa.instr[root]]
    shape = instr.shape
    if shape.opcode != "setp" or len(instr.operands) != 3 or shape.type[0] not in "bs":
        return None
    relation = shape.modifiers[0]
    if relation not in _FLIPPED:
        return None
    a, b = operand(instr, 1), operand(instr, 2)
    if a is None or b is None:
        return None
    relation = relation if goes_on else _FLIPPED[relation]
    return _first_failure(a - b, relation, loops, loop, enters)


def _first_failure(
    gap: Polynomial,
    relation: str,
    loops: LoopForest,
    loop: Loop,
    enters: Callable[[Polynomial], bool],
) -> int | None:
    """The first K for which `start + step * K` has no such relation to 0, or a bound of it where
    the start is bounded."""
    step = 0
    atoms = gap.table.atoms
    start: dict[tuple[int, ...], int] = {}
    for monomial, coefficient in gap.terms.items():
        inner = [atoms[number] for number in monomial]
        if len(inner) == 1 and inner[0].kind == "index" and inner[0].data[0] == loop.header:
            step = coefficient
            continue
        for atom in inner:
            parts = [atoms[number] for number in atom.inner]
            if any(a.block >= 0 and loops.contains(loop, a.block) for a in parts):
                return None
        start[monomial] = coefficient
    rest = Polynomial(gap.table, start)
    low, high = rest.range()
    if relation in ("gt", "ge"):
        low, high, step = -high, -low, -step
        relation = "lt" if relation == "gt" else "le"
    if relation == "ne":
        if low == high and step:
            index, left = divmod(-low, step)
            return None if left or index < 0 else index
        # A step of one meets every number that is not behind it.
        if step < 0:
            low, step, rest = -high, -step, -rest
        return -low if step == 1 and low > -INFINITY and enters(-rest) else None
    if relation not in ("lt", "le") or step <= 0 or low <= -INFINITY:
        return None
    if relation == "lt":
        low += 1
    # start + step K <= 0 fails first beyond -start / step.
    return max(0, -low // step + 1)
