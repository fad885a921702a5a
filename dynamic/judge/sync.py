"""Verdicts on barriers and warp operations, held to who comes to them (SYN501, SYN502).

*Barriers proved*: all threads of a program come equally often to each barrier that counts all of
them, and the lanes of each warp to each that counts some; and nobody waits for ever. *Warp
operations proved*: all lanes of a warp come equally often to each of them, or those that its mask
names; and nobody waits for lanes that never come.

Refuted verdicts speak of a launch of their own, in which some thread comes and another does not:
`witnessed` runs it. Under other launches they may well be kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dataflow.convergence import FULL_MASK, ConvergenceAnalysis, constant_of
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.thread_split import Split
from ptxlint.dynamic.emulator.arena import Arena
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.judge.replay import (
    KEPT,
    MOST_TURNS,
    UNKNOWN,
    VIOLATED,
    Judgement,
    Played,
    said,
)
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits
from ptxlint.launches import Extent
from ptxlint.rulekit import Hit

BARRIERS = "barriers"
WARP_OPERATIONS = "warp operations"
_WARP: Final = 32
_POINTER: Final = 8
_ROOM: Final = 1 << 16
"""Bytes behind each pointer of a launch that a verdict makes up."""


class Kind(NamedTuple):
    """A family of instructions at which lanes wait for each other: what it is called, the
    identifier of its rule, and the faults that violate its proofs."""

    name: str
    rule: str
    faults: tuple[str, ...]


KINDS: Final = (
    Kind(BARRIERS, "SYN501", ("deadlock", "divergence")),
    Kind(WARP_OPERATIONS, "SYN502", ("divergence",)),
)


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on the barriers of a launch, and one on its warp operations."""
    faults = {(fault.kind, fault.instr) for fault in played.ran.outcome.faults}
    for kind in KINDS:
        verdicts, _ = played.said(kind.rule)
        for verdict in verdicts:
            parted = _parted(kind, played.record, played.facts, faults)
            if parted is not None:
                what = f"{parted}: {verdict.reason}"
                yield Judgement(kind.name, verdict.status, VIOLATED, what)
            else:
                happened = UNKNOWN if verdict.status == "refuted" else KEPT
                yield Judgement(kind.name, verdict.status, happened)


def _parted(
    kind: Kind, record: Record, facts: Facts, faults: Collection[tuple[str, Instr]]
) -> str | None:
    """What shows that threads part where they should not; None if nothing does."""
    for instr, by_cta in record.came.items():
        if kind_of(instr) is not kind:
            continue
        if any((fault, instr) in faults for fault in kind.faults):
            return f"{instr} waits for ever"
        for cta, counts in by_cta.items():
            if _differ(counts, instr, facts):
                return f"in program {cta} threads come {set(counts.tolist())} times to {instr}"
    return None


def kind_of(instr: Instr) -> Kind | None:
    """The family of an instruction at which lanes wait for each other."""
    is_barrier = instr.opcode in ("bar", "barrier") and not instr.shape.has("warp")
    if is_barrier:
        return None if instr.shape.has("cluster") else KINDS[0]
    return KINDS[1]


def _differ(counts: NDArray[np.int64], instr: Instr, facts: Facts) -> bool:
    """True if threads that should act as one came to an instruction, some more often."""
    if kind_of(instr) is KINDS[0] and is_of_all(instr):
        return bool((counts != counts[0]).any())
    warps = np.full(-(-len(counts) // _WARP) * _WARP, -1, dtype=np.int64)
    warps[: len(counts)] = counts
    rows = warps.reshape(-1, _WARP)
    mask = FULL_MASK if kind_of(instr) is KINDS[0] else _mask(instr, facts)
    if mask is None:
        return False
    named = (mask >> np.arange(_WARP) & 1).astype(bool) & (rows >= 0)
    most = np.where(named, rows, 0).max(axis=1, keepdims=True)
    return bool((named & (rows != most)).any())


def is_of_all(barrier: Instr) -> bool:
    """True for a barrier that waits for all threads: one without a count, at which nobody goes on
    at once."""
    operands = len(barrier.operands) - 2 * barrier.shape.has("red")
    return operands == 1 and not barrier.shape.has("arrive")


def _mask(instr: Instr, facts: Facts) -> int | None:
    """The lanes that a warp operation names; None if that is known at run time alone."""
    if instr.opcode in ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"):
        return FULL_MASK
    at = 0 if instr.opcode == "bar" else len(instr.operands) - 1
    return constant_of(facts, instr, at)


# Refuted ------------------------------------------------------------------------------------------
def witnessed(emulator: Emulator, facts: Facts) -> Iterator[Judgement]:
    """Judgements on what is refuted of a kernel, each by the launch that shows it."""
    convergence = facts.get(ConvergenceAnalysis)
    for kind in KINDS:
        for hit in said(facts, kind.rule)[1]:
            if hit.at is None or hit.severity == "note":
                continue
            level = Level.CTA if kind is KINDS[0] and is_of_all(hit.at) else Level.WARP
            mask = None if kind is KINDS[0] else _mask(hit.at, facts)
            parting = convergence.parting(hit.at, level, FULL_MASK if mask is None else mask)
            if parting is not None and parting.split is not None:
                yield _shown(emulator, kind, hit, hit.at, parting.split)


def _shown(emulator: Emulator, kind: Kind, hit: Hit, at: Instr, split: Split) -> Judgement:
    record = Record()
    arena = emulator.arena()
    values = _parameters(emulator, arena, split.values)
    emulator.run(
        (1, 1, 1), _block(emulator, split), values, arena, most_turns=MOST_TURNS, record=record
    )
    (counts,) = record.came.get(at, {(0, 0, 0): np.zeros(split.threads)}).values()
    if counts[split.comes] > counts[split.stays_away]:
        return Judgement(kind.name, "refuted", VIOLATED)
    what = f"threads {split.comes} and {split.stays_away} come alike to {at}: {hit.message}"
    return Judgement(kind.name, "refuted", KEPT, what)


def _block(emulator: Emulator, split: Split) -> Extent:
    fixed = [int(n) for n in emulator.kernel.directives.get("reqntid") or (split.threads,)]
    x, y, z = (*fixed, 1, 1)[:3]
    return x, y, z


def _parameters(emulator: Emulator, arena: Arena, given: Mapping[str, int]) -> dict[str, bytes]:
    """Numbers that a split names; memory behind pointers; zeros else."""
    found = {}
    for variable in emulator.kernel.params:
        width = variable.size or bits(variable.type) // 8
        number = given.get(variable.name, 0)
        if variable.name not in given and width == _POINTER:
            room = np.zeros(_ROOM, dtype=np.uint8)
            number = arena.allocate(variable.name, _ROOM, room).start
        found[variable.name] = (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return found


__all__ = ["BARRIERS", "WARP_OPERATIONS", "is_of_all", "judge", "kind_of", "witnessed"]
