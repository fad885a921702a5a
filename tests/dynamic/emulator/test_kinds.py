"""Every kind of finding of a run against its samples: exactly the marked lines, nothing else."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from ptxlint.cli import main
from ptxlint.dynamic.emulator.findings import KINDS
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.dynamic.emulator.session import emulate
from ptxlint.engine.emulated import EMULATED, EmulatedRule
from ptxlint.engine.report import Report
from ptxlint.engine.samples import expected, module_text
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import Node
from ptxlint.reporters import render
from ptxlint.rulekit import FAMILIES, Sample


def ran(rule: EmulatedRule, sample: Sample) -> Report:
    item = Input(
        f"<{rule.id}>", module_text(sample), launches=(read_launch(Node(sample.launch), ""),)
    )
    found = emulate([item], sanitize=chosen(rule.watch), most_turns=2000)
    assert found.left_out == []
    return found.report


def cases() -> list[object]:
    return [
        pytest.param(rule, sample, id=f"{rule.id}-{kind}-{number}")
        for rule in EMULATED
        for kind, samples in (("bad", rule.bad), ("good", rule.good))
        for number, sample in enumerate(samples)
    ]


@pytest.mark.parametrize(("rule", "sample"), cases())
def test_findings_are_exactly_the_marked_ones(rule: EmulatedRule, sample: Sample) -> None:
    found = Counter((f.rule, f.place.line) for f in ran(rule, sample).findings)
    assert found == expected(module_text(sample))


@pytest.mark.parametrize("rule", EMULATED, ids=lambda rule: rule.id)
def test_a_kind_is_explained_as_a_rule_is(rule: EmulatedRule) -> None:
    assert rule.bad
    assert rule.good
    assert all(rule.id in {name for name, _ in expected(module_text(s))} for s in rule.bad)
    assert not any(expected(module_text(s)) for s in rule.good)
    assert rule.family in FAMILIES
    assert all(text.endswith(".") for text in (rule.summary, rule.why, rule.fix))


def test_every_fault_that_is_reported_has_a_kind_and_no_kind_is_left_over() -> None:
    assert sorted(KINDS.values(), key=lambda rule: rule.id) == list(EMULATED)
    assert len({rule.name for rule in EMULATED}) == len(EMULATED)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([*words])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


@pytest.mark.parametrize("word", ["EMU905", "emu905", "emulated-race"])
def test_a_kind_is_explained_by_the_command(capsys: pytest.CaptureFixture[str], word: str) -> None:
    code, out, _ = told(capsys, "rule", word)
    assert code == 0
    assert out.startswith("EMU905 emulated-race\n")
    assert "ptxlint emulate --sanitize races" in out
    assert "Reported: a warp reads what another one has just written" in out
    assert "launched with:" in out
    _, out, _ = told(capsys, "rule", word, "--format", "json")
    assert json.loads(out)["sanitize"] == "races"


def test_a_kind_that_is_mistyped_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "rule", "EMU9005")
    assert code == 2
    assert "did you mean EMU90" in err
    code, _, err = told(capsys, "rule", "emulated-rase")
    assert "did you mean emulated-race (EMU905)?" in err


def test_kinds_are_described_in_sarif_and_told_to_github() -> None:
    rule = next(rule for rule in EMULATED if rule.id == "EMU901")
    report = ran(rule, rule.bad[0])
    log = json.loads(render(report, "sarif"))
    (run,) = log["runs"]
    (result,) = run["results"]
    described = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert described["id"] == result["ruleId"] == "EMU901"
    assert described["fullDescription"]["text"] == rule.why
    assert rule.fix in described["help"]["text"]
    assert "EMU905" in {each["id"] for each in run["tool"]["driver"]["rules"]}
    assert result["properties"]["witness"]["ctaid"] == [1, 0, 0]
    (line,) = [row for row in render(report, "github").splitlines() if "EMU901" in row]
    assert line.startswith("::error ")
