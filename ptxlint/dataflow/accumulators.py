"""Accumulators: what a loop carries from round to round by adding, scaling, comparing, choosing.

For `phi` at the head of a loop the carried path is every value that a round computes from `phi`
on the way to the next round's `phi`, along copies, terms of sums, factors of products, operands
of max and min, and accumulators of tensor-core products. Index arithmetic has no such path.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.ssa_values import PHI, RESULT
from ptxlint.dataflow.value_flow import (
    COPY,
    EXTREME,
    FACTOR,
    TERM,
    ValueFlow,
    ValueFlowAnalysis,
)
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr

_CARRYING: Final = frozenset({COPY, TERM, FACTOR, EXTREME})
_MAX_VALUES: Final = 4_096
"""A phi whose values spread further than this in one round is left out."""


class Accumulator(NamedTuple):
    """A header phi with its carried path.

    `init` is what it holds before the loop, `latch` what a round hands on. `roles` are the roles
    of the steps along the path (see `value_flow`), `values` the path itself with both ends.
    `factors` multiply or divide what is carried; `terms` are added to it, the factors of an `fma`
    or of a tensor-core product among them. `instrs` compute the path, in program order. `bypass`
    says that some way from phi to latch passes no factor.
    """

    phi: int
    loop: Loop
    init: tuple[int, ...]
    latch: tuple[int, ...]
    values: frozenset[int]
    roles: frozenset[int]
    factors: tuple[int, ...]
    terms: tuple[int, ...]
    instrs: tuple[Instr, ...]
    bypass: bool

    @property
    def is_sum(self) -> bool:
        """True if rounds add to it."""
        return TERM in self.roles or bool(self.terms)

    @property
    def is_extreme(self) -> bool:
        """True for a running maximum or minimum: nothing but max and min, copies aside."""
        return EXTREME in self.roles and self.roles <= {EXTREME, COPY}


class Accumulators:
    """The accumulators of a function, those of outer loops first."""

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self.all: list[Accumulator] = []
        self.given_up: list[int] = []
        """Header phis whose values spread too far to be followed."""
        for loop in flow.loops.loops:
            for phi in flow.ssa.phis.get(loop.header, ()):
                found = self._follow(phi, loop)
                if found is not None:
                    self.all.append(found)

    def of(self, loop: Loop) -> list[Accumulator]:
        """The accumulators that one loop carries, in the order of their phis."""
        return [a for a in self.all if a.loop is loop]

    def _follow(self, phi: int, loop: Loop) -> Accumulator | None:
        init, latch = self.flow.carried(phi, loop)
        onward = self._spread(phi, loop)
        if onward is None:
            self.given_up.append(phi)
            return None
        path: set[int] = set()
        work = [value for value in latch if value in onward and value != phi]
        while work:
            value = work.pop()
            if value not in path:
                path.add(value)
                work += [s for s, role in onward[value] if s != phi]
        if not path:
            return None
        roles = {role for value in path for _, role in onward[value]}
        if roles == {COPY}:
            return None
        factors: dict[int, None] = {}
        terms: dict[int, None] = {}
        for value in sorted(path):
            self._collect(value, path | {phi}, factors, terms)
        ssa = self.flow.ssa
        instrs = sorted({ssa.instr[v] for v in path if ssa.kind[v] == RESULT})
        return Accumulator(
            phi, loop, tuple(init), tuple(latch), frozenset(path | {phi}), frozenset(roles),
            tuple(factors), tuple(terms), tuple(ssa.cfg.function.instrs[i] for i in instrs),
            _has_bypass(phi, latch, onward),
        )  # fmt: skip

    def _spread(self, phi: int, loop: Loop) -> dict[int, list[tuple[int, int]]] | None:
        """The values of one round that a phi is carried into, each with its steps from there."""
        flow = self.flow
        reached: dict[int, list[tuple[int, int]]] = {phi: []}
        work = [phi]
        while work:
            source = work.pop()
            for value, role in flow.results(source):
                if role not in _CARRYING or not flow.in_loop(value, loop):
                    continue
                if flow.is_header_phi(value, loop):
                    continue
                known = reached.get(value)
                if known is None:
                    if len(reached) >= _MAX_VALUES:
                        return None
                    known = reached[value] = []
                    work.append(value)
                known.append((source, role))
        return reached

    def _collect(
        self, value: int, path: set[int], factors: dict[int, None], terms: dict[int, None]
    ) -> None:
        """What multiplies, and what is added to, the carried part at one value of the path."""
        if self.flow.ssa.kind[value] == PHI:
            return
        sources = self.flow.sources(value)
        entered = {role for source, role in sources if source in path}
        for source, role in sources:
            if source in path:
                continue
            if FACTOR in entered and role == FACTOR:
                factors[source] = None
            elif role in (TERM, FACTOR):
                terms[source] = None


def _has_bypass(phi: int, latch: list[int], onward: dict[int, list[tuple[int, int]]]) -> bool:
    """True if a way from the phi to the end of the round has no step that multiplies."""
    seen: set[int] = set()
    work = [value for value in latch if value in onward]
    while work:
        value = work.pop()
        if value == phi:
            return True
        if value not in seen:
            seen.add(value)
            work += [source for source, role in onward[value] if role != FACTOR]
    return False


class AccumulatorsAnalysis(Analysis[Accumulators]):
    """Loop-carried accumulators as facts of a function."""

    name: ClassVar[str] = "accumulators"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (ValueFlowAnalysis,)

    def run(self, facts: Facts) -> Accumulators:
        """Follow every header phi once round its loop."""
        return Accumulators(facts.get(ValueFlowAnalysis))


__all__ = ["Accumulator", "Accumulators", "AccumulatorsAnalysis"]
