"""Which kernel of a run is which of the baseline, and what of it has got worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ptxlint.engine.baseline.entries import Counts, KernelEntry, Strange

_GRAVITY: Final = "por"
"""Statuses by their first letters: proved, open, refuted."""


class VerdictLoss(NamedTuple):
    """A rule of whose verdicts fewer are proved, or more refuted, than there were; or, with `at`,
    as many, and the one with this number in the order of the text is worse."""

    rule: str
    old: Counts
    new: Counts
    at: int | None = None
    became: str = ""

    @property
    def status(self) -> str:
        """What became of them: `refuted` or `open`."""
        return self.became or ("refuted" if self.new[1] > self.old[1] else "open")


class Growth(NamedTuple):
    """A number that is worse: `registers`, `spills`, `guarded`."""

    name: str
    old: int
    new: int


def partners(
    old: Sequence[KernelEntry], new: Iterable[KernelEntry]
) -> dict[KernelEntry, KernelEntry]:
    """For kernels of a run their entries in the baseline. Of several with one name and architecture
    those that are equal belong together, then those that do the same, those of one shape, and of
    the rest those nearest in size."""
    waiting: dict[tuple[object, ...], list[KernelEntry]] = {}
    for entry in old:
        waiting.setdefault((*entry.key, entry.is_machine), []).append(entry)
    found: dict[KernelEntry, KernelEntry] = {}
    groups: dict[tuple[object, ...], list[KernelEntry]] = {}
    for entry in new:
        groups.setdefault((*entry.key, entry.is_machine), []).append(entry)
    for key, entries in groups.items():
        _match(waiting.get(key, []), entries, found)
    return found


def _match(
    old: list[KernelEntry], new: list[KernelEntry], found: dict[KernelEntry, KernelEntry]
) -> None:
    left = set(old)
    for entry in new:
        same = [o for o in old if o.measures.identity == entry.measures.identity]
        if same:
            found[entry] = entry if entry in same else same[0]
            left -= set(same)
    ours = [o for o in old if o in left]
    for by_shape in (True, False):
        for entry in new:
            fits = [o for o in ours if not by_shape or o.measures.shape == entry.measures.shape]
            if entry in found or not fits:
                continue
            size = entry.measures.instructions
            found[entry] = nearest = min(fits, key=lambda o: abs(o.measures.instructions - size))
            ours.remove(nearest)


def losses(
    old: KernelEntry, new: KernelEntry, strange: frozenset[Strange] = frozenset()
) -> list[VerdictLoss]:
    """The rules whose verdicts got worse; `strange` are kernels and rules with findings at lines of
    which the baseline knows none. Under launches other things are proved than without, so
    nothing is said of a kernel that had launches and has none."""
    if old.launches and not new.launches:
        return []
    before = dict(old.verdicts)
    out = []
    for rule, counts in new.verdicts:
        if rule not in before:
            continue
        if is_worse(before[rule], counts):
            out.append(VerdictLoss(rule, before[rule], counts))
        elif moved := _moved(rule, old, new, (*new.key, rule) in strange):
            out.append(VerdictLoss(rule, before[rule], counts, *moved))
    return out


def _moved(
    rule: str, old: KernelEntry, new: KernelEntry, is_strange: bool
) -> tuple[int, str] | None:
    """The first verdict of a rule that is worse than the one in its place, and what it is now.
    Kernels of another shape may have the same in another order: there a line that the baseline
    does not know of must say so, too."""
    if old.measures.shape != new.measures.shape and not is_strange:
        return None
    before, after = dict(old.orders).get(rule, ""), dict(new.orders).get(rule, "")
    if len(before) != len(after):
        return None
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        if _GRAVITY.find(now) > _GRAVITY.find(was):
            return at, "refuted" if now == "r" else "open"
    return None


def is_worse(old: Counts, new: Counts) -> bool:
    """True if properties that were proved are not any more, or some that were open are refuted."""
    proved, refuted, undecided = (after - before for before, after in zip(old, new, strict=True))
    return (refuted > 0 and (proved < 0 or undecided < 0)) or (undecided > 0 and proved < 0)


def growths(old: KernelEntry, new: KernelEntry) -> list[Growth]:
    """The numbers that are worse, of those that are known on both sides."""
    before, after = old.measures, new.measures
    out = []
    for name in ("registers", "spills"):
        was, now = getattr(before, name), getattr(after, name)
        if was is not None and now is not None and now > was:
            out.append(Growth(name, was, now))
    if before.accesses <= after.accesses and before.guarded > after.guarded:
        out.append(Growth("guarded", before.guarded, after.guarded))
    return out


__all__ = ["Growth", "VerdictLoss", "growths", "is_worse", "losses", "partners"]
