"""Labels through matrix products: an element of A bears on its row of the result, one of B on its
column, one of what is added on itself.

The instruction itself says which those are, run on marks in place of numbers: NaN among zeros makes
NaN of all that it bears on, and among integers 2 among ones makes a sum of more than k.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.formats import RAW, Array, dtype
from ptxlint.dynamic.emulator.labels.blank.memory import Bytes
from ptxlint.dynamic.emulator.labels.movement import replaying
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import FLOATS, bits

_DEPTH: Final = re.compile(r"m\d+n\d+k(\d+)")
_TF32: Final = np.uint32(0xFFFFE000)
"""The bits of a word that are looked at."""


def product(
    batch: Batch,
    instr: Instr,
    step: Step,
    mask: Mask,
    factors: dict[int, Array],
    results: list[int],
    others: dict[int, Array | None],
    shared: Bytes | None,
) -> list[Array]:
    """The labels of the results' registers that the factors bear on.

    `factors` are the labels of all registers of A and B by number, `others` what else it reads as
    it was before, `shared` the labels of shared memory where a factor lies there.
    """
    kind = instr.shape.types[1]
    marks = {**others, **{n: _marks(word, kind) for n, word in factors.items()}}
    width = 64 if instr.shape.types[0] == "f64" else 32
    marks.update({number: np.zeros((1, 1), dtype=RAW[width]) for number in results})
    memory: NDArray[np.uint8] | None = None
    if shared is not None:
        memory = _marks(shared.view(RAW[_width(kind)]), kind).view(np.uint8)
    known = dict(batch.accumulators)
    batch.accumulators.clear()
    with replaying(batch, marks, shared=memory):
        step(batch, mask)
        words = [batch.value(number, width) for number in results]
    batch.accumulators = known
    return [_marked(word, instr) for word in words]


def _width(kind: str) -> int:
    return 32 if kind == "tf32" else bits(kind)


def _marks(label: Array, kind: str) -> Array:
    """Words of elements of a type: a mark for each that has a label."""
    element = RAW[_width(kind)]
    parts = np.ascontiguousarray(label).view(element)
    if kind == "tf32":
        parts = parts & _TF32
    if kind[0] in "su":
        out: Any = np.where(parts != 0, element.type(2), element.type(1))
    else:
        out = np.where(parts != 0, element.type(np.iinfo(element).max), element.type(0))
    return np.ascontiguousarray(out).view(label.dtype)


def _marked(word: Array, instr: Instr) -> Array:
    """The labels of a result's words, from what the marks came to."""
    kind = instr.shape.types[0]
    element = RAW[bits(kind)]
    parts = np.ascontiguousarray(word).view(dtype(kind))
    if kind in FLOATS:
        flags = np.isnan(parts)
    else:
        depth = next(m for m in map(_DEPTH.fullmatch, instr.shape.modifiers) if m)
        flags = parts != int(depth[1])
    ones = np.where(flags, element.type(np.iinfo(element).max), element.type(0))
    return np.ascontiguousarray(ones).view(word.dtype)


__all__ = ["product"]
