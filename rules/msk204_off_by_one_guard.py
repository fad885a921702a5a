"""MSK204: a guard that lets one element more in than its sibling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxlint.dataflow.access import Access, AccessAnalysis, Accesses, Index, split_bound
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict


class Bounded(NamedTuple):
    """An access with a bound on an index: `index + shift <= extent + margin`."""

    access: Access
    part: Index
    shift: int
    extent: Polynomial
    margin: int


_BODY = """
            .reg .pred %p<3>;
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
            @%p1 ld.global.b32 %r2, [%rd1];
"""


class OffByOneGuard(Rule):
    id = "MSK204"
    name = "off-by-one-guard"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    needs = (AccessAnalysis,)
    preview = True
    summary = "An array is accessed under `index <= n` here and under `index < n` there."
    why = (
        "Two accesses of one array at the same index, one guarded by < and one by <= against the "
        "same extent, cannot both be right: the second touches one element past the end. When the "
        "extent is a multiple of the tile no test sees it. Accesses are compared only if index, "
        "constant offset and extent are the same, so arrays of n + 1 entries read at i and i + 1 "
        "stay silent."
    )
    fix = "Use the same comparison for both accesses: offs < n."
    bad = (
        Sample(
            "a store under <= of an array that is read under <",
            _BODY
            + """
            setp.le.s32 %p2, %r5, %r1;
            @%p2 st.global.b32 [%rd1], %r3; //~ MSK204
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "the same bound twice",
            _BODY
            + """
            @%p1 st.global.b32 [%rd1], %r3;
            ret;
            """,
        ),
        Sample(
            "entries i and i + 1 of an array of n + 1",
            _BODY
            + """
            @%p1 ld.global.b32 %r3, [%rd1+4];
            add.s64 %rd2, %rd2, %rd3;
            @%p1 st.global.b32 [%rd2], %r3;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        accesses = facts.get(AccessAnalysis)
        strict: dict[tuple[object, ...], Bounded] = {}
        loose: list[Bounded] = []
        for bounded in _bounded(accesses):
            if bounded.margin == -1:
                strict.setdefault(_key(bounded), bounded)
            elif bounded.margin == 0:
                loose.append(bounded)
        reported: set[str] = set()
        for bounded in loose:
            sibling = strict.get(_key(bounded))
            if sibling is not None and bounded.access.base not in reported:
                reported.add(bounded.access.base)
                yield Hit(
                    f"guarded by `index <= {bounded.extent}`, one element more than elsewhere",
                    bounded.access.instr,
                    related=(
                        Note(
                            f"here the same array is guarded by `index < {sibling.extent}`",
                            sibling.access.instr,
                        ),
                    ),
                    breaks_when=f"an index equals {bounded.extent}",
                    key=f"{bounded.access.kind} {bounded.access.base}",
                )
        if reported:
            yield Verdict("refuted", "one array is guarded by both < and <=")


def _key(bounded: Bounded) -> tuple[object, ...]:
    part = bounded.part
    return (
        bounded.access.base, part.terms, part.scale, part.element, bounded.shift, bounded.extent,
    )  # fmt: skip


def _bounded(accesses: Accesses) -> Iterator[Bounded]:
    for access in accesses.in_global:
        if not access.base:
            continue
        for conjunct in access.guard or ():
            limit = split_bound(conjunct)
            part = None if limit is None else accesses.using(access, limit.terms)
            if limit is None or part is None or part.element % limit.unit:
                continue
            # The guard counts in elements, the part of the offset in multiples of its unit.
            element = part.element // limit.unit
            shift, rest = divmod(access.offset.terms.get(part.scale, 0), element)
            if not rest:
                extent = limit.bound - limit.bound.constant
                margin = limit.bound.constant + shift
                yield Bounded(access, part, shift, extent, margin)
