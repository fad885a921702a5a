"""No run disproves what is said of accesses under a launch: a fixed sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

Judge = Callable[..., Any]
SAMPLE = ("softmax", "cross_entropy_fwd", "wrapped_matmul", "matmul_dot_fp16", "rope", "argmax")


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
