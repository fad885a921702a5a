"""What an instruction computes in each lane by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.ir.instruction import Instr

Computation: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"


class Lanewise(NamedTuple):
    """A computation on arrays: one argument an operand behind the destination, of the types
    `sources`, and one result a destination, of the types `results`.

    With `reads_carry` the condition code comes as one more argument, with `writes_carry` it is one
    more result (both as booleans).
    """

    compute: Computation
    sources: tuple[str, ...]
    results: tuple[str, ...]
    reads_carry: bool = False
    writes_carry: bool = False


Maker: TypeAlias = Callable[[Instr], Lanewise]


class UnsupportedError(Exception):
    """An instruction that the emulator does not run, and why or what to do instead."""

    def __init__(self, instr: Instr, reason: str = "") -> None:
        super().__init__(reason or "not run by the emulator")
        self.instr = instr
        self.reason = reason


def alike(compute: Computation, type_name: str, arity: int) -> Lanewise:
    """A computation whose operands and result all have one type."""
    return Lanewise(compute, (type_name,) * arity, (type_name,))


__all__ = ["Computation", "Lanewise", "Maker", "UnsupportedError", "alike"]
