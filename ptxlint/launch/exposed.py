"""Reads that see what was in memory before the launch.

The upward-exposed uses of Aho, Lam, Sethi and Ullman (Compilers, section 9.2), for cells of global
memory in place of variables. Everything goes by storage: pointers into one storage may meet. A
read is *covered* if a store of its own thread certainly fills all its bytes before it, or if stores
of its CTA do so before a barrier (`ptxlint.launch.fills`), and *exposed* if a thread that is run
comes to it before anything that could have: no earlier store of its own, and none of another thread
of its CTA that a barrier may put before it. Stores of other CTAs come before it only where the
kernel waits for what is in memory.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.cfg.dominance import DominatorsAnalysis
from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.barrier_paths import keeps_warps_apart
from ptxlint.dataflow.guards import implies
from ptxlint.dataflow.hidden_writes import hidden_writes
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.launch.analysis import LaunchOutcomes
from ptxlint.launch.binding import Region
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.witness import Witness
from ptxlint.launches import DTYPE_BYTES, reach

if TYPE_CHECKING:
    from ptxlint.launch.first_reads import FirstReads

NEVER: Final = "never"
COVERED: Final = "covered"
EXPOSED: Final = "exposed"
OPEN: Final = "open"


class Exposure(NamedTuple):
    """Whether a read sees what was there before the launch: `never` (it takes no effect),
    `covered`, `exposed` (as the witness shows), or `open` for a `reason`."""

    status: str
    witness: Witness | None = None
    reason: str = ""


class Shared(NamedTuple):
    """One storage: the pointers into it, and what a launch reads and stores there, in program
    order. An atomic is a read, unless it only puts something in place of what it finds."""

    regions: tuple[Region, ...]
    reads: tuple[Judged, ...]
    stores: tuple[Judged, ...]


class Exposed:
    """The reads of one launch, by storage."""

    def __init__(self, found: LaunchOutcomes) -> None:
        self.under: UnderLaunch = found.under
        self._fn: Function = found.under.facts.function
        self.storages: dict[int, Shared] = _by_storage(found)
        self.hidden: Instr | None = _hidden_write(found)
        """A write that may go to any storage."""
        self._runs: FirstReads | None = None
        self._reached: dict[int, frozenset[int]] = {}
        self._waits: bool | None = None

    def of(self, read: Judged, then: Judged | None = None) -> Exposure:
        """Whether a read, of one of the storages, sees what was there before; with `then`, in a
        thread that comes to that store at the same place, too."""
        if read.never or read.region is None:
            return Exposure(NEVER)
        stores = self.storages[read.region.storage].stores
        if any(self._covers(store, read) for store in stores):
            return Exposure(COVERED)
        if self.hidden is not None:
            return Exposure(OPEN, reason=f"where `{self.hidden.opcode}` writes is not followed")
        if stores and self._is_waiting:
            return Exposure(OPEN, reason="it waits for what other programs write")
        return self._run(read, stores, then)

    def is_reset(self, region: Region, names: Collection[str]) -> bool:
        """True if what a pointer points to lies in what the arguments of these names are."""
        for parameter, other in self.under.bound.regions.items():
            if not {parameter, other.name}.isdisjoint(names) and _lies_in(region, other):
                return True
        return False

    def is_same_cell(self, read: Judged, store: Judged) -> bool:
        """True if a store writes, wherever it takes effect, what a read of its thread has read."""
        known, wanted = store.access.guard, read.access.guard
        if known is None or wanted is None or not all(implies(known, c) for c in wanted):
            return False
        if read.access.width != store.access.width or read.wraps or store.wraps:
            return False
        gap = address_of(read) - address_of(store)
        return (
            gap.is_constant
            and not gap.constant
            and self._comes_first(read.access.instr, store.access.instr, self.under)
        )

    def are_apart(self, first: Judged, second: Judged) -> bool:
        """True if two accesses stay within tensors that have no byte in common."""
        a, b = self._extent(first), self._extent(second)
        return a is not None and b is not None and (a[1] <= b[0] or b[1] <= a[0])

    def _extent(self, judged: Judged) -> tuple[int, int] | None:
        """Where the tensor begins and ends that an access stays in; None if it may leave it."""
        region, access = judged.region, judged.access
        if region is None or access.guard is None or judged.wraps:
            return None
        start, end = region.address, region.address + reach(region.tensor)
        address = address_of(judged)
        under = self.under
        if not under.is_at_most(address, access.guard, end - access.width):
            return None
        return (start, end) if under.is_at_most(-address, access.guard, -start) else None

    # Covered ----------------------------------------------------------------------------------
    def _covers(self, store: Judged, read: Judged) -> bool:
        """True if a store fills what a read of the same thread reads, each time before it."""
        under = self.under
        ahead = address_of(read) - address_of(store)
        if not ahead.is_constant or store.wraps or read.wraps:
            return False
        if not 0 <= ahead.constant <= store.access.width - read.access.width:
            return False
        known, wanted = read.access.guard, store.access.guard
        if known is None or wanted is None or not all(implies(known, c) for c in wanted):
            return False
        return self._comes_first(store.access.instr, read.access.instr, under)

    def _comes_first(self, first: Instr, second: Instr, under: UnderLaunch) -> bool:
        """True if a thread comes to one instruction before the other, in each round of all loops
        that the first one is in."""
        block_of = under.ssa.cfg.block_of
        a, b = block_of[first.index], block_of[second.index]
        if a == b:
            return first.index < second.index
        loop = under.loops.innermost(a)
        if loop is not None and not under.loops.contains(loop, b):
            return False
        return under.facts.get(DominatorsAnalysis).dominates(a, b)

    # Exposed ----------------------------------------------------------------------------------
    @property
    def _is_waiting(self) -> bool:
        """True if what is read from memory may decide how long a thread waits, or what it does."""
        if self._waits is None:
            self._waits = self._find_waits()
        return self._waits

    def _find_waits(self) -> bool:
        instrs, ssa = self._fn.instrs, self.under.ssa
        if any(i.opcode == "barrier" and i.shape.has("cluster") for i in instrs):
            return True
        asked = [
            value
            for block in ssa.cfg.blocks
            if (end := ssa.cfg.terminator(block.index)) is not None
            and (value := ssa.guard_value(end)) is not None
        ]
        seen = set(asked)
        while asked:
            value = asked.pop()
            at = ssa.instr[value]
            if at >= 0 and _is_communicating(instrs[at]):
                return True
            for operand in ssa.operands[value]:
                if operand not in seen:
                    seen.add(operand)
                    asked.append(operand)
        return False

    def _run(self, read: Judged, stores: tuple[Judged, ...], then: Judged | None) -> Exposure:
        """Run CTAs at the ends of the grid, until a thread shows it."""
        # Arrays are needed for what is left alone.
        from ptxlint.launch.first_reads import FirstReads

        if self._runs is None:
            self._runs = FirstReads(self.under)
        earlier = [s for s in stores if self._may_precede(s.access.instr, read.access.instr)]
        witness = self._runs.witness(read, earlier, then)
        if witness is None and earlier and self._runs.are_filled(read, earlier):
            return Exposure(COVERED)
        if witness is None:
            return Exposure(OPEN, reason="no thread that was run shows it")
        return Exposure(EXPOSED, witness)

    def _may_precede(self, store: Instr, read: Instr) -> bool:
        """True if control leads from a store to a read, in one thread or across a barrier."""
        cfg = self.under.ssa.cfg
        start, end = cfg.block_of[store.index], cfg.block_of[read.index]
        if start == end and store.index < read.index:
            return True
        if end in self._after(start):
            return True
        barriers = [i for i in self._fn.instrs if keeps_warps_apart(i)]
        after = self._after(start)
        ahead = (
            cfg.block_of[b.index] in after
            or (cfg.block_of[b.index] == start and b.index > store.index)
            for b in barriers
        )
        return any(ahead) and any(
            end in self._after(cfg.block_of[b.index])
            or (cfg.block_of[b.index] == end and b.index < read.index)
            for b in barriers
        )

    def _after(self, block: int) -> frozenset[int]:
        """The blocks that control gets to from the end of one."""
        found = self._reached.get(block)
        if found is None:
            cfg = self.under.ssa.cfg
            work, seen = [block], set[int]()
            while work:
                for target in cfg.blocks[work.pop()].succs:
                    if target >= 0 and target not in seen:
                        seen.add(target)
                        work.append(target)
            found = self._reached[block] = frozenset(seen)
        return found


def address_of(judged: Judged) -> Polynomial:
    """The address of an access whose region is known."""
    assert judged.region is not None
    base = judged.region.address if judged.access.base else 0
    return judged.access.offset + base


def _lies_in(region: Region, other: Region) -> bool:
    """True if the elements of a tensor are elements of another, as far as that is plain."""
    if region.storage != other.storage:
        return False
    inner, outer = region.tensor, other.tensor
    if (inner.shape, inner.strides, inner.offset) == (outer.shape, outer.strides, outer.offset):
        return True
    if reach(outer) != prod(outer.shape) * DTYPE_BYTES.get(outer.dtype, 1):
        return False
    start = inner.offset - outer.offset
    return start >= 0 and start + reach(inner) <= reach(outer)


def is_replacing(facts: Facts, instr: Instr) -> bool:
    """True for an atomic exchange of which nobody reads what was there: a store."""
    if instr.opcode != "atom" or not instr.shape.has("exch"):
        return False
    ssa = facts.get(SsaAnalysis)
    return not any(ssa.users(value) for value in ssa.def_values[instr.index])


def _by_storage(found: LaunchOutcomes) -> dict[int, Shared]:
    facts = found.under.facts
    reads: dict[int, list[Judged]] = {}
    stores: dict[int, list[Judged]] = {}
    for outcome in found.outcomes:
        judged = outcome.judged
        if judged.region is None or judged.never:
            continue
        access = judged.access
        writes = access.kind == "store" or is_replacing(facts, access.instr)
        (stores if writes else reads).setdefault(judged.region.storage, []).append(judged)
    regions: dict[int, list[Region]] = {}
    for region in found.bound.regions.values():
        regions.setdefault(region.storage, []).append(region)
    return {
        storage: Shared(
            tuple(of_storage), tuple(reads.get(storage, ())), tuple(stores.get(storage, ()))
        )
        for storage, of_storage in regions.items()
    }


def _hidden_write(found: LaunchOutcomes) -> Instr | None:
    under = found.under
    accesses = under.facts.get(AccessAnalysis)
    for outcome in found.outcomes:
        judged = outcome.judged
        kind = judged.access.kind
        if judged.region is None and not judged.never and kind in ("store", "atomic"):
            return judged.access.instr
    return next(
        (i for i in hidden_writes(under.facts.function, accesses) if _is_hidden(found, i)), None
    )


def _is_hidden(found: LaunchOutcomes, instr: Instr) -> bool:
    """True for what the launch does not locate either."""
    return instr.index not in {o.judged.access.instr.index for o in found.outcomes}


def _is_communicating(instr: Instr) -> bool:
    """True for what may see what other programs wrote a moment ago."""
    if instr.opcode == "atom":
        return True
    waiting = ("volatile", "acquire", "relaxed", "mmio")
    return instr.opcode == "ld" and any(instr.shape.has(word) for word in waiting)


__all__ = [
    "COVERED", "EXPOSED", "NEVER", "OPEN", "Exposed", "Exposure", "Shared", "address_of",
    "is_replacing",
]  # fmt: skip
