"""Outcomes as data."""

from __future__ import annotations

import json

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.runners import Compared, Outcome


def test_there_and_back() -> None:
    case = Case("softmax", "float16", {"rows": 3, "n": 7})
    compared = Compared("y", 21, 1, 0.3, 2.0, 70.0, 0, (2, 6), 0.5, 0.2, 1e-3)
    outcome = Outcome(
        case, "fail", "reference", "1 of 21 elements", (compared,), ({"rule": "EMU901"},), 2,
        ("softmax_kernel",), 0.25, "ab",
    )  # fmt: skip
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
