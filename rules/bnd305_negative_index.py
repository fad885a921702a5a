"""BND305: an access before the start of its tensor."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.questions import (
    BELOW,
    Answer,
    answers,
    carried,
    element_of,
    place,
    right_below,
    shown_below,
    thread_of,
    touched,
)
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict, refuted

_LAUNCH: dict[str, object] = {
    "grid": 8,
    "block": 128,
    "arguments": {
        "in_ptr": "float32[1024]",
        "out_ptr": "float32[1024]",
        "n_elements": 1024,
    },
}


class NegativeIndex(Rule):
    id = "BND305"
    name = "negative-index"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "bounds"
    needs = (LaunchAnalysis,)
    summary = "Under this launch an access goes before the start of its tensor's storage."
    why = (
        "An index below zero is caught by no mask that asks only whether it is less than n. The "
        "access reads or destroys what lies before the tensor."
    )
    fix = "Mask with both bounds, (i >= 0) & (i < n), or start where no index is negative."
    bad = (
        Sample(
            "the element before, also for the first one",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd4+-4]; //~ BND305
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
            launch=_LAUNCH,
        ),
    )
    good = (
        Sample(
            "the first element has none before it",
            TILE_START
            + """
            setp.gt.s32 %p2, %r5, 0;
            and.pred %p3, %p1, %p2;
            mov.b32 %r6, 0;
            @%p3 ld.global.b32 %r6, [%rd4+-4];
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
            launch=_LAUNCH,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each access before the start, by launch; one verdict on all others."""
        for found in facts.get(LaunchAnalysis) if facts.launches else ():
            for answer in answers(found, BELOW):
                yield from _said(found, answer)


def _said(found: LaunchOutcomes, answer: Answer) -> Iterator[Hit | Verdict]:
    judged, witness, _ = answer.first
    bound = found.bound
    access, region = judged.access, judged.region
    if answer.status == "proved":
        reason = f"none of {answer.accesses} accesses has a negative index"
        further = carried(found, BELOW)
        yield Verdict("proved", reason, assumes=found.premises, launch=bound, generalises=further)
    elif witness is None or region is None:
        smaller = shown_below(found, answer, BELOW)
        yield Verdict("open", judged.reason, access.instr, launch=bound, generalises=smaller)
    else:
        before = region.low - witness.offset
        message = (
            f"{thread_of(answer.first)} {touched(answer.first)}{element_of(answer.first)}, "
            f"{before:,} bytes before its start"
        )
        key = f"{access.kind} before {region.name}"
        label = f"{touched(answer.first)} before its start"
        witnessed = place(found, answer.first)
        right = right_below(found, answer, BELOW)
        yield from refuted(bound, message, access.instr, key, label, witnessed, right)
