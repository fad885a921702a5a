"""BND306: an array reached with a stride here and without it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.access import Access, AccessAnalysis, Index
from ptxlint.dataflow.polynomial import Monomial, Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_STEADY: Final = frozenset({"bit", "ctaid"})
_HEAD = """
            .reg .b32 %r<9>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %tid.x;
            and.b32 %r3, %r3, 127;
            shl.b32 %r4, %r2, 7;
            or.b32 %r4, %r4, %r3;
            mul.lo.s32 %r5, %r4, %r1;
            mul.wide.s32 %rd3, %r5, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r6, [%rd4];
"""


class StrideMismatch(Rule):
    id = "BND306"
    name = "stride-mismatch"
    severity = "warning"
    confidence = "medium"
    category = "bounds"
    family = "stride"
    needs = (AccessAnalysis,)
    preview = True
    summary = "One index of an array is multiplied by a stride in one access and not in another."
    why = (
        "A kernel that takes a stride must use it at every access of that array. Where one pass "
        "multiplies an index by it and another does not, the result is right only for "
        "a stride of 1, that is for the contiguous tensors that tests use. Indices are compared by "
        "value; an access counts only if the stride occurs nowhere in it, so x[i, j] and x[j, i] "
        "are no mismatch."
    )
    fix = "Multiply the index by the stride in both places."
    refs = ("https://github.com/ModelTC/LightLLM/issues/1467",)
    bad = (
        Sample(
            "the second pass forgets the stride",
            _HEAD
            + """
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            ld.global.b32 %r7, [%rd4]; //~ BND306
            add.s32 %r7, %r7, %r6;
            st.global.b32 [%rd2], %r7;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "both passes use it",
            _HEAD
            + """
            ld.global.b32 %r7, [%rd4];
            add.s32 %r7, %r7, %r6;
            st.global.b32 [%rd2], %r7;
            ret;
            """,
        ),
        Sample(
            "another array, contiguous",
            _HEAD
            + """
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd2, %rd3;
            st.global.b32 [%rd4], %r6;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        accesses = facts.get(AccessAnalysis)
        strided: dict[tuple[str, object], tuple[Access, Index]] = {}
        live = [a for a in accesses.in_global if a.base and a.guard is not None]
        for access in live:
            for part in accesses.indices(access):
                if part.scale and _steady(part.terms).terms:
                    strided.setdefault((access.base, _steady(part.terms)), (access, part))
        reported: set[str] = set()
        for access in live:
            for part in accesses.indices(access):
                found = None if part.scale else strided.get((access.base, _steady(part.terms)))
                if found is None or access.base in reported or _uses(access, found[1].scale):
                    continue
                reported.add(access.base)
                table = access.offset.table
                stride = "*".join(repr(table.atoms[n]) for n in found[1].scale)
                yield Hit(
                    f"an index that is multiplied by `{stride}` elsewhere is used without it here",
                    access.instr,
                    related=(Note(f"here it is multiplied by `{stride}`", found[0].instr),),
                    breaks_when=f"{stride} is not 1",
                    key=f"{access.kind} {access.base}",
                )
        if reported:
            yield Verdict("refuted", "one index is used with and without its stride")


def _steady(terms: Polynomial) -> Polynomial:
    """The lanes and CTA numbers of an index, up to a common factor: two loops over one array
    count in numbers of their own."""
    atoms = terms.table.atoms
    kept = {m: c for m, c in terms.terms.items() if all(atoms[n].kind in _STEADY for n in m)}
    poly = Polynomial(terms.table, kept)
    unit = poly.gcd() or 1
    return Polynomial(terms.table, {m: c // unit for m, c in kept.items()})


def _uses(access: Access, scale: Monomial) -> bool:
    """True if a factor of the stride occurs anywhere in the access's offset."""
    return any(set(monomial) & set(scale) for monomial in access.offset.terms)
