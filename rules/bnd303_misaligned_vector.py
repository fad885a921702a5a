"""BND303: an access at an address that is no multiple of its width."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.questions import (
    MISALIGNED,
    Answer,
    answers,
    carried,
    place,
    right_below,
    thread_of,
    touched,
)
from ptxlint.rulekit import Hit, Rule, Sample, Verdict, refuted

_COPY = """
            .reg .b32 %r<8>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd3, %r1, 16;
            add.s64 %rd4, %rd1, %rd3;
            add.s64 %rd5, %rd2, %rd3;
            ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd4];{mark}
            st.global.v4.b32 [%rd5], {%r2, %r3, %r4, %r5};
            ret;
            """


def _launch(place: dict[str, object]) -> dict[str, object]:
    return {
        "grid": 1,
        "block": 32,
        "arguments": {
            "in_ptr": {"kind": "tensor", "dtype": "float32", "shape": [128], **place},
            "out_ptr": "float32[128]",
            "n_elements": 128,
        },
    }


class MisalignedVector(Rule):
    id = "BND303"
    name = "misaligned-vector"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "bounds"
    needs = (LaunchAnalysis,)
    summary = "Under this launch an access is at an address that is no multiple of its width."
    why = (
        "An access of 16 bytes must be at a multiple of 16, or the kernel stops with a misaligned "
        "address. Compilers widen accesses when they are told that a pointer or a stride is a "
        "multiple of 16; a view that starts elsewhere breaks the promise."
    )
    fix = "Pass a tensor whose start and strides are multiples of the width, or compile without "
    fix += "that promise."
    bad = (
        Sample(
            "a view that starts 4 bytes into its storage",
            _COPY.replace("{mark}", " //~ BND303"),
            launch=_launch({"offset": 4, "storage_bytes": 1024, "alignment": 4}),
        ),
    )
    good = (Sample("a tensor from the allocator", _COPY.replace("{mark}", ""), launch=_launch({})),)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each access that is misaligned, by launch; one verdict on all others."""
        for found in facts.get(LaunchAnalysis) if facts.launches else ():
            for answer in answers(found, MISALIGNED):
                yield from _said(found, answer)


def _said(found: LaunchOutcomes, answer: Answer) -> Iterator[Hit | Verdict]:
    judged, witness, _ = answer.first
    bound = found.bound
    access, region = judged.access, judged.region
    if answer.status == "proved":
        yield Verdict(
            "proved",
            f"{answer.accesses} accesses are aligned",
            launch=bound,
            generalises=carried(found, MISALIGNED),
        )
    elif witness is None or region is None:
        reason = f"that the address is a multiple of {access.width} is not known"
        yield Verdict("open", reason, access.instr, launch=bound)
    else:
        message = (
            f"{thread_of(answer.first)} {touched(answer.first)} at byte {witness.offset:,} of a "
            f"pointer that is a multiple of {region.tensor.alignment}: no multiple of the "
            f"{access.width} bytes of the access"
        )
        key = f"{access.width} bytes of {region.name}"
        label = f"no multiple of {access.width}"
        witnessed = place(found, answer.first)
        right = right_below(found, answer, MISALIGNED)
        yield from refuted(bound, message, access.instr, key, label, witnessed, right)
