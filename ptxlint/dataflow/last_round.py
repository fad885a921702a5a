"""Work of a loop that only its last round keeps.

A value that leaves a loop and, through some header phi, depends on the round before is carried on,
unless counters, or running maxima and minima of which it is none itself, are all that ties it to
the round before. What is left among the values that leave is computed anew in every round, and each
round but the last computes it for nothing, unless the loop *needs* it: stores it, branches on it,
or carries it into a round that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.components import strongly_connected
from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.shared_exchange import exchanges, touching, unread
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.value_flow import (
    ADDRESS,
    COPY,
    DATA,
    EXTREME,
    FACTOR,
    TERM,
    ValueFlow,
    ValueFlowAnalysis,
)
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import effectful, memory_of

_TENSOR: Final = frozenset({"mma", "wgmma", "wmma"})
_MEMORY: Final = frozenset({"", "global", "shared", "tmem"})
"""Spaces whose contents a kernel's rounds read anew."""


class LastRound(NamedTuple):
    """What a loop hands out of its last round only.

    `values` leave the loop, which needs none of them. `loads` and `products` are the instructions,
    tensor-core products the latter, that they are made of and that read something else in each
    round. `reloaded` are the values behind the loop that are some of `values`, handed on through
    shared memory.
    """

    loop: Loop
    values: tuple[int, ...]
    loads: tuple[Instr, ...]
    products: tuple[Instr, ...]
    reloaded: tuple[int, ...]


class _Ties(NamedTuple):
    """How values depend on the round before."""

    counting: set[int]
    """Through counters only, which each round steps by what the loop never changes."""
    relative: set[int]
    """Through running maxima and minima, and counters, which they are none of."""
    carried: set[int]
    """In any other way."""


class LastRounds:
    """The loops of a function that throw work away, and how many were looked at."""

    def __init__(self, flow: ValueFlow) -> None:
        self.flow = flow
        self._ssa = flow.ssa
        self._cfg = flow.ssa.cfg
        self._instrs = flow.ssa.cfg.function.instrs
        self.all: list[LastRound] = []
        self.kept: list[LastRound] = []
        """The same of values that the loop needs too."""
        self.stale: list[LastRound] = []
        """What a round leaves to the next one, which adds it and does not hand it on."""
        self.spent: list[LastRound] = []
        """Those of them that the next round adds to something that it does not hand on either."""
        self.judged = 0
        """Loops with loads or products whose rounds are counted, not searched."""
        self.unclear: list[Loop] = []
        """Judged loops that hand out something whose only tie to the round before is a counter."""
        self._all_exchanges: list[tuple[Instr, list[Instr]]] | None = None
        self._reloaded: dict[int, list[int]] = {}
        self._received: dict[int, list[int]] = {}
        for loop in flow.loops.loops:
            self._judge(loop)

    def _judge(self, loop: Loop) -> None:
        body = self._body(loop)
        if not any(_is_work(instr) for instr in body) or self._is_search(loop):
            return
        self.judged += 1
        exchanging = touching(body)
        left = {store.index for store in unread(exchanging)}
        self._reloaded = self._reloads(loop, left) if left else {}
        self._received = self._receptions(exchanging)
        leaving = [*dict.fromkeys([*self._leaving(loop, body), *self._reloaded])]
        handed = self._handed_on(loop)
        ties = self._ties(loop, [*leaving, *handed.values()])
        loose = [value for value in leaving if value not in ties.carried]
        stale = {
            phi: value
            for phi, value in handed.items()
            if value not in ties.carried and value not in ties.counting
        }
        if not loose and not stale:
            return
        shared = any("shared" in memory_of(i.shape).writes for i in body)
        used = self._needed(loop, body, left)
        used |= self._closure(loop, [value for value in leaving if value in ties.carried])
        if any(v in ties.counting and v not in used and self._made_of(loop, v) for v in loose):
            self.unclear.append(loop)
        next_round = self._passed_on(loop, used)
        fresh = [v for v in loose if v not in ties.counting and v not in next_round]
        found = self._work(loop, [v for v in fresh if v not in used], shared)
        if found is not None:
            self.all.append(found)
        found = self._work(loop, [v for v in fresh if v in used], shared)
        if found is not None:
            self.kept.append(found)
        found = self._work(loop, list(stale.values()), shared)
        if found is not None:
            self.stale.append(found)
        spent = [v for phi, v in stale.items() if self._is_added(phi, loop, ties.carried)]
        found = self._work(loop, spent, shared)
        if found is not None:
            self.spent.append(found)

    def _passed_on(self, loop: Loop, used: set[int]) -> set[int]:
        """What the next round uses: header phis, and what becomes one of them as it is."""
        flow = self.flow
        phis = [phi for phi in self._ssa.phis.get(loop.header, ()) if phi in used]
        out: set[int] = set()
        work = [*phis, *(v for phi in phis for v in flow.carried(phi, loop)[1])]
        while work:
            value = work.pop()
            if value not in out and flow.in_loop(value, loop):
                out.add(value)
                work += [s for s, role in flow.sources(value) if role == COPY]
        return out

    def _handed_on(self, loop: Loop) -> dict[int, int]:
        """By what a loop carries and adds to something: the value that the next round gets."""
        found: dict[int, int] = {}
        for phi in self._ssa.phis.get(loop.header, ()):
            latch = self.flow.carried(phi, loop)[1]
            if len(latch) == 1 and self._is_added(phi, loop):
                found[phi] = latch[0]
        return found

    def _is_added(self, value: int, loop: Loop, carried: Collection[int] = ()) -> bool:
        """True if a value is added to something in its round, as it is or multiplied; subtractions
        count unless what is `carried` is told, to which the sum must not belong then."""
        flow = self.flow
        work = [value]
        seen = set(work)
        while work:
            for result, role in flow.results(work.pop()):
                if not flow.in_loop(result, loop) or role not in (TERM, FACTOR):
                    continue
                opcode = self._instrs[self._ssa.instr[result]].opcode
                if role == TERM or opcode == "fma":
                    if result not in carried and not (carried and opcode == "sub"):
                        return True
                    continue
                if result not in seen:
                    seen.add(result)
                    work.append(result)
        return False

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
        starts, users = ssa.all_users()
        leaving = []
        for value in values:
            for user in users[starts[value] : starts[value + 1]]:
                at = block_of[user] if user >= 0 else ssa.block_of(~user)
                if at not in inside:
                    leaving.append(value)
                    break
        return leaving

    def _reloads(self, loop: Loop, left: set[int]) -> dict[int, list[int]]:
        """By value that the loop leaves in shared memory: what is loaded from there behind it."""
        found: dict[int, list[int]] = {}
        for load, stores in self._exchanges():
            if not self.flow.loops.contains(loop, self._cfg.block_of[load.index]):
                for store in stores:
                    if store.index in left:
                        for value in self._stored(store):
                            found.setdefault(value, []).extend(self._ssa.def_values[load.index])
        return found

    def _exchanges(self) -> list[tuple[Instr, list[Instr]]]:
        if self._all_exchanges is None:
            self._all_exchanges = exchanges(touching(self._instrs))
        return self._all_exchanges

    def _receptions(self, body: list[Instr]) -> dict[int, list[int]]:
        """By value loaded from shared memory in the body of a loop: what rounds store there.

        Of the body only what `touching` finds is needed.
        """
        found: dict[int, list[int]] = {}
        groups: dict[int, list[int]] = {}
        for load, stores in exchanges(body + body):
            values = groups.get(stores[0].index)
            if values is None:
                values = groups[stores[0].index] = [v for s in stores for v in self._stored(s)]
            for value in self._ssa.def_values[load.index]:
                if value not in found:
                    found[self._ssa.written(value)] = values
        return found

    def _stored(self, store: Instr) -> list[int]:
        """The values that a store writes, its address apart."""
        values = self.flow.operand_values(store)
        return [value for found in values[1:] for value in found]

    def _needed(self, loop: Loop, body: list[Instr], left: set[int]) -> set[int]:
        """What the loop itself uses: for its effects, its branches and what they depend on.

        Stores whose results it only leaves behind are no effects.
        """
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
                if not effect or instr.index in left:
                    continue
            roots.update(dict.fromkeys(values))
        return self._closure(loop, roots)

    def _closure(self, loop: Loop, values: Iterable[int]) -> set[int]:
        """All values of the loop that these depend on in any way, over all rounds."""
        sources, inside = self.flow.sources, self.flow.inside(loop)
        reached = {v for v in values if v in inside}
        work = list(reached)
        while work:
            for source, _ in sources(work.pop()):
                if source in inside and source not in reached:
                    reached.add(source)
                    work.append(source)
        return reached

    def _ties(self, loop: Loop, values: list[int]) -> _Ties:
        """What ties values to the round before."""
        flow = self.flow
        inside = flow.inside(loop)
        sources: dict[int, list[int]] = {}

        work = list(dict.fromkeys(values))
        received, sources_of = self._received, flow.sources
        while work:
            value = work.pop()
            if value not in sources:
                found = [s for s, role in sources_of(value) if s in inside and role in DATA]
                if value in received:
                    found += [s for s in received[value] if s in inside]
                sources[value] = found
                work += [s for s in found if s not in sources]
        inputs = sources.__getitem__
        counting: set[int] = set()
        relative: set[int] = set()
        carried: set[int] = set()
        extremes: set[int] = set()
        # A component comes after all those that it leads to.
        for component in strongly_connected(list(sources), inputs):
            ahead: Collection[int] = inputs(component[0])
            own = len(component) > 1 or component[0] in ahead
            if own:
                ahead = {s for value in component for s in inputs(value)}
            if not carried.isdisjoint(ahead):
                carried.update(component)
            elif own and any(flow.is_header_phi(v, loop) for v in component):
                works = any(map(self._is_made_by_work, component))
                if set(component).issuperset(ahead) and not works:
                    counting.update(component)
                elif self._is_extreme(component):
                    extremes.update(component)
                else:
                    carried.update(component)
            elif not (extremes.isdisjoint(ahead) and relative.isdisjoint(ahead)):
                relative.update(component)
            elif not counting.isdisjoint(ahead):
                counting.update(component)
        return _Ties(counting, relative, carried | extremes)

    def _is_extreme(self, component: list[int]) -> bool:
        """True if rounds only take the larger, or smaller, of what is carried and something."""
        inside = set(component)
        roles = {role for v in component for s, role in self.flow.sources(v) if s in inside}
        return EXTREME in roles and roles <= {EXTREME, COPY}

    def _is_made_by_work(self, value: int) -> bool:
        return self._ssa.kind[value] == RESULT and _is_work(self._instrs[self._ssa.instr[value]])

    # What was done for nothing ----------------------------------------------------------------
    def _work(self, loop: Loop, fresh: list[int], shared: bool) -> LastRound | None:
        """The loads and products behind values of one round."""
        values: list[int] = []
        loads: dict[int, Instr] = {}
        products: dict[int, Instr] = {}
        for value in fresh:
            found = [
                instr
                for instr in self._made_of(loop, value)
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
            tuple(v for value in values for v in self._reloaded.get(value, ())),
        )  # fmt: skip

    def _made_of(self, loop: Loop, value: int) -> list[Instr]:
        """The loads and products of a loop that a value is computed from."""
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
                    work.append(source)
        return list(out.values())

    def _is_renewed(self, loop: Loop, instr: Instr, shared: bool) -> bool:
        """True if each round reads something else."""
        if instr.opcode in _TENSOR:
            return shared or any(
                self._is_renewed(loop, load, shared)
                for value in self._ssa.def_values[instr.index]
                for load in self._made_of(loop, value)
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
