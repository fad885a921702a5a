"""Reaching definitions: which instructions may have written the value that a register holds.

"Never written" counts as a definition at the entry, so that the same query tells whether a read
is of an uninitialised register. Definitions under a guard are followed with the guard's value:
after `@p mov r, a; @!p mov r, b;` nothing older is left, and what is read under `@p` was not
written under `@!p`, as long as `p` keeps its value.

Most registers of compiled code are written once, before every read: they cost one pass over the
function. The others are followed when they are asked for, block by block and register by register.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.dataflow.liveness import (
    Liveness,
    LivenessAnalysis,
    bit_mask,
    bit_numbers,
    reads,
    registers_of,
)
from ptxlint.dataflow.solver import Worklist
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

UNINITIALISED: Final = -1
"""Stands for the definition "never written" in place of an instruction's index."""
PARAMETER: Final = -2
"""Stands for the value that a register parameter has at the entry."""

Initialisation: TypeAlias = Literal["always", "maybe", "never"]

_INCOMING: Final = -3
"""In a block, whatever the register held at its top."""

_Literal: TypeAlias = tuple[int, int, bool]
"""A predicate (register index), how often the block has written it so far, and its value."""
_Condition: TypeAlias = frozenset[_Literal]
_State: TypeAlias = tuple[tuple[int, _Condition], ...]
"""Definitions that may be current, each with literals that hold wherever it is."""
_Cube: TypeAlias = frozenset[tuple[int, bool]]
"""A conjunction: predicates (register index) and their values."""

_ALWAYS: Final[_Condition] = frozenset()
_IN_PART: Final[_Literal] = (-1, 0, True)
"""Marks an older value that an unguarded partial write has been laid over."""
_UNTOUCHED: Final[_State] = ((_INCOMING, _ALWAYS),)

_MAX_LITERALS: Final = 6
_MAX_CUBES: Final = 16
_MAX_PREDICATES: Final = 8


class _Read(NamedTuple):
    """What a register may hold where an instruction reads it, and the guard of the read."""

    state: _State
    guard: _Literal | None


class _BlockFacts(NamedTuple):
    """One block by itself, for the registers that need following.

    `reads` is by instruction and register index, `ends` by register index; `versions` counts the
    writes of each predicate.
    """

    reads: dict[tuple[int, int], _Read]
    ends: dict[int, _State]
    versions: dict[int, int]


class Reaching:
    """Definitions that reach reads. Unreachable code neither defines nor reads anything."""

    __slots__ = (
        "_blocks",
        "_cfg",
        "_followed",
        "_guards",
        "_liveness",
        "_parameters",
        "_reach",
        "_sites",
        "_unwritten",
        "_uses",
    )

    def __init__(self, cfg: Cfg, liveness: Liveness) -> None:
        self._cfg = cfg
        self._liveness = liveness
        self._sites, followed = _definition_sites(cfg)
        at_entry = liveness.registers(liveness.live_in[cfg.entry])
        self._followed = followed.union(r.index for r in at_entry)
        self._parameters = frozenset(
            r.index for r in registers_of(cfg.function, cfg.function.params)
        )
        self._blocks: dict[int, _BlockFacts] = {}
        self._reach: dict[int, dict[int, int]] = {}
        self._unwritten: dict[int, dict[int, frozenset[_Cube]]] = {}
        self._uses: dict[int, list[Instr]] | None = None
        self._guards: dict[int, int] | None = None

    def definitions(self, register: Register) -> list[int]:
        """The reachable instructions (indices, ascending) that write the register."""
        site = self._sites[register.index]
        return [] if site is None else [site] if isinstance(site, int) else site.copy()

    def defs_of(self, instr: Instr, register: Register) -> tuple[int, ...]:
        """The instructions that may have written what `instr` reads in `register`, ascending.

        Indices into `Function.instrs`, with `UNINITIALISED` and `PARAMETER` in front. Empty in
        unreachable code, and for accumulators that are overwritten unread (see `liveness.reads`).
        Raises ValueError if `instr` does not use the register.
        """
        index = register.index
        if register not in instr.uses:
            raise ValueError(f"{instr.shape.mnemonic} does not use {register.name}")
        block = self._cfg.block_of[instr.index]
        if self._cfg.position[block] < 0:
            return ()
        if index not in self._followed:
            return tuple(self.definitions(register))
        read = self._block(block).reads.get((instr.index, index))
        if read is None:
            return ()
        found: set[int] = set()
        for definition, condition in read.state:
            if read.guard is not None and _opposite(read.guard) in condition:
                continue
            if definition == _INCOMING:
                found.update(self._reach_in(register, block))
            else:
                found.add(definition)
        if UNINITIALISED in found and not self._may_be_unwritten(block, index, read):
            found.discard(UNINITIALISED)
        return tuple(sorted(found))

    def initialisation(self, instr: Instr, register: Register) -> Initialisation:
        """Whether what `instr` reads in `register` has been written: always, maybe or never.

        Reads in unreachable code count as `always`: they never happen.
        """
        found = self.defs_of(instr, register)
        if UNINITIALISED not in found:
            return "always"
        return "maybe" if len(found) > 1 else "never"

    def uninitialised_candidates(self) -> list[Register]:
        """The registers that some path may read before any write; usually none.

        Paths are told apart only by `initialisation`, which may clear any of these.
        """
        live = self._liveness.registers(self._liveness.live_in[self._cfg.entry])
        return [r for r in live if r.index not in self._parameters]

    def reads_of(self, register: Register) -> list[Instr]:
        """The reachable instructions that read the register, in text order."""
        return self._use_index().get(register.index, []).copy()

    def uses_of(self, instr: Instr) -> list[Instr]:
        """The instructions that may read what `instr` wrote, in text order, without repeats."""
        out: dict[int, Instr] = {}
        if not self._cfg.is_reachable(instr):
            return []
        for register in instr.defs:
            readers = self._use_index().get(register.index, [])
            if register.index in self._followed:
                readers = [r for r in readers if instr.index in self.defs_of(r, register)]
            for reader in readers:
                out[reader.index] = reader
        return [out[index] for index in sorted(out)]

    def _use_index(self) -> dict[int, list[Instr]]:
        """Register index to its readers; one pass over the function."""
        if self._uses is None:
            uses: dict[int, list[Instr]] = {}
            for block in sorted(self._cfg.rpo):
                for instr in self._cfg.instructions(block):
                    for register in dict.fromkeys(reads(instr)):
                        uses.setdefault(register.index, []).append(instr)
            self._uses = uses
        return self._uses

    def _block(self, block: int) -> _BlockFacts:
        facts = self._blocks.get(block)
        if facts is None:
            facts = _walk_block(self._cfg.instructions(block), self._followed)
            self._blocks[block] = facts
        return facts

    def _reach_in(self, register: Register, block: int) -> list[int]:
        """The definitions that reach the top of a block where the register is live."""
        index = register.index
        masks = self._reach.get(index)
        if masks is None:
            masks = self._reach[index] = self._propagate(register)
        sites = self.definitions(register)
        origin = PARAMETER if index in self._parameters else UNINITIALISED
        # Bit 0 is the origin, bit k+1 the register's k-th definition.
        return [sites[k - 1] if k else origin for k in bit_numbers(masks.get(block, 0))]

    def _propagate(self, register: Register) -> dict[int, int]:
        """By block where the register is live at the top, the definitions that reach it."""
        cfg = self._cfg
        is_live_in = self._liveness.is_live_in
        effects = self._block_effects(register)
        reach: dict[int, int] = {}
        work = Worklist(cfg.rpo, cfg.position, list(effects))
        if is_live_in(cfg.entry, register):
            reach[cfg.entry] = 1
            work.push(cfg.entry)
        while work:
            block = work.pop()
            out = reach.get(block, 0)
            if block in effects:
                made, passes = effects[block]
                out = made | out if passes else made
            for target in cfg.blocks[block].succs:
                if is_live_in(target, register):
                    before = reach.get(target, 0)
                    if out | before != before:
                        reach[target] = before | out
                        work.push(target)
        return reach

    def _block_effects(self, register: Register) -> dict[int, tuple[int, bool]]:
        """By defining block, its definitions at the bottom and whether older ones pass it."""
        numbers = {site: k + 1 for k, site in enumerate(self.definitions(register))}
        block_of = self._cfg.block_of
        effects: dict[int, tuple[int, bool]] = {}
        for block in dict.fromkeys(block_of[site] for site in numbers):
            ends = [definition for definition, _ in self._block(block).ends[register.index]]
            made = bit_mask([numbers[d] for d in ends if d != _INCOMING])
            effects[block] = (made, _INCOMING in ends)
        return effects

    def _may_be_unwritten(self, block: int, index: int, read: _Read) -> bool:
        """Whether, with the values of predicates followed, nothing may have been written."""
        cubes = self._unwritten_in(index).get(block, frozenset())
        guard = read.guard
        for definition, condition in read.state:
            if definition == _INCOMING and _IN_PART not in condition:
                if guard is not None:
                    condition = condition | {guard}
                if any(_join_top(cube, condition) is not None for cube in cubes):
                    return True
        return False

    def _unwritten_in(self, index: int) -> dict[int, frozenset[_Cube]]:
        """By block, the conditions under which the register is unwritten at its top."""
        known = self._unwritten.get(index)
        if known is None:
            known = self._unwritten[index] = self._propagate_unwritten(index)
        return known

    def _propagate_unwritten(self, index: int) -> dict[int, frozenset[_Cube]]:
        cfg, register = self._cfg, self._cfg.function.registers[index]
        is_live_in = self._liveness.is_live_in
        tracked = self._relevant_predicates(register)
        unwritten: dict[int, frozenset[_Cube]] = {cfg.entry: frozenset((frozenset(),))}
        work = Worklist(cfg.rpo, cfg.position, [cfg.entry])
        while work:
            block = work.pop()
            out = self._through(block, index, unwritten[block], tracked)
            if not out:
                continue
            for target in cfg.blocks[block].succs:
                if not is_live_in(target, register):
                    continue
                before = unwritten.get(target, frozenset())
                after = _simplify(before | _along(out, cfg.edge_condition(block, target), tracked))
                if after != before:
                    unwritten[target] = after
                    work.push(target)
        return unwritten

    def _through(
        self, block: int, index: int, cubes: frozenset[_Cube], tracked: frozenset[int]
    ) -> frozenset[_Cube]:
        """The conditions at the bottom of a block, from those at its top."""
        facts = self._block(block)
        versions = facts.versions
        out: set[_Cube] = set()
        for definition, condition in facts.ends.get(index, _UNTOUCHED):
            if definition != _INCOMING or _IN_PART in condition:
                continue
            # Of the literals, those stay that speak of the value a predicate has at the bottom.
            late = {
                (p, value)
                for p, version, value in condition
                if version and version == versions.get(p, 0) and p in tracked
            }
            for cube in cubes:
                joined = _join_top(cube, condition)
                if joined is not None:
                    kept = {(p, v) for p, v in joined if p not in versions and p in tracked}
                    out.add(frozenset(kept | late))
        return frozenset(out)

    def _relevant_predicates(self, register: Register) -> frozenset[int]:
        """The predicates whose values can relate the register's writes and reads.

        Those that guard one of them, then those that decide several branches.
        """
        instrs = self._cfg.function.instrs
        sites = [instrs[site] for site in self.definitions(register)]
        found: dict[int, None] = {}
        for instr in sites + self._use_index().get(register.index, []):
            if instr.guard is not None:
                found[instr.guard.index] = None
        counts = self._guard_counts()
        for block in self._cfg.rpo:
            condition = self._cfg.blocks[block].condition
            if condition is not None and counts[condition[0].index] > 1:
                found[condition[0].index] = None
                if len(found) >= _MAX_PREDICATES:
                    break
        return frozenset(list(found)[:_MAX_PREDICATES])

    def _guard_counts(self) -> dict[int, int]:
        """Predicate index to how many instructions it guards."""
        if self._guards is None:
            counts: dict[int, int] = {}
            for instr in self._cfg.function.instrs:
                guard = instr.guard
                if guard is not None:
                    counts[guard.index] = counts.get(guard.index, 0) + 1
            self._guards = counts
        return self._guards


_Site: TypeAlias = "int | list[int] | None"


def _definition_sites(cfg: Cfg) -> tuple[list[_Site], set[int]]:
    """By register the instructions that write it, and the registers written more than once."""
    sites: list[_Site] = [None] * len(cfg.function.registers)
    several: set[int] = set()
    for block in sorted(cfg.rpo):
        for instr in cfg.instructions(block):
            for register in instr.defs:
                index = register.index
                site = sites[index]
                if site is None:
                    sites[index] = instr.index
                elif isinstance(site, list):
                    if site[-1] != instr.index:
                        site.append(instr.index)
                elif site != instr.index:
                    sites[index] = [site, instr.index]
                    several.add(index)
    return sites, several


def _walk_block(instrs: list[Instr], followed: set[int]) -> _BlockFacts:
    """Follow these registers through one block."""
    found: dict[tuple[int, int], _Read] = {}
    states: dict[int, _State] = {}
    versions: dict[int, int] = {}
    for instr in instrs:
        guard: _Literal | None = None
        register = instr.guard
        if register is not None:
            version = versions.get(register.index, 0)
            guard = (register.index, version, instr.shape.guard == "@")
        for register in reads(instr):
            index = register.index
            if index in followed:
                # The guard itself is read whatever its value.
                known = None if register is instr.guard else guard
                found[instr.index, index] = _Read(states.get(index, _UNTOUCHED), known)
        for register in instr.defs:
            index = register.index
            if index in followed:
                before = states.get(index, _UNTOUCHED)
                states[index] = _define(before, instr.index, guard, instr.shape.partial)
        for register in instr.defs:
            if register.type == "pred":
                versions[register.index] = versions.get(register.index, 0) + 1
    return _BlockFacts(found, states, versions)


def _define(state: _State, at: int, guard: _Literal | None, partial: bool) -> _State:
    """The state after a write at instruction `at`."""
    if guard is None:
        if not partial:
            return ((at, _ALWAYS),)
        older = tuple((d, c | {_IN_PART}) for d, c in state if d != at)
        return (*older, (at, _ALWAYS))
    older_entries = [(d, c) for d, c in state if d != at]
    if not partial:
        older_entries = [
            (d, _narrow(c, _opposite(guard))) for d, c in older_entries if guard not in c
        ]
    return (*older_entries, (at, frozenset((guard,))))


def _narrow(condition: _Condition, literal: _Literal) -> _Condition:
    """Add a literal, unless there are too many: fewer literals only promise less."""
    return condition if len(condition) >= _MAX_LITERALS else condition | {literal}


def _opposite(literal: _Literal) -> _Literal:
    return (literal[0], literal[1], not literal[2])


def _join_top(cube: _Cube, condition: _Condition) -> _Cube | None:
    """A cube at a block's top with the literals on values from there; None if contradictory."""
    out = cube
    for predicate, version, value in condition:
        if version == 0 and predicate >= 0:
            if (predicate, not value) in out:
                return None
            out = out | {(predicate, value)}
    return out


def _along(
    cubes: frozenset[_Cube],
    condition: tuple[Register, bool] | None,
    tracked: frozenset[int],
) -> frozenset[_Cube]:
    """Cubes after an edge that is taken under a condition."""
    if condition is None or condition[0].index not in tracked:
        return cubes
    literal = (condition[0].index, condition[1])
    opposite = (literal[0], not literal[1])
    return frozenset(cube | {literal} for cube in cubes if opposite not in cube)


def _simplify(cubes: frozenset[_Cube]) -> frozenset[_Cube]:
    """The same disjunction with fewer cubes; "always" when there are too many."""
    work = set(cubes)
    changed = True
    while changed and len(work) > 1:
        changed = False
        for cube in sorted(work, key=lambda c: (len(c), sorted(c))):
            if any(other < cube for other in work):
                work.discard(cube)
                changed = True
                continue
            for predicate, value in cube:
                if cube ^ {(predicate, value), (predicate, not value)} in work:
                    work.add(cube - {(predicate, value)})
                    changed = True
                    break
            if changed:
                break
    if len(work) > _MAX_CUBES:
        return frozenset((frozenset(),))
    return frozenset(work)


class ReachingAnalysis(Analysis[Reaching]):
    """Reaching definitions as facts of a function."""

    name: ClassVar[str] = "reaching"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, LivenessAnalysis)

    def run(self, facts: Facts) -> Reaching:
        """Find the definitions; reads are answered on demand."""
        return Reaching(facts.get(CfgAnalysis), facts.get(LivenessAnalysis))
