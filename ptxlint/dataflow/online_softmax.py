"""Running maxima and the exponentials taken relative to them.

Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): a loop carries m and
sums of exp(x - m). When m grows to m', all that was summed must be multiplied by exp(m - m').
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.accumulators import Accumulator, Accumulators, AccumulatorsAnalysis
from ptxlint.dataflow.shared_exchange import exchanges
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.value_flow import (
    ADDRESS,
    CHOICE,
    COPY,
    DATA,
    FACTOR,
    TERM,
    WHOLE,
    ValueFlow,
    ValueFlowAnalysis,
)
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr

_LINEAR: Final = frozenset({COPY, TERM, FACTOR})
_OPERANDS: Final = frozenset({"ldmatrix", "wgmma"})
MAX_VALUES: Final = 20_000
"""A set of dependent values that grows to this size is cut off."""


class RunningMaximum(NamedTuple):
    """A maximum that a loop carries, with the exponentials of differences to its new value."""

    loop: Loop
    accumulator: Accumulator
    exponentials: tuple[Instr, ...]
    """Those of something else than an older maximum: exp(x - m')."""
    rescales: tuple[Instr, ...]
    """Those of the older maximum: exp(m - m')."""


class OnlineSoftmax:
    """The running maxima of a function that exponentials are relative to."""

    def __init__(self, facts: Facts) -> None:
        self.flow: ValueFlow = facts.get(ValueFlowAnalysis)
        self.accumulators: Accumulators = facts.get(AccumulatorsAnalysis)
        self._instrs = facts.function.instrs
        self.maxima: list[RunningMaximum] = []
        for accumulator in self.accumulators.all:
            if accumulator.is_extreme and all(i.opcode != "min" for i in accumulator.instrs):
                found, rescales = self._exponentials(accumulator)
                if found:
                    self.maxima.append(
                        RunningMaximum(accumulator.loop, accumulator, found, rescales)
                    )

    def depends_on(self, loop: Loop, exponentials: list[Instr]) -> set[int]:
        """The values of the loop that are computed from these exponentials, also in a later round.

        Through shared memory, a load depends on them if nothing else is stored before the barrier
        before it; operands of tensor-core products, if anything of theirs is.
        """
        flow, ssa = self.flow, self.flow.ssa
        loads = self._exchanges(loop)
        reached: set[int] = set()
        work = [value for i in exponentials for value in ssa.def_values[i.index]]
        while work and len(reached) < MAX_VALUES:
            while work:
                value = work.pop()
                if value not in reached and flow.in_loop(value, loop):
                    reached.add(value)
                    work += [v for v, role in flow.results(value) if role in DATA]
            for load, stores in loads:
                results = ssa.def_values[load.index]
                if results[0] in reached:
                    continue
                hits = [not reached.isdisjoint(self.stored(store)) for store in stores]
                if all(hits) or (load.opcode in _OPERANDS and any(hits)):
                    work += results
        return reached

    def is_traced(self, loop: Loop, reached: set[int]) -> bool:
        """True if it is known which loads of a loop read these values back from memory."""
        handed: set[int] = set()
        for load, stores in self._exchanges(loop):
            hits = {s.index for s in stores if not reached.isdisjoint(self.stored(s))}
            handed |= hits
            results = self.flow.ssa.def_values[load.index]
            if hits and len(hits) < len(stores) and results[0] not in reached:
                return False
        return all(
            instr.index in handed
            for instr in self._body(loop)
            if instr.opcode in ("st", "stmatrix", "tcgen05")
            and not reached.isdisjoint(self.stored(instr))
        )

    def _body(self, loop: Loop) -> list[Instr]:
        blocks = self.flow.ssa.cfg.blocks
        return [
            self._instrs[at] for b in loop.blocks for at in range(blocks[b].start, blocks[b].end)
        ]

    def _exchanges(self, loop: Loop) -> list[tuple[Instr, list[Instr]]]:
        """What reads shared memory in a loop, with the stores that it may read."""
        return exchanges(self._body(loop))

    def stored(self, store: Instr) -> list[int]:
        """The values that a store writes, its address apart."""
        values = self.flow.operand_values(store)
        return [value for found in values[1:] for value in found]

    # Exponentials -----------------------------------------------------------------------------
    def _exponentials(self, maximum: Accumulator) -> tuple[tuple[Instr, ...], tuple[Instr, ...]]:
        flow, ssa, loop = self.flow, self.flow.ssa, maximum.loop
        new = self._scaled(maximum.values - {maximum.phi}, loop)
        old = self._scaled({maximum.phi}, loop)
        differences: set[int] = set()
        found: dict[int, Instr] = {}
        rescales: dict[int, Instr] = {}
        work = sorted(new)
        while work:
            value = work.pop()
            for result, role in flow.results(value):
                if not flow.in_loop(result, loop) or result in new or result in differences:
                    continue
                if role in _LINEAR and not flow.is_header_phi(result, loop):
                    differences.add(result)
                    work.append(result)
                elif ssa.kind[result] == RESULT:
                    instr = self._instrs[ssa.instr[result]]
                    if instr.opcode == "ex2" and value in differences:
                        relative = self._is_relative(value, new, old, differences, loop)
                        (found if relative else rescales)[instr.index] = instr
        return _in_order(found), _in_order(rescales)

    def _scaled(self, values: set[int] | frozenset[int], loop: Loop) -> set[int]:
        """Values with their copies, guarded copies and multiples by what the loop never changes."""
        flow = self.flow
        out = set(values)
        work = sorted(values)
        while work:
            for result, role in flow.results(work.pop()):
                if result in out or not flow.in_loop(result, loop):
                    continue
                if flow.is_header_phi(result, loop) or role not in (COPY, FACTOR):
                    continue
                others = [s for s, _ in flow.sources(result) if s not in out]
                if others and self.flow.is_pack(result):
                    continue
                if role == FACTOR:
                    sums = any(r == TERM for _, r in flow.sources(result))
                    if sums or any(flow.in_loop(s, loop) and not self._fixed(s) for s in others):
                        continue
                out.add(result)
                work.append(result)
        return out

    def _fixed(self, value: int) -> bool:
        flow = self.flow
        if flow.is_pack(value):
            return all(flow.constant(source) is not None for source, _ in flow.sources(value))
        return flow.constant(value) is not None

    def _is_relative(
        self, value: int, new: set[int], old: set[int], differences: set[int], loop: Loop
    ) -> bool:
        """True if a difference to the maximum is that of something else than an old maximum."""
        flow = self.flow
        work = [(value, WHOLE)]
        seen = set(work)
        while work:
            for source, role, part in flow.part_sources(*work.pop()):
                step = (source, part)
                if step in seen or source in new or source in old or role in (CHOICE, ADDRESS):
                    continue
                if source in differences or flow.is_pack(source):
                    seen.add(step)
                    work.append(step)
                elif flow.in_loop(source, loop) and not self._fixed(source):
                    return True
        return False


def _in_order(instrs: dict[int, Instr]) -> tuple[Instr, ...]:
    return tuple(instrs[at] for at in sorted(instrs))


class OnlineSoftmaxAnalysis(Analysis[OnlineSoftmax]):
    """Running maxima as facts of a function."""

    name: ClassVar[str] = "online-softmax"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (AccumulatorsAnalysis,)

    def run(self, facts: Facts) -> OnlineSoftmax:
        """Find the maxima among the accumulators."""
        return OnlineSoftmax(facts)


__all__ = ["OnlineSoftmax", "OnlineSoftmaxAnalysis", "RunningMaximum"]
