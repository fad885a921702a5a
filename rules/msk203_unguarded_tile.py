"""MSK203: a tiled index that nothing guards."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    Index,
    core_of,
    is_part_of,
    lanes_of,
    split_bound,
)
from ptxlint.dataflow.elements import element_bytes
from ptxlint.dataflow.polynomial import CTAS, LANES, ROUNDS, Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis
from ptxlint.launch.questions import ABOVE, settled
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict
from ptxlint.wording import counted


class UnguardedTile(Rule):
    id = "MSK203"
    name = "unguarded-tile"
    severity = "note"
    confidence = "high"
    category = "masking"
    family = "tail-mask"
    needs = (AccessAnalysis, LaunchAnalysis)
    summary = (
        "A program id times a tile plus a lane, with no guard: right only if the size divides."
    )
    why = (
        "Kernels for exact tiles leave the mask out. Whether the size divides by the tile is the "
        "caller's promise, which the PTX does not hold: the property stays open until a launch is "
        "known. It is a note, not a warning, since a promise that is kept is no defect."
    )
    fix = "Mask the access, or check on the host that the size is a multiple of the tile."
    bad = (
        Sample(
            "an exact tile",
            TILE_START
            + """
            ld.global.b32 %r6, [%rd4]; //~ MSK203
            st.global.b32 [%rd4], %r6;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a masked tile",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 st.global.b32 [%rd4], %r6;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A note and an open verdict for each tile that nothing bounds; else one that is proved."""
        accesses = facts.get(AccessAnalysis)
        live = accesses.distinct
        bounded = _bounded(live, accesses)
        bare: dict[Polynomial, tuple[Access, Index]] = {}
        kept: set[bool] = set()
        for access in live:
            for part in accesses.indices(access):
                if lanes_of(part.terms).terms:
                    kept.add(_keeps(access, part.terms, accesses))
                if _tile(part.terms) and not _is_bounded(access, part.terms, bounded):
                    bare.setdefault(part.terms, (access, part))
        if facts.launches:
            yield from _launched(bare, accesses, facts)
            bare.clear()
        for access, part in bare.values():
            size, each = _elements(access, part, accesses)
            yield from _open(access, _tile(part.terms) * each, size)
        if kept == {True} and accesses.missing() is None:
            yield Verdict("proved", "every access by lanes compares its index with a bound")


def _launched(
    bare: dict[Polynomial, tuple[Access, Index]], accesses: Accesses, facts: Facts
) -> Iterator[Hit | Verdict]:
    """Under a launch the size is known: the tile is exact or it is not."""
    for terms, (access, _) in bare.items():
        tiled = {
            a.instr.index
            for a in accesses.in_global
            if a.base and any(part.terms == terms for part in accesses.indices(a))
        }
        for found in facts.get(LaunchAnalysis):
            status = settled(found, tiled)
            reason = {
                "proved": "under this launch the size is a multiple of the tile",
                "refuted": "under this launch the last tile goes beyond the size",
                "open": "whether the size is a multiple of the tile is not known",
            }[status]
            exact = found.reach.proved(ABOVE, tiled) if status == "proved" else ()
            yield Verdict(status, reason, access.instr, launch=found.bound, generalises=exact)


def _elements(access: Access, part: Index, accesses: Accesses) -> tuple[int, int]:
    """The bytes of an element, and how many elements one step of the index is: more than one where
    a thread accesses all of the bytes between two steps."""
    alike = [a for a in accesses.in_global if a.base == access.base and a.form == access.form]
    ssa = accesses.guards.ssa
    size = min(element_bytes(a.instr, ssa) for a in alike)
    if part.scale or part.element % size:
        return size, 1
    first = min(a.offset.constant for a in alike)
    covered = 0
    for constant, width in sorted((a.offset.constant - first, a.width) for a in alike):
        if constant <= covered:
            covered = max(covered, constant + width)
    return size, part.element // size if covered >= part.element else 1


def _open(access: Access, tile: int, size: int) -> Iterator[Hit | Verdict]:
    yield Hit(
        f"a tile of {tile} elements of {counted(size, 'byte')} is accessed without a guard",
        access.instr,
        breaks_when=f"the size is no multiple of {tile}",
        key=f"tile {tile}",
    )
    yield Verdict(
        "open",
        f"no guard bounds a tile of {tile}: the size must be a multiple of it",
        access.instr,
        suggest={"size": [tile - 1, tile, tile + 1]},
    )


def _bounded(live: list[Access], accesses: Accesses) -> set[Polynomial]:
    """Where the tiles start that some guard bounds or that some index is confined for; the lack of
    a guard elsewhere is then an asymmetry, not a tile that is exact."""
    cores = [
        core_of(limit.compared)
        for access in live
        for limit in map(split_bound, access.guard or ())
        if limit is not None
    ]
    cores += [core_of(found.inner) for a in live for found in accesses.confined(a)]
    return {core for core in cores if core.depends & CTAS}


def _keeps(access: Access, index: Polynomial, accesses: Accesses) -> bool:
    """True if the access itself compares this tile with its lanes, or confines its index."""
    core = core_of(index)
    compared = [
        limit.compared
        for limit in map(split_bound, access.guard or ())
        if limit is not None and lanes_of(limit.compared).terms
    ]
    compared += [found.inner for found in accesses.confined(access)]
    return any(is_part_of(core, core_of(found)) for found in compared)


def _is_bounded(access: Access, index: Polynomial, bounded: set[Polynomial]) -> bool:
    """True if the tile has a bound somewhere, or if the access is under a condition that says
    something about its CTA number, or that is not understood."""
    core = core_of(index)
    if any(is_part_of(core, whole) for whole in bounded):
        return True
    return any(
        conjunct.polynomial is None or core.atoms() & conjunct.polynomial.atoms()
        for conjunct in access.guard or ()
    )


def _tile(index: Polynomial) -> int:
    """How many elements one CTA covers; 0 if the index is no CTA number times a tile plus lanes."""
    core, lanes = core_of(index), lanes_of(index)
    if core.depends & ROUNDS or not core.depends & CTAS or lanes.depends != LANES:
        return 0
    tile, last = core.gcd(), lanes.range()[1]
    each, rest = divmod(tile, last + 1)
    # A thread holds a power of two of elements; what is no such multiple is the length of a row.
    return tile if last > 0 and each > 0 and not rest and not each & (each - 1) else 0
