"""The page of the comparison with a GPU says what was compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks" / "emulator"))

from comparison.page import summary, text  # noqa: E402

RESULTS = ROOT / "benchmarks" / "emulator" / "results.json"


def test_the_page_is_made_of_the_results() -> None:
    """`python benchmarks/emulator/against_gpu.py table` writes it again."""
    page = (ROOT / "docs" / "emulator-gpu.md").read_text(encoding="utf-8")
    assert page == text(json.loads(RESULTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("output", "alike"),
    [
        ({"differ": 0, "elements": 9, "seen": 9, "equal": False}, 1),  # the bits of NaN
        ({"differ": 0, "elements": 9, "seen": 3, "equal": True}, 1),
        ({"differ": 0, "elements": 9, "seen": 3, "equal": False}, 0),
        ({"differ": 1, "elements": 9, "seen": 9, "equal": False}, 0),
        ({"only": "the GPU"}, 0),
    ],
)
def test_what_was_not_looked_at_is_held_by_a_checksum(output: dict[str, Any], alike: int) -> None:
    output = {"apart": 0.0, "allowed": 0.0} | output
    record = {"library": "l", "kernel": "k", "atomics": False, "outputs": {"x": output}}
    found = {"fixtures": [], "captured": [record], "instructions": []}
    assert f"1 launches: {alike} alike in every bit" in summary(found)[1]
