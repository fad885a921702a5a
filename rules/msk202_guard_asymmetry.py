"""MSK202: an access without the guard that another access on the same index has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.dataflow.access import (
    Access,
    AccessAnalysis,
    Accesses,
    split_bound,
    wrapped_index,
)
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.types import BITS
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_DOES: Final = {"load": "reads", "copy": "reads", "store": "writes", "atomic": "updates"}


class Bound(NamedTuple):
    """`index < limit` or the like, as one access is guarded by it, or wraps by it."""

    access: Access
    tiled: Polynomial
    limit: Polynomial
    grid: Polynomial
    """For an index that is wrapped: its CTA numbers times the tile, in elements."""

    @property
    def wraps(self) -> bool:
        return bool(self.grid.terms)


class GuardAsymmetry(Rule):
    id = "MSK202"
    name = "guard-asymmetry"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    needs = (AccessAnalysis,)
    preview = True
    summary = "One access of an index is guarded against its bound, another on the same index not."
    why = (
        "When a store is masked with `offs < n`, the kernel expects offsets past n. A load at the "
        "same offsets without that mask reads out of bounds: the result can be right and the "
        "kernel still crash, or leak what lies behind the array. The other way round, a store "
        "without its mask overwrites memory. A load that wraps its index (`offs % n`) says the "
        "same: offsets past n do occur. Indices are compared by value, not by name, and only those "
        "that tile the grid (a program id times a tile plus a lane) count."
    )
    fix = "Give the access the mask of its sibling: tl.load(…, mask=offs < n, other=…)."
    refs = (
        "https://github.com/Dao-AILab/flash-attention/issues/2790",
        "https://github.com/FlagOpen/FlagGems/issues/5231",
    )
    bad = (
        Sample(
            "a bare load beside a masked store",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            setp.lt.s32 %p1, %r5, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
            ld.global.b32 %r2, [%rd1]; //~ MSK202
            @%p1 st.global.b32 [%rd2], %r2;
            ret;
            """,
        ),
        Sample(
            "a wrapped load beside a bare store",
            """
            .reg .b32 %r<8>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            rem.s32 %r6, %r5, %r1;
            mul.wide.s32 %rd3, %r6, 4;
            add.s64 %rd1, %rd1, %rd3;
            ld.global.b32 %r7, [%rd1];
            mul.wide.s32 %rd4, %r5, 4;
            add.s64 %rd2, %rd2, %rd4;
            st.global.b32 [%rd2], %r7; //~ MSK202
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "both masked",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            setp.lt.s32 %p1, %r5, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
            @%p1 ld.global.b32 %r2, [%rd1];
            @%p1 st.global.b32 [%rd2], %r2;
            ret;
            """,
        ),
        Sample(
            "a whole tile under a branch that says it fits",
            """
            .reg .pred %p<3>;
            .reg .b32 %r<8>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            add.s64 %rd2, %rd2, %rd3;
            add.s32 %r6, %r3, 128;
            setp.gt.s32 %p2, %r6, %r1;
            @%p2 bra tail;
            ld.global.b32 %r7, [%rd1];
            st.global.b32 [%rd2], %r7;
            ret;
            tail:
            setp.lt.s32 %p1, %r5, %r1;
            @%p1 ld.global.b32 %r7, [%rd1];
            @%p1 st.global.b32 [%rd2], %r7;
            ret;
            """,
        ),
        Sample(
            "a row index that the grid bounds",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<8>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            setp.lt.s32 %p1, %r4, %r1;
            mad.lo.s32 %r5, %r2, %r1, %r4;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            @%p1 ld.global.b32 %r6, [%rd1];
            mul.wide.u32 %rd4, %r2, 4;
            add.s64 %rd2, %rd2, %rd4;
            st.global.b32 [%rd2], %r2;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        accesses = facts.get(AccessAnalysis)
        live = [a for a in accesses.in_global if a.base and a.guard is not None]
        bounds = list(_bounds(live, accesses))
        if not bounds:
            return
        bare: dict[tuple[str, str], tuple[Access, Bound]] = {}
        for access in live:
            bound = _missing(access, bounds, accesses)
            if bound is not None:
                bare.setdefault((access.base, access.kind), (access, bound))
        for access, bound in bare.values():
            yield _hit(access, bound)
        if bare:
            first = next(iter(bare.values()))[0].instr
            yield Verdict("refuted", "an access lacks the guard of its sibling", first)
        elif not accesses.unknown and not accesses.symbolic.exhausted:
            yield Verdict("proved", "accesses on one tiled index carry the same bound")
        else:
            yield Verdict(
                "open",
                f"{len(accesses.unknown)} accesses have an address that is not understood",
                accesses.unknown[0] if accesses.unknown else None,
            )


def _bounds(live: list[Access], accesses: Accesses) -> Iterator[Bound]:
    """The bounds on tiled indices that some access is guarded by, or wraps its index with."""
    seen: set[tuple[Polynomial, Polynomial]] = set()
    for access in live:
        for conjunct in access.guard or ():
            split = split_bound(conjunct)
            if split is None or not _is_tiled(split.terms):
                continue
            if accesses.using(access, split.terms) is None:
                continue
            if (split.terms, split.bound) not in seen:
                seen.add((split.terms, split.bound))
                yield Bound(access, split.terms, split.bound, split.terms * 0)
        for atom in access.offset.atoms():
            wrapped = wrapped_index(atom)
            if wrapped is not None and wrapped not in seen and _is_tiled(wrapped[0]):
                seen.add(wrapped)
                yield Bound(access, *wrapped, _grid(wrapped[0]))


def _is_tiled(index: Polynomial) -> bool:
    """True for a program id times a tile plus lanes: what no grid bounds by itself."""
    kinds = {atom.kind for atom in index.atoms()}
    return {"bit", "ctaid"} <= kinds


def _missing(access: Access, bounds: list[Bound], accesses: Accesses) -> Bound | None:
    """The bound that this access lacks, if it uses a bounded index and nothing bounds it."""
    own = access.guard or frozenset()
    bounded = {
        atom
        for conjunct in own
        if conjunct.polynomial is not None
        for atom in conjunct.polynomial.atoms()
    }
    unclear = any(c.polynomial is None for c in own)
    wrapped = {found[0] for found in map(wrapped_index, access.offset.atoms()) if found is not None}
    for bound in bounds:
        if access is bound.access or any(_is_of(w, bound) for w in wrapped):
            continue
        if not _uses(access, bound, accesses):
            continue
        grid = {atom for atom in bound.tiled.atoms() if atom.kind == "ctaid"}
        if not unclear and not bounded & grid:
            return bound
    return None


def _grid(index: Polynomial) -> Polynomial:
    """The CTA numbers of an index, with the tile that each is multiplied by."""
    atoms = index.table.atoms
    kept = {m: c for m, c in index.terms.items() if m and all(atoms[n].kind == "ctaid" for n in m)}
    return Polynomial(index.table, kept)


def _is_of(wrapped: Polynomial, bound: Bound) -> bool:
    """True if an index that an access wraps is the bounded one: it is in range then."""
    if bound.wraps:
        return _grid(wrapped) == bound.grid
    return wrapped == bound.tiled * wrapped.gcd()


def _uses(access: Access, bound: Bound, accesses: Accesses) -> bool:
    """True if the access goes by the bounded index: the same lanes of the same tile, or, where
    the index is wrapped elsewhere, any lanes of that tile (layouts differ between operands)."""
    if not bound.wraps:
        return accesses.using(access, bound.tiled) is not None
    size = max(1, BITS.get(access.instr.shape.type, 8) // 8)
    for part in accesses.indices(access):
        elements, rest = divmod(part.element, size)
        if not rest and _is_tiled(part.terms) and _grid(part.terms) * elements == bound.grid:
            return True
    return False


def _hit(access: Access, bound: Bound) -> Hit:
    verb = _DOES[access.kind]
    how = "wraps it by" if bound.wraps else "guards it against"
    return Hit(
        f"{verb} at a tiled index without a guard, where another access {how} its bound",
        access.instr,
        related=(Note(f"this one {how} `{bound.limit}`", bound.access.instr),),
        breaks_when="the extent is no multiple of the tile: threads of the last tile go past it",
        key=f"{access.kind} {access.base}",
    )
