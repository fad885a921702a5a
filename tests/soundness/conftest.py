"""Launches of the references, and the judge over some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.judge import accesses
from ptxlint.dynamic.judge.replay import Criterion

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path[:0] = [str(FIXTURES), str(Path(__file__).parent)]

import corpus  # noqa: E402
from references import launches as LAUNCHES  # noqa: E402, N812
from refilled import refilled  # noqa: E402


def judge(
    arch: str,
    name: str,
    changes: int,
    seed: int = 0,
    first: int | None = None,
    criteria: Sequence[Criterion] = (accesses.judge,),
) -> Any:
    """Replay the launches of a build's reference (`first` so many), each also `changes` times
    changed: how many were judged, what was said and what happened, and where they disagree."""
    return corpus.judged(corpus.fixture(name, arch, first, seed), changes, seed, criteria)


@pytest.fixture(name="judge")
def judge_fixture() -> Callable[..., Any]:
    """`judge`."""
    return judge


@pytest.fixture
def build_names() -> Callable[[str], list[str]]:
    """The names of the builds for an architecture that have a reference."""
    return lambda arch: [build.name for build in LAUNCHES.builds((arch,))]


@pytest.fixture(name="refilled")
def refilled_fixture() -> Callable[..., str | None]:
    """`refilled.refilled`."""
    return refilled
