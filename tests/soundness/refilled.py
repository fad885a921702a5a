"""Kernels whose guarded loads leave another number in lanes beyond the end."""

from __future__ import annotations

import re

from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Register

_LITERAL = re.compile(r"(,\s*)(-?\w+)(\s*;)")


def refilled(text: str, numbers: dict[int, str]) -> str | None:
    """The text with other fills: by 32-bit pattern of what they are, what they become (a literal).

    None if no guarded load of global memory has such a fill.
    """
    module = parse(text, "refilled.ptx")
    (kernel,) = module.kernels()
    edits: dict[int, str] = {}
    for instr in kernel.instrs:
        if instr.guard is None or instr.opcode != "ld" or instr.shape.space != "global":
            continue
        for register in instr.defs:
            source = _constant(kernel, instr, register)
            if source is not None and _is_fill_alone(kernel, source):
                value = source.operands[1]
                assert isinstance(value, Immediate)
                if value.value in numbers:
                    edits[source.offset] = numbers[value.value]
    if not edits:
        return None
    out = text
    for offset in sorted(edits, reverse=True):
        end = out.index("\n", offset)
        line = out[offset:end]
        changed = _LITERAL.sub(lambda m, at=offset: m[1] + edits[at] + m[3], line, count=1)
        out = out[:offset] + changed + out[end:]
    return out


def _is_fill_alone(kernel: Function, source: Instr) -> bool:
    """True if a literal of 32 bits goes nowhere but into what guarded loads overwrite."""
    (register,) = source.defs
    loaded = {r for i in kernel.instrs if i.opcode == "ld" and i.guard is not None for r in i.defs}
    users = [i for i in kernel.instrs if register in i.uses]
    return register.type in ("b32", "f32", "u32") and all(
        i.opcode == "mov" and all(r in loaded for r in i.defs) for i in users
    )


def _constant(kernel: Function, load: Instr, register: Register) -> Instr | None:
    """The move of a literal that a load's register holds before it, through one other move."""
    for _ in range(2):
        before = [i for i in kernel.instrs[: load.index] if register in i.defs]
        if not before or before[-1].opcode != "mov" or len(before[-1].operands) != 2:
            return None
        source = before[-1].operands[1]
        if isinstance(source, Immediate):
            return before[-1]
        if not isinstance(source, Register):
            return None
        register, load = source, before[-1]
    return None
