"""Pruned static single assignment form, with select-like merges for predicated definitions.

Cytron et al., "Efficiently Computing Static Single Assignment Form and the Control Dependence
Graph" (1991), pruned by liveness. What PTX adds is the predicated definition: `@p ld r` leaves
the old value of `r` where `p` is false, so it makes the value `p ? loaded : old`. Hence
`mov r, fill; @p ld r` is one value, `p ? loaded : fill`.

Values are dense integers. The carry flag CC is not a register and has no values here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.cfg.graph import Cfg
from ptxlint.dataflow.liveness import bit_mask, registers_of
from ptxlint.dataflow.solver import BACKWARD, MAYBE, solve_blocks
from ptxlint.dataflow.ssa_values import (
    ARGUMENT,
    ENTRY,
    INSERT,
    MERGE,
    PHI,
    RESULT,
    UNDEFINED,
    Ssa,
)
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

__all__ = [
    "ARGUMENT",
    "ENTRY",
    "INSERT",
    "MERGE",
    "PHI",
    "RESULT",
    "UNDEFINED",
    "Ssa",
    "SsaAnalysis",
    "build_ssa",
]

_NEVER: Final = -1
_MANY: Final = -2


class SsaAnalysis(Analysis[Ssa]):
    """SSA form as facts of a function."""

    name: ClassVar[str] = "ssa"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, DominatorsAnalysis)

    def run(self, facts: Facts) -> Ssa:
        """Place the phis and rename."""
        return build_ssa(facts.get(CfgAnalysis), facts.get(DominatorsAnalysis))


def build_ssa(cfg: Cfg, dominators: DominatorTree) -> Ssa:
    """The SSA form of the function of a control-flow graph."""
    survey = _Survey(cfg, dominators)
    live_in = _live_in(cfg, survey)
    renamer = _Renamer(cfg, dominators, survey, live_in)
    renamer.run()
    return renamer.ssa


class _Survey:
    """What must be known of the registers before renaming.

    A register with one definition, unpredicated and before all its uses, is *single* and needs
    neither phi nor undo. The others are *many*; those among them that some block reads before it
    writes are *crossing*.
    """

    def __init__(self, cfg: Cfg, dominators: DominatorTree) -> None:
        self._cfg = cfg
        self._dominators = dominators
        self.home = [_NEVER] * len(cfg.function.registers)
        """By register: its only definition, `_NEVER`, or `_MANY`."""
        self.def_blocks: dict[int, list[int]] = {}
        """Many-registers to the blocks that define them."""
        self.exposed: dict[int, set[int]] = {}
        """Blocks to the many-registers that they read, or keep, before they write them."""
        results = registers_of(cfg.function, cfg.function.returns)
        self._find_definitions()
        while not self._find_exposed():
            pass
        self.returned = [r.index for r in results if self.home[r.index] == _MANY]
        """The many-registers that hold results of a `.func` when it returns."""
        self.crossing = sorted(set(self.returned).union(*self.exposed.values()))

    def _find_definitions(self) -> None:
        home, blocks, instrs = self.home, self._cfg.blocks, self._cfg.function.instrs
        for index in self._cfg.rpo:
            block = blocks[index]
            for at in range(block.start, block.end):
                defs = instrs[at].defs
                if not defs:
                    continue
                shape = instrs[at].shape
                only = _MANY if shape.guard or shape.partial else at
                for register in defs:
                    number = register.index
                    home[number] = only if home[number] == _NEVER else _MANY

    def _find_exposed(self) -> bool:
        """Fill `def_blocks` and `exposed`. False if a register turned out to be no single one."""
        home, blocks, instrs = self.home, self._cfg.blocks, self._cfg.function.instrs
        self.def_blocks.clear()
        self.exposed.clear()
        written_in = [-1] * len(home)
        settled = True
        for index in self._cfg.rpo:
            block = blocks[index]
            start = block.start
            exposed: set[int] = set()
            for at in range(start, block.end):
                instr = instrs[at]
                for register in instr.uses:
                    number = register.index
                    only = home[number]
                    if start <= only < at:
                        continue
                    if only == _MANY:
                        if written_in[number] != index:
                            exposed.add(number)
                    elif only >= 0 and not self._reaches(only, index):
                        home[number] = _MANY
                        settled = False
                for register in instr.defs:
                    number = register.index
                    if home[number] == _MANY and written_in[number] != index:
                        if instr.shape.guard or instr.shape.partial:
                            exposed.add(number)
                        written_in[number] = index
                        self.def_blocks.setdefault(number, []).append(index)
            if exposed:
                self.exposed[index] = exposed
        return settled

    def _reaches(self, definition: int, block: int) -> bool:
        """True if a definition in another block is on every path to this one."""
        return self._dominators.strictly_dominates(self._cfg.block_of[definition], block)


def _live_in(cfg: Cfg, survey: _Survey) -> list[int]:
    """By block, the crossing registers whose value at its top is read, as bits.

    Bit i stands for `survey.crossing[i]`. Unlike in `Liveness`, a predicated definition reads the
    old value, so that the merge it makes is right even where nobody reads it.
    """
    bit = {number: at for at, number in enumerate(survey.crossing)}
    written: list[list[int]] = [[] for _ in cfg.blocks]
    for number in survey.crossing:
        for index in survey.def_blocks.get(number, ()):
            written[index].append(bit[number])
    exposed = survey.exposed
    gen = [bit_mask([bit[n] for n in exposed.get(b.index, ())]) for b in cfg.blocks]
    kill = [bit_mask(bits) for bits in written]
    boundary = bit_mask([bit[number] for number in survey.returned])
    return solve_blocks(cfg, gen, kill, kind=MAYBE, direction=BACKWARD, boundary=boundary)[0]


class _Renamer:
    """Gives every definition a value and every use the value that reaches it."""

    def __init__(
        self, cfg: Cfg, dominators: DominatorTree, survey: _Survey, live_in: list[int]
    ) -> None:
        self.ssa = Ssa(cfg)
        self._cfg = cfg
        self._dominators = dominators
        self._crossing = survey.crossing
        parameters = registers_of(cfg.function, cfg.function.params)
        self._arguments = frozenset(r.index for r in parameters)
        self._initial: dict[int, int] = {}
        self._current = [-1] * len(survey.home)
        self._needs_undo = bytearray(len(survey.home))
        for number in survey.crossing:
            self._needs_undo[number] = 1
        self._pending: dict[int, list[tuple[int, list[int]]]] = {}
        self._set_initial(survey, live_in)
        self._place_phis(survey, live_in)

    def run(self) -> None:
        """Rename all blocks, the reachable ones in preorder of the dominator tree."""
        if self._crossing:
            self._walk_tree()
        else:
            for index in self._cfg.rpo:
                self._rename(index, None)
        self._fill_phis()
        for block in self._cfg.unreachable_blocks():
            self._rename_unreachable(block.start, block.end)

    def _new(self, kind: int, register: Register, operands: tuple[int, ...] = ()) -> int:
        ssa = self.ssa
        ssa.kind.append(kind)
        ssa.instr.append(-1)
        ssa.result.append(0)
        ssa.operands.append(operands)
        ssa.register.append(register)
        return len(ssa.kind) - 1

    def _at_entry(self, register: Register) -> int:
        """The value of a register at function entry."""
        value = self._initial.get(register.index)
        if value is None:
            kind = ARGUMENT if register.index in self._arguments else UNDEFINED
            value = self._initial[register.index] = self._new(kind, register)
            self.ssa.at_entry.append(value)
        return value

    def _set_initial(self, survey: _Survey, live_in: list[int]) -> None:
        """Values of the crossing registers that are read before they are written."""
        registers = self._cfg.function.registers
        live = live_in[self._cfg.entry]
        for at, number in enumerate(survey.crossing):
            if live >> at & 1:
                self._current[number] = self._at_entry(registers[number])

    def _place_phis(self, survey: _Survey, live_in: list[int]) -> None:
        registers = self._cfg.function.registers
        position, frontiers = self._cfg.position, self._dominators.frontiers
        places: list[tuple[int, int]] = []
        for at, number in enumerate(survey.crossing):
            work = list(survey.def_blocks.get(number, ()))
            placed: set[int] = set()
            while work:
                for index in frontiers[work.pop()]:
                    if index not in placed and live_in[index] >> at & 1:
                        placed.add(index)
                        work.append(index)
            places += [(position[index], number) for index in placed]
        places.sort()
        for place, number in places:
            index = self._cfg.rpo[place]
            value = self._new(PHI, registers[number])
            self.ssa.phi_block[value] = index
            self.ssa.phis.setdefault(index, []).append(value)
            sources = self.ssa.phi_sources(index)
            # The entry stands last; the other places are filled when the sources are renamed.
            operands = [-1] * len(sources)
            if sources[-1] == ENTRY:
                operands[-1] = self._at_entry(registers[number])
            self._pending.setdefault(index, []).append((number, operands))
        self._place_of = {
            index: {source: at for at, source in enumerate(self.ssa.phi_sources(index))}
            for index in self._pending
        }

    def _walk_tree(self) -> None:
        """Rename in preorder; what a subtree set is undone before its sibling is entered."""
        idom, current = self._dominators.idom, self._current
        stack: list[tuple[int, list[tuple[int, int]]]] = []
        for index in self._dominators.preorder:
            while stack and stack[-1][0] != idom[index]:
                for number, value in reversed(stack.pop()[1]):
                    current[number] = value
            undo: list[tuple[int, int]] = []
            for value in self.ssa.phis.get(index, ()):
                number = self.ssa.register[value].index
                undo.append((number, current[number]))
                current[number] = value
            self._rename(index, undo)
            self._feed_phis(index)
            stack.append((index, undo))

    def _feed_phis(self, index: int) -> None:
        """Hand the values at the end of a block to the phis of its successors."""
        for target in self._cfg.blocks[index].succs:
            pending = self._pending.get(target)
            if pending:
                place = self._place_of[target][index]
                for number, operands in pending:
                    operands[place] = self._current[number]

    def _fill_phis(self) -> None:
        for index, pending in self._pending.items():
            for value, (_, operands) in zip(self.ssa.phis[index], pending, strict=True):
                self.ssa.operands[value] = tuple(operands)

    def _rename(self, index: int, undo: list[tuple[int, int]] | None) -> None:
        """Rename one block. `undo` collects what crossing registers held before."""
        ssa, current, needs_undo = self.ssa, self._current, self._needs_undo
        kinds, results = ssa.kind, ssa.result
        instr_of, operands_of, register_of = ssa.instr, ssa.operands, ssa.register
        block = self._cfg.blocks[index]
        instrs = self._cfg.function.instrs
        for at in range(block.start, block.end):
            instr = instrs[at]
            values: tuple[int, ...] = ()
            if instr.uses:
                values = tuple([current[register.index] for register in instr.uses])
                if -1 in values:
                    values = self._read_unwritten(instr.uses)
                ssa.use_values[at] = values
            defs = instr.defs
            if not defs:
                continue
            value = len(kinds)
            shape = instr.shape
            if shape.guard or shape.partial:
                made = self._define_in_part(instr, values, undo)
            elif len(defs) == 1:
                register = defs[0]
                number = register.index
                if undo is not None and needs_undo[number]:
                    undo.append((number, current[number]))
                current[number] = value
                kinds.append(RESULT)
                instr_of.append(at)
                results.append(0)
                operands_of.append(values)
                register_of.append(register)
                made = (value,)
            else:
                made = tuple(range(value, value + len(defs)))
                for result, register in enumerate(defs):
                    number = register.index
                    if undo is not None and needs_undo[number]:
                        undo.append((number, current[number]))
                    current[number] = value + result
                kinds.extend([RESULT] * len(defs))
                instr_of.extend([at] * len(defs))
                results.extend(range(len(defs)))
                operands_of.extend([values] * len(defs))
                register_of.extend(defs)
            ssa.def_values[at] = made

    def _read_unwritten(self, uses: tuple[Register, ...]) -> tuple[int, ...]:
        """The values of registers some of which nothing ever wrote."""
        current = self._current
        for register in uses:
            if current[register.index] < 0:
                current[register.index] = self._at_entry(register)
        return tuple(current[register.index] for register in uses)

    def _define_in_part(
        self, instr: Instr, values: tuple[int, ...], undo: list[tuple[int, int]] | None
    ) -> tuple[int, ...]:
        """Values of a definition that may leave the old value, or a part of it, in place."""
        current, at = self._current, instr.index
        made: list[int] = []
        for result, register in enumerate(instr.defs):
            number = register.index
            old = current[number]
            if old < 0:
                old = self._at_entry(register)
            value = self._define(RESULT, register, values, at, result)
            if instr.shape.partial:
                value = self._define(INSERT, register, (value, old), at, result)
            if instr.shape.guard:
                arms = self._arms(values[0], value, old, instr.shape.guard == "@")
                value = self._define(MERGE, register, arms, at, result)
            if undo is not None and self._needs_undo[number]:
                undo.append((number, current[number]))
            current[number] = value
            made.append(value)
        return tuple(made)

    def _define(
        self, kind: int, register: Register, operands: tuple[int, ...], at: int, result: int
    ) -> int:
        value = self._new(kind, register, operands)
        self.ssa.instr[value] = at
        self.ssa.result[value] = result
        return value

    def _arms(self, guard: int, new: int, old: int, positive: bool) -> tuple[int, int, int]:
        """The operands of a merge. An old value that was merged under the same predicate gives
        the arm that is left: `@p mov r, a; @!p mov r, b` is `p ? a : b`."""
        ssa = self.ssa
        root, same = ssa.root(guard)
        wanted = positive == same  # the value of `root` under which `new` is written
        while ssa.kind[old] == MERGE:
            inner, inner_same = ssa.root(ssa.operands[old][0])
            if inner != root:
                break
            # Where `root` has the other value, the old merge gives this arm of its own.
            old = ssa.operands[old][2 if wanted == inner_same else 1]
        return (guard, new, old) if positive else (guard, old, new)

    def _rename_unreachable(self, start: int, end: int) -> None:
        """Rename a block that nothing leads to, from the initial values."""
        self._current = [-1] * len(self._current)
        for at in range(start, end):
            instr = self._cfg.function.instrs[at]
            for register in (*instr.uses, *(instr.defs if instr.may_define else ())):
                if self._current[register.index] < 0:
                    self._current[register.index] = self._at_entry(register)
            values = tuple(self._current[register.index] for register in instr.uses)
            self.ssa.use_values[at] = values
            if instr.may_define:
                self.ssa.def_values[at] = self._define_in_part(instr, values, None)
                continue
            made = []
            for result, register in enumerate(instr.defs):
                value = self._define(RESULT, register, values, at, result)
                self._current[register.index] = value
                made.append(value)
            self.ssa.def_values[at] = tuple(made)
