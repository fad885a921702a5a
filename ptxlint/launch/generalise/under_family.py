"""What is proved of the accesses of a kernel under all launches of a family at once."""

from __future__ import annotations

from typing import ClassVar, Final

from ptxlint.dataflow.extremes import Box
from ptxlint.dataflow.guards import Conjunction
from ptxlint.dataflow.launched import Setting, Varying
from ptxlint.dataflow.polynomial import Monomial, Polynomial
from ptxlint.dataflow.symbolic import Wrap
from ptxlint.facts import Budget, Facts
from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.generalise.family import Family, stretched
from ptxlint.launch.obligations import word
from ptxlint.launch.promises import Promises
from ptxlint.launch.under import Judged, UnderLaunch

BUDGET: Final = "generalise"
"""What the budget is called that is spent."""
_LOOK: Final = 8
"""Steps that it costs to look at an access, besides those of its proof."""


class UnderFamily(UnderLaunch):
    """One kernel under a family, the number of which is its step times what is left open.

    `judged` speaks of all launches of the family, `within` of those up to a number and from one on.
    """

    budget_name: ClassVar[str] = BUDGET

    def __init__(self, facts: Facts, family: Family, budget: Budget) -> None:
        self.family = family
        self.budget = budget
        self.last = family.limit // family.step
        """The most that is left open may be; at least it is 1."""
        self._narrowed = 1, self.last
        self._within: dict[tuple[int, int], list[Judged]] = {}
        super().__init__(facts, family.bound)
        self._standing = self._everywhere
        self._within[self._narrowed] = self.judged

    def _promises(self, facts: Facts, bound: Bound) -> Promises:
        # How often something is added depends on the grid.
        return Promises(facts, bound, counts=False)

    def _steps(self, facts: Facts) -> Budget:
        return self.budget

    def _setting(self) -> Setting:
        setting, family = super()._setting(), self.family
        scalars = {n: stretched(form, family.step) for n, form in family.scalars.items()}
        grid = {
            at: (stretched(axis.form, family.step), axis.divisor)
            for at, axis in family.grid.items()
        }
        setting.varying = Varying(1, self.last, scalars, grid)
        return setting

    @property
    def number(self) -> Polynomial:
        """What is left open."""
        found = self.symbolic.number
        assert found is not None
        return found

    def within(self, low: int, high: int) -> list[Judged]:
        """All accesses where what is left open lies between two numbers, both included."""
        found = self._within.get((low, high))
        if found is None:
            self.narrow(low, high)
            self.budget.left -= _LOOK * len(self.accesses.in_global)
            found = [self._judge(access) for access in self.accesses.in_global]
            self._within[low, high] = found
        return found

    def fits(self, wrap: Wrap, guard: Conjunction) -> bool:
        """True if a number fits its word, as far as it has been narrowed, where a guard holds
        besides what holds on the way to its instruction."""
        known = self.guards.of_instr(self.ssa.cfg.function.instrs[wrap.instr])
        return known is None or self._wraps.fits(wrap, known | guard)

    def excess(self, wrap: Wrap, guard: Conjunction) -> int:
        """By how much a number may exceed its word, about, as far as it has been narrowed."""
        known = self.guards.of_instr(self.ssa.cfg.function.instrs[wrap.instr]) or frozenset()
        low, high = self.box(known | guard, (wrap.polynomial,)).range(wrap.polynomial)
        least, most = word(wrap)
        return max(high - most, least - low)

    def sides(self, judged: Judged) -> tuple[bool, bool]:
        """Whether an access does not begin before its storage, and does not end beyond it, as far
        as it has been narrowed."""
        access, region = judged.access, judged.region
        if access.guard is None or self.box(access.guard, ()).is_empty:
            return True, True
        if region is None:
            return False, False
        guard, end = access.guard, self._end(region, access.base)
        below = self.is_at_most(-access.offset, guard, -region.low)
        return below, self.is_at_most(access.offset - end, guard, -access.width)

    def narrow(self, low: int, high: int) -> None:
        """Start over with what is left open between two numbers."""
        self.budget.left -= _LOOK
        if (low, high) != self._narrowed:
            self._narrowed = low, high
            self.know([*self._standing, self.number - low, -self.number + high])

    def _end(self, region: Region, parameter: str) -> Polynomial:
        end = self.family.end(parameter)
        if end is None:
            return super()._end(region, parameter)
        return self.symbolic.of_form(stretched(end, self.family.step))

    def _by_address(self, access: object, guard: Conjunction) -> Region | None:
        """Made-up addresses are those of one launch alone."""
        return None

    def is_at_most(self, poly: Polynomial, guard: Conjunction, bound: int) -> bool:
        """The same as under a launch; products with what is left open are bounded by the bounds of
        what it is multiplied with."""
        if super().is_at_most(poly, guard, bound):
            return True
        factor = self._multiplied(poly)
        if not factor.depends and factor.is_constant:
            return False
        most = _most(self.box(guard, (poly,)), factor)
        if most is None:
            return False
        return super().is_at_most(poly + self.number * (-factor + most), guard, bound)

    def _multiplied(self, poly: Polynomial) -> Polynomial:
        """What is multiplied with what is left open, but numbers."""
        ((number,),) = self.number.terms
        terms: dict[Monomial, int] = {}
        for monomial, scale in poly.terms.items():
            if len(monomial) > 1 and number in monomial:
                at = monomial.index(number)
                terms[monomial[:at] + monomial[at + 1 :]] = scale
        return Polynomial(poly.table, terms)


def _most(box: Box, poly: Polynomial) -> int | None:
    """The least number found that a polynomial does not exceed, with one conjunct added at most."""
    if box.is_empty:
        return None
    found = box.range(poly)[1]
    for fact in box.facts:
        for monomial, scale in fact.terms.items():
            own = poly.terms.get(monomial, 0) if monomial else 0
            if own * scale < 0 and not own % scale:
                found = min(found, box.range(poly + fact * (abs(own) // abs(scale)))[1])
    return found


__all__ = ["BUDGET", "UnderFamily"]
