"""Integer polynomials over atoms: the normal form of index arithmetic.

A polynomial is a sum of integer coefficients times monomials; a monomial is a product of atoms. An
atom is something that the arithmetic does not look into: a bit of the thread index, a parameter, a
loop's iteration number. Atoms are interned in one table per function, so that two values that are
computed alike have the same polynomial. The meaning is that of mathematical integers; whether the
machine's word was wide enough is a question of its own (`ptxlint.dataflow.symbolic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from math import gcd
from typing import Any, Final, TypeAlias, TypeVar

Monomial: TypeAlias = tuple[int, ...]
"""The numbers of the atoms multiplied, ascending; a bit occurs once, others once a power."""

_LONGEST_TEXT: Final = 400
"""Characters that an atom is spelled with; a longer one is named by its number."""
LANES: Final = 1
CTAS: Final = 2
ROUNDS: Final = 4
"""What an atom can depend on: bits of the thread's number, the CTA's, a loop's iteration."""
_DEPENDS: Final = {"bit": LANES, "ctaid": CTAS, "index": ROUNDS}

INFINITY: Final = 1 << 200
"""Stands for no bound. Arithmetic on it stays beyond every bound that a program can reach."""


class Atom:
    """One atom. `kind` says what it is and `data` tells it from others of its kind.

    =========== ============================== =============================================
    kind        data                           meaning
    =========== ============================== =============================================
    `bit`       (axis, i)                      bit i of `%tid.axis`
    `ctaid`     (axis,)                        `%ctaid.axis`; likewise `nctaid`, `ntid`
    `param`     (name, offset)                 what a parameter holds
    `symbol`    (name,)                        the address of a variable
    `index`     (header block,)                iteration number of a loop, 0 at first
    `load`      (value,)                       an integer loaded from memory
    `fdiv`      (polynomial, c)                floor(polynomial / c)
    `div`       (polynomial, polynomial)       quotient, rounded towards zero
    `min` `max` (polynomial, polynomial)       the smaller, the larger
    `select`    (predicate, same, p, q)        p where the predicate is `same`, else q
    `opaque`    (value,)                       any other SSA value
    =========== ============================== =============================================

    `low` and `high` bound it (inclusive). `block` is where it is computed, -1 if it is the same
    wherever it stands. `inner` numbers the atoms that it is made of, at any depth, itself last.
    `depends` says by which of `LANES`, `CTAS` and `ROUNDS` it varies as far as its own polynomials
    tell.
    """

    __slots__ = ("_text", "block", "data", "depends", "high", "inner", "kind", "low", "number")

    def __init__(
        self,
        number: int,
        kind: str,
        data: tuple[Any, ...],
        low: int,
        high: int,
        block: int,
        inner: tuple[int, ...],
    ) -> None:
        self.number = number
        self.kind = kind
        self.data = data
        self.low = low
        self.high = high
        self.block = block
        self.inner = inner
        self._text = ""
        self.depends = _DEPENDS.get(kind, 0)
        for part in data:
            if isinstance(part, Polynomial):
                self.depends |= part.depends

    def __repr__(self) -> str:
        if not self._text:
            text = self._spelled()
            # A text may hold that of an inner atom twice, and so on inwards.
            self._text = text if len(text) <= _LONGEST_TEXT else f"{self.kind}#{self.number}"
        return self._text

    def _spelled(self) -> str:
        kind, data = self.kind, self.data
        if kind == "bit":
            return f"tid.{data[0]}[{data[1]}]"
        if kind in ("ctaid", "nctaid", "ntid"):
            return f"{kind}.{data[0]}"
        if kind == "param":
            return f"{data[0]}+{data[1]}" if data[1] else str(data[0])
        if kind == "symbol":
            return str(data[0])
        if kind == "index":
            return f"K{data[0]}"
        if kind in ("load", "opaque"):
            return f"{kind}#{data[0]}"
        return f"{kind}({', '.join(map(str, data))})"


class Polynomial:
    """An immutable polynomial. Equal ones compare and hash equal within one table."""

    __slots__ = ("_body", "_derived", "_hash", "_range", "table", "terms")

    def __init__(self, table: AtomTable, terms: dict[Monomial, int]) -> None:
        self.table = table
        self.terms = terms
        """Coefficient by monomial, no zero among them; `()` holds the constant."""
        self._hash: int | None = None
        self._body = -1
        self._range: tuple[int, int] | None = None
        self._derived: dict[str, Any] | None = None

    @property
    def derived(self) -> dict[str, Any]:
        """What functions of this polynomial and its equals gave; see `remembered`."""
        found = self._derived
        if found is None:
            found = self._derived = self.table.derived.setdefault(self, {})
        return found

    @property
    def constant(self) -> int:
        """The term without atoms."""
        return self.terms.get((), 0)

    @property
    def is_constant(self) -> bool:
        """True if there is no atom in it."""
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    def __add__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        items = other.terms.items() if isinstance(other, Polynomial) else (((), other),)
        for monomial, coefficient in items:
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Polynomial(self.table, terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        if not isinstance(other, Polynomial):
            return self + -other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) - coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Polynomial(self.table, terms)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        if isinstance(other, int):
            if not other:
                return Polynomial(self.table, {})
            return Polynomial(self.table, {m: c * other for m, c in self.terms.items()})
        if other.is_constant:
            return self * other.constant
        if self.is_constant:
            return other * self.constant
        out: dict[Monomial, int] = {}
        multiply = self.table.multiply
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = multiply(left, right)
                total = out.get(monomial, 0) + a * b
                if total:
                    out[monomial] = total
                else:
                    out.pop(monomial, None)
        return Polynomial(self.table, out)

    def atoms(self) -> set[Atom]:
        """The atoms that occur."""
        atoms = self.table.atoms
        return {atoms[number] for monomial in self.terms for number in monomial}

    def all_atoms(self) -> list[Atom]:
        """The atoms that occur, and those that they are made of, each once."""
        atoms = self.table.atoms
        found: set[int] = set()
        for monomial in self.terms:
            for number in monomial:
                if number not in found:
                    found.update(atoms[number].inner)
        return [atoms[number] for number in sorted(found)]

    @property
    def depends(self) -> int:
        """By which of `LANES`, `CTAS` and `ROUNDS` it varies."""
        depends, found = self.table.depends, 0
        for monomial in self.terms:
            found |= depends[monomial]
        return found

    def coefficient(self, atom: Atom) -> int:
        """The coefficient of the atom alone, 0 if it occurs only in products."""
        return self.terms.get((atom.number,), 0)

    def gcd(self) -> int:
        """Greatest common divisor of the coefficients of all non-constant terms; 0 if none."""
        return gcd(*(c for m, c in self.terms.items() if m))

    def substitute(self, mapping: Mapping[Atom, Polynomial]) -> Polynomial:
        """The polynomial with atoms replaced; those inside other atoms' data stay."""
        numbers = {atom.number: value for atom, value in mapping.items()}
        if not any(number in numbers for monomial in self.terms for number in monomial):
            return self
        total = self.table.constant(0)
        for monomial, coefficient in self.terms.items():
            term = self.table.constant(coefficient)
            for number in monomial:
                value = numbers.get(number)
                term *= value if value is not None else self.table.plain(number)
            total += term
        return total

    def range(self) -> tuple[int, int]:
        """Inclusive bounds from the bounds of the atoms, each term by itself but remainders.

        `-INFINITY` and `INFINITY` (or beyond) stand for no bound.
        """
        if self._range is None:
            low = high = 0
            atoms = self.table.atoms
            quotients: list[tuple[Atom, int]] = []
            for monomial, coefficient in self.terms.items():
                if len(monomial) == 1:
                    atom = atoms[monomial[0]]
                    a, b = atom.low, atom.high
                    if atom.kind == "fdiv":
                        quotients.append((atom, coefficient))
                else:
                    a, b = self.table.monomial_range(monomial)
                if coefficient < 0:
                    a, b = b, a
                low += a * coefficient
                high += b * coefficient
            for atom, coefficient in quotients:
                known = self._with_remainder(atom, coefficient)
                for finer, times in quotients if known is None and len(quotients) > 1 else ():
                    known = known or self._of_quotients(atom, coefficient, finer, times)
                if known is not None:
                    low, high = max(low, known[0]), min(high, known[1])
            self._range = (low, high)
        return self._range

    def _with_remainder(self, quotient: Atom, coefficient: int) -> tuple[int, int] | None:
        """Bounds by what p - d floor(p / d) is, where that is in the sum; None if it is not."""
        part, divisor = quotient.data
        count, left = divmod(-coefficient, divisor)
        leading = next((m for m in part.terms if m), None)
        if left or leading is None or self.terms.get(leading) != count * part.terms[leading]:
            return None
        terms = dict(self.terms)
        del terms[quotient.number,]
        # A quotient within p has a smaller number, so that this comes to an end.
        low, high = (Polynomial(self.table, terms) - part * count).range()
        step = gcd(part.gcd(), divisor)
        ends = (count * (part.constant % step), count * (part.constant % step + divisor - step))
        return low + min(ends), high + max(ends)

    def _of_quotients(
        self, coarse: Atom, coefficient: int, fine: Atom, times: int
    ) -> tuple[int, int] | None:
        """Bounds by what floor(p / c) - d floor(p / (c d)) is: a number below d."""
        ratio, left = divmod(coarse.data[1], fine.data[1])
        is_nested = coarse.data[0] == fine.data[0] and not left and ratio > 1
        if not is_nested or coefficient != -times * ratio:
            return None
        terms = dict(self.terms)
        del terms[coarse.number,], terms[fine.number,]
        low, high = Polynomial(self.table, terms).range()
        ends = (0, times * (ratio - 1))
        return low + min(ends), high + max(ends)

    @property
    def body(self) -> int:
        """The number of all but the constant: polynomials that differ by a constant share it."""
        if self._body < 0:
            items = frozenset([item for item in self.terms.items() if item[0]])
            bodies = self.table.bodies
            self._body = bodies.setdefault(items, len(bodies))
        return self._body

    def least_above(self, other: Polynomial) -> int:
        """The lower end of `(self - other).range()`, remembered but for the constants."""
        known = self.table.gaps
        key = self.body, other.body
        gap = self.terms.get((), 0) - other.terms.get((), 0)
        found = known.get(key)
        if found is None:
            found = known[key] = (self - other).range()[0] - gap
        return found + gap

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __repr__(self) -> str:
        return _spelled(self)

    def _spelled(self) -> str:
        if not self.terms:
            return "0"
        atoms = self.table.atoms
        parts = []
        for monomial, coefficient in sorted(self.terms.items(), key=lambda t: (not t[0], t[0])):
            names = "*".join(repr(atoms[number]) for number in monomial)
            if not names:
                parts.append(str(coefficient))
            else:
                parts.append(
                    names
                    if coefficient == 1
                    else f"-{names}"
                    if coefficient == -1
                    else f"{coefficient}*{names}"
                )
        return " + ".join(parts).replace("+ -", "- ")


class _Depends(dict[Monomial, int]):
    """By which of `LANES`, `CTAS` and `ROUNDS` monomials vary, found when first asked for."""

    __slots__ = ("_atoms",)

    def __init__(self, atoms: list[Atom]) -> None:
        super().__init__()
        self._atoms = atoms

    def __missing__(self, monomial: Monomial) -> int:
        found = 0
        for number in monomial:
            found |= self._atoms[number].depends
        self[monomial] = found
        return found


class AtomTable:
    """The atoms of one function."""

    __slots__ = (
        "_constants", "_known", "atoms", "bodies", "depends", "derived", "gaps", "largest",
        "scaled", "tops",
    )  # fmt: skip

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.bodies: dict[frozenset[tuple[Monomial, int]], int] = {}
        """By all terms but the constant: their number; see `Polynomial.body`."""
        self.gaps: dict[tuple[int, int], int] = {}
        """What `Polynomial.least_above` has found, by bodies."""
        self.scaled: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By bodies: scales with which two polynomials agree in a term, and the most by which the
        second one exceeds the first with these."""
        self.derived: dict[Polynomial, dict[str, Any]] = {}
        """What functions of one polynomial gave; see `remembered`."""
        self.depends: dict[Monomial, int] = _Depends(self.atoms)
        """By which of `LANES`, `CTAS` and `ROUNDS` a monomial varies."""
        self.tops: dict[str, int] = {}
        """The highest bit met of each axis of the thread index."""
        self.largest = 0
        """The most atoms that one of them is made of."""
        self._known: dict[tuple[Any, ...], Atom] = {}
        self._constants: dict[int, Polynomial] = {}

    def atom(
        self,
        kind: str,
        data: tuple[Any, ...],
        low: int = -INFINITY,
        high: int = INFINITY,
        block: int = -1,
    ) -> Atom:
        """The atom of this kind and data; bounds count when it is first met."""
        key = (kind, *data)
        found = self._known.get(key)
        if found is None:
            number = len(self.atoms)
            inner = (*self._inside(data), number)
            self.largest = max(self.largest, len(inner))
            found = self._known[key] = Atom(number, kind, data, low, high, block, inner)
            self.atoms.append(found)
            if kind == "bit":
                axis, at = data
                self.tops[axis] = max(at, self.tops.get(axis, 0))
        return found

    def release(self) -> None:
        """Forget all atoms and polynomials."""
        self.atoms.clear()
        self._known.clear()
        self.gaps.clear()
        self.scaled.clear()
        for found in self.derived.values():
            found.clear()
        self.derived.clear()
        self.depends.clear()
        self._constants.clear()

    def _inside(self, data: tuple[Any, ...]) -> list[int]:
        """The atoms within polynomials, at any depth, ascending."""
        found: set[int] = set()
        for part in data:
            if isinstance(part, Polynomial):
                for monomial in part.terms:
                    for number in monomial:
                        if number not in found:
                            found.update(self.atoms[number].inner)
        return sorted(found)

    def constant(self, value: int) -> Polynomial:
        """A constant polynomial."""
        found = self._constants.get(value)
        if found is None:
            found = Polynomial(self, {(): value} if value else {})
            self._constants[value] = found
        return found

    def plain(self, atom: Atom | int) -> Polynomial:
        """The polynomial that is just this atom."""
        number = atom if isinstance(atom, int) else atom.number
        return Polynomial(self, {(number,): 1})

    def sum(self, terms: Iterable[tuple[int, Atom]]) -> Polynomial:
        """A sum of coefficients times atoms."""
        total = self.constant(0)
        for coefficient, atom in terms:
            total += self.plain(atom) * coefficient
        return total

    def multiply(self, left: Monomial, right: Monomial) -> Monomial:
        """The product of two monomials: a bit times itself is the bit."""
        if not left:
            return right
        if not right:
            return left
        merged = sorted(left + right)
        out: list[int] = []
        for number in merged:
            if not (out and out[-1] == number and self.atoms[number].kind == "bit"):
                out.append(number)
        return tuple(out)

    def monomial_range(self, monomial: Monomial) -> tuple[int, int]:
        """Bounds of a product."""
        low = high = 1
        for number in monomial:
            atom = self.atoms[number]
            ends = (low * atom.low, low * atom.high, high * atom.low, high * atom.high)
            low, high = min(ends), max(ends)
        return low, high


R = TypeVar("R")


def remembered(function: Callable[[Polynomial], R]) -> Callable[[Polynomial], R]:
    """A function of one polynomial that works each out once."""
    name = function.__qualname__

    @wraps(function)
    def look_up(poly: Polynomial) -> R:
        derived = poly._derived
        if derived is None:
            derived = poly.derived
        if name not in derived:
            derived[name] = function(poly)
        found: R = derived[name]
        return found

    return look_up


_spelled: Final = remembered(Polynomial._spelled)
