"""HAZ601: several programs of a launch write the same cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.coverage.analysis import Coverage, CoverageAnalysis
from ptxlint.rulekit import TILE_START, Hit, Note, Rule, Sample, Verdict

if TYPE_CHECKING:
    from ptxlint.launch.coverage.apart import Apart

_ARGUMENTS = {"in_ptr": "float32[1024]", "out_ptr": "float32[1024]", "n_elements": 1024}
_COPY = (
    TILE_START
    + """
            @%p1 ld.global.b32 %r6, [%rd4];
            {store}
            ret;
            """
)
_OF_LANES = """mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd5, %rd2, %rd3;
            """


class DuplicateWriters(Rule):
    id = "HAZ601"
    name = "duplicate-writers"
    severity = "error"
    confidence = "high"
    category = "hazards"
    family = "coverage"
    needs = (CoverageAnalysis,)
    summary = "Several programs of this launch write the same cells with plain stores."
    why = (
        "Programs run in any order and at the same time. Where two of them store to one cell, what "
        "is left there is what the last one wrote, and that may be another one each time. Mostly "
        "the program's number is missing in an address, the step from one program to the next is "
        "smaller than a tile, or a map from programs to tiles gives one tile to two of them. "
        "Programs that write the same value to the same cell are no fault, unless nothing at all "
        "that the kernel writes depends on which of them it is: then the work is only done again, "
        "and the finding is a warning."
    )
    fix = (
        "Make the address depend on tl.program_id, or launch one program along that axis; sum up "
        "with tl.atomic_add where several programs contribute to a cell."
    )
    bad = (
        Sample(
            "every program writes to the first tile",
            _COPY.replace("{store}", _OF_LANES + "@%p1 st.global.b32 [%rd5], %r6; //~ HAZ601"),
            launch={"grid": 8, "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "nothing depends on the second axis",
            _COPY.replace("{store}", "@%p1 st.global.b32 [%rd5], %r6; //~ HAZ601"),
            launch={"grid": [8, 2], "block": 128, "arguments": _ARGUMENTS},
        ),
    )
    good = (
        Sample(
            "each program writes its own tile",
            _COPY.replace("{store}", "@%p1 st.global.b32 [%rd5], %r6;"),
            launch={"grid": 8, "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "one program",
            _COPY.replace("{store}", _OF_LANES + "@%p1 st.global.b32 [%rd5], %r6;"),
            launch={"grid": 1, "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "sums of all programs",
            _COPY.replace("{store}", _OF_LANES + "@%p1 red.global.add.u32 [%rd5], %r6;"),
            launch={"grid": 8, "block": 128, "arguments": _ARGUMENTS},
        ),
        Sample(
            "all programs write the same flag",
            _COPY.replace(
                "{store}", "@%p1 st.global.b32 [%rd5], %r6;\nst.global.b32 [%rd1+4096], %r1;"
            ),
            launch={
                "grid": 8,
                "block": 128,
                "arguments": _ARGUMENTS | {"in_ptr": "float32[1025]"},
            },
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each output of a launch that programs clash in, and a verdict on each."""
        for coverage in facts.get(CoverageAnalysis) if facts.launches else ():
            yield from _said(coverage)


def _said(coverage: Coverage) -> Iterator[Hit | Verdict]:
    bound = coverage.found.bound
    proved = [apart for apart in coverage.apart if apart.status == "proved"]
    if proved:
        yield Verdict("proved", _why_proved(proved), assumes=coverage.premises, launch=bound)
    for apart in coverage.apart:
        output, clash = apart.output, apart.clash
        if apart.status == "open":
            at = output.stores[0].instr
            yield Verdict("open", f"{output.name}: {apart.reason}", at, launch=bound)
        elif clash is not None:
            yield from _hit(coverage, apart)


def _why_proved(proved: list[Apart]) -> str:
    """That programs write to cells of their own, or all the same to a cell."""
    said = []
    for is_repeated, what in ((False, "write apart in"), (True, "that meet write the same in")):
        names = [apart.output.name for apart in proved if apart.is_repeated == is_repeated]
        if names:
            said.append(f"{what} {', '.join(names)}")
    return f"programs {' and '.join(said)}"


def _hit(coverage: Coverage, apart: Apart) -> Iterator[Hit | Verdict]:
    from ptxlint.launch.coverage.words import cell_of, witness_of

    bound, clash = coverage.found.bound, apart.clash
    assert clash is not None
    name = clash.store.region.name
    first, second = (", ".join(map(str, t.ctaid)) for t in (clash.first, clash.second))
    message = f"programs ({first}) and ({second}) both write {cell_of(clash)} of {name}"
    if clash.is_idle:
        message += ", and nothing that is written depends on which of them it is"
    related: tuple[Note, ...] = ()
    if clash.other.instr is not clash.store.instr:
        related = (Note("the other one writes here", clash.other.instr),)
    yield Hit(
        message,
        clash.store.instr,
        related,
        breaks_when=f"this launch: grid {bound.grid}",
        severity="warning" if clash.is_idle else "",
        key=f"{name} is written twice",
        label="written by several programs",
        launch=bound,
        witness=witness_of(bound, clash),
    )
    yield Verdict("refuted", message, clash.store.instr, launch=bound)
