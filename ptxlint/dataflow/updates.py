"""What running a kernel again on its own result would do: how loaded numbers enter stored ones.

A function f of what a cell held is *settled* if f(f(x)) = f(x): a copy, a maximum. It is *shifted*
if it is a x + b with a and b of other data: done twice that is a a x + a b + b, another number but
for special data. *Moved* numbers are copied to a part of a register or of a vector that may be
another cell's. All else is *unclear*.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT
from ptxlint.dataflow.value_flow import COPY, EXTREME, FACTOR, OTHER, TERM, ValueFlow
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Vector

SETTLED: Final = 0
MOVED: Final = 1
SHIFTED: Final = 2
UNCLEAR: Final = 3

_SHIFTING: Final = frozenset("add inc dec xor".split())
_SETTLING: Final = frozenset("min max and or".split())
_SUMS: Final = frozenset("add sub mul mad fma neg".split())
_FROM_OUTSIDE: Final = frozenset({"global", "param", "const"})
"""Memory that is none of the CTA's own."""
_MOST_VALUES: Final = 20_000


class Effect(NamedTuple):
    """An instruction by which a loaded number leaves the registers of its thread, and what it has
    become there: `SETTLED`, `MOVED`, `SHIFTED` or `UNCLEAR`."""

    instr: Instr
    change: int


def change_by_atomic(instr: Instr) -> int:
    """What an atomic makes of a cell that it is done to again with the same operand."""
    words = set(instr.shape.modifiers)
    if words & _SHIFTING:
        return SHIFTED
    return SETTLED if words & _SETTLING else UNCLEAR


def effects(flow: ValueFlow, load: Instr) -> list[Effect] | None:
    """Where what an instruction loads has an effect; None if that is too much to follow."""
    reached = _reached(flow, load)
    if reached is None:
        return None
    found: dict[int, Effect] = {}
    for part, value in enumerate(flow.ssa.def_values[load.index]):
        for made, change in _changes(flow, value, reached).items():
            for user in flow.ssa.instr_users(made):
                if _has_effect(user):
                    how = max(change, _stored(flow, user, made, part))
                    before = found.get(user.index)
                    worst = how if before is None else max(how, before.change)
                    found[user.index] = Effect(user, worst)
    return [found[index] for index in sorted(found)]


def matters(flow: ValueFlow, load: Instr) -> bool:
    """True if what is loaded is used for more than to be one arm of a choice, which the other arm
    may be made of."""
    ssa = flow.ssa
    work = list(ssa.def_values[load.index])
    seen = set(work)
    while work:
        value = work.pop()
        if any(map(_has_effect, ssa.instr_users(value))):
            return True
        for made, role in flow.results(value):
            kind = ssa.kind[made]
            opcode = ssa.cfg.function.instrs[ssa.instr[made]].opcode if kind == RESULT else ""
            if kind == MERGE or (opcode in ("selp", "slct") and role == COPY):
                continue
            if kind == RESULT and opcode not in ("mov", "cvt"):
                return True
            if made not in seen:
                seen.add(made)
                work.append(made)
    return False


def _has_effect(instr: Instr) -> bool:
    """True for what does something else than to compute a register."""
    row = instr.shape.row
    if row.terminator or row.is_call or not row.known:
        return True
    return bool(memory_of(instr.shape).writes)


def _reached(flow: ValueFlow, load: Instr) -> frozenset[int] | None:
    """All values that may depend on what is loaded, through memory of the CTA, too."""
    ssa = flow.ssa
    work = list(ssa.def_values[load.index])
    seen = set(work)
    is_shared = False
    while work:
        value = work.pop()
        new = [made for made, _ in flow.results(value)]
        if not is_shared and any(map(_writes_inside, ssa.instr_users(value))):
            is_shared = True
            new += _read_inside(flow)
        for made in new:
            if made not in seen:
                seen.add(made)
                work.append(made)
        if len(seen) > _MOST_VALUES:
            return None
    return frozenset(seen)


def _writes_inside(instr: Instr) -> bool:
    return not _FROM_OUTSIDE.issuperset(memory_of(instr.shape).writes)


def _read_inside(flow: ValueFlow) -> list[int]:
    """What is read from memory that the threads of a CTA share, or from their own."""
    ssa = flow.ssa
    return [
        value
        for instr in ssa.cfg.function.instrs
        if not _FROM_OUTSIDE.issuperset(memory_of(instr.shape).reads)
        for value in ssa.def_values[instr.index]
    ]


def _changes(flow: ValueFlow, start: int, reached: frozenset[int]) -> dict[int, int]:
    """What has become of a loaded number in each value that depends on it by registers."""
    found = {start: SETTLED}
    work = [start]
    while work:
        value = work.pop()
        for made, role in flow.results(value):
            change = max(found[value], _step(flow, made, role, reached))
            if found.get(made, -1) < change:
                found[made] = change
                work.append(made)
    return found


def _step(flow: ValueFlow, made: int, role: int, reached: frozenset[int]) -> int:
    """What one step of the flow does."""
    ssa = flow.ssa
    if ssa.kind[made] == PHI:
        return SETTLED
    instr = ssa.cfg.function.instrs[ssa.instr[made]] if ssa.kind[made] == RESULT else None
    opcode = "" if instr is None else instr.opcode
    if opcode == "mov" and instr is not None:
        return MOVED if any(isinstance(o, Vector) for o in instr.operands) else SETTLED
    if opcode in _SUMS and role in (COPY, OTHER):
        role = TERM
    # Two parts that both depend on it may be anything together: x / |x| is settled.
    alone = sum(source in reached for source, _ in flow.sources(made)) <= 1
    if not alone or opcode == "shfl" or role not in (COPY, EXTREME, TERM, FACTOR):
        return UNCLEAR
    return SETTLED if role in (COPY, EXTREME) else SHIFTED


def _stored(flow: ValueFlow, instr: Instr, value: int, part: int) -> int:
    """How a value enters an instruction with an effect: as the same part of what a store to global
    memory stores, as another one, or otherwise."""
    if instr.opcode != "st" or instr.shape.space != "global":
        return UNCLEAR
    address, *data = flow.operand_values(instr)
    parts = [v for operand in data for v in operand]
    if flow.ssa.guard_value(instr) == value or value in address or value not in parts:
        return UNCLEAR
    return SETTLED if parts.count(value) == 1 and parts.index(value) == part else MOVED


__all__ = [
    "MOVED", "SETTLED", "SHIFTED", "UNCLEAR", "Effect", "change_by_atomic", "effects", "matters",
]  # fmt: skip
