"""A kernel under each of its launches: what is proved, what a thread shows, and what is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import DominatorsAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.guards import GuardsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.launch.bound import BoundLaunches

if TYPE_CHECKING:
    # What looks at launches is loaded when there is one.
    from ptxlint.launch.binding import Bound
    from ptxlint.launch.generalise.reach import Reach
    from ptxlint.launch.under import Judged, UnderLaunch
    from ptxlint.launch.witness import Witness, Witnesses

_ALIKE: Final = 3
"""So many of the accesses that are open for the same reason are run."""


class Outcome(NamedTuple):
    """One access under a launch. With a witness it is refuted; without one, and if nothing of
    `judged` is missing, it is proved. `shown` says that the same is shown by the witness of another
    access: the same number wraps, or the same tensor is left at the same end by the same kind of
    access.
    """

    judged: Judged
    witness: Witness | None = None
    shown: bool = False


class LaunchOutcomes:
    """All global accesses of a kernel under one launch, in program order."""

    def __init__(self, under: UnderLaunch) -> None:
        from ptxlint.launch.witness import Witnesses

        self._reach: Reach | None = None
        self.under = under
        self.bound: Bound = under.bound
        self.outcomes: list[Outcome] = []
        self._premises: tuple[str, ...] | None = None
        witnesses = Witnesses(under)
        tried: dict[object, int] = {}
        shown: set[object] = set()
        found: dict[int, Witness] = {}
        for number, judged in enumerate(under.judged):
            groups = _groups(judged) if judged.reason else []
            if not groups or not shown.isdisjoint(groups) or tried.get(groups[0], 0) >= _ALIKE:
                continue
            tried[groups[0]] = tried.get(groups[0], 0) + 1
            witness = witnesses.of(judged)
            if witness is not None:
                found[number] = witness
                shown.add(_group_of(judged, witness))
        settled = self._settled(witnesses, shown, found)
        self._put_first(settled, found)
        for number, judged in enumerate(settled):
            is_shown = bool(judged.reason) and not shown.isdisjoint(_groups(judged))
            self.outcomes.append(Outcome(judged, found.get(number), is_shown))

    @property
    def reach(self) -> Reach:
        """How far what is found carries to other launches."""
        if self._reach is None:
            from ptxlint.launch.generalise.reach import Reach

            self._reach = Reach(self.under)
        return self._reach

    def release(self) -> None:
        """Drop what was found."""
        if self._reach is not None:
            self._reach.release()
        self.under.release()

    def _settled(
        self, witnesses: Witnesses, shown: set[object], found: dict[int, Witness]
    ) -> list[Judged]:
        """All accesses, once the threads of CTAs that matter were run for those that are left."""
        judged = list(self.under.judged)
        left = [
            number
            for number, one in enumerate(judged)
            if one.reason and shown.isdisjoint(_groups(one)) and not self._is_from_memory(one)
        ]
        if left:
            # Arrays are needed for what is left alone.
            from ptxlint.launch.exact import settle

            ctas = [cta for number in left[:_ALIKE] for cta in witnesses.ctas(judged[number])]
            results = settle(self.under, [judged[number] for number in left], ctas)
            for number, (one, witness) in zip(left, results, strict=True):
                judged[number] = one
                if witness is not None:
                    found[number] = witness
                    shown.add(_group_of(one, witness))
        return judged

    @property
    def premises(self) -> tuple[str, ...]:
        """What tensors of numbers must hold for proofs of this launch to hold, as it tells."""
        if self._premises is None:
            self._premises = self._find_premises()
        return self._premises

    def _find_premises(self) -> tuple[str, ...]:
        under, promises = self.under, self.under.promises
        if promises.is_empty:
            return ()
        used: dict[int, None] = {}
        for judged, _, _ in self.outcomes:
            access = judged.access
            polys = [access.offset, *(c.polynomial for c in access.guard or () if c.polynomial)]
            loads = (a.data[0] for p in polys for a in p.all_atoms() if a.kind == "load")
            used.update(dict.fromkeys(under.ssa.instr[value] for value in loads))
        if any(judged.ran for judged, _, _ in self.outcomes):
            used.update(dict.fromkeys(promises.told))
        return promises.words(used)

    def _is_from_memory(self, judged: Judged) -> bool:
        """True if no run tells where an access goes: its address is made of a loaded number that
        the launch does not tell."""
        ssa, promises = self.under.ssa, self.under.promises
        return any(
            atom.kind == "load" and not promises.is_told(ssa.instr[atom.data[0]])
            for atom in judged.access.offset.all_atoms()
        )

    def _put_first(self, judged: list[Judged], found: dict[int, Witness]) -> None:
        """Take witnesses where what they show begins: one for each thing that is wrong."""
        groups: set[object] = set()
        for number, witness in sorted(found.items()):
            group = _group_of(judged[number], witness)
            if any(witness.thread.ctaid) and group not in groups and len(groups) < _ALIKE:
                from ptxlint.launch.exact import earliest

                groups.add(group)
                found[number] = earliest(self.under, judged[number], witness)


def _groups(judged: Judged) -> list[object]:
    """What is wrong with an access, if it is, as what it has in common with others."""
    access = judged.access
    if judged.wraps:
        return [wrap.instr for wrap in judged.wraps]
    sides = (("above", judged.above), ("below", judged.below), ("misaligned", judged.aligned))
    return [(access.base, access.kind, side) for side, holds in sides if not holds]


def _group_of(judged: Judged, witness: Witness) -> object:
    if witness.wrap is not None:
        return witness.wrap.instr
    return judged.access.base, judged.access.kind, witness.kind


class Launches:
    """A kernel under each of its launches, looked at when asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: list[LaunchOutcomes] = []

    def __iter__(self) -> Iterator[LaunchOutcomes]:
        bounds = self._facts.get(BoundLaunches)
        if not bounds:
            return
        from ptxlint.launch.under import UnderLaunch

        for number, bound in enumerate(bounds):
            if number == len(self._found):
                self._found.append(LaunchOutcomes(UnderLaunch(self._facts, bound)))
            yield self._found[number]

    def release(self) -> None:
        """Drop what was found for the launches."""
        for found in self._found:
            found.release()
        self._found.clear()


class LaunchAnalysis(Analysis[Launches]):
    """A kernel under its launches."""

    name: ClassVar[str] = "launch"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        BoundLaunches,
        DominatorsAnalysis,
        LoopsAnalysis,
        SsaAnalysis,
        SymbolicAnalysis,
        GuardsAnalysis,
        AccessAnalysis,
    )

    def run(self, facts: Facts) -> Launches:
        """Nothing is looked at yet."""
        return Launches(facts)


__all__ = ["LaunchAnalysis", "LaunchOutcomes", "Launches", "Outcome"]
