"""CTAs that fill what they read: stores of any of their threads come before each read.

Where all CTAs go the same way and their accesses differ by one shift, one CTA stands for all. It is
run whole, its stores noted by cell; a read of a cell that none of them has come to yet is not
covered. No way may lead from a store to the read that passes no barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.dataflow.barrier_paths import BarrierPathsAnalysis
from ptxlint.dataflow.polynomial import CTAS, Polynomial
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.ir.operand import SpecialRegister
from ptxlint.launch.machine import Machine, Meeting
from ptxlint.launch.slices import Target, slice_of, target_of
from ptxlint.launch.under import Judged, UnderLaunch

_UNFOLLOWED: Final = frozenset({"load", "opaque", "select"})
"""Atoms that do not say by what they differ."""
_BUDGET: Final = 12_000
"""Steps of up to 4,096 lanes that one read is given."""
_MOST_CELLS: Final = 1 << 24
"""Bytes or larger units of a storage that are told apart."""


def fills_before(
    under: UnderLaunch, machine: Machine, read: Judged, stores: Sequence[Judged]
) -> bool:
    """True if each CTA has stored to all bytes of a read before it comes to it."""
    members = [read, *stores]
    targets = [target_of(under.ssa, judged.access.instr) for judged in members]
    known = [target for target in targets if target is not None]
    if len(known) < len(members) or len({_shift(judged) for judged in members}) > 1:
        return False
    if _shift(read) is None or any(judged.wraps for judged in members):
        return False
    if any(_is_free(under, store, read) for store in stores):
        return False
    if not _go_alike(under, machine, known):
        return False
    return _run(under, machine, read, stores, known)


def _is_free(under: UnderLaunch, store: Judged, read: Judged) -> bool:
    """True if control leads from a store to a read past no barrier, in a round or to the next."""
    paths = under.facts.get(BarrierPathsAnalysis)
    first, second = (paths.segment(judged.access.instr) for judged in (store, read))
    if paths.within_round(first, second):
        return True
    loop = under.loops.innermost(first[0])
    while loop is not None:
        around = under.loops.contains(loop, second[0])
        if around and paths.to_next_round(first, second, loop):
            return True
        loop = loop.parent
    return False


def _shift(judged: Judged) -> Polynomial | None:
    """The part of an address that differs between CTAs; None if it differs by threads, too."""
    region, offset = judged.region, judged.access.offset
    if region is None:
        return None
    if any(atom.kind in _UNFOLLOWED for atom in offset.all_atoms()):
        return None
    depends = offset.table.depends
    own = {m: c for m, c in offset.terms.items() if depends[m] & CTAS}
    if any(depends[monomial] != CTAS for monomial in own):
        return None
    shift = Polynomial(offset.table, own)
    return shift + region.address if judged.access.base else shift


def _go_alike(under: UnderLaunch, machine: Machine, targets: list[Target]) -> bool:
    """True if nothing that decides whether the targets are come to depends on the CTA."""
    ssa = under.ssa
    control = under.facts.get(ControlDependenceAnalysis)
    piece = slice_of(ssa, control, targets, machine.is_followed, companions=machine.companions)
    asked = [target.predicate for target in targets if target.predicate >= 0]
    for block in piece.branches:
        branch = ssa.cfg.terminator(block)
        value = None if branch is None else ssa.guard_value(branch)
        if value is None:
            return False
        asked.append(value)
    instrs, seen = ssa.cfg.function.instrs, set(asked)
    while asked:
        value = asked.pop()
        if ssa.kind[value] == RESULT:
            instr = instrs[ssa.instr[value]]
            if instr.opcode in ("ldmatrix", "atom") or (
                instr.opcode == "ld" and instr.shape.space != "param"
            ):
                return False
            special = [o.name for o in instr.operands if isinstance(o, SpecialRegister)]
            if any("cta" in name or "cluster" in name for name in special):
                return False
        for operand in ssa.operands[value]:
            if operand not in seen:
                seen.add(operand)
                asked.append(operand)
    return True


def _run(
    under: UnderLaunch,
    machine: Machine,
    read: Judged,
    stores: Sequence[Judged],
    targets: list[Target],
) -> bool:
    """Run one CTA and see that each cell was stored to before it is read."""
    assert read.region is not None
    region = read.region
    width = {judged.access.instr.index: judged.access.width for judged in (read, *stores)}
    unit = int(np.gcd.reduce([*width.values()]))
    count = (region.high - region.low) // unit
    if not 0 < count <= _MOST_CELLS:
        return False
    filled = np.zeros(count, dtype=bool)
    control = under.facts.get(ControlDependenceAnalysis)
    piece = slice_of(
        under.ssa, control, targets, machine.is_followed, companions=machine.companions
    )
    run = machine.run(piece, [(0, 0, 0)], _BUDGET)
    for meeting in run.meetings():
        index = meeting.target.instr.index
        cells = _cells(meeting, region.address + region.low, width[index], unit)
        if cells is None or (cells < 0).any() or (cells >= count).any():
            return False
        if index == read.access.instr.index:
            if not filled[cells].all():
                return False
        else:
            filled[cells] = True
    return not run.memory.is_void and all(map(run.is_complete, targets))


def _cells(meeting: Meeting, start: int, width: int, unit: int) -> NDArray[np.int64] | None:
    """The cells that the lanes of a meeting touch; None if they do not begin at one."""
    if meeting.size is not None:
        return None
    address = np.broadcast_to(meeting.address, meeting.lanes.shape)[meeting.lanes]
    offset = (address - np.uint64(start)).view(np.int64)
    if (offset % unit).any():
        return None
    return (offset[:, None] // unit + np.arange(width // unit)).ravel()


__all__ = ["fills_before"]
