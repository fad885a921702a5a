"""Twins in Triton: each defect is found on its Python line, and the mended kernel is silent.

The kernels lie in fixtures/kernels/twins/ and in the corpus beside it; fixtures/twin_builds.py says
how they are built and what is to be found. Whatever the tile, the number of warps, the element
type and the architecture, the findings are the same.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import ptxlint
from ptxlint.engine.registry import default_registry
from ptxlint.source import SourceText

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def _builds() -> Any:
    """The module fixtures/twin_builds.py, which is part of no package."""
    spec = importlib.util.spec_from_file_location("twin_builds", FIXTURES / "twin_builds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["twin_builds"] = module
    spec.loader.exec_module(module)
    return module


BUILDS = _builds()
TWINS = BUILDS.twins()
SELECT = ",".join(["ALL", *sorted(default_registry().rules)])
"""All rules, preview ones too."""


@pytest.fixture(scope="module", autouse=True)
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    BUILDS.prepare(str(tmp_path_factory.mktemp("cache")))
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def found(ptx: str) -> set[tuple[str, int]]:
    """(rule, Python line) of each error and warning."""
    report = ptxlint.check(SourceText(ptx, "twin.ptx"), select=SELECT)
    assert report.exit_code != 2
    return {
        (f.rule, -1 if f.place.source is None else f.place.source.line)
        for f in report.findings
        if f.severity != "note"
    }


def named(twin: Any, build: dict[str, Any], capability: int) -> str:
    values = [f"{key}={value}" for key, value in build.items() if key not in BUILDS._DOT]
    return "-".join([twin.module.removeprefix("twins/"), twin.kernel, f"sm_{capability}", *values])


def case(twin: Any, build: dict[str, Any], capability: int) -> Any:
    name = named(twin, build, capability)
    is_open = twin.open and capability >= twin.open_from
    marks = [pytest.mark.xfail(reason=twin.open)] if is_open else []
    return pytest.param(twin, build, capability, id=name, marks=marks)


def cases(capabilities: tuple[int, ...], builds: int | None = None) -> list[Any]:
    """The first builds of each twin, or all of them, for these architectures."""
    return [
        case(twin, build, capability)
        for twin in TWINS
        for build in twin.builds[:builds]
        for capability in capabilities
        if capability >= twin.since
    ]


@pytest.mark.parametrize(("twin", "build", "capability"), cases((90,), 1))
def test_a_twin(twin: Any, build: dict[str, Any], capability: int) -> None:
    assert found(BUILDS.compiled(twin, build, capability)) == twin.marks


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "build", "capability"), cases(BUILDS.CAPABILITIES))
def test_all_builds_of_a_twin(twin: Any, build: dict[str, Any], capability: int) -> None:
    assert found(BUILDS.compiled(twin, build, capability)) == twin.marks


WRONG = [twin for twin in TWINS if twin.module.endswith("_buggy") and "_dot" not in twin.module]
"""The study's nine seeded faults of Triton kernels."""


def test_three_of_nine_faults_are_refuted_and_six_need_a_reference() -> None:
    assert sorted(twin.module for twin in WRONG if twin.marks) == [
        "flash_attention_buggy", "matmul_buggy", "softmax_buggy",
    ]  # fmt: skip
    assert len(WRONG) == 9


@pytest.mark.parametrize("twin", [t for t in WRONG if not t.marks], ids=lambda t: t.module)
def test_a_wrong_formula_is_open(twin: Any) -> None:
    report = ptxlint.check(SourceText(BUILDS.compiled(twin, twin.builds[0], 90), "twin.ptx"))
    assert {o.status for o in report.obligations if o.family == "semantics"} == {"open"}


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "build", "capability"), cases(BUILDS.CAPABILITIES))
def test_no_defect_is_proved_absent(twin: Any, build: dict[str, Any], capability: int) -> None:
    """Where a rule does not find a defect yet, its verdict on that line is at least open."""
    if not twin.open or not twin.marks:
        pytest.skip("found")
    report = ptxlint.check(SourceText(BUILDS.compiled(twin, build, capability), "twin.ptx"))
    said = {
        (o.rule, o.place.source.line, o.status)
        for o in report.obligations
        if o.place is not None and o.place.source is not None
    }
    assert {(rule, line, "proved") for rule, line in twin.marks}.isdisjoint(said)


LAUNCHED = {"twins/coverage", "twins/launches", "twins/reruns", "twins/views"}
"""Their defects are those of launches: tests/launch has them."""


@pytest.mark.parametrize("module", sorted({t.module for t in TWINS if "/" in t.module} - LAUNCHED))
def test_a_module_has_defects_and_what_is_right(module: str) -> None:
    assert {bool(t.marks) for t in TWINS if t.module == module} == {True, False}


def test_marks_name_rules_and_twins_have_four_builds() -> None:
    assert {rule for twin in TWINS for rule, _ in twin.marks} <= set(default_registry().rules)
    assert [t.kernel for t in TWINS if len(t.builds) < 4 and t.module not in LAUNCHED] == []
