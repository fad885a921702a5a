"""Integer values as polynomials over thread bits, CTA indices, parameters and loop iterations.

Values are evaluated on demand and remembered. Their meaning is a mathematical integer, the word
taken as two's complement; each operation whose word could wrap, or that takes for unsigned what
may be negative, leaves an obligation (`Wrap`), so that wrapping is never assumed
away: it is a question that a launch answers. Work is counted in steps; past the budget every
further value is opaque, and `exhausted` says so.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.dataflow.bitwise import (
    as_field,
    bit_and,
    bit_or,
    bit_xor,
    floor_divide,
    high_word,
    latest_block,
)
from ptxlint.dataflow.loop_bounds import last_index
from ptxlint.dataflow.polynomial import INFINITY, Atom, AtomTable, Polynomial
from ptxlint.dataflow.scaled_integers import quotient, scaled
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

BUDGET_PER_INSTRUCTION: Final = 40
"""Steps allowed for each instruction of the function, plus a fixed start."""
MAX_TERMS: Final = 64
"""A polynomial with more terms is not carried on: it helps nobody."""
MAX_DEGREE: Final = 8
"""Nor one with more factors in a term,"""
MAX_BITS: Final = 160
"""nor one with longer coefficients,"""
MAX_INNER: Final = 256
"""nor one with an atom that is made of more atoms. All of these grow by themselves in loops that
were unrolled, and each without bounds."""
_MAX_PRODUCT: Final = 8 * MAX_TERMS
"""Terms of two factors multiplied: many may cancel or be one."""
_MAX_CTA: Final = {"x": 2**31 - 2, "y": 65534, "z": 65534}
_MAX_TID: Final = {"x": 1024, "y": 1024, "z": 64}
_LAST_ADDRESS: Final = 2**57 - 1
"""Devices and their hosts have pages for no longer addresses."""
_FLIPPED: Final = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_INTEGERS: Final = frozenset(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
"""The register types that are followed."""


_Of: TypeAlias = Callable[[int], Polynomial]


class Wrap(NamedTuple):
    """The polynomial must fit the word that `instr` computes it in: `bits` wide, signed or not."""

    instr: int
    polynomial: Polynomial
    bits: int
    signed: bool


class Symbolic:
    """The integer values of one function."""

    def __init__(self, facts: Facts) -> None:
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.loops: LoopForest = facts.get(LoopsAnalysis)
        self.table = AtomTable()
        self._wraps: dict[int, set[Wrap]] = {}
        self._noted: list[Wrap] = []
        """What was computed in a word that was not looked into yet."""
        self.budget = facts.budget(SymbolicAnalysis.name, 20_000, BUDGET_PER_INSTRUCTION)
        self._instrs = facts.function.instrs
        self._geometry = _thread_extents(facts)
        self._known: dict[int, Polynomial] = {}
        self._settled: set[int] = set()
        self._opening: set[int] = set()

    def release(self) -> None:
        """Take polynomials and their table apart, which refer to each other."""
        self.table.release()

    @property
    def exhausted(self) -> bool:
        """True once the budget is spent: values asked for since then are opaque."""
        return self.budget.spent

    def of(self, value: int) -> Polynomial:
        """The polynomial of an SSA value. Never fails: what is not understood is opaque."""
        found = self._known.get(value)
        if found is None:
            found = self._evaluate(value, self._known)
        return found

    def operand(self, instr: Instr, at: int) -> Polynomial | None:
        """The polynomial of an instruction's operand; None for one that is no integer."""
        return self._operand(instr, instr.operands[at], self.of)

    def operand_of(self, instr: Instr, operand: Operand) -> Polynomial | None:
        """The polynomial of what an instruction reads; None if it is no integer."""
        return self._operand(instr, operand, self.of)

    def address(self, instr: Instr, address: Address) -> Polynomial | None:
        """The polynomial of an address, its symbol included as an atom."""
        base = self._operand(instr, address.base, self.of)
        return None if base is None else base + address.offset

    # Evaluation -------------------------------------------------------------------------------
    def _evaluate(self, wanted: int, known: MutableMapping[int, Polynomial]) -> Polynomial:
        """Evaluate a value and what it needs, without recursion over the chain of operands."""
        ssa, root = self.ssa, self.ssa.resolve(wanted)
        is_followed = ssa.kind[root] != RESULT or self._rule(root) is not None
        if not is_followed and self.budget.left > 2:
            # Most of what loops carry are numbers, of which nothing is to be known.
            self.budget.left -= 1 + (root != wanted)
            if root not in known:
                known[root] = self._opaque(root)
            found = known[wanted] = known[root]
            return found
        stack = [wanted]
        needs: dict[int, tuple[int, ...]] = {}
        while stack:
            value = stack[-1]
            if value in known:
                stack.pop()
                continue
            self.budget.left -= 1
            if self.budget.left <= 0:
                known[value] = self._opaque(value)
                continue
            needed = needs.get(value)
            if needed is None:
                needed = needs[value] = self._needs(value, known)
            missing = [v for v in needed if v not in known]
            if missing and len(stack) < 20_000:
                stack += missing
                continue
            if value not in known:
                known[value] = self._trim(value, self._transfer(value, known))
        return known[wanted]

    def _needs(self, value: int, known: MutableMapping[int, Polynomial]) -> tuple[int, ...]:
        """The values that must be known before this one."""
        ssa = self.ssa
        root = ssa.resolve(value)
        if root != value:
            return (root,)
        kind = ssa.kind[value]
        if kind == PHI:
            loop = self.loops.with_header(ssa.phi_block[value])
            if loop is not None:
                self._settle(loop, known)
                return ()
            return ssa.operands[value] if len(ssa.operands[value]) <= 8 else ()
        if kind == MERGE:
            return ssa.operands[value][1:]
        if kind == RESULT and self._rule(value) is not None:
            found = scaled(ssa, self._instrs, self._instrs[ssa.instr[value]])
            if found is not None:
                # What is between is no integer.
                read = found.operand
                return (self.value_read(found.instr, read),) if type(read) is Register else ()
            register = ssa.register
            return tuple(v for v in ssa.operands[value] if register[v].type in _INTEGERS)
        return ()

    def _is_integer(self, value: int) -> bool:
        return self.ssa.register[value].type in _INTEGERS

    def _rule(self, value: int) -> _Rule | None:
        """How the instruction behind a RESULT is understood; None if it is not."""
        ssa = self.ssa
        if ssa.result[value] or ssa.register[value].type not in _INTEGERS:
            return None
        return _RULES.get(self._instrs[ssa.instr[value]].shape.opcode)

    def _trim(self, value: int, poly: Polynomial | None) -> Polynomial:
        if poly is None or len(poly.terms) > MAX_TERMS:
            return self._opaque(value)
        self.budget.left -= len(poly.terms) >> 2
        large = self.table.largest > MAX_INNER
        atoms = self.table.atoms
        for monomial, coefficient in poly.terms.items():
            if coefficient.bit_length() > MAX_BITS or len(monomial) > MAX_DEGREE:
                return self._opaque(value)
            if large and any(len(atoms[number].inner) > MAX_INNER for number in monomial):
                return self._opaque(value)
        return poly

    def _opaque(self, value: int, low: int = -INFINITY, high: int = INFINITY) -> Polynomial:
        """The value as an atom of its own."""
        kind = self.ssa.register[value].type
        if low == -INFINITY and kind[0] in "bus":
            bits = BITS.get(kind, 64)
            low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        atom = self.table.atom("opaque", (value,), low, high, self.ssa.block_of(value))
        return self.table.plain(atom)

    def _transfer(self, value: int, known: MutableMapping[int, Polynomial]) -> Polynomial | None:
        ssa = self.ssa
        root = ssa.resolve(value)
        if root != value:
            # Not known: a cycle that is no natural loop, where evaluation was given up.
            return known.get(root)
        kind = ssa.kind[value]
        if kind == PHI:
            return self._join(value, known)
        if kind == MERGE:
            return self._merge(value, known)
        rule = self._rule(value) if kind == RESULT else None
        if rule is None:
            return None
        instr = self._instrs[ssa.instr[value]]
        return rule(self, instr, value, lambda v: known.get(v) or self._opaque(v))

    def _join(self, value: int, known: MutableMapping[int, Polynomial]) -> Polynomial | None:
        """A phi that is no loop header's: one polynomial if all agree, else bounded by all."""
        parts = [known[v] for v in self.ssa.operands[value] if v in known]
        if not parts or len(parts) < len(self.ssa.operands[value]):
            return None
        if all(p == parts[0] for p in parts):
            return parts[0]
        ranges = [p.range() for p in parts]
        return self._opaque(value, min(r[0] for r in ranges), max(r[1] for r in ranges))

    def _merge(self, value: int, known: MutableMapping[int, Polynomial]) -> Polynomial | None:
        predicate, if_true, if_false = self.ssa.operands[value]
        yes, no = known.get(if_true), known.get(if_false)
        if yes is None or no is None:
            return None
        choice = self._choice(predicate, known.get)
        if choice is not None:
            return yes if choice else no
        return self._select(predicate, yes, no, self.ssa.block_of(value))

    def _select(
        self,
        predicate: int,
        yes: Polynomial,
        no: Polynomial,
        block: int,
        gap: tuple[str, Polynomial] | None = None,
    ) -> Polynomial:
        """What a predicate chooses; `gap` is what it compares with 0, and how."""
        if yes == no:
            return yes
        root, same = self.ssa.root(predicate)
        if not same:
            yes, no = no, yes
        a, b = yes.range(), no.range()
        if gap is not None:
            a, b = _where(yes, a, *gap), _where(no, b, _FLIPPED[gap[0]], gap[1])
        atom = self.table.atom("select", (root, yes, no), min(a[0], b[0]), max(a[1], b[1]), block)
        return self.table.plain(atom)

    # Loops ------------------------------------------------------------------------------------
    def _settle(self, loop: Loop, known: MutableMapping[int, Polynomial]) -> None:
        """Give every phi of a loop header its polynomial: init + step * K where that holds.

        The latch values are evaluated with all phis of the header as unknowns; a latch value of
        phi + step, with a step that no part of the loop changes, is an induction variable.
        """
        header = loop.header
        phis = [p for p in self.ssa.phis.get(header, ()) if self._is_integer(p)]
        if header in self._opening:
            for phi in phis:
                known.setdefault(phi, self._opaque(phi))
            return
        self._opening.add(header)
        overlay = _Overlay(known)
        for phi in phis:
            overlay[phi] = self._opaque(phi)
        found: dict[int, Polynomial] = {}
        last = self._last_index(loop, overlay)
        made: dict[int, Polynomial] = {}
        for phi in phis:
            poly = self._induction(loop, phi, overlay, known, last, made)
            if poly is not None:
                found[phi] = poly
        if found and len(found) < len(phis):
            counted = {self._atom(overlay[phi]): poly for phi, poly in found.items()}
            for phi in phis:
                if phi not in found and phi in made:
                    poly = self._delayed(loop, phi, made[phi], counted, known)
                    if poly is not None:
                        found[phi] = poly
        self._opening.discard(header)
        for phi in phis:
            known[phi] = found.get(phi) or self._opaque(phi)
        if last is None:
            self._bound(loop, phis, known)

    def _last_index(self, loop: Loop, known: MutableMapping[int, Polynomial]) -> int | None:
        """The number of a loop's last round, where constants say so. The index has that bound."""

        def operand(instr: Instr, at: int) -> Polynomial | None:
            return self._operand(instr, instr.operands[at], lambda v: self._evaluate(v, known))

        last = last_index(self.ssa, self.loops, loop, operand)
        if last is not None:
            index = self.table.atom("index", (loop.header,), 0, last, loop.header)
            index.high = min(index.high, last)
        return last

    def _bound(self, loop: Loop, phis: list[int], known: MutableMapping[int, Polynomial]) -> None:
        """Bound the index of a loop that counts up to a constant."""
        if self._last_index(loop, _Overlay(known)) is not None:
            for phi in phis:
                known[phi] = Polynomial(self.table, known[phi].terms)

    def _induction(
        self,
        loop: Loop,
        phi: int,
        overlay: _Overlay,
        known: MutableMapping[int, Polynomial],
        last: int | None,
        made: dict[int, Polynomial],
    ) -> Polynomial | None:
        inits, nexts = self._ways_in(loop, phi)
        if len(inits) != 1 or not nexts:
            return None
        values = {self._evaluate(v, overlay) for v in nexts}
        if len(values) != 1:
            return None
        value = made[phi] = values.pop()
        step = value - overlay[phi]
        is_same = last == 1 and self._is_invariant(value, loop)
        if not is_same and not self._is_invariant(step, loop):
            return None
        init = self._evaluate(inits[0], known)
        if is_same:
            # The second round is the last one.
            step = value - init
        index = self.table.atom("index", (loop.header,), 0, INFINITY, loop.header)
        return init + step * self.table.plain(index)

    def _ways_in(self, loop: Loop, phi: int) -> tuple[list[int], list[int]]:
        """What a header phi is in the first round, and in the others."""
        inits: list[int] = []
        nexts: list[int] = []
        block = self.ssa.phi_block[phi]
        for source, operand in zip(
            self.ssa.phi_sources(block), self.ssa.operands[phi], strict=True
        ):
            inside = source >= 0 and self.loops.contains(loop, source)
            (nexts if inside else inits).append(operand)
        return inits, nexts

    def _atom(self, poly: Polynomial) -> Atom:
        """The atom that a polynomial consists of."""
        ((number,),) = poly.terms
        return self.table.atoms[number]

    def _delayed(
        self,
        loop: Loop,
        phi: int,
        value: Polynomial,
        counted: dict[Atom, Polynomial],
        known: MutableMapping[int, Polynomial],
    ) -> Polynomial | None:
        """A phi that each round works out from its number for the next one, as pipelined loops do.

        None unless the first round is given what a round before it would have worked out.
        """
        atoms = value.atoms()
        if counted.keys().isdisjoint(atoms):
            return None
        index = self.table.atom("index", (loop.header,), 0, INFINITY, loop.header)
        value = value.substitute(counted)
        before = value.substitute({index: self.table.plain(index) - 1})
        first = before.substitute({index: self.table.constant(0)})
        inits, _ = self._ways_in(loop, phi)
        if not self._is_invariant(first, loop) or first != self._evaluate(inits[0], known):
            return None
        return before

    def _is_invariant(self, poly: Polynomial, loop: Loop) -> bool:
        """True if no part of the polynomial is computed inside the loop."""
        contains, atoms = self.loops.contains, self.table.atoms
        for monomial in poly.terms:
            for number in monomial:
                block = atoms[number].block
                if block >= 0 and contains(loop, block):
                    return False
        return not any(a.block >= 0 and contains(loop, a.block) for a in poly.all_atoms())

    # Operands ---------------------------------------------------------------------------------
    def _operand(
        self, instr: Instr, operand: Operand, of: Callable[[int], Polynomial]
    ) -> Polynomial | None:
        if type(operand) is Register:
            if operand.type == "pred" or operand.type[0] == "f":
                return None
            return of(self.ssa.use_values[instr.index][instr.uses.index(operand)])
        if type(operand) is Immediate:
            if operand.kind != "int":
                return None
            return self.table.constant(_as_word(instr, operand.value))
        if isinstance(operand, SpecialRegister):
            return self._special(operand.name)
        if isinstance(operand, Symbol):
            return self.table.plain(self.table.atom("symbol", (operand.name,), 0, _LAST_ADDRESS))
        if isinstance(operand, Negated) and operand.sign == "-":
            inner = self._operand(instr, operand.operand, of)
            return None if inner is None else -inner
        constant = fold(operand)
        return None if constant is None else self.table.constant(_as_word(instr, constant))

    def value_read(self, instr: Instr, register: Register) -> int:
        """The value that the instruction reads from a register."""
        return self.ssa.use_values[instr.index][instr.uses.index(register)]

    def _parameter(self, name: str, offset: int, low: int, high: int) -> Polynomial:
        """What a parameter holds, read as a number from `low` to `high`."""
        return self.table.plain(self.table.atom("param", (name, offset), low, high))

    def _loaded(self, value: int, low: int, high: int) -> tuple[int, int]:
        """Bounds of a number from memory, of a type from `low` to `high`."""
        return low, high

    def _choice(self, predicate: int, known: Callable[[int], Polynomial | None]) -> bool | None:
        """What a predicate is wherever it is asked for; None if that is not known."""
        return None

    def _special(self, name: str) -> Polynomial | None:
        table = self.table
        base, _, axis = name.partition(".")
        if base == "%tid" and axis in _MAX_TID:
            extent = self._geometry.get(axis)
            top = _MAX_TID[axis] if extent is None else extent
            return table.sum(
                (1 << i, table.atom("bit", (axis, i), 0, 1)) for i in range((top - 1).bit_length())
            )
        if base == "%ntid" and axis in _MAX_TID:
            extent = self._geometry.get(axis)
            if extent is not None:
                return table.constant(extent)
            return table.plain(table.atom("ntid", (axis,), 1, _MAX_TID[axis]))
        if base == "%ctaid" and axis in _MAX_CTA:
            return table.plain(table.atom("ctaid", (axis,), 0, _MAX_CTA[axis]))
        if base == "%nctaid" and axis in _MAX_CTA:
            return table.plain(table.atom("nctaid", (axis,), 1, _MAX_CTA[axis] + 1))
        if name == "WARP_SZ":
            return table.constant(32)
        return None

    # Wrapping ---------------------------------------------------------------------------------
    def _fits(self, instr: Instr, poly: Polynomial, bits: int, signed: bool) -> Polynomial:
        """The polynomial, with an obligation noted if the word may be too narrow for it."""
        self._noted.append(Wrap(instr.index, poly, bits, signed))
        return poly

    @property
    def wraps(self) -> dict[int, set[Wrap]]:
        """By instruction: what it reads or computes that is not certain to fit its word."""
        for wrap in self._noted:
            low, high = wrap.polynomial.range()
            least, most = (-1 << (wrap.bits - 1), wrap.bits - 1) if wrap.signed else (0, wrap.bits)
            if low < least or high >= 1 << most:
                self._wraps.setdefault(wrap.instr, set()).add(wrap)
        self._noted.clear()
        return self._wraps

    def obligations(self, value: int) -> list[Wrap]:
        """What must fit for the polynomial of this value to be right, by instruction."""
        seen: set[int] = set()
        out: list[Wrap] = []
        work, wraps = [value], self.wraps
        while work:
            current = work.pop()
            if current in seen:
                continue
            seen.add(current)
            index = self.ssa.instr[current]
            if self.ssa.kind[current] == RESULT and index in wraps:
                out += wraps[index]
            work += self.ssa.operands[current]
        return sorted(out, key=lambda wrap: (wrap.instr, repr(wrap.polynomial)))


class _Overlay(dict[int, Polynomial]):
    """What is known, and on top of it what holds only for a trial."""

    def __init__(self, below: MutableMapping[int, Polynomial]) -> None:
        super().__init__()
        self._below = below

    def __missing__(self, value: int) -> Polynomial:
        return self._below[value]

    def __contains__(self, value: object) -> bool:
        return super().__contains__(value) or value in self._below

    def get(self, value: int, default: Any = None) -> Any:
        """As for a dict, both layers searched."""
        found = super().get(value)
        return found if found is not None else self._below.get(value, default)


# Transfer functions -----------------------------------------------------------------------------

_Rule = Callable[[Symbolic, Instr, int, _Of], "Polynomial | None"]


def _width(instr: Instr) -> tuple[int, bool]:
    """Word width and signedness of an instruction's type."""
    kind = instr.shape.type
    return BITS.get(kind, 32), not kind.startswith("u")


def _all(symbolic: Symbolic, instr: Instr, of: _Of, count: int) -> list[Polynomial] | None:
    """The `count` source operands as polynomials; None if one is no integer."""
    out = []
    for operand in instr.operands[1 : count + 1]:
        poly = symbolic._operand(instr, operand, of)
        if poly is None:
            return None
        out.append(poly)
    return out if len(out) == count else None


def _as_word(instr: Instr, constant: int) -> int:
    """A constant as the two's complement word that the instruction reads."""
    shape = instr.shape
    if shape.has("wide") and shape.type.startswith("u"):
        return constant
    bits = BITS.get(shape.type, 64)
    word = constant & ((1 << bits) - 1)
    return word - (1 << bits) if word >> (bits - 1) else word


def _add(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None or instr.shape.has("cc") or instr.shape.has("sat"):
        return None
    bits = _width(instr)[0]
    a, b = operands
    result = a + b if instr.opcode == "add" else a - b
    return symbolic._fits(instr, result, bits, True)


def _mul(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None or not _is_small(symbolic, *operands):
        return None
    if instr.shape.has("hi"):
        return _high(instr, *operands)
    bits = _factors(symbolic, instr, operands)
    return symbolic._fits(instr, operands[0] * operands[1], bits, True)


def _high(instr: Instr, a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The high word of a product with a number, as divisions by numbers have it."""
    bits, signed = _width(instr)
    if not b.is_constant:
        a, b = b, a
    if not b.is_constant or a.range()[0] < 0:
        return None
    factor = b.constant
    if not signed and factor < 0:
        factor += 1 << bits
    return high_word(a * factor, bits)


def _factors(symbolic: Symbolic, instr: Instr, operands: list[Polynomial]) -> int:
    """The product's width; a wide unsigned product takes its factors for unsigned."""
    bits, signed = _width(instr)
    if not instr.shape.has("wide"):
        return bits
    if not signed:
        for factor in operands[:2]:
            symbolic._fits(instr, factor, bits, False)
    return bits * 2


def _is_small(symbolic: Symbolic, a: Polynomial, b: Polynomial) -> bool:
    """True if a product has few enough terms to be worked out, which is paid for in steps."""
    terms = len(a.terms) * len(b.terms)
    symbolic.budget.left -= min(terms, _MAX_PRODUCT) >> 2
    return terms <= _MAX_PRODUCT


def _mad(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 3)
    if operands is None or not (instr.shape.has("lo") or instr.shape.has("wide")):
        return None
    if not _is_small(symbolic, *operands[:2]):
        return None
    bits = _factors(symbolic, instr, operands)
    a, b, c = operands
    return symbolic._fits(instr, a * b + c, bits, True)


def _shl(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None or not operands[1].is_constant:
        return None
    bits, _ = _width(instr)
    amount = operands[1].constant
    if not 0 <= amount < bits:
        return symbolic.table.constant(0)
    shifted = operands[0] * (1 << amount)
    # Compilers write constants with any bits where a shift drops them: -1 - i as i ^ 0x3f…fe.
    if bits == 64 and not shifted.is_constant:
        shifted = shifted - (shifted.constant + (1 << 63) >> 64 << 64)
    return symbolic._fits(instr, shifted, bits, True)


def _shr(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None or not operands[1].is_constant:
        return None
    bits, _ = _width(instr)
    amount = min(operands[1].constant, bits)
    signed = instr.shape.type.startswith("s")
    if amount < 0:
        return None
    if not signed and operands[0].range()[0] < 0:
        # A word of sign bits, 0 or -1, keeps its low ones: the fix-up of a signed division.
        if operands[0].range() == (-1, 0):
            return operands[0] * -(((1 << bits) - 1) >> amount)
        symbolic._fits(instr, operands[0], bits, False)
    result = floor_divide(operands[0], 1 << amount)
    if signed and len(result.terms) == 1:
        _tighten(result, -(1 << (bits - 1)) >> amount, ((1 << (bits - 1)) - 1) >> amount)
    return result


def _tighten(poly: Polynomial, low: int, high: int) -> None:
    """A lone atom that is what a word was shifted to has the bounds of a shifted word."""
    (monomial,) = poly.terms
    if len(monomial) == 1 and poly.terms[monomial] == 1:
        atom = poly.table.atoms[monomial[0]]
        atom.low, atom.high = max(atom.low, low), min(atom.high, high)
        poly._range = None


def _bitwise(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None:
        return None
    a, b = operands
    if instr.opcode == "and":
        return bit_and(a, b, _width(instr)[0])
    return bit_or(a, b) if instr.opcode == "or" else bit_xor(a, b)


def _not(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 1)
    return None if operands is None else -operands[0] - 1


def _neg(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 1)
    if operands is None:
        return None
    return symbolic._fits(instr, -operands[0], _width(instr)[0], True)


def _bfe(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 3)
    if operands is None or not (operands[1].is_constant and operands[2].is_constant):
        return None
    source, start, length = operands[0], operands[1].constant, operands[2].constant
    if source.range()[0] < 0 or instr.shape.type.startswith("s") or start < 0 or length < 0:
        return None
    return as_field(symbolic.table, source, start, length)


def _divide(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None:
        return None
    a, b = operands
    low, high = a.range()
    if instr.shape.type.startswith("u") and min(low, b.range()[0]) < 0:
        return None
    # Division truncates: it is floor division only for a non-negative dividend.
    if low >= 0 and b.is_constant and b.constant > 0:
        quotient = floor_divide(a, b.constant)
    else:
        bound = max(abs(low), abs(high))
        smallest = 0 if low >= 0 and b.range()[0] >= 0 else -bound
        block = max(latest_block(a), latest_block(b))
        atom = symbolic.table.atom("div", (a, b), smallest, bound, block)
        quotient = symbolic.table.plain(atom)
    return quotient if instr.opcode == "div" else a - quotient * b


def _extreme(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    if operands is None:
        return None
    a, b = operands
    smaller = instr.opcode == "min"
    if instr.shape.type.startswith("u") and min(a.range()[0], b.range()[0]) < 0:
        return _clamped(symbolic, a, b) if smaller else None
    low, high = (a - b).range()
    if high <= 0 or low >= 0:
        return a if (high <= 0) == smaller else b
    (al, ah), (bl, bh) = a.range(), b.range()
    bounds = (min(al, bl), min(ah, bh)) if smaller else (max(al, bl), max(ah, bh))
    first, second = sorted((a, b), key=repr)
    block = max(latest_block(a), latest_block(b))
    atom = symbolic.table.atom(instr.opcode, (first, second), *bounds, block)
    return symbolic.table.plain(atom)


def _clamped(symbolic: Symbolic, a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The smaller one of two unsigned words, of which one may be a negative number.

    That is not below a positive number of the signed words, in words of any width.
    """
    number, limit = (a, b) if b.is_constant else (b, a)
    if not limit.is_constant or not 0 <= limit.constant < 1 << 31:
        return None
    atom = symbolic.table.atom("umin", (number, limit), 0, limit.constant, latest_block(number))
    return symbolic.table.plain(atom)


def _copy(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    if len(instr.operands) != 2 or isinstance(instr.operands[0], Vector):
        # What is unpacked is a part of what is read.
        return None
    return symbolic._operand(instr, instr.operands[1], of)


def _convert(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    types = instr.shape.types
    if len(types) == 2 and types[1][0] == "f":
        made = scaled(symbolic.ssa, symbolic._instrs, instr)
        source = None if made is None else symbolic._operand(made.instr, made.operand, of)
        return None if made is None or source is None else quotient(source, made)
    operands = _all(symbolic, instr, of, 1)
    if operands is None or len(types) != 2 or types[0][0] == "f":
        return None
    source = operands[0]
    if types[1].startswith("u"):
        symbolic._fits(instr, source, BITS.get(types[1], 32), False)
    return symbolic._fits(instr, source, BITS.get(types[0], 32), True)


def _selp(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    operands = _all(symbolic, instr, of, 2)
    predicate = instr.operands[3]
    if operands is None or not isinstance(predicate, Register):
        return None
    chosen = symbolic.value_read(instr, predicate)
    choice = symbolic._choice(chosen, of)
    if choice is not None:
        return operands[0] if choice else operands[1]
    block = symbolic.ssa.block_of(value)
    gap = None if all(o.is_constant for o in operands) else _compared(symbolic, chosen, of)
    return symbolic._select(chosen, operands[0], operands[1], block, gap)


def _compared(symbolic: Symbolic, predicate: int, of: _Of) -> tuple[str, Polynomial] | None:
    """What a predicate compares with 0, and how; None if it is no comparison of integers."""
    ssa = symbolic.ssa
    root, _ = ssa.root(predicate)
    if ssa.kind[root] != RESULT or ssa.result[root]:
        return None
    instr = symbolic._instrs[ssa.instr[root]]
    shape = instr.shape
    if shape.opcode != "setp" or len(instr.operands) != 3 or shape.type[0] not in "bus":
        return None
    relation = shape.modifiers[0]
    a, b = (symbolic._operand(instr, operand, of) for operand in instr.operands[1:3])
    if relation not in _FLIPPED or a is None or b is None:
        return None
    if shape.type[0] == "u" and min(a.range()[0], b.range()[0]) < 0:
        return None
    return relation, a - b


def _where(
    poly: Polynomial, bounds: tuple[int, int], relation: str, gap: Polynomial
) -> tuple[int, int]:
    """The bounds of a polynomial where `gap` has a relation to 0, if it is that and a number."""
    rest = poly - gap
    if not rest.is_constant:
        return bounds
    low, high = bounds
    at = rest.constant
    if relation in ("lt", "le"):
        high = min(high, at - (relation == "lt"))
    elif relation in ("gt", "ge"):
        low = max(low, at + (relation == "gt"))
    return (low, high) if low <= high else bounds


def _load(symbolic: Symbolic, instr: Instr, value: int, of: _Of) -> Polynomial | None:
    kind, address = instr.shape.type, instr.operands[1]
    if not isinstance(address, Address) or kind.startswith("f"):
        return None
    bits = BITS.get(kind, 32)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not kind.startswith("s") and BITS.get(symbolic.ssa.register[value].type, 0) > bits:
        low, high = 0, (1 << bits) - 1
    table = symbolic.table
    if instr.shape.space == "param" and isinstance(address.base, Symbol):
        return symbolic._parameter(address.base.name, address.offset, low, high)
    if len(instr.defs) != 1:
        return None
    low, high = symbolic._loaded(value, low, high)
    return table.plain(table.atom("load", (value,), low, high, symbolic.ssa.block_of(value)))


_RULES: Final[dict[str, _Rule]] = {
    "add": _add, "sub": _add, "mul": _mul, "mad": _mad, "shl": _shl, "shr": _shr,
    "and": _bitwise, "or": _bitwise, "xor": _bitwise, "not": _not, "neg": _neg, "bfe": _bfe,
    "div": _divide, "rem": _divide, "min": _extreme, "max": _extreme, "mov": _copy,
    "cvta": _copy, "cvt": _convert, "selp": _selp, "ld": _load, "ldu": _load,
}  # fmt: skip


def _thread_extents(facts: Facts) -> dict[str, int]:
    """The CTA's extents by axis, where `.reqntid` or the number of warps gives them.

    Triton's CTAs are one-dimensional; `.reqntid` with fewer values leaves the others at 1.
    """
    extents = facts.function.directives.get("reqntid")
    if extents:
        values = [int(e) for e in extents] + [1, 1]
        return dict(zip("xyz", values, strict=False))
    return {}


class SymbolicAnalysis(Analysis[Symbolic]):
    """Integer values; they are evaluated when asked for."""

    name: ClassVar[str] = "symbolic"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (SsaAnalysis, LoopsAnalysis)

    def run(self, facts: Facts) -> Symbolic:
        """Nothing is evaluated yet."""
        return Symbolic(facts)
