"""Accesses that polynomials left open, settled by running threads of the CTAs that matter.

Where few enough CTAs differ, all are run: then what no lane does is proved not to happen. Of larger
grids the corners are run, the CTAs that the caller names, and those around which an access begins
or ends to take place, or comes furthest: found by dividing the axes, so that the cost does not
depend on how large the grid is. A thread that shows something is shown by the machine's own words;
without one, nothing is said of such a grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.symbolic import Wrap
from ptxlint.ir.operand import SpecialRegister
from ptxlint.launch.binding import Region
from ptxlint.launch.lane_numbers import WORDS, LaneNumbers, Number
from ptxlint.launch.machine import Machine, Meeting, Run
from ptxlint.launch.obligations import word
from ptxlint.launch.slices import Slice, Target, slice_of, target_of
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.walk import Thread
from ptxlint.launch.witness import Witness
from ptxlint.launch.words import Flags
from ptxlint.launches import Extent

BUDGET: Final = 6_000
"""Steps of up to 4,096 lanes that one launch is given."""
_MOST_LANES: Final = 1 << 17
"""Threads of all CTAs that differ, up to which all are run."""
_PIECES: Final = 16
"""Into so many parts an axis is divided at a time."""
_LEAST: Final = -(1 << 62)


class Settled(NamedTuple):
    """An access anew: more of it may be proved, or a thread shows that it is wrong."""

    judged: Judged
    witness: Witness | None = None


def settle(
    under: UnderLaunch,
    judged: Sequence[Judged],
    candidates: Iterable[Extent] = (),
    budget: int = BUDGET,
) -> list[Settled]:
    """Look into accesses of a launch again, by running threads. `candidates` are CTAs where a
    number may be largest or smallest."""
    return _Settling(under, list(judged), list(candidates), budget).settled()


def earliest(
    under: UnderLaunch, judged: Judged, witness: Witness, budget: int = BUDGET // 4
) -> Witness:
    """A witness of the same in an earlier CTA, if there is one: where it begins along each axis.

    It is the earliest one where all CTAs behind it show the same.
    """
    target = target_of(under.ssa, judged.access.instr)
    if target is None or not any(witness.thread.ctaid) or under.promises.is_shared:
        return witness
    if witness.wrap is not None:
        judged = judged._replace(wraps=(witness.wrap,))
    moved = _Settling(under, [judged], [], budget).earliest(_Open(judged, target), witness)
    return moved._replace(since=witness.since)


class _Open:
    """What is found out about one access."""

    def __init__(self, judged: Judged, target: Target) -> None:
        self.judged = judged
        self.target = target
        self.witness: Witness | None = None
        self.is_whole = True
        """All that the lanes of the runs so far do at it was met."""
        self.is_met = False
        self.is_outside = False
        self.is_misaligned = False


class _Settling:
    """The work on the open accesses of one launch."""

    def __init__(
        self, under: UnderLaunch, judged: list[Judged], candidates: list[Extent], budget: int
    ) -> None:
        self._under = under
        self._judged = judged
        self._candidates = candidates
        self._budget = budget
        self._control = under.facts.get(ControlDependenceAnalysis)
        self._is_shared = under.promises.is_shared
        """What is told of memory may be written over: only runs of all threads tell."""
        self._machine = Machine.of(under)
        self._unfit: set[Wrap] = set()
        """Obligations that are not met by some lane, or not known to be."""
        self._storages = [
            (r.address + r.low, r.address + r.high) for r in under.bound.regions.values()
        ]

    def settled(self) -> list[Settled]:
        opened: dict[int, _Open] = {}
        for number, judged in enumerate(self._judged):
            target = target_of(self._under.ssa, judged.access.instr)
            if target is not None and not judged.never and min(self._under.bound.grid) > 0:
                opened[number] = _Open(judged, target)
        for group in self._groups(list(opened.values())):
            self._settle(group)
        return [
            self._said(opened[number]) if number in opened else Settled(judged)
            for number, judged in enumerate(self._judged)
        ]

    def earliest(self, access: _Open, witness: Witness) -> Witness:
        """The witness where it begins, one axis after the other."""
        piece = self._slice([access])
        for axis in (2, 1, 0):
            low, high = 0, witness.thread.ctaid[axis]
            while low < high:
                places = list(dict.fromkeys(_between(low, high - 1)))
                base = witness.thread.ctaid
                ctas = [(*base[:axis], place, *base[axis + 1 :]) for place in places]
                access.witness = None
                self._run(piece, [access], [(x, y, z) for x, y, z in ctas])
                found: Witness | None = access.witness
                if found is None or found.kind != witness.kind:
                    low = places[-1] + 1
                    continue
                witness = found
                high = found.thread.ctaid[axis]
                at = places.index(high)
                low = places[at - 1] + 1 if at else high
        return witness

    def _groups(self, opened: list[_Open]) -> list[list[_Open]]:
        """Accesses that the same branches decide about, so that none suffers from another's."""
        block_of = self._under.ssa.cfg.block_of
        by_block: dict[int, list[_Open]] = {}
        for access in opened:
            by_block.setdefault(block_of[access.target.instr.index], []).append(access)
        by_branches: dict[frozenset[int], list[_Open]] = {}
        for members in by_block.values():
            by_branches.setdefault(self._slice(members).branches, []).extend(members)
        return list(by_branches.values())

    def _slice(self, members: list[_Open]) -> Slice:
        """What the members rest on, and what their polynomials ask for."""
        wraps = {wrap for m in members for wrap in m.judged.wraps}
        values: set[int] = set()
        for poly in self._polynomials(members):
            values.update(_values_in(poly))
        return slice_of(
            self._under.ssa,
            self._control,
            [m.target for m in members],
            self._machine.is_followed,
            sorted(values),
            sorted({wrap.instr for wrap in wraps}),
            self._machine.companions,
        )

    def _polynomials(self, members: list[_Open]) -> list[Polynomial]:
        wraps = {wrap for m in members for wrap in m.judged.wraps}
        return [*(m.judged.access.offset for m in members), *(w.polynomial for w in wraps)]

    def _said(self, access: _Open) -> Settled:
        judged = access.judged
        if not access.is_whole:
            return Settled(judged, access.witness)
        if self._unfit.isdisjoint(judged.wraps):
            judged = judged._replace(wraps=())
        if access.witness is not None:
            return Settled(judged, access.witness)
        judged = judged._replace(ran=True)
        if not access.is_outside:
            judged = judged._replace(below=True, above=True)
        if not access.is_misaligned:
            judged = judged._replace(aligned=True)
        if not access.is_met:
            judged = judged._replace(never="launch")
        if judged.is_inside and judged.aligned and not judged.wraps:
            judged = judged._replace(reason="")
        return Settled(judged)

    # Which CTAs ---------------------------------------------------------------------------------
    def _settle(self, members: list[_Open]) -> None:
        piece = self._slice(members)
        grid, block = self._under.bound.grid, self._under.bound.block
        axes = self._axes_read(piece, members)
        extents = [grid[at] if at in axes or self._is_shared else 1 for at in range(3)]
        threads = block[0] * block[1] * block[2]
        count = extents[0] * extents[1] * extents[2]
        if not threads:
            return
        at_once = self._machine.at_once(piece)
        if count * threads <= _MOST_LANES:
            if self._is_shared:
                self._machine = Machine.of(self._under)
            ctas = [(x, y, z) for z, y, x in product(*(range(e) for e in reversed(extents)))]
            for start in range(0, count, at_once):
                self._run(piece, members, ctas[start : start + at_once])
            if self._is_shared and not all(access.is_whole for access in members):
                # A thread that was not run may have written what another one read.
                for access in members:
                    access.witness = None
            return
        if not self._is_shared:
            self._search(piece, members, extents, at_once)
        for access in members:
            access.is_whole = False

    def _axes_read(self, piece: Slice, members: list[_Open]) -> set[int]:
        """The axes of the grid that the slice asks about, or the members' polynomials."""
        ssa = self._under.ssa
        instrs = ssa.cfg.function.instrs
        read = [instrs[ssa.instr[v]] for v in piece.values if ssa.kind[v] == RESULT]
        return {
            "xyz".index(operand.name[-1])
            for instr in read
            for operand in instr.operands
            if isinstance(operand, SpecialRegister) and operand.name.startswith("%ctaid.")
        } | {
            "xyz".index(atom.data[0])
            for poly in self._polynomials(members)
            for atom in poly.all_atoms()
            if atom.kind == "ctaid"
        }

    def _search(self, piece: Slice, members: list[_Open], extents: list[int], at_once: int) -> None:
        """Run the corners, the candidates, and what halving the axes leads to."""
        xs, ys, zs = (sorted({0, extent - 1}) for extent in extents)
        corners = [(x, y, z) for x in xs for y in ys for z in zs]
        named = [
            (min(x, extents[0] - 1), min(y, extents[1] - 1), min(z, extents[2] - 1))
            for x, y, z in self._candidates
        ]
        first = list(dict.fromkeys([*corners, *named]))
        self._run(piece, members, first[:at_once])
        for base in (corners[-1], corners[0]):
            for axis, extent in enumerate(extents):
                if extent > 2:
                    self._halve(piece, members, base, axis, extent, at_once)

    def _halve(
        self,
        piece: Slice,
        members: list[_Open],
        base: Extent,
        axis: int,
        extent: int,
        at_once: int,
    ) -> None:
        """Look along one axis for the CTAs where something changes."""
        spans = [(0, extent - 1)]
        seen: set[int] = set()
        while spans and not self._is_over(members):
            places = sorted({p for low, high in spans for p in _between(low, high)} - seen)
            seen.update(places)
            if not places:
                return
            found: list[_Seen] = []
            for start in range(0, len(places), at_once):
                chunk = places[start : start + at_once]
                ctas = [(*base[:axis], place, *base[axis + 1 :]) for place in chunk]
                found += self._run(piece, members, [(x, y, z) for x, y, z in ctas])
            spans = _changes(places, found)

    def _is_over(self, members: list[_Open]) -> bool:
        return self._budget <= 0 or all(access.witness is not None for access in members)

    # Running ------------------------------------------------------------------------------------
    def _run(self, piece: Slice, members: list[_Open], ctas: list[Extent]) -> list[_Seen]:
        """Run some CTAs; what each does at each access, CTA by CTA."""
        if self._is_over(members):
            for access in members:
                access.is_whole = False
            return [_Seen({}, {}, {}) for _ in ctas]
        wraps = {wrap for access in members for wrap in access.judged.wraps}
        by_instr: dict[int, list[Wrap]] = {}
        for wrap in sorted(wraps, key=repr):
            by_instr.setdefault(wrap.instr, []).append(wrap)
        watchers = {
            index: lambda run, mask, some=some: self._check_fit(some, run, mask)
            for index, some in by_instr.items()
        }
        run = self._machine.run(piece, ctas, self._budget, watchers)
        by_target: dict[int, list[_Open]] = {}
        for access in members:
            by_target.setdefault(access.target.instr.index, []).append(access)
        seen = [_Seen({}, {}, {}) for _ in ctas]
        before = [access.witness for access in members]
        for meeting in run.meetings():
            numbers: LaneNumbers | None = None
            for access in by_target[meeting.target.instr.index]:
                if access.witness is None:
                    if numbers is None:
                        numbers = self._numbers(run, meeting.rounds)
                    self._meet(access, meeting, numbers, run, seen)
        self._budget = run.budget
        for access, witness in zip(members, before, strict=True):
            access.is_whole = access.is_whole and run.is_complete(access.target)
            if run.memory.is_void:
                # What was read may be another number.
                access.witness = witness
        return seen

    def _numbers(self, run: Run, rounds: dict[int, NDArray[np.int64]]) -> LaneNumbers:
        return LaneNumbers(run.lanes, rounds, run.values, self._under.ssa)

    def _check_fit(self, wraps: list[Wrap], run: Run, mask: Flags | None) -> None:
        """Whether what is computed fits its word in the lanes that come there."""
        numbers = self._numbers(run, run.rounds)
        for wrap in wraps:
            if wrap in self._unfit:
                continue
            beyond, known = _beyond(numbers.of(wrap.polynomial), wrap)
            wrong = beyond | ~known
            if (wrong if mask is None else wrong & mask).any():
                self._unfit.add(wrap)

    def _meet(
        self, access: _Open, meeting: Meeting, numbers: LaneNumbers, run: Run, seen: list[_Seen]
    ) -> None:
        judged = access.judged
        access.is_met = True
        width = judged.access.width
        lanes = meeting.lanes
        shape = lanes.shape
        address = np.broadcast_to(meeting.address, shape)
        size = np.int64(width) if meeting.size is None else meeting.size.view(np.int64)
        region = judged.region
        if region is None:
            inside = np.zeros(shape, dtype=bool)
            for low, high in self._storages:
                at = (address - np.uint64(low)).view(np.int64)
                inside |= (at >= 0) & (at + size <= high - low)
            access.is_outside |= bool((lanes & ~inside).any())
            access.is_misaligned |= bool((lanes & (address % np.uint64(width) != 0)).any())
            return
        offset = (address - np.uint64(region.address)).view(np.int64)
        outside = lanes & ((offset < region.low) | (offset + size > region.high))
        misaligned = lanes & (address % np.uint64(width) != 0)
        access.is_outside |= bool(outside.any())
        access.is_misaligned |= bool(misaligned.any())
        # The watchers came by before: what they found to fit has no part in this.
        unfit = [wrap for wrap in judged.wraps if wrap in self._unfit]
        wrong = self._elsewhere(judged, region, numbers, lanes, offset) if unfit else outside
        for wrap in unfit:
            value = numbers.of(wrap.polynomial)
            beyond, _ = _beyond(value, wrap)
            hits = (outside | wrong) & beyond
            if value is not None and hits.any():
                lane = _first(hits)
                number = int(np.broadcast_to(value.found, shape)[lane])
                thread = _thread(run, lane)
                access.witness = Witness("overflow", thread, int(offset[lane]), number, wrap)
                return
        if outside.any():
            lane = _first(outside)
            kind = "below" if offset[lane] < region.low else "above"
            access.witness = Witness(kind, _thread(run, lane), int(offset[lane]))
            return
        if misaligned.any() and not judged.aligned:
            lane = _first(misaligned)
            access.witness = Witness("misaligned", _thread(run, lane), int(offset[lane]))
            return
        _note(seen, access.target.instr.index, lanes, offset)

    def _elsewhere(
        self,
        judged: Judged,
        region: Region,
        numbers: LaneNumbers,
        lanes: Flags,
        offset: NDArray[np.int64],
    ) -> Flags:
        """The lanes whose address is not the one that is meant."""
        meant = numbers.of(judged.access.offset)
        if meant is None:
            return np.zeros_like(lanes)
        base = 0 if judged.access.base else region.address
        wrong: Flags = lanes & np.asarray(meant.found - base != offset, dtype=bool)
        return wrong if meant.known is None else wrong & meant.known


class _Seen(NamedTuple):
    """What one CTA does, by an access's instruction: how many lanes, how far down and up."""

    lanes: dict[int, int]
    low: dict[int, int]
    high: dict[int, int]


def _note(seen: list[_Seen], index: int, lanes: Flags, offset: NDArray[np.int64]) -> None:
    counts = lanes.sum(axis=1)
    highest = np.where(lanes, offset, _LEAST).max(axis=1)
    lowest = np.where(lanes, offset, -_LEAST).min(axis=1)
    for cta in np.nonzero(counts)[0]:
        one, count = seen[cta], int(counts[cta])
        one.lanes[index] = one.lanes.get(index, 0) + count
        one.high[index] = max(one.high.get(index, _LEAST), int(highest[cta]))
        one.low[index] = min(one.low.get(index, -_LEAST), int(lowest[cta]))


def _between(low: int, high: int) -> Iterator[int]:
    """Places that divide a span, its ends among them."""
    parts = min(_PIECES, max(1, high - low))
    for part in range(parts + 1):
        yield low + (high - low) * part // parts


def _changes(places: list[int], found: list[_Seen]) -> list[tuple[int, int]]:
    """The spans between neighbours where an access begins or ends, or on both sides of where it
    comes furthest; the narrowest are left out, since nothing lies between."""
    spans: set[tuple[int, int]] = set()
    targets = sorted({index for one in found for index in one.lanes})
    last = len(places) - 1
    for index in targets[:4]:
        counts = [one.lanes.get(index, 0) for one in found]
        changing = [at for at in range(last) if counts[at] != counts[at + 1]]
        spans.update((places[at], places[at + 1]) for at in (*changing[:1], *changing[-1:]))
        highest = max(range(last + 1), key=lambda at: found[at].high.get(index, _LEAST))
        lowest = min(range(last + 1), key=lambda at: found[at].low.get(index, -_LEAST))
        for at in (highest, lowest):
            if 0 < at < last:
                spans.update(((places[at - 1], places[at]), (places[at], places[at + 1])))
    return sorted(span for span in spans if span[1] - span[0] > 1)


def _beyond(value: Number | None, wrap: Wrap) -> tuple[Flags, Flags]:
    """Where a number is outside of its word, and where that is known."""
    if value is None:
        nowhere = np.zeros((1, 1), dtype=bool)
        return nowhere, nowhere
    low, high = word(wrap)
    beyond: Flags = np.asarray((value.found < low) | (value.found > high), dtype=bool)
    known = np.ones((1, 1), dtype=bool) if value.known is None else value.known
    return beyond & known, known


def _first(lanes: Flags) -> tuple[int, int]:
    """The first lane of a mask: the lowest CTA, its lowest thread."""
    cta, thread = np.unravel_index(int(lanes.argmax()), lanes.shape)
    return int(cta), int(thread)


def _thread(run: Run, at: tuple[int, int]) -> Thread:
    x, y, z = run.lanes.ctas[at[0]]
    return Thread((int(x), int(y), int(z)), run.lanes.thread(at[1]))


def _values_in(poly: Polynomial) -> Iterator[int]:
    """The values of the kernel that a polynomial asks for."""
    for atom in poly.all_atoms():
        if atom.kind == "select" or atom.kind in WORDS:
            yield atom.data[0]


__all__ = ["BUDGET", "Settled", "earliest", "settle"]
