"""NaN and infinities that are made of finite numbers and get to global memory.

A label is a byte for each byte of a register, and of shared memory, with a bit for each maker
(`makers`). Computations hand it on as long as what comes out is not finite; moves, shuffles and
shared memory as they move bytes. What kernels make and throw away again, as (-inf) - (-inf) in rows
that are masked, does no harm and is not told: only what is stored is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader, Step, holds
from ptxlint.dynamic.emulator.effects.exchange import groups
from ptxlint.dynamic.emulator.effects.exchange import lanes as by_lanes
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags
from ptxlint.dynamic.emulator.labels import bulk
from ptxlint.dynamic.emulator.labels.movement import moved_registers, registers, replaying
from ptxlint.dynamic.emulator.operands import address, guard, reader
from ptxlint.dynamic.emulator.sanitizer.makers import Makers
from ptxlint.dynamic.emulator.sanitizer.not_finite import (
    NotFinite,
    is_floating,
    may_be_not_finite,
    not_finite,
)
from ptxlint.dynamic.emulator.semantics import Lanewise, lanewise
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register, Vector
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame

_PASSED_BY: Final = frozenset(
    ("bar", "barrier", "membar", "fence", "prefetch", "nanosleep", "mbarrier", "setp", "elect",
     "vote", "match", "setmaxnreg", "griddepcontrol")
)  # fmt: skip
_OWN_MEMORY: Final = ("shared", "shared::cta", "local")


class _Computation(NamedTuple):
    """An instruction whose result is a floating-point number: its type, register and operands,
    each with its own register if it is one."""

    kind: str
    number: int
    sources: tuple[tuple[str, Reader, int | None], ...]


class NonFinite:
    """Follows what one batch makes of finite numbers that is not finite."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._makers = Makers(batch)
        self._of: dict[int, Array] = {}
        """Labels by register; those that are not here have none."""
        self._shared: NDArray[np.uint8] | None = None
        self._known: dict[tuple[int, Instr], _Computation | None] = {}

    def follow(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> Iterator[None]:
        """See `ptxlint.dynamic.emulator.labels.following.Follower`."""
        opcode = instr.opcode
        if opcode in _PASSED_BY:
            yield
            return
        held = guard(frame, instr)
        inner = mask if held is None else held(self._batch, mask)
        if not holds(inner):
            yield
            return
        if opcode in ("st", "red", "atom") and instr.shape.space not in _OWN_MEMORY:
            self._store(frame, instr, inner)
        if opcode in ("mma", "wgmma"):
            yield from self._multiplied(frame, instr, inner)
        elif opcode == "cp":
            yield
            self._copied(frame, instr, inner)
        elif self._is_moved(frame, instr):
            yield from self._moved(frame, instr, step, mask, inner)
        else:
            found = self._computation(frame, instr)
            if found is not None:
                yield from self._computed(instr, found, inner)
            else:
                yield from self._rest(frame, instr, inner)

    def arrive(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        """Where lanes part or wait nothing is made."""

    # Labels -----------------------------------------------------------------------------------
    def _give(self, number: int, label: Array | None, mask: Mask) -> None:
        """A register's label in the lanes of a mask; None for no label."""
        old = self._of.get(number)
        if label is not None and not label.any():
            label = None
        if mask is None or (label is None and old is None):
            if label is None:
                self._of.pop(number, None)
            else:
                self._of[number] = label
            return
        none = np.zeros((1, 1), dtype=(label if label is not None else old).dtype)  # type: ignore[union-attr]
        new = np.where(mask, none if label is None else label, none if old is None else old)
        if new.any():
            self._of[number] = new
        else:
            self._of.pop(number, None)

    def _clear(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        for register in instr.defs:
            if frame.number(register) in self._of:
                self._give(frame.number(register), None, mask)

    def _bits(self, number: int | None) -> Array | None:
        """By lane, the makers of what a register holds; None if there is none."""
        label = None if number is None else self._of.get(number)
        return None if label is None else _together(label)

    # Computations -----------------------------------------------------------------------------
    def _computation(self, frame: Frame, instr: Instr) -> _Computation | None:
        key = frame.base, instr
        if key not in self._known:
            found = None if instr.opcode in ("mov", "selp") else _found(instr)
            out = None
            if found is not None and is_floating(found.results[0]) and len(instr.defs) == 1:
                sources = tuple(
                    (kind, reader(frame, instr, operand, kind),
                     frame.number(operand) if isinstance(operand, Register) else None)
                    for operand, kind in zip(instr.operands[1:], found.sources, strict=True)
                    if is_floating(kind)
                )  # fmt: skip
                out = _Computation(found.results[0], frame.number(instr.defs[0]), sources)
            self._known[key] = out
        return self._known[key]

    def _computed(self, instr: Instr, found: _Computation, inner: Mask) -> Iterator[None]:
        batch = self._batch
        given = [(kind, read(batch)) for kind, read, _ in found.sources]
        labels = [self._bits(number) for _, _, number in found.sources]
        yield
        word = batch.registers[found.number]
        assert word is not None
        result = _seen(word, found.kind, inner)
        if result is None:
            self._give(found.number, None, inner)
            return
        operands = [not_finite(values, kind) for kind, values in given]
        inherited = _inherited(operands, labels)
        made = _made(result, operands)
        own = batch.lanes(inner) & made & (inherited == 0)
        label = np.where(result.either, inherited, np.uint8(0))
        if own.any():
            bit = self._makers.note(instr, own, result.nan, tuple(given))
            label = np.where(own, np.uint8(bit), label)
        self._give(found.number, _spread(label, word), inner)

    def _rest(self, frame: Frame, instr: Instr, inner: Mask) -> Iterator[None]:
        """What only handles bits: a choice hands on the label of what is chosen, all others those
        of all operands. What comes from elsewhere has none."""
        labels = [self._bits(frame.number(r)) for r in instr.uses]
        found = None if all(label is None for label in labels) else _found(instr)
        choice = None
        if found is not None and instr.opcode == "selp":
            choice = reader(frame, instr, instr.operands[3], "pred")(self._batch)
        yield
        if found is None:
            self._clear(frame, instr, inner)
            return
        if choice is not None:
            first, second = (
                self._bits(frame.number(o)) if isinstance(o, Register) else None
                for o in instr.operands[1:3]
            )
            none = np.zeros((1, 1), dtype=np.uint8)
            united = np.where(
                choice, none if first is None else first, none if second is None else second
            )
        else:
            united = _union(labels)
        for register in instr.defs:
            if bits(register.type) > 1:
                number = frame.number(register)
                self._give(number, _spread(united, self._word(register, frame)), inner)

    def _word(self, register: Register, frame: Frame) -> Array:
        return self._batch.value(frame.number(register), bits(register.type))

    # Moves ------------------------------------------------------------------------------------
    def _is_moved(self, frame: Frame, instr: Instr) -> bool:
        """True for what moves bytes of which some may have a label."""
        opcode, space = instr.opcode, instr.shape.space
        has_memory = self._shared is not None
        if opcode in ("ld", "ldmatrix"):
            return has_memory and (opcode == "ldmatrix" or space in ("shared", "shared::cta"))
        moved = moved_registers(instr)
        if moved is None or space == "local":
            return False
        if opcode in ("st", "stmatrix") and has_memory:
            return True
        return any(frame.number(register) in self._of for register in moved)

    def _moved(
        self, frame: Frame, instr: Instr, step: Step, mask: Mask, inner: Mask
    ) -> Iterator[None]:
        """Run a step once more on labels in place of what it moves."""
        batch = self._batch
        if self._shared is None and instr.opcode in ("st", "stmatrix"):
            self._shared = np.zeros_like(batch.shared)
        words = {frame.number(r): batch.registers[frame.number(r)] for r in instr.uses}
        for register in moved_registers(instr) or ():
            number = frame.number(register)
            label = self._of.get(number)
            none = np.zeros((1, 1), dtype=RAW[bits(register.type)])
            words[number] = none if label is None else label
        yield
        targets = [frame.number(r) for r in instr.defs]
        results = {number: batch.registers[number] for number in targets}
        with replaying(batch, {**results, **words}, self._shared):
            step(batch, mask)
            labels = {number: batch.registers[number] for number in targets}
        for register in instr.defs:
            if bits(register.type) > 1:
                self._give(frame.number(register), labels[frame.number(register)], inner)

    def _copied(self, frame: Frame, instr: Instr, inner: Mask) -> None:
        """Copies bring what has no label; of those out of shared memory labels get out."""
        if self._shared is None or len(instr.operands) < 2:
            return
        batch = self._batch
        if not instr.shape.has("bulk"):
            if instr.shape.has("mbarrier"):
                return
            lanes = batch.taking_part(inner)
            place = lanes.pick(address(frame, instr, instr.operands[0])(batch)) + lanes.shared
            at = place[:, None] + np.arange(16)
            self._shared[np.minimum(at, len(self._shared) - 1)] = 0
            return
        with replaying(batch, {}, self._shared):
            flags = bulk.copied(batch, frame, instr, inner, False)
        if flags is not None:
            per_cta = self._shared.reshape(batch.shape[0], -1)
            there = np.bitwise_or.reduce(per_cta, axis=1)[flags.any(axis=1)]
            self._makers.tell(instr, flags, int(np.bitwise_or.reduce(there)))

    # Products ---------------------------------------------------------------------------------
    def _multiplied(self, frame: Frame, instr: Instr, inner: Mask) -> Iterator[None]:
        """Products: what a warp, or warpgroup, multiplies counts for all of its results."""
        if instr.opcode == "wgmma" and not instr.shape.has("mma_async"):
            yield
            return
        batch, types = self._batch, instr.shape.types
        kinds = [_as_held(kind) for kind in (*types[1:3], types[3] if len(types) > 3 else types[0])]
        parts: list[list[Register]] = [registers(o) for o in instr.operands[1:4]]
        if instr.opcode == "wgmma":
            is_vector = isinstance(instr.operands[1], Vector)
            parts = [parts[0] if is_vector else [], [], registers(instr.operands[0])]
        given: list[tuple[str, Array, Array | None]] = [
            (kind, self._word(register, frame), self._bits(frame.number(register)))
            for kind, group in zip(kinds, parts, strict=True)
            for register in group
            if is_floating(kind)
        ]
        yield
        kind, targets = _as_held(types[0]), registers(instr.operands[0])
        results = []
        if is_floating(kind):
            results = [_seen(self._word(register, frame), kind, inner) for register in targets]
        if all(result is None for result in results):
            self._clear(frame, instr, inner)
            return
        operands = [not_finite(values, kind) for kind, values, _ in given]
        labels = [label for _, _, label in given]
        if instr.opcode == "wgmma":
            operands.append(self._in_shared(kinds))
            labels.append(self._shared_bits())
        size = WARP if instr.opcode == "mma" else 4 * WARP
        inherited = self._by_group(_inherited(operands, labels), size, np.bitwise_or)
        foreign = self._by_group(_foreign(operands, labels), size, np.logical_or)
        inherited = np.where(foreign, np.uint8(0), inherited)
        nan, infinite = (
            self._by_group(_any(operands, name), size, np.logical_or)
            for name in ("nan", "infinite")
        )
        shared = [NotFinite(nan, infinite)]
        for register, result in zip(targets, results, strict=True):
            word = self._word(register, frame)
            if result is None:
                self._give(frame.number(register), None, inner)
                continue
            own = batch.lanes(inner) & _made(result, [*shared]) & (inherited == 0)
            label = np.where(result.either, inherited, np.uint8(0))
            if own.any():
                bit = self._makers.note(instr, own, result.nan, ())
                label = np.where(own, np.uint8(bit), label)
            self._give(frame.number(register), _spread(label, word), inner)

    def _in_shared(self, kinds: list[str]) -> NotFinite | None:
        """Where the shared memory of a CTA holds what is not finite: any of it may be a factor."""
        batch = self._batch
        rows = batch.shared.reshape(batch.shape[0], -1)
        found = [not_finite(_words(rows, kind), kind) for kind in kinds[:2] if is_floating(kind)]
        some = [one for one in found if one is not None]
        if not some:
            return None
        nan, infinite = (
            np.logical_or.reduce([getattr(one, name).any(axis=1, keepdims=True) for one in some])
            for name in ("nan", "infinite")
        )
        return NotFinite(nan, infinite)

    def _shared_bits(self) -> Array | None:
        if self._shared is None:
            return None
        rows = self._shared.reshape(self._batch.shape[0], -1)
        out: Array = np.bitwise_or.reduce(rows, axis=1, keepdims=True)
        return out

    def _by_group(self, values: Array, size: int, how: Any) -> Array:
        """What lanes of a group have together, for each of them."""
        there = groups(self._batch, self._batch.full(values), size)
        united = how.reduce(there, axis=-1, keepdims=True)
        return by_lanes(self._batch, np.broadcast_to(united, there.shape))

    # Stores -----------------------------------------------------------------------------------
    def _store(self, frame: Frame, instr: Instr, inner: Mask) -> None:
        """Labelled numbers that are stored to global memory."""
        for operand in instr.operands[1:]:
            for register in registers(operand):
                label = self._of.get(frame.number(register))
                if label is None:
                    continue
                here = self._batch.lanes(inner)
                flags = here & (label != 0) & may_be_not_finite(self._word(register, frame))
                if flags.any():
                    cta, thread = np.argwhere(flags)[0]
                    bits_ = self._batch.full(_together(label))[cta, thread]
                    self._makers.tell(instr, flags, int(bits_))


def _found(instr: Instr) -> Lanewise | None:
    return lanewise(instr)


def _as_held(kind: str) -> str:
    """The type of a register that holds a fragment: halves go in pairs."""
    return f"{kind}x2" if kind in ("f16", "bf16") else f"{kind}x4" if kind[0] == "e" else kind


def _seen(word: Array, kind: str, inner: Mask) -> NotFinite | None:
    """What of a result is not finite in the lanes of a mask."""
    width = {"f16x2": 32, "bf16x2": 32, "f32x2": 64}.get(kind)
    if width is None:
        width = bits(kind) if kind != "tf32" else 32
    found = not_finite(word.astype(RAW[width], copy=False), kind)
    if found is None or inner is None:
        return found
    return found if (found.either & inner).any() else None


def _words(rows: NDArray[np.uint8], kind: str) -> Array:
    name = kind.removesuffix("x2").removesuffix("x4")
    return rows.view(RAW[32 if name == "tf32" else bits(name)])


def _any(operands: list[NotFinite | None], name: str) -> Flags:
    out: Flags = np.zeros((1, 1), dtype=bool)
    for one in operands:
        if one is not None:
            out = out | getattr(one, name)
    return out


def _made(result: NotFinite, operands: list[NotFinite | None]) -> Flags:
    """Where a result is NaN and no operand, or an infinity and no operand is either."""
    nan, infinite = _any(operands, "nan"), _any(operands, "infinite")
    out: Flags = ~nan & (result.nan | ~infinite)
    return out & result.either


def _inherited(operands: list[NotFinite | None], labels: list[Array | None]) -> Array:
    """The makers of operands that are not finite; none where one is NaN that nobody made."""
    out: Array = np.zeros((1, 1), dtype=np.uint8)
    for one, label in zip(operands, labels, strict=True):
        if one is not None and label is not None:
            out = out | np.where(one.either, label, np.uint8(0))
    return np.where(_foreign(operands, labels), np.uint8(0), out)


def _foreign(operands: list[NotFinite | None], labels: list[Array | None]) -> Flags:
    """Where an operand is NaN that nobody made: it came with the inputs."""
    out: Flags = np.zeros((1, 1), dtype=bool)
    for one, label in zip(operands, labels, strict=True):
        if one is not None:
            out = out | (one.nan if label is None else one.nan & (label == 0))
    return out


def _union(labels: list[Array | None]) -> Array:
    out: Array = np.zeros((1, 1), dtype=np.uint8)
    for label in labels:
        if label is not None:
            out = out | label
    return out


def _together(label: Array) -> Array:
    """The bits of all bytes of a label."""
    bytes_ = np.ascontiguousarray(label)[..., None].view(np.uint8)
    out: Array = np.bitwise_or.reduce(bytes_, axis=-1)
    return out


def _spread(label: Array, word: Array) -> Array:
    """Bits in all bytes of a register like `word`."""
    kind = word.dtype
    every: Callable[[int], Any] = kind.type
    return label.astype(kind) * every((1 << 8 * kind.itemsize) // 255)


__all__ = ["NonFinite"]
