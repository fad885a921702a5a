"""What is blank in one batch: handed on as values are, and told where it decides or gets out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from ptxlint.dynamic.emulator.access import Addresses
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Step, holds
from ptxlint.dynamic.emulator.formats import Flags
from ptxlint.dynamic.emulator.labels.blank import accessing, computing
from ptxlint.dynamic.emulator.labels.blank.state import Following, Met, State
from ptxlint.dynamic.emulator.labels.movement import everywhere, registers
from ptxlint.dynamic.emulator.operands import guard
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Register
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame

_PASSED_BY: Final = frozenset(
    ("bar", "barrier", "membar", "fence", "prefetch", "prefetchu", "nanosleep", "setmaxnreg",
     "griddepcontrol", "pmevent", "applypriority", "discard")
)  # fmt: skip
_HANDLERS: Final[dict[str, Callable[[State, Met], Following]]] = {
    "mov": computing.moved, "cvta": computing.moved, "shfl": computing.shuffled,
    "vote": computing.agreed, "match": computing.agreed, "redux": computing.agreed,
    "mma": computing.multiplied, "wgmma": computing.multiplied,
    "movmatrix": computing.arranged, "ldmatrix": computing.arranged,
    "stmatrix": computing.arranged, "ld": accessing.loaded, "ldu": accessing.loaded,
    "st": accessing.stored, "atom": accessing.updated, "red": accessing.updated,
    "cp": accessing.copied,
}  # fmt: skip
_WITH_MEMORY: Final = frozenset(("ld", "ldu", "ldmatrix", "atom", "red", "cp", "wgmma"))
"""May bring labels that no register has."""
_EFFECTS: Final = frozenset(("st", "red", "atom", "cp", "mbarrier", "stmatrix", "tensormap"))
"""Do something outside of registers."""
_TOGETHER: Final = frozenset(
    ("shfl", "vote", "match", "redux", "elect", "ldmatrix", "stmatrix", "movmatrix", "mma", "wgmma",
     "tensormap")
)  # fmt: skip
"""What lanes do together, and is followed when they do."""


class Blank:
    """Follows the bits of one batch that nothing was written to."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._state = State(batch)
        batch.observer = self._observed

    def follow(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> Iterator[None]:
        """See `Follower`."""
        if instr.opcode in _PASSED_BY:
            yield
            return
        if instr.shape.row.is_call:
            yield from self._run(computing.handed, Met(frame, instr, step, mask, mask), None)
            return
        held = guard(frame, instr)
        met = Met(frame, instr, step, mask, mask if held is None else held(self._batch, mask))
        doubt = None
        known = self._state.registers
        uses = [frame.number(r) for r in instr.uses]
        if known.is_any(uses):
            doubt = self._guarded(met)
            if holds(met.inner):
                self._addressed(met)
            handler = _HANDLERS.get(instr.opcode, computing.computed)
        elif instr.opcode in _WITH_MEMORY or (instr.opcode == "shfl" and mask is not None):
            handler = _HANDLERS[instr.opcode]
        else:
            handler = computing.cleared
        if instr.opcode == "wgmma" and not instr.shape.has("mma_async"):
            handler = computing.cleared
        yield from self._run(handler, met, doubt)

    def _run(
        self, handler: Callable[[State, Met], Following], met: Met, doubt: Flags | None
    ) -> Iterator[None]:
        known = self._state.registers
        origins = computing.origins_of(self._state, met) if doubt is not None else frozenset()
        given = yield from handler(self._state, met)
        if holds(met.inner):
            for number, label, where in given:
                known.give(number, label, met.inner, where)
        if doubt is not None:
            for register in met.instr.defs:
                known.give(met.number(register), everywhere(register), doubt, origins)

    def arrive(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        """See `Follower`."""
        met = Met(frame, instr, _nothing, mask, mask)
        register = instr.guard
        if register is not None:
            flags = self._state.registers.met(frame.number(register), mask)
            if flags is not None:
                does = "branches by" if instr.shape.row.terminator else "is guarded by"
                self._state.tell(met, register, flags, does)
        if instr.shape.row.terminator == "indirect":
            self._told(met, registers(instr.operands[0]), mask, "branches by")
        if instr.opcode not in _TOGETHER:
            # What comes back from a barrier is known, but for votes that are not.
            held = guard(frame, instr)
            inner = mask if held is None else held(self._batch, mask)
            self._voted(met, inner)

    def _voted(self, met: Met, inner: Mask) -> None:
        instr, known = met.instr, self._state.registers
        label = None
        if instr.opcode in ("bar", "barrier") and instr.shape.has("red"):
            for register in registers(instr.operands[-1]):
                flags = known.met(met.number(register), inner)
                if flags is not None:
                    label = flags.any(axis=1, keepdims=True)
        origins = computing.origins_of(self._state, met)
        for register in instr.defs:
            word = None
            if label is not None:
                word = np.where(label, everywhere(register), np.zeros_like(everywhere(register)))
            known.give(met.number(register), word, inner, origins)

    # Telling ----------------------------------------------------------------------------------
    def _guarded(self, met: Met) -> Flags | None:
        """The lanes of which it is not known whether they do an instruction."""
        register = met.instr.guard
        if register is None:
            return None
        flags = self._state.registers.met(met.number(register), met.mask)
        if flags is not None and met.instr.opcode in _EFFECTS:
            self._state.tell(met, register, flags, "is guarded by")
        return flags

    def _addressed(self, met: Met) -> None:
        """Report addresses, descriptors and sizes of copies that are blank."""
        instr = met.instr
        used: list[Register] = []
        inner = met.inner
        if instr.opcode in ("cp", "mbarrier", "tensormap"):
            used = [r for r in instr.uses if r is not instr.guard]
        elif instr.opcode == "wgmma":
            used = [r for o in instr.operands[1:3] for r in registers(o) if bits(r.type) == 64]
        else:
            bases = [o.base for o in instr.operands if isinstance(o, Address)]
            used = [base for base in bases if isinstance(base, Register)]
        if instr.opcode in ("ldmatrix", "stmatrix"):
            count = next(int(m[1:]) for m in instr.shape.modifiers if m in ("x1", "x2", "x4"))
            gives = (np.arange(self._batch.threads) % WARP < 8 * count)[None, :]
            inner = self._batch.lanes(inner) & gives
        self._told(met, used, inner, "accesses memory by")

    def _told(self, met: Met, used: list[Register], inner: Mask, does: str) -> None:
        for register in used:
            flags = self._state.registers.met(met.number(register), inner)
            if flags is not None:
                self._state.tell(met, register, flags, does)

    def _observed(
        self, space: str, place: Addresses, size: int, allowed: Flags | None, writes: bool
    ) -> None:
        accessing.observed(self._state, space, place, size, allowed, writes)


def _nothing(batch: Batch, mask: Mask) -> None:
    """Stands for a step that is run elsewhere."""


__all__ = ["Blank"]
