"""Where values go: to memory, into reductions, contractions, exchanges, round loops."""

from __future__ import annotations

from itertools import chain
from typing import Final, NamedTuple

from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.polynomial import Polynomial
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

    @property
    def are_masked_atomics(self) -> bool:
        """True if every atomic update has a guard of its own."""
        return all(i.guard is not None for i in self.atomics)


class SharedUse(NamedTuple):
    """What is done with data in shared memory."""

    contracted: bool
    combined: bool
    product_goes_on: bool


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
        self._last: dict[int, int] | None = None
        self._ahead: set[int] = set()
        self._products: tuple[Behind | None] | None = None
        self._use: SharedUse | None = None
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
        if self._to_memory is None:
            self._to_memory = self._leading_to(self._stored("global"))
        return reduction.result in self._to_memory

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

    def is_exchanged_again(self, reduction: Reduction) -> bool:
        """True if a result goes on to be combined in some other way."""
        ends = self.ends([reduction.result])
        inside = {i.index for i in reduction.instrs}
        return bool(
            ends.exchanges
            or ends.contractions
            or ends.carried
            or [s for s in ends.shared if self._is_combined_later(s)]
            or {r for r in ends.reductions if self._reductions.all[r].at.index not in inside}
        )

    def _is_combined_later(self, store: Instr) -> bool:
        """True if something that control may come to behind a store combines lanes."""
        if self._last is None:
            self._last, self._ahead = self._find_combining()
        cfg = self._ssa.cfg
        block = cfg.block_of[store.index]
        return self._last.get(block, -1) > store.index or any(
            s in self._ahead for s in cfg.blocks[block].succs
        )

    def _find_combining(self) -> tuple[dict[int, int], set[int]]:
        """The last instruction of each block that combines lanes; and the blocks that hold one or
        come before one."""
        cfg = self._ssa.cfg
        reductions = self._reductions
        last: dict[int, int] = {}
        trees = (i for r in reductions.all for i in r.instrs)
        for instr in chain(reductions.exchanges, reductions.contractions, trees):
            block = cfg.block_of[instr.index]
            last[block] = max(last.get(block, -1), instr.index)
        ahead = set(last)
        work = list(last)
        while work:
            for before in cfg.blocks[work.pop()].preds:
                if before not in ahead:
                    ahead.add(before)
                    work.append(before)
        return last, ahead

    def depends_on_loops(self, conjunct: Conjunct, loops: tuple[int, ...]) -> bool:
        """True if a conjunct may change from one iteration of these loops to the next."""
        if not loops:
            return False
        if conjunct.polynomial is None:
            return True
        return _varies(conjunct.polynomial, self, loops)

    def in_loop(self, block: int, header: int) -> bool:
        """True if a block is in the loop with this header."""
        loop = self._reductions.loops.with_header(header)
        return loop is None or self._reductions.loops.contains(loop, block)

    # Shared memory ----------------------------------------------------------------------------
    def shared_use(self, stores: list[Instr]) -> SharedUse:
        """What the function does with data in shared memory; the same for all data."""
        if self._use is None:
            self._use = self._find_use()
        return self._use

    def _find_use(self) -> SharedUse:
        contracted = combined = goes_on = False
        products: list[int] = []
        for instr in self._instrs:
            values = list(self._ssa.def_values[instr.index])
            if instr.opcode in CONTRACTIONS:
                products += values
                contracted = True
            elif instr.opcode == "ldmatrix" or (
                instr.opcode == "ld" and instr.shape.space == "shared"
            ):
                if values and self._is_handed_over(values):
                    continue
                ends = self.ends(values)
                combined = combined or bool(ends.exchanges or ends.reductions or ends.carried)
        if products:
            goes_on = self._product_goes_on(products)
        return SharedUse(contracted, combined, goes_on)

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

    def _is_step(self, value: int) -> bool:
        """True for what a reduction made of values from several lanes, or for a pair of such."""
        step_at = self._reductions.step_at
        if self._reductions.step(value) is not None:
            return True
        return all(step_at(Node(value, part)) is not None for part in (0, 1))

    def _is_handed_over(self, values: list[int]) -> bool:
        """True for the second half of a reduction over warps."""
        step = self._reductions.step_at
        stored = [self._reductions.stored_before(v) for v in values]
        return all(s and all(step(self._reductions.node(n)) is not None for n in s) for s in stored)

    def _product_goes_on(self, products: list[int]) -> bool:
        """True if a product's elements are combined again: by a reduction or as factors."""
        ends = self.ends(products)
        if ends.exchanges or ends.reductions or ends.predicates:
            return True
        factors = {v for i in ends.contractions for v in self.payload(i)}
        reached = self.values_from(products)
        if factors & reached:
            return True
        carried = self.values_from(ends.carried)
        if factors & carried or any(s.index for s in self.ends(ends.carried).shared
                                    if self._is_combined_later(s)):  # fmt: skip
            return True
        return any(self._is_combined_later(s) for s in ends.shared)

    def behind_products(self) -> Behind | None:
        """What combines the elements of products again; None if not all of it is known."""
        if self._products is None:
            self._products = (self._find_behind_products(),)
        return self._products[0]

    def _find_behind_products(self) -> Behind | None:
        products = [
            value
            for instr in self._instrs
            if instr.opcode in CONTRACTIONS
            for value in self._ssa.def_values[instr.index]
        ]
        ends = self.ends(products)
        carried = self.ends(ends.carried)
        if ends.exchanges or ends.predicates or carried.exchanges or carried.reductions:
            return None
        reached = self.values_from(products)
        round_loops = self.values_from(ends.carried)
        factors: list[int] = []
        for instr in self._reductions.contractions:
            for value in self.payload(instr):
                if value in round_loops:
                    return None
                if value in reached:
                    factors.append(value)
        for store in ends.shared:
            if self._is_combined_later(store):
                factors += self.payload(store)
        if any(self._is_combined_later(s) for s in carried.shared):
            return None
        return Behind(ends.reductions, factors)

    def values_from(self, values: list[int]) -> set[int]:
        """The values that are computed from these, loops and memory not followed."""
        ssa = self._ssa
        work = list(values)
        seen = set(work)
        while work:
            value = work.pop()
            for user in ssa.users(value):
                new = [~user] if user < 0 else list(ssa.def_values[user])
                if user >= 0 and self._instrs[user].opcode in CONTRACTIONS:
                    continue
                for found in new:
                    if found not in seen:
                        seen.add(found)
                        work.append(found)
        return seen


def _varies(poly: Polynomial, reach: Reach, loops: tuple[int, ...]) -> bool:
    for atom in poly.all_atoms():
        if atom.kind == "index" and atom.data[0] in loops:
            return True
        if atom.block >= 0 and any(reach.in_loop(atom.block, h) for h in loops):
            return True
    return False
