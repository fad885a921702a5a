"""Verdicts on programs that write the same cells, held to who wrote what (HAZ601).

*Proved*: no cell of the output is written by plain stores of two programs, not even with the same
value. Where the proof says that programs repeat each other (some axis of the grid decides nothing
about a store), programs that write one cell do so by the same stores with the same values.
*Refuted*: the two threads of the witness both write the cell, by the stores that it names.

Atomics are no plain stores. Who writes, and not what is left there, is held to the proof: programs
that write the same value by chance are a contradiction, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.dynamic.judge.written import Written
from ptxlint.launch.coverage.analysis import CoverageAnalysis
from ptxlint.launch.coverage.apart import Apart, Clash
from ptxlint.launch.walk import Thread
from ptxlint.launches import Extent

NAME = "apart"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each output."""
    (coverage,) = played.facts.get(CoverageAnalysis)
    for word in coverage.apart:
        storage = played.ran.places[word.output.storage]
        written = Written(played.record, storage)
        if word.status == "refuted" and word.clash is not None:
            yield _shown(played, word.clash, written)
        else:
            yield _compared(word, written)


def _compared(word: Apart, written: Written) -> Judgement:
    doubly = written.doubly
    if doubly is not None and word.is_repeated:
        doubly = written.differing()
    if doubly is None:
        return Judgement(NAME, word.status, KEPT)
    what = (
        f"programs {doubly.first} and {doubly.second} write byte {doubly.offset} of "
        f"{word.output.name}: {word.reason}"
    )
    return Judgement(NAME, word.status, VIOLATED, what)


def _shown(played: Played, clash: Clash, written: Written) -> Judgement:
    both = ((clash.first, clash.store), (clash.second, clash.other))
    grid, block = played.bound.grid, played.bound.block
    missing = [
        thread
        for thread, store in both
        if not written.does(
            store.instr, _number(thread.ctaid, grid), _number(thread.tid, block), clash.offset
        )
    ]
    if not missing:
        return Judgement(NAME, "refuted", VIOLATED)
    if not played.is_whole or played.record.is_full:
        return Judgement(NAME, "refuted", UNKNOWN)
    what = f"{_told(missing[0])} does not write byte {clash.offset} of {clash.store.region.name}"
    return Judgement(NAME, "refuted", KEPT, what)


def _number(place: Extent, extents: Extent) -> int:
    return place[0] + extents[0] * (place[1] + extents[1] * place[2])


def _told(thread: Thread) -> str:
    return f"program {thread.ctaid}, thread {thread.tid}"


__all__ = ["judge"]
