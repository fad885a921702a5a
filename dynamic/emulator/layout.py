"""Where the variables of a module and the parameters of a kernel lie."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.ir.function import Function, Variable
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Immediate, Operand, Symbol, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import bits

_LEAST_ALIGNMENT: Final = 16
"""Of shared memory, in bytes."""


class Layout:
    """Offsets of one kernel of a module.

    `parameters` are byte offsets in parameter memory; `shared` and `local` are the bytes in use so
    far, dynamic shared memory not counted: it begins at `dynamic`. `globals` are the variables for
    which global memory must be set aside, with their contents.
    """

    def __init__(self, module: Module, kernel: Function) -> None:
        self.kernel = kernel
        self.parameters: dict[str, int] = {}
        self.parameter_bytes = 0
        self.shared = 0
        self.local = 0
        self._extern: dict[str, int] = {}
        """Names of dynamic shared memory, each with the alignment that it asks for."""
        self._placed: dict[str, tuple[str, int]] = {}
        self.globals: dict[str, tuple[Variable, NDArray[np.uint8] | None]] = {}
        self._within: dict[tuple[str, str], int] = {}
        for variable in kernel.params:
            self._add_parameter(variable)
        for function in module.functions:
            for variable in function.variables:
                if variable.space == "shared":
                    key = function.name, variable.name
                    self._within[key] = self._shared_offset(variable)
        for variable in module.variables.values():
            if variable.space == "shared":
                self._placed[variable.name] = ("shared", self._shared_offset(variable))
            elif variable.space in ("global", "const"):
                self.globals[variable.name] = (variable, _contents(variable))

    def _add_parameter(self, variable: Variable) -> None:
        size = variable.size or 0
        alignment = max(variable.align, bits(variable.type) // 8, 1)
        self.parameter_bytes = _up(self.parameter_bytes, alignment)
        self.parameters[variable.name] = self.parameter_bytes
        self.parameter_bytes += size

    def reserve_local(self, variable: Variable) -> int:
        """Room for a variable in the local memory of each lane."""
        self.local = _up(self.local, max(variable.align, bits(variable.type) // 8, 1))
        offset, self.local = self.local, self.local + (variable.size or 0)
        return offset

    def within(self, function: Function, variable: Variable) -> int:
        """Where a shared variable of a function lies."""
        if variable.name in self._extern:
            return self.dynamic
        return self._within[function.name, variable.name]

    def _shared_offset(self, variable: Variable) -> int:
        """Room for a variable in shared memory; none for one whose size the launch tells."""
        if variable.size is None or "extern" in variable.linkage:
            self._extern[variable.name] = variable.align
            return 0
        self.shared = _up(self.shared, max(variable.align, _LEAST_ALIGNMENT))
        offset, self.shared = self.shared, self.shared + variable.size
        return offset

    @property
    def dynamic(self) -> int:
        """Where dynamic shared memory begins: behind what is declared with a size. Without any,
        that is where shared memory ends."""
        if not self._extern:
            return self.shared
        return _up(self.shared, max(*self._extern.values(), _LEAST_ALIGNMENT))

    def place_global(self, name: str, address: int) -> None:
        """Say where a global variable was put."""
        self._placed[name] = ("global", address)

    def variable(self, name: str) -> tuple[str, int] | None:
        """The state space and offset of a variable of the module."""
        if name in self._extern:
            return "shared", self.dynamic
        return self._placed.get(name)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _contents(variable: Variable) -> NDArray[np.uint8] | None:
    """The bytes that a variable starts with; None for zeros, as PTX has it."""
    # What initialises references to textures and samplers are settings, not bytes.
    if variable.initializer is None or not variable.size or variable.type.endswith("ref"):
        return None
    width = max(1, bits(variable.type) // 8)
    out = np.zeros(variable.size, dtype=np.uint8)
    for at, number in enumerate(_numbers(variable.initializer)):
        piece = (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        out[at * width : (at + 1) * width] = np.frombuffer(piece, dtype=np.uint8)
    return out


def _numbers(operand: Operand) -> list[int]:
    if isinstance(operand, Vector):
        return [number for element in operand.elements for number in _numbers(element)]
    if isinstance(operand, Immediate):
        return [operand.value]
    if isinstance(operand, Symbol):
        return [0]
    return [fold(operand) or 0]


__all__ = ["Layout"]
