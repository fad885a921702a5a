"""The way in: a kernel, a grid and arguments; out come what it wrote and what it did wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.arena import Allocation, Arena
from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.counters import Counters
from ptxlint.dynamic.emulator.device import Device, Fault
from ptxlint.dynamic.emulator.labels.following import Follower, Followers
from ptxlint.dynamic.emulator.labels.padding.tracker import Labels, Leak
from ptxlint.dynamic.emulator.layout import Layout
from ptxlint.dynamic.emulator.program import Program
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.dynamic.emulator.sanitizer.shadow import Shadow
from ptxlint.dynamic.emulator.sanitizer.watching import watch
from ptxlint.dynamic.emulator.schedule import Schedule, polling, ranks
from ptxlint.dynamic.emulator.standstill import stands_still
from ptxlint.dynamic.emulator.translate import translate
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.ir.types import bits
from ptxlint.launches import Extent

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.sanitizer.stored_reads import StoredReads

LANES: Final = 16384
"""So many lanes run side by side, rounded down to whole CTAs: their values fit the caches."""
MOST_TURNS: Final = 1_000_000
"""Segments that a batch may run before it is given up for a hang."""
_SLICE: Final = 20_000
_WATCHED_LANES: Final = 2048
"""Lanes side by side where each byte of their memory has a shadow many times its size."""


class Outcome(NamedTuple):
    """What a run came to: what was done wrong, and by how many CTAs all was done. `leaks` are
    stores of padding, where that was followed."""

    faults: list[Fault]
    ctas: int
    is_complete: bool
    leaks: tuple[Leak, ...] = ()
    is_interrupted: bool = False
    """Ctrl-C ended it."""


class Padding(NamedTuple):
    """That padding is followed from these loads (by the index of their instruction; None: all)."""

    sites: frozenset[int] | None = None


class Emulator:
    """A kernel, translated once for all its launches; once more for those in which what each
    instruction does is watched."""

    def __init__(self, module: Module, kernel: Function) -> None:
        self.module = module
        self.kernel = kernel
        self.layout = Layout(module, kernel)
        self._constants: list[tuple[str, int, Any, int, bool]] = []
        # Addresses of the module's variables are part of the program: they lie first.
        fixed = Arena()
        for name, (variable, contents) in self.layout.globals.items():
            size, is_read_only = variable.size or 0, variable.space == "const"
            place = fixed.allocate(name, size, contents)
            self._constants.append((name, size, contents, place.start, is_read_only))
            self.layout.place_global(name, place.start)
        self.program: Program = translate(module, kernel, self.layout, False)
        self._watched: Program | None = None
        self._stored: StoredReads | None = None

    @property
    def watched(self) -> Program:
        """The program with one step for each instruction."""
        if self._watched is None:
            layout = Layout(self.module, self.kernel)
            for name, _, _, start, _ in self._constants:
                layout.place_global(name, start)
            self._watched = translate(self.module, self.kernel, layout, True)
        return self._watched

    def _stored_reads(self) -> StoredReads:
        if self._stored is None:
            from ptxlint.dynamic.emulator.sanitizer.stored_reads import StoredReads

            self._stored = StoredReads(self.module, self.kernel)
        return self._stored

    def arena(self) -> Arena:
        """Global memory with the module's variables in it."""
        arena = Arena()
        for name, size, contents, start, is_read_only in self._constants:
            filled = np.zeros(size, dtype=np.uint8) if contents is None else contents
            placed = arena.allocate(name, size, filled, is_read_only=is_read_only)
            assert placed.start == start
        return arena

    def run(
        self,
        grid: Extent,
        block: Extent,
        values: Mapping[str, bytes],
        arena: Arena,
        dynamic_shared: int = 0,
        lanes: int = LANES,
        ctas: Sequence[Extent] | None = None,
        counters: Counters | None = None,
        most_turns: int = MOST_TURNS,
        sanitize: Sanitize = MEMORY,
        padding: Padding | None = None,
        keeps_interrupted: bool = False,
        record: Record | None = None,
    ) -> Outcome:
        """Run a launch. `values` are the bytes of parameters by name; those missing are zeros.
        `ctas` are those of the grid that are run, all without it. With `keeps_interrupted`, Ctrl-C
        ends the run, and what it came to so far is returned.

        Raises `ValueError` for padding together with other labels: a run keeps one or the other.
        """
        if padding is not None and _labels(sanitize):
            raise ValueError(
                f"padding is not followed in one run with {', '.join(_labels(sanitize))}: make two"
            )
        is_watched = padding is not None or sanitize._replace(races=False) != MEMORY
        program = self.watched if is_watched else self.program
        leaks: list[Labels] = []
        parameters = np.zeros(max(program.parameter_bytes, 1), dtype=np.uint8)
        for variable in self.kernel.params:
            given = values.get(variable.name)
            if given is not None:
                start = self.layout.parameters[variable.name]
                parameters[start : start + len(given)] = np.frombuffer(given, dtype=np.uint8)
        arena.seal()
        # Without dynamic memory there is none behind what is declared, not even for its alignment.
        shared = program.shared + dynamic_shared if dynamic_shared else self.layout.shared
        device = Device(grid, block, shared, parameters, arena)
        device.counters = counters
        device.record = record
        if sanitize.races or sanitize.copies:
            lanes = min(lanes, _WATCHED_LANES)
        if sanitize.races:
            device.shadow = Shadow(len(arena.bytes), True)
        threads = block[0] * block[1] * block[2]
        at_once = max(1, lanes // threads)
        ctas = _ctas(grid) if ctas is None else ctas
        started, is_interrupted, is_still = 0, False, False
        waiting: list[Schedule] = []
        order: list[int] | None = None
        polls: list[bool] = []
        try:
            with np.errstate(all="ignore"):
                for start in range(0, len(ctas), at_once):
                    batch = Batch(device, program, ctas[start : start + at_once])
                    watch(batch, start, sanitize, self._stored_reads)
                    if padding is not None:
                        batch.labels = labels = Labels(batch, padding.sites)
                        leaks.append(labels)
                    followers = _followers(batch, sanitize)
                    if followers:
                        batch.labels = Followers(batch, followers)
                    if order is None:
                        order, polls = ranks(batch), polling(batch)
                    waiting.append(Schedule(batch, order, polls))
                    started += len(batch.ctas)
                    waiting = [s for s in waiting if not s.run(min(_SLICE, most_turns))]
                turns, search_at = max((s.turns for s in waiting), default=0), _SLICE
                rounds, search_round = 0, 2
                while waiting and turns < most_turns:
                    rounds = rounds + 1 if all(s.is_polling for s in waiting) else 0
                    if turns >= search_at or rounds >= search_round:
                        waiting, is_still = stands_still(waiting, arena)
                        if is_still:
                            break
                        search_at, search_round = 4 * max(turns, search_at), 4 * search_round
                    waiting = [s for s in waiting if not s.run(_SLICE)]
                    turns = max((s.turns for s in waiting), default=turns)
        except KeyboardInterrupt:
            if not keeps_interrupted:
                raise
            is_interrupted = True
        if not is_interrupted:
            for schedule in waiting:
                schedule.give_up(": it does the same again and again" if is_still else "")
        done = started - sum(s.unfinished() for s in waiting)
        found = tuple(leak for labels in leaks for leak in labels.leaks.values())
        is_complete = not waiting and not is_interrupted
        return Outcome(device.faults, done, is_complete, found, is_interrupted)


def _labels(sanitize: Sanitize) -> list[str]:
    """What of it keeps labels beside registers."""
    kinds = sanitize._replace(races=False)._asdict()
    return [word for word, is_asked in kinds.items() if is_asked]


def _followers(batch: Batch, sanitize: Sanitize) -> list[Follower]:
    """Who follows a batch: imported only where asked for."""
    found: list[Follower] = []
    if sanitize.uninitialised:
        from ptxlint.dynamic.emulator.labels.blank.tracker import Blank

        found.append(Blank(batch))
    if sanitize.nonfinite:
        from ptxlint.dynamic.emulator.sanitizer.nonfinite import NonFinite

        found.append(NonFinite(batch))
    if batch.in_flight is not None and batch.in_flight.is_needed:
        found.append(batch.in_flight)
    if sanitize.overflow:
        from ptxlint.dynamic.emulator.labels.wraps.tracker import Wraps

        found.append(Wraps(batch))
    return found


def _ctas(grid: Extent) -> list[Extent]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


def run(
    module: Module,
    kernel: Function,
    grid: Extent,
    arguments: Sequence[Any],
    *,
    dynamic_shared: int = 0,
    sanitize: Sanitize = MEMORY,
    padding: Padding | None = None,
    most_turns: int = MOST_TURNS,
) -> Outcome:
    """Run a kernel on numpy arrays, which are changed in place, and numbers, in the order of its
    parameters; parameters beyond the arguments (Triton's scratch pointers) are zeros.

    After `most_turns` segments of a batch it is given up for a hang.
    """
    emulator = Emulator(module, kernel)
    arena = emulator.arena()
    values: dict[str, bytes] = {}
    placed: list[tuple[Allocation, Any]] = []
    for variable, argument in zip(kernel.params, arguments, strict=False):
        width = variable.size or bits(variable.type) // 8
        if isinstance(argument, np.ndarray):
            allocation = arena.allocate(variable.name, argument.nbytes, argument)
            placed.append((allocation, argument))
            values[variable.name] = allocation.start.to_bytes(8, "little")
        elif isinstance(argument, float):
            kind: Any = {2: np.float16, 4: np.float32, 8: np.float64}[width]
            values[variable.name] = kind(argument).tobytes()
        else:
            values[variable.name] = (int(argument) & ((1 << 8 * width) - 1)).to_bytes(
                width, "little"
            )
    block = kernel.directives.get("reqntid") or kernel.directives.get("maxntid") or (1,)
    extents = [int(x) for x in block] + [1, 1]
    outcome = emulator.run(
        grid,
        (extents[0], extents[1], extents[2]),
        values,
        arena,
        dynamic_shared,
        most_turns=most_turns,
        sanitize=sanitize,
        padding=padding,
    )
    for allocation, argument in placed:
        argument[...] = arena.contents(allocation).view(argument.dtype).reshape(argument.shape)
    return outcome


__all__ = ["LANES", "Emulator", "Outcome", "Padding", "run"]
