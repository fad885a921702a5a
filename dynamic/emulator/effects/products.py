"""Products of matrices that a warp holds in registers (PTX ISA, "mma").

Products of elements are exact and the sum over k, the accumulator included, is made in float64 and
rounded once to the accumulator's type. The device's order of sums is not specified: results of
floating-point types may differ from its by the rounding of a sum of k products.

Instructions of one form that do not need each other's results are run as one: most of what a
product of small matrices costs is numpy's calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader
from ptxlint.dynamic.emulator.effects.matrix import (
    Fragment,
    as_numbers,
    fragment_a,
    fragment_b,
    fragment_c,
    rounded,
)
from ptxlint.dynamic.emulator.effects.memory import elements
from ptxlint.dynamic.emulator.formats import RAW, Array, raw
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.meeting import warp_meeting
from ptxlint.dynamic.emulator.operands import Writer, reader, writer
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_NARROW: Final = ("b1", "u4", "s4", "e2m1", "e2m3", "e3m2")
"""Elements of less than a byte, also those that lie in a byte each."""
Order = NDArray[np.intp]
"""Which of a warp's elements (by lane, then by element of the lane) come one after the other."""


class Form(NamedTuple):
    """What products that are made together have in common: extents, and the types of the result,
    of both factors and of what is added."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]
    saturates: bool

    @property
    def word(self) -> int:
        """The width of the registers."""
        return 64 if self.types[0] == "f64" else 32

    @property
    def orders(self) -> tuple[Order, Order, Order]:
        """Of the factors' elements as rows of the matrices; of the result's as lanes hold them."""
        width = 32 if self.types[1] == "tf32" else bits(self.types[1])
        left, right = fragment_a(self.m, self.k, width), fragment_b(self.k, self.n, width)
        result = fragment_c(self.m, self.n)
        places: Order = (result.rows * self.n + result.columns).ravel()
        return _by_place(left, self.m, self.k), _by_place(right, self.k, self.n), places


def _by_place(fragment: Fragment, rows: int, columns: int) -> Order:
    out = np.empty((rows, columns), dtype=np.intp)
    out[fragment.rows, fragment.columns] = np.arange(fragment.rows.size).reshape(WARP, -1)
    return out.ravel()


def form(instr: Instr) -> Form:
    """The form of an `mma`. Raises `UnsupportedError`."""
    shape = instr.shape
    found = next((m for m in map(_SHAPE.fullmatch, shape.modifiers) if m), None)
    types = shape.types
    if any(word.partition("::")[0] == "sp" for word in shape.modifiers):
        raise UnsupportedError(instr, "mma of sparse matrices")
    if found is None or len(types) != 4 or shape.has("block_scale"):
        raise UnsupportedError(instr, "this form of mma")
    unfit = next((name for name in types[1:3] if name in _NARROW), None)
    if unfit is not None:
        raise UnsupportedError(instr, f"mma of {unfit}")
    m, n, k = (int(x) for x in found.groups())
    return Form(m, n, k, (types[0], types[1], types[2], types[3]), shape.has("satfinite"))


class Factors:
    """The different left or right factors of some products: what several use is read once."""

    def __init__(self, frame: Frame, instrs: Sequence[Instr], at: int, found: Form) -> None:
        self._kind, self._word = found.types[at], found.word
        self._order = found.orders[at - 1]
        self._extents = (found.m, found.k) if at == 1 else (found.k, found.n)
        distinct: dict[Operand, list[Reader]] = {}
        self.used: list[int] = []
        """By instruction, which one it uses."""
        for instr in instrs:
            operand = instr.operands[at]
            if operand not in distinct:
                distinct[operand] = _words(frame, instr, operand, found)
            self.used.append(list(distinct).index(operand))
        self._reads = list(distinct.values())

    def __len__(self) -> int:
        return len(self._reads)

    def matrices(self, batch: Batch) -> Array:
        """All of them in float64: factors, CTAs, warps, rows, columns."""
        words = _stacked(batch, self._reads, self._word)
        width = 32 if self._kind == "tf32" else bits(self._kind)
        parts = words if width >= 32 else words.view(RAW[width])
        warps = parts.reshape(*words.shape[:2], -1, WARP * parts.shape[-1])
        found = as_numbers(warps.take(self._order, axis=-1), self._kind)
        return found.astype(np.float64, copy=False).reshape(*warps.shape[:3], *self._extents)


def _words(frame: Frame, instr: Instr, operand: Operand, found: Form) -> list[Reader]:
    return [reader(frame, instr, part, f"b{found.word}") for part in elements(operand)]


def _stacked(batch: Batch, reads: list[list[Reader]], width: int) -> Array:
    """Registers of all lanes of whole warps: fragments, CTAs, lanes, words."""
    ctas, threads = batch.shape
    spare = -threads % WARP
    out = (np.zeros if spare else np.empty)(
        (len(reads), ctas, threads + spare, len(reads[0])), RAW[width]
    )
    for at, words in enumerate(reads):
        for word, read in enumerate(words):
            out[at, :, :threads, word] = read(batch)
    return out


def products(frame: Frame, instrs: Sequence[Instr]) -> Waiting:
    """Products of one form, none of which writes what another one reads or writes."""
    found = form(instrs[0])
    left, right = Factors(frame, instrs, 1, found), Factors(frame, instrs, 2, found)
    order = found.orders[2]
    added = [_words(frame, instr, instr.operands[3], found) for instr in instrs]
    writes = [
        [writer(frame, instr, part, f"b{found.word}") for part in elements(instr.operands[0])]
        for instr in instrs
    ]
    # All that share a factor of the kind of which there are fewer are multiplied at once.
    is_by_left = len(left) <= len(right)
    shared, others = (left.used, right.used) if is_by_left else (right.used, left.used)
    parts = [
        (at, [i for i, one in enumerate(shared) if one == at]) for at in range(max(shared) + 1)
    ]

    def step(batch: Batch, mask: Mask) -> None:
        first, second = left.matrices(batch), right.matrices(batch)
        for at, chosen in parts:
            if is_by_left:
                total = first[at] @ _of(second, [others[i] for i in chosen])
            else:
                total = _of(first, [others[i] for i in chosen]) @ second[at]
            words = _stacked(batch, [added[i] for i in chosen], found.word)
            sums = _sums(total, words, order, found)
            _deliver(batch, sums, [writes[i] for i in chosen], mask, found.word)

    return warp_meeting(step, None, is_whole=True)


def _of(matrices: Array, chosen: list[int]) -> Array:
    """Some of the matrices; a view where they follow each other."""
    first = chosen[0]
    if chosen == list(range(first, first + len(chosen))):
        return matrices[first : first + len(chosen)]
    return matrices[chosen]


def _sums(total: Array, words: Array, order: Order, found: Form) -> Array:
    """Products and what is added to them, rounded, as lanes hold them: products, CTAs, lanes,
    elements."""
    kind, added = found.types[0], found.types[3]
    flat = total.reshape(*total.shape[:3], -1).take(order, axis=-1)
    parts = words if bits(added) >= 32 else words.view(RAW[bits(added)])
    numbers = as_numbers(parts, added)
    return rounded(flat.reshape(numbers.shape), numbers, kind, found.saturates)


def _deliver(batch: Batch, sums: Array, writes: list[list[Writer]], mask: Mask, width: int) -> None:
    words = raw(sums).view(RAW[width])[:, :, : batch.threads]
    registers = np.ascontiguousarray(np.moveaxis(words, -1, 1))
    for one, targets in zip(registers, writes, strict=True):
        for bits_, write in zip(one, targets, strict=True):
            write(batch, bits_, mask)


def _mma(frame: Frame, instr: Instr) -> Waiting:
    return products(frame, [instr])


WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {"mma": _mma}


__all__ = ["WAITING", "Form", "form", "products"]
