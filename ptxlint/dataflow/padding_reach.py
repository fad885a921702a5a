"""Where values go: to memory, into reductions, contractions, exchanges, round loops."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow.reductions import Node, Reduction, Reductions
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import PHI, RESULT, Ssa
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Immediate, Operand, Register, Vector

CONTRACTIONS: Final = frozenset({"mma", "wgmma", "tcgen05", "wmma"})
_SOURCES: Final = frozenset({"ld", "ldu", "ldmatrix", "atom", "call", "redux"}) | CONTRACTIONS
_ATOMICS: Final = frozenset({"red", "atom"})
_STORES: Final = frozenset({"st", "stmatrix"}) | _ATOMICS
_INFINITIES: Final = frozenset(
    {0x7F800000, 0xFF800000, 0x7F80, 0xFF80, 0x7C00, 0xFC00, 0xFFFFFF80, 0xFFFFFC00}
)


class Ends(NamedTuple):
    """Where values end up, without the reductions that take them in."""

    exchanges: list[Instr]
    shared: list[Instr]
    contractions: list[Instr]
    atomics: list[Instr]
    carried: list[int]
    reductions: set[int]
    stores: list[Instr]
    predicates: list[Instr]
    unknown: list[Instr]
    """What takes the values and does nobody knows what with them: calls, unknown opcodes."""


class Behind(NamedTuple):
    """What products go into: reductions by number, and values that are factors again."""

    reductions: set[int]
    factors: list[int]


class Reach:
    """Forward reachability over values, with what the function does with shared memory."""

    def __init__(self, facts: Facts, reductions: Reductions) -> None:
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._reductions = reductions
        self._instrs = facts.function.instrs
        self._to_memory: set[int] | None = None
        self._to_exponents: set[int] | None = None
        self.is_without_infinities = not self._has_infinities()

    def _has_infinities(self) -> bool:
        return any(
            isinstance(a, Immediate) and a.value & 0xFFFFFFFF in _INFINITIES
            for i in self._instrs
            for a in i.args
        )

    def is_header(self, phi: int) -> bool:
        """True for a phi that a loop carries."""
        block = self._ssa.phi_block[phi]
        position = self._ssa.cfg.position
        return any(p < 0 or position[p] >= position[block] for p in self._ssa.phi_sources(block))

    def ends_way(self, value: int) -> bool:
        """True for what comes from memory, a contraction, a warp operation, or round a loop."""
        kind = self._ssa.kind[value]
        if kind == PHI:
            return self.is_header(value)
        return kind == RESULT and self._instrs[self._ssa.instr[value]].opcode in _SOURCES

    def is_source(self, value: int) -> bool:
        """True for what comes from memory, a contraction or a reduction of a whole warp."""
        kind = self._ssa.kind[value]
        return kind == RESULT and self._instrs[self._ssa.instr[value]].opcode in _SOURCES

    def ends(self, values: list[int], round_loops: bool = False) -> Ends:
        """Where the values go. Reductions end the way; so do memory and contractions, and loops
        unless they are followed."""
        ssa = self._ssa
        out = Ends([], [], [], [], [], set(), [], [], [])
        work = list(values)
        seen = set(work)
        met: set[int] = set()
        while work:
            value = work.pop()
            new: list[int] = []
            for user in ssa.users(value):
                if user < 0:
                    new += self._carry(~user, out, round_loops)
                elif user not in met:
                    new += self._meet(self._instrs[user], value, met, out)
            for found in new:
                if found not in seen:
                    seen.add(found)
                    work.append(found)
        return out

    def _carry(self, value: int, out: Ends, round_loops: bool) -> list[int]:
        ssa = self._ssa
        if ssa.kind[value] == PHI and self.is_header(value) and ssa.resolve(value) == value:
            out.carried.append(value)
            return [value] if round_loops else []
        return [value]

    def _meet(self, instr: Instr, value: int, met: set[int], out: Ends) -> list[int]:
        """Enter an instruction where it belongs; the values to follow from it."""
        opcode = instr.opcode
        reduction = self._reductions.members.get(instr.index)
        if reduction is not None:
            out.reductions.add(reduction)
            met.add(instr.index)
            return []
        if value not in self.data(instr):
            return []
        met.add(instr.index)
        shape = instr.shape
        if not shape.row.known or shape.row.is_call:
            out.unknown.append(instr)
            return list(self._ssa.def_values[instr.index])
        if opcode == "st" and shape.space == "param":
            out.unknown.append(instr)
            return []
        if opcode in ("st", "stmatrix"):
            (out.shared if instr.shape.space == "shared" else out.stores).append(instr)
            return []
        if opcode in _ATOMICS:
            out.atomics.append(instr)
            return []
        if opcode in CONTRACTIONS:
            out.contractions.append(instr)
            return []
        if opcode in ("shfl", "redux"):
            if instr.index in self._reductions.companions:
                return []
            if opcode == "shfl" and not self._ssa.users(self._ssa.def_values[instr.index][0]):
                return []
            out.exchanges.append(instr)
            return []
        if opcode in ("setp", "bra", "ld"):
            out.predicates.append(instr)
            return list(self._ssa.def_values[instr.index]) if opcode == "setp" else []
        return list(self._ssa.def_values[instr.index])

    def data(self, instr: Instr) -> list[int]:
        """The values that an instruction reads other than as guard or address."""
        values = self._ssa.use_values[instr.index]
        out = []
        inside: set[int] = set()
        for operand in instr.operands:
            if isinstance(operand, Address):
                base = operand.base
                if isinstance(base, Register):
                    inside.add(base.index)
        for register, value in zip(instr.uses, values, strict=True):
            if register is instr.guard and instr.opcode in ("st", "red", "atom", "bra"):
                continue
            if register.index not in inside:
                out.append(value)
        return out

    def payload(self, instr: Instr) -> list[int]:
        """The data operands of a store or the factors of a contraction."""
        operands: tuple[Operand, ...] = instr.operands[1:3]
        if instr.opcode in ("st", "stmatrix"):
            operands = instr.operands[1:2]
        out: list[int] = []
        for operand in operands:
            elements = operand.elements if isinstance(operand, Vector) else (operand,)
            for element in elements:
                found = self._reductions.read(instr, element)
                if found is not None:
                    out.append(found)
        return out

    # Memory -----------------------------------------------------------------------------------
    def reaches_memory(self, reduction: Reduction) -> bool:
        """True if a reduction's result is stored globally (a maximum: not only as the shift of an
        exponent, where it cancels)."""
        if reduction.operator in ("max", "min"):
            if self._to_exponents is None:
                self._to_exponents = self._leading_to(self._exponents())
            if reduction.result in self._to_exponents:
                return False
        return self.is_stored(reduction.result)

    def is_stored(self, value: int) -> bool:
        """True if a value goes into what is stored globally."""
        if self._to_memory is None:
            self._to_memory = self._leading_to(self._stored("global"))
        return value in self._to_memory

    def _exponents(self) -> list[int]:
        return [v for i in self._instrs if i.opcode == "ex2" for v in self._ssa.use_values[i.index]]

    def _stored(self, space: str) -> list[int]:
        """What is stored to shared memory, or to any other memory."""
        return [
            value
            for instr in self._instrs
            if instr.opcode in _STORES and (instr.shape.space == "shared") == (space == "shared")
            for value in self.data(instr)
        ]

    def _leading_to(self, values: list[int]) -> set[int]:
        """The values that go into these, through shared memory too: what is loaded there may be
        anything that was stored there."""
        ssa = self._ssa
        loaded = {
            value
            for instr in self._instrs
            if (instr.opcode == "ld" and instr.shape.space == "shared")
            or instr.opcode == "ldmatrix"
            for value in ssa.def_values[instr.index]
        }
        work = list(values)
        found = set(work)
        while work:
            value = work.pop()
            before = list(ssa.operands[value]) if ssa.kind[value] > RESULT else []
            if ssa.instr[value] >= 0:
                before += ssa.use_values[ssa.instr[value]]
            if value in loaded:
                before += self._stored("shared")
                loaded = set()
            for other in before:
                if other not in found:
                    found.add(other)
                    work.append(other)
        return found

    def in_loop(self, block: int, header: int) -> bool:
        """True if a block is in the loop with this header."""
        loop = self._reductions.loops.with_header(header)
        return loop is None or self._reductions.loops.contains(loop, block)

    # Shared memory ----------------------------------------------------------------------------

    def shared_stores(self) -> list[Instr]:
        """The stores to shared memory that are not one warp's share of a reduction."""
        out = []
        for instr in self._instrs:
            if instr.opcode not in ("st", "stmatrix") or instr.shape.space != "shared":
                continue
            if not self._ssa.cfg.is_reachable(instr):
                continue
            values = self.payload(instr)
            if not values or not all(map(self._is_step, values)):
                out.append(instr)
        return out

    def stored_in_shared(self) -> list[int]:
        """What goes to shared memory and may be infinite or NaN.

        What warps hand over within one reduction is left out: nothing else reads it.
        """
        if self.is_without_infinities:
            return []
        return [v for store in self.shared_stores() for v in self.payload(store)]

    def _is_step(self, value: int) -> bool:
        """True for what a reduction made of values from several lanes, or for a pair of such."""
        step_at = self._reductions.step_at
        if self._reductions.step(value) is not None:
            return True
        return all(step_at(Node(value, part)) is not None for part in (0, 1))
