"""Constants that machine code keeps in memory: `DMUL R4, R4, c[0x2][0x8]` is the same text whatever
lies there, and lies elsewhere when another constant is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.comparison.records import KernelRecord
from ptxlint.frontends.cubin import constant_memory
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Immediate, Operand
from ptxlint.structure.alignment import Alignment, Changed, Redeclared
from ptxlint.structure.canonical import canonical

_PARAMETERS: Final = 0
"""The bank that a launch fills."""
_DOUBLES: Final = frozenset(("DADD", "DMUL", "DFMA", "DSETP"))


class _Read(NamedTuple):
    """What an instruction reads of a bank: the operand's offset, and the value there; None if the
    file does not say."""

    offset: Immediate
    value: Immediate | None


def with_memory(
    alignment: Alignment, old: KernelRecord, new: KernelRecord, notes: list[str]
) -> Alignment:
    """How two kernels of machine code are alike once what lies in constant memory counts, and where
    it lies does not."""
    ours, theirs = canonical(old.placed).instrs, canonical(new.placed).instrs
    if not any(any(_addresses(i)) for i in (*ours, *theirs)):
        return alignment
    if old.cubin is None or new.cubin is None:
        which = old if old.cubin is None else new
        notes.append(f"constants in memory are not compared: {which.path} does not show them")
        return alignment
    before, after = (constant_memory(k.cubin or b"", k.name) for k in (old, new))
    if alignment.kind == "structural":
        banks = sorted(b for b in {*before, *after} if before.get(b) != after.get(b))
        declared = tuple(
            Redeclared(f"constant bank {bank}", _hex(before.get(bank)), _hex(after.get(bank)))
            for bank in banks
        )
        return alignment._replace(declared=(*alignment.declared, *declared))
    # An operand names its bank first, so that the offsets come in the same order on both sides.
    changed = list(alignment.changed)
    for a, b in zip(ours, theirs, strict=True):
        for mine, yours in zip(_reads(a, before), _reads(b, after), strict=False):
            changed = [c for c in changed if c.old_constant is not mine.offset]
            if mine.value is None or yours.value is None:
                if mine.offset.value != yours.offset.value:
                    changed.append(Changed(a, b, mine.offset, yours.offset))
            elif mine.value.value != yours.value.value:
                changed.append(Changed(a, b, mine.value, yours.value))
    kind = alignment.kind
    if changed or alignment.declared:
        kind = "constants"
    elif kind == "constants":
        kind = "renamed"
    return alignment._replace(kind=kind, changed=tuple(changed))


def _reads(instr: Instr, memory: dict[int, bytes]) -> Iterator[_Read]:
    width = 8 if instr.opcode in _DOUBLES or "64" in instr.shape.modifiers else 4
    for bank, offset in _addresses(instr):
        held = memory.get(bank, b"")[offset.value : offset.value + width]
        value = None
        if len(held) == width:
            bits = int.from_bytes(held, "little")
            value = Immediate(f"{bits:#x}", "int", bits)
        yield _Read(offset, value)


def _addresses(instr: Instr) -> Iterator[tuple[int, Immediate]]:
    """The banks and offsets that an instruction names, `c[0x2][0x8]`."""
    for operand in instr.operands:
        yield from _named(operand)


def _named(operand: Operand) -> Iterator[tuple[int, Immediate]]:
    if not isinstance(operand, Address):
        inner = getattr(operand, "operand", None)
        if inner is not None:
            yield from _named(inner)
        return
    banks = [part for part in operand.rest if isinstance(part, Immediate)]
    if len(banks) != 1 or banks[0].value == _PARAMETERS or not isinstance(operand.base, Immediate):
        return
    yield banks[0].value, operand.base


def _hex(held: bytes | None) -> str:
    return "" if held is None else held.hex(" ", 4)


__all__ = ["with_memory"]
