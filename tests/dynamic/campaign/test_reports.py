"""Verdicts in each format."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator, Draft202012Validator, FormatChecker

from ptxlint.dynamic.campaign.reports import FORMATS, render
from ptxlint.dynamic.campaign.verdict import Failure, Place, Stressed, Verdict
from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.runners import Compared, Outcome

ROOT = Path(__file__).resolve().parents[3]
CASE = Case("softmax_buggy", "float32", {"rows": 1, "n": 3}, "graded", checks=("reference",))
SEEN = Outcome(
    CASE, "fail", "reference", "3 of 3 elements are wrong",
    (Compared("output 0", 3, 3, 0.31, 1.0, 5e6, 0, (0, 2), 0.5, 0.81, 1e-6),), launches=1,
)  # fmt: skip
FIRST = SEEN._replace(case=CASE._replace(dims={"rows": 5, "n": 131}))
STATIC = Failure(
    "tail-mask", "padding lanes hold 0.0", Place("softmax.py", 15, 9), "MSK201", "softmax_kernel",
    "n_cols is not a multiple of 4", None, True, FIRST, SEEN, "replays/softmax.json",
)  # fmt: skip
UNSEEN = STATIC._replace(confirmed=False, seen=None, smallest=None, replay="")
CRASH = Failure(
    "semantics", "the process was ended by SIGSEGV", None,
    seen=Outcome(CASE, "fail", "crash", "the process was ended by SIGSEGV"),
)  # fmt: skip
VERDICTS = [
    Verdict("softmax", "pass", "specs/softmax.py", "triton", "emulator", proved=14, cases=2,
            launches=2, saved=94, seconds=1.5, notes=("ran with one program",)),
    Verdict("softmax_buggy", "fail", "specs/softmax.py", "triton", "emulator",
            failures=(STATIC,), cases=1, launches=1, saved=95, reducing=9),
    Verdict("norm", "fail", "specs/norm.py", "numpy", "numpy", failures=(CRASH,)),
    Verdict("scan", "undecided", "specs/scan.py", "triton", "cuda", reason="NUM402: no GPU",
            obligations=(Stressed("rescale", "NUM402", "scan_kernel", "left open",
                                Place("scan.py", 3), "undecided", why="no GPU"),)),
    Verdict("", "undecided", "specs/broken.py", runner="emulator",
            problem="specs/broken.py:3: SyntaxError\x00"),
]  # fmt: skip


def test_text_names_line_inputs_and_error() -> None:
    text = render(VERDICTS, "text", obligations=True)
    assert "pass      softmax: 2 cases, 2 launches, 94 saved, 14 proved\n" in text
    assert "  note: ran with one program\n" in text
    assert "fail      norm (numpy, no PTX):" in text
    assert "  softmax.py:15:9: MSK201: padding lanes hold 0.0\n" in text
    assert (
        "    with rows=1 n=3, float32, graded values, seed 0: 3 of 3 elements are wrong\n"
        "    largest error 0.31 (5e+06 ulp) in output 0\n"
        "    first seen with rows=5 n=131, float32, graded values, seed 0\n"
    ) in text
    assert "    breaks when: n_cols is not a multiple of 4\n" in text
    assert "    again: ptxlint replay replays/softmax.json\n" in text
    assert "  scan.py:3: NUM402 left open (left open): undecided: no GPU\n" in text
    assert text.endswith(
        "5 operators: 1 pass, 2 fail, 1 undecided, 1 problem; 3 cases, 3 launches, 189 saved\n"
    )


def test_a_property_that_no_run_has_shown_is_told_as_such() -> None:
    text = render([VERDICTS[1]._replace(failures=(UNSEEN,))], "text")
    assert "MSK201: padding lanes hold 0.0\n    no run has shown it\n" in text


def test_what_became_of_the_process_is_what_failed() -> None:
    norm = render(VERDICTS[2:3], "text")
    assert "  crash: the process was ended by SIGSEGV\n" in norm
    (suite,) = ElementTree.fromstring(render(VERDICTS[2:3], "junit"))
    assert suite[0][0].get("type") == "crash"


def test_json_holds_what_the_format_promises() -> None:
    told = json.loads(render(VERDICTS, "json"))
    assert told["version"] == 1
    verdict = told["verdicts"][1]
    assert (verdict["name"], verdict["verdict"]) == ("softmax_buggy", "fail")
    assert (verdict["cases"], verdict["saved"]) == (1, 95)
    (failure,) = verdict["failures"]
    assert failure["inputs"]["shape"] == {"rows": 1, "n": 3}
    assert (failure["inputs"]["dtype"], failure["inputs"]["seed"]) == ("float32", 0)
    assert failure["max_abs_error"] == 0.31
    assert failure["source"] == {"path": "softmax.py", "line": 15, "column": 9}
    assert failure["replay"] == "replays/softmax.json"
    assert told["summary"]["problem"] == 1
    assert [Verdict.from_json(one) for one in told["verdicts"]] == VERDICTS


def test_json_has_no_infinities() -> None:
    compared = SEEN.compared[0]._replace(max_abs=inf, got=inf)
    seen = SEEN._replace(compared=(compared,))
    verdict = VERDICTS[1]._replace(failures=(STATIC._replace(smallest=seen),))
    (told,) = json.loads(render([verdict], "json"))["verdicts"]
    assert told["failures"][0]["max_abs_error"] is None
    assert Verdict.from_json(told) == verdict


def test_junit_counts_what_continuous_integration_counts() -> None:
    suite = ElementTree.fromstring(render(VERDICTS, "junit"))[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    failure = suite[1][0]
    assert failure.get("message") == "MSK201: padding lanes hold 0.0"
    assert "softmax.py:15:9" in (failure.text or "")
    assert suite[4][0].tag == "error"


def test_sarif_puts_failures_at_their_line() -> None:
    log = json.loads(render(VERDICTS, "sarif"))
    schema = json.loads((ROOT / "tests/data/sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    Draft4Validator(schema, format_checker=FormatChecker()).validate(log)
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == [
        "MSK201", "GAT901", "GAT902", "GAT903",
    ]  # fmt: skip
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "softmax.py"
    assert place["region"] == {"startLine": 15, "startColumn": 9}
    assert run["invocations"] == [{"executionSuccessful": False}]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {"GAT901", "GAT902", "GAT903", "MSK201"} <= known


@pytest.mark.parametrize("format_", FORMATS)
def test_nothing_is_a_report_too(format_: str) -> None:
    assert render([], format_)


def test_json_follows_its_schema() -> None:
    schema = json.loads((ROOT / "docs" / "gate.schema.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)
    told = json.loads(render(VERDICTS, "json"))
    validator.validate(told)
    told["verdicts"][1]["failures"][0]["smallest"]["compared"][0]["max_abs"] = "much"
    assert not validator.is_valid(told)
