"""Index polynomials and guards as people write them: `4*tid.x + 128*ctaid.x`, `tid.x + 128 < n`.

`tid.x[6:2]` are bits 6 to 2 of `%tid.x` as a number, `K3` is how many rounds the loop at block 3
has made, a register name stands for what it holds at its one definition.
"""

from __future__ import annotations

from typing import Any, Final

from ptxlint.dataflow.guards import Conjunct, Conjunction
from ptxlint.dataflow.polynomial import Atom, Monomial, Polynomial
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.ir.operand import Register

_DEEPEST: Final = 5
"""How many polynomials inside of polynomials are shown."""
_MOST_TERMS: Final = 12
_RELATIONS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class IndexText:
    """Texts of the polynomials and guards of one function."""

    def __init__(self, ssa: Ssa) -> None:
        self._ssa = ssa

    def polynomial(self, poly: Polynomial) -> str:
        """A sum: parameters and CTA numbers, lanes, what is subtracted, the constant."""
        return self._sum(poly, _DEEPEST)

    def conjunct(self, conjunct: Conjunct) -> str:
        """A comparison: what is subtracted on the left, what must be greater on the right."""
        poly = conjunct.polynomial
        if poly is None:
            return self._condition(conjunct.key, _DEEPEST)
        left = Polynomial(poly.table, {m: -c for m, c in poly.terms.items() if m and c < 0})
        right = Polynomial(poly.table, {m: c for m, c in poly.terms.items() if m and c > 0})
        constant = poly.constant
        if not left.terms:
            return f"{self._sum(right, _DEEPEST)} >= {-constant}"
        if constant < 0:
            relation, left = "<", left + (-constant - 1)
        else:
            relation, right = "<=", right + constant
        return f"{self._sum(left, _DEEPEST)} {relation} {self._sum(right, _DEEPEST)}"

    def conjunction(self, guard: Conjunction | None) -> str:
        """All of a guard; `never` for one that cannot hold, "" for one that always does."""
        if guard is None:
            return "never"
        return " and ".join(sorted(map(self.conjunct, guard)))

    def _sum(self, poly: Polynomial, depth: int) -> str:
        if not poly.terms:
            return "0"
        if depth <= 0:
            return "…"
        parts = [self._term(m, c, depth) for m, c in _merged(poly)]
        if len(parts) > _MOST_TERMS:
            parts[_MOST_TERMS:] = [f"… {len(parts) - _MOST_TERMS} more terms"]
        return " + ".join(parts).replace("+ -", "- ")

    def _term(self, factors: tuple[Any, ...], coefficient: int, depth: int) -> str:
        named = [f if isinstance(f, str) else self._atom(f, depth - 1) for f in factors]
        names = "*".join(named)
        if not names:
            return str(coefficient)
        if coefficient in (1, -1):
            return names if coefficient == 1 else f"-{names}"
        return f"{coefficient}*{names}"

    def _atom(self, atom: Atom, depth: int) -> str:
        kind, data = atom.kind, atom.data
        if kind in ("load", "opaque"):
            return self._name(data[0])
        if kind in ("fdiv", "div"):
            return f"({self._part(data[0], depth)} / {self._part(data[1], depth)})"
        if kind in ("min", "max"):
            return f"{kind}({', '.join(self._part(p, depth) for p in data)})"
        if kind == "select":
            arms = " : ".join(self._part(p, depth) for p in data[1:])
            return f"({self._name(data[0])} ? {arms})"
        if any(isinstance(part, Polynomial) for part in data):
            return f"{kind}({', '.join(self._part(p, depth) for p in data)})"
        return repr(atom)

    def _name(self, value: int) -> str:
        register: Register = self._ssa.register[value]
        return register.name

    def _part(self, part: Any, depth: int) -> str:
        if not isinstance(part, Polynomial):
            return str(part)
        text = self._sum(part, depth)
        return f"({text})" if " " in text and not text.startswith("(") else text

    def _condition(self, key: tuple[Any, ...], depth: int) -> str:
        kind, *data = key
        if kind == "predicate":
            return ("" if data[1] else "!") + self._name(data[0])
        if kind == "unsigned":
            relation, a, b = data
            return f"{self._sum(a, depth)} {_RELATIONS.get(relation, relation)} " + (
                f"{self._sum(b, depth)} (unsigned)"
            )
        if kind == "unequal":
            return f"{self._sum(data[0], depth)} != {self._sum(data[1], depth)}"
        if kind == "nonzero" and data[0] < len(self._ssa.register):
            return f"{self._name(data[0])} != 0"
        if kind == "not" and isinstance(data[0], tuple):
            return f"not ({self._condition(data[0], depth - 1) if depth > 0 else '…'})"
        return f"{kind}({', '.join(self._part(p, depth) for p in data)})"


def _merged(poly: Polynomial) -> list[tuple[tuple[Any, ...], int]]:
    """The terms, with runs of bits put together: factors (atoms or texts) and coefficient.

    Lanes come behind parameters and CTA numbers, then what is subtracted, the constant last.
    """
    atoms = poly.table.atoms
    runs: dict[tuple[Monomial, str], dict[int, int]] = {}
    plain: list[tuple[tuple[Any, ...], int]] = []
    for monomial, coefficient in poly.terms.items():
        bits = [n for n in monomial if atoms[n].kind == "bit"]
        if len(bits) == 1:
            axis, at = atoms[bits[0]].data
            rest = tuple(n for n in monomial if n != bits[0])
            runs.setdefault((rest, axis), {})[at] = coefficient
        else:
            plain.append((tuple(atoms[n] for n in monomial), coefficient))
    tops = poly.table.tops
    lanes: list[tuple[tuple[Any, ...], int]] = []
    for (rest, axis), by_bit in runs.items():
        before = tuple(atoms[n] for n in rest)
        for low, high, coefficient in _runs(by_bit):
            whole = low == 0 and high == tops[axis]
            span = str(low) if low == high else f"{high}:{low}"
            name = f"tid.{axis}" if whole else f"tid.{axis}[{span}]"
            lanes.append(((*before, name), coefficient))
    plain.sort(key=lambda term: (not term[0], len(term[0]), [a.number for a in term[0]]))
    constant = plain[-1:] if plain and not plain[-1][0] else []
    terms = [*plain[: len(plain) - len(constant)], *lanes]
    return [*sorted(terms, key=lambda term: term[1] < 0), *constant]


def _runs(by_bit: dict[int, int]) -> list[tuple[int, int, int]]:
    """(lowest bit, highest bit, coefficient) of bits whose coefficients double from one to the
    next."""
    out: list[tuple[int, int, int]] = []
    for at in sorted(by_bit):
        if out and out[-1][1] == at - 1:
            low, _, coefficient = out[-1]
            if by_bit[at] == coefficient << (at - low):
                out[-1] = (low, at, coefficient)
                continue
        out.append((at, at, by_bit[at]))
    return out
