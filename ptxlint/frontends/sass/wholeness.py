"""Whether a listing is whole: an assembler ends each function, and leads no branch out of it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Label
from ptxlint.source import Problem

_HINT = "print it anew: nvdisasm -c -gi FILE"
_CODE = "cut"


def faults(functions: list[Function], end: int) -> Iterator[Problem]:
    """What says that a part is missing. `end` is the length of the text."""
    for fn in functions:
        if not fn.instrs:
            message = f"there is no instruction of `{fn.name}`"
            yield Problem(min(fn.offset, end), message, _HINT, _CODE)
            continue
        last = next((i for i in reversed(fn.instrs) if i.opcode != "NOP"), fn.instrs[-1])
        if _goes_on(last):
            message = f"the code of `{fn.name}` ends in its middle"
            yield Problem(last.offset, message, _HINT, _CODE)
        yield from _lost(fn)


def _goes_on(instr: Instr) -> bool:
    """True if an instruction stands behind this one in any whole function."""
    row = instr.shape.row
    return bool(instr.shape.guard) or not (row.terminator or row.is_call)


def _lost(fn: Function) -> Iterator[Problem]:
    """Labels that branches lead to, and that stand nowhere."""
    met: set[str] = set()
    for instr in fn.instrs:
        for atom in instr.args:
            if not isinstance(atom, Label) or atom.target >= 0 or atom.name in met:
                continue
            # Addresses of JSON are those of the section, from which it takes functions apart.
            if not atom.name.startswith("0x"):
                met.add(atom.name)
                message = f"`{atom.name}` stands nowhere in `{fn.name}`"
                yield Problem(instr.offset, message, _HINT, _CODE)


__all__ = ["faults"]
