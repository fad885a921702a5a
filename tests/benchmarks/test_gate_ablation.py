"""The ablation of inputs: the page says what was measured, and holds what is asked of the gate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

GATE = Path(__file__).resolve().parents[2] / "benchmarks" / "gate"
sys.path.insert(0, str(GATE))
ablation: Any = pytest.importorskip("ablation", reason="needs the benchmarks of a checkout")
values: Any = pytest.importorskip("values", reason="needs the benchmarks of a checkout")
sys.path.remove(str(GATE))
RESULTS = sorted(GATE.glob("ablation-*.json"))


@pytest.fixture(params=RESULTS, ids=lambda path: path.stem)
def result(request: pytest.FixtureRequest) -> Any:
    content = json.loads(request.param.read_text(encoding="utf-8"))
    content["rows"] = [ablation.Counted(**row) for row in content["rows"]]
    content["verdicts"] = [ablation.Judged(**verdict) for verdict in content["verdicts"]]
    return content


def test_the_page_says_what_was_measured(result: Any) -> None:
    text = ablation.page(result["rows"], result["verdicts"], result["runner"], ablation.CASES)
    path = GATE / f"ablation-{result['runner']}.md"
    assert path.read_text(encoding="utf-8") == text


def test_every_strategy_has_as_many_cases(result: Any) -> None:
    assert {row.cases for row in result["rows"]} == {ablation.CASES}
    rows = {(row.operator, row.dtype, row.strategy) for row in result["rows"]}
    assert len(rows) == len(result["rows"]) == 26 * 2 * len(ablation.STRATEGIES)


def test_what_is_aimed_at_is_found_without_false_alarms(result: Any) -> None:
    own = [row for row in result["rows"] if row.strategy == "targeted"]
    wrong = [row for row in own if ablation.is_wrong(row.operator)]
    assert sum(row.failed for row in wrong) >= 0.95 * sum(row.cases for row in wrong)
    assert not sum(row.failed for row in own if not ablation.is_wrong(row.operator))


def test_verdicts_cost_a_tenth_at_most(result: Any) -> None:
    verdicts = result["verdicts"]
    every = sum(row.launches for row in result["rows"])
    assert sum(verdict.launches for verdict in verdicts) <= 0.1 * every
    assert all((v.verdict == "fail") is ablation.is_wrong(v.name) for v in verdicts)
    assert all(v.launches <= 3 for v in verdicts if v.is_proved and v.verdict == "pass")


@pytest.mark.parametrize("path", sorted(GATE.glob("values-*.json")), ids=lambda path: path.stem)
def test_the_page_on_values_says_what_was_measured(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.with_suffix(".md").read_text(encoding="utf-8") == values.page(content)
