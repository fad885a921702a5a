"""Verdicts on sums, held to the same sums in float64.

The run-time criterion of the families accumulation, rescale and precision, and of means that count
padding. A kernel is run at sizes of one tile and of several, whole and with a rest, and what it
writes is held to a reference in float64, which says how far a right kernel may be from it.

- Where what is said of its sums is *proved*, it is right at every size.
- NUM401 *refuted* (each round overwrites the product of the one before): far off with two rounds
  and more.
- NUM402 *refuted* (a sum keeps the scale of an old maximum): far off with two rounds and more, on
  data whose maximum rises from tile to tile.
- NUM403 *refuted* (a sum is rounded to 16 bits at every step): off with the most rounds that are
  run, whose sum is the largest against what is added. How far depends on the type; the bound is
  that of sums in 32 bits.
- NUM409 *refuted* (a mean counts padding): far off where the last tile has a rest.
- MSK201 *refuted* (a fill is no neutral element) spoils sums too: far off where the last tile has
  a rest.

Where no defect shows that is refuted or open (at one tile, at whole tiles), the kernel is right:
else what is proved would not be so, or the refutation would be of something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

RULES: Final = ("NUM401", "NUM402", "NUM403", "NUM409", "MSK201")
ROUNDS: Final = (1, 2, 3, 5)
FAR: Final = 10.0
"""So many times the bound of a right kernel is far off."""


class Size(NamedTuple):
    """A size to run at: so many rounds of the loop, of which the last is whole or has a rest."""

    rounds: int
    is_whole: bool


SIZES: Final = tuple(Size(rounds, is_whole) for rounds in ROUNDS for is_whole in (True, False))

Measure = Callable[[Size], "float | None"]
"""Runs a kernel at a size: its largest error, in bounds that the reference has for a right one;
None where it cannot be launched so."""

_SHOWS: Final[Mapping[str, Callable[[Size, int], bool]]] = {
    "NUM401": lambda size, most: size.rounds >= 2,
    "NUM402": lambda size, most: size.rounds >= 2,
    "NUM403": lambda size, most: size.rounds == most,
    "NUM409": lambda size, most: not size.is_whole,
    "MSK201": lambda size, most: not size.is_whole,
}
"""Where a defect must show, given the size and the most rounds of any."""
_ANYWHERE: Final = frozenset({"NUM403"})
"""Defects that may show elsewhere, too."""
_LEAST: Final = {"NUM403": 1.0}


class Held(NamedTuple):
    """A kernel held to its reference. `counts` are of sizes, by what is said and what came out."""

    counts: Counter[tuple[str, str]]
    contradictions: list[str]


def hold(said: Mapping[str, str], measure: Measure) -> Held:
    """Hold what rules say of a kernel (the worst of each one's verdicts) to its runs."""
    refuted = [rule for rule in RULES if said.get(rule) == "refuted"]
    unknown = [rule for rule in RULES if said.get(rule) == "open"]
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    if not any(said.get(rule) in ("proved", "refuted") for rule in RULES):
        return Held(counts, wrong)
    found = {size: miss for size in SIZES if (miss := measure(size)) is not None}
    most = max((size.rounds for size in found), default=0)
    label = " ".join(refuted) + " refuted" if refuted else "proved"
    for size, miss in found.items():
        shown = [rule for rule in refuted if _SHOWS[rule](size, most)]
        may_show = [r for r in (*refuted, *unknown) if r in _ANYWHERE or _SHOWS[r](size, most)]
        is_wrong = any(not miss > _LEAST.get(rule, FAR) for rule in shown)
        if is_wrong or (not may_show and not miss <= 1):
            where = f"{size.rounds} rounds, {'whole' if size.is_whole else 'with a rest'}"
            wrong.append(f"{label}, but at {where} it is off by {miss:.3g} bounds")
        counts[label, "right" if miss <= 1 else "off"] += 1
    return Held(counts, wrong)


__all__ = ["FAR", "ROUNDS", "RULES", "SIZES", "Held", "Measure", "Size", "hold"]
