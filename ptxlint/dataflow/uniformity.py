"""Uniformity: which values and branches are the same for a warp, a CTA or the grid.

"The same" is meant among the threads that execute an instruction at the same time: where threads
part, they meet again at the nearest post-dominator or earlier, iteration by iteration; the levels
hold for both. What a loop hands out after threads left it in different iterations is judged where
it is used. Warp operations are taken at their word: with a mask that names all lanes they are
executed by all of them (otherwise their result is undefined).

The lattice is that of dependences, `ptxlint.dataflow.lane_bits`; data, the choice of a way into a
join and the exits of loops spread them: Coutinho et al., "Divergence Analysis and Optimizations"
(2011); Sampaio et al., "Divergence Analysis" (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, ClassVar, Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import (
    AbortFreeControlDependenceAnalysis,
    ControlDependence,
)
from ptxlint.cfg.dominance import AbortFreePostDominatorsAnalysis, DominatorsAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.block_divergence import BlockDivergence, BlockDivergences
from ptxlint.dataflow.lane_bits import (
    ANY_THREAD,
    ANY_WARP,
    LANE,
    MEMORY,
    Level,
    collapse,
    level,
    spread,
)
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.sync_dependence import Cycle, SyncDependence
from ptxlint.dataflow.thread_geometry import Geometry
from ptxlint.dataflow.uniformity_reading import Context, Reading
from ptxlint.dataflow.uniformity_rules import COMMUTES, OPAQUE, Rule, is_timeless, rule_of
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Vector

_PLAIN: Final = 0
_MARKED: Final = 1
_OPAQUE: Final = 2
_SLOW: Final = 3


_rules: dict[Shape, tuple[int, Rule]] = {}
_MOST_RULES: Final = 1 << 14


def _classify(instr: Instr) -> tuple[int, Rule]:
    """The rule of an instruction's shape, and how the sweep is to go about it."""
    shape = instr.shape
    rule = rule_of(instr)
    if shape.guard or shape.partial:
        way = _SLOW
    elif rule.common is OPAQUE.common:
        way = _OPAQUE
    elif not rule.only_marked:
        way = _SLOW
    elif rule.positions or rule.common or shape.opcode in COMMUTES or shape.opcode == "mov":
        way = _MARKED
    else:
        way = _PLAIN
    if len(_rules) >= _MOST_RULES:
        _rules.clear()
    _rules[shape] = way, rule
    return way, rule


class Uniformity:
    """Levels of the values, branches and blocks of a function.

    Unreachable code counts as uniform: no thread sees it.
    """

    def __init__(self, solver: _Solver) -> None:
        self._solver = solver
        self._ssa = solver.ssa
        self._divergences: dict[bool, BlockDivergences] = {}
        self.assumes = solver.context.geometry.assumes
        """What the levels rest on though the text does not say it."""

    def dependence(self, value: int) -> int:
        """What a value may depend on: thread index bits, the CTA, changing memory.

        The bits are those of `ptxlint.dataflow.lane_bits`.
        """
        return self._solver.context.deps[value]

    def value_uniformity(self, value: int) -> Level:
        """The level of an SSA value where it is defined."""
        return level(self._solver.context.deps[value])

    def use_dependence(self, instr: Instr, use: int) -> int:
        """The dependence of `instr.uses[use]`: after a loop that threads leave at different times
        a value of the loop differs more than inside."""
        value = self._ssa.use_values[instr.index][use]
        return self._solver.context.deps[value] | self._solver.extra(instr.index)

    def use_uniformity(self, instr: Instr, use: int) -> Level:
        """The level of `instr.uses[use]` where it is read."""
        return level(self.use_dependence(instr, use))

    def guard_uniformity(self, instr: Instr) -> Level:
        """The level of an instruction's guard; GRID without one."""
        return self.use_uniformity(instr, 0) if instr.guard is not None else Level.GRID

    def branch_dependence(self, instr: Instr) -> int:
        """What decides where an instruction sends threads; 0 if it sends all one way.

        `.uni` asserts that the threads of a warp agree (PTX ISA, "bra").
        """
        cfg = self._ssa.cfg
        block = cfg.block_at(instr)
        return self._solver.branch_deps.get(block.index, 0) if instr.index == block.end - 1 else 0

    def branch_uniformity(self, instr: Instr) -> Level:
        """The level of where an instruction sends threads; WARP at worst with `.uni`."""
        return level(self.branch_dependence(instr))

    def block_divergence(self, block: int, stable_memory: bool = False) -> BlockDivergence:
        """How far threads reach a block together, and the branch that parts them.

        With `stable_memory` warps that read one address at one instruction (with a weak load) are
        taken to see the same: Triton branches on values that every thread loads for itself.
        """
        found = self._divergences.get(stable_memory)
        if found is None:
            found = self._divergences[stable_memory] = self._solver.find_divergences(stable_memory)
        return found.of(block)

    def explain(self, value: int, limit: int = 16) -> list[Instr]:
        """Why a value is not more uniform: instructions from its definition back to a source.

        Each hands on what makes the value differ; at most `limit` of them.
        """
        return self._solver.explain(value, limit)


class UniformityAnalysis(Analysis[Uniformity]):
    """Uniformity as facts of a function."""

    name: ClassVar[str] = "uniformity"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        CfgAnalysis,
        DominatorsAnalysis,
        AbortFreePostDominatorsAnalysis,
        AbortFreeControlDependenceAnalysis,
        LoopsAnalysis,
        SsaAnalysis,
    )

    def run(self, facts: Facts) -> Uniformity:
        """Solve from the special registers on."""
        control = facts.get(AbortFreeControlDependenceAnalysis)
        loops = facts.get(LoopsAnalysis)
        sync = SyncDependence(
            facts.get(CfgAnalysis),
            facts.get(DominatorsAnalysis),
            facts.get(AbortFreePostDominatorsAnalysis),
            control,
            loops,
        )
        solver = _Solver(facts.get(SsaAnalysis), Geometry(facts), sync, control, loops)
        solver.run()
        return Uniformity(solver)


class _Solver:
    """Least solution: one sweep in reverse postorder, then only what changes.

    Work items are instructions as i and phis as ~v.
    """

    def __init__(
        self,
        ssa: Ssa,
        geometry: Geometry,
        sync: SyncDependence,
        control: ControlDependence,
        loops: LoopForest,
    ) -> None:
        self.ssa = ssa
        self.context = Context(ssa, geometry)
        self.branch_deps: dict[int, int] = {}
        """Blocks with a branch that is not uniform over the grid, to its dependence."""
        self._cfg: Cfg = ssa.cfg
        self._control = control
        self._loops = loops
        self._parting = frozenset(sync.all_branches())
        self._choosers: dict[int, list[int]] = {}
        """The blocks whose branches decide what each phi takes."""
        self._decided: dict[int, list[int]] = {}
        """The phis that each block's branch decides."""
        self._find_choosers(sync)
        cyclic = bool(loops.loops or loops.irreducible)
        self._cycles: dict[int, list[Cycle]] = {}
        for cycle in sync.cycles() if cyclic else ():
            for branch in cycle.branches:
                self._cycles.setdefault(branch, []).append(cycle)
        self._cyclic = cyclic
        self._outside: dict[Cycle, tuple[int, list[int]]] = {}
        self._extra: dict[int, int] = {}
        self._work: list[int] = []
        self._waiting: set[int] = set()

    def _find_choosers(self, sync: SyncDependence) -> None:
        for block, phis in self.ssa.phis.items():
            choices = sync.join_choices(block)
            for phi in phis:
                operands = self.ssa.operands[phi]
                found: dict[int, None] = {}
                for choice in choices:
                    if len({operands[way] for way in choice.ways}) != 1:
                        found.update(dict.fromkeys(choice.branches))
                self._choosers[phi] = list(found)
                for branch in found:
                    self._decided.setdefault(branch, []).append(phi)

    def extra(self, item: int) -> int:
        """What an item's operands depend on because threads left a loop in different rounds."""
        return self._extra.get(item, 0)

    def run(self) -> None:
        """Solve, and again as long as an `activemask` turns out to be read by a part of a warp."""
        for value in self.ssa.at_entry:
            self.context.deps[value] = ANY_THREAD
        self._sweep()
        if self._cyclic:
            for phis in self.ssa.phis.values():
                self._push(~phi for phi in phis)
            for block in list(self.branch_deps):
                self._spread_branch(block)
            self._drain()
        while self.context.active_masks:
            # What a mask shows depends on who gets there, and that may depend on a mask.
            divergences = self.find_divergences()
            split = {
                at
                for at in self.context.active_masks
                if divergences.of(self._cfg.block_of[at]).level is Level.THREAD
            }
            if self.context.split >= split:
                break
            self.context.split |= split
            self._push(split)
            self._drain()

    def find_divergences(self, stable_memory: bool = False) -> BlockDivergences:
        """The divergence of all blocks, see `Uniformity.block_divergence`."""
        ignored = MEMORY if stable_memory else 0
        return BlockDivergences(
            self._cfg,
            self._control,
            self._loops,
            lambda block: level(self.branch_deps.get(block, 0) & ~ignored),
        )

    def _sweep(self) -> None:
        """Evaluate everything once; the result is final if there are no cycles."""
        context, instrs, blocks = self.context, self._cfg.function.instrs, self._cfg.blocks
        deps, marked, rules = context.deps, context.marked, _rules
        use_values, def_values, phis = self.ssa.use_values, self.ssa.def_values, self.ssa.phis
        for index in self._cfg.rpo:
            for phi in phis.get(index, ()):
                self._evaluate_phi(phi)
            block = blocks[index]
            for at in range(block.start, block.end):
                made = def_values[at]
                if not made:
                    continue
                shape = instrs[at].shape
                rule = rules.get(shape)
                if rule is None:
                    rule = _classify(instrs[at])
                way = rule[0]
                if way == _OPAQUE:
                    for value in made:
                        deps[value] = ANY_THREAD
                elif way == _PLAIN or (way == _MARKED and marked.isdisjoint(use_values[at])):
                    dependence = 0
                    for value in use_values[at]:
                        dependence |= deps[value]
                    if dependence:
                        for value in made:
                            deps[value] = dependence
                else:
                    self._evaluate(at)
            if index in self._parting:
                self._evaluate_branch(index)

    def _push(self, items: Any) -> None:
        for item in items:
            if item not in self._waiting:
                self._waiting.add(item)
                self._work.append(item)

    def _drain(self) -> None:
        """Evaluate what is waiting, and whatever that changes."""
        parting, block_of, blocks = self._parting, self._cfg.block_of, self._cfg.blocks
        readers = self.context.carry_readers
        while self._work:
            item = self._work.pop()
            self._waiting.discard(item)
            if item < 0:
                changed = [~item] if self._evaluate_phi(~item) else []
            else:
                changed = self._evaluate(item)
                if item in readers:
                    self._push(readers[item])
                block = block_of[item]
                branches = block in parting and item == blocks[block].end - 1
                if branches and self._evaluate_branch(block):
                    self._spread_branch(block)
            for value in changed:
                self._push_users(value)

    def _push_users(self, value: int) -> None:
        kind, instr = self.ssa.kind, self.ssa.instr
        for user in self.ssa.users(value):
            if user < 0 and kind[~user] != PHI:
                user = instr[~user]
            if user < 0 or self._cfg.is_reachable(self._cfg.function.instrs[user]):
                self._push((user,))

    def _spread_branch(self, block: int) -> None:
        """Hand a branch's dependence to the joins and loop exits that it decides."""
        self._push(~phi for phi in self._decided.get(block, ()))
        for cycle in self._cycles.get(block, ()):
            before, users = self._outside.get(cycle) or (0, self._users_outside(cycle))
            after = before | self.branch_deps[block]
            self._outside[cycle] = after, users
            if after != before:
                for item in users:
                    self._extra[item] = self._extra.get(item, 0) | after
                self._push(users)

    def _users_outside(self, cycle: Cycle) -> list[int]:
        """The items that meet values of a cycle from different rounds.

        They read outside of the cycle what is made in it. In a cycle that mixes its rounds they
        are also what carries values from round to round, and what depends on the time.
        """
        ssa, block_of, blocks = self.ssa, self._cfg.block_of, self._cfg.blocks
        instrs = self._cfg.function.instrs
        found: dict[int, None] = {}
        for index in cycle.blocks:
            values = list(ssa.phis.get(index, ()))
            if cycle.mixing:
                found.update((~phi, None) for phi in values)
            for at in range(blocks[index].start, blocks[index].end):
                made = ssa.def_values[at]
                if made:
                    values += range(self._first_value(at, made[0]), made[-1] + 1)
                    if cycle.mixing and not is_timeless(instrs[at].shape):
                        found[at] = None
            for value in values:
                for user in ssa.users(value):
                    item = user
                    if user < 0 and ssa.kind[~user] != PHI:
                        item = ssa.instr[~user]
                    home = ssa.phi_block[~item] if item < 0 else block_of[item]
                    if home not in cycle.blocks:
                        found[item] = None
        return list(found)

    def _first_value(self, at: int, value: int) -> int:
        """The RESULT that stands before the INSERT and MERGE made from it."""
        shape = self._cfg.function.instrs[at].shape
        return value - bool(shape.guard) - shape.partial

    def _evaluate_branch(self, block: int) -> bool:
        """Update the dependence of a block's branch; True if it grew."""
        instr = self._cfg.terminator(block)
        dependence = ANY_THREAD
        if instr is not None and instr.uses:
            dependence = self.extra(instr.index)
            for value in self.ssa.use_values[instr.index]:
                dependence |= self.context.deps[value]
            if dependence & LANE and instr.shape.has("uni"):
                dependence = dependence & ~LANE | ANY_WARP
        before = self.branch_deps.get(block, 0)
        if before | dependence == before:
            return False
        self.branch_deps[block] = before | dependence
        return True

    def _evaluate_phi(self, phi: int) -> bool:
        """Update a phi; True if it changed."""
        chosen = self.extra(~phi)
        for branch in self._choosers[phi]:
            chosen |= self.branch_deps.get(branch, 0)
        return self._merge(phi, self.ssa.operands[phi], chosen)

    def _merge(self, value: int, operands: tuple[int, ...], chosen: int) -> bool:
        """Update a value that is one of several; `chosen` is what the choice depends on."""
        context = self.context
        dependence = chosen
        for operand in operands:
            dependence |= context.deps[operand]
        if context.planes.keys().isdisjoint(operands):
            return self._set(value, dependence, None)
        planes = spread(chosen)
        for operand in operands:
            planes |= context.value_planes(operand)
        return self._set(value, dependence, planes)

    def _evaluate(self, at: int) -> list[int]:
        """Update the results of an instruction; the values that changed."""
        instr = self._cfg.function.instrs[at]
        made = self.ssa.def_values[at]
        if not made:
            return []
        rule = (_rules.get(instr.shape) or _classify(instr))[1]
        extra = self.extra(at)
        reading = Reading(self.context, instr, extra, rule.special)
        planes: int | None = None
        if rule.results is not None:
            found = rule.results(reading)
        elif rule.positions is not None:
            planes = rule.positions(reading)
            found = (collapse(planes),) * len(made)
        else:
            dependence = rule.common(reading) if rule.common else reading.all()
            found = (dependence,) * len(made)
        if instr.shape.opcode in COMMUTES and instr.shape.type != "f64":
            found, planes = self._after_exchange(reading, found, planes)
        if not instr.shape.guard and not instr.shape.partial:
            if instr.shape.opcode in ("mov", "cvt"):
                for value in made:
                    self._follow_exchange(instr, value)
            return [v for v, d in zip(made, found, strict=True) if self._set(v, d, planes)]
        changed: list[int] = []
        for value, dependence in zip(made, found, strict=True):
            self._set_result(instr, value, dependence, planes, changed)
        return changed

    def _set_result(
        self, instr: Instr, value: int, dependence: int, planes: int | None, changed: list[int]
    ) -> None:
        """Update one result and the INSERT and MERGE made from it."""
        ssa, context = self.ssa, self.context
        first = self._first_value(instr.index, value)
        if self._set(first, dependence, planes):
            changed.append(first)
        for wrapper in range(first + 1, value + 1):
            operands = ssa.operands[wrapper]
            chosen = self.extra(instr.index)
            if ssa.kind[wrapper] == MERGE:
                chosen |= context.deps[operands[0]]
                operands = operands[1:]
            if self._merge(wrapper, operands, chosen):
                changed.append(wrapper)

    def _follow_exchange(self, instr: Instr, made: int) -> None:
        """Let a move of a lane exchange count as one.

        16-bit values are widened by `cvt.u32.u16` for the exchange and narrowed after it.
        """
        exchanged, resolve = self.context.exchanged, self.ssa.resolve
        if instr.shape.opcode == "mov":
            # What is packed may be unpacked again.
            packed = isinstance(instr.operands[-1], Vector)
            sources = self.ssa.operands[made] if packed else ()
            if any(resolve(value) in exchanged for value in (made, *sources)):
                self.context.marked.add(made)
        elif instr.shape.types == ("u16", "u32"):
            source, lane_bit = exchanged.get(resolve(self.ssa.operands[made][-1]), (-1, 0))
            if source < 0 or self.ssa.kind[source] != RESULT:
                return
            widened = self._cfg.function.instrs[self.ssa.instr[source]]
            if widened.opcode == "cvt" and widened.shape.types == ("u32", "u16"):
                exchanged[made] = (resolve(self.ssa.operands[source][-1]), lane_bit)
                self.context.marked.add(made)

    def _after_exchange(
        self, reading: Reading, found: tuple[int, ...], planes: int | None
    ) -> tuple[tuple[int, ...], int | None]:
        """`x op shfl.bfly(x, m)` is the same in both lanes that the bit m tells apart."""
        values = reading.sources()
        if self.context.marked.isdisjoint(values):
            return found, planes
        if len(values) == 3 and reading.instr.shape.opcode in ("max", "min"):
            return self._after_three(reading, values) or (found, planes)
        if len(values) != 2:
            return found, planes
        resolve, exchanged = self.ssa.resolve, self.context.exchanged
        first, second = resolve(values[0]), resolve(values[1])
        for own, other in ((first, second), (second, first)):
            if other in exchanged and exchanged[other][0] == own:
                dependence = found[0] & ~exchanged[other][1] | self.extra(reading.instr.index)
                return (dependence,) * len(found), None
        return found, planes

    def _after_three(
        self, reading: Reading, values: Sequence[int]
    ) -> tuple[tuple[int, ...], None] | None:
        """`max(x, shfl.bfly(x, m), y)` in any order: what x and y hold, x the same in both lanes.

        None if no two of the three are an exchange and its source.
        """
        resolve, exchanged, deps = self.ssa.resolve, self.context.exchanged, self.context.deps
        for own, other, third in permutations(values):
            source, bit = exchanged.get(resolve(other), (-1, 0))
            if source == resolve(own):
                dependence = (deps[own] | deps[other]) & ~bit | deps[third]
                return (dependence | self.extra(reading.instr.index),), None
        return None

    def _set(self, value: int, dependence: int, planes: int | None) -> bool:
        """Let a value depend on more; True if it did not before."""
        context = self.context
        before = context.deps[value]
        after = before | dependence
        context.deps[value] = after
        known = context.planes.get(value)
        if known is None:
            if planes is None:
                return after != before
            known = spread(before)
        new = known | (spread(dependence) if planes is None else planes)
        if value in context.planes or new != spread(after):
            context.planes[value] = new
            context.marked.add(value)
        return after != before or new != known

    def explain(self, value: int, limit: int) -> list[Instr]:
        """See `Uniformity.explain`."""
        deps, ssa = self.context.deps, self.ssa
        wanted = level(deps[value])
        out: list[Instr] = []
        seen: set[int] = set()
        while wanted is not Level.GRID and value not in seen and len(out) < limit:
            seen.add(value)
            at = ssa.instr[value]
            if at >= 0 and (not out or out[-1].index != at):
                out.append(self._cfg.function.instrs[at])
            step = [v for v in ssa.operands[value] if level(deps[v]) >= wanted and v not in seen]
            if not step:
                step = self._deciding(value, wanted)
            if not step:
                break
            value = step[0]
        return out

    def _deciding(self, value: int, wanted: Level) -> list[int]:
        """The values of branches that make a value more divergent than what it is made of."""
        branches: list[int] = []
        item = self.ssa.instr[value]
        if self.ssa.kind[value] == PHI:
            item = ~value
            branches += self._choosers[value]
        for cycle, (_, users) in self._outside.items():
            if item in users:
                branches += cycle.branches
        found: list[int] = []
        for branch in branches:
            instr = self._cfg.terminator(branch)
            if instr is not None and level(self.branch_deps.get(branch, 0)) >= wanted:
                found += self.ssa.use_values[instr.index]
        return [v for v in found if level(self.context.deps[v]) >= wanted]


__all__ = [
    "BlockDivergence",
    "Level",
    "Uniformity",
    "UniformityAnalysis",
]
