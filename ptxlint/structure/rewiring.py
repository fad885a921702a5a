"""Instructions that both kernels have, and that read, write or lead to something else in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Label, Register, Symbol

Pairs = Sequence[tuple[int, int]]
"""Places of instructions in both kernels that are taken for the same, in the order of the text."""


def rewired(
    old: Sequence[Instr], new: Sequence[Instr], pairs: Pairs
) -> Iterator[tuple[Instr, Instr]]:
    """The pairs whose operands are not each other's.

    A register is the one that the instruction taken for the last definition writes; a label is
    where the instruction taken for its target stands; a symbol the one that it was met as first.
    What is defined by instructions of one kernel alone is bound at its first use.
    """
    places = dict(pairs)
    places[len(old)] = len(new)
    registers: dict[Register, Register] = {}
    written: set[Register] = set()
    symbols: dict[str, str] = {}
    for old_at, new_at in pairs:
        a, b = old[old_at], new[new_at]
        uses = [registers.setdefault(x, y) is y for x, y in zip(a.uses, b.uses, strict=False)]
        is_same = all(uses)
        for x, y in zip(a.defs, b.defs, strict=False):
            # Virtual registers stay what they are; those of machine code are used again.
            if x in written and registers[x] is not y and not a.opcode[:1].isupper():
                is_same = False
            registers[x] = y
            written.add(x)
        for one, other in zip(a.args, b.args, strict=False):
            if isinstance(one, Label) and isinstance(other, Label):
                is_same &= _lead_alike(old_at - a.index, one, new_at - b.index, other, places)
            elif isinstance(one, Symbol) and isinstance(other, Symbol):
                is_same &= symbols.setdefault(one.name, other.name) == other.name
        if not is_same:
            yield a, b


def _lead_alike(
    old_start: int, old: Label, new_start: int, new: Label, places: Mapping[int, int]
) -> bool:
    """False if the targets of two labels are known not to be the same."""
    if old.target < 0 or new.target < 0:
        return old.target == new.target
    target = places.get(old_start + old.target)
    return target is None or target == new_start + new.target


__all__ = ["rewired"]
