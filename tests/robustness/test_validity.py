"""ptxlint and a real ptxas on faulty modules: ptxlint never rejects what ptxas takes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SAMPLE = 66
"""Mutants of `make test`: one of each kind of mutation."""


@pytest.fixture(scope="module")
def validity() -> Iterator[ModuleType]:
    """The benchmark as a module; it imports its neighbour by name."""
    spec = importlib.util.spec_from_file_location("validity", BENCHMARKS / "validity.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["validity"] = module
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))
        del sys.modules["validity"]


@pytest.fixture(scope="module")
def judge(validity: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    assemblers = validity.find_assemblers()
    if not assemblers:
        pytest.skip("no ptxas: install ptxlint[triton]")
    return validity.Judge(assemblers, tmp_path_factory.mktemp("ptxas"))


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(600, marks=pytest.mark.slow)])
def test_nothing_valid_is_rejected(validity: ModuleType, judge: Any, count: int) -> None:
    bases = validity.fixture_texts()
    verdicts = list(validity.judged(count, 11, judge))
    wrong = [
        (v.mutant.base, v.mutant.mutation, v.ptxlint[0], validity.changed_line(v, bases))
        for v in verdicts
        if v.outcome == "ptxlint"
    ]
    assert wrong == []
    rejected = [v for v in verdicts if v.ptxas]
    assert len(rejected) > count // 2
    assert sum(v.outcome == "both" for v in rejected) > 0.85 * len(rejected)
