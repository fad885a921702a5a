"""What an analysis over SSA values has still to look at.

Each instruction and each phi has its place in reverse postorder. A sweep goes through the places
in order and stops at those that were added since they were last looked at, also those that are
added ahead of it while it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxlint.dataflow.ssa_values import PHI, Ssa


class Agenda:
    """Instructions and phis to look at, each once however often it was added."""

    __slots__ = (
        "_due",
        "_flat",
        "_phis",
        "_places",
        "_ssa",
        "_starts",
        "_steps",
        "_twins",
        "_watching",
    )  # fmt: skip

    def __init__(self, ssa: Ssa) -> None:
        self._ssa = ssa
        self._steps: list[int] = []
        """By place: an instruction's index, or ~v for the phi v."""
        self._places = [-1] * len(ssa.use_values)
        """By instruction: its place; -1, the last byte of `_due`, for what is never reached."""
        self._phis: dict[int, int] = {}
        steps, places = self._steps, self._places
        cfg = ssa.cfg
        for at in sorted(cfg.rpo, key=cfg.position.__getitem__):
            block = cfg.blocks[at]
            for phi in ssa.phis.get(at, ()):
                self._phis[phi] = len(steps)
                steps.append(~phi)
            first = len(steps) - block.start
            for index in range(block.start, block.end):
                places[index] = index + first
            steps += range(block.start, block.end)
        self._due = bytearray(len(steps) + 1)
        self._starts, self._flat = ssa.all_users()
        self._twins: dict[int, list[int]] = {}
        """By value that others equal: these, and itself."""
        resolve = ssa.resolve
        for value in range(len(ssa)):
            found = resolve(value)
            if found != value:
                self._twins.setdefault(found, [found]).append(value)
        self._watching: dict[int, set[int]] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is nothing left to look at."""
        return self._due.find(1, 0, len(self._steps)) < 0

    def sweep(self) -> Iterator[int]:
        """The instructions, and ~v for phis v, that are due now or become due further on."""
        due, steps = self._due, self._steps
        count = len(steps)
        at = due.find(1)
        while 0 <= at < count:
            due[at] = 0
            step = steps[at]
            yield step
            if step >= 0:
                # What an instruction reads of its own are registers that it writes in part.
                due[at] = 0
            at = due.find(1, at + 1)

    def add(self, index: int) -> None:
        """Have an instruction looked at."""
        self._due[self._places[index]] = 1

    def add_definition(self, value: int) -> None:
        """Have what makes a value looked at."""
        index = self._ssa.instr[value]
        self._due[self._places[index] if index >= 0 else self._phis.get(value, -1)] = 1

    def add_readers(self, value: int) -> None:
        """Have all looked at that read a value, or one that equals it."""
        ssa = self._ssa
        due, places = self._due, self._places
        starts, flat = self._starts, self._flat
        for twin in self._twins.get(value, (value,)):
            for user in flat[starts[twin] : starts[twin + 1]]:
                if user >= 0:
                    due[places[user]] = 1
                elif ssa.kind[~user] == PHI:
                    due[self._phis.get(~user, -1)] = 1
                else:
                    due[places[ssa.instr[~user]]] = 1
        for index in self._watching.get(value, ()):
            due[places[index]] = 1

    def watch(self, values: Iterable[int], index: int) -> None:
        """Have an instruction looked at whenever one of these values changes."""
        resolve, watching = self._ssa.resolve, self._watching
        for value in values:
            watching.setdefault(resolve(value), set()).add(index)


__all__ = ["Agenda"]
