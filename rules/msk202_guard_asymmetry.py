"""MSK202: an access without the guard that another access on the same index has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    core_of,
    is_part_of,
    is_tiled,
    lanes_of,
    split_bound,
    use_of,
    varying_part,
)
from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.types import BITS
from ptxlint.launch.analysis import LaunchAnalysis
from ptxlint.launch.questions import ABOVE, settled
from ptxlint.obligations import Generalisation
from ptxlint.rulekit import TILE_START, Hit, Note, Rule, Sample, Verdict

_DOES: Final = {"load": "reads", "copy": "reads", "store": "writes", "atomic": "updates"}
_HOW: Final = {
    "guards": "guards it against", "wraps": "wraps it by", "clamps": "clamps it to",
    "selects": "replaces it from",
}  # fmt: skip
_BOUNDED: Final = "bounded"
_MISSING: Final = "missing"
_UNCLEAR: Final = "unclear"


class Bound(NamedTuple):
    """`index < limit` or the like, as one access is guarded by it, or confines its index by it."""

    access: Access
    inner: Polynomial
    core: Polynomial
    limit: Polynomial
    how: str


class GuardAsymmetry(Rule):
    id = "MSK202"
    name = "guard-asymmetry"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    needs = (AccessAnalysis, LaunchAnalysis)
    summary = "One access of an index is guarded against its bound, another on the same index not."
    why = (
        "When a store is masked with `offs < n`, the kernel expects offsets past n. A load at the "
        "same offsets without that mask reads out of bounds: the result can be right and the "
        "kernel still crash, or leak what lies behind the array. The other way round, a store "
        "without its mask overwrites memory. A load that wraps its index (`offs % n`) says the "
        "same: offsets past n do occur. Indices are compared by value, not by name, and only those "
        "that tile the grid (a program id times a tile plus a lane) count. Where all launches that "
        "are given keep the access inside, it is a note."
    )
    fix = "Give the access the mask of its sibling: tl.load(…, mask=offs < n, other=…)."
    refs = (
        "https://github.com/Dao-AILab/flash-attention/issues/2790",
        "https://github.com/FlagOpen/FlagGems/issues/5231",
    )
    bad = (
        Sample(
            "a bare load beside a masked store",
            TILE_START
            + """
            ld.global.b32 %r6, [%rd4]; //~ MSK202
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
        ),
        Sample(
            "a wrapped load beside a bare store",
            TILE_START
            + """
            rem.s32 %r6, %r5, %r1;
            mul.wide.s32 %rd3, %r6, 4;
            add.s64 %rd1, %rd1, %rd3;
            ld.global.b32 %r7, [%rd1];
            st.global.b32 [%rd5], %r7; //~ MSK202
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "both masked",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
        ),
        Sample(
            "a whole tile under a branch that says it fits",
            TILE_START
            + """
            add.s32 %r6, %r3, 128;
            setp.gt.s32 %p2, %r6, %r1;
            @%p2 bra tail;
            ld.global.b32 %r7, [%rd4];
            st.global.b32 [%rd5], %r7;
            ret;
            tail:
            @%p1 ld.global.b32 %r7, [%rd4];
            @%p1 st.global.b32 [%rd5], %r7;
            ret;
            """,
        ),
        Sample(
            "a row index that the grid bounds",
            TILE_START
            + """
            setp.lt.s32 %p2, %r4, %r1;
            mad.lo.s32 %r6, %r2, %r1, %r4;
            mul.wide.s32 %rd3, %r6, 4;
            add.s64 %rd1, %rd1, %rd3;
            @%p2 ld.global.b32 %r7, [%rd1];
            mul.wide.u32 %rd3, %r2, 4;
            add.s64 %rd2, %rd2, %rd3;
            st.global.b32 [%rd2], %r2;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each array and kind of access without the bound; one verdict a kernel."""
        accesses = facts.get(AccessAnalysis)
        live = accesses.distinct
        bounds = list(_bounds(live, accesses))
        if not bounds:
            return
        bare: dict[tuple[str, str], tuple[Access, Bound]] = {}
        unclear: Access | None = None
        for access in live:
            compared = _compared(access)
            for bound in bounds:
                if bound.inner in compared:
                    continue
                status = _status(access, bound, accesses)
                if status == _MISSING:
                    bare.setdefault((access.base, access.kind), (access, bound))
                elif status == _UNCLEAR and unclear is None:
                    unclear = access
        left: list[Access] = []
        for access, bound in bare.values():
            hit = _hit(access, bound)
            alike = [
                a for a in accesses.in_global if (a.base, a.kind) == (access.base, access.kind)
            ]
            if _is_exact(alike, facts):
                # Right as it is launched, and wrong for other sizes.
                hit = hit._replace(
                    severity="note", message=f"{hit.message}; all tiles are exact here"
                )
            else:
                left.append(access)
            yield hit
        if not left and _is_exact(accesses.in_global, facts):
            exact = {a.instr.index for a in accesses.in_global if (a.base, a.kind) in bare}
            reason = "every access stays inside under the launches"
            yield Verdict("proved", reason, generalises=_carried(exact, facts))
        else:
            yield _verdict(left, unclear, accesses)


def _is_exact(accesses: list[Access], facts: Facts) -> bool:
    """True if these accesses stay inside under all the launches that there are."""
    if not facts.launches:
        return False
    instrs = {access.instr.index for access in accesses}
    return all(settled(found, instrs) == "proved" for found in facts.get(LaunchAnalysis))


def _carried(exact: set[int], facts: Facts) -> Iterator[Generalisation]:
    """For which other sizes the accesses without the guard stay inside, if there is one launch."""
    if exact and len(facts.launches) == 1:
        for found in facts.get(LaunchAnalysis):
            yield from found.reach.proved(ABOVE, exact)


def _verdict(bare: list[Access], unclear: Access | None, accesses: Accesses) -> Verdict:
    if bare:
        return Verdict("refuted", "an access lacks the guard of its sibling", bare[0].instr)
    if unclear is not None:
        return Verdict("open", "an access may go by an index that others bound", unclear.instr)
    missing = accesses.missing()
    if missing is not None:
        return Verdict("open", *missing)
    return Verdict("proved", "accesses on one tiled index carry the same bound")


def _bounds(live: list[Access], accesses: Accesses) -> Iterator[Bound]:
    """The bounds on tiled indices that some access is guarded by, or confines its index with."""
    seen: set[tuple[Polynomial, Polynomial]] = set()
    for access in live:
        for conjunct in access.guard or ():
            limit = split_bound(conjunct)
            if limit is None or not lanes_of(limit.compared).terms:
                continue
            key = (limit.compared, limit.extent)
            if key not in seen and accesses.use(access, limit.compared) is not None:
                seen.add(key)
                yield Bound(access, key[0], core_of(key[0]), key[1], "guards")
        for index, extent, how in accesses.confined(access):
            if is_tiled(index) and (index, extent) not in seen:
                seen.add((index, extent))
                yield Bound(access, index, core_of(index), extent, how)


def _compared(access: Access) -> set[Polynomial]:
    """The indices that the guard of an access bounds: it lacks no bound on these."""
    limits = map(split_bound, access.guard or ())
    return {limit.compared for limit in limits if limit is not None}


def _status(access: Access, bound: Bound, accesses: Accesses) -> str:
    """Whether an access that goes by the bounded index has a bound too; "" if it does not."""
    if access is bound.access or any(
        core_of(found.inner) == bound.core for found in accesses.confined(access)
    ):
        return ""
    goes = _goes_by(access, bound, accesses)
    if not goes and not _may_go_by(access, bound, accesses):
        return ""
    found = {_says(conjunct, bound, access, accesses) for conjunct in access.guard or ()}
    if _BOUNDED in found:
        return _BOUNDED
    return _UNCLEAR if _UNCLEAR in found or not goes else _MISSING


def _may_go_by(access: Access, bound: Bound, accesses: Accesses) -> bool:
    """True if some lanes of the access belong to a tile that starts where the bounded one does."""
    return any(
        lanes_of(part.terms).terms and is_part_of(core_of(part.terms), bound.core)
        for part in accesses.indices(access)
    )


def _goes_by(access: Access, bound: Bound, accesses: Accesses) -> bool:
    """True for the same lanes of the same tile; or for any lanes of it where the address steps
    by whole elements, since operands of a product have layouts of their own. A tile that no CTA
    number or iteration moves is compared within one array only."""
    if not varying_part(bound.core).terms:
        # Lanes alone are a tile of their own in every array: only the same elements compare.
        same = access.base == bound.access.base
        return same and access.form == bound.access.form
    if accesses.use(access, bound.inner) is not None:
        return True
    element = max(1, BITS.get(access.instr.shape.type, 8) // 8)
    return accesses.is_in_tile(access, bound.core, element)


def _says(conjunct: Conjunct, bound: Bound, access: Access, accesses: Accesses) -> str:
    """What a conjunct of an access's guard says about the bounded index."""
    if conjunct.polynomial is None:
        return _UNCLEAR
    limit = split_bound(conjunct)
    if limit is not None:
        if limit.compared == bound.inner:
            return _BOUNDED
        core = core_of(limit.compared)
        if core == bound.core and core.terms:
            # A bound on the tile's start leaves its lanes free, unless the whole tile fits.
            free = limit.compared == core and limit.extent == bound.limit
            return "" if free and -limit.bound.constant <= _last_lane(bound.inner) else _BOUNDED
        more = limit.compared - bound.inner
        if more.terms and not lanes_of(more).terms and lanes_of(limit.compared).terms:
            # The same lanes, of a tile that starts elsewhere: MSK205 judges which is right.
            return _BOUNDED if more.range()[0] >= 0 else _UNCLEAR
        if lanes_of(limit.compared).terms and use_of(access.form, limit.compared) is not None:
            # Another index of the address; or a part of this one, which MSK205 judges.
            return "" if accesses.use(access, limit.compared) is not None else _UNCLEAR
    shared = bound.core.atoms() or bound.inner.atoms() & conjunct.polynomial.atoms()
    return _UNCLEAR if shared and shared <= conjunct.polynomial.atoms() else ""


def _last_lane(index: Polynomial) -> int:
    """The greatest number that the lanes add to where a tile starts."""
    return lanes_of(index).range()[1]


def _hit(access: Access, bound: Bound) -> Hit:
    verb, how = _DOES[access.kind], _HOW[bound.how]
    return Hit(
        f"{verb} at a tiled index without a guard, where another access {how} its bound",
        access.instr,
        related=(Note(f"this one {how} `{bound.limit}`", bound.access.instr),),
        breaks_when="the extent is no multiple of the tile: threads of the last tile go past it",
        key=f"{access.kind} {access.base}",
    )
