"""What a kernel is given: its parameters, the place of its threads, memory.

Both languages name them alike here, so that what decides in PTX can be looked for in the machine
code that was assembled from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.ir.function import Function

WORD: Final = 4
_FIRST: Final = {
    "sm_75": 0x160, "sm_80": 0x160, "sm_86": 0x160, "sm_87": 0x160, "sm_89": 0x160,
    "sm_90": 0x210, "sm_100": 0x380, "sm_103": 0x380, "sm_110": 0x380, "sm_120": 0x380,
    "sm_121": 0x380,
}  # fmt: skip
"""Where in constant bank 0 a kernel's parameters start (EIATTR_PARAM_CBANK of cubins, measured)."""


class Input(NamedTuple):
    """One thing that a kernel is given. `kind` is `param` (`at` is the address of a word in
    constant bank 0, where parameters lie), `ctaid` (`at` is its axis, 0 to 2), `thread` (a thread's
    number, or its lane's), `memory` (what was loaded), or `any`: it may be each of them."""

    kind: str
    at: int = 0


THREAD: Final = Input("thread")
MEMORY: Final = Input("memory")
ANY: Final = Input("any")


def words(address: int, size: int) -> list[Input]:
    """The words that so many bytes of constant bank 0 lie in."""
    return [Input("param", at) for at in range(address // WORD * WORD, address + size, WORD)]


def parameter_addresses(fn: Function, arch: str) -> dict[str, int]:
    """Where each parameter of a kernel lies in constant bank 0: one after the other, each at a
    multiple of its alignment (PTX ISA, "Kernel Function Parameters"; EIATTR_KPARAM_INFO of cubins
    says the same). Nothing for an architecture that is not known; those behind a parameter of
    unknown size are left out."""
    found: dict[str, int] = {}
    at = _FIRST.get(arch.rstrip("af"))
    if at is None:
        return found
    for variable in fn.params:
        size = variable.size
        if size is None:
            break
        element = size
        for extent in variable.dims:
            element //= extent or 1
        # `.ptr .align` speaks of what is pointed to, not of the parameter.
        align = element if "ptr" in variable.attributes else variable.align or element
        at = -(-at // align) * align
        found[variable.name] = at
        at += size
    return found


__all__ = ["ANY", "MEMORY", "THREAD", "WORD", "Input", "parameter_addresses", "words"]
