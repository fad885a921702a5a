"""Where a computed number must fit its word, decided under a launch.

A polynomial is right if nothing wrapped on the way to it. What certainly fits, by the bounds of the
grid, leaves no obligation; the rest is looked at once under what held on the way to the
instruction, and what is left then, for each access that rests on it, under the access's guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.extremes import Box
from ptxlint.dataflow.guards import Conjunction, Guards
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa_values import PHI, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, Wrap

BoxOf = Callable[[Conjunction, Iterable[Polynomial]], Box]
"""The bounds under a guard, for what polynomials are made of."""


class Wraps:
    """The obligations of one function under a launch that bounds alone do not meet."""

    def __init__(
        self,
        ssa: Ssa,
        loops: LoopForest,
        symbolic: Symbolic,
        guards: Guards,
        box: BoxOf,
        branches: Callable[[int], list[int]],
    ) -> None:
        self._branches = branches
        """The predicates that decide whether control comes to a block, and how often."""
        self._ssa = ssa
        self._loops = loops
        self._symbolic = symbolic
        self._guards = guards
        self._box = box
        self._instrs = ssa.cfg.function.instrs
        self._pending: dict[int, list[Wrap]] | None = None
        self._reaching: set[int] = set()
        self._latches: dict[int, tuple[int, ...]] = {}

    @property
    def pending(self) -> dict[int, list[Wrap]]:
        """By instruction: what may not fit, whatever comes after."""
        if self._pending is None:
            self._pending = self._unmet()
            if self._pending:
                self._reaching = self._reached()
        return self._pending

    def open_for(
        self, address: Iterable[int], conditions: Iterable[int], guard: Conjunction
    ) -> list[Wrap]:
        """What an access rests on and may not fit, in program order.

        `address` are the values that the access reads, `conditions` those that decide whether it
        takes place.
        """
        pending = self.pending
        if not pending:
            return []
        near, far = self._slices(address, conditions)
        found = [wrap for index in sorted(far) for wrap in pending.get(index, ())]
        for index in sorted(near - far):
            for wrap in pending.get(index, ()):
                known = self._guards.of_instr(self._instrs[index])
                if known is not None and not self.fits(wrap, known | guard):
                    found.append(wrap)
        return sorted(found, key=lambda wrap: wrap.instr)

    def fits(self, wrap: Wrap, guard: Conjunction) -> bool:
        """True if a number certainly fits its word where a guard holds."""
        poly = wrap.polynomial
        low, high = word(wrap)
        box = self._box(guard, (poly,))
        return box.is_at_most(poly, high) and box.is_at_least(poly, low)

    def _unmet(self) -> dict[int, list[Wrap]]:
        """What does not fit by what held on the way to the instruction alone."""
        symbolic, ssa = self._symbolic, self._ssa
        asked: set[int] = set()
        while True:
            more = [index for index in symbolic.wraps if index not in asked]
            if not more:
                break
            for index in more:
                asked.add(index)
                # Once more in terms of the loops, if it was met while these were looked into.
                for value in ssa.def_values[index]:
                    symbolic.of(ssa.written(value))
        found: dict[int, list[Wrap]] = {}
        for index, wraps in sorted(symbolic.wraps.items()):
            known = self._guards.of_instr(self._instrs[index])
            if known is None:
                continue
            for wrap in sorted(wraps, key=repr):
                if not self._is_stale(wrap) and not self.fits(wrap, known):
                    found.setdefault(index, []).append(wrap)
        return found

    def _is_stale(self, wrap: Wrap) -> bool:
        """True if it was noted while a number that a loop carries was not yet understood, or one
        that is made of such a number: it was noted once more when that was."""
        plain = wrap.polynomial.table.plain
        return any(
            atom.kind == "opaque" and self._symbolic.of(atom.data[0]) != plain(atom)
            for atom in wrap.polynomial.all_atoms()
        )

    def _reached(self) -> set[int]:
        """All values that rest on what may not fit, or on the rounds of a loop that ends by it."""
        ssa = self._ssa
        work = [v for index in self.pending for v in ssa.def_values[index]]
        work += [ssa.written(v) for v in work]
        reached = set(work)
        self._reach(work, reached)
        headers = [loop.header for loop in self._loops.loops if ssa.phis.get(loop.header)]
        while True:
            found = [h for h in headers if not reached.isdisjoint(self._latch(h))]
            if not found:
                return reached
            headers = [h for h in headers if h not in found]
            counted = [v for h in found for v in ssa.phis[h] if v not in reached]
            reached.update(counted)
            self._reach(counted, reached)

    def _reach(self, work: list[int], reached: set[int]) -> None:
        """Add all values that rest on some."""
        ssa = self._ssa
        for value in work:
            for user in ssa.users(value):
                made = [~user] if user < 0 else [*ssa.def_values[user]]
                made += [ssa.written(v) for v in made] if user >= 0 else []
                for other in made:
                    if other not in reached:
                        reached.add(other)
                        work.append(other)

    def _slices(
        self, address: Iterable[int], conditions: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        """The instructions behind values in the same round of all loops, and all others."""
        near: set[int] = set()
        carried = self._walk(address, near, True)
        far: set[int] = set()
        self._walk([*conditions, *carried], far, False)
        return near, far

    def _walk(self, values: Iterable[int], into: set[int], stops: bool) -> list[int]:
        """Collect instructions; gives what loops bring from rounds before, if it stops there."""
        ssa = self._ssa
        seen: set[int] = set()
        carried: list[int] = []
        work = list(values)
        while work:
            value = work.pop()
            if value in seen or value not in self._reaching:
                continue
            seen.add(value)
            is_carried = False
            if ssa.kind[value] == PHI:
                latches = self._latch(ssa.phi_block[value])
                carried += latches
                is_carried = (
                    bool(latches) or self._loops.with_header(ssa.phi_block[value]) is not None
                )
                if not stops:
                    work += latches
            elif ssa.kind[value] == RESULT:
                into.add(ssa.instr[value])
            if is_carried and stops:
                carried += ssa.operands[value]
            else:
                work += ssa.operands[value]
        return carried

    def _latch(self, block: int) -> tuple[int, ...]:
        """The predicates that decide whether and how often a loop comes round; none for a block
        that heads no loop."""
        found = self._latches.get(block)
        if found is None:
            loop = self._loops.with_header(block)
            found = self._latches[block] = () if loop is None else tuple(self._branches(block))
        return found


def word(wrap: Wrap) -> tuple[int, int]:
    """The least and the greatest number that the word holds."""
    if wrap.signed:
        return -1 << (wrap.bits - 1), (1 << (wrap.bits - 1)) - 1
    return 0, (1 << wrap.bits) - 1


__all__ = ["Wraps", "word"]
