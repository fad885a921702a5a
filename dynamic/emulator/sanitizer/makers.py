"""The instructions that made NaN or infinities out of finite numbers, and in which lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.formats import Array, Flags
from ptxlint.dynamic.emulator.sanitizer.not_finite import spelled

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.ir.instruction import Instr

MOST: Final = 8
"""So many lines of the source are told apart: one bit each. Further ones share the last."""
_EVENTS: Final = 8


class _Event(NamedTuple):
    """Lanes that made something, and of what: operands with their types."""

    instr: Instr
    lanes: Flags
    nan: Flags
    operands: tuple[tuple[str, Array], ...]


class Makers:
    """The makers of one batch, in the order in which they came, by lines of the source."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._events: list[list[_Event]] = []
        self._lines: dict[object, int] = {}
        self._told: set[int] = set()

    def note(
        self, instr: Instr, lanes: Flags, nan: Flags, operands: tuple[tuple[str, Array], ...]
    ) -> int:
        """Lanes made NaN, or an infinity where it is none; the bit of this maker."""
        key: object = instr if instr.loc is None else (instr.loc.file, instr.loc.line)
        at = self._lines.get(key)
        if at is None:
            at = self._lines[key] = min(len(self._events), MOST - 1)
            if at == len(self._events):
                self._events.append([])
        events = self._events[at]
        if len(events) < _EVENTS:
            events.append(_Event(instr, lanes, nan, operands))
        return 1 << at

    def tell(self, store: Instr, lanes: Flags, bits: int) -> None:
        """Lanes store what the makers with these bits made: the first of them is told, once."""
        at = (bits & -bits).bit_length() - 1
        if at in self._told:
            return
        self._told.add(at)
        event, flags = self._of_lanes(at, lanes)
        cta, thread = (int(x) for x in np.argwhere(flags)[0])

        def here(values: Array) -> Array:
            return np.asarray(np.broadcast_to(values, self._batch.shape)[cta, thread])

        made = "NaN" if bool(here(event.nan)) else "an infinity"
        given = [spelled(here(values), kind) for kind, values in event.operands]
        of = " and ".join(given) if given else "finite factors"
        self._batch.device.report(
            self._batch, event.instr, "not_finite",
            f"makes {made} of {of}, and it is stored to global memory", flags, origin=store,
        )  # fmt: skip

    def _of_lanes(self, at: int, lanes: Flags) -> tuple[_Event, Flags]:
        """What a maker did in the lanes that store it; else in their CTA; else the first of it."""
        for chosen in (lanes, lanes.any(axis=1, keepdims=True)):
            for event in self._events[at]:
                flags = event.lanes & chosen
                if flags.any():
                    return event, flags
        first = self._events[at][0]
        return first, first.lanes


__all__ = ["MOST", "Makers"]
