"""What is proved of the accesses of a kernel under one launch, whatever the size of its grid.

Each access to global memory is looked at by three questions: whether all index arithmetic behind
its address fits the words that it is done in, whether its bytes lie in the storage that its pointer
points into, and whether its address is a multiple of its width. An answer is *proved* or *open*,
with the reason; nothing here refutes, since that takes a thread that does it
(`ptxlint.launch.witness`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.dataflow.access import Access, AccessAnalysis
from ptxlint.dataflow.bitwise import low_zeros, trailing_zeros
from ptxlint.dataflow.extremes import Box, nested_quotients
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, GuardsAnalysis, both
from ptxlint.dataflow.launched import LaunchedSymbolic, Setting
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.symbolic import SymbolicAnalysis, Wrap
from ptxlint.facts import Budget, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Register
from ptxlint.ir.types import bits
from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.obligations import Wraps
from ptxlint.launch.promises import Promises
from ptxlint.launch.told_conditions import numbers_inside
from ptxlint.launches import Tensor

_MODULE: Final = -3
"""The storage of what a module declares: no argument's, and not scratch memory."""
_START: Final = 20_000
_PER_INSTRUCTION: Final = 60
"""Steps that the proofs of one launch may take: a conjunct that tightens atoms, or is added."""


class Judged(NamedTuple):
    """What is known of one access under a launch.

    `wraps` is what may not fit its word on the way to the address; `below` and `above` say whether
    bytes before the start and beyond the end of the storage are ruled out, `aligned` whether the
    address is a multiple of the width. They are false, too, where that is not known; `reason` says
    why, "" if everything is proved. The region is None if the pointer is not known. `never` says
    that the access takes place in no thread: `compiled` if its mask is constant, `launch` if so
    under this launch. `ran` says that all threads were run with the machine's words: then the rest
    holds whatever wraps.
    """

    access: Access
    region: Region | None
    wraps: tuple[Wrap, ...] = ()
    below: bool = True
    above: bool = True
    aligned: bool = True
    never: str = ""
    reason: str = ""
    ran: bool = False

    @property
    def is_settled(self) -> bool:
        """True if nothing that wraps can make the rest untrue."""
        return self.ran or not self.wraps

    @property
    def is_inside(self) -> bool:
        """True if it is proved to stay inside the storage."""
        return self.below and self.above and self.is_settled


class UnderLaunch:
    """One kernel under one launch. `judged` has its global accesses, in program order."""

    budget_name: ClassVar[str] = "launch-proofs"
    """What the budget is called in `Facts.budgets` when it is spent."""

    def __init__(self, facts: Facts, bound: Bound) -> None:
        self.bound = bound
        self.origin = facts
        """The kernel without a launch."""
        self.promises = self._promises(facts, bound)
        setting = self._setting()
        self.facts = facts.instead(SymbolicAnalysis, lambda own: LaunchedSymbolic(own, setting))
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.loops: LoopForest = facts.get(LoopsAnalysis)
        symbolic = self.facts.get(SymbolicAnalysis)
        assert isinstance(symbolic, LaunchedSymbolic)
        self.symbolic: LaunchedSymbolic = symbolic
        self.guards: Guards = self.facts.get(GuardsAnalysis)
        self._budget = self._steps(facts)
        self._deciding: dict[int, list[int]] = {}
        self._is_started = min(bound.grid) > 0
        accesses = self.accesses = self.facts.get(AccessAnalysis)
        self._dead = {a.instr.index for a in facts.get(AccessAnalysis).in_global if a.guard is None}
        located = {access.instr.index for access in accesses.in_global}
        self.unlocated: list[Instr] = [i for i in accesses.unknown if i.index not in located]
        """Accesses whose address is not understood at all."""
        self.know(self.symbolic.threads())
        self.judged: list[Judged] = [self._judge(access) for access in accesses.in_global]
        if self._budget.spent:
            facts.budgets[self.budget_name] = self._budget

    def _steps(self, facts: Facts) -> Budget:
        """What the proofs may cost."""
        steps = _START + _PER_INSTRUCTION * len(facts.function.instrs)
        return Budget(max(1, int(steps * facts.effort)))

    def _setting(self) -> Setting:
        """What the launch fixes, in the terms of the evaluation."""
        bound = self.bound
        addresses = {name: region.address for name, region in bound.regions.items()}
        return Setting(bound.value, addresses, bound.grid, bound.block, self.promises.of)

    def know(self, everywhere: list[Polynomial]) -> None:
        """Start over with what is not negative in every thread."""
        self._everywhere = everywhere
        self._rounds = Rounds(self.ssa, self.loops, self.guards, self._enters)
        self._boxes: dict[tuple[Conjunction, tuple[int, ...]], Box] = {}
        self._arms: dict[tuple[int, bool], list[Polynomial] | None] = {}
        self._most: dict[tuple[Polynomial, Conjunction], int] = {}
        self._failed: dict[tuple[Polynomial, Conjunction], int] = {}
        self._wraps = Wraps(
            self.ssa, self.loops, self.symbolic, self.guards, self.box, self._branches
        )

    def _promises(self, facts: Facts, bound: Bound) -> Promises:
        return Promises(facts, bound)

    def release(self) -> None:
        """Drop what was found anew for this launch."""
        self.facts.forget()
        vars(self).clear()

    # Bounds under a guard ---------------------------------------------------------------------
    def box(self, guard: Conjunction, about: Iterable[Polynomial]) -> Box:
        """The bounds of atoms where a guard holds, as polynomials about these atoms need them."""
        loops = {
            atom.data[0]
            for poly in (*about, *(c.polynomial for c in guard if c.polynomial is not None))
            for atom in poly.all_atoms()
            if atom.kind == "index"
        }
        key = guard, tuple(sorted(loops))
        found = self._boxes.get(key)
        if found is None:
            facts = [poly for c in sorted(guard, key=repr) for poly in _not_negative(c)]
            for header in key[1]:
                loop = self.loops.with_header(header)
                if loop is not None:
                    lasting = (c.polynomial for c in self._rounds.lasting(loop))
                    facts += [poly for poly in lasting if poly is not None]
            facts += self._everywhere
            facts += [plain for fact in facts if (plain := nested_quotients(fact)) != fact]
            facts += self._products(facts)
            found = self._boxes[key] = Box(self.symbolic.table, facts, self._where, self._budget)
        return found

    def _products(self, facts: list[Polynomial]) -> list[Polynomial]:
        """What else is not negative because some facts are not."""
        return []

    def _enters(self, loop: Loop, poly: Polynomial) -> bool:
        """True if a number is not negative wherever a loop is entered."""
        guards = self.guards
        for block in self.ssa.cfg.blocks[loop.header].preds:
            if block in loop.latches:
                continue
            known = both(guards.of_block(block), guards.of_edge(block, loop.header))
            if known is not None and not self.box(known, (poly,)).is_at_least(poly, 0):
                return False
        return True

    def _where(self, predicate: int, holds: bool) -> list[Polynomial] | None:
        """What is not negative where a predicate holds; None if it never does."""
        key = predicate, holds
        if key not in self._arms:
            guard = self.guards.of_predicate(predicate, holds)
            polys = (c.polynomial for c in sorted(guard or ALWAYS, key=repr))
            self._arms[key] = None if guard is None else [p for p in polys if p is not None]
        return self._arms[key]

    def is_at_most(self, poly: Polynomial, guard: Conjunction, bound: int) -> bool:
        """True if a polynomial is certainly no more than a number where a guard holds."""
        form = poly - poly.constant
        limit = bound - poly.constant
        key = form, guard
        if key in self._most and self._most[key] <= limit:
            return True
        if key in self._failed and self._failed[key] >= limit:
            return False
        holds = self.box(guard, (form,)).is_at_most(form, limit)
        if not holds and (plain := nested_quotients(form)) != form:
            holds = self.box(guard, (form,)).is_at_most(plain, limit)
        known = self._most if holds else self._failed
        known[key] = limit
        return holds

    # Accesses ---------------------------------------------------------------------------------
    def _end(self, region: Region, parameter: str) -> Polynomial:
        """The first byte behind the storage that a parameter points into, from where it points."""
        return self.symbolic.table.constant(region.high)

    def _table(self, name: str) -> Region | None:
        """A variable in global memory that the module declares, as what its name points into."""
        variable = self.facts.module.variables.get(name)
        if variable is None or variable.space != "global" or not variable.size:
            return None
        alignment = variable.align or max(1, bits(variable.type) // 8 * variable.vector)
        tensor = Tensor("uint8", (variable.size,), (1,), _MODULE, variable.size, 0, alignment)
        return Region(name, _MODULE, alignment, 0, variable.size, tensor)

    def _judge(self, access: Access) -> Judged:
        region = self.bound.regions.get(access.base) or self._table(access.base)
        if access.instr.index in self._dead:
            return Judged(access, region, never="compiled")
        conditions = self.conditions(access.instr)
        if access.guard is None or not self._is_started:
            wraps = tuple(self._wraps.open_for((), conditions, ALWAYS))
            reason = self._about_wrap(wraps[0]) if wraps else ""
            return Judged(access, region, wraps, never="launch", reason=reason)
        guard = access.guard
        if self.box(guard, ()).is_empty:
            wraps = tuple(self._wraps.open_for((), conditions, ALWAYS))
            reason = self._about_wrap(wraps[0]) if wraps else ""
            return Judged(access, region, wraps, never="launch", reason=reason)
        wraps = tuple(self._wraps.open_for(self._address_values(access), conditions, guard))
        if region is None:
            found = self._by_address(access, guard)
            if found is None:
                return Judged(access, None, wraps, False, False, False, "", self._unbased(access))
            region = found
        address = access.offset
        if not access.base:
            address = address - region.address
        below = self.is_at_most(-address, guard, -region.low)
        above = self.is_at_most(address - self._end(region, access.base), guard, -access.width)
        aligned = self._is_aligned(access, address, region)
        reason = ""
        if wraps:
            reason = self._about_wrap(wraps[0])
        elif not (below and above):
            reason = self._about_bounds(access, address, region, below)
        elif not aligned:
            reason = f"that the address is a multiple of {access.width} is not known"
        if reason and self._budget.spent:
            reason = f"{reason}; {self._budget.reason}"
        return Judged(access, region, wraps, below, above, aligned, "", reason)

    def _by_address(self, access: Access, guard: Conjunction) -> Region | None:
        """The storage that an address without a base certainly lies in, by its made-up address."""
        if access.base:
            return None
        for region in self.bound.regions.values():
            start, end = region.address + region.low, region.address + region.high
            if self.is_at_most(-access.offset, guard, -start) and self.is_at_most(
                access.offset, guard, end - access.width
            ):
                return region
        return None

    def _unbased(self, access: Access) -> str:
        if access.base:
            return f"the launch does not say what {access.base} points to"
        kinds = {atom.kind for atom in access.offset.all_atoms()}
        if "load" in kinds:
            return "the address comes from memory"
        return "which pointer the address comes from is not known"

    def _is_aligned(self, access: Access, offset: Polynomial, region: Region) -> bool:
        width = access.width
        if width & (width - 1):
            return False
        zeros = min(low_zeros(offset), trailing_zeros(region.address))
        return zeros >= width.bit_length() - 1

    def _address_values(self, access: Access) -> list[int]:
        """What the access's address is read from: of a copy that of its source."""
        instr = access.instr
        values = self.ssa.use_values[instr.index]
        operands = instr.operands[1:2] if access.kind == "copy" else instr.operands
        return [
            values[instr.uses.index(operand.base)]
            for operand in operands
            if isinstance(operand, Address) and isinstance(operand.base, Register)
        ]

    def conditions(self, instr: Instr) -> list[int]:
        """The values that decide whether an instruction takes effect: its predicate, the source
        size of a copy, the branches on every way to it and the ends of its loops."""
        ssa, cfg = self.ssa, self.ssa.cfg
        out = []
        predicate = ssa.guard_value(instr)
        if predicate is not None:
            out.append(predicate)
        if instr.opcode == "cp":
            values = ssa.use_values[instr.index]
            sizes = [o for o in instr.operands[3:] if isinstance(o, Register)]
            out += [values[instr.uses.index(size)] for size in sizes]
        return out + self._branches(cfg.block_of[instr.index])

    def _branches(self, block: int) -> list[int]:
        """The predicates of the branches on every way to a block, and of its loops' ends."""
        if block not in self._deciding:
            self._deciding[block] = self._find_branches(block)
        return self._deciding[block]

    def _find_branches(self, block: int) -> list[int]:
        ssa, cfg = self.ssa, self.ssa.cfg
        latches = {latch for loop in _around(self.loops, block) for latch in loop.latches}
        out = []
        for source in sorted(self._above(block) | latches):
            branch = cfg.terminator(source)
            predicate = None if branch is None else ssa.guard_value(branch)
            if predicate is not None:
                out.append(predicate)
        return out

    def _above(self, block: int) -> set[int]:
        """The blocks from which one edge leads to a block or to one of those before it."""
        cfg, found = self.ssa.cfg, set()
        dominators = self.guards.dominators
        current = block
        while 0 <= current < len(cfg.blocks) and current != cfg.entry:
            preds = cfg.blocks[current].preds
            if len(preds) == 1:
                found.add(preds[0])
            current = dominators.idom[current]
        return found

    # Words ------------------------------------------------------------------------------------
    def _made_of(self, poly: Polynomial) -> str:
        """What about a polynomial makes a proof hard, in words."""
        atoms = poly.all_atoms()
        loads = [atom.data[0] for atom in atoms if atom.kind == "load"]
        if loads:
            return f"made of a number that is loaded from {self._loaded_from(loads[0])}"
        kinds = {atom.kind for atom in atoms}
        if "opaque" in kinds:
            return "made of a number that is not followed"
        if "index" in kinds:
            return "made of the round of a loop"
        return "made of thread and program numbers"

    def _loaded_from(self, value: int) -> str:
        """Where a number was loaded from: the name of a tensor, if it is known."""
        index = self.ssa.instr[value]
        for access in self.accesses.in_global:
            if access.instr.index == index and access.base in self.bound.regions:
                return self.bound.regions[access.base].name
        return "memory"

    def _about_wrap(self, wrap: Wrap) -> str:
        kind = f"{'a signed' if wrap.signed else 'an unsigned'} {wrap.bits}-bit word"
        made_of = self._made_of(wrap.polynomial)
        return f"an index {made_of} may not fit {kind}"

    def _about_bounds(self, access: Access, offset: Polynomial, region: Region, below: bool) -> str:
        side = "end beyond" if below else "start before"
        reason = f"it may {side} {region.name}: the offset is {self._made_of(offset)}"
        box = self.box(access.guard or ALWAYS, (offset,))
        inside = numbers_inside(offset, box, region.low, region.high - access.width)
        if inside is None:
            return reason
        value, (least, most) = inside
        name, told = self._loaded_from(value), self.promises.of(self.ssa.instr[value])
        condition = f"in bounds if every number from {name} is in {least} … {most}"
        return f"{reason}; {condition}" + (f", told are {told[0]} … {told[1]}" if told else "")


def _not_negative(conjunct: Conjunct) -> list[Polynomial]:
    """What a conjunct says is not negative.

    A word that is below a number, both taken for unsigned, is itself no negative number if that is
    none.
    """
    if conjunct.polynomial is not None:
        return [conjunct.polynomial]
    if conjunct.key[0] != "unsigned":
        return []
    _, relation, a, b = conjunct.key
    if relation in ("gt", "ge"):
        a, b = b, a
    if b.range()[0] < 0:
        return []
    return [a, b - a - 1 if relation in ("lt", "gt") else b - a]


def _around(loops: LoopForest, block: int) -> list[Any]:
    """The loops that a block is in, the innermost first."""
    out = []
    loop = loops.innermost(block)
    while loop is not None:
        out.append(loop)
        loop = loop.parent
    return out


__all__ = ["Judged", "UnderLaunch"]
