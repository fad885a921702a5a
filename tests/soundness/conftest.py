"""Launches of the references, and the judge over some of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptxlint.dynamic.emulator.inputs import InputError, RandomInputs
from ptxlint.dynamic.judge.accesses import Contradiction, replay
from ptxlint.dynamic.judge.variations import varied
from ptxlint.launch.binding import BindingError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path[:0] = [str(FIXTURES), str(Path(__file__).parent)]

from references import launches as LAUNCHES  # noqa: E402, N812
from refilled import refilled  # noqa: E402

Judged = tuple[int, Counter[tuple[str, str, str]], list[Contradiction]]


def judge(arch: str, name: str, changes: int, seed: int = 0, first: int | None = None) -> Judged:
    """Replay the launches of a build's reference (`first` so many), each also `changes` times
    changed: how many were judged, what was said and what happened, and where they disagree."""
    build = LAUNCHES.emulated.build(name, arch)
    emulator = LAUNCHES.emulated.emulator(build.path)
    random = np.random.default_rng(seed)
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[Contradiction] = []
    done = 0
    for at, launch in enumerate(LAUNCHES.launches(build, seed)):
        if first is not None and at >= first:
            break
        for one in varied(launch, random, changes):
            try:
                found = replay(emulator, one, LAUNCHES.metadata(build), RandomInputs(seed))
            except (BindingError, InputError):
                continue
            done += 1
            counts += found.counts
            wrong += found.contradictions
    return done, counts, wrong


@pytest.fixture(name="judge")
def judge_fixture() -> Callable[..., Judged]:
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
