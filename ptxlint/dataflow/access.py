"""Memory accesses as base, byte offset and guard.

The base is the pointer parameter (or the shared variable) that an address is counted from, the
offset a polynomial of bytes. An access whose base cannot be told is listed with an empty base.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow.guards import Conjunct, Conjunction, Guards, GuardsAnalysis
from ptxlint.dataflow.polynomial import Atom, AtomTable, Monomial, Polynomial
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Indexed, Operand, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_KINDS: Final = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
VARYING: Final = frozenset({"bit", "ctaid", "index"})
"""Atoms that tell one access of an array from another: lanes, CTAs, iterations."""


class Access(NamedTuple):
    """One memory access of one instruction.

    `kind` is `load`, `store`, `atomic` or `copy` (the source of a `cp.async`); `offset` is in bytes
    from `base`, `width` how many bytes each thread touches. `own` is the instruction's guard and
    `path` what holds on the way to it; None in either says that the access never happens.
    """

    instr: Instr
    space: str
    base: str
    offset: Polynomial
    width: int
    kind: str
    own: Conjunction | None
    path: Conjunction | None

    @property
    def guard(self) -> Conjunction | None:
        """Everything that holds when the access happens; None if it never does."""
        return None if self.own is None or self.path is None else self.own | self.path


class Index(NamedTuple):
    """A part of an offset: `element * scale * terms`, where the terms vary over the grid.

    `terms` has no constant and no common divisor. `scale` are the parameters multiplied with,
    `element` is the constant factor in bytes.
    """

    terms: Polynomial
    scale: Monomial
    element: int


class Limit(NamedTuple):
    """A conjunct `unit * terms <= bound`, where the terms vary and have no common divisor."""

    terms: Polynomial
    unit: int
    bound: Polynomial


class Accesses:
    """The global and shared accesses of a function, in program order."""

    def __init__(self, facts: Facts) -> None:
        self.symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self.guards: Guards = facts.get(GuardsAnalysis)
        self._pointers = _pointer_parameters(facts.function)
        self.in_global: list[Access] = []
        self.in_shared: list[Access] = []
        self.unknown: list[Instr] = []
        """Global accesses whose address is no polynomial, or whose base cannot be told."""
        self._indices: dict[Polynomial, list[Index]] = {}
        for instr in facts.function.instrs:
            for address, kind, width, space in _addresses(instr):
                self._add(instr, address, kind, width, space)

    def _add(self, instr: Instr, address: Operand, kind: str, width: int, space: str) -> None:
        if space not in ("global", "shared"):
            return
        poly = self._polynomial(instr, address)
        base, offset = ("", poly) if poly is None else self._split(poly, space)
        if offset is None or not base:
            if space == "global":
                self.unknown.append(instr)
            if offset is None:
                return
        block = self.guards.ssa.cfg.block_of[instr.index]
        path = self.guards.of_block(block) if self.guards.ssa.cfg.is_reachable(instr) else None
        access = Access(instr, space, base, offset, width, kind, self.guards.own(instr), path)
        (self.in_global if space == "global" else self.in_shared).append(access)

    def indices(self, access: Access) -> list[Index]:
        """The indices that the access's offset is made of; see `indices`."""
        found = self._indices.get(access.offset)
        if found is None:
            found = self._indices[access.offset] = indices(access.offset)
        return found

    def using(self, access: Access, index: Polynomial) -> Index | None:
        """The part of the offset that is a multiple of exactly this index, if there is one.

        `index` has no constant, and no common divisor of its coefficients.
        """
        for part in self.indices(access):
            if part.terms == index:
                return part
        return None

    def _polynomial(self, instr: Instr, address: Operand) -> Polynomial | None:
        if isinstance(address, Address):
            return self.symbolic.address(instr, address)
        return None

    def _split(self, poly: Polynomial, space: str) -> tuple[str, Polynomial | None]:
        """The base of an address and what is added to it."""
        kind = "param" if space == "global" else "symbol"
        found = [
            atom
            for atom in poly.atoms()
            if poly.coefficient(atom) == 1
            and (atom.kind == kind or (kind == "param" and atom.kind == "symbol"))
            and (atom.kind != "param" or atom.data[0] in self._pointers)
        ]
        if len(found) != 1:
            return "", poly
        return str(found[0].data[0]), poly - poly.table.plain(found[0])


def _pointer_parameters(function: Function) -> frozenset[str]:
    """Parameters that may be addresses: those marked `.ptr`, or all of 64 bits if none is."""
    marked = frozenset(p.name for p in function.params if "ptr" in p.attributes)
    if marked:
        return marked
    return frozenset(p.name for p in function.params if BITS.get(p.type) == 64 and not p.dims)


def _addresses(instr: Instr) -> Iterator[tuple[Operand, str, int, str]]:
    """(address, kind, bytes, space) of each access that an instruction makes."""
    shape = instr.shape
    kind = _KINDS.get(shape.opcode)
    if kind is not None:
        for at, operand in enumerate(instr.operands):
            if isinstance(operand, Address | Indexed):
                yield operand, kind, _bytes(instr, at), shape.space
                return
    elif shape.opcode == "cp" and shape.has("async") and len(instr.operands) >= 3:
        size = fold(instr.operands[2])
        if size is not None and not shape.has("bulk"):
            yield instr.operands[1], "copy", size, "global"
            yield instr.operands[0], "store", size, "shared"


def _bytes(instr: Instr, address_at: int) -> int:
    """How many bytes each thread touches."""
    element = max(1, BITS.get(instr.shape.type, 32) // 8)
    data = [o for at, o in enumerate(instr.operands) if at != address_at]
    vector = next((o for o in data if isinstance(o, Vector)), None)
    return element * (len(vector.elements) if vector is not None else 1)


def is_varying(table: AtomTable, number: int) -> bool:
    """True for lanes, CTA numbers and iterations, and for what is made of them."""
    return any(table.atoms[inner].kind in VARYING for inner in table.atoms[number].inner)


def varying_part(poly: Polynomial) -> Polynomial:
    """The terms that vary over the grid, those with parameters as factors included."""
    table = poly.table
    return Polynomial(
        table, {m: c for m, c in poly.terms.items() if any(is_varying(table, n) for n in m)}
    )


def split_bound(conjunct: Conjunct) -> Limit | None:
    """What a conjunct `bound - index >= 0` says; None if it is no such thing.

    The index is the part that varies, the bound holds a parameter or a loaded extent.
    """
    poly = conjunct.polynomial
    if poly is None:
        return None
    index = -varying_part(poly)
    bound = poly + index
    if not index.terms or bound.is_constant:
        return None
    unit = index.gcd()
    terms = Polynomial(poly.table, {m: c // unit for m, c in index.terms.items()})
    return Limit(terms, unit, bound)


def indices(offset: Polynomial) -> list[Index]:
    """The offset's varying terms, grouped by the parameters that they are multiplied with.

    `4*stride*(pid*64 + lane) + 4*col` gives one index scaled by the stride and one by nothing.
    """
    table = offset.table
    groups: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, coefficient in offset.terms.items():
        varying = tuple(n for n in monomial if is_varying(table, n))
        if varying:
            scale = tuple(n for n in monomial if not is_varying(table, n))
            groups.setdefault(scale, {})[varying] = coefficient
    out = []
    for scale, terms in groups.items():
        poly = Polynomial(table, terms)
        element = poly.gcd()
        reduced = Polynomial(table, {m: c // element for m, c in terms.items()})
        out.append(Index(reduced, scale, element))
    return out


def wrapped_index(atom: Atom) -> tuple[Polynomial, Polynomial] | None:
    """(index, limit) of the quotient in `index - limit * (index / limit)`, a remainder.

    The index comes without its constant; None for any other atom.
    """
    if atom.kind != "div":
        return None
    index, limit = atom.data
    if varying_part(limit).terms or limit.is_constant:
        return None
    return varying_part(index), limit


class AccessAnalysis(Analysis[Accesses]):
    """Global and shared accesses."""

    name: ClassVar[str] = "access"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (SymbolicAnalysis, GuardsAnalysis)

    def run(self, facts: Facts) -> Accesses:
        """Find and resolve all accesses."""
        return Accesses(facts)
