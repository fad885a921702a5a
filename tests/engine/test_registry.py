"""What may be a rule, and where rules come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ptxlint.engine import registry as registry_module
from ptxlint.engine.options import Options
from ptxlint.engine.registry import Registry, RegistryError, default_registry
from ptxlint.engine.run import run
from ptxlint.rulekit import Rule, Sample

PLUGIN = """
from ptxlint.rulekit import Rule, Sample

class Plugin(Rule):
    id = "{identifier}"
    name = "{name}"
    severity = "warning"
    confidence = "high"
    category = "masking"
    family = "guard"
    summary = "s"
    why = "w"
    fix = "f"
    bad = (Sample("x", "ret; //~ {identifier}"),)
    good = (Sample("x", "exit;"),)

    def check(self, fn, facts):
        yield from ()
"""


def _install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, value: str = "ptxlint_plugin"
) -> None:
    """Lay out a distribution with one entry point and put it on the path."""
    (folder / "ptxlint_plugin.py").write_text(code)
    info = folder / "ptxlint_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ptxlint-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ptxlint.rules]\nmine = {value}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "ptxlint_plugin", raising=False)


def _fresh() -> Registry:
    return default_registry.__wrapped__()


def test_own_rules_are_found_in_order() -> None:
    registry = _fresh()
    assert {"NUM407", "RES103"} <= set(registry.rules)
    assert list(registry.rules) == sorted(registry.rules)
    assert all(r.__module__.startswith("ptxlint.rules.") for r in registry.rules.values())


def test_a_foreign_class_is_refused() -> None:
    class Foreign(Rule):
        id = "FOR101"
        name = "foreign"
        severity = "note"
        confidence = "low"
        category = "masking"
        family = "guard"
        summary = why = fix = "x"
        bad = (Sample("x", "ret; //~ FOR101"),)
        good = (Sample("x", "ret;"),)

    with pytest.raises(RegistryError, match=r"is no rule of ptxlint"):
        Registry().add(Foreign)
    registry = Registry()
    registry.add(Foreign, "an entry point")
    with pytest.raises(RegistryError, match="is taken by"):
        registry.add(Foreign, "an entry point")


def test_an_entry_point_brings_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, PLUGIN.format(identifier="PLG101", name="plugged"))
    registry = _fresh()
    assert registry.problems == []
    assert registry.rules["PLG101"].name == "plugged"


def test_an_entry_point_may_name_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = PLUGIN.format(identifier="PLG101", name="plugged")
    _install(tmp_path, monkeypatch, code, "ptxlint_plugin:Plugin")
    assert "PLG101" in _fresh().rules


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (PLUGIN.format(identifier="NUM407", name="mine"), "NUM407 mine is taken by"),
        (PLUGIN.format(identifier="PLG101", name="stray-f64"), "is taken by NUM407"),
        (PLUGIN.format(identifier="x", name="mine"), "not of the form"),
        ("1 / 0", "division by zero"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
    ],
)
def test_a_bad_plugin_is_a_problem_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    _install(tmp_path, monkeypatch, code)
    registry = _fresh()
    (problem,) = registry.problems
    assert words in problem.message
    assert "entry point mine" in problem.message
    assert Path(problem.path) == tmp_path / "ptxlint_plugin.py"
    assert "RES103" in registry.rules


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\n\n1 / 0\n", 3),
        ("x = 1\ndef (\n", 2),
        ("from ptxlint.rulekit import Rule\n\n\nclass Mine(Rule):\n    id = 'MIN101'\n", 4),
    ],
)
def test_a_problem_names_the_line_of_the_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, line: int
) -> None:
    _install(tmp_path, monkeypatch, code)
    monkeypatch.chdir(tmp_path)
    registry = _fresh()
    assert [(p.path, p.line) for p in registry.problems] == [("ptxlint_plugin.py", line)]
    report = run([], Options(), registry=registry)
    (finding,) = report.findings
    assert (finding.rule, finding.place.path, finding.place.line) == (
        "INTERNAL",
        "ptxlint_plugin.py",
        line,
    )
    assert report.exit_code == 2


def test_a_module_that_is_not_there_has_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch, "", "ptxlint_nowhere.rules")
    (problem,) = _fresh().problems
    assert (problem.path, problem.line) == ("", 1)
    assert "ptxlint_nowhere" in str(problem)


def test_importlib_metadata_is_loaded_for_entry_points_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declares = registry_module._any_distribution_declares
    assert not declares("ptxlint.no-such-group")
    _install(tmp_path, monkeypatch, "")
    assert declares("ptxlint.rules")
