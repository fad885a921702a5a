"""Functions of SASS: beside the instructions, their addresses and what their encoding tells."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.ir.function import Function


class Control(NamedTuple):
    """The scheduling bits of an instruction (bits 105 to 125 of its encoding on sm_70 and later;
    found by measurement: Jia and others, https://arxiv.org/abs/1804.06826, section 2).

    `stall` are cycles; `yields` whether another warp may go first; `write_barrier` and
    `read_barrier` the scoreboards that it sets, -1 for none; `waits` the scoreboards it waits for,
    `reuse` the operands kept for the next one, each as a mask.
    """

    stall: int
    yields: bool
    write_barrier: int
    read_barrier: int
    waits: int
    reuse: int


class SassFunction(Function):
    """A kernel or device function as machine code.

    `addresses` are the byte offsets of the instructions in the function's section, in order;
    `controls` their scheduling, empty unless the listing shows encodings.
    """

    __slots__ = ("addresses", "controls")

    def __init__(self, name: str, kind: str, offset: int) -> None:
        super().__init__(name, kind, (), (), (), {}, (), offset)
        self.is_declaration = False
        self.is_machine = True
        self.addresses: list[int] = []
        self.controls: list[Control] = []


def is_machine_code(fn: Function) -> bool:
    """True for a function of machine code."""
    return isinstance(fn, SassFunction)


def control_of(low: int, high: int) -> Control:
    """The scheduling that the two 64-bit words of an instruction hold."""
    word = (high << 64 | low) >> 105
    write, read = word >> 5 & 7, word >> 8 & 7
    return Control(
        word & 15,
        not word >> 4 & 1,
        -1 if write == 7 else write,
        -1 if read == 7 else read,
        word >> 11 & 63,
        word >> 17 & 15,
    )


__all__ = ["Control", "SassFunction", "control_of", "is_machine_code"]
