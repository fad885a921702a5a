"""Whether the programs of a launch write apart from each other.

Proved by what an address tells of the program (`mixed_radix`), by working out the map from programs
to tiles (`program_map`), or by running all threads (`runs`); refuted by two programs that were run
and write the same cell; else open, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.dataflow.polynomial import INFINITY
from ptxlint.launch.coverage.influence import GRID, Influence
from ptxlint.launch.coverage.mixed_radix import Known
from ptxlint.launch.coverage.parting import Place
from ptxlint.launch.coverage.writes import Output, Write, Writes, is_from_memory
from ptxlint.launch.under import UnderLaunch
from ptxlint.launch.walk import Thread
from ptxlint.launches import Extent

if TYPE_CHECKING:
    from ptxlint.launch.coverage.runs import Cells, Runs

_WORST: Final = {"refuted": 0, "open": 1, "proved": 2}
_BITS: Final = {"x": 1, "y": 2, "z": 4}
_PAIRS: Final = 8
"""Pairs of programs with the same numbers that are run."""
_THREADS: Final = 1 << 12
"""Threads that are run at the lower end of an axis, where not all are."""


class Clash(NamedTuple):
    """Two threads of different programs that write one cell: `offset` is its first byte in the
    storage. `is_idle` says that the programs differ along axes that nothing which the kernel writes
    depends on."""

    first: Thread
    second: Thread
    offset: int
    store: Write
    other: Write
    is_idle: bool = False


class Apart(NamedTuple):
    """The word on one output: proved, refuted by a clash, or open.

    With `is_repeated` several programs may write a cell, and all that do write the same to it.
    """

    output: Output
    status: str
    reason: str
    clash: Clash | None = None
    is_repeated: bool = False


def apart(under: UnderLaunch, writes: Writes, runs: Callable[[], Runs]) -> Iterator[Apart]:
    """The word on each output. `runs` makes, once, what runs threads of this launch."""
    work = _Work(under, writes, runs)
    for output in writes.outputs:
        yield work.look_at(output)


class _Work:
    """What is shared between the outputs of a launch, made when it is asked for."""

    def __init__(self, under: UnderLaunch, writes: Writes, runs: Callable[[], Runs]) -> None:
        self._under = under
        self._writes = writes
        self._grid = dict(zip("xyz", under.bound.grid, strict=True))
        self._made_influence: Influence | None = None
        self._runs = runs

    @property
    def _influence(self) -> Influence:
        if self._made_influence is None:
            self._made_influence = Influence(self._under)
        return self._made_influence

    def look_at(self, output: Output) -> Apart:
        """The word on one output: on its stores by clusters, the worst of all."""
        axes = [axis for axis, extent in self._grid.items() if extent > 1]
        if not axes:
            return Apart(output, "proved", "there is one program")
        clusters = [tuple(output.stores)]
        if not output.unknown:
            clusters = [tuple(stores) for stores in self._clusters(output.stores)]
        reason = "an address tells its program"
        words = []
        for stores in clusters:
            pairs: list[tuple[Extent, Extent]] = []
            left = axes if output.unknown else self._left(stores, axes, pairs)
            if not left:
                continue
            if not output.unknown and self._is_repeated(stores, left):
                along = ", ".join(left)
                words.append(self._repeated(output, along))
                continue
            words.append(self._by_running(output, stores, self._to_run(pairs, left)))
        worst = sorted(words, key=lambda word: (_WORST[word.status], not word.is_repeated))
        return worst[0] if worst else self._unless_elsewhere(output, reason)

    def _unless_elsewhere(self, output: Output, reason: str, is_repeated: bool = False) -> Apart:
        elsewhere = self._writes.elsewhere
        if elsewhere:
            return Apart(output, "open", elsewhere)
        return Apart(output, "proved", reason, is_repeated=is_repeated)

    def _repeated(self, output: Output, axes: str) -> Apart:
        reason = f"programs along {axes} write the same to the same cells"
        return self._unless_elsewhere(output, reason, True)

    # By algebra ---------------------------------------------------------------------------------
    def _clusters(self, stores: Sequence[Write]) -> Iterator[list[Write]]:
        """Stores whose places overlap as far as bounds tell."""
        spans = []
        for store in stores:
            low, high = self._under.box(store.guard, (store.place,)).range(store.place)
            spans.append((low, min(high, INFINITY) + store.width, store))
        cluster: list[Write] = []
        end = -INFINITY
        for low, high, store in sorted(spans, key=lambda span: span[:2]):
            if cluster and low >= end:
                yield cluster
                cluster = []
            cluster.append(store)
            end = max(end, high)
        if cluster:
            yield cluster

    def _left(
        self, stores: Sequence[Write], axes: Iterable[str], pairs: list[tuple[Extent, Extent]]
    ) -> list[str]:
        """The axes along which an address does not tell the program; adds pairs of programs that
        the same numbers belong to."""
        known = Known(self._under, [Place(s.place, s.width, s.guard) for s in stores])
        left = [axis for axis in axes if not known.tells(axis) and not self._is_one(axis, stores)]
        if not left:
            return []
        from ptxlint.launch.coverage.program_map import is_of_program, program_map

        numbers = [number for number in known.numbers if is_of_program(number)]
        read = {
            atom.data[0]
            for number in numbers
            for atom in number.all_atoms()
            if atom.kind == "ctaid"
        }
        found = program_map(self._under, numbers, read) if read else None
        if found is None:
            return left
        alike = found.alike(_PAIRS)
        pairs += alike
        return [axis for axis in left if alike or axis not in read]

    def _is_one(self, axis: str, stores: Iterable[Write]) -> bool:
        """True if the guards of stores leave the same one program along an axis."""
        table = self._under.symbolic.table
        atom = table.atom("ctaid", (axis,), 0, self._grid[axis] - 1)
        ends: set[int] = set()
        for store in stores:
            ends.update(self._under.box(store.guard, ()).of_atom(atom.number))
        return len(ends) == 1

    def _idle(self, stores: Iterable[Write]) -> int:
        """The axes that nothing about some stores depends on."""
        found = 0
        for store in stores:
            found |= self._influence.of_store(store.instr)
        return GRID & ~found

    def _is_repeated(self, stores: Iterable[Write], axes: Iterable[str]) -> bool:
        """True if programs along some axes write the same by some stores, as they may where other
        things that they write depend on which of them it is."""
        idle = self._idle(stores)
        return all(_BITS[axis] & idle for axis in axes) and not self._is_idle(axes)

    def _is_idle(self, axes: Iterable[str]) -> bool:
        """True if nothing that the kernel writes depends on some axes of the grid."""
        writes = [write for o in self._writes.outputs for write in (*o.stores, *o.atomics)]
        idle = self._idle([*writes, *self._writes.others])
        return not self._writes.elsewhere and all(_BITS[axis] & idle for axis in axes)

    # By running ---------------------------------------------------------------------------------
    def _to_run(self, pairs: Iterable[tuple[Extent, Extent]], axes: Iterable[str]) -> list[Extent]:
        """The programs in which a clash may be seen: those of pairs, and at both ends of axes."""
        width, height, depth = self._under.bound.block
        most = max(2, _THREADS // max(1, width * height * depth))
        found = list(chain.from_iterable(pairs))
        for axis in axes:
            at, extent = "xyz".index(axis), self._grid[axis]
            for number in (*range(min(most, extent)), max(0, extent - 2), extent - 1):
                place = [0, 0, 0]
                place[at] = number
                found.append((place[0], place[1], place[2]))
        return list(dict.fromkeys(found))

    def _by_running(
        self, output: Output, stores: Sequence[Write], programs: Sequence[Extent]
    ) -> Apart:
        followed = [store for store in stores if not is_from_memory(self._under, store)]
        reason = output.unknown or "an address does not tell which program wrote it"
        if len(followed) < len(stores):
            reason = output.unknown or "an address is made of a number that is loaded"
        if not followed or self._runs().is_spent:
            return Apart(output, "open", reason)
        whole = self._runs().all_programs()
        cells = self._runs().cells(followed, whole or programs)
        if cells is None:
            return Apart(output, "open", "it writes more cells than are looked at")
        clash, repeated = self._clash(stores, followed, cells)
        if clash is not None:
            if self._influence.is_ordered:
                ordered = "programs that write the same cells may wait for each other"
                return Apart(output, "open", ordered)
            return Apart(output, "refuted", "several programs write the same cell", clash)
        if whole is not None and cells.is_whole and len(followed) == len(stores):
            if repeated:
                return self._repeated(output, ", ".join(repeated))
            return self._unless_elsewhere(output, "no two programs wrote one cell")
        return Apart(output, "open", reason)

    def _clash(
        self, stores: Sequence[Write], followed: Sequence[Write], cells: Cells
    ) -> tuple[Clash | None, list[str]]:
        """The first cell that two programs write, in a way that matters; and the axes along which
        programs write the same to the same cells."""
        from ptxlint.launch.coverage.cells import clashes

        idle = self._idle(stores)
        repeated: set[str] = set()
        for first, second, offset in clashes(cells):
            one, two = (cells.programs[int(cells.program[at])] for at in (first, second))
            along = [axis for axis, a, b in zip("xyz", one, two, strict=True) if a != b]
            is_idle = all(_BITS[axis] & idle for axis in along)
            if is_idle and not self._is_idle(along):
                repeated.update(along)
                continue
            threads = [
                self._runs().thread(program, int(cells.thread[at]))
                for program, at in ((one, first), (two, second))
            ]
            one_store, other = (followed[int(cells.store[at])] for at in (first, second))
            return Clash(threads[0], threads[1], offset, one_store, other, is_idle), []
        return None, sorted(repeated)


__all__ = ["Apart", "Clash", "apart"]
