"""What a run did wrong, as findings: the same form, places and formats as those of static rules."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.diagnostics import Finding, Severity
from ptxlint.dynamic.emulator.device import Fault
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.under_launch import launch_to_dict
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.launch.binding import Bound


class Kind(NamedTuple):
    """How a kind of fault is reported."""

    rule: str
    name: str
    family: str
    help: str
    severity: Severity = "error"


KINDS: Final[dict[str, Kind]] = {
    "outside": Kind(
        "EMU901", "emulated-out-of-bounds", "bounds",
        "bound the index by the extent of the tensor that is passed",
    ),
    "misaligned": Kind(
        "EMU902", "emulated-misaligned", "bounds",
        "pass a tensor that is aligned as the kernel was compiled for",
    ),
    "read_only": Kind("EMU903", "emulated-read-only", "bounds", "write to an output instead"),
    "blank": Kind(
        "EMU904", "emulated-uninitialised-read", "rerun",
        "zero the memory before the launch, or write it before it is read",
    ),
    "race": Kind(
        "EMU905", "emulated-race", "sync",
        "put a barrier between the two accesses, or give each thread a cell of its own",
    ),
    "deadlock": Kind(
        "EMU906", "emulated-deadlock", "sync", "let all threads that are counted come to it",
    ),
    "divergence": Kind(
        "EMU907", "emulated-divergence", "sync",
        "let all lanes that the mask names come to the instruction",
    ),
    "trap": Kind("EMU908", "emulated-trap", "bounds", "look at what the assertion says"),
    "mbarrier": Kind(
        "EMU910", "emulated-mbarrier", "sync",
        "initialise it before its use, and let as many threads and bytes arrive as it expects",
    ),
    "tensor_map": Kind(
        "EMU911", "emulated-tensor-map", "bounds",
        "give the tensor map what the hardware takes: strides and rows of tiles in multiples of "
        "16 bytes, tiles of at most 256 elements a dimension",
    ),
    "hang": Kind("EMU909", "emulated-hang", "sync", "look at what the loop waits for"),
}  # fmt: skip
"""By the kinds of `ptxlint.dynamic.emulator.device.Fault`."""


def findings(
    faults: list[Fault],
    module: Module,
    kernel: Function,
    bound: Bound | None,
    places: Places,
    numbers: Fingerprints,
) -> list[Finding]:
    """One finding for all faults of a kind at a line of the source, with a CTA and thread that did
    it as its witness: the first in the order of CTAs."""
    launch = None if bound is None else launch_to_dict(bound)
    out = []
    for fault in _by_line(faults, places):
        kind = KINDS[fault.kind]
        ctaid, tid = (", ".join(map(str, part)) for part in (fault.ctaid, fault.tid))
        more = f" ({fault.lanes:,} times)" if fault.lanes > 1 else ""
        message = f"program ({ctaid}), thread ({tid}) {fault.message}{more}"
        out.append(
            Finding(
                kind.rule,
                kind.name,
                kind.severity,
                "high",
                kind.family,
                message,
                kernel.name,
                module.arch,
                places.of(fault.instr),
                help=kind.help,
                witness={
                    "ctaid": list(fault.ctaid),
                    "tid": list(fault.tid),
                    "values": fault.values,
                },
                fingerprint=numbers.next(kind.rule, kernel.name, fault.instr.shape.mnemonic),
                launch=launch,
            )
        )
    return out


def _by_line(faults: list[Fault], places: Places) -> list[Fault]:
    """The faults, those of one kind at one line of the source as one."""
    groups: dict[object, Fault] = {}
    for fault in faults:
        source = places.of(fault.instr).source
        key = fault.kind, fault.instr if source is None else (source.path, source.line)
        old = groups.get(key)
        if old is None:
            groups[key] = fault
        else:
            first = min(old, fault, key=lambda f: (f.ctaid[::-1], f.tid[::-1]))
            groups[key] = first._replace(lanes=old.lanes + fault.lanes)
    return list(groups.values())


__all__ = ["KINDS", "Kind", "findings"]
