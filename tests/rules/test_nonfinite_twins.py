"""The twins of nonfinite.py do what their marks say: each defect stores NaN of finite data."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).with_name("nonfinite_runner.py")
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def builds() -> Any:
    """The module fixtures/twin_builds.py, which is part of no package."""
    spec = importlib.util.spec_from_file_location("nonfinite_builds", FIXTURES / "twin_builds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_marked_twins_store_nan_and_the_others_do_not() -> None:
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    pytest.importorskip("torch", reason="needs torch")
    twins = {t.kernel: t for t in builds().twins() if t.module == "twins/nonfinite"}
    path = next(iter(twins.values())).path
    ran = subprocess.run(
        [sys.executable, str(RUNNER), str(path), *twins],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found = json.loads(ran.stdout.splitlines()[-1])
    assert len(found) >= 15
    assert found == {name: bool(twins[name].marks) for name in found}
