"""How often a loop can come round, where constants decide that.

Loops of few rounds that compilers did not unroll count with constants: up to a number, until two
numbers are equal, or by a flag that is true in the first round alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptxlint.cfg.loops import Loop, LoopForest
from ptxlint.dataflow.polynomial import Polynomial
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
) -> int | None:
    """The greatest number that a round can have, the first one being 0; None if not known.

    `operand` gives an instruction's operand in terms of the loop's index.
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
    return _first_failure(a - b, relation if goes_on else _FLIPPED[relation], loop)


def _first_failure(gap: Polynomial, relation: str, loop: Loop) -> int | None:
    """The first K for which `start + step * K` has no such relation to 0."""
    start, step = gap.constant, 0
    atoms = gap.table.atoms
    for monomial, coefficient in gap.terms.items():
        if not monomial:
            continue
        atom = atoms[monomial[0]]
        if len(monomial) > 1 or atom.kind != "index" or atom.data[0] != loop.header:
            return None
        step = coefficient
    if relation in ("gt", "ge"):
        start, step, relation = -start, -step, "lt" if relation == "gt" else "le"
    if relation == "ne":
        if not step:
            return None
        index, left = divmod(-start, step)
        return None if left or index < 0 else index
    if relation not in ("lt", "le") or step <= 0:
        return None
    if relation == "lt":
        start += 1
    # start + step K <= 0 fails first beyond -start / step.
    return max(0, -start // step + 1)
