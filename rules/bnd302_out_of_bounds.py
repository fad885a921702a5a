"""BND302: an access beyond the end of its tensor."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.questions import (
    ABOVE,
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
from ptxlint.wording import counted


def _launch(elements: int, freed: bool = False) -> dict[str, object]:
    return {
        "grid": 8,
        "block": 128,
        "arguments": {
            "in_ptr": {
                "kind": "tensor",
                "dtype": "float32",
                "shape": [elements],
                "freed": freed,
            },
            "out_ptr": "float32[1024]",
            "n_elements": 1024,
        },
    }


_COPY = (
    TILE_START
    + """
            @%p1 ld.global.b32 %r6, [%rd4];{mark}
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """
)


class OutOfBounds(Rule):
    id = "BND302"
    name = "out-of-bounds"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "bounds"
    needs = (LaunchAnalysis,)
    summary = "Under this launch an access goes beyond the end of its tensor's storage."
    why = (
        "A load or store past the end reads or destroys what belongs to another tensor, or stops "
        "the kernel with an illegal address. An allocator that hands out larger pieces hides it. "
        "Every access is proved to stay inside its storage, or refuted by the thread that does "
        "not, or open with the reason. A load counts also if its value is not used."
    )
    fix = "Bound the index by the tensor's extent, or pass the extent that the tensor has."
    bad = (
        Sample("the input is shorter than n", _COPY.replace("{mark}", " //~ BND302"),
               launch=_launch(1023)),
        Sample("the input's memory was freed before the launch",
               _COPY.replace("{mark}", " //~ BND302"), launch=_launch(1024, freed=True)),
    )  # fmt: skip
    good = (
        Sample("the input holds n elements", _COPY.replace("{mark}", ""), launch=_launch(1024)),
        Sample("no launch, nothing to say", _COPY.replace("{mark}", "")),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each access beyond the end, by launch; one verdict on all that stay inside."""
        for found in facts.get(LaunchAnalysis) if facts.launches else ():
            for answer in answers(found, ABOVE):
                yield from _said(found, answer)
            for instr in found.under.unlocated[:1]:
                yield Verdict(
                    "open",
                    f"{counted(len(found.under.unlocated), 'address', 'addresses')} not understood",
                    instr,
                    launch=found.bound,
                )


def _said(found: LaunchOutcomes, answer: Answer) -> Iterator[Hit | Verdict]:
    judged, witness, _ = answer.first
    bound = found.bound
    access, region = judged.access, judged.region
    if answer.status == "proved":
        reason = f"{answer.accesses} of {len(found.outcomes)} accesses stay inside"
        if answer.never:
            reason += f", {answer.never} of them never take place"
        further = carried(found, ABOVE)
        yield Verdict("proved", reason, assumes=found.premises, launch=bound, generalises=further)
    elif witness is None or region is None:
        smaller = shown_below(found, answer, ABOVE)
        yield Verdict("open", judged.reason, access.instr, launch=bound, generalises=smaller)
    else:
        last = witness.offset + access.width - 1
        message = (
            f"{thread_of(answer.first)} {touched(answer.first)}{element_of(answer.first)} up to "
            f"byte {last:,}, "
        )
        if region.tensor.freed:
            message += "and its memory was freed before the launch"
        else:
            message += f"{last - region.high + 1:,} beyond its end at {region.high:,}"
        key = f"{access.kind} beyond {region.name}"
        label = f"{touched(answer.first)} beyond its end"
        witnessed = place(found, answer.first)
        right = right_below(found, answer, ABOVE)
        yield from refuted(bound, message, access.instr, key, label, witnessed, right)
