"""Quotients of what exponentials make: whether infinity may be divided by infinity.

A division is judged by its divisor, and where that may be infinite by its dividend; a reciprocal by
what it multiplies. Exponents that are a score less the maximum of the scores are not above 0, so
that their exponentials do not overflow.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow.exponential_sums import ExponentialSums, ExponentialSumsAnalysis
from ptxlint.dataflow.float_values import FloatSlice, FloatValues, Scenario
from ptxlint.dataflow.floats import FORMATS, AbstractFloat
from ptxlint.dataflow.nonfinite import Nonfinite, NonfiniteAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand

_MOVES: Final = frozenset({"mov", "cvt", "selp", "neg", "abs"})
_PRODUCTS: Final = frozenset({"mul", "fma"})
_HARMLESS: Final = frozenset({"add", "sub", "max", "min", "setp", "testp"})
"""What makes no NaN of a 0 and a number."""
_MAX_STEPS: Final = 64


class Factor(NamedTuple):
    """An operand of `at` that meets the quotient of a number and an infinity."""

    at: Instr
    place: int


class Quotients:
    """The divisions of a function whose divisor exponentials are part of."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._nonfinite: Nonfinite = facts.get(NonfiniteAnalysis)
        self._sums: ExponentialSums = facts.get(ExponentialSumsAnalysis)
        self._ssa = self._nonfinite.ssa
        self._reductions = self._nonfinite.reductions
        self.divisions = [
            d for d in self._nonfinite.divisions if self._nonfinite.exponential_behind(d)
        ]
        """Divisions of numbers, reciprocals and reciprocal roots, in program order."""
        self._met = {d.index: self._factors(d) for d in self.divisions}
        self._values: FloatValues | None = None

    def factors(self, division: Instr) -> list[Factor]:
        """What meets the quotient; the dividend itself, if it is not 1."""
        return self._met[division.index] or []

    def reason(self, division: Instr) -> str:
        """Why a division gives no NaN of infinities; "" if that was not seen."""
        divisor = self._read(division, len(division.operands) - 1)
        if divisor is None or not (divisor.ninf or divisor.pinf):
            return "no divisor is infinite"
        met = self._met[division.index]
        if met is None:
            return ""
        numbers = [self._read(factor.at, factor.place) for factor in met]
        if any(n is not None and (n.ninf or n.pinf) for n in numbers):
            return ""
        return "no dividend is infinite"

    def _read(self, instr: Instr, place: int) -> AbstractFloat | None:
        """What an operand may be for any finite data; None if it is never computed."""
        if self._values is None:
            nonpositive = self._sums.nonpositive()
            self._values = FloatValues(
                FloatSlice(self._facts, self._targets()),
                Scenario(full=False, nonpositive=nonpositive, overflows=True),
            )
        form = FORMATS.get(instr.shape.type)
        if form is None or not self._values.settled:
            return AbstractFloat(1.0, 0.0, True, True, True)
        return self._values.operand(instr, place, form)

    def _targets(self) -> list[int]:
        places = [Factor(d, len(d.operands) - 1) for d in self.divisions]
        places += [factor for met in self._met.values() for factor in met or ()]
        read = [self._reductions.read(at, at.operands[place]) for at, place in places]
        return [value for value in read if value is not None]

    def _factors(self, division: Instr) -> list[Factor] | None:
        """What meets a quotient; None if not all of it is followed."""
        if division.opcode == "div":
            return [Factor(division, 1)]
        found: list[Factor] = []
        work = [self._ssa.def_values[division.index][0]]
        seen = set(work)
        for value in work:
            if self._ssa.value_users(value) or len(seen) > _MAX_STEPS:
                return None
            for user in self._ssa.instr_users(value):
                if user.opcode in _MOVES and len(user.defs) == 1:
                    new = self._ssa.def_values[user.index][0]
                    if new not in seen:
                        seen.add(new)
                        work.append(new)
                elif user.opcode in _PRODUCTS:
                    found += self._other_factors(user, value)
                elif user.opcode not in _HARMLESS and not _stores_outside(user):
                    return None
        return found

    def _other_factors(self, product: Instr, value: int) -> list[Factor]:
        def reads(operand: Operand) -> bool:
            return self._reductions.read(product, operand) == self._ssa.resolve(value)

        places = [at for at in (1, 2) if not reads(product.operands[at])]
        return [Factor(product, at) for at in places] if len(places) < 2 else []


def _stores_outside(instr: Instr) -> bool:
    return instr.opcode == "st" and instr.shape.space == "global"


class QuotientsAnalysis(Analysis[Quotients]):
    """Quotients of exponentials as facts of a function."""

    name: ClassVar[str] = "quotients"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        NonfiniteAnalysis,
        ExponentialSumsAnalysis,
    )

    def run(self, facts: Facts) -> Quotients:
        """Find the divisions; numbers are evaluated when they are asked for."""
        return Quotients(facts)


__all__ = ["Factor", "Quotients", "QuotientsAnalysis"]
