"""What a launch writes to, storage by storage, as far as it is known where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxlint.dataflow.guards import ALWAYS, Conjunction
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.launch.analysis import LaunchOutcomes, Outcome
from ptxlint.launch.binding import Region
from ptxlint.launch.under import UnderLaunch


class Write(NamedTuple):
    """One store of one instruction: `width` bytes from `place` on, which is counted from the
    storage's first byte, where `guard` holds."""

    instr: Instr
    region: Region
    place: Polynomial
    width: int
    guard: Conjunction


class Output(NamedTuple):
    """A storage that a kernel writes to by plain stores.

    `regions` are the arguments that lie in it and are written through, `atomics` the atomic updates
    of it. `unknown` says why where some store writes is not known, "" if it is.
    """

    storage: int
    regions: tuple[Region, ...]
    stores: tuple[Write, ...]
    atomics: tuple[Write, ...]
    unknown: str = ""

    @property
    def size(self) -> int:
        """Bytes of the storage."""
        region = self.regions[0]
        return region.high - region.low

    @property
    def name(self) -> str:
        """What the source calls it: the first argument that is written through."""
        return self.regions[0].name


class Writes(NamedTuple):
    """All outputs of a launch but those that some store is shown to leave or to miss; `others` are
    the writes to what is no output.

    `elsewhere` says why the kernel may write to memory that is not known, and to any of the
    outputs, "" if it does not."""

    outputs: tuple[Output, ...]
    others: tuple[Write, ...] = ()
    elsewhere: str = ""
    at: Instr | None = None


def is_from_memory(under: UnderLaunch, store: Write) -> bool:
    """True if no run tells where a store goes: its place is made of a loaded number that the launch
    does not tell."""
    return any(
        atom.kind == "load" and not under.promises.is_told(under.ssa.instr[atom.data[0]])
        for atom in store.place.all_atoms()
    )


def writes_of(found: LaunchOutcomes) -> Writes:
    """Sort the stores of a launch by the storage that they write to."""
    by_storage: dict[int, list[tuple[Outcome, Write]]] = {}
    elsewhere, at = _hidden(found)
    for outcome in found.outcomes:
        judged = outcome.judged
        access = judged.access
        if access.kind not in ("store", "atomic") or judged.never:
            continue
        region = judged.region
        if region is None:
            elsewhere, at = elsewhere or "where a store goes is not known", at or access.instr
            continue
        start = region.low if access.base else region.address + region.low
        guard = access.guard if access.guard is not None else ALWAYS
        write = Write(access.instr, region, access.offset - start, access.width, guard)
        by_storage.setdefault(region.storage, []).append((outcome, write))
    outputs = []
    others: list[Write] = []
    for storage, some in by_storage.items():
        if any(outcome.witness is not None or outcome.shown for outcome, _ in some):
            # Where a store goes wrong is told: what it writes there is no question of coverage.
            others += [write for _, write in some]
        elif any(outcome.judged.access.kind == "store" for outcome, _ in some):
            outputs.append(_output(storage, some))
        else:
            others += [write for _, write in some]
    return Writes(tuple(outputs), tuple(others), elsewhere, at)


def _output(storage: int, found: Iterable[tuple[Outcome, Write]]) -> Output:
    stores: list[Write] = []
    atomics: list[Write] = []
    regions: dict[str, Region] = {}
    unknown = ""
    for outcome, write in found:
        judged = outcome.judged
        is_store = judged.access.kind == "store"
        (stores if is_store else atomics).append(write)
        if is_store:
            regions.setdefault(write.region.name, write.region)
            if not judged.is_inside:
                unknown = unknown or f"that {write.region.name} is written inside only is not known"
    return Output(storage, tuple(regions.values()), tuple(stores), tuple(atomics), unknown)


def _hidden(found: LaunchOutcomes) -> tuple[str, Instr | None]:
    """Why the kernel may write to global memory by more than its stores, and where."""
    under = found.under
    located = {judged.access.instr.index for judged in under.judged}
    cfg = under.ssa.cfg
    for instr in under.facts.function.instrs:
        if instr.index in located or not cfg.is_reachable(instr):
            continue
        if cfg.blocks[cfg.block_of[instr.index]].leave in ("noreturn", "abort"):
            continue
        row = instr.shape.row
        if row.is_call or not row.known:
            return f"what `{instr.shape.mnemonic}` writes is not known", instr
        if not {"", "global"}.isdisjoint(memory_of(instr.shape).writes):
            return f"where `{instr.shape.mnemonic}` writes is not followed", instr
    return "", None


__all__ = ["Output", "Write", "Writes", "is_from_memory", "writes_of"]
