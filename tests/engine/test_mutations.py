"""Mutants of the fixtures: whatever is done to a file, it is answered, soon and without a crash."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import ptxlint
from ptxlint.engine.registry import default_registry
from ptxlint.reporters import FORMATS, render

FIXTURES = Path(__file__).parents[2] / "fixtures"
LARGEST = 60_000
"""Bytes of the largest file that is mutated: a mutant takes about as long as its file."""
SECONDS = 20
"""Far more than any file of this size takes, and far less than a hang."""
TOKENS = (
    *"{ } ( ) [ ] ; , : @ @! % _ | < > 0 -1 0x 1e999 0f7F800000 /* */ //".split(),
    *".reg .b32 .loc .file .entry .func .section .target .version .pragma".split(),
    *"bra ret call mov ld brx.idx %r1 $L__BB0_1".split(),
    *('"', "\n", "\r", "\0", "\t", "\u00e9", "\ufeff", "9" * 400, "(" * 300, "{" * 300),
)

place = st.floats(0, 1, allow_nan=False)
mutation = st.one_of(
    st.tuples(st.just("delete"), place, st.integers(1, 200)),
    st.tuples(st.just("repeat"), place, st.integers(1, 200)),
    st.tuples(st.just("cut"), place, st.just(0)),
    st.tuples(st.just("token"), place, st.integers(0, len(TOKENS) - 1)),
    st.tuples(st.just("character"), place, st.integers(0, 0x2FF)),
    st.tuples(st.just("drop line"), place, st.integers(1, 5)),
    st.tuples(st.just("swap lines"), place, st.integers(1, 50)),
    st.tuples(st.just("steal"), place, st.integers(1, 4000)),
)


@lru_cache(maxsize=1)
def corpus() -> list[str]:
    """Texts to mutate, smallest first."""
    files = sorted([*FIXTURES.glob("ptx/*/*.ptx"), *FIXTURES.glob("syntax/**/*.ptx")])
    texts = [path.read_text(errors="replace") for path in files]
    return sorted({text for text in texts if len(text) <= LARGEST}, key=lambda t: (len(t), t))


def mutate(text: str, change: tuple[str, float, int]) -> str:
    """One mutation; the place is a share of the text, so that it means something in any file."""
    kind, share, number = change
    at = int(share * len(text))
    if kind == "delete":
        return text[:at] + text[at + number :]
    if kind == "repeat":
        return text[: at + number] + text[at:]
    if kind == "cut":
        return text[:at]
    if kind == "token":
        return text[:at] + TOKENS[number] + text[at:]
    if kind == "character":
        return text[:at] + chr(number) + text[at + 1 :]
    if kind == "steal":
        start = (at + number * 97) % max(1, len(text))
        return text[:at] + text[start : start + number % 60 + 1] + text[at:]
    lines = text.splitlines(keepends=True)
    row = int(share * len(lines))
    if kind == "drop line":
        return "".join(lines[:row] + lines[row + number :])
    other = (row + number) % max(1, len(lines))
    if lines and row < len(lines):
        lines[row], lines[other] = lines[other], lines[row]
    return "".join(lines)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Fail instead of hanging."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer(number: int, changes: list[tuple[str, float, int]]) -> None:
    """Check one mutant with all rules."""
    texts = corpus()
    text = texts[number % len(texts)]
    for change in changes:
        text = mutate(text, change)
    with time_limit(SECONDS):
        report = ptxlint.check(ptxlint.SourceText(text, "mutant.ptx"), select="ALL")
        for format in FORMATS:
            assert "\x1b" not in render(report, format)
    crashes = [
        f"{f.message} ({f.help})"
        for f in report.findings
        if f.rule == "INTERNAL" and f.place.path == "mutant.ptx"
    ]
    assert crashes == []
    lines = text.count("\n") + text.count("\r") + 1
    for finding in report.findings:
        assert 1 <= finding.place.line <= lines
        assert finding.place.column >= 1


mutants = given(st.integers(0, 10_000), st.lists(mutation, min_size=1, max_size=4))
quiet = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


def test_there_are_fixtures_and_rules() -> None:
    assert len(corpus()) > 100
    assert default_registry().problems == []


@seed(20260)
@settings(max_examples=250, **quiet)
@mutants
def test_sample_of_mutants(number: int, changes: list[tuple[str, float, int]]) -> None:
    answer(number, changes)


@pytest.mark.slow
@seed(77)
@settings(max_examples=6000, **quiet)
@mutants
def test_many_mutants(number: int, changes: list[tuple[str, float, int]]) -> None:
    answer(number, changes)
