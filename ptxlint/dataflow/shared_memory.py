"""How much shared memory a kernel names, its callees included."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Symbol


class SharedMemory(NamedTuple):
    """Shared memory of one CTA, in bytes.

    Padding between variables is left out, and callees behind a pointer are not known: both make
    `static` too small, never too large. An array without a size belongs to `dynamic`.
    """

    static: int
    dynamic: int | None
    """What the launch asks for besides; None when nothing says."""
    is_open: bool
    """True if a variable without a size is declared, so that the launch may ask for more."""
    largest: Variable | None
    first: Instr | None
    """Where the kernel itself first names the largest variable."""

    @property
    def total(self) -> int:
        """Static and, where it is known, dynamic."""
        return self.static + (self.dynamic or 0)


class SharedMemoryAnalysis(Analysis[SharedMemory]):
    """Shared memory as facts of a function."""

    name: ClassVar[str] = "shared-memory"

    def run(self, facts: Facts) -> SharedMemory:
        """Add up what is named."""
        dynamic = facts.metadata.shared if facts.metadata is not None else None
        everywhere = {v.name: v for v in facts.module.variables.values() if v.space == "shared"}
        functions = {f.name: f for f in facts.module.functions if not f.is_declaration}
        fn = facts.function
        if not everywhere and len(functions) == 1 and not _own(fn):
            return SharedMemory(0, dynamic, False, None, None)
        used, uses = _named(fn, functions, everywhere)
        sized = [v for v in used if not _is_dynamic(v)]
        static = sum(v.size or 0 for v in sized)
        largest = max(sized, key=lambda v: v.size or 0, default=None)
        if largest is None or (dynamic or 0) > static:
            largest = next((v for v in used if _is_dynamic(v)), largest)
        first = uses.get(largest.name) if largest is not None else None
        is_open = any(map(_is_dynamic, everywhere.values()))
        return SharedMemory(static, dynamic, is_open, largest, first)


def _is_dynamic(variable: Variable) -> bool:
    return variable.size is None or "extern" in variable.linkage


def _own(fn: Function) -> dict[str, Variable]:
    return {v.name: v for v in fn.variables if v.space == "shared"}


def _named(
    fn: Function, functions: dict[str, Function], everywhere: dict[str, Variable]
) -> tuple[list[Variable], dict[str, Instr]]:
    """The shared variables that a kernel and its callees name, and where the kernel does first."""
    used: dict[tuple[str, str], Variable] = {}
    uses: dict[str, Instr] = {}
    seen = {fn.name}
    work = [fn]
    while work:
        current = work.pop()
        own = _own(current)
        naming: dict[Shape, bool] = {}
        for instr in current.instrs:
            shape = instr.shape
            if shape not in naming:
                naming[shape] = Symbol in map(type, instr.args)
            for atom in instr.args if naming[shape] else ():
                if type(atom) is not Symbol:
                    continue
                name = atom.name
                if name in functions:
                    if name not in seen:
                        seen.add(name)
                        work.append(functions[name])
                    continue
                variable = own.get(name) or everywhere.get(name)
                if variable is not None:
                    used[current.name if name in own else "", name] = variable
                    if current is fn:
                        uses.setdefault(name, instr)
    return list(used.values()), uses
