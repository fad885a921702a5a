"""Work of a loop that only its last round keeps.

A value of a loop is *needed* if the loop itself does something with it: stores it, branches on it,
or carries it into a round that does. A value that leaves the loop and, through some header phi,
depends on the round before is carried on; so is all it is made of. What is left among the values
that leave is computed anew in every round, and each round but the last computes it for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.value_flow import ADDRESS, DATA, ValueFlow, ValueFlowAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import effectful, memory_of

_TENSOR: Final = frozenset({"mma", "wgmma", "wmma"})
_MEMORY: Final = frozenset({"", "global", "shared", "tmem"})
"""Spaces whose contents a kernel's rounds read anew."""


class LastRound(NamedTuple):
    """What a loop hands out of its last round only.

    `values` leave the loop. `loads` and `products` are the instructions, tensor-core products the
    latter, that exist for their sake alone and read something else in each round.
    """

    loop: Loop
    values: tuple[int, ...]
    loads: tuple[Instr, ...]
    products: tuple[Instr, ...]


class LastRounds:
    """The loops of a function that throw work away, and how many were looked at."""

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self._ssa = flow.ssa
        self._cfg = flow.ssa.cfg
        self._instrs = flow.ssa.cfg.function.instrs
        self.all: list[LastRound] = []
        self.judged = 0
        """Loops with loads or products whose rounds are counted, not searched."""
        self.unclear: list[Loop] = []
        """Judged loops that hand out something whose only tie to the round before is a counter."""
        for loop in flow.loops.loops:
            self._judge(loop)

    def _judge(self, loop: Loop) -> None:
        body = self._body(loop)
        if not any(_is_work(instr) for instr in body) or self._is_search(loop):
            return
        self.judged += 1
        leaving = self._leaving(loop, body)
        needed = self._needed(loop, body)
        loose = [value for value in leaving if value not in needed]
        if not loose:
            return
        carried, counting = self._carried(loop, loose)
        weak = [v for v in loose if v in counting]
        if any(self._made_of(loop, value, needed) for value in weak):
            self.unclear.append(loop)
        needed |= self._closure(loop, [v for v in loose if v in carried])
        fresh = [v for v in loose if v not in carried and v not in needed]
        found = self._work(loop, body, fresh, needed)
        if found is not None:
            self.all.append(found)

    def _body(self, loop: Loop) -> list[Instr]:
        blocks = self._cfg.blocks
        return [
            instr
            for block in loop.blocks
            for instr in self._instrs[blocks[block].start : blocks[block].end]
        ]

    def _is_search(self, loop: Loop) -> bool:
        """True if a way out of the loop depends on what the loop loads."""
        values: list[int] = []
        for source, target in self.flow.loops.exits(loop):
            block = self._cfg.blocks[source]
            if target == EXIT and block.condition is None:
                continue
            last = self._cfg.terminator(block)
            if last is not None:
                values += self._ssa.use_values[last.index]
        return any(self._made_by_memory(v) for v in self._closure(loop, values))

    def _made_by_memory(self, value: int) -> bool:
        if self._ssa.kind[value] != RESULT:
            return False
        instr = self._instrs[self._ssa.instr[value]]
        return _is_load(instr) or instr.opcode in ("atom", "call")

    def _leaving(self, loop: Loop, body: list[Instr]) -> list[int]:
        """The values of the loop that are read behind it."""
        ssa = self._ssa
        inside = set(loop.blocks)
        values = [v for instr in body for v in ssa.def_values[instr.index]]
        values += [phi for block in inside for phi in ssa.phis.get(block, ())]
        block_of = self._cfg.block_of
        return [
            value
            for value in values
            if any(block_of[user.index] not in inside for user in ssa.instr_users(value))
            or any(ssa.block_of(made) not in inside for made in ssa.value_users(value))
        ]

    def _needed(self, loop: Loop, body: list[Instr]) -> set[int]:
        """What the loop itself uses: for its effects, its branches and what they depend on."""
        roots: dict[int, None] = {}
        effects: dict[Shape, bool] = {}
        for instr in body:
            shape = instr.shape
            values = self._ssa.use_values[instr.index]
            if shape.opcode == "wgmma":
                values = values[: bool(shape.guard)]
            else:
                effect = effects.get(shape)
                if effect is None:
                    effect = bool(effectful(shape) or memory_of(shape).writes)
                    effects[shape] = effect
                if not effect:
                    continue
            roots.update(dict.fromkeys(values))
        return self._closure(loop, roots)

    def _closure(self, loop: Loop, values: Iterable[int]) -> set[int]:
        """All values of the loop that these depend on in any way, over all rounds."""
        flow = self.flow
        reached: set[int] = set()
        work = [v for v in values if flow.in_loop(v, loop)]
        while work:
            value = work.pop()
            if value not in reached:
                reached.add(value)
                work += [s for s, _ in flow.sources(value) if flow.in_loop(s, loop)]
        return reached

    def _carried(self, loop: Loop, values: list[int]) -> tuple[set[int], set[int]]:
        """Values that are computed from what the round before left; and those of them for which
        that is nothing but counters, which each round steps by what the loop never changes."""
        flow = self.flow
        sources: dict[int, list[int]] = {}

        def inputs(value: int) -> list[int]:
            found = sources.get(value)
            if found is None:
                found = sources[value] = [
                    s for s, role in flow.sources(value) if role in DATA and flow.in_loop(s, loop)
                ]
            return found

        reached: dict[int, None] = dict.fromkeys(values)
        work = list(reached)
        while work:
            for source in inputs(work.pop()):
                if source not in reached:
                    reached[source] = None
                    work.append(source)
        cyclic: set[int] = set()
        summed: set[int] = set()
        # A component comes after all those that it leads to.
        for component in strongly_connected(list(reached), inputs):
            ahead = {s for value in component for s in inputs(value)}
            own = len(component) > 1 or component[0] in ahead
            if own and any(flow.is_header_phi(v, loop) for v in component):
                cyclic.update(component)
                if not ahead <= set(component) or any(map(self._is_made_by_work, component)):
                    summed.update(component)
            if not cyclic.isdisjoint(ahead):
                cyclic.update(component)
            if not summed.isdisjoint(ahead):
                summed.update(component)
        return cyclic, cyclic - summed

    def _is_made_by_work(self, value: int) -> bool:
        return self._ssa.kind[value] == RESULT and _is_work(self._instrs[self._ssa.instr[value]])

    # What was done for nothing ----------------------------------------------------------------
    def _work(
        self, loop: Loop, body: list[Instr], fresh: list[int], needed: set[int]
    ) -> LastRound | None:
        """The loads and products behind values that only the last round hands out."""
        shared = any("shared" in memory_of(i.shape).writes for i in body)
        values: list[int] = []
        loads: dict[int, Instr] = {}
        products: dict[int, Instr] = {}
        for value in fresh:
            found = [
                instr
                for instr in self._made_of(loop, value, needed)
                if self._is_renewed(loop, instr, shared)
            ]
            if found:
                values.append(value)
            for instr in found:
                (loads if _is_load(instr) else products)[instr.index] = instr
        if not values:
            return None
        return LastRound(
            loop, tuple(values), tuple(loads[i] for i in sorted(loads)),
            tuple(products[i] for i in sorted(products)),
        )  # fmt: skip

    def _made_of(self, loop: Loop, value: int, needed: set[int]) -> list[Instr]:
        """The loads and products that a value is computed from and nothing else needs."""
        flow, ssa = self.flow, self._ssa
        out: dict[int, Instr] = {}
        seen = {value}
        work = [value]
        while work:
            value = work.pop()
            if ssa.kind[value] == RESULT:
                instr = self._instrs[ssa.instr[value]]
                if _is_work(instr):
                    out[instr.index] = instr
            for source, role in flow.sources(value):
                if role in DATA and source not in seen and flow.in_loop(source, loop):
                    seen.add(source)
                    if source not in needed:
                        work.append(source)
        return list(out.values())

    def _is_renewed(self, loop: Loop, instr: Instr, shared: bool) -> bool:
        """True if each round reads something else."""
        if instr.opcode in _TENSOR:
            return shared or any(
                self._is_renewed(loop, load, shared)
                for value in self._ssa.def_values[instr.index]
                for load in self._made_of(loop, value, set())
                if _is_load(load)
            )
        if "global" not in memory_of(instr.shape).reads:
            return shared
        values = [
            source
            for value in self._ssa.def_values[instr.index]
            for source, role in self.flow.sources(self._ssa.written(value))
            if role == ADDRESS
        ]
        return any(self.flow.is_header_phi(v, loop) for v in self._closure(loop, values))


def _is_load(instr: Instr) -> bool:
    """True for a load from memory that other rounds or threads write, or that is indexed."""
    if instr.opcode in _TENSOR or not instr.defs:
        return False
    memory = memory_of(instr.shape)
    return not memory.writes and not _MEMORY.isdisjoint(memory.reads)


def _is_work(instr: Instr) -> bool:
    return (instr.opcode in _TENSOR and bool(instr.defs)) or _is_load(instr)


class LastRoundAnalysis(Analysis[LastRounds]):
    """Overwritten work of loops as facts of a function."""

    name: ClassVar[str] = "last-round"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (ValueFlowAnalysis,)

    def run(self, facts: Facts) -> LastRounds:
        """Judge every loop."""
        return LastRounds(facts.get(ValueFlowAnalysis))


__all__ = ["LastRound", "LastRoundAnalysis", "LastRounds"]
