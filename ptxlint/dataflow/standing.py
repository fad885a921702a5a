"""What holds wherever a block runs, for the whole CTA: bounds of loop indices by sizes.

A loop that ends at the size never comes to a number beyond it, nor does anything under a branch
that compares with the size. Where padding lies beyond that size, it lies beyond those numbers.
"""

from __future__ import annotations

from typing import Final

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.guards import Conjunct, Guards, implies
from ptxlint.dataflow.polynomial import LANES, Atom, Polynomial
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.ssa_values import Ssa

_MOST: Final = 32
"""So many bounds of one block are kept."""


class Standing:
    """Bounds that hold in the blocks of one function."""

    def __init__(self, ssa: Ssa, loops: LoopForest, guards: Guards, rounds: Rounds) -> None:
        self._ssa = ssa
        self._loops = loops
        self._guards = guards
        self._rounds = rounds
        self._at: dict[int, tuple[Polynomial, ...]] = {}

    def at(self, block: int) -> tuple[Polynomial, ...]:
        """Polynomials that are not negative wherever a block runs; no lane has a part in them."""
        found = self._at.get(block)
        if found is None:
            known = sorted(self._guards.of_block(block) or (), key=repr)
            loop = self._loops.innermost(block)
            while loop is not None:
                known += self._rounds.lasting(loop)
                loop = loop.parent
            bounds = [b for c in known[:_MOST] for b in self._without_smaller(c, block)]
            found = tuple(dict.fromkeys(b for b in bounds if not b.depends & LANES))[:_MOST]
            self._at[block] = found
        return found

    def _without_smaller(self, conjunct: Conjunct, block: int) -> list[Polynomial]:
        """What a bound says of each of two numbers where it is about the smaller one of them."""
        if conjunct.polynomial is None:
            return []
        out: list[Polynomial] = []
        work = [conjunct.polynomial]
        while work and len(out) < _MOST:
            poly = work.pop()
            for atom in sorted(poly.atoms(), key=lambda a: a.number):
                larger = self._not_below(atom, block) if poly.coefficient(atom) > 0 else []
                if larger:
                    work += [poly.substitute({atom: other}) for other in larger]
                    break
            else:
                out.append(poly)
        return out

    def _not_below(self, atom: Atom, block: int) -> list[Polynomial]:
        """The operands of a minimum that are known, where a block runs, not to be below it."""
        parts = self._guards.smaller_of(atom)
        if parts is None or atom.kind == "min":
            return list(parts or ())
        # Of unsigned words only what is no negative number is a bound.
        known = self._guards.of_block(block if atom.kind == "umin" else atom.block)
        if known is None:
            return []
        return [p for p in parts if p.range()[0] >= 0 or implies(known, Conjunct(p))]


__all__ = ["Standing"]
