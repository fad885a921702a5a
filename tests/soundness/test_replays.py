"""No run disproves what is said of a launch, in any family: a fixed sample, and all, slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corpus
import pytest

from ptxlint.dynamic.judge.criteria import CRITERIA, RULES

FIXTURES = ("softmax", "rope", "layer_norm_bwd", "welford", "histogram")
TUNED = ("HAZ603", "HAZ604", "BND306", "BND307", "HAZ601")


def test_a_sample_of_fixtures_is_judged_rightly(judge: Callable[..., Any]) -> None:
    found = corpus.NOTHING
    for name in FIXTURES:
        found += judge("sm_80", name, 2, first=2, criteria=CRITERIA)
    assert found.wrong == []
    counts = found.counts
    for name in ("coverage", "apart", "views", "barriers", "warp operations"):
        assert counts[name, "proved", "kept"] >= 2, name


def test_the_launches_of_samples_are_judged_rightly() -> None:
    found = corpus.NOTHING
    for subject in corpus.samples():
        if subject.name.startswith(TUNED):
            found += corpus.judged(subject, 2)
    assert found.wrong == []
    for name in ("coverage", "apart", "first reads", "rerun"):
        assert found.counts[name, "proved", "kept"], name
    for name in ("coverage", "apart", "views", "first reads", "rerun"):
        assert found.counts[name, "refuted", "violated"], name


@pytest.mark.slow
@pytest.mark.parametrize("part", corpus.PARTS)
def test_all_launches_are_judged_rightly(part: str) -> None:
    subjects, changes = corpus.PARTS[part]
    found = corpus.NOTHING
    for subject in subjects():
        one = corpus.judged(subject, changes, seed=1)
        assert one.wrong == [], subject.name
        found += one
    print(f"{part}: {found.done} replays")
    for (name, verdict, happened), count in sorted(found.counts.items()):
        print(f"  {name} ({', '.join(RULES[name])}): {verdict}, {happened}: {count}")
    assert found.done > 100
