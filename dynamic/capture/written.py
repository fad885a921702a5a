"""Which of its arguments a kernel may write."""

from __future__ import annotations

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.hidden_writes import hidden_writes
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def written_parameters(ptx: str) -> frozenset[int] | None:
    """Numbers of the PTX parameters that the kernel of a module writes through; None if that
    cannot be told, and it may be any."""
    module = parse(ptx, "captured.ptx")
    kernels = module.kernels()
    if len(kernels) != 1 or module.problems:
        return None
    (kernel,) = kernels
    accesses = Facts(module, kernel).get(AccessAnalysis)
    if accesses.symbolic.exhausted or any(hidden_writes(kernel, accesses)):
        return None
    numbers = {parameter.name: i for i, parameter in enumerate(kernel.params)}
    bases = {a.base for a in accesses.in_global if a.kind in ("store", "atomic")}
    if not bases <= numbers.keys():
        return None
    return frozenset(numbers[base] for base in bases)
