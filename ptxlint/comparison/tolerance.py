"""What a comparison may fail on: words of `--fail-on`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ptxlint.comparison.difference import CodeDifference, Difference

KINDS: Final = (
    "structural", "constants", "machine-code", "spills", "verdicts", "guards", "accesses",
    "occupancy", "removed", "added",
)  # fmt: skip
MEASURES: Final = ("registers", "stack", "shared", "instructions", "barriers")
_NEEDS: Final = {
    "registers": ("registers",), "spills": ("spill_stores", "spill_loads"), "stack": ("stack",),
    "shared": ("shared", "dynamic_shared"), "barriers": ("barriers",), "occupancy": ("occupancy",),
    "machine-code": ("machine-code",),
}  # fmt: skip
"""The numbers that a word cannot be answered without."""
_PARTS: Final = {"shared": ("shared", "dynamic_shared")}
_MEASURE: Final = re.compile(rf"({'|'.join(MEASURES)})\+(\d+)(%?)")


class ToleranceError(ValueError):
    """A word that is none of those of `--fail-on`."""


class Limit(NamedTuple):
    """One thing that fails: a kind, or a measure that grows by at least `least` (`share`: percent
    of what it was)."""

    word: str
    name: str
    least: int = 1
    is_share: bool = False


def read(words: str) -> tuple[Limit, ...]:
    """`structural,spills,registers+8,instructions+10%`. Raises `ToleranceError`."""
    out = []
    for word in (w.strip() for w in words.split(",")):
        found = _MEASURE.fullmatch(word)
        if found:
            out.append(Limit(word, found[1], int(found[2]), bool(found[3])))
        elif word in KINDS or word in MEASURES:
            out.append(Limit(word, word))
        elif word:
            raise ToleranceError(
                f"{word!r} is none of {', '.join(KINDS)}, or of {', '.join(MEASURES)} with what "
                "they may grow by, such as registers+8 or instructions+10%"
            )
    return tuple(out)


def failed(difference: Difference, limits: tuple[Limit, ...]) -> list[str]:
    """The words that a pair of kernels fails on."""
    return [limit.word for limit in limits if _fails(difference, limit)]


def undecided(difference: Difference, limits: tuple[Limit, ...]) -> list[str]:
    """The words of which it is not known whether a pair of kernels fails on them."""
    return [
        limit.word
        for limit in limits
        if any(name in difference.unknown for name in _NEEDS.get(limit.name, ()))
        and not _fails(difference, limit)
    ]


def _fails(difference: Difference, limit: Limit) -> bool:
    name = limit.name
    if name in ("structural", "constants"):
        return difference.kind == name or (
            name == "constants" and bool(difference.code.alignment.changed)
        )
    if name == "machine-code":
        return any(code.level == "sass" and code.is_changed for code in difference.levels)
    if name == "verdicts":
        return any(change.is_worse for change in difference.verdicts)
    if name == "guards":
        first = any(a.guarded and new < old for a, old, new in difference.code.accesses)
        return first or (difference.machine is not None and _loses_guards(difference.machine))
    if name == "accesses":
        return any(a.space == "global" for a, _, _ in difference.code.accesses)
    deltas = {d.name: d for d in (*difference.resources, *difference.code.classes)}
    if name == "spills":
        return any(deltas[n].change > 0 for n in ("spill_stores", "spill_loads") if n in deltas)
    if name == "occupancy":
        return name in deltas and deltas[name].change < 0
    # Triton's shared memory is dynamic.
    parts = [deltas[n] for n in _PARTS.get(name, (name,)) if n in deltas]
    known = [delta for delta in parts if delta.old is not None and delta.new is not None]
    change = sum(delta.change for delta in known)
    before = sum(delta.old or 0 for delta in known)
    least = before * limit.least / 100 if limit.is_share else limit.least
    return change > 0 and change >= least


def _loses_guards(code: CodeDifference) -> bool:
    """True if of some kind of access fewer are guarded and more are not: an assembler unrolls as it
    likes, so fewer alone say nothing of a guard."""
    change = {access: new - old for access, old, new in code.accesses}
    return any(
        access.guarded and by < 0 and change.get(access._replace(guarded=False), 0) > 0
        for access, by in change.items()
    )


__all__ = ["KINDS", "MEASURES", "Limit", "ToleranceError", "failed", "read", "undecided"]
