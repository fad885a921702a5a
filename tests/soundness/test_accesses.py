"""No run disproves what is said of accesses under a launch: a fixed sample, and all, slowly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Judge = Callable[..., Any]
SAMPLE = ("softmax", "cross_entropy_fwd", "wrapped_matmul", "matmul_dot_fp16", "rope", "argmax")
ROUNDS = 25
"""So many changed launches of each that a reference lists, in the whole run."""


def test_a_sample_of_launches_is_judged_rightly(judge: Judge) -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    done = 0
    for name in SAMPLE:
        one, more, wrong = judge("sm_80", name, 2, first=3)
        assert wrong == []
        done += one
        counts += more
    assert done >= 45
    # All that can be said is said, and what is wrong is met.
    assert counts["bounds", "proved", "kept"] > 500
    assert counts["bounds", "refuted", "violated"] > 10
    assert counts["alignment", "proved", "kept"] > 300


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_all_launches_are_judged_rightly(
    judge: Judge, build_names: Callable[[str], list[str]], arch: str
) -> None:
    from ptxlint.dynamic.emulator.semantics import UnsupportedError

    counts: Counter[tuple[str, str, str]] = Counter()
    done = 0
    for name in build_names(arch):
        try:
            one, more, wrong = judge(arch, name, ROUNDS, seed=1)
        except UnsupportedError:
            continue
        assert wrong == [], name
        done += one
        counts += more
    print(f"{arch}: {done} replays, {dict(counts)}")
    assert done > 5000
