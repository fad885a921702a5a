"""The audit's record, labels and page agree, and a difference is seen."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audit() -> Any:
    path = ROOT / "benchmarks" / "audit" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs(audit: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(audit.RECORD.read_text(encoding="utf-8"))
    return found


def test_page_is_what_the_record_gives(audit: Any, runs: list[dict[str, Any]]) -> None:
    assert audit.PAGE.read_text(encoding="utf-8") == audit.page(runs, audit.labels())


def test_every_error_and_warning_is_judged(audit: Any, runs: list[dict[str, Any]]) -> None:
    known = audit.labels()
    assert audit.unlabelled(runs, known) == []
    recorded = {f["fingerprint"] for run in runs for f in run["findings"]}
    assert set(known) <= recorded, "a label for a finding that is gone"
    assert {label.verdict for label in known.values()} <= {"true", "false"}


def test_fewer_than_one_false_alarm_in_a_hundred_kernels(
    audit: Any, runs: list[dict[str, Any]]
) -> None:
    known = audit.labels()
    for run in runs:
        assert 100 * audit._false(run, known) < run["kernels"]


def test_changes_are_named(audit: Any, runs: list[dict[str, Any]]) -> None:
    after = copy.deepcopy(runs)
    assert audit.changes(runs, after) == []
    run = after[0]
    gone = run["findings"].pop()
    run["findings"].append({**gone, "fingerprint": "0" * 16, "rule": "MSK201"})
    run["verdicts"]["tail-mask"]["open"] += 1
    lines = audit.changes(runs, after)
    assert [line.split(": ")[1].split()[0] for line in lines] == ["new", "gone", "tail-mask"]
    assert "MSK201" in lines[0]
    assert gone["rule"] in lines[1]


def test_an_unjudged_warning_is_named(audit: Any, runs: list[dict[str, Any]]) -> None:
    known = audit.labels()
    first = next(f for f in runs[0]["findings"] if f["severity"] == "warning")
    del known[first["fingerprint"]]
    assert [line for line in audit.unlabelled(runs, known) if first["fingerprint"] in line]
    assert audit._false(runs[0], known) == first["builds"]
