"""How much shared memory a kernel names, its callees included."""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Symbol
from ptxlint.ir.types import bits

_SYSTEM: Final = frozenset("vprintf malloc free __assertfail".split())
"""Functions of the system (CUDA Programming Guide): they take no shared memory of the CTA."""


class SharedMemory(NamedTuple):
    """Shared memory of one CTA, in bytes.

    Counted in the PTX, `static` leaves out padding between variables and callees behind a pointer,
    which are not known: both make it too small, never too large. An assembler, a log or a cubin
    knows it exactly. An array without a size belongs to `dynamic`.
    """

    static: int
    dynamic: int | None
    """What the launch asks for besides; None when nothing says."""
    is_open: bool
    """True if a variable without a size is declared, so that the launch may ask for more."""
    largest: Variable | None
    first: Instr | None
    """Where the kernel itself first names the largest variable."""
    static_said: str = ""
    """Who says how much is static; "" if it is counted in the PTX."""
    slack: int | None = 0
    """The bytes by which `static` may be too small; None where nobody knows."""

    @property
    def is_exact(self) -> bool:
        """True if static and dynamic memory are what the kernel will have."""
        return bool(self.static_said or not self.static) and self.dynamic is not None

    @property
    def said(self) -> str:
        """Who says how much it is; "" for none."""
        return "; ".join(dict.fromkeys(said for _, _, said in self.parts))

    @property
    def parts(self) -> tuple[tuple[int, str, str], ...]:
        """Bytes, what they are and who says so, of the parts that are not empty."""
        static = self.static_said or "counted in the PTX, an estimate"
        known = (
            (self.static, "static", static),
            (self.dynamic or 0, "dynamic", "Triton's metadata"),
        )
        return tuple(part for part in known if part[0])

    @property
    def total(self) -> int:
        """Static and, where it is known, dynamic."""
        return self.static + (self.dynamic or 0)


class SharedMemoryAnalysis(Analysis[SharedMemory]):
    """Shared memory as facts of a function."""

    name: ClassVar[str] = "shared-memory"

    def run(self, facts: Facts) -> SharedMemory:
        """Take what an assembler says, else add up what is named."""
        found = self._named(facts)
        known = facts.resources
        if known is None or known.shared is None:
            return found
        return found._replace(static=known.shared.value, static_said=known.shared.said, slack=0)

    def _named(self, facts: Facts) -> SharedMemory:
        dynamic = facts.metadata.shared if facts.metadata is not None else None
        everywhere = {v.name: v for v in facts.module.variables.values() if v.space == "shared"}
        functions = {f.name: f for f in facts.module.functions if not f.is_declaration}
        fn = facts.function
        if not everywhere and len(functions) == 1 and not _own(fn):
            return SharedMemory(0, dynamic, False, None, None)
        used, uses, is_whole = _named(fn, functions, everywhere)
        sized = [v for v in used if not _is_dynamic(v)]
        static = sum(v.size or 0 for v in sized)
        largest = max(sized, key=lambda v: v.size or 0, default=None)
        if largest is None or (dynamic or 0) > static:
            largest = next((v for v in used if _is_dynamic(v)), largest)
        first = uses.get(largest.name) if largest is not None else None
        is_open = any(map(_is_dynamic, everywhere.values()))
        slack = _padding(sized) if is_whole else None
        return SharedMemory(static, dynamic, is_open, largest, first, slack=slack)


def _padding(sized: list[Variable]) -> int:
    """The most bytes between variables, in whatever order they lie."""
    return sum(sorted(max(v.align, bits(v.type) // 8, 1) - 1 for v in sized)[1:])


def _is_dynamic(variable: Variable) -> bool:
    return variable.size is None or "extern" in variable.linkage


def _own(fn: Function) -> dict[str, Variable]:
    return {v.name: v for v in fn.variables if v.space == "shared"}


def _named(
    fn: Function, functions: dict[str, Function], everywhere: dict[str, Variable]
) -> tuple[list[Variable], dict[str, Instr], bool]:
    """The shared variables that a kernel and its callees name, where the kernel does first, and
    whether all callees are known."""
    used: dict[tuple[str, str], Variable] = {}
    uses: dict[str, Instr] = {}
    seen = {fn.name}
    work = [fn]
    is_whole = True
    while work:
        current = work.pop()
        own = _own(current)
        naming: dict[Shape, bool] = {}
        for instr in current.instrs:
            shape = instr.shape
            if shape not in naming:
                naming[shape] = Symbol in map(type, instr.args)
            if shape.row.is_call and not _is_known(instr, functions):
                is_whole = False
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
    return list(used.values()), uses, is_whole


def _is_known(call: Instr, functions: dict[str, Function]) -> bool:
    """True for a call of a function of the module or of the system."""
    names = [a.name for a in call.args if type(a) is Symbol and a.kind == "function"]
    return bool(names) and all(name in functions or name in _SYSTEM for name in names)
