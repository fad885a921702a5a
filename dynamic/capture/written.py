"""Which of its arguments a kernel may write."""

from __future__ import annotations

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

_WRITING = frozenset({"st", "atom", "red", "stmatrix", "sured", "sust", "multimem"})


def written_parameters(ptx: str) -> frozenset[int] | None:
    """Numbers of the PTX parameters that the kernel of a module writes through; None if that
    cannot be told, and it may be any."""
    module = parse(ptx, "captured.ptx")
    kernels = module.kernels()
    if len(kernels) != 1 or module.problems:
        return None
    (kernel,) = kernels
    accesses = Facts(module, kernel).get(AccessAnalysis)
    if accesses.symbolic.exhausted:
        return None
    for instr in kernel.instrs:
        shape = instr.shape
        if shape.row.is_call or not shape.row.known:
            return None
        # Bulk copies name the space that they write to first.
        if shape.opcode == "cp" and (shape.has("reduce") or _to_global(shape.modifiers)):
            return None
    if any(instr.opcode in _WRITING for instr in accesses.unknown):
        return None
    numbers = {parameter.name: i for i, parameter in enumerate(kernel.params)}
    bases = {a.base for a in accesses.in_global if a.kind in ("store", "atomic")}
    if not bases <= numbers.keys():
        return None
    return frozenset(numbers[base] for base in bases)


def _to_global(modifiers: tuple[str, ...]) -> bool:
    """True for a copy whose destination is global memory."""
    spaces = [m for m in modifiers if m.partition("::")[0] in ("global", "shared")]
    return bool(spaces) and spaces[0].startswith("global")
