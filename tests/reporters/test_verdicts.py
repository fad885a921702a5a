"""Verdicts in text: what is open in a line a kernel, and all of them when asked."""

from __future__ import annotations

from ptxlint.diagnostics import Place
from ptxlint.engine.report import Report, Summary
from ptxlint.obligations import SEMANTICS, SEMANTICS_OPEN, Evidence, Obligation, Status
from ptxlint.reporters import render
from ptxlint.source import SourceFrame

TRIPLE = {"n": [1023, 1024, 1025]}


def verdict(
    status: Status,
    line: int,
    kernel: str = "k",
    family: str = "tail-mask",
    suggest: dict[str, list[int]] | None = None,
    evidence: tuple[Evidence, ...] = (),
) -> Obligation:
    """A verdict on a line of `deep/softmax.py`."""
    place = Place("k.ptx", 7, 1, SourceFrame("deep/softmax.py", line, 9))
    return Obligation(
        family, kernel, status, "it may leak", "MSK201", "sm_90", place, suggest or {}, (), evidence
    )


def unreferenced(kernel: str = "k") -> Obligation:
    """The verdict that every kernel has."""
    return Obligation(SEMANTICS, kernel, "open", SEMANTICS_OPEN, "", "sm_90")


def text(*verdicts: Obligation, obligations: bool = False) -> list[str]:
    """What is printed of these verdicts."""
    report = Report([], verdicts, [], Summary(1, 1, 0, 0, 0, 0.1))
    return render(report, "text", obligations=obligations).splitlines()


def test_what_is_proved_takes_no_line_of_its_own() -> None:
    proved = [verdict("proved", line) for line in (1, 2, 3)]
    assert text(*proved, unreferenced()) == ["no findings in 1 kernel of 1 file (3 proved; 0.10 s)"]
    assert text(unreferenced()) == ["no findings in 1 kernel of 1 file (0.10 s)"]


def test_one_open_verdict_is_one_line_with_values_to_try() -> None:
    proved = [verdict("proved", line) for line in (1, 2, 3)]
    lines = text(*proved, verdict("open", 10, suggest=TRIPLE), unreferenced())
    assert lines[1:] == ["3 proved, 1 open: tail-mask at softmax.py:10, try n = 1023, 1025"]


def test_open_verdicts_of_a_family_are_told_together() -> None:
    many = [verdict("open", line, suggest=TRIPLE) for line in (12, 10, 14, 10, 99, 98)]
    other = verdict("open", 20, family="sync", suggest={"m": [7], "n": [15, 16]})
    assert text(*many, other)[1:] == [
        "7 open: tail-mask at softmax.py:10, 12, 14 and 2 more lines, try n = 1023, 1025; "
        "sync at softmax.py:20, try m = 7 or n = 15, 16"
    ]


def test_kernels_with_most_open_come_first_and_the_rest_is_counted() -> None:
    verdicts = [verdict("proved", 1, "done"), *map(unreferenced, "abcdefg")]
    for count, kernel in enumerate("abcdefg", 1):
        verdicts += [verdict("open", line, kernel) for line in range(count)]
    assert text(*verdicts)[1:] == [
        "1 proved, 28 open in 7 kernels",
        "  g: 7 open: tail-mask at softmax.py:0, 1, 2 and 4 more lines",
        "  f: 6 open: tail-mask at softmax.py:0, 1, 2 and 3 more lines",
        "  e: 5 open: tail-mask at softmax.py:0, 1, 2 and 2 more lines",
        "  d: 4 open: tail-mask at softmax.py:0, 1, 2 and 1 more line",
        "  c: 3 open: tail-mask at softmax.py:0, 1, 2",
        "  and 2 more; --obligations lists all",
    ]


def test_all_verdicts_are_listed_when_asked_for() -> None:
    parts = (
        Evidence("open", "may hold 1", None, {"guard": "col < n", "value": "1"}),
        Evidence("proved", "holds 0"),
    )
    told = verdict("open", 10, suggest=TRIPLE, evidence=parts)
    sure = verdict("proved", 4, evidence=parts)._replace(assumes=("finite data",))
    assert text(unreferenced(), sure, told, obligations=True)[1:] == [
        "k on sm_90: 1 proved, 1 open",
        "  open    tail-mask[MSK201] deep/softmax.py:10:9: it may leak; try n = 1023, 1025",
        "    open    may hold 1 (guard col < n, value 1)",
        "    proved  holds 0",
        "  proved  tail-mask[MSK201] deep/softmax.py:4:9: it may leak (assuming finite data)",
        f"  open    semantics: {SEMANTICS_OPEN}",
    ]
    last = text(sure, told, verdict("open", 1, "other"), obligations=True)[-1]
    assert last == "1 proved, 2 open in 2 kernels"


def test_names_from_a_file_cannot_reach_the_terminal() -> None:
    lines = text(verdict("open", 1, "a\x1b[2J"), verdict("open", 1, "b"), obligations=True)
    assert "\x1b" not in "".join(lines)
