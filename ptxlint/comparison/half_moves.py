"""Constants that machine code writes as two halves: `HFMA2.MMA R5, -RZ, RZ, 1.875, 0` brings the
word 0x3f800000, which is 1 as f32, over the pipe of half-precision products.
"""

from __future__ import annotations

import struct

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Negated, SpecialRegister
from ptxlint.structure.canonical import constants

_SOURCES = 2
"""Factors of the product, which are zero in a move."""


def moved_word(instr: Instr) -> Immediate | None:
    """The word that a move by halves brings, the first of them above; None for what is none."""
    if instr.opcode != "HFMA2" or len(instr.operands) != 2 * _SOURCES + 1:
        return None
    factors = instr.operands[1 : 1 + _SOURCES]
    plain = [f.operand if isinstance(f, Negated) else f for f in factors]
    if not all(isinstance(f, SpecialRegister) and f.name == "RZ" for f in plain):
        return None
    halves = constants(instr)
    if len(halves) != 2:
        return None
    try:
        high, low = (struct.unpack("<H", struct.pack("<e", _float(h)))[0] for h in halves)
    except OverflowError:
        return None
    word = high << 16 | low
    return Immediate(f"{word:#x}", "int", word)


def _float(half: Immediate) -> float:
    return float(half.value) if half.kind == "int" else half.as_float()


__all__ = ["moved_word"]
