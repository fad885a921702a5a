"""MSK205: a mask that compares only a part of the index it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    Limit,
    core_of,
    lanes_of,
    same_rounds,
    split_bound,
    use_of,
    varying_part,
)
from ptxlint.dataflow.access_bounds import AccessBounds, AccessBoundsAnalysis, Bounded
from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.polynomial import CTAS, Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import TILE_START, Hit, Note, Rule, Sample, Verdict

_LOOP = (
    TILE_START
    + """
            mov.b32 %r6, 0;
            mov.b32 %r7, 0;
            $chunk:
            add.s32 %r5, %r6, %r4;
            setp.lt.s32 %p1, INDEX, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd4, %rd1, %rd3;
            mov.b32 %r8, 0;
            @%p1 ld.global.b32 %r8, [%rd4]; MARK
            add.s32 %r7, %r7, %r8;
            add.s32 %r6, %r6, 128;
            setp.lt.s32 %p2, %r6, %r1;
            @%p2 bra $chunk;
            mul.wide.u32 %rd3, %r4, 4;
            add.s64 %rd2, %rd2, %rd3;
            st.global.b32 [%rd2], %r7;
            ret;
"""
)


_FEWEST_COPIES: Final = 2
_SIGN: Final = 1 << 25
"""A division by so much, of a 32-bit word, is the fix-up of a signed division by a tile."""


class MaskOnAnotherIndex(Rule):
    id = "MSK205"
    name = "mask-on-another-index"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    needs = (AccessAnalysis, AccessBoundsAnalysis)
    summary = "A mask compares the lanes of a tile, and the address also moves with the tile."
    why = (
        "`tl.arange(0, BLOCK) < n` says nothing about `pid * BLOCK + tl.arange(0, BLOCK)`, nor "
        "does a mask without the loop's offset about a chunk further on: from the second tile on "
        "it is true for elements past the end, and for a small n it is false for elements that "
        "exist. It is right where each program owns a row of its own, so it is reported only where "
        "another comparison with the same bound has the whole index: another mask, an early exit, "
        "or the loop's own condition."
    )
    fix = "Compare the index that the address is made of: mask=pid * BLOCK + lanes < n."
    bad = (
        Sample(
            "the load leaves out the program id",
            TILE_START
            + """
            setp.lt.s32 %p2, %r4, %r1;
            @%p2 ld.global.b32 %r6, [%rd4]; //~ MSK205
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
        ),
        Sample(
            "a chunk of a loop, masked as if it were the first",
            _LOOP.replace("INDEX", "%r4").replace("MARK", "//~ MSK205"),
        ),
    )
    good = (
        Sample(
            "the whole index",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
        ),
        Sample(
            "rows of 128, of which n columns are in use",
            TILE_START
            + """
            setp.lt.s32 %p2, %r4, %r1;
            @%p2 ld.global.b32 %r6, [%rd4];
            @%p2 st.global.b32 [%rd5], %r6;
            ret;
            """,
        ),
        Sample(
            "a chunk of a loop, masked where it stands",
            _LOOP.replace("INDEX", "%r5").replace("MARK", ""),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each array and kind of access with such a mask; one verdict a kernel."""
        accesses = facts.get(AccessAnalysis)
        partial: list[Partial] = []
        compared = False
        for access in accesses.distinct:
            for limit in map(split_bound, access.guard or ()):
                if limit is not None and lanes_of(limit.compared).terms:
                    compared = True
                    partial += _partial(access, limit, accesses)
        if not compared:
            return
        unrolled = _unrolled(accesses, facts.get(AccessBoundsAnalysis))
        whole = _whole(accesses) if partial else {}
        wrong: dict[tuple[str, str], tuple[Partial, Instr]] = {}
        for found in partial:
            elsewhere = whole.get((same_rounds(found.core), found.extent))
            if elsewhere is not None:
                key = (found.access.base, found.access.kind)
                wrong.setdefault(key, (found, elsewhere))
        for found, elsewhere in wrong.values():
            hit = _hit(found, elsewhere)
            yield hit._replace(label=facts.words.guard(found.access.instr))
        for copy in unrolled:
            label = facts.words.guard(copy.bounded.access.instr)
            yield _hit_of_copy(copy)._replace(label=label)
        partial = [found for found in partial if not found.mixed]
        accused = [f.access for f, _ in wrong.values()] + [copy.bounded.access for copy in unrolled]
        yield _verdict(accused, partial, accesses)


class Partial(NamedTuple):
    """An access whose mask bounds its lanes by `extent` and leaves out `omitted`, a part of where
    its tile starts (`core`, in the units of the comparison).

    `mixed` says that what is left out has another factor than what is compared has, as the start
    of a row does.
    """

    access: Access
    omitted: Polynomial
    core: Polynomial
    extent: Polynomial
    mixed: bool = False


def _partial(access: Access, limit: Limit, accesses: Accesses) -> Iterator[Partial]:
    """The mask as a partial one, if the address moves with more than it compares."""
    use = use_of(access.form, limit.compared)
    if use is None:
        return
    whole = [core_of(w.compared) for w in map(split_bound, access.guard or ()) if w is not None]
    cores = [
        (core_of(part.terms) * part.element, False)
        for part in accesses.indices(access)
        if part.scale == use.scale
    ]
    if not use.scale:
        cores.append((core_of(varying_part(access.form)), True))
    for bytes_, mixed in cores:
        core = _in_units(bytes_, use.element)
        if core is None:
            continue
        compared = core_of(limit.compared)
        omitted = varying_part(core - compared)
        if omitted.terms and not compared.terms.keys() & omitted.terms.keys() and core not in whole:
            yield Partial(access, omitted, core, limit.extent, mixed)


def _in_units(core: Polynomial, unit: int) -> Polynomial | None:
    """Bytes as numbers of elements; None if they are no whole numbers."""
    if any(coefficient % unit for coefficient in core.terms.values()):
        return None
    return Polynomial(core.table, {m: c // unit for m, c in core.terms.items()})


def _whole(accesses: Accesses) -> dict[tuple[Polynomial, Polynomial], Instr]:
    """Where a tile's start is compared with an extent: in a guard, or by a branch."""
    found: dict[tuple[Polynomial, Polynomial], Instr] = {}
    guards = accesses.guards
    seen: set[Conjunct] = set()
    for access in accesses.in_global:
        for conjunct in (access.own or frozenset()) - seen:
            seen.add(conjunct)
            limit = split_bound(conjunct)
            if limit is not None:
                found.setdefault(_key(limit), access.instr)
    cfg = guards.ssa.cfg
    for block in cfg.rpo:
        branch = cfg.terminator(block)
        for target in cfg.blocks[block].succs if branch is not None else ():
            for limit in map(split_bound, guards.of_edge(block, target) or ()):
                if limit is not None and branch is not None:
                    found.setdefault(_key(limit), branch)
                    counted = _counted(limit)
                    if counted is not None:
                        found.setdefault(counted, branch)
    return found


def _key(limit: Limit) -> tuple[Polynomial, Polynomial]:
    return same_rounds(core_of(limit.compared)), limit.extent


def _counted(limit: Limit) -> tuple[Polynomial, Polynomial] | None:
    """For `tile < cdiv(extent, size)`: the start of the tile and the extent."""
    (atom, *others) = limit.extent.atoms() or (None,)
    if atom is None or others or atom.kind != "fdiv" or limit.extent.coefficient(atom) != 1:
        return None
    dividend, size = atom.data
    table, terms = dividend.table, dict(dividend.terms)
    terms.pop((), None)
    for monomial in list(terms):
        # Signed division adds its fix-up, which is 0 for a size.
        inner = table.atoms[monomial[0]]
        if inner.kind == "fdiv" and inner.data[1] >= _SIGN:
            del terms[monomial]
    start, _ = _key(limit)
    return start * size, Polynomial(table, terms)


def _hit(found: Partial, elsewhere: Instr) -> Hit:
    what = "the program id" if found.omitted.depends & CTAS else "the loop's offset"
    return Hit(
        f"the mask leaves out {what}, `{found.omitted}`, which the address has",
        found.access.instr,
        related=(Note(f"here the whole index is compared with `{found.extent}`", elsewhere),),
        breaks_when=f"`{found.extent}` is more than one tile, and no multiple of it",
        key=f"{found.access.kind} {found.access.base} {what}",
    )


class Copy(NamedTuple):
    """A copy of an access, and where another access has a bound of its own at that index."""

    bounded: Bounded
    elsewhere: Instr
    extent: Polynomial


def _unrolled(accesses: Accesses, bounds: AccessBounds) -> list[Copy]:
    """Copies that unrolling made of an access, whole tiles further on under the first one's bound,
    where another access at such an index has a bound of its own."""
    guarded = [a for a in accesses.in_global if a.base and a.guard]
    if all(found.margin < 0 for access in guarded for _, found in bounds.of(access)):
        return []
    copies: dict[tuple[object, ...], list[Bounded]] = {}
    extents: dict[tuple[object, ...], Polynomial] = {}
    exact: dict[tuple[object, ...], Instr] = {}
    for access in guarded:
        loc = access.instr.loc
        if loc is None:
            continue
        for place, found in bounds.of(access):
            if not found.lanes.terms:
                continue
            index = (place.core, place.extent, found.lanes)
            if found.margin == -1:
                exact.setdefault((*index, found.shift), access.instr)
            where = (access.kind, loc.file, loc.line, loc.column)
            key: tuple[object, ...] = (*index, *place, *where, found.margin - found.shift)
            copies.setdefault(key, []).append(found)
            extents[key] = place.extent
    out: list[Copy] = []
    for of, group in copies.items():
        if len({copy.shift for copy in group}) < _FEWEST_COPIES or group[0].margin != -1:
            continue
        for copy in group[1:]:
            elsewhere = exact.get((*of[:3], copy.shift))
            if elsewhere is not None and copy.margin >= copy.lanes.range()[1]:
                out.append(Copy(copy, elsewhere, extents[of]))
                break
    return out


def _hit_of_copy(copy: Copy) -> Hit:
    access, extent = copy.bounded.access, copy.extent
    return Hit(
        f"the mask leaves out the loop's offset, {copy.bounded.margin + 1} here, which the address "
        "has",
        access.instr,
        related=(Note(f"here the whole index is compared with `{extent}`", copy.elsewhere),),
        breaks_when=f"`{extent}` is more than one tile, and no multiple of it",
        key=f"{access.kind} {access.base} the loop's offset",
    )


def _verdict(wrong: list[Access], partial: list[Partial], accesses: Accesses) -> Verdict:
    if wrong:
        return Verdict("refuted", "a mask leaves out where its tile starts", wrong[0].instr)
    if partial:
        return Verdict(
            "open",
            "a mask bounds lanes only: right if each program owns a row of its own",
            partial[0].access.instr,
        )
    missing = accesses.missing()
    if missing is not None:
        return Verdict("open", *missing)
    return Verdict("proved", "no mask leaves out a part of the index in its address")
