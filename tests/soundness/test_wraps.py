"""No run disproves what is said of index arithmetic: what is proved wraps in no program, what is
refuted in that of its witness. Launches lie on both sides of the ends of a word."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.dataflow import symbolic
from ptxlint.dataflow.extremes import Box
from ptxlint.dynamic.emulator.inputs import InputError, RandomInputs
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.judge import wraps
from ptxlint.dynamic.judge.replay import Contradiction, Judge
from ptxlint.frontends.ptx import parse
from ptxlint.launch import obligations
from ptxlint.launch.binding import BindingError, Bound
from ptxlint.launch.under import UnderLaunch

TESTS = Path(__file__).resolve().parents[1]
FIXTURES = TESTS.parent / "fixtures"
sys.path[:0] = [str(FIXTURES), str(TESTS / "launch")]

import launch_twins as LAUNCHES  # noqa: E402, N812
import twin_builds as BUILDS  # noqa: E402, N812

SAMPLE = ("copy_rows", "copy_rows_wide", "copy_tiles", "copy_tiles_wide", "fill", "fill_wide")
TWINS = {twin.kernel: twin for twin in BUILDS.twins()}
ARCH = "sm_90"
ROUNDS = 60
"""So many launches of rows around the end of a word, in the whole run."""


@cache
def built(kernel: str) -> tuple[Emulator, tuple[str, ...]]:
    """A twin as Triton 3.6 compiled it, and the names of its parameters."""
    twin = TWINS[kernel]
    stem = f"{twin.module.removeprefix('twins/')}-{kernel}"
    path = FIXTURES / "ptx-triton-3.6" / ARCH / f"{stem}.ptx"
    module = parse(path.read_text(encoding="utf-8"), str(path))
    source = ast.parse(twin.path.read_text(encoding="utf-8"))
    (function,) = (
        node
        for node in ast.walk(source)
        if isinstance(node, ast.FunctionDef) and node.name == kernel
    )
    names = tuple(argument.arg for argument in function.args.args)
    return Emulator(module, module.kernels()[0]), names


Judged = tuple[Counter[tuple[str, str, str]], list[Contradiction]]


def judged(kernel: str, given: Any, seed: int = 0) -> Judged | None:
    """What is said of a launch of a twin and what happened; None for one that cannot be run."""
    emulator, names = built(kernel)
    twin = TWINS[kernel]
    build = twin.builds[0]
    launch = LAUNCHES.launch(list(names), twin.types, build, given(build))
    try:
        found = Judge(emulator, None).replay(launch, RandomInputs(seed), (wraps.judge,), seed)
    except (BindingError, InputError):
        return None
    return found.counts, found.contradictions


def cases(kernels: tuple[str, ...]) -> Iterator[Any]:
    return (case for case in LAUNCHES.CASES if case.kernel in kernels)


def test_twins_on_both_sides_of_a_word_are_judged_rightly() -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    for case in cases(SAMPLE):
        found = judged(case.kernel, case.given)
        assert found is not None
        assert found[1] == [], case
        counts += found[0]
        says = "refuted" if "BND301" in case.found else "proved"
        assert any(verdict == says for _, verdict, _ in found[0]), case
        assert says == "refuted" or all(met == "kept" for _, _, met in found[0]), case
    assert counts["overflow", "proved", "kept"] >= 100
    assert counts["overflow", "refuted", "violated"] >= 8


def rows(random: np.random.Generator) -> Callable[[Any], dict[str, Any]]:
    """Rows of some length, about as many as 31 bits hold elements of."""
    stride = int(random.integers(1, 1 << int(random.integers(8, 20))))
    count = max(1, (1 << 31) // stride + int(random.integers(-2, 4)))
    columns = int(random.integers(1, min(stride, 4096) + 1))
    return lambda build: {
        "grid": [count], "stride": stride, "n_cols": columns,
        "out_ptr": count * stride, "x_ptr": count * stride,
    }  # fmt: skip


@pytest.mark.slow
def test_rows_about_the_end_of_a_word_are_judged_rightly() -> None:
    random = np.random.default_rng(3)
    counts: Counter[tuple[str, str, str]] = Counter()
    for _ in range(ROUNDS):
        found = judged("copy_rows", rows(random))
        assert found is not None
        assert found[1] == []
        counts += found[0]
    print(f"{ROUNDS} replays, {dict(counts)}")
    assert counts["overflow", "proved", "kept"] >= 10
    assert counts["overflow", "refuted", "violated"] >= 10


@pytest.mark.slow
def test_all_twins_are_judged_rightly() -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    done = 0
    for case in cases(tuple({case.kernel for case in LAUNCHES.CASES})):
        try:
            found = judged(case.kernel, case.given)
        except UnsupportedError:
            continue
        if found is not None:
            assert found[1] == [], case
            counts += found[0]
            done += 1
    print(f"{done} replays, {dict(counts)}")
    assert done > 100


# Planted errors -------------------------------------------------------------------------------
def products_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed in a word is taken for what fits it."""
    monkeypatch.setattr(symbolic.Symbolic, "_fits", lambda self, instr, poly, *word: poly)
    from ptxlint.dataflow.launched import LaunchedSymbolic

    monkeypatch.setattr(LaunchedSymbolic, "_fits", lambda self, instr, poly, *word: poly)


def words_one_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word holds one number more than it does."""
    own = obligations.word
    monkeypatch.setattr(obligations, "word", lambda wrap: (own(wrap)[0], own(wrap)[1] + 1))


def bounds_one_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A polynomial passes for at most a number that is one less than its greatest value."""
    own = Box.is_at_most
    monkeypatch.setattr(Box, "is_at_most", lambda self, poly, bound: own(self, poly, bound + 1))


def last_program_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Program ids end one before the grid's last."""
    own = UnderLaunch._setting

    def changed(self: UnderLaunch) -> Any:
        bound: Bound = self.bound
        self.bound = bound._replace(grid=tuple(max(1, n - 1) for n in bound.grid))
        try:
            return own(self)
        finally:
            self.bound = bound

    monkeypatch.setattr(UnderLaunch, "_setting", changed)


def unsigned_for_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words count as unsigned: half of what they hold is not."""
    own = obligations.word
    monkeypatch.setattr(obligations, "word", lambda wrap: (own(wrap)[0], (1 << wrap.bits) - 1))


PLANTS = [
    products_forgotten, words_one_longer, bounds_one_longer, last_program_forgotten,
    unsigned_for_signed,
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_error_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    for case in cases(("copy_rows", "copy_tiles", "fill")):
        if "BND301" not in case.found:
            continue
        found = judged(case.kernel, case.given)
        if found is not None and any(wrong.verdict == "proved" for wrong in found[1]):
            return
    pytest.fail("no run disproves a proof")
