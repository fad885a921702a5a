"""How values go into other values: copied, added, multiplied, compared, chosen, or else.

A step of the flow leads from a value that an instruction, phi, merge or partial write reads to
one that it makes. Halves of packed registers are told apart by `part_sources` only. The
destination of a tensor-core product depends on the element of the accumulator that it replaces,
and on all of both factors.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import (
    Address,
    Expr,
    Group,
    Immediate,
    Indexed,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Vector,
)
from ptxlint.ir.pattern import fold

COPY: Final = 0
"""Moved, converted, packed, negated, brought from another lane, or joined unchanged."""
TERM: Final = 1
"""Added or subtracted; the accumulator of a tensor-core product."""
FACTOR: Final = 2
"""Multiplied or divided; a factor of a tensor-core product."""
EXTREME: Final = 3
"""Compared by max or min."""
OTHER: Final = 4
"""Anything else that enters the result, integer arithmetic too."""
CHOICE: Final = 5
"""The predicate of a selection or of a predicated definition."""
ADDRESS: Final = 6
"""Part of the address that the result is loaded from."""

DATA: Final = frozenset({COPY, TERM, FACTOR, EXTREME, OTHER})
"""The roles of what the result is computed from."""

WHOLE: Final = -1
"""The part of a value that is no half of a packed register."""
_PACKED: Final = frozenset("f16x2 bf16x2 f32x2".split())
FLOATS: Final = frozenset("f16 f16x2 bf16 bf16x2 tf32 f32 f32x2 f64".split())
_COPIES: Final = frozenset("mov cvt neg cvta movmatrix".split())
_BY_OPCODE: Final = {
    "add": (TERM, TERM, TERM), "sub": (TERM, TERM, TERM), "mul": (FACTOR, FACTOR),
    "div": (FACTOR, FACTOR), "fma": (FACTOR, FACTOR, TERM), "mad": (FACTOR, FACTOR, TERM),
    "max": (EXTREME,) * 3, "min": (EXTREME,) * 3,
}  # fmt: skip
_TENSOR: Final = frozenset({"mma", "wgmma", "wmma"})


class ValueFlow:
    """The steps between the values of a function, found when asked for."""

    def __init__(self, ssa: Ssa, loops: LoopForest) -> None:
        self.ssa = ssa
        self.loops = loops
        self._instrs = ssa.cfg.function.instrs
        self._sources: dict[int, list[tuple[int, int]]] = {}
        self._results: dict[int, list[tuple[int, int]]] = {}
        self._onward: dict[int, dict[int, list[tuple[int, int]]]] = {}
        self._counts: dict[Shape, list[int]] = {}
        self._use_roles: dict[Shape, tuple[int, ...]] = {}
        self._inside: dict[int, frozenset[int]] = {}
        self._by_block: dict[int, list[int]] | None = None

    def sources(self, value: int) -> list[tuple[int, int]]:
        """The values that a value is made of, each with its role; not to be changed."""
        found = self._sources.get(value)
        if found is None:
            if self.ssa.kind[value] == RESULT:
                self._sources.update(self._find(self._instrs[self.ssa.instr[value]]))
                found = self._sources.setdefault(value, [])
            else:
                found = self._sources[value] = self._joined(value)
        return found

    def _joined(self, value: int) -> list[tuple[int, int]]:
        operands = self.ssa.operands[value]
        if self.ssa.kind[value] == MERGE:
            return [(operands[0], CHOICE), (operands[1], COPY), (operands[2], COPY)]
        return [(operand, COPY) for operand in operands]

    def part_sources(self, value: int, part: int) -> list[tuple[int, int, int]]:
        """(source, role, part of it) for one half of a packed value, or all of it (`WHOLE`)."""
        if self.ssa.kind[value] != RESULT:
            return [(source, role, part) for source, role in self.sources(value)]
        instr = self._instrs[self.ssa.instr[value]]
        if instr.opcode == "mov":
            target, source = instr.operands[0], instr.operands[-1]
            if isinstance(source, Vector) and part != WHOLE and len(source.elements) == 2:
                values = self.operand_values(instr)[1]
                if len(values) == 2:
                    return [(values[part], COPY, WHOLE)]
            if isinstance(target, Vector) and len(target.elements) == 2:
                part = target.elements.index(self.ssa.register[value])
                return [(source, role, part) for source, role in self.sources(value)]
        kept = part if instr.shape.type in _PACKED else WHOLE
        return [(source, role, kept) for source, role in self.sources(value)]

    def is_pack(self, value: int) -> bool:
        """True for a register that is put together of several."""
        if self.ssa.kind[value] != RESULT:
            return False
        instr = self._instrs[self.ssa.instr[value]]
        return instr.opcode == "mov" and isinstance(instr.operands[-1], Vector)

    def results(self, value: int) -> list[tuple[int, int]]:
        """The values that a value goes into, each with its role there; not to be changed."""
        known = self._results.get(value)
        if known is not None:
            return known
        out: list[tuple[int, int]] = []
        self._results[value] = out
        for made in dict.fromkeys(self.ssa.value_users(value)):
            out += [(made, role) for source, role in self.sources(made) if source == value]
        for at in dict.fromkeys(user.index for user in self.ssa.instr_users(value)):
            out += self._from_instr(at).get(value, ())
        return out

    def operand_values(self, instr: Instr) -> list[tuple[int, ...]]:
        """The values read in each operand, in order; the guard is none of them."""
        shape = instr.shape
        counts = self._counts.get(shape)
        if counts is None:
            counts = [
                0 if role == "def" and type(operand) is not Address else len(_registers(operand))
                for operand, role in zip(instr.operands, shape.roles, strict=True)
            ]
            self._counts[shape] = counts
        values = self.ssa.use_values[instr.index]
        at = 1 if shape.guard else 0
        out: list[tuple[int, ...]] = []
        for count in counts:
            out.append(values[at : at + count])
            at += count
        return out

    def constant(self, value: int) -> int | None:
        """The integer, or the bits of the literal, that a value is; None if it is none.

        A predicate that is always true is 1.
        """
        ssa = self.ssa
        value = ssa.resolve(value)
        if ssa.kind[value] != RESULT:
            return None
        instr = self._instrs[ssa.instr[value]]
        if instr.opcode != "mov" or len(instr.operands) != 2:
            return None
        source = instr.operands[1]
        if isinstance(source, Immediate):
            return int(source.value != 0) if instr.shape.type == "pred" else source.value
        return fold(source)

    def is_false(self, instr: Instr, at: int) -> bool:
        """True if the predicate operand of an instruction is constantly false."""
        return self._truth(instr, at) is False

    def is_true(self, instr: Instr, at: int) -> bool:
        """True if the predicate operand of an instruction is constantly true."""
        return self._truth(instr, at) is True

    def _truth(self, instr: Instr, at: int) -> bool | None:
        operand = instr.operands[at]
        negated = isinstance(operand, Negated)
        known = fold(operand)
        if known is None:
            values = self.operand_values(instr)[at]
            known = self.constant(values[0]) if len(values) == 1 else None
            if known is not None and negated:
                known = int(not known)
        return None if known is None else known != 0

    def accumulates(self, instr: Instr) -> bool:
        """True if a tensor-core product may add to what its accumulator holds."""
        return instr.opcode != "wgmma" or not self.is_false(instr, _scale_d(instr.shape))

    def inside(self, loop: Loop) -> frozenset[int]:
        """The values that come to be inside the loop."""
        found = self._inside.get(loop.index)
        if found is None:
            if self._by_block is None:
                self._by_block = self._sorted_by_block()
            by_block = self._by_block
            found = frozenset(v for block in loop.blocks for v in by_block.get(block, ()))
            self._inside[loop.index] = found
        return found

    def _sorted_by_block(self) -> dict[int, list[int]]:
        """The values of each block: its phis, and all that its instructions make."""
        ssa = self.ssa
        block_of = ssa.cfg.block_of
        found: dict[int, list[int]] = {}
        for value, at in enumerate(ssa.instr):
            if at >= 0:
                found.setdefault(block_of[at], []).append(value)
        for block, phis in ssa.phis.items():
            found.setdefault(block, []).extend(phis)
        return found

    def in_loop(self, value: int, loop: Loop) -> bool:
        """True if the value comes to be inside the loop."""
        return value in self.inside(loop)

    def is_header_phi(self, value: int, loop: Loop) -> bool:
        """True for a phi at the head of the loop: what it carries from round to round."""
        return self.ssa.kind[value] == PHI and self.ssa.phi_block[value] == loop.header

    def carried(self, phi: int, loop: Loop) -> tuple[list[int], list[int]]:
        """What a header phi is before the loop, and what a round hands to the next one."""
        ssa = self.ssa
        init: list[int] = []
        latch: list[int] = []
        for source, operand in zip(ssa.phi_sources(loop.header), ssa.operands[phi], strict=True):
            inside = source >= 0 and self.loops.contains(loop, source)
            (latch if inside else init).append(operand)
        return init, latch

    # Steps of an instruction ------------------------------------------------------------------
    def _from_instr(self, at: int) -> dict[int, list[tuple[int, int]]]:
        """By value read: the values it goes into."""
        found = self._onward.get(at)
        if found is None:
            found = self._onward[at] = {}
            for result in map(self.ssa.written, self.ssa.def_values[at]):
                for source, role in self.sources(result):
                    found.setdefault(source, []).append((result, role))
        return found

    def _find(self, instr: Instr) -> dict[int, list[tuple[int, int]]]:
        """By written value (before merges), its sources."""
        ssa = self.ssa
        results = [ssa.written(value) for value in ssa.def_values[instr.index]]
        if not results:
            return {}
        if instr.opcode in _TENSOR and instr.shape.modifiers[0] != "load":
            return self._of_tensor(instr, results)
        roles = self._use_roles.get(instr.shape)
        if roles is None:
            roles = self._use_roles[instr.shape] = self._roles_of_uses(instr)
        values = ssa.use_values[instr.index][1 if instr.shape.guard else 0 :]
        sources = list(zip(values, roles, strict=False))
        return dict.fromkeys(results, sources)

    def _roles_of_uses(self, instr: Instr) -> tuple[int, ...]:
        """By register read, the guard apart, its role."""
        operands = zip(_roles(instr), self.operand_values(instr), strict=True)
        return tuple(role for role, values in operands for _ in values)

    def _of_tensor(self, instr: Instr, results: list[int]) -> dict[int, list[tuple[int, int]]]:
        operands = self.operand_values(instr)
        if instr.opcode == "wgmma":
            old = operands[0] if self.accumulates(instr) else ()
            common = [
                (value, _wgmma_role(instr, at))
                for at, values in enumerate(operands)
                for value in values
                if at
            ]
        else:
            old = operands[3] if len(operands) > 3 else ()
            rest = operands[1:3] + operands[4:]
            common = [(value, FACTOR) for values in rest for value in values]
        if len(old) != len(results):
            return dict.fromkeys(results, [(value, TERM) for value in old] + common)
        return {
            result: [(value, TERM), *common] for result, value in zip(results, old, strict=True)
        }


def _scale_d(shape: Shape) -> int:
    """The operand of `wgmma.mma_async` that says whether D is added to (PTX ISA, "wgmma")."""
    return 5 if shape.has("sp") else 3


def _wgmma_role(instr: Instr, at: int) -> int:
    """The role of an operand of `wgmma.mma_async` behind D."""
    if at <= 2:
        # A factor that is no vector is the descriptor of a matrix in shared memory.
        return FACTOR if isinstance(instr.operands[at], Vector) else ADDRESS
    return CHOICE if at == _scale_d(instr.shape) else OTHER


def _roles(instr: Instr) -> tuple[int, ...]:
    """The roles of the operands, destinations included."""
    shape = instr.shape
    opcode = shape.opcode
    writes = sum(role == "def" for role in shape.roles)
    if opcode in _COPIES:
        found: tuple[int, ...] = (COPY,)
    elif opcode == "shfl":
        found = (COPY,)
    elif opcode in ("selp", "slct"):
        found = (COPY, COPY, CHOICE)
    else:
        found = _BY_OPCODE.get(opcode, ()) if shape.type in FLOATS else ()
    found = (OTHER,) * writes + found
    return tuple(
        ADDRESS
        if isinstance(operand, Address | Indexed)
        else (found[at] if at < len(found) else OTHER)
        for at, operand in enumerate(instr.operands)
    )


def _registers(operand: Operand) -> list[Register]:
    """The registers in an operand, in the order in which they are written."""
    if isinstance(operand, Register):
        return [operand]
    if isinstance(operand, Selected):
        return [operand.register]
    inner: tuple[Operand, ...] = ()
    if isinstance(operand, Vector | Group):
        inner = operand.elements
    elif isinstance(operand, Address):
        inner = (operand.base, *operand.rest)
    elif isinstance(operand, Pair):
        inner = (operand.first, operand.second)
    elif isinstance(operand, Negated):
        inner = (operand.operand,)
    elif isinstance(operand, Indexed):
        inner = (operand.base, operand.subscript)
    elif isinstance(operand, Expr):
        inner = operand.operands
    return [register for part in inner for register in _registers(part)]


class ValueFlowAnalysis(Analysis[ValueFlow]):
    """The flow of values as facts of a function."""

    name: ClassVar[str] = "value-flow"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (SsaAnalysis, LoopsAnalysis)

    def run(self, facts: Facts) -> ValueFlow:
        """Nothing is computed before it is asked for."""
        return ValueFlow(facts.get(SsaAnalysis), facts.get(LoopsAnalysis))
