"""The labels of one batch, kept beside its registers and memory while it runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Lanes
from ptxlint.dynamic.emulator.batch import Batch, Mask, Step, holds, without
from ptxlint.dynamic.emulator.effects.copies import amount_read
from ptxlint.dynamic.emulator.effects.memory import spaces
from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.labels.bulk import copied, stored
from ptxlint.dynamic.emulator.labels.movement import (
    everywhere,
    moved_registers,
    muted,
    registers,
    swapped,
    zeros,
)
from ptxlint.dynamic.emulator.labels.padding.computation import Operand as Read
from ptxlint.dynamic.emulator.labels.padding.computation import (
    bitwise,
    narrowed_or_widened,
    outcome,
    packed,
    permuted,
    united,
)
from ptxlint.dynamic.emulator.labels.padding.warpgroup import multiplied
from ptxlint.dynamic.emulator.operands import address, guard, literal, reader
from ptxlint.dynamic.emulator.semantics import Lanewise, UnsupportedError, lanewise
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame
    from ptxlint.dynamic.emulator.program import Segment

_PASSED_BY: Final = frozenset(("bar", "barrier", "membar", "fence", "prefetch", "nanosleep"))
_IN_BULK: Final = {"cp": "bulk", "st": "async", "red": "async"}
"""What is waited for at an mbarrier or by groups, by a word of its form."""


class Leak(NamedTuple):
    """Labelled values stored to global memory: by which instruction, in so many lanes, the first
    of them."""

    instr: Instr
    lanes: int
    ctaid: tuple[int, int, int]
    thread: int


class Labels:
    """Which bytes hold padding, and where they get out.

    Padding is what guarded loads leave in lanes whose guard does not hold, of the loads `sites` (by
    the index of their instruction; None: of all). `leaks` fills while the batch runs.
    """

    def __init__(self, batch: Batch, sites: Collection[int] | None) -> None:
        self._batch = batch
        self._sites = sites
        self._of: dict[int, Array] = {}
        """Labels by register; those that are not here have none."""
        self._shared: NDArray[np.uint8] | None = None
        self._local: NDArray[np.uint8] | None = None
        self.leaks: dict[int, Leak] = {}

    def around(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> None:
        """Run a step, and hand labels on as it does values."""
        opcode = instr.opcode
        if opcode in _PASSED_BY:
            step(self._batch, mask)
            return
        if instr.shape.row.is_call:
            raise UnsupportedError(instr, "labels are not followed through this")
        held = guard(frame, instr)
        inner = mask if held is None else held(self._batch, mask)
        if opcode in _IN_BULK and instr.shape.has(_IN_BULK[opcode]):
            self._in_bulk(frame, instr, step, mask, inner)
            return
        if opcode in ("st", "red", "atom") and instr.shape.space not in ("shared", "local"):
            self._leave(frame, instr, inner)
        if opcode == "cp":
            self._copied(frame, instr, step, mask, inner)
        elif opcode in ("ld", "ldmatrix"):
            self._loaded(frame, instr, step, mask, inner)
        elif opcode == "mma":
            self._multiplied(frame, instr, step, mask, inner)
        elif opcode == "wgmma" and instr.shape.has("mma_async"):
            found = multiplied(self._batch, frame, instr, step, mask, self._of, self._shared)
            for number, label in found.items():
                self._give(number, label, inner)
        else:
            self._computed(frame, instr, step, mask, inner)

    def end(self, segment: Segment, mask: Mask) -> None:
        """Padding decides on no branch that is told."""

    # Values -----------------------------------------------------------------------------------
    def _label(self, frame: Frame, register: Register) -> Array | None:
        return self._of.get(frame.number(register))

    def _give(self, number: int, label: Array | None, mask: Mask) -> None:
        """A register's label in the lanes of a mask; None for no label."""
        old = self._of.get(number)
        if label is not None and not label.any():
            label = None
        if mask is None:
            if label is None:
                self._of.pop(number, None)
            else:
                self._of[number] = label
            return
        if old is None and label is None:
            return
        kind = (label if label is not None else old).dtype  # type: ignore[union-attr]
        none = np.zeros((1, 1), dtype=kind)
        new = np.where(mask, none if label is None else label, none if old is None else old)
        if new.any():
            self._of[number] = new
        else:
            self._of.pop(number, None)

    def _clear(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        for register in instr.defs:
            if frame.number(register) in self._of:
                self._give(frame.number(register), None, mask)

    def _computed(self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask) -> None:
        """A step that reads and writes registers, or moves bytes to memory."""
        batch = self._batch
        used = [r for r in instr.uses if frame.number(r) in self._of]
        if not used and not (instr.opcode in ("st", "stmatrix") and self._has_memory(instr)):
            step(batch, mask)
            self._clear(frame, instr, inner)
            return
        moved = moved_registers(instr)
        if moved is not None:
            step_words = {frame.number(r): batch.registers[frame.number(r)] for r in instr.uses}
            step(batch, mask)
            self._replay(frame, instr, step, mask, inner, moved, step_words)
            return
        found = lanewise(instr)
        if found is None:
            # Nothing computes it: what comes from other lanes or memory has no label here.
            step(batch, mask)
            self._clear(frame, instr, inner)
            return
        operands = [
            self._operand(frame, instr, operand, kind)
            for operand, kind in zip(instr.operands[1:], found.sources, strict=True)
        ]
        step(batch, mask)
        if not holds(inner):
            return
        for register in instr.defs:
            number = frame.number(register)
            word = batch.registers[number]
            if word is not None:
                label = self._result(instr, found, operands, register, word)
                self._give(number, label, inner)

    def _operand(self, frame: Frame, instr: Instr, operand: Operand, kind: str) -> Read:
        """An operand before the step."""
        values = reader(frame, instr, operand, kind)(self._batch)
        if isinstance(operand, Negated):
            operand = operand.operand
        if not isinstance(operand, Register):
            return Read(values, None, True)
        return Read(values, self._of.get(frame.number(operand)), False)

    def _result(
        self, instr: Instr, found: Lanewise, operands: list[Read], register: Register, word: Array
    ) -> Array | None:
        opcode, first = instr.opcode, operands[0].label
        if opcode == "cvt" and instr.shape.types[0].endswith("x2") and word.dtype.itemsize > 1:
            return packed(instr, operands, word)
        if opcode == "selp":
            return _selected(operands, register)
        if opcode == "prmt":
            return permuted(found, operands)
        if opcode in ("and", "or", "xor") and not any(o.is_literal for o in operands):
            return united(operands, word)
        if first is not None:
            if opcode in ("and", "shl", "shr") and operands[1].is_literal:
                number = fold(instr.operands[2])
                label = None if number is None else bitwise(instr, first, number)
                if label is not None and label.dtype == word.dtype:
                    return label
            types = instr.shape.types
            if opcode == "cvt" and all(t[0] in "su" for t in types):
                return narrowed_or_widened(instr, first, 8 * word.dtype.itemsize)
        return outcome(instr, found, operands, word)

    def _replay(
        self,
        frame: Frame,
        instr: Instr,
        step: Step,
        mask: Mask,
        inner: Mask,
        moved: list[Register],
        words: dict[int, Array | None],
    ) -> None:
        """Run a step once more on labels in place of what it moves."""
        batch = self._batch
        own: dict[int, Array | None] = dict(words)
        for register in moved:
            label = self._label(frame, register)
            own[frame.number(register)] = zeros(register) if label is None else label
        targets = [frame.number(r) for r in instr.defs]
        results = {number: batch.registers[number] for number in targets}
        with swapped(batch, {**results, **own}), self._memory(instr):
            with muted(batch):
                step(batch, mask)
            labels = {number: batch.registers[number] for number in targets}
        for register in instr.defs:
            number = frame.number(register)
            if bits(register.type) > 1:
                self._give(number, labels[number], inner)

    # Memory -----------------------------------------------------------------------------------
    def _has_memory(self, instr: Instr) -> bool:
        """True if the memory of a CTA or lane that an instruction touches has labels."""
        return (self._local if instr.shape.space == "local" else self._shared) is not None

    def _memory(self, instr: Instr) -> _Swapped:
        """Labels of memory in place of its bytes for a while."""
        if instr.shape.space == "local":
            if self._local is None:
                self._local = np.zeros_like(self._batch.local)
            return _Swapped(self._batch, "_local", self._local)
        if self._shared is None:
            self._shared = np.zeros_like(self._batch.shared)
        return _Swapped(self._batch, "shared", self._shared)

    def _loaded(self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask) -> None:
        batch = self._batch
        words = {frame.number(r): batch.registers[frame.number(r)] for r in instr.uses}
        step(batch, mask)
        space = instr.shape.space
        if instr.opcode == "ldmatrix" or space in ("shared", "local"):
            if self._has_memory(instr):
                self._replay(frame, instr, step, mask, inner, [], words)
            else:
                self._clear(frame, instr, inner)
            return
        if holds(inner):
            self._clear(frame, instr, inner)
        if instr.guard is None or (self._sites is not None and instr.index not in self._sites):
            return
        off = _beside(mask, inner)
        if off is not None and off.any():
            for register in registers(instr.operands[0]):
                self._give(frame.number(register), everywhere(register), off)

    def _copied(self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask) -> None:
        """`cp.async`: bytes beyond those that are read are padding."""
        batch = self._batch
        step(batch, mask)
        if len(instr.operands) < 3 or not holds(inner):
            return
        lanes = Lanes(batch, None if inner is None else inner)
        width = literal(instr.operands[2], "u32")
        assert width is not None
        count = int(width.item())
        amount = np.full(len(lanes.index), count)
        given = amount_read(frame, instr, count)
        if given is not None:
            amount = lanes.pick(given(batch)).astype(np.int64)
        is_site = self._sites is None or instr.index in self._sites
        if self._shared is None:
            if not is_site or (amount == count).all():
                return
            self._shared = np.zeros_like(batch.shared)
        start = lanes.pick(address(frame, instr, instr.operands[0])(batch))
        start = start + lanes.cta * batch.shared_stride
        beyond = np.arange(count) >= amount[:, None]
        label = np.where(beyond & is_site, np.uint8(255), np.uint8(0))
        at = np.clip(start[:, None] + np.arange(count), 0, len(self._shared) - 1)
        self._shared[at] = label

    def _in_bulk(self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask) -> None:
        """Copies and stores that an mbarrier or a group of copies waits for."""
        batch = self._batch
        step(batch, mask)
        is_site = self._sites is None or instr.index in self._sites
        is_used = any(frame.number(r) in self._of for r in instr.uses)
        if not holds(inner) or (self._shared is None and not is_site and not is_used):
            return
        with self._memory(instr), muted(batch):
            if instr.opcode != "cp":
                stored(batch, frame, instr, inner, self._of)
                return
            flags = copied(batch, frame, instr, inner, is_site)
        if flags is not None:
            self._note(instr, flags)

    def _multiplied(self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask) -> None:
        """`mma`: where the product is the same with zeros for what is labelled, the label is that
        of what is added."""
        batch = self._batch
        factors = [*registers(instr.operands[1]), *registers(instr.operands[2])]
        added = registers(instr.operands[3])
        before = {frame.number(r): batch.registers[frame.number(r)] for r in instr.uses}
        cleared: dict[int, Array | None] = {}
        for register in factors:
            number = frame.number(register)
            label = self._of.get(number)
            if label is not None:
                cleared[number] = batch.value(number, bits(register.type)) & ~label
        old = [self._label(frame, register) for register in added]
        step(batch, mask)
        results = [batch.registers[frame.number(r)] for r in instr.defs]
        others: list[Array | None] = list(results)
        if cleared:
            own = {**{frame.number(r): batch.registers[frame.number(r)] for r in instr.defs},
                   **before, **cleared}  # fmt: skip
            with swapped(batch, own):
                step(batch, mask)
                others = [batch.registers[frame.number(r)] for r in instr.defs]
        for register, result, other, label in zip(
            instr.defs, results, others, [*old, *[None] * len(instr.defs)], strict=False
        ):
            none = zeros(register)
            word = none if label is None else label
            if result is not None and other is not None and cleared:
                word = np.where(result != other, everywhere(register), word)
            self._give(frame.number(register), word, inner)

    # Leaks ------------------------------------------------------------------------------------
    def _leave(self, frame: Frame, instr: Instr, inner: Mask) -> None:
        """Labelled values that are stored to global memory."""
        found = [self._label(frame, r) for o in instr.operands[1:] for r in registers(o)]
        stored = (1 << bits(instr.shape.type)) - 1
        labels = [_part(label, stored) != 0 for label in found if label is not None]
        if labels and holds(inner):
            flags: Flags = self._batch.lanes(inner) & np.logical_or.reduce(
                np.broadcast_arrays(*labels)
            )
            if not instr.shape.space:
                flags = flags & self._is_global(frame, instr)
            if flags.any():
                self._note(instr, flags)

    def _is_global(self, frame: Frame, instr: Instr) -> Flags:
        """The lanes whose generic address is one of global memory."""
        batch = self._batch
        at = 1 if instr.opcode == "atom" else 0
        lanes = Lanes(batch, None)
        where = lanes.pick(address(frame, instr, instr.operands[at])(batch))
        flags = np.zeros(batch.shape, dtype=bool)
        for space, inside, _ in spaces("", where):
            if space == "global":
                flags |= inside.reshape(batch.shape)
        return flags

    def _note(self, instr: Instr, flags: Flags) -> None:
        count = int(flags.sum())
        old = self.leaks.get(instr.index)
        if old is not None:
            self.leaks[instr.index] = old._replace(lanes=old.lanes + count)
            return
        cta, thread = (int(x) for x in np.argwhere(flags)[0])
        self.leaks[instr.index] = Leak(instr, count, self._batch.ctas[cta], thread)


def _part(label: Array, stored: int) -> Array:
    """What a label has in the lower bits that are stored of a wider register."""
    if label.dtype.kind == "b" or stored >= np.iinfo(label.dtype).max:
        return label
    part: Array = label & label.dtype.type(stored)
    return part


def _selected(operands: list[Read], register: Register) -> Array:
    """The label of what is chosen; if the choice itself is labelled, of one between two numbers
    that differ."""
    chosen, other, predicate = operands
    none = zeros(register)
    label = np.where(
        predicate.values,
        none if chosen.label is None else chosen.label,
        none if other.label is None else other.label,
    )
    if predicate.label is None:
        return label
    differs = predicate.label & (chosen.values != other.values)
    return np.where(differs, everywhere(register), label)


class _Swapped:
    """One memory of a batch that is another array for a while."""

    def __init__(self, batch: Batch, name: str, array: NDArray[np.uint8]) -> None:
        self._batch, self._name, self._array = batch, name, array
        self._before: object = None

    def __enter__(self) -> None:
        self._before = getattr(self._batch, self._name)
        setattr(self._batch, self._name, self._array)

    def __exit__(self, *error: object) -> None:
        setattr(self._batch, self._name, self._before)


def _beside(mask: Mask, inner: Mask) -> Flags | None:
    """The lanes of a mask that are not in another one; None if there are none."""
    if inner is None or inner is mask:
        return None
    found: Flags | None = without(mask, inner)
    return found


__all__ = ["Labels", "Leak"]
