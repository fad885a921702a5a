"""How far the verdicts on one launch carry, as statements for people and programs.

A statement names the sizes and its premises, and each is a proof of all the launches that it names.
What is not shown is not said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.launched import Form
from ptxlint.facts import Budget
from ptxlint.launch.generalise.exact_tiles import fails_between
from ptxlint.launch.generalise.family import Family, is_dense, spelled
from ptxlint.launch.generalise.span import Span, has, span_around, span_below
from ptxlint.launch.generalise.ties import families, tiles_of
from ptxlint.launch.generalise.under_family import BUDGET, UnderFamily
from ptxlint.launch.questions import ABOVE, BELOW, OVERFLOW
from ptxlint.launch.under import UnderLaunch
from ptxlint.launch.witness import Witnesses
from ptxlint.launches import Extent
from ptxlint.obligations import Generalisation

_FAMILIES: Final = 3
"""So many sizes of a launch are looked into."""
_STATEMENTS: Final = 2
_DIVISIBLE: Final = 16
"""What Triton compiles a size for that it finds to be a multiple of it."""
_ALIKE: Final = 3
_START: Final = 4_000
_PER_INSTRUCTION: Final = 20
"""Steps that all families of a launch may take: a conjunct that tightens bounds, or is added to a
number, or a quarter of an instruction that is evaluated."""
_EVALUATION: Final = 4
_ANY_GRID: Final[Extent] = ((1 << 31) - 1, 65_535, 65_535)
"""The largest grid of any device: CUDA C++ Programming Guide, "Compute Capabilities"."""


class Reach:
    """One launch of a kernel, and the families that it is one of.

    All of them share a budget of steps. One that takes two thirds of what is left is given up, and
    once half of all is spent no other one is begun.
    """

    def __init__(self, under: UnderLaunch) -> None:
        facts = self._facts = under.origin
        self._under = under
        self._found: list[Family] | None = None
        steps = _START + _PER_INSTRUCTION * len(facts.function.instrs)
        self._budget = Budget(int(steps * facts.effort))
        self._families: dict[tuple[int, int], UnderFamily] = {}
        self._spans: dict[tuple[int, int, frozenset[int], str], Span | None] = {}
        self._beyond: dict[tuple[int, int, frozenset[int]], bool] = {}

    def release(self) -> None:
        """Drop what was found for the families."""
        for under in self._families.values():
            under.release()
        self._families.clear()

    # Statements ---------------------------------------------------------------------------------
    def proved(self, kind: str, instrs: Collection[int]) -> Iterator[Generalisation]:
        """For which other launches all accesses of some instructions are proved, too."""
        own = {j.access.instr.index: j for j in self._under.judged}
        if not instrs or not all(i in own and has(own[i], kind) for i in instrs):
            # What was settled by running threads says nothing of other threads.
            return
        said = 0
        for number in self._begun():
            family = self.families[number]
            if said >= _STATEMENTS or (said and not (family.tensors or family.scalars)):
                return
            found = self._around(number, instrs, kind)
            if found is not None:
                said += 1
                yield found

    def below(self, kind: str, instrs: Collection[int], *, is_wrong: bool) -> Generalisation | None:
        """For which smaller sizes some accesses are right of which that is not so, or not known,
        under this launch. If one is wrong here the next size must be, too."""
        for number in self._begun():
            family = self.families[number]
            under = self._of(number, 1)
            span = span_below(under, instrs, kind, family.value - 1)
            if under.budget.spent:
                self._note(under.budget)
            if span is None:
                continue
            next_one = span.high + 1
            fails = (is_wrong and next_one == family.value) or self._fails(
                number, next_one, frozenset(instrs)
            )
            if fails or not is_wrong:
                return _statement(family, span, fails_at=next_one if fails else None)
        return None

    def launched(self) -> Iterator[Generalisation]:
        """For which other launches a device takes the grid; at most one."""
        limits = self._limits
        for family in self.families:
            if not (family.tensors or family.scalars):
                continue
            beyond = family.at(family.limit + 1).grid
            # Along x there is room for all that fits a device otherwise.
            if any(count > most for count, most in zip(beyond[1:], limits[1:], strict=True)):
                yield _statement(family, Span(1, family.limit), fails_at=family.limit + 1)
                return

    @property
    def _limits(self) -> Extent:
        arch = self._facts.arch
        return _ANY_GRID if arch is None else arch.grid_limit

    @property
    def families(self) -> list[Family]:
        """The families that the launch is one of, as far as they are looked into."""
        if self._found is None:
            facts, bound = self._facts, self._under.bound
            tiles = tiles_of(facts.get(AccessAnalysis), bound.regions)
            self._found = families(bound, facts.function, tiles, self._limits)[:_FAMILIES]
        return self._found

    # Proofs -------------------------------------------------------------------------------------
    def _around(self, number: int, instrs: Collection[int], kind: str) -> Generalisation | None:
        family = self.families[number]
        tiles = [axis.divisor for axis in family.grid.values()]
        for step in dict.fromkeys((1, *(() if kind == OVERFLOW else (_DIVISIBLE, *tiles)))):
            if family.value % step:
                continue
            span = self._span(number, step, frozenset(instrs), kind)
            if self._of(number, step).budget.spent:
                return None
            if span is None or span.low == span.high:
                continue
            beyond = (span.high + 1) * step
            is_wrong = beyond <= family.limit and self._fails(number, beyond, frozenset(instrs))
            only = step > 1 and self._is_only(number, instrs, span.high * step, step)
            fails = beyond if is_wrong else None
            return _statement(family.in_steps(step), span, fails_at=fails, only=only)
        return None

    def _span(self, number: int, step: int, instrs: frozenset[int], kind: str) -> Span | None:
        """The numbers around that of the launch for which it is shown, in steps."""
        key = number, step, instrs, kind
        if key not in self._spans:
            under, at = self._of(number, step), self.families[number].value // step
            inside = None
            if kind in (ABOVE, BELOW):
                # Where a number may not fit its word nothing is said of addresses.
                inside = self._span(number, step, instrs, OVERFLOW)
                if inside is None:
                    return None
            self._spans[key] = span_around(under, instrs, kind, at, inside)
            if under.budget.spent:
                self._note(under.budget)
        return self._spans[key]

    def _is_only(self, number: int, instrs: Collection[int], high: int, tile: int) -> bool:
        """True if some access goes wrong for every size up to a number that is no multiple."""
        under = self._of(number, 1)
        return any(
            fails_between(under, judged, tile)
            for judged in under.within(1, high)
            if judged.access.instr.index in instrs
        )

    def _fails(self, number: int, size: int, instrs: frozenset[int]) -> bool:
        """True if a thread shows that one of some accesses goes wrong in the launch of a family
        with this size."""
        key = number, size, instrs
        if key not in self._beyond:
            self._beyond[key] = self._goes_wrong(self.families[number], size, instrs)
        return self._beyond[key]

    def _goes_wrong(self, family: Family, size: int, instrs: frozenset[int]) -> bool:
        self._budget.left -= _EVALUATION * len(self._facts.function.instrs)
        under = UnderLaunch(self._facts, family.at(size))
        witnesses = Witnesses(under)
        open_ones = [j for j in under.judged if j.reason and j.access.instr.index in instrs]
        found = any(witnesses.of(judged) is not None for judged in open_ones[:_ALIKE])
        under.release()
        return found

    def _of(self, number: int, step: int) -> UnderFamily:
        key = number, step
        if key not in self._families:
            family = self.families[number].in_steps(step)
            budget = Budget(max(1, self._left * 2 // 3))
            budget.left -= _EVALUATION * len(self._facts.function.instrs)
            self._families[key] = UnderFamily(self._facts, family, budget)
        return self._families[key]

    def _note(self, budget: Budget) -> None:
        """Remember that a budget is spent: that more might have been said."""
        spent = self._facts.budgets[BUDGET] = Budget(budget.limit)
        spent.left = 0

    @property
    def _left(self) -> int:
        """The steps that are left."""
        used = sum(under.budget.limit - under.budget.left for under in self._families.values())
        return self._budget.left - used

    def _begun(self) -> Iterator[int]:
        """The numbers of the families, as far as the steps go."""
        for number in range(len(self.families)):
            if (number, 1) not in self._families and self._left < self._budget.limit // 2:
                self._note(self._budget)
                return
            yield number


def _statement(
    family: Family, span: Span, *, fails_at: int | None, only: bool = False
) -> Generalisation:
    step = family.step
    low, high = span.low * step, span.high * step
    premises = tuple(_premises(family))
    sizes = f"from {low:,} to {high:,}"
    if step > 1:
        which = "only for" if only else "for"
        text = f"{which} {family.name} % {step} == 0, {sizes}"
    else:
        text = f"for every {family.name} {sizes}"
    text = f"{text}, with {', '.join(premises)}" if premises else text
    return Generalisation(
        text, family.name, family.value, low, high, step, premises, only, fails_at
    )


def _premises(family: Family) -> Iterator[str]:
    """What is tied to the number."""
    names, name = family.bound.names, family.name
    for parameter, form in family.scalars.items():
        own = names.get(parameter, parameter)
        if own != name:
            yield f"{own} = {spelled(form, name)}"
    for parameter, shape in family.tensors.items():
        region = family.bound.regions[parameter]
        text = f"{region.name} {_listed(shape.extents, name)}"
        if not is_dense(shape):
            text += f" strides {_listed(shape.strides, name)}"
        if region.tensor.values is not None:
            text += " of numbers from {} to {}".format(*region.tensor.values)
        yield text
    for at, axis in family.grid.items():
        count = spelled(axis.form, name)
        tiles = count if axis.divisor == 1 else f"cdiv({count}, {axis.divisor})"
        own = f"grid {'xyz'[at]}"
        if own != name:
            yield f"{own} = {tiles}"


def _listed(forms: tuple[Form, ...], name: str) -> str:
    return f"[{', '.join(spelled(form, name) for form in forms)}]"


__all__ = ["Reach"]
