"""HAZ602: warps of a CTA read and write the same elements, and no barrier orders them."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, NamedTuple

from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.dataflow.access import Access, AccessAnalysis
from ptxlint.dataflow.barrier_paths import BarrierPaths, BarrierPathsAnalysis
from ptxlint.dataflow.lane_addresses import Split, Threads, is_of_lanes, split
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.polynomial import LANES, Atom, Monomial, Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_MAX_CELLS: Final = 400_000
"""Addresses that are listed for one kernel; past it the property is open."""
_MAX_ROUNDS: Final = 16
"""So many rounds of a loop are compared with each other."""
_WARP: Final = 32
_EFFECTS: Final = frozenset({"st", "atom", "red", "cp", "bra", "brx", "call", "stmatrix"})
_HEAD = """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry sample(.param .u64 .ptr .global .align 16 x_ptr, .param .u32 n)
            .reqntid 128
            {
            .reg .pred %p<4>;
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [x_ptr];
            ld.param.u32 %r1, [n];
            mov.u32 %r2, %tid.x;
            xor.b32 %r3, %r2, 127;
            mul.wide.u32 %rd2, %r2, 4;
            mul.wide.u32 %rd3, %r3, 4;
            add.s64 %rd4, %rd1, %rd2;
            add.s64 %rd5, %rd1, %rd3;
"""


class InPlaceWithoutBarrier(Rule):
    id = "HAZ602"
    name = "in-place-without-barrier"
    severity = "error"
    confidence = "medium"
    category = "hazards"
    family = "sync"
    needs = (
        AccessAnalysis,
        BarrierPathsAnalysis,
        LoopsAnalysis,
        SsaAnalysis,
        UniformityAnalysis,
    )
    summary = "One warp writes what another reads, with no barrier between."
    why = (
        "Within a CTA, warps run at their own speed. Where a kernel reads an array and writes to "
        "the same array with another map of lanes to elements (reversed, shifted, transposed, "
        "rotated by half), a warp that is ahead overwrites what a slower one has yet to read. A "
        "barrier between the last load and the first store prevents it, and so does an output of "
        "its own. A thread that writes back what it alone has read needs none. Whether the "
        "ranges of different CTAs overlap is a question of the launch."
    )
    fix = "Put tl.debug_barrier() (or __syncthreads()) between load and store, or write elsewhere."
    bad = (
        Sample(
            "reversed in place",
            _HEAD
            + """
            ld.global.b32 %r4, [%rd4];
            st.global.b32 [%rd5], %r4; //~ HAZ602
            ret;
            }
            """,
        ),
        Sample(
            "a loop that moves elements by one",
            _HEAD
            + """
            mov.b32 %r5, 0;
            $round:
            ld.global.b32 %r4, [%rd4];
            st.global.b32 [%rd4+4], %r4; //~ HAZ602
            add.s64 %rd4, %rd4, 1024;
            add.s32 %r5, %r5, 1;
            setp.lt.s32 %p1, %r5, %r1;
            @%p1 bra $round;
            ret;
            }
            """,
        ),
    )
    good = (
        Sample(
            "reversed in place, with a barrier",
            _HEAD
            + """
            ld.global.b32 %r4, [%rd4];
            bar.sync 0;
            st.global.b32 [%rd5], %r4;
            ret;
            }
            """,
        ),
        Sample(
            "each thread writes what it has read",
            _HEAD
            + """
            ld.global.b32 %r4, [%rd4];
            add.s32 %r4, %r4, 1;
            st.global.b32 [%rd4], %r4;
            ret;
            }
            """,
        ),
        Sample(
            "warps that hold copies, of which one writes",
            _HEAD
            + """
            and.b32 %r5, %r2, 63;
            mul.wide.u32 %rd2, %r5, 4;
            add.s64 %rd4, %rd1, %rd2;
            setp.lt.u32 %p1, %r2, 64;
            ld.global.b32 %r4, [%rd4];
            add.s32 %r4, %r4, 1;
            @%p1 st.global.b32 [%rd4], %r4;
            ret;
            }
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit and a verdict for each array that is read and written by several warps."""
        arrays = _in_place(facts)
        if not arrays:
            return
        extents = fn.directives.get("reqntid")
        threads = _extents(extents)
        if threads is None:
            first = next(iter(arrays.values()))[0].instr
            yield Verdict("open", "the number of threads is not known", first)
            return
        if threads[0] * threads[1] * threads[2] <= _WARP:
            return
        hazards = _Hazards(facts, Threads(threads))
        for base, accesses in arrays.items():
            yield from hazards.judge(base, accesses)


def _in_place(facts: Facts) -> dict[str, list[Access]]:
    """The arrays that are both loaded from and stored to, with their accesses."""
    arrays: dict[str, list[Access]] = {}
    for access in facts.get(AccessAnalysis).in_global:
        if access.base and access.guard is not None and access.kind != "atomic":
            arrays.setdefault(access.base, []).append(access)
    return {
        base: accesses
        for base, accesses in arrays.items()
        if len({access.kind == "store" for access in accesses}) == 2
    }


def _extents(reqntid: object) -> tuple[int, int, int] | None:
    if not isinstance(reqntid, (list, tuple)) or not reqntid:
        return None
    x, y, z = ([int(e) for e in reqntid] + [1, 1])[:3]
    return x, y, z


class Group(NamedTuple):
    """Accesses of one kind in one segment, whose addresses move alike."""

    is_store: bool
    segment: tuple[int, int]
    moving: Polynomial
    members: list[tuple[Access, Split]]


class _Open(Exception):  # noqa: N818
    """The property cannot be decided; the reason is the message."""


class _Hazards:
    """Judges the arrays of one kernel."""

    def __init__(self, facts: Facts, threads: Threads) -> None:
        self._threads = threads
        self._paths: BarrierPaths = facts.get(BarrierPathsAnalysis)
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self._accesses = facts.get(AccessAnalysis)
        self._cells = 0
        self._is_apart = False
        """True if a proof rests on strides that keep elements apart."""

    def judge(self, base: str, accesses: list[Access]) -> Iterator[Hit | Verdict]:
        """What is to be said about one array."""
        first = accesses[0].instr
        self._is_apart = False
        reason = ""
        try:
            groups = self._groups(accesses)
        except _Open as problem:
            yield Verdict("open", str(problem), first)
            return
        for store in groups:
            for load in groups:
                if load.is_store or not store.is_store:
                    continue
                try:
                    hit = self._pair(base, load, store)
                except _Open as problem:
                    reason = reason or str(problem)
                    continue
                if hit is not None:
                    yield hit
                    yield Verdict("refuted", "warps read and write the same elements", hit.at)
                    return
        missing = self._accesses.missing()
        if missing is not None:
            reason = reason or missing[0]
        if reason:
            yield Verdict("open", reason, first)
        else:
            assumes = ("strides that keep elements apart",) if self._is_apart else ()
            said = "no warp writes what another reads without a barrier"
            yield Verdict("proved", said, first, assumes=assumes)

    def _groups(self, accesses: list[Access]) -> list[Group]:
        found: dict[object, Group] = {}
        lost: dict[tuple[bool, tuple[int, int]], None] = {}
        for access in accesses:
            parts = split(access.offset)
            is_store = access.kind == "store"
            segment = self._paths.segment(access.instr)
            if parts is None or not all(map(self._is_followed, access.offset.atoms())):
                lost[is_store, segment] = None
                continue
            key = (is_store, segment, parts.moving)
            group = found.setdefault(key, Group(is_store, segment, parts.moving, []))
            group.members.append((access, parts))
        places = {**lost, **dict.fromkeys((g.is_store, g.segment) for g in found.values())}
        for is_store, segment in lost:
            for other, place in places:
                if other != is_store and self._meet(segment, place):
                    raise _Open("an address goes by lanes in a way that is not followed")
        return list(found.values())

    def _meet(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """True if control gets from one segment to the other, either way, without a barrier."""
        paths = self._paths
        return any(
            paths.within_round(a, b)
            or any(paths.to_next_round(a, b, loop) for loop in self._around(a[0], b[0]))
            for a, b in ((first, second), (second, first))
        )

    def _is_followed(self, atom: Atom) -> bool:
        """True for a bit of the thread's number, and for what all threads have the same."""
        if is_of_lanes(atom):
            return True
        if atom.depends & LANES:
            return False
        atoms = self._accesses.symbolic.table.atoms
        return all(self._is_uniform(atoms[number]) for number in atom.inner)

    def _is_uniform(self, atom: Atom) -> bool:
        if atom.kind not in ("load", "opaque", "select"):
            return True
        return not self._uniformity.dependence(atom.data[0]) & (LANE | WARP_BITS)

    def _pair(self, base: str, load: Group, store: Group) -> Hit | None:
        """The hazard between two groups, if there is one."""
        for shift in self._shifts(load, store):
            hit = self._overlap(base, load, store, shift)
            if hit is not None:
                return hit
        return None

    def _shifts(self, load: Group, store: Group) -> Iterator[Polynomial]:
        """How far the load's tile lies from the store's whenever no barrier is between them."""
        paths, gap = self._paths, load.moving - store.moving
        if paths.within_round(load.segment, store.segment) or paths.within_round(
            store.segment, load.segment
        ):
            yield self._still(gap)
        for loop in self._around(load.segment[0], store.segment[0]):
            if paths.to_next_round(load.segment, store.segment, loop):
                step = self._step(load, store, loop)
                yield from self._later(gap, -step, load, store, loop)
            if paths.to_next_round(store.segment, load.segment, loop):
                step = self._step(load, store, loop)
                yield from self._later(gap, step, load, store, loop)

    def _later(
        self, gap: Polynomial, step: Polynomial, load: Group, store: Group, loop: Loop
    ) -> Iterator[Polynomial]:
        """The distances from one round on; from further ones where no barrier is in the loop."""
        yield self._still(gap + step)
        free = self._paths.to_next_round(store.segment, store.segment, loop)
        if not free or not step.terms or not step.is_constant:
            return
        rounds = (self._reach(load) + self._reach(store)) // abs(step.constant)
        if rounds > _MAX_ROUNDS:
            raise _Open("too many rounds of a loop touch the same elements")
        for ahead in range(2, rounds + 1):
            yield self._still(gap + step * ahead)

    def _reach(self, group: Group) -> int:
        """How many bytes a tile is long, about."""
        lengths = (
            parts.lanes.range()[1] - parts.lanes.range()[0] + abs(parts.fixed.constant)
            for _, parts in group.members
        )
        return max(lengths)

    def _around(self, first: int, second: int) -> list[Loop]:
        """The loops around both blocks."""
        loop, out = self._loops.innermost(first), []
        while loop is not None:
            if self._loops.contains(loop, second):
                out.append(loop)
            loop = loop.parent
        return out

    def _step(self, load: Group, store: Group, loop: Loop) -> Polynomial:
        """How far the tiles move in a round of the loop."""
        offsets = [access.offset for access, _ in (*load.members, *store.members)]
        for atom in {atom for offset in offsets for atom in offset.atoms()}:
            inside = atom.block >= 0 and self._loops.contains(loop, atom.block)
            if inside and atom.data[:1] != (loop.header,):
                raise _Open("the address of a round does not follow from that of the one before")
        table = load.moving.table
        index = next(
            (
                a
                for a in store.moving.atoms() | load.moving.atoms()
                if a.kind == "index" and a.data == (loop.header,)
            ),
            None,
        )
        if index is None:
            return load.moving * 0
        following = {index: table.plain(index) + 1}
        steps = {g.moving.substitute(following) - g.moving for g in (load, store)}
        if len(steps) != 1:
            raise _Open("the tiles that are read and written do not move alike")
        return steps.pop()

    def _still(self, gap: Polynomial) -> Polynomial:
        """The distance of two tiles, which must be the same in every CTA and round."""
        if gap.depends:
            raise _Open("the tiles that are read and written do not move alike")
        return gap

    # Elements -----------------------------------------------------------------------------------
    def _overlap(self, base: str, load: Group, store: Group, shift: Polynomial) -> Hit | None:
        """The hazard between tiles that lie this far from each other."""
        unit = gcd(*(_unit(access, parts, shift) for access, parts in load.members + store.members))
        written: dict[int, int] = {}
        for access, parts in store.members:
            for thread, cell in self._touched(access, parts, parts.fixed, unit):
                written[cell] = written.get(cell, 0) | 1 << (thread // _WARP)
        for access, parts in load.members:
            useful = self._useful(access)
            for thread, cell in self._touched(access, parts, parts.fixed + shift, unit):
                warp = thread // _WARP
                if useful >> warp & 1 and written.get(cell, 0) & ~(1 << warp):
                    return self._hit(base, access, thread, cell, store, unit)
        self._must_be_apart(load, store, shift)
        return None

    def _must_be_apart(self, load: Group, store: Group, shift: Polynomial) -> None:
        """Note what keeps elements apart that the arithmetic alone does not."""
        starts = {parts.fixed - parts.fixed.constant for _, parts in load.members + store.members}
        if not all((a - b).is_constant for a in starts for b in starts):
            strides = {m for _, p in load.members + store.members for m in _scales(p.lanes)}
            apart = {m for a in starts for m in a.terms}
            if not apart <= strides:
                raise _Open("parameters decide whether what is read and written overlaps")
        if not shift.is_constant or any(_scales(p.lanes) for _, p in load.members + store.members):
            self._is_apart = True

    def _touched(
        self, access: Access, parts: Split, start: Polynomial, unit: int
    ) -> Iterator[tuple[int, int]]:
        """(thread, cell of `unit` bytes) of everything that an access touches."""
        holds = self._threads.where(access.guard or frozenset())
        if holds is None:
            raise _Open("a guard is not understood")
        offset = self._threads.number(start)
        count = access.width // unit
        self._cells += count * len(holds)
        if self._cells > _MAX_CELLS:
            raise _Open("the kernel is too large for the work allowed")
        for thread, value in enumerate(self._threads.values(parts.lanes)):
            if holds[thread]:
                for at in range(count):
                    yield thread, value + offset + at * unit

    def _useful(self, load: Access) -> int:
        """The warps in which what is loaded has an effect, as bits."""
        warps = 0
        for effect in self._effects(load.instr):
            guards = self._accesses.guards
            if effect.shape.row.terminator:
                guard = guards.of_block(guards.ssa.cfg.block_of[effect.index])
            else:
                guard = guards.of_instr(effect)
            holds = None if guard is None else self._threads.where(guard)
            if guard is None:
                continue
            if holds is None:
                raise _Open("a guard is not understood")
            for warp in range((self._threads.count + _WARP - 1) // _WARP):
                if any(holds[warp * _WARP : (warp + 1) * _WARP]):
                    warps |= 1 << warp
        return warps

    def _effects(self, load: Instr) -> list[Instr]:
        """The instructions with an effect that what is loaded reaches through registers."""
        ssa = self._ssa
        work = list(ssa.def_values[load.index]) if load.opcode != "cp" else []
        if load.opcode == "cp":
            return [load]
        seen, out = set(work), {}
        while work:
            value = work.pop()
            found = list(ssa.value_users(value))
            for user in ssa.instr_users(value):
                if user.opcode in _EFFECTS:
                    out[user.index] = user
                found += ssa.def_values[user.index]
            for new in found:
                if new not in seen:
                    seen.add(new)
                    work.append(new)
        return list(out.values())

    def _hit(self, base: str, load: Access, thread: int, cell: int, store: Group, unit: int) -> Hit:
        """The finding, with two threads that are in each other's way."""
        for access, parts in store.members:
            for other, touched in self._touched(access, parts, parts.fixed, unit):
                if touched == cell and other // _WARP != thread // _WARP:
                    return Hit(
                        f"`{base}` is written while other warps may still have to read it",
                        access.instr,
                        related=(
                            Note(
                                f"thread {thread} reads here what thread {other} writes", load.instr
                            ),
                        ),
                        breaks_when=f"the warp of thread {other} is ahead of that of {thread}",
                        key=f"in place {base}",
                    )
        raise AssertionError("the cell was written")


def _scales(lanes: Polynomial) -> set[Monomial]:
    """What lanes are multiplied with."""
    atoms = lanes.table.atoms
    scales = {tuple(n for n in m if not is_of_lanes(atoms[n])) for m in lanes.terms}
    return scales - {()}


def _unit(access: Access, parts: Split, shift: Polynomial) -> int:
    """The greatest number of bytes that divides everything about an access."""
    return gcd(
        access.width,
        *parts.lanes.terms.values(),
        *parts.fixed.terms.values(),
        *shift.terms.values(),
    )
