"""BND307: elements of an output that no program of a launch writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.coverage.analysis import Coverage, CoverageAnalysis
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict

if TYPE_CHECKING:
    from ptxlint.launch.coverage.missed import Missed

_COPY = (
    TILE_START
    + """
            @%p1 ld.global.b32 %r6, [%rd4];
            @%p1 st.global.b32 [%rd5], %r6;{mark}
            ret;
            """
)
_WRITTEN = "float32[1000]"
_FRESH = {"kind": "tensor", "dtype": "float32", "shape": [1000], "fresh": "uninitialised"}


def _launch(grid: int, n: int, out: object = _FRESH) -> dict[str, object]:
    arguments = {"in_ptr": "float32[1000]", "out_ptr": out, "n_elements": n}
    return {"grid": grid, "block": 128, "arguments": arguments}


class TilesMissed(Rule):
    id = "BND307"
    name = "tiles-missed-or-written-twice"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "coverage"
    needs = (CoverageAnalysis,)
    summary = "Elements of an output are written by no program of this launch, and should be."
    why = (
        "A grid of n // BLOCK programs in place of cdiv(n, BLOCK) leaves out the last tile, and a "
        "map from programs to tiles with a wrong bound gives some tiles to two programs, or to "
        "none. What is not written keeps what was in the memory before. It is a finding where the "
        "kernel shows that the elements were meant: its mask lets in a program that the grid does "
        "not have, or there are programs enough and the map leaves tiles out; and where, without a "
        "mask, a tensor that nothing wrote before is written but for a part of its last tile. "
        "Writing a part of a tensor is no fault in itself: whether another launch fills the rest "
        "is not known, and for a tensor that nothing wrote before that is an open verdict."
    )
    fix = (
        "Launch triton.cdiv(n, BLOCK) programs, and bound the last group of tiles by what is left."
    )
    bad = (
        Sample(
            "1000 // 128 programs",
            _COPY.replace("{mark}", " //~ BND307"),
            launch=_launch(7, 1000),
        ),
        Sample(
            "an output that held something before",
            _COPY.replace("{mark}", " //~ BND307"),
            launch=_launch(7, 1000, _WRITTEN),
        ),
        Sample(
            "no mask, and a part of a tile is left",
            _COPY.replace("@%p1 ", "").replace("{mark}", " //~ BND307"),
            launch=_launch(7, 1000),
        ),
    )
    good = (
        Sample("a program for the last part", _COPY.replace("{mark}", ""), launch=_launch(8, 1000)),
        Sample("the first elements alone", _COPY.replace("{mark}", ""), launch=_launch(7, 896)),
        Sample(
            "a part of a tensor that held something",
            _COPY.replace("@%p1 ", "").replace("{mark}", ""),
            launch=_launch(7, 1000, _WRITTEN),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each tensor of which a part is missed, and a verdict on each."""
        for coverage in facts.get(CoverageAnalysis) if facts.launches else ():
            yield from _said(coverage)


def _said(coverage: Coverage) -> Iterator[Hit | Verdict]:
    bound = coverage.found.bound
    proved = [word.region.name for word in coverage.missed if word.status == "proved"]
    if proved:
        reason = f"every element of {', '.join(proved)} is written"
        yield Verdict("proved", reason, assumes=coverage.premises, launch=bound)
    for word in coverage.missed:
        at = word.store.instr if word.store is not None else None
        if word.status == "open":
            yield Verdict("open", f"{word.region.name}: {word.reason}", at, launch=bound)
        elif word.status == "refuted":
            yield from _hit(coverage, word)


def _hit(coverage: Coverage, word: Missed) -> Iterator[Hit | Verdict]:
    from ptxlint.launch.coverage.words import missed_witness, why_missed

    bound, region = coverage.found.bound, word.region
    assert word.store is not None
    message = why_missed(bound, word)
    yield Hit(
        message,
        word.store.instr,
        breaks_when=f"this launch: grid {bound.grid}",
        severity="" if word.is_fresh and word.why != "tail" else "warning",
        key=f"{region.name} is not written as a whole",
        label="does not write all of it",
        launch=bound,
        witness=missed_witness(bound, word),
    )
    yield Verdict("refuted", message, word.store.instr, launch=bound)
