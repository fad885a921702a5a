"""Each format against its snapshot. `PTXLINT_UPDATE_SNAPSHOTS=1 pytest` writes them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

import ptxlint
from ptxlint.engine.report import Report
from ptxlint.reporters import FORMATS, render
from ptxlint.reporters.github import render_github

SNAPSHOTS = Path(__file__).parent / "snapshots"
SCHEMA = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json"

DESIGN_EXAMPLE = """\
softmax.py:10:9: error[MSK201] padding lanes hold 0.0 when they reach `max` and `exp → sum`
   10 |     x = tl.load(ptr + col, mask=col < n, other=0.0)
      |         ^ softmax.ptx:67  fill 0.0, guard `col < n`
   13 |     y = e / tl.sum(e, axis=0)
      |             ^ here each padding lane adds exp(0 - max) > 0
   = breaks when: n is not a multiple of 1024 (n = 1000: 24 lanes leak)
   = help: other=-float("inf")
"""


def _compare(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("PTXLINT_UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def _without_rules(text: str) -> str:
    """SARIF without the descriptions of all rules, which change with every new rule."""
    log = json.loads(text)
    driver = log["runs"][0]["tool"]["driver"]
    for result in log["runs"][0]["results"]:
        named = result["ruleIndex"]
        assert driver["rules"][named]["id"] == result["ruleId"]
        result["ruleIndex"] = "checked"
    del driver["rules"], driver["semanticVersion"]
    return json.dumps(log, indent=1) + "\n"


@pytest.mark.parametrize("name", FORMATS)
def test_snapshot(name: str, report: Report) -> None:
    text = render(report, name)
    _compare(f"report.{name}", _without_rules(text) if name == "sarif" else text)


def test_one_finding_looks_as_designed(report: Report) -> None:
    assert render(report, "text").startswith(DESIGN_EXAMPLE)


def test_unknown_format_is_refused(report: Report) -> None:
    with pytest.raises(ValueError, match="choose from text, json"):
        render(report, "xml")


def test_colours_only_when_asked_for(report: Report) -> None:
    assert "\x1b" not in render(report, "text")
    coloured = render(report, "text", colour=True)
    assert "\x1b[1;31merror[MSK201]\x1b[0m" in coloured


def test_sarif_is_valid(report: Report) -> None:
    schema = json.loads(SCHEMA.read_text())
    log = json.loads(render(report, "sarif"))
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(log)] == []


def test_the_schema_would_object(report: Report) -> None:
    schema = json.loads(SCHEMA.read_text())
    log = json.loads(render(report, "sarif"))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not jsonschema.Draft4Validator(schema).is_valid(log)


def test_sarif_has_both_places_and_help(report: Report) -> None:
    run = json.loads(render(report, "sarif"))["runs"][0]
    leak = run["results"][0]
    primary = leak["locations"][0]["physicalLocation"]
    assert primary["artifactLocation"]["uri"] == "softmax.py"
    assert primary["region"] == {"startLine": 10, "startColumn": 9}
    ptx = leak["relatedLocations"][0]["physicalLocation"]
    assert (ptx["artifactLocation"]["uri"], ptx["region"]["startLine"]) == ("softmax.ptx", 67)
    assert leak["partialFingerprints"]["ptxlint/v1"] == "0123456789abcdef"
    assert leak["partialFingerprints"]["pythonLine/v1"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert "Cast the f64 operand" in rules["NUM407"]["help"]["text"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_json_has_the_published_keys(report: Report) -> None:
    data = json.loads(report.to_json())
    assert data["version"] == 1
    finding = data["findings"][0]
    expected = {
        "rule": "MSK201", "name": "fill-not-neutral", "severity": "error", "confidence": "high",
        "family": "tail-mask", "kernel": "softmax_kernel", "arch": "sm_90", "path": "softmax.ptx",
        "line": 67, "column": 2, "fingerprint": "0123456789abcdef",
        "source": {"path": "softmax.py", "line": 10, "column": 9},
        "witness": {"ctaid": [3, 0, 0], "tid": [97, 0, 0], "values": {"n": 1000}},
    }  # fmt: skip
    assert {key: finding[key] for key in expected} == expected
    assert data["obligations"][2]["suggest"] == {"n": [1023]}
    assert data["kernels"][0]["registers"] == {"b32": 104}
    counts = {"files": 1, "kernels": 1, "errors": 2, "warnings": 1, "notes": 0, "seconds": 0.03}
    assert {key: data["summary"][key] for key in counts} == counts


def test_github_escapes_what_its_syntax_uses(report: Report) -> None:
    leak = report.findings[0]
    place = leak.place._replace(path="a,b:c%.ptx", source=None)
    odd = leak._replace(place=place, message="50%\r\nof: it, all", related=())
    changed = Report([odd], [], [], report.summary)
    first = render_github(changed).splitlines()[0]
    assert first.startswith("::error file=a%2Cb%3Ac%25.ptx,line=67,col=2,title=MSK201 ")
    assert "::50%25%0D%0Aof: it, all" in first


def test_a_line_too_long_is_cut_around_the_caret(report: Report, tmp_path: Path) -> None:
    line = "a" * 200_000 + "NEEDLE" + "b" * 200_000
    (tmp_path / "wide.ptx").write_text(line)
    leak = report.findings[0]
    place = leak.place._replace(path="wide.ptx", line=1, column=200_001, source=None)
    text = render(Report([leak._replace(place=place, related=())], [], [], report.summary), "text")
    lines = text.splitlines()
    assert max(map(len, lines)) < 250
    assert lines[1].index("NEEDLE") == lines[2].index("^")


def test_control_characters_do_not_reach_the_terminal(report: Report, tmp_path: Path) -> None:
    (tmp_path / "odd.ptx").write_text("\x1b[2Jmov.u32 %r1, 0;\n")
    leak = report.findings[0]
    place = leak.place._replace(path="odd.ptx", line=1, column=5, source=None)
    text = render(Report([leak._replace(place=place, related=())], [], [], report.summary), "text")
    assert "\x1b" not in text


@pytest.mark.parametrize("path", ["ptx/sm_90/rmsnorm_eps_fp64.ptx", "syntax"])
def test_sarif_of_real_files_is_valid(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures"
    monkeypatch.chdir(fixtures)
    report = ptxlint.check([path, fixtures / path, "no such file: %.ptx"])
    log = json.loads(render(report, "sarif"))
    assert log["runs"][0]["results"]
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(log)] == []
