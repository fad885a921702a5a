"""How large the elements are that an access of packed registers holds."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Vector
from ptxlint.ir.types import BITS

_MAX_STEPS: Final = 8
_DEFAULT: Final = 4
"""Bytes of an element that nothing tells more of, as of a `cp.async`."""


def element_bytes(instr: Instr, ssa: Ssa) -> int:
    """The bytes of one element: of the type, or of what its registers are taken apart into or put
    together from."""
    size = BITS.get(instr.shape.type, 8 * _DEFAULT) // 8 or 1
    if instr.opcode == "st":
        data = instr.operands[1]
        count = len(data.elements) if isinstance(data, Vector) else 1
        values = ssa.use_values[instr.index][-count:]
        return min([size, *(_of_value(v, size, ssa, True) for v in values)])
    values = tuple(ssa.written(v) for v in ssa.def_values[instr.index])
    return min([size, *(_of_value(v, size, ssa, False) for v in values)])


def _of_value(value: int, size: int, ssa: Ssa, back: bool) -> int:
    """The bytes of the elements of one register, followed to its readers or back to its writer."""
    instrs = ssa.cfg.function.instrs
    work = [value]
    for current in work:
        if len(work) > _MAX_STEPS:
            break
        value = ssa.resolve(current)
        if back:
            made = [instrs[ssa.instr[value]]] if ssa.kind[value] == RESULT else []
            onward = ssa.operands[value] if ssa.kind[value] in (MERGE, PHI) else ()
        else:
            made = ssa.instr_users(current)
            onward = tuple(ssa.value_users(current))
        work += [v for v in onward if v not in work]
        for instr in made:
            part = _packed(instr, back)
            if part:
                inner = ssa.def_values[instr.index] if not back else ssa.use_values[instr.index]
                size = min(size, part)
                work += [v for v in inner if v not in work]
    return size


def _packed(instr: Instr, back: bool) -> int:
    """The bytes of one part that an instruction makes of a register, or makes it of."""
    if instr.shape.type.endswith("x2"):
        return BITS.get(instr.shape.type.removesuffix("x2"), 0) // 8
    vector = instr.operands[-1 if back else 0] if instr.opcode == "mov" else None
    if not isinstance(vector, Vector):
        return 0
    return BITS.get(instr.shape.type, 0) // 8 // len(vector.elements)


__all__ = ["element_bytes"]
