"""What each opcode does: one row or small function an opcode.

`lanewise` computations are pure functions on arrays; what touches memory, other lanes or the order
of execution lies in `ptxlint.dynamic.emulator.effects`.
"""

from __future__ import annotations

from ptxlint.dynamic.emulator.semantics import bits, comparing, converting, floating, integer
from ptxlint.dynamic.emulator.semantics.lanewise import Lanewise, Maker, UnsupportedError
from ptxlint.ir.instruction import Instr

_OTHERS: dict[str, Maker] = {**bits.ROWS, **comparing.ROWS, **converting.ROWS}


def lanewise(instr: Instr) -> Lanewise | None:
    """What an instruction computes; None if it is no computation within a lane.

    Raises `UnsupportedError` for a form that is not run.
    """
    opcode = instr.opcode
    maker = _OTHERS.get(opcode)
    if maker is None:
        rows = floating.ROWS if floating.is_floating(instr) else integer.ROWS
        maker = rows.get(opcode)
    if maker is None:
        return None
    try:
        return maker(instr)
    except KeyError as error:
        raise UnsupportedError(instr, f"no {error.args[0]} here") from None


__all__ = ["Lanewise", "UnsupportedError", "lanewise"]
