"""Cases run in the emulator, watched for all that it can be watched for."""

from __future__ import annotations

from typing import NamedTuple

from defects.kit import Case
from defects.placing import parameter_bytes, placed
from ptxlint.dynamic.emulator.findings import KINDS
from ptxlint.dynamic.emulator.run import MOST_TURNS, Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.dynamic.emulator.tensor_map import TensorMap
from ptxlint.frontends.ptx import parse

TURNS = 2_000
"""After so many a run is given up for a hang."""


class Found(NamedTuple):
    """One fault: the rule, the line from 1, CTA and thread (along x), what is said, and in how many
    lanes it is so."""

    rule: str
    line: int
    program: int
    thread: int
    message: str
    lanes: int


def emulate(case: Case) -> list[Found]:
    """What is found, in the order in which it happened."""
    module = parse(case.text, f"{case.name}.ptx")
    (function,) = module.kernels()
    emulator = Emulator(module, function)
    arena, launch = emulator.arena(), case.launch
    given = placed(launch, function.params)
    allocations = [
        arena.allocate(
            f"memory {number}", tensor.values.nbytes,
            None if tensor.state == "blank" else tensor.values,
            is_read_only=tensor.state == "read_only",
        )
        for number, tensor in enumerate(given.memories)
    ]  # fmt: skip
    for tensor, allocation in zip(given.memories, allocations, strict=True):
        if tensor.state == "freed":
            arena.free(allocation)
    starts = [allocation.start for allocation in allocations]
    found = parameter_bytes(given.parameters, starts, TensorMap.encode)
    values = {v.name: data for v, data in zip(function.params, found, strict=True)}
    outcome = emulator.run(
        launch.grid, (launch.threads, 1, 1), values, arena, launch.shared,
        most_turns=TURNS if case.is_small else MOST_TURNS, sanitize=chosen("all"),
    )  # fmt: skip
    return [
        Found(
            KINDS[fault.kind].id, module.source.position(fault.instr.offset).line,
            fault.ctaid[0], fault.tid[0], fault.message, fault.lanes,
        )
        for fault in outcome.faults
    ]  # fmt: skip


__all__ = ["TURNS", "Found", "emulate"]
