"""Tensor maps that a kernel makes: which pointers they lead to.

A kernel writes a map field by field into shared memory (`tensormap.replace`), copies it to scratch
memory (`tensormap.cp_fenceproxy`) and hands its address to `cp.async.bulk.tensor` (PTX ISA,
"tensormap.replace"). Which of its maps a copy uses is not followed: it is one of all.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxlint.dataflow.access import Accesses
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address


def uses_map(instr: Instr) -> bool:
    """True for what writes to global memory through a tensor map, or a tensor map itself."""
    shape = instr.shape
    if shape.opcode == "tensormap":
        return shape.has("cp_fenceproxy")
    return shape.opcode == "cp" and shape.has("tensor") and shape.has("bulk")


def led_to(
    function: Function, accesses: Accesses, writes: Iterable[Instr]
) -> frozenset[str] | None:
    """The pointer parameters that writes for which `uses_map` holds may go to; None if that is not
    known, as with maps that the host made."""
    targets: set[str] = set()
    places: set[str] = set()
    copies = []
    for instr in writes:
        if instr.shape.opcode == "tensormap":
            places.add(_base(accesses, instr))
        else:
            copies.append(instr)
    for instr in function.instrs:
        if instr.shape.opcode == "tensormap" and instr.shape.has("global_address"):
            poly = accesses.symbolic.operand(instr, 1)
            targets.add("" if poly is None else accesses.base_of(poly))
    if any(_base(accesses, copy) not in places for copy in copies):
        return None
    found = frozenset(targets | places)
    return None if "" in found else found


def _base(accesses: Accesses, instr: Instr) -> str:
    """The parameter that the first address of an instruction is counted from; empty if unknown."""
    address = instr.operands[0]
    if not isinstance(address, Address):
        return ""
    poly = accesses.symbolic.operand_of(instr, address.base)
    return "" if poly is None else accesses.base_of(poly)


__all__ = ["led_to", "uses_map"]
