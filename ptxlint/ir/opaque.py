"""Instructions with a fault: their meaning is taken away, so that no analysis reads them."""

from __future__ import annotations

from collections.abc import Collection

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Label, Register
from ptxlint.ir.shape import build_shape

MALFORMED = frozenset({"operand", "type"})
"""Codes of faults that leave an instruction without a meaning."""
OPAQUE = "?"
"""Opcode of such an instruction; the table lacks it. The mnemonic stays as it was written."""


def set_aside(module: Module, offsets: Collection[int]) -> None:
    """Make the instructions at these offsets opaque, and those that name what nothing declares.

    An opaque instruction may write what its first operand names, and memory, and reads all the
    rest. What moves control keeps its meaning.
    """
    names: dict[Shape, bool] = {}
    for function in module.functions:
        for instr in function.instrs:
            shape = instr.shape
            if shape not in names:
                names[shape] = bool(shape.guard) or Label in map(type, instr.args)
            if instr.offset in offsets or (names[shape] and _names_nothing(instr)):
                _set_aside(function, instr)


def _names_nothing(instr: Instr) -> bool:
    """True if a name is declared nowhere, or is no register where the guard stands."""
    if instr.shape.guard and not isinstance(instr.args[0], Register):
        return True
    return any(isinstance(atom, Label) and atom.target < 0 for atom in instr.args)


def _set_aside(function: Function, instr: Instr) -> None:
    shape, args = instr.shape, instr.args
    guard, name = shape.guard, OPAQUE
    if shape.row.terminator or shape.row.is_call:
        name = shape.mnemonic
        if guard and not isinstance(args[0], Register):
            args = (_unknown_predicate(function, instr), *args[1:])
    elif guard and not isinstance(args[0], Register):
        guard = ""
    made = build_shape(guard, name, (), shape.patterns, tuple(map(type, args)))
    made.mnemonic = shape.mnemonic
    twin = Instr(made, args, instr.index, instr.offset, instr.loc)
    instr.shape, instr.opcode, instr.args = made, made.opcode, args
    instr.defs, instr.uses = twin.defs, twin.uses


def _unknown_predicate(function: Function, instr: Instr) -> Register:
    """A predicate of unknown value, so that a conditional branch stays one."""
    register = Register("?", "pred", len(function.registers), 0, instr.offset)
    function.registers.append(register)
    return register
