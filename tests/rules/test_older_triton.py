"""The twins as an older Triton compiled them: the same findings on the same lines."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import ptxlint

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOLDER = FIXTURES / "ptx-triton-3.6"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"older_{name}", FIXTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TWINS = {
    f"{twin.module.removeprefix('twins/')}-{twin.kernel}": twin
    for twin in _load("twin_builds").twins()
}
FILES = sorted(FOLDER.rglob("*.ptx"))


def case(path: Path) -> Any:
    twin = TWINS.get(path.stem)
    marks = (
        [pytest.mark.xfail(reason=twin.open)]
        if twin is not None and twin.open and not twin.open_from
        else []
    )
    return pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=marks)


@pytest.mark.parametrize("path", [case(path) for path in FILES])
def test_a_twin(path: Path) -> None:
    report = ptxlint.check(path)
    found = {
        (finding.rule, finding.place.source.line if finding.place.source else finding.place.line)
        for finding in report.findings
        if finding.severity != "note"
    }
    assert found == TWINS[path.stem].marks, "regenerate with compile_older.py if the twin changed"


def test_there_is_a_file_for_each_twin() -> None:
    assert {path.stem for path in FILES if path.parent.name == "sm_90"} == set(TWINS)
