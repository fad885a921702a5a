"""A function at the place where it is called: which registers and memory are its own.

Device functions are laid out anew for each call, so that a register is one number in the whole
program and a call is a jump. A function that calls itself has no such layout.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from ptxlint.dynamic.emulator.layout import Layout
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register, Symbol


class Place(NamedTuple):
    """Where a named thing lies: an offset in a state space (a device address if it is global)."""

    space: str
    offset: int


class Frame:
    """One function in a program. `base` is the number of its first register."""

    def __init__(
        self, function: Function, base: int, layout: Layout, outer: Frame | None = None
    ) -> None:
        self.function = function
        self.base = base
        self.outer = outer
        self._layout = layout
        self._own: dict[str, Place] = {}
        for variable in function.variables:
            if variable.space in ("local", "param"):
                offset = layout.reserve_local(variable)
                self._own[variable.name] = Place("local", offset)
            elif variable.space == "shared":
                self._own[variable.name] = Place("shared", layout.within(function, variable))
        if outer is None:
            for name, offset in layout.parameters.items():
                self._own[name] = Place("param", offset)
        else:
            for variable in (*function.params, *function.returns):
                if variable.space == "param":
                    self._own[variable.name] = Place("local", layout.reserve_local(variable))

    @cached_property
    def read(self) -> frozenset[Register]:
        """Registers that an instruction of the function reads."""
        return frozenset(r for instr in self.function.instrs for r in instr.uses)

    def number(self, register: Register) -> int:
        """The number of a register in the program."""
        return self.base + register.index

    def place(self, instr: Instr, symbol: Symbol) -> Place:
        """Where a variable or parameter lies. Raises `UnsupportedError` if that is not known."""
        found = self._own.get(symbol.name)
        if found is None:
            known = self._layout.variable(symbol.name)
            if known is None:
                raise UnsupportedError(instr, f"`{symbol.name}` is not declared in this file")
            found = Place(*known)
        return found

    def address_of(self, instr: Instr, symbol: Symbol) -> int:
        """The number that stands for a variable's address, in its own state space."""
        return self.place(instr, symbol).offset

    def is_within(self, function: Function) -> bool:
        """True if a function is this one or one that called it."""
        frame: Frame | None = self
        while frame is not None:
            if frame.function is function:
                return True
            frame = frame.outer
        return False


__all__ = ["Frame", "Place"]
