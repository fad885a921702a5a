"""The audit's record, labels and page agree, and a difference is seen."""

from __future__ import annotations

import copy
import importlib.util
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
    found: list[dict[str, Any]] = audit.read(audit.RECORD)
    return found


@pytest.fixture
def launched(audit: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = audit.read(audit.LAUNCHED)
    return found


Runs = list[dict[str, Any]]


def test_page_is_what_the_records_give(audit: Any, runs: Runs, launched: Runs) -> None:
    assert audit.PAGE.read_text(encoding="utf-8") == audit.page(runs, launched, audit.labels())


def test_every_error_and_warning_is_judged(audit: Any, runs: Runs, launched: Runs) -> None:
    known = audit.labels()
    findings = [f for run in (*runs, *launched) for f in run["findings"]]
    assert audit.judged.unlabelled(findings, known) == []
    recorded = {f["fingerprint"] for f in findings}
    assert set(known) <= recorded, "a label for a finding that is gone"
    assert {label.verdict for label in known.values()} <= {"true", "false"}


def test_fewer_than_one_false_alarm_in_a_hundred_kernels(audit: Any, runs: Runs) -> None:
    known = audit.labels()
    for run in runs:
        assert 100 * audit.without_launches.false_alarms(run, known) < run["kernels"]


def test_fewer_than_one_false_error_in_a_hundred_launches(audit: Any, launched: Runs) -> None:
    known = audit.labels()
    assert {run["library"] for run in launched} == set(audit.under_launches.LIBRARIES)
    for run in launched:
        assert audit.under_launches.per_hundred(run, known) < 1


def test_enough_accesses_are_proved(audit: Any, launched: Runs) -> None:
    assert audit.under_launches.missed(launched) == []
    worse = copy.deepcopy(launched)
    for run in worse:
        run["accesses"]["open"] += run["accesses"]["proved"]
    assert len(audit.under_launches.missed(worse)) == 3


def test_changes_are_named(audit: Any, runs: Runs) -> None:
    after = copy.deepcopy(runs)
    assert audit.without_launches.changes(runs, after) == []
    run = after[0]
    gone = run["findings"].pop()
    run["findings"].append({**gone, "fingerprint": "0" * 16, "rule": "MSK201"})
    run["verdicts"]["tail-mask"]["open"] += 1
    lines = audit.without_launches.changes(runs, after)
    assert [line.split(": ")[1].split()[0] for line in lines] == ["new", "gone", "tail-mask"]
    assert "MSK201" in lines[0]
    assert gone["rule"] in lines[1]


def test_changes_under_launches_are_named(audit: Any, launched: Runs) -> None:
    after = copy.deepcopy(launched)
    for run in after:
        run["seconds"] = 1
    assert audit.under_launches.changes(launched, after) == []
    after[0]["accesses"]["open"] += 1
    after[0]["findings"].pop()
    lines = audit.under_launches.changes(launched, after)
    assert [line.split(": ")[1].split()[0] for line in lines] == ["accesses", "gone"]


def test_an_unjudged_warning_is_named(audit: Any, runs: Runs) -> None:
    known = audit.labels()
    first = next(f for f in runs[0]["findings"] if f["severity"] == "warning")
    del known[first["fingerprint"]]
    missing = audit.judged.unlabelled(runs[0]["findings"], known)
    assert [line for line in missing if first["fingerprint"] in line]
    assert audit.without_launches.false_alarms(runs[0], known) == first["builds"]
