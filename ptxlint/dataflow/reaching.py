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
from ptxlint.dataflow.solver import FORWARD, MAYBE, Worklist, solve_blocks
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

UNINITIALISED: Final = -1
"""Stands for the definition "never written" in place of an instruction's index."""
PARAMETER: Final = -2
"""Stands for the value that a register parameter has at the entry."""

Initialisation: TypeAlias = Literal["always", "maybe", "never"]

_Literal: TypeAlias = tuple[int, int, bool]
"""A predicate (register index), how often the block has written it so far, and its value."""
_Cube: TypeAlias = frozenset[tuple[int, bool]]
"""A conjunction: predicates (register index) and their values."""
_Cubes: TypeAlias = frozenset[_Cube]
"""A disjunction of conjunctions; empty is false."""

_NO_LITERALS: Final[frozenset[_Literal]] = frozenset()
_TRUE: Final[_Cubes] = frozenset((frozenset(),))

# Limits of what is followed. Beyond them the answer is the weaker "maybe".
_MAX_CUBES: Final = 16
_MAX_PREDICATES: Final = 8
_MAX_BLOCK_VISITS: Final = 50_000
_MAX_CHAIN: Final = 256


class _Write(NamedTuple):
    """A write within a block, and the one before it in the same block (None: none)."""

    at: int
    guard: _Literal | None
    partial: bool
    before: _Write | None


class _Read(NamedTuple):
    """The last write above a read in its block (None: none), and the guard of the read."""

    last: _Write | None
    guard: _Literal | None


class _Current(NamedTuple):
    """What a register may hold at a point: writes of the block, and perhaps its value at the top.

    `older` says under which literals the value from the top may still be there, None if it cannot
    be. `covered` tells that some unguarded partial write has been laid over it.
    """

    writes: list[int]
    older: frozenset[_Literal] | None
    covered: bool


class _BlockFacts(NamedTuple):
    """One block by itself, for the registers that need following.

    `reads` is by instruction and register index; `ends` has the last write by register index;
    `versions` counts the writes of each predicate.
    """

    reads: dict[tuple[int, int], _Read]
    ends: dict[int, _Write]
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
        self._unwritten: _Unwritten | None = None
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
        _check_use(instr, register)
        index = register.index
        block = self._cfg.block_of[instr.index]
        if self._cfg.position[block] < 0:
            return ()
        if index not in self._followed:
            return tuple(self.definitions(register))
        read = self.block_facts(block).reads.get((instr.index, index))
        if read is None:
            return ()
        current = _current(read.last, read.guard)
        found = set(current.writes)
        if current.older is not None:
            found.update(self._reach_in(register, block))
            if UNINITIALISED in found and not self._unwritten_facts().at_read(
                register, block, current
            ):
                found.discard(UNINITIALISED)
        return tuple(sorted(found))

    def initialisation(self, instr: Instr, register: Register) -> Initialisation:
        """Whether what `instr` reads in `register` has been written: always, maybe or never.

        Reads in unreachable code count as `always`: they never happen. Where predicates are too
        many to follow, the answer may be `maybe` instead of `always`. Raises ValueError if `instr`
        does not use the register.
        """
        _check_use(instr, register)
        index = register.index
        block = self._cfg.block_of[instr.index]
        if (
            index not in self._followed
            or index in self._parameters
            or self._cfg.position[block] < 0
        ):
            return "always"
        read = self.block_facts(block).reads.get((instr.index, index))
        if read is None:
            return "always"
        current = _current(read.last, read.guard, _MAX_CHAIN)
        unwritten = self._unwritten_facts()
        if not unwritten.at_read(register, block, current):
            return "always"
        return "maybe" if current.writes or unwritten.may_be_written(register, block) else "never"

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

    def block_facts(self, block: int) -> _BlockFacts:
        """What one block does by itself to the registers that need following."""
        facts = self._blocks.get(block)
        if facts is None:
            facts = _walk_block(self._cfg.instructions(block), self._followed)
            self._blocks[block] = facts
        return facts

    def guard_counts(self) -> dict[int, int]:
        """Predicate index to how many instructions it guards; one pass over the function."""
        if self._guards is None:
            counts: dict[int, int] = {}
            for instr in self._cfg.function.instrs:
                guard = instr.guard
                if isinstance(guard, Register):
                    counts[guard.index] = counts.get(guard.index, 0) + 1
            self._guards = counts
        return self._guards

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

    def _unwritten_facts(self) -> _Unwritten:
        if self._unwritten is None:
            candidates = self.uninitialised_candidates()
            self._unwritten = _Unwritten(self._cfg, self._liveness, self, candidates)
        return self._unwritten

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
            current = _current(self.block_facts(block).ends[register.index], None)
            made = bit_mask([numbers[site] for site in current.writes])
            effects[block] = (made, current.older is not None)
        return effects


class _Unwritten:
    """Where registers may hold nothing yet, first by paths, then by the predicates on them."""

    __slots__ = (
        "_bit",
        "_cfg",
        "_cubes",
        "_liveness",
        "_reaching",
        "_unwritten",
        "_visits",
        "_written",
    )

    def __init__(
        self, cfg: Cfg, liveness: Liveness, reaching: Reaching, candidates: list[Register]
    ) -> None:
        self._cfg = cfg
        self._liveness = liveness
        self._reaching = reaching
        self._bit = {r.index: bit for bit, r in enumerate(candidates)}
        self._cubes: dict[int, dict[int, _Cubes] | None] = {}
        self._visits = _MAX_BLOCK_VISITS
        gen = [0] * len(cfg.blocks)
        kill = [0] * len(cfg.blocks)
        for register in candidates:
            bit = 1 << self._bit[register.index]
            for block in {cfg.block_of[site] for site in reaching.definitions(register)}:
                gen[block] |= bit
                current = _current(reaching.block_facts(block).ends[register.index], None)
                if current.older is None or current.covered:
                    kill[block] |= bit
        nothing = [0] * len(cfg.blocks)
        everything = (1 << len(candidates)) - 1
        self._written, _ = solve_blocks(cfg, gen, nothing, kind=MAYBE, direction=FORWARD)
        self._unwritten, _ = solve_blocks(
            cfg, nothing, kill, kind=MAYBE, direction=FORWARD, boundary=everything
        )

    def may_be_written(self, register: Register, block: int) -> bool:
        """Whether some write may come before the top of the block."""
        bit = self._bit.get(register.index)
        return bit is None or bool(self._written[block] >> bit & 1)

    def at_read(self, register: Register, block: int, current: _Current) -> bool:
        """Whether nothing may have been written where the register is read."""
        bit = self._bit.get(register.index)
        if bit is None or current.older is None or current.covered:
            return False
        if not self._unwritten[block] >> bit & 1:
            return False
        if register.index not in self._cubes:
            self._cubes[register.index] = self._propagate(register)
        cubes = self._cubes[register.index]
        if cubes is None:
            return True
        older = current.older
        return any(_with_top(cube, older) is not None for cube in cubes.get(block, frozenset()))

    def _propagate(self, register: Register) -> dict[int, _Cubes] | None:
        """By block, under which predicates the register is unwritten at the top.

        None if that would take too long.
        """
        cfg, index = self._cfg, register.index
        is_live_in = self._liveness.is_live_in
        tracked = self._relevant_predicates(register)
        tops: dict[int, _Cubes] = {cfg.entry: _TRUE}
        work = Worklist(cfg.rpo, cfg.position, [cfg.entry])
        while work:
            self._visits -= 1
            if self._visits < 0:
                return None
            block = work.pop()
            bottom = self._through(block, index, tops[block], tracked)
            if not bottom:
                continue
            for target in cfg.blocks[block].succs:
                if is_live_in(target, register):
                    before = tops.get(target, frozenset())
                    added = _along(bottom, cfg.edge_condition(block, target), tracked)
                    after = before if added <= before else _simplify(before | added)
                    if after != before:
                        tops[target] = after
                        work.push(target)
        return tops

    def _through(self, block: int, index: int, cubes: _Cubes, tracked: frozenset[int]) -> _Cubes:
        """The conditions at the bottom of a block, from those at its top."""
        facts = self._reaching.block_facts(block)
        versions = facts.versions
        current = _current(facts.ends.get(index), None)
        if current.older is None or current.covered:
            return frozenset()
        if not current.older and versions.keys().isdisjoint(tracked):
            return cubes
        # Of the literals, those stay that speak of the value a predicate has at the bottom.
        late = {
            (predicate, value)
            for predicate, version, value in current.older
            if version and version == versions.get(predicate) and predicate in tracked
        }
        out: set[_Cube] = set()
        for cube in cubes:
            joined = _with_top(cube, current.older)
            if joined is not None:
                kept = {(p, v) for p, v in joined if p not in versions and p in tracked}
                out.add(frozenset(kept | late))
        return frozenset(out)

    def _relevant_predicates(self, register: Register) -> frozenset[int]:
        """The predicates whose values can relate the register's writes and reads.

        Those that guard one of them, then those that decide several branches.
        """
        instrs = self._cfg.function.instrs
        sites = [instrs[site] for site in self._reaching.definitions(register)]
        found: dict[int, None] = {}
        for instr in sites + self._reaching.reads_of(register):
            if isinstance(instr.guard, Register):
                found[instr.guard.index] = None
        counts = self._reaching.guard_counts()
        for block in self._cfg.rpo:
            if len(found) >= _MAX_PREDICATES:
                break
            condition = self._cfg.blocks[block].condition
            if condition is not None and counts[condition[0].index] > 1:
                found[condition[0].index] = None
        return frozenset(list(found)[:_MAX_PREDICATES])


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


def _check_use(instr: Instr, register: Register) -> None:
    if register not in instr.uses:
        raise ValueError(f"{instr.shape.mnemonic} does not use {register.name}")


def _walk_block(instrs: list[Instr], followed: set[int]) -> _BlockFacts:
    """Follow these registers through one block."""
    found: dict[tuple[int, int], _Read] = {}
    last: dict[int, _Write] = {}
    versions: dict[int, int] = {}
    for instr in instrs:
        guard = _guard_of(instr, versions)
        for register in reads(instr):
            index = register.index
            if index in followed:
                # The guard itself is read whatever its value.
                known = None if register is instr.guard else guard
                found[instr.index, index] = _Read(last.get(index), known)
        for register in instr.defs:
            index = register.index
            if index in followed:
                before = last.get(index)
                if before is not None and before.at == instr.index:
                    before = before.before
                if guard is None and not instr.shape.partial:
                    before = None
                last[index] = _Write(instr.index, guard, instr.shape.partial, before)
        for register in instr.defs:
            if register.type == "pred":
                versions[register.index] = versions.get(register.index, 0) + 1
    return _BlockFacts(found, last, versions)


def _guard_of(instr: Instr, versions: dict[int, int]) -> _Literal | None:
    """The literal that an instruction runs under; None without a guard."""
    if not instr.shape.guard:
        return None
    register = instr.guard
    if isinstance(register, Register):
        return (register.index, versions.get(register.index, 0), instr.shape.guard == "@")
    # In a faulty text the guard may be undeclared: let it be a predicate like no other.
    return (-1 - instr.index, 0, True)


def _current(last: _Write | None, guard: _Literal | None, longest: int = 1 << 60) -> _Current:
    """What a register may hold, from its last write in the block, where `guard` is known to hold.

    After `longest` writes the value from the block's top counts as possible.
    """
    known = set() if guard is None else {guard}
    writes: list[int] = []
    covered = False
    write = last
    while write is not None and len(writes) < longest:
        literal = write.guard
        if literal is None:
            writes.append(write.at)
            if not write.partial:
                return _Current(writes, None, covered)
            covered = True
        elif _opposite(literal) not in known:
            writes.append(write.at)
            if not write.partial:
                if literal in known:
                    return _Current(writes, None, covered)
                # Older values are left only where this write did not happen.
                known.add(_opposite(literal))
        write = write.before
    return _Current(writes, frozenset(known) if known else _NO_LITERALS, covered)


def _opposite(literal: _Literal) -> _Literal:
    return (literal[0], literal[1], not literal[2])


def _with_top(cube: _Cube, literals: frozenset[_Literal]) -> _Cube | None:
    """A cube at a block's top with the literals on values from there; None if contradictory."""
    out = cube
    for predicate, version, value in literals:
        if version == 0:
            if (predicate, not value) in out:
                return None
            out = out | {(predicate, value)}
    return out


def _along(
    cubes: _Cubes, condition: tuple[Register, bool] | None, tracked: frozenset[int]
) -> _Cubes:
    """Cubes after an edge that is taken under a condition."""
    if condition is None or condition[0].index not in tracked:
        return cubes
    literal = (condition[0].index, condition[1])
    opposite = (literal[0], not literal[1])
    return frozenset(cube | {literal} for cube in cubes if opposite not in cube)


def _simplify(cubes: _Cubes) -> _Cubes:
    """The same disjunction with fewer cubes; "true" when there are too many."""
    work = set(cubes)
    while len(work) > 1:
        smaller = _simplify_once(work)
        if smaller == work:
            break
        work = smaller
    return _TRUE if len(work) > _MAX_CUBES else frozenset(work)


def _simplify_once(cubes: set[_Cube]) -> set[_Cube]:
    """Join cubes that differ in one predicate's value, drop those that another one implies."""
    joined = {
        cube - {(predicate, value)}
        for cube in cubes
        for predicate, value in cube
        if cube ^ {(predicate, value), (predicate, not value)} in cubes
    }
    every = cubes | joined
    return {cube for cube in every if not any(other < cube for other in every)}


class ReachingAnalysis(Analysis[Reaching]):
    """Reaching definitions as facts of a function."""

    name: ClassVar[str] = "reaching"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, LivenessAnalysis)

    def run(self, facts: Facts) -> Reaching:
        """Find the definitions; reads are answered on demand."""
        return Reaching(facts.get(CfgAnalysis), facts.get(LivenessAnalysis))
