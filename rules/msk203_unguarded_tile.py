"""MSK203: a tiled index that nothing guards."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses, wrapped_index
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Rule, Sample, Verdict


class UnguardedTile(Rule):
    id = "MSK203"
    name = "unguarded-tile"
    severity = "note"
    confidence = "high"
    category = "masking"
    family = "tail-mask"
    needs = (AccessAnalysis,)
    preview = True
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
            """
            .reg .b32 %r<6>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            ld.global.b32 %r2, [%rd1]; //~ MSK203
            st.global.b32 [%rd1], %r2;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a masked tile",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            shl.b32 %r3, %r2, 7;
            mov.u32 %r4, %tid.x;
            and.b32 %r4, %r4, 127;
            or.b32 %r5, %r3, %r4;
            setp.lt.s32 %p1, %r5, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd1, %rd1, %rd3;
            @%p1 ld.global.b32 %r2, [%rd1];
            @%p1 st.global.b32 [%rd1], %r2;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        accesses = facts.get(AccessAnalysis)
        bare: dict[Polynomial, Access] = {}
        for access in accesses.in_global:
            if access.base and access.guard is not None:
                for tiled in _unguarded(access, accesses):
                    bare.setdefault(tiled, access)
        for tiled, access in bare.items():
            tile = _tile(tiled)
            yield Hit(
                f"a tile of {tile} elements is accessed without a guard",
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


def _unguarded(access: Access, accesses: Accesses) -> Iterator[Polynomial]:
    """The tiled indices of an access that no conjunct says anything about."""
    bounded = {
        atom
        for conjunct in access.guard or ()
        if conjunct.polynomial is not None
        for atom in conjunct.polynomial.atoms()
    }
    if any(c.polynomial is None for c in access.guard or ()):
        return
    wrapped = {found[0] for found in map(wrapped_index, access.offset.atoms()) if found is not None}
    for part in accesses.indices(access):
        grid = {atom for atom in part.terms.atoms() if atom.kind == "ctaid"}
        if _tile(part.terms) and not bounded & grid and part.terms not in wrapped:
            yield part.terms


def _tile(index: Polynomial) -> int:
    """How many elements one CTA covers; 0 if the index is no CTA number times a tile plus lanes."""
    atoms = index.table.atoms
    tile, lanes = 0, 0
    for monomial, coefficient in index.terms.items():
        kinds = {atoms[number].kind for number in monomial}
        if kinds == {"bit"}:
            lanes += coefficient
        elif kinds == {"ctaid"}:
            tile = coefficient
    return tile if lanes > 0 and tile > lanes and tile % (lanes + 1) == 0 else 0
