"""Memory accesses as base, byte offset and guard.

The base is the pointer parameter (or the shared variable) that an address is counted from, the
offset a polynomial of bytes. An access whose base cannot be told is listed with an empty base.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow.guards import Conjunct, Conjunction, Guards, GuardsAnalysis, both
from ptxlint.dataflow.obstacles import Obstacles
from ptxlint.dataflow.polynomial import LANES, Atom, Monomial, Polynomial, remembered
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Address, Indexed, Operand, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_KINDS: Final = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}


class Access(NamedTuple):
    """One memory access of one instruction.

    `kind` is `load`, `store`, `atomic` or `copy` (the source of a `cp.async`); `offset` is in bytes
    from `base`, `form` the offset without its constant, `width` how many bytes each thread touches.
    `own` is the instruction's guard and `path` what holds on the way to it, `guard` both; None says
    that the access never happens.
    """

    instr: Instr
    space: str
    base: str
    offset: Polynomial
    form: Polynomial
    width: int
    kind: str
    own: Conjunction | None
    path: Conjunction | None
    guard: Conjunction | None


class Index(NamedTuple):
    """A part of an offset: `element * scale * terms`, where the terms vary over the grid.

    `terms` has no constant and no common divisor. `scale` are the parameters multiplied with,
    `element` is the constant factor in bytes.
    """

    terms: Polynomial
    scale: Monomial
    element: int


class Limit(NamedTuple):
    """A conjunct `unit * terms <= bound`, where the terms vary and have no common divisor.

    `compared` is what is compared, in the units of the comparison; `extent` the bound without its
    constant.
    """

    terms: Polynomial
    unit: int
    bound: Polynomial
    compared: Polynomial
    extent: Polynomial


class Use(NamedTuple):
    """An offset holds `element * scale * index`: the bytes from one index to the next."""

    scale: Monomial
    element: int


class Confined(NamedTuple):
    """A varying index that is kept below a limit on its way into an offset.

    `how` is `wraps`, `clamps` or `selects`: `index % limit`, `min(index, limit)`, and
    `index < limit ? index : other`. The index comes without its constant.
    """

    inner: Polynomial
    limit: Polynomial
    how: str


class Accesses:
    """The global and shared accesses of a function, in program order."""

    def __init__(self, facts: Facts) -> None:
        self.symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self.guards: Guards = facts.get(GuardsAnalysis)
        self._pointers = _pointer_parameters(facts.function)
        self.in_global: list[Access] = []
        self._in_shared: list[Access] = []
        self._left: list[tuple[Instr, Operand, str, int]] = []
        """The shared accesses that were not looked into yet."""
        self.unknown: list[Instr] = []
        """Accesses by generic addresses, and global ones whose address is no polynomial, or whose
        base cannot be told."""
        self._facts = facts
        self._is_searched = False
        self._missing: tuple[str, Instr | None] | None = None
        self._confined: dict[Polynomial, list[Confined]] = {}
        self._splits: dict[tuple[Polynomial, str], tuple[str, Polynomial]] = {}
        self._bases: dict[tuple[int, str], tuple[str, Polynomial, int]] = {}
        self._distinct: list[Access] | None = None
        self._outlines: dict[Conjunction, Conjunction] = {}
        self._both: dict[tuple[Conjunction | None, Conjunction | None], Conjunction | None] = {}
        ways: dict[Shape, tuple[int, str, int] | None] = {}
        for instr in facts.function.instrs:
            shape = instr.shape
            if shape not in ways:
                ways[shape] = _way(instr)
            way = ways[shape]
            if way is not None:
                at, kind, width = way
                self._meet(instr, instr.operands[at], kind, width, shape.space)
            elif shape.opcode == "cp":
                for address, kind, width, space in _copied(instr):
                    self._meet(instr, address, kind, width, space)

    @property
    def in_shared(self) -> list[Access]:
        """The accesses to shared memory, in program order; found when asked for."""
        for instr, address, kind, width in self._left:
            self._add(instr, address, kind, width, "shared")
        self._left.clear()
        return self._in_shared

    def _meet(self, instr: Instr, address: Operand, kind: str, width: int, space: str) -> None:
        if space == "global":
            self._add(instr, address, kind, width, space)
        elif space == "shared":
            self._left.append((instr, address, kind, width))
        elif not space and self.guards.own(instr) is not None:
            self.unknown.append(instr)

    def _add(self, instr: Instr, address: Operand, kind: str, width: int, space: str) -> None:
        found = self._located(instr, address, space)
        if found is None or not found[0]:
            if space == "global":
                self.unknown.append(instr)
            if found is None:
                return
        base, form, constant = found
        block = self.guards.ssa.cfg.block_of[instr.index]
        path = self.guards.of_block(block) if self.guards.ssa.cfg.is_reachable(instr) else None
        own = self.guards.own(instr)
        key = (own, path)
        if key not in self._both:
            self._both[key] = both(own, path)
        offset = form + constant if constant else form
        access = Access(
            instr, space, base, offset, form, width, kind, own, path, self._both[key]
        )  # fmt: skip
        (self.in_global if space == "global" else self._in_shared).append(access)

    def missing(self) -> tuple[str, Instr | None] | None:
        """Why some accesses may not be known, and where; None if all are."""
        if not self._is_searched:
            self._is_searched = True
            self._missing = self._find_missing()
        return self._missing

    def _find_missing(self) -> tuple[str, Instr | None] | None:
        if self.unknown:
            first = self.unknown[0]
            if not first.shape.space:
                return "what a generic address points to is not known", first
            count = len(self.unknown)
            many = f"{count} addresses are" if count > 1 else "an address is"
            return f"{many} not understood", first
        if self.symbolic.exhausted:
            return "the kernel is too large for the work allowed", None
        hidden = next((i for i in self._facts.function.instrs if self._hides(i)), None)
        return None if hidden is None else (Obstacles(self._facts).at(hidden), hidden)

    def _hides(self, instr: Instr) -> bool:
        """True for what may access memory in a way that is not known, and comes back from it."""
        row = instr.shape.row
        if not row.is_call and (
            row.known or not any(isinstance(o, Address) for o in instr.operands)
        ):
            return False
        cfg = self.guards.ssa.cfg
        ends = cfg.blocks[cfg.block_of[instr.index]].leave
        return cfg.is_reachable(instr) and ends not in ("noreturn", "abort")

    @property
    def distinct(self) -> list[Access]:
        """The global accesses that happen and whose base is known, in program order; of those that
        differ in nothing but constants of the offset and of bounds on lanes, the width and the
        place, the first."""
        if self._distinct is None:
            found: dict[object, Access] = {}
            for access in self.in_global:
                if access.base and access.guard is not None:
                    guard, kind = self._outline(access.guard), access.instr.shape.type
                    found.setdefault((access.base, access.form, guard, access.kind, kind), access)
            self._distinct = list(found.values())
        return self._distinct

    def _outline(self, guard: Conjunction) -> Conjunction:
        """A guard without the constants in its bounds on lanes."""
        found = self._outlines.get(guard)
        if found is None:
            found = self._outlines[guard] = frozenset(map(_without_bound, guard))
        return found

    def indices(self, access: Access) -> list[Index]:
        """The indices that the access's offset is made of; see `indices`."""
        return indices(access.form)

    def use(self, access: Access, index: Polynomial) -> Use | None:
        """How the offset is made of this index, with nothing else in units of the same scale."""
        known: dict[Polynomial, Use | None] = access.form.derived.setdefault("use", {})
        if index in known:
            return known[index]
        found = use_of(access.form, index)
        for part in self.indices(access) if found is not None else ():
            if found is not None and part.scale == found.scale:
                found = found if _holds_only(part, found, index) else None
                break
        known[index] = found
        return found

    def is_in_tile(self, access: Access, core: Polynomial, element: int) -> bool:
        """True if the offset has lanes that count elements of so many bytes from where the tile
        `core` starts, and from nothing else."""
        found = use_of(access.form, core)
        if found is None or found.element != element:
            return False
        for part in self.indices(access):
            if part.scale == found.scale:
                start = Index(core_of(part.terms), part.scale, part.element)
                return bool(lanes_of(part.terms).terms) and _holds_only(start, found, core)
        return False

    def confined(self, access: Access) -> list[Confined]:
        """The indices in the offset that are wrapped or clamped."""
        known = self._confined.get(access.form)
        if known is None:
            atoms = sorted(access.form.atoms(), key=lambda atom: atom.number)
            known = [c for c in map(self._confinement, atoms) if c is not None]
            self._confined[access.form] = known
        return known

    def _confinement(self, atom: Atom) -> Confined | None:
        wrapped = wrapped_index(atom)
        if wrapped is not None:
            return Confined(*wrapped, "wraps")
        if atom.kind == "min":
            return _clamped(atom)
        if atom.kind == "select":
            return self._selected(atom)
        return None

    def _selected(self, atom: Atom) -> Confined | None:
        """`index < limit ? index : other`, by the comparison that chooses."""
        predicate, yes, no = atom.data
        for chosen, holds in ((yes, True), (no, False)):
            for conjunct in self.guards.of_predicate(predicate, holds) or ():
                limit = split_bound(conjunct)
                if limit is not None and limit.compared == varying_part(chosen):
                    return Confined(limit.compared, limit.extent, "selects")
        return None

    def base_of(self, address: Polynomial) -> str:
        """The pointer parameter that a global address is counted from; empty if it has none."""
        return self._parted(address, "global")[0]

    def _located(
        self, instr: Instr, address: Operand, space: str
    ) -> tuple[str, Polynomial, int] | None:
        """The base of an address, and what is added to it: what varies, and a constant.

        None if the address is no polynomial; the base is empty if it cannot be told.
        """
        if not isinstance(address, Address):
            return None
        if not isinstance(address.base, Register):
            poly = self.symbolic.address(instr, address)
            return None if poly is None else self._parted(poly, space)
        key = (self.symbolic.value_read(instr, address.base), space)
        found = self._bases.get(key)
        if found is None:
            poly = self.symbolic.operand_of(instr, address.base)
            if poly is None:
                return None
            found = self._bases[key] = self._parted(poly, space)
        base, form, constant = found
        return base, form, constant + address.offset

    def _parted(self, poly: Polynomial, space: str) -> tuple[str, Polynomial, int]:
        """An address as base, what varies and a constant."""
        key = (without_constant(poly), space)
        if key not in self._splits:
            self._splits[key] = self._split(*key)
        return (*self._splits[key], poly.constant)

    def _split(self, poly: Polynomial, space: str) -> tuple[str, Polynomial]:
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
        rest = poly - poly.table.plain(found[0])
        return str(found[0].data[0]), without_constant(rest)


def _pointer_parameters(function: Function) -> frozenset[str]:
    """Parameters that may be addresses: those marked `.ptr`, or all of 64 bits if none is."""
    marked = frozenset(p.name for p in function.params if "ptr" in p.attributes)
    if marked:
        return marked
    return frozenset(p.name for p in function.params if BITS.get(p.type) == 64 and not p.dims)


def _way(instr: Instr) -> tuple[int, str, int] | None:
    """Which operand is the address, the kind and the bytes of a plain access; of all of a shape."""
    kind = _KINDS.get(instr.opcode)
    if kind is not None:
        for at, operand in enumerate(instr.operands):
            if isinstance(operand, Address | Indexed):
                return at, kind, _bytes(instr, at)
    return None


def _copied(instr: Instr) -> Iterator[tuple[Operand, str, int, str]]:
    """(address, kind, bytes, space) of both accesses of a `cp.async`."""
    if instr.shape.has("async") and len(instr.operands) >= 3:
        size = fold(instr.operands[2])
        if size is not None and not instr.shape.has("bulk"):
            yield instr.operands[1], "copy", size, "global"
            yield instr.operands[0], "store", size, "shared"


def _bytes(instr: Instr, address_at: int) -> int:
    """How many bytes each thread touches."""
    element = max(1, BITS.get(instr.shape.type, 32) // 8)
    data = [o for at, o in enumerate(instr.operands) if at != address_at]
    vector = next((o for o in data if isinstance(o, Vector)), None)
    return element * (len(vector.elements) if vector is not None else 1)


def is_varying(atom: Atom) -> bool:
    """True for lanes, CTA numbers and iterations, and for what is made of them."""
    return bool(atom.depends)


@remembered
def without_constant(poly: Polynomial) -> Polynomial:
    """The polynomial without its constant."""
    return poly - poly.constant if poly.constant else poly


@remembered
def varying_part(poly: Polynomial) -> Polynomial:
    """The terms that vary over the grid, those with parameters as factors included."""
    depends = poly.table.depends
    return Polynomial(poly.table, {m: c for m, c in poly.terms.items() if depends[m]})


def split_bound(conjunct: Conjunct) -> Limit | None:
    """What a conjunct `bound - index >= 0` says; None if it is no such thing.

    The index is the part that varies, the bound holds a parameter or a loaded extent.
    """
    return None if conjunct.polynomial is None else _split(conjunct.polynomial)


@remembered
def _split(poly: Polynomial) -> Limit | None:
    index = -varying_part(poly)
    bound = poly + index
    if not index.terms or bound.is_constant:
        return None
    unit = index.gcd()
    terms = Polynomial(poly.table, {m: c // unit for m, c in index.terms.items()})
    return Limit(terms, unit, bound, index, bound - bound.constant)


def _without_bound(conjunct: Conjunct) -> Conjunct:
    """A bound on lanes without its constant; any other conjunct as it is."""
    limit = split_bound(conjunct)
    if conjunct.polynomial is None or limit is None or not lanes_of(limit.compared).terms:
        return conjunct
    return Conjunct(without_constant(conjunct.polynomial))


@remembered
def indices(offset: Polynomial) -> list[Index]:
    """The offset's varying terms, grouped by the parameters that they are multiplied with.

    `4*stride*(pid*64 + lane) + 4*col` gives one index scaled by the stride and one by nothing.
    """
    table = offset.table
    groups: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, coefficient in offset.terms.items():
        if table.depends[monomial]:
            scale = tuple(n for n in monomial if _is_scale(table.atoms[n]))
            steps = tuple(n for n in monomial if n not in scale)
            groups.setdefault(scale, {})[steps] = coefficient
    out = []
    for scale, terms in groups.items():
        poly = Polynomial(table, terms)
        element = poly.gcd()
        reduced = Polynomial(table, {m: c // element for m, c in terms.items()})
        out.append(Index(reduced, scale, element))
    return out


def _is_scale(atom: Atom) -> bool:
    """True for what an index is multiplied by: the size of the grid only counts CTAs."""
    return not is_varying(atom) and atom.kind not in ("nctaid", "ntid")


def use_of(offset: Polynomial, index: Polynomial) -> Use | None:
    """The scale and the factor with which all terms of an index are in an offset."""
    if not index.terms:
        return None
    table = offset.table
    pivot = min(index.terms, key=len)
    unit = index.terms[pivot]
    wanted = set(pivot)
    for monomial, coefficient in offset.terms.items():
        if coefficient % unit or not wanted.issubset(monomial):
            continue
        scale = tuple(n for n in monomial if n not in wanted)
        element = coefficient // unit
        if not all(_is_scale(table.atoms[n]) for n in scale) or element <= 0:
            continue
        if all(
            offset.terms.get(table.multiply(m, scale)) == c * element
            for m, c in index.terms.items()
        ):
            return Use(scale, element)
    return None


def _holds_only(part: Index, use: Use, index: Polynomial) -> bool:
    """True if the part of an offset with the scale of an index is made of that index alone, or of
    it and of what stays below one step of it: the columns of a row of constant length."""
    whole = index.terms
    rest = {
        monomial: coefficient * part.element - whole.get(monomial, 0) * use.element
        for monomial, coefficient in part.terms.terms.items()
    }
    if not any(rest.values()):
        return True
    low, high = Polynomial(index.table, {m: c for m, c in rest.items() if c}).range()
    return low >= 0 and high < use.element


@remembered
def core_of(index: Polynomial) -> Polynomial:
    """The terms of an index that are the same for all threads of a CTA: where its tile starts."""
    depends = index.table.depends
    kept = {m: c for m, c in index.terms.items() if not depends[m] & LANES}
    return Polynomial(index.table, kept)


@remembered
def lanes_of(index: Polynomial) -> Polynomial:
    """The terms of an index that differ between the threads of a CTA."""
    depends = index.table.depends
    return Polynomial(index.table, {m: c for m, c in index.terms.items() if depends[m] & LANES})


def is_part_of(start: Polynomial, core: Polynomial) -> bool:
    """True if a multiple of `core` has all terms of `start`, which the scale of some of its terms
    may have parted from the others; for no terms at all, if neither has any."""
    whole = core.terms
    if not start.terms or not whole:
        return not start.terms and not whole
    ratio: tuple[int, int] | None = None
    for monomial, coefficient in start.terms.items():
        other = whole.get(monomial)
        if other is None:
            return False
        if ratio is None:
            ratio = coefficient, other
        elif coefficient * ratio[1] != ratio[0] * other:
            return False
    return True


@remembered
def reduced(poly: Polynomial) -> Polynomial:
    """The varying and fixed terms without their common divisor; the constant is left out."""
    unit = poly.gcd() or 1
    return Polynomial(poly.table, {m: c // unit for m, c in poly.terms.items() if m})


@remembered
def same_rounds(poly: Polynomial) -> Polynomial:
    """The polynomial with the iterations of loops counted alike: two loops that go over one array
    in the same steps have the same index then."""
    rounds = sorted((a for a in poly.atoms() if a.kind == "index"), key=lambda atom: atom.number)
    if not rounds:
        return poly
    table = poly.table
    names = {
        atom: table.plain(table.atom("index", (f"any{at}",), 0)) for at, atom in enumerate(rounds)
    }
    return poly.substitute(names)


@remembered
def is_tiled(index: Polynomial) -> bool:
    """True for lanes beside a start that varies over the grid or over the rounds of a loop."""
    core = varying_part(core_of(index))
    return bool(core.terms) and bool(lanes_of(index).terms)


def _clamped(atom: Atom) -> Confined | None:
    """`min(index, limit)`."""
    for index, limit in (atom.data, atom.data[::-1]):
        varying = varying_part(index)
        if varying.terms and not varying_part(limit).terms and not limit.is_constant:
            return Confined(varying, limit, "clamps")
    return None


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
