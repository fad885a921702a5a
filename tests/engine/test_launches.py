"""What a run does with launches: whose they are, what rules get, what the report says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ptxlint
from ptxlint.engine.options import Options
from ptxlint.engine.registry import Registry
from ptxlint.engine.report import Report
from ptxlint.engine.run import run
from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_file import parse_launches
from ptxlint.ir.function import Function
from ptxlint.launch.bound import BoundLaunches
from ptxlint.reporters import render
from ptxlint.rulekit import Hit, Rule, Sample, Verdict
from ptxlint.source import SourceText

DATA = Path(__file__).resolve().parents[1] / "data"


def kernel(name: str) -> str:
    return f"""
.visible .entry {name}(.param .u64 .ptr .global {name}_param_0, .param .u32 {name}_param_1) {{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [{name}_param_1];
    ret;
}}
"""


def module(*names: str) -> str:
    return ".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(map(kernel, names))


def launches(*pairs: tuple[str, int], **fields: Any) -> tuple[Any, ...]:
    """Launches of kernels of these names, with these values."""
    each = [
        {
            **({"kernel": name} if name else {}),
            "grid": 3,
            "block": 32,
            "arguments": ["float32[4]", value],
            **fields,
        }
        for name, value in pairs
    ]
    return parse_launches(json.dumps({"launches": each}, indent=1), "l.json")


class Even(Rule):
    """Reports launches whose number is even."""

    id = "TST902"
    name = "even-number"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "bounds"
    summary = "An even number."
    why = "For tests."
    fix = "None."
    bad = (Sample("two", "ret; //~ TST902", launch={"grid": 1}),)
    good = (Sample("none", "ret;"),)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit and one verdict for each launch."""
        for bound in facts.get(BoundLaunches):
            name = fn.params[1].name
            value = bound.value(name, 0, 0, (1 << 32) - 1)
            if value is not None and value % 2 == 0:
                witness = {"ctaid": [0, 0, 0], "tid": [7, 0, 0], "values": {name: value}}
                message = f"the number is {value}"
                yield Hit(message, fn.instrs[0], key="even", launch=bound, witness=witness)
                yield Verdict("refuted", message, fn.instrs[0], launch=bound)
            else:
                yield Verdict("proved", f"{value} is odd", fn.instrs[0], launch=bound)


def check(text: str, shared: tuple[Any, ...] = (), own: tuple[Any, ...] = ()) -> Report:
    registry = Registry()
    registry.add(Even, "test")
    options = Options(select=("ALL",), launches=shared)
    return run([Input("k.ptx", text, None, own)], options, registry=registry)


def said(report: Report) -> list[str]:
    return [f"{f.rule} {f.message}" for f in report.findings]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_kernel_gets_its_launches(is_own: bool) -> None:
    given = launches(("a", 3), ("a", 4), ("b", 5))
    text = module("a", "b", "c")
    report = check(text, own=given) if is_own else check(text, given)
    assert said(report) == ["TST902 the number is 4"]
    assert [(k.name, k.launches) for k in report.kernels] == [("a", 2), ("b", 1), ("c", 0)]
    assert (report.summary.launches, report.summary.launched) == (3, 2)
    assert "3 launches of 2 of 3 kernels; " in render(report, "text")


def test_the_same_under_several_launches_is_one_finding() -> None:
    given = launches(("a", 2), ("a", 3), ("a", 4), ("a", 6))
    report = check(module("a"), given)
    (finding,) = report.findings
    assert finding.launch == {
        "grid": [3, 1, 1],
        "block": [32, 1, 1],
        "arguments": {"a_param_0": "float32[4]", "a_param_1": 2},
        "place": "l.json:3",
        "more": 2,
    }
    verdicts = [o for o in report.obligations if o.family == "bounds"]
    assert [(o.status, o.launch["more"]) for o in verdicts if o.launch] == [
        ("refuted", 2),
        ("proved", 0),
    ]
    text = render(report, "text", obligations=True)
    assert "= seen at: CTA (0, 0, 0), thread (7, 0, 0), a_param_1 = 2\n" in text
    assert "= launch: l.json:3: grid (3, 1, 1); a_param_0 = float32[4], a_param_1 = 2 (and " in text
    assert "the number is 2 (3 launches)" in text
    assert "3 is odd (1 launch)" in text


def test_a_launch_names_parameters_that_nothing_else_names() -> None:
    (given,) = launches(("a", 2))
    named = dict(zip(("x", "count"), given.arguments.values(), strict=True))
    report = check(module("a"), own=(given._replace(arguments=named),))
    (finding,) = report.findings
    assert finding.witness is not None
    assert finding.witness["values"] == {"count": 2}
    assert finding.fingerprint == check(module("a"), own=(given,)).findings[0].fingerprint


def test_fingerprints_do_not_depend_on_launches() -> None:
    one = check(module("a"), launches(("a", 2))).findings[0]
    other = check(module("a"), launches(("a", 3), ("a", 8), ("a", 4), grid=9)).findings[0]
    assert one.message != other.message
    assert one.fingerprint == other.fingerprint


def test_a_launch_without_a_name_is_of_the_only_kernel() -> None:
    assert check(module("a"), launches(("", 2))).exit_code == 1
    report = check(module("a", "b"), launches(("", 2)))
    assert report.exit_code == 2
    assert said(report) == [
        "INPUT l.json:3: the launch names no `kernel`, and this file has 2 kernels (`a`, `b`)"
    ]


def test_a_launch_of_no_kernel_is_told() -> None:
    report = check(module("a"), launches(("a", 3), ("x", 2)))
    assert report.exit_code == 2
    (finding,) = report.findings
    assert finding.message == "no checked file has a kernel `x`, of which this launch is"
    assert (finding.place.path, finding.place.line) == ("l.json", 12)
    assert finding.help == "found: a"
    report = check(module("a"), own=launches(("x", 2)))
    assert said(report) == ["INPUT l.json:3: this file has no kernel `x`, it has `a`"]


def test_a_launch_may_be_of_any_of_several_files() -> None:
    registry = Registry()
    registry.add(Even, "test")
    items = [Input("a.ptx", module("a")), Input("b.ptx", module("b"))]
    options = Options(select=("ALL",), launches=launches(("a", 2), ("b", 3)))
    report = run(list(items), options, registry=registry)
    assert said(report) == ["TST902 the number is 2"]
    assert (report.summary.launches, report.summary.launched) == (2, 2)


def test_launches_that_do_not_fit_are_told_once_and_left_out() -> None:
    given = launches(("a", 1 << 40), ("a", 2), ("a", 1 << 40))
    report = check(module("a"), given)
    assert report.exit_code == 2
    assert said(report) == [
        "INPUT l.json:3: launch of a: `a_param_1` is 1099511627776, which u32 does not hold "
        "(0 to 4294967295); 1 more launch alike",
        "TST902 the number is 2",
    ]
    assert report.summary.launches == 1


def test_the_other_formats_tell_of_the_launch() -> None:
    report = check(module("a"), launches(("a", 2)))
    data = json.loads(render(report, "json"))
    assert data["findings"][0]["launch"]["grid"] == [3, 1, 1]
    assert data["findings"][0]["witness"]["values"] == {"a_param_1": 2}
    assert data["kernels"][0]["launches"] == 1
    assert (data["summary"]["launches"], data["summary"]["launched"]) == (1, 1)
    log = json.loads(render(report, "sarif"))
    schema = json.loads((DATA / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(log)
    (result,) = log["runs"][0]["results"]
    assert result["properties"]["launch"]["place"] == "l.json:3"
    assert result["properties"]["witness"]["tid"] == [7, 0, 0]
    assert "Launch: l.json:3: grid (3, 1, 1)" in result["message"]["text"]
    assert "%0Alaunch: l.json%3A3" not in render(report, "github")
    assert "%0Alaunch: l.json:3: grid (3, 1, 1)" in render(report, "github")


def test_infinite_arguments_are_valid_json() -> None:
    value = {"kind": "scalar", "type": "fp32", "value": "-inf"}
    text = module("a").replace(".param .u32 a_param_1", ".param .f32 a_param_1")
    text = text.replace("ld.param.u32 %r1, [a_param_1];", "")
    given = launches(("a", 2), grid=[1, 1, 70000], arguments=["float32[4]", value])
    report = run([Input("k.ptx", text)], Options(select=("BND304",), launches=given))
    rendered = render(report, "json")
    json.loads(rendered, parse_constant=pytest.fail)
    assert '"a_param_1": "-inf"' in rendered


def test_launches_in_other_processes(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ptx").write_text(module(name), encoding="utf-8")
    (tmp_path / "l.json").write_text(
        json.dumps(
            {
                "launches": [
                    {
                        "kernel": name,
                        "grid": [1, 1, 70000],
                        "block": 1,
                        "arguments": ["int8[1]", 1],
                    }
                    for name in "ab"
                ]
            }
        ),
        encoding="utf-8",
    )
    paths = [str(tmp_path / f"{name}.ptx") for name in "ab"]
    file = tmp_path / "l.json"
    reports = [ptxlint.check(paths, launch=file, select="BND304", jobs=jobs) for jobs in (1, 2)]
    for report in reports:
        assert [f.rule for f in report.findings] == ["BND304", "BND304"]
        assert report.summary.launches == 2
    assert reports[0].findings == reports[1].findings


def test_a_bad_file_of_launches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ptxlint.LaunchFileError, match="No such file"):
        ptxlint.check(SourceText(module("a"), "k.ptx"), launch=[tmp_path / "none.json"])


def test_what_was_covered_and_what_was_not() -> None:
    good, bad = launches(("a", 1), ("a", 2), ("b", 3)), launches(("b", 1 << 40), ("b", 1 << 41))
    item = Input("k.ptx", module("a", "b", "c"))
    report = run([item], Options(select=("BND304",), launches=good + bad))
    assert "3 launches of 2 of 3 kernels, 2 left out; " in render(report, "text")
    assert "3 launches of 2 of 3 kernels, 2 left out; " in render(report, "github")
    kernels = {kernel["name"]: kernel for kernel in report.to_dict()["kernels"]}
    assert [kernels[name]["launches"] for name in "abc"] == [2, 1, 0]
    assert kernels["a"]["left_out"] == kernels["c"]["left_out"] == []
    reasons = {left["reason"]: left["count"] for left in kernels["b"]["left_out"]}
    assert sum(reasons.values()) == 2
    assert all("which u32 does not hold" in reason for reason in reasons)
    summary = report.to_dict()["summary"]
    assert (summary["launches"], summary["launched"], summary["left_out"]) == (3, 2, 2)
    log = json.loads(render(report, "sarif"))
    assert log["runs"][0]["properties"] == {
        "launches": 3, "launchedKernels": 2, "launchesLeftOut": 2
    }  # fmt: skip


def test_without_launches_nothing_is_said_of_them() -> None:
    report = run([Input("k.ptx", module("a"))], Options(select=("BND304",)))
    assert "launch" not in render(report, "text")
    assert "properties" not in json.loads(render(report, "sarif"))["runs"][0]
