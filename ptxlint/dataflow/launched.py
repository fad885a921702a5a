"""Integer values under one launch: parameters are numbers, and the grid has its size.

The evaluation is that of `ptxlint.dataflow.symbolic`, made anew: what parameters and sizes decide
(quotients, minima, selections, the rounds of loops) is decided on the way, and the CTA's number has
the bounds of this grid. How many CTAs there are makes no difference to the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Final, TypeAlias

from ptxlint.dataflow.bitwise import as_field, floor_divide, with_bits_set
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import MERGE, RESULT
from ptxlint.dataflow.symbolic import Symbolic
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register, Symbol
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_SHARED_WINDOW: Final = 1 << 20
"""Addresses of variables in shared memory are smaller: no target has so much."""
_AXES: Final = {"x": 0, "y": 1, "z": 2}
_DEPTH: Final = 6
"""How deep a predicate of predicates is looked into."""
_HOLDS: Final[dict[str, Callable[[int, int], bool | None]]] = {
    "lt": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "le": lambda low, high: True if high <= 0 else False if low > 0 else None,
    "gt": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "ge": lambda low, high: True if low >= 0 else False if high < 0 else None,
    "eq": lambda low, high: False if low > 0 or high < 0 else True if low == high == 0 else None,
    "ne": lambda low, high: True if low > 0 or high < 0 else False if low == high == 0 else None,
}  # fmt: skip
"""Whether a difference from `low` to `high` has the relation to 0; None if it may or may not."""
_UNSIGNED_NAMES: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


Form: TypeAlias = tuple[int, ...]
"""A polynomial in the one number that is left open: its coefficients, the constant first."""


class Varying:
    """One number of a launch that is left open, and what goes with it.

    The number lies between `low` and `high`, both included. `parameters` are those whose value is
    made of it, by name; `extents` those axes of the grid that have so many CTAs as a form comes to
    divided by a number, rounded up.
    """

    __slots__ = ("extents", "high", "low", "parameters")

    def __init__(
        self,
        low: int,
        high: int,
        parameters: Mapping[str, Form],
        extents: Mapping[int, tuple[Form, int]],
    ) -> None:
        self.low = low
        self.high = high
        self.parameters = parameters
        self.extents = extents


class Setting:
    """What a launch fixes.

    `value` gives what a load from a parameter brings, by name, byte offset and the range of the
    type, None if that is not known; `addresses` those of pointers by parameter; `loaded` bounds of
    what an instruction loads, by its index, where they are promised; `varying` what is left open.
    """

    __slots__ = ("addresses", "block", "grid", "loaded", "value", "varying")

    def __init__(
        self,
        value: Callable[[str, int, int, int], int | None],
        addresses: Mapping[str, int],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        loaded: Callable[[int], tuple[int, int] | None] | None = None,
        varying: Varying | None = None,
    ) -> None:
        self.value = value
        self.addresses = addresses
        self.grid = grid
        self.block = block
        self.loaded = loaded
        self.varying = varying


class LaunchedSymbolic(Symbolic):
    """The integer values of one function under a launch.

    Pointers stay atoms, of which the address is known, so that every address keeps its base.
    """

    def __init__(self, facts: Facts, setting: Setting) -> None:
        super().__init__(facts)
        self._setting = setting
        variables = (*facts.module.variables.values(), *facts.function.variables)
        self._in_shared = frozenset(v.name for v in variables if v.space == "shared")
        self._geometry = dict(zip("xyz", setting.block, strict=True))

    def _parameter(self, name: str, offset: int, low: int, high: int) -> Polynomial:
        setting = self._setting
        address = setting.addresses.get(name) if not offset else None
        if address is not None:
            return self.table.plain(self.table.atom("param", (name, 0), address, address))
        varying = setting.varying
        if varying is not None and name in varying.parameters:
            poly = self.of_form(varying.parameters[name])
            least, most = poly.range()
            if offset or least < low or most > high:
                return super()._parameter(name, offset, low, high)
            return poly
        value = setting.value(name, offset, low, high)
        if value is None:
            return super()._parameter(name, offset, low, high)
        return self.table.constant(value)

    @property
    def number(self) -> Polynomial | None:
        """The number that is left open; None if the launch fixes all."""
        varying = self._setting.varying
        if varying is None:
            return None
        atom = self.table.atom("param", ("", 0), varying.low, varying.high)
        return self.table.plain(atom)

    def of_form(self, form: Form) -> Polynomial:
        """A form in the number that is left open, as a polynomial."""
        total, power = self.table.constant(0), self.table.constant(1)
        number = self.number
        for coefficient in form:
            total += power * coefficient
            power = power if number is None else power * number
        return total

    def _operand(
        self, instr: Instr, operand: Operand, of: Callable[[int], Polynomial]
    ) -> Polynomial | None:
        if isinstance(operand, Symbol) and operand.name in self._in_shared:
            atom = self.table.atom("symbol", (operand.name,), 0, _SHARED_WINDOW)
            return self.table.plain(atom)
        return super()._operand(instr, operand, of)

    def _loaded(self, value: int, low: int, high: int) -> tuple[int, int]:
        promised = self._setting.loaded
        found = promised(self.ssa.instr[value]) if promised is not None else None
        if found is None or found[0] < low or found[1] > high:
            return low, high
        return found

    def _special(self, name: str) -> Polynomial | None:
        base, _, axis = name.partition(".")
        at = _AXES.get(axis)
        varying = self._setting.varying
        if at is not None and varying is not None and at in varying.extents:
            form, divisor = varying.extents[at]
            extent_of = floor_divide(self.of_form(form) + (divisor - 1), divisor)
            if base == "%nctaid":
                return extent_of
            if base == "%ctaid":
                most = max(0, extent_of.range()[1] - 1)
                return self.table.plain(self.table.atom("ctaid", (axis,), 0, most))
        if at is not None and base == "%ctaid":
            extent = self._setting.grid[at]
            if extent == 1:
                return self.table.constant(0)
            return self.table.plain(self.table.atom("ctaid", (axis,), 0, extent - 1))
        if at is not None and base == "%nctaid":
            return self.table.constant(self._setting.grid[at])
        return super()._special(name)

    def _transfer(self, value: int, known: MutableMapping[int, Polynomial]) -> Polynomial | None:
        if self.ssa.kind[value] != RESULT or self.ssa.resolve(value) != value:
            return super()._transfer(value, known)
        instr = self._instrs[self.ssa.instr[value]]
        opcode = instr.shape.opcode
        if opcode == "atom" or (opcode in ("ld", "ldu") and len(instr.defs) > 1):
            return self._promised(instr, value)
        if self._rule(value) is None:
            return super()._transfer(value, known)
        if opcode in ("div", "rem") and not self._is_defined(instr, known):
            return None
        found = super()._transfer(value, known)
        if found is not None:
            return found
        if opcode not in ("or", "and", "bfe"):
            return None
        read = [
            self._operand(instr, operand, lambda v: known.get(v) or self._opaque(v))
            for operand in instr.operands[1:]
        ]
        parts = [poly for poly in read if poly is not None]
        if len(parts) != len(read):
            return None
        if opcode == "bfe":
            return _signed_field(*parts) if instr.shape.type[0] == "s" else None
        a, b = parts
        return with_bits_set(a, b) if opcode == "or" else _under_mask(a, b)

    def _promised(self, instr: Instr, value: int) -> Polynomial | None:
        """One of several numbers that are loaded, or what an atomic operation finds, if its bounds
        are promised."""
        bits = BITS.get(instr.shape.type, 64)
        if instr.shape.type[0] == "f" or BITS.get(self.ssa.register[value].type) != bits:
            return None
        low, high = -1 << (bits - 1), (1 << (bits - 1)) - 1
        found = self._loaded(value, low, high)
        if found == (low, high):
            return None
        return self.table.plain(self.table.atom("load", (value,), *found, self.ssa.block_of(value)))

    def _is_defined(self, instr: Instr, known: MutableMapping[int, Polynomial]) -> bool:
        """True if a division is by no 0, for which the result is unspecified (PTX ISA, "div"), and
        its result fits the word."""
        a, b = (
            self._operand(instr, operand, lambda v: known.get(v) or self._opaque(v))
            for operand in instr.operands[1:3]
        )
        if a is None or b is None:
            return False
        low, high = b.range()
        if low <= 0 <= high:
            return False
        least = -1 << (BITS.get(instr.shape.type, 64) - 1)
        return not (low <= -1 <= high) or a.range()[0] > least

    def _fits(self, instr: Instr, poly: Polynomial, bits: int, signed: bool) -> Polynomial:
        # Compilers subtract 16 bytes as 2^60 - 1 elements of 16: in 64 bits that is the same.
        if bits == 64 and signed and any(abs(c) >> 63 for c in poly.terms.values()):
            terms = {m: (c + (1 << 63)) % (1 << 64) - (1 << 63) for m, c in poly.terms.items()}
            poly = Polynomial(poly.table, {m: c for m, c in terms.items() if c})
        return super()._fits(instr, poly, bits, signed)

    def threads(self) -> list[Polynomial]:
        """What is not negative because blocks and grids are no larger than they are: one for each
        axis along which the block is no power of two, or the grid goes with what is left open."""
        out = []
        for axis, extent in self._geometry.items():
            if extent & (extent - 1):
                index = self._special(f"%tid.{axis}")
                if index is not None:
                    out.append(-index + (extent - 1))
        varying = self._setting.varying
        for at, (form, divisor) in varying.extents.items() if varying is not None else ():
            index = self._special(f"%ctaid.{'xyz'[at]}")
            if index is not None:
                out.append(_whole(self.of_form(form) - index * divisor - 1))
        return out

    # Predicates that the launch decides -------------------------------------------------------
    def _needs(self, value: int, known: MutableMapping[int, Polynomial]) -> tuple[int, ...]:
        needed = super()._needs(value, known)
        ssa = self.ssa
        if ssa.kind[value] == MERGE and ssa.resolve(value) == value:
            return needed + self._compared_in(ssa.operands[value][0], _DEPTH)
        if ssa.kind[value] == RESULT and needed:
            instr = self._instrs[ssa.instr[value]]
            if instr.shape.opcode == "selp" and isinstance(instr.operands[3], Register):
                return needed + self._compared_in(self.value_read(instr, instr.operands[3]), _DEPTH)
        return needed

    def _compared_in(self, predicate: int, depth: int) -> tuple[int, ...]:
        """The integers that a predicate compares."""
        ssa = self.ssa
        root, _ = ssa.root(ssa.resolve(predicate))
        if ssa.kind[root] != RESULT or depth <= 0:
            return ()
        instr = self._instrs[ssa.instr[root]]
        found: tuple[int, ...] = ()
        for value in ssa.operands[root] if instr.shape.opcode in ("setp", "and", "or") else ():
            kind = ssa.register[value].type
            if kind == "pred":
                found += self._compared_in(value, depth - 1)
            elif kind[0] in "bus" and BITS.get(kind, 0) >= 16:
                found += (value,)
        return found

    def _choice(self, predicate: int, known: Callable[[int], Polynomial | None]) -> bool | None:
        return self._truth(predicate, known, _DEPTH)

    def _truth(
        self, predicate: int, known: Callable[[int], Polynomial | None], depth: int
    ) -> bool | None:
        ssa = self.ssa
        root, same = ssa.root(ssa.resolve(predicate))
        if ssa.kind[root] != RESULT or depth <= 0:
            return None
        instr = self._instrs[ssa.instr[root]]
        shape = instr.shape
        found: bool | None = None
        if shape.opcode == "mov" and len(instr.operands) == 2:
            constant = fold(instr.operands[1])
            found = None if constant is None else bool(constant)
        elif shape.opcode in ("and", "or") and len(instr.operands) == 3:
            parts = [self._of_operand(instr, o, known, depth - 1) for o in instr.operands[1:]]
            deciding = shape.opcode == "or"
            if deciding in parts:
                found = deciding
            elif None not in parts:
                found = not deciding
        elif shape.opcode == "setp" and not ssa.result[root] and len(instr.operands) == 3:
            found = self._comparison(root, known)
        return None if found is None else found == same

    def _of_operand(
        self,
        instr: Instr,
        operand: Operand,
        known: Callable[[int], Polynomial | None],
        depth: int,
    ) -> bool | None:
        if isinstance(operand, Negated) and operand.sign == "!":
            inner = self._of_operand(instr, operand.operand, known, depth)
            return None if inner is None else not inner
        if isinstance(operand, Register):
            return self._truth(self.value_read(instr, operand), known, depth)
        constant = fold(operand)
        return None if constant is None else bool(constant)

    def _comparison(self, root: int, known: Callable[[int], Polynomial | None]) -> bool | None:
        instr = self._instrs[self.ssa.instr[root]]
        shape = instr.shape
        if shape.type[0] not in "bus":
            return None
        relation = _UNSIGNED_NAMES.get(shape.modifiers[0], shape.modifiers[0])
        unsigned = shape.type[0] == "u" or relation != shape.modifiers[0]
        if relation not in _HOLDS:
            return None
        missing = self.table.constant(0)
        read = [
            self._operand(instr, operand, lambda v: known(v) or missing)
            for operand in instr.operands[1:3]
        ]
        for value in self.ssa.operands[root]:
            if known(value) is None:
                return None
        a, b = read
        if a is None or b is None:
            return None
        if unsigned and relation not in ("eq", "ne") and min(a.range()[0], b.range()[0]) < 0:
            return None
        return _HOLDS[relation](*(a - b).range())


def _whole(poly: Polynomial) -> Polynomial:
    """What is not negative exactly where another number is not: without a common divisor."""
    step = poly.gcd()
    if step <= 1:
        return poly
    return Polynomial(poly.table, {m: c // step for m, c in poly.terms.items() if c // step})


def _under_mask(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a & b where one of them is 0 or -1."""
    for mask, other in ((a, b), (b, a)):
        if mask.range() in ((-1, 0), (-1, -1)):
            return -mask * other
    return None


def _signed_field(source: Polynomial, start: Polynomial, length: Polynomial) -> Polynomial | None:
    """`length` bits of a non-negative number from `start` on, the highest one their sign."""
    if not (start.is_constant and length.is_constant) or source.range()[0] < 0:
        return None
    at, bits = start.constant, length.constant
    if at < 0 or not 0 < bits <= 32:
        return None
    field = as_field(source.table, source, at, bits)
    if field is None:
        return None
    return field - floor_divide(field, 1 << (bits - 1)) * (1 << bits)


__all__ = ["Form", "LaunchedSymbolic", "Setting", "Varying"]
