"""MSK204: a guard that lets one element more in than its sibling."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses
from ptxlint.dataflow.access_bounds import AccessBoundsAnalysis, Bounded, Place
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import TILE_START, Hit, Note, Rule, Sample, Verdict


class OffByOneGuard(Rule):
    id = "MSK204"
    name = "off-by-one-guard"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    needs = (AccessAnalysis, AccessBoundsAnalysis)
    summary = "An array is accessed under `index <= n` here and under `index < n` there."
    why = (
        "Two accesses of one array at the same index, one guarded by < and one by <= against the "
        "same extent, cannot both be right: the second touches one element past the end. When the "
        "extent is a multiple of the tile no test sees it. Accesses are compared only if "
        "tile, offset and extent are the same, so arrays of n + 1 entries read at i and i + 1 stay "
        "silent."
    )
    fix = "Use the same comparison for both accesses: offs < n."
    bad = (
        Sample(
            "a store under <= of an array that is read under <",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            setp.le.s32 %p2, %r5, %r1;
            @%p2 st.global.b32 [%rd4], %r3; //~ MSK204
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "the same bound twice",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 st.global.b32 [%rd4], %r3;
            ret;
            """,
        ),
        Sample(
            "entries i and i + 1 of an array of n + 1",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 ld.global.b32 %r7, [%rd4+4];
            @%p1 st.global.b32 [%rd5], %r7;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each array that is guarded both ways; one verdict a kernel."""
        accesses = facts.get(AccessAnalysis)
        found: dict[int, dict[Place, list[Bounded]]] = {}
        unmatched: list[Access] = []
        bounds = facts.get(AccessBoundsAnalysis)
        for access in accesses.in_global:
            if access.base and access.guard:
                matched = bounds.of(access)
                if len(matched) < bounds.goes(access).compared:
                    unmatched.append(access)
                for place, bounded in matched:
                    found.setdefault(min(1, bounded.margin), {}).setdefault(place, []).append(
                        bounded
                    )
        strict, loose = found.get(-1, {}), found.get(0, {})
        refuted: dict[str, Bounded] = {}
        for place, group in loose.items():
            sibling = strict.get(place)
            if sibling and place.base not in refuted and _same_elements(group, sibling):
                refuted[place.base] = group[0]
                hit = _hit(place, group[0], sibling[0])
                yield hit._replace(label=facts.words.guard(group[0].access.instr))
        if refuted:
            first = next(iter(refuted.values())).access.instr
            yield Verdict("refuted", "one array is guarded by both < and <=", first)
        elif found:
            past = [
                b.access for margin in (0, 1) for g in found.get(margin, {}).values() for b in g
            ]
            yield _undisputed(past, unmatched, accesses)


def _undisputed(past: list[Access], unmatched: list[Access], accesses: Accesses) -> Verdict:
    """The verdict where no two guards contradict each other."""
    if past:
        return Verdict("open", "a guard lets the extent itself in", past[0].instr)
    if unmatched:
        return Verdict("open", "a guard compares something else", unmatched[0].instr)
    missing = accesses.missing()
    if missing is not None:
        return Verdict("open", *missing)
    return Verdict("proved", "every guarded index stays below its extent")


def _hit(place: Place, loose: Bounded, strict: Bounded) -> Hit:
    return Hit(
        f"guarded by `index <= {place.extent}`, one element more than elsewhere",
        loose.access.instr,
        related=(
            Note(
                f"here the same array is guarded by `index < {place.extent}`", strict.access.instr
            ),
        ),
        breaks_when=f"an index equals {place.extent}",
        key=f"{loose.access.kind} {place.base}",
    )


def _same_elements(loose: list[Bounded], strict: list[Bounded]) -> bool:
    """True if both groups touch the same elements of the tile.

    An array of n + 1 entries is read at i and at i + 1 under i < n: at i + 1 that is `<=`.
    """
    if {b.lanes for b in loose} == {b.lanes for b in strict}:
        return _shifts(loose) == _shifts(strict)
    return min(b.shift for b in loose) == min(b.shift for b in strict)


def _shifts(group: list[Bounded]) -> set[int]:
    return {b.shift + at for b in group for at in range(b.elements)}
