"""Where what is blank was met first, and what is told of it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.access import Addresses, Lanes
from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register


class Origin(NamedTuple):
    """A register that was read before it was written, or memory that an instruction read before
    anything was written there."""

    text: str
    instr: Instr | None = None


Origins: TypeAlias = "frozenset[Origin]"
NONE: Origins = frozenset()


def of_register(register: Register) -> Origins:
    """That nothing was written to a register."""
    return frozenset((Origin(f"{register.name}, which nothing was written to"),))


def of_memory(
    batch: Batch, instr: Instr, lanes: Lanes, space: str, where: Addresses, labels: Array
) -> Origins:
    """That an instruction read memory which nothing was written to; `labels` are those of the
    bytes read, a row a lane."""
    at = int(np.flatnonzero(labels.any(axis=1))[0])
    ctaid, thread = batch.ctas[int(lanes.cta[at])], int(lanes.thread[at])
    text = (
        f"{labels.shape[1]} bytes at {int(where[at]):#x} of {space} memory, which nothing was "
        f"written to before `{instr.shape.mnemonic}` read them (program {ctaid}, thread {thread})"
    )
    return frozenset((Origin(text, instr),))


def of_matrix(instr: Instr, space: str) -> Origins:
    """That an instruction read rows of matrices which nothing was written to."""
    text = f"{space} memory, which `{instr.shape.mnemonic}` read before all of it was written"
    return frozenset((Origin(text, instr),))


def of_absent_lanes(instr: Instr) -> Origins:
    """That an instruction took a word of a lane that did not take part."""
    return frozenset((Origin(f"a lane that takes no part in `{instr.shape.mnemonic}`", instr),))


def tell(
    batch: Batch,
    instr: Instr,
    message: str,
    flags: Flags,
    origins: Origins,
    **values: int,
) -> None:
    """Report what is done with something blank in the lanes of a mask."""
    origin = min(origins, key=lambda o: (o.instr is None, o.text), default=None)
    made = "" if origin is None else f": it is made of {origin.text}"
    batch.device.report(
        batch, instr, "uninitialised", message + made, flags,
        None if origin is None else origin.instr, **values,
    )  # fmt: skip


__all__ = [
    "NONE",
    "Origin",
    "Origins",
    "of_absent_lanes",
    "of_matrix",
    "of_memory",
    "of_register",
    "tell",
]
