"""Labels through the matrix instructions of a warpgroup.

The criterion is that of `mma`: the product is made once more with zeros for what is labelled of the
factors, in registers and in shared memory alike. Where the accumulator comes out the same, its
label is that of what was added to; elsewhere it is labelled. A sum that starts anew forgets the
label of what it replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.formats import RAW, Array
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.labels.movement import muted, registers, swapped
from ptxlint.dynamic.emulator.operands import reader
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits


def multiplied(
    batch: Batch,
    frame: Frame,
    instr: Instr,
    step: Step,
    mask: Mask,
    labels: Mapping[int, Array],
    shared: NDArray[np.uint8] | None,
) -> dict[int, Array | None]:
    """Run a `wgmma` that multiplies; the labels of its accumulators in the lanes of the mask, by
    register. `labels` are those of registers before it, `shared` those of shared memory."""
    target, a, _, scale = instr.operands[:4]
    columns = [frame.number(register) for register in registers(target)]
    cleared: dict[int, Array | None] = {}
    for register in registers(a):
        label = labels.get(frame.number(register))
        if label is not None:
            word = batch.value(frame.number(register), bits(register.type))
            cleared[frame.number(register)] = word & ~label
    if shared is not None and not shared.any():
        shared = None
    adds = reader(frame, instr, scale, "pred")(batch)
    added = {
        number: np.where(adds, labels[number], labels[number].dtype.type(0))
        for number in columns
        if number in labels
    }
    if not cleared and shared is None:
        step(batch, mask)
        return {number: added.get(number) for number in columns}
    before = {number: batch.registers[number] for number in columns}
    with swapped(batch, {**before, **cleared}), _without(batch, shared):
        step(batch, mask)
        others = [batch.registers[number] for number in columns]
    step(batch, mask)
    width = 16 if instr.shape.types[0] == "f16" else 32
    return {
        number: _differing(batch.value(number, 32), other, added.get(number), width)
        for number, other in zip(columns, others, strict=True)
    }


@contextmanager
def _without(batch: Batch, shared: NDArray[np.uint8] | None) -> Iterator[None]:
    """Zeros for what is labelled in shared memory, for a while in which nothing is reported and
    after which accumulators are known as before."""
    bytes_, known = batch.shared, dict(batch.accumulators)
    if shared is not None:
        batch.shared = bytes_ & ~shared
    try:
        with muted(batch):
            yield
    finally:
        batch.shared, batch.accumulators = bytes_, known


def _differing(word: Array, other: Array | None, label: Array | None, width: int) -> Array:
    """The label of a sum: everywhere in its parts that differ from the other sum."""
    kind = RAW[width]
    if other is None:
        other = np.zeros((1, 1), dtype=word.dtype)
    word, other = (np.ascontiguousarray(x) for x in np.broadcast_arrays(word, other))
    parts = np.where(word.view(kind) != other.view(kind), kind.type(np.iinfo(kind).max), 0)
    differs: Array = parts.astype(kind).view(word.dtype)
    return differs if label is None else differs | label


__all__ = ["multiplied"]
