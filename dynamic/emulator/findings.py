"""What a run did wrong, as findings: the same form, places and formats as those of static rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ptxlint.diagnostics import Finding, Related
from ptxlint.dynamic.emulator.device import Fault
from ptxlint.engine.emulated import EmulatedRule, arrivals, memory, synchronisation, values
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.suppression import Suppressions
from ptxlint.engine.under_launch import launch_to_dict
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.launch.binding import Bound

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.made_up import Decider

KINDS: Final[dict[str, EmulatedRule]] = {
    "outside": memory.OUTSIDE,
    "misaligned": memory.MISALIGNED,
    "read_only": memory.READ_ONLY,
    "blank": memory.BLANK,
    "freed": memory.FREED,
    "uninitialised": values.UNINITIALISED,
    "not_finite": values.NOT_FINITE,
    "wrapped": values.WRAPPED,
    "tensor_map": memory.TENSOR_MAP,
    "race": synchronisation.RACE,
    "deadlock": synchronisation.DEADLOCK,
    "divergence": synchronisation.DIVERGENCE,
    "trap": synchronisation.TRAP,
    "hang": synchronisation.HANG,
    "mbarrier": synchronisation.MBARRIER,
    "barrier": synchronisation.BARRIER,
    "arrival": arrivals.ARRIVAL,
}
"""What explains each kind of `ptxlint.dynamic.emulator.device.Fault`."""
_ORIGINS: Final = {
    "arrival": "the other one of the two", "not_finite": "it is stored here",
    "deadlock": "others wait here",
}  # fmt: skip
"""What the second place of a kind is, if nothing comes from there."""


def findings(
    faults: list[Fault],
    module: Module,
    kernel: Function,
    bound: Bound | None,
    places: Places,
    numbers: Fingerprints,
    comments: Suppressions,
    made_up: Callable[[Fault], list[Decider]] = lambda fault: [],
) -> tuple[list[Finding], int]:
    """One finding for all faults of a kind at a line of the source, with a CTA and thread that did
    it as its witness: the first in the order of CTAs. And how many others `comments` hold back.

    `made_up` are the tensors with contents that nobody gave which may decide on a fault: it says
    so, and confidence is low.
    """
    launch = None if bound is None else launch_to_dict(bound)
    out, held = [], 0
    for is_held, fault in _by_line(faults, places, comments):
        kind = KINDS[fault.kind]
        number = numbers.next(kind.id, kernel.name, fault.instr.shape.mnemonic)
        if is_held:
            held += 1
            continue
        ctaid, tid = (", ".join(map(str, part)) for part in (fault.ctaid, fault.tid))
        more = f" ({fault.lanes:,} times)" if fault.lanes > 1 else ""
        deciders = made_up(fault)
        message = f"program ({ctaid}), thread ({tid}) {fault.message}{more}"
        out.append(
            Finding(
                kind.id,
                kind.name,
                kind.severity,
                "low" if deciders else kind.confidence,
                kind.family,
                message,
                kernel.name,
                module.arch,
                places.of(fault.instr),
                related=(*_related(fault, places), *(_doubt(one, places) for one in deciders)),
                help=kind.fix,
                witness={
                    "ctaid": list(fault.ctaid),
                    "tid": list(fault.tid),
                    "values": fault.values,
                },
                fingerprint=number,
                launch=launch,
            )
        )
    return out, held


def _related(fault: Fault, places: Places) -> tuple[Related, ...]:
    if fault.origin is None:
        return ()
    what = _ORIGINS.get(fault.kind, "it comes from here")
    return (Related(what, places.of(fault.origin)),)


def _doubt(decider: Decider, places: Places) -> Related:
    return Related(
        f"what is read here may decide: `{decider.name}` holds made-up contents ({decider.how}); "
        "give them with --inputs",
        places.of(decider.load),
    )


def _by_line(
    faults: list[Fault], places: Places, comments: Suppressions
) -> Iterator[tuple[bool, Fault]]:
    """The faults, those of one kind at one line of the source as one, and whether a comment holds
    them back: it may stand at one instruction of the line alone."""
    groups: dict[tuple[bool, object], Fault] = {}
    for fault in faults:
        place = places.of(fault.instr)
        source = place.source
        is_held = comments.hold_back(KINDS[fault.kind].id, place)
        line = fault.instr if source is None else (source.path, source.line)
        key = is_held, (fault.kind, line)
        old = groups.get(key)
        if old is None:
            groups[key] = fault
        else:
            first = min(old, fault, key=lambda f: (f.ctaid[::-1], f.tid[::-1]))
            groups[key] = first._replace(lanes=old.lanes + fault.lanes)
    return ((is_held, fault) for (is_held, _), fault in groups.items())


__all__ = ["KINDS", "findings"]
