"""Verdicts on masks, held to where padding gets.

The run-time criterion of the family tail-mask: what guarded loads leave in lanes beyond the end
is labelled, labels follow values (`ptxlint.dynamic.emulator.labels`), and no store may write a
labelled value. Labelled are the loads whose masks are called *proved* (then a leak contradicts),
or, on their own, those that are called *refuted* (then a launch with a tail should leak).
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.dataflow.padding import PaddingAnalysis
from ptxlint.dynamic.emulator.inputs import Inputs
from ptxlint.dynamic.emulator.labels.padding.tracker import Leak
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.run import Emulator, Padding
from ptxlint.engine.analyse import find_arch
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.launch.binding import bind
from ptxlint.launches import Launch

_TURNS = 20_000


class Said(NamedTuple):
    """What the static half says of a kernel's masks: the instructions of guarded loads, by verdict
    on the load of the source that they are part of."""

    proved: frozenset[int]
    refuted: frozenset[int]
    open: frozenset[int]


def said(emulator: Emulator, metadata: KernelMetadata | None) -> Said:
    """The verdicts on all masks of a kernel."""
    module, kernel = emulator.module, emulator.kernel
    facts = Facts(module, kernel, find_arch(module.arch), metadata)
    sites: dict[str, set[int]] = {"proved": set(), "refuted": set(), "open": set()}
    for verdict in facts.get(PaddingAnalysis).verdicts:
        sites[verdict.status] |= {site.instr.index for site in verdict.sites}
    # A load that is part of several stands for its worst verdict.
    proved = sites["proved"] - sites["refuted"] - sites["open"]
    refuted = sites["refuted"]
    return Said(frozenset(proved), frozenset(refuted), frozenset(sites["open"] - refuted))


def leaks(
    emulator: Emulator,
    launch: Launch,
    metadata: KernelMetadata | None,
    inputs: Inputs,
    sites: frozenset[int],
) -> tuple[Leak, ...]:
    """The stores by which padding of some loads leaves a launch.

    Raises `BindingError`, `InputError` or `UnsupportedError` where it cannot be run.
    """
    bound = bind(emulator.kernel, launch, {}, metadata)
    ran = run_launch(emulator, bound, inputs, most_turns=_TURNS, padding=Padding(sites))
    found: tuple[Leak, ...] = ran.outcome.leaks
    return found


__all__ = ["Said", "leaks", "said"]
