"""What is captured without a GPU is what a launch on one compiles and passes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.capture import capture
from ptxlint.dynamic.capture.session import _own_architecture

SCRIPTS = Path(__file__).parent / "scripts"
FEWEST = 20
_PLACE = re.compile(r'^\s*\.file.*$|"[^"\n]*/[^"\n]*"', re.MULTILINE)


def captured(
    script: str, arch: str, out: Path, gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[str, Any]]:
    """The kernels of a script, by what distinguishes them: name, signature, constants, options."""
    # Each compiles for itself.
    monkeypatch.setenv("TRITON_CACHE_DIR", str(out / "cache"))
    bundle = out / "bundle"
    done = capture([str(SCRIPTS / f"{script}.py")], [arch], bundle, gpu=gpu)
    assert [run.status for run in done.runs] == ["complete"], done.runs
    kernels = {}
    for kernel in json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["kernels"]:
        ptx = (bundle / kernel["ptx"]).read_text(encoding="utf-8")
        kernel["ptx"] = _PLACE.sub("", ptx)
        kernels[kernel["hash"]] = kernel
    return kernels


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("script", ["many", "arguments", "indices"])
def test_a_launch_compiles_what_is_captured(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch = _own_architecture()
    if arch is None:
        pytest.skip("no GPU")
    without = captured(script, arch, tmp_path / "without", False, monkeypatch)
    real = captured(script, arch, tmp_path / "real", True, monkeypatch)
    assert without.keys() == real.keys()
    assert len(real) >= (FEWEST if script == "many" else 1)
    for hash_, kernel in real.items():
        assert kernel["ptx"] == without[hash_]["ptx"], kernel["name"]
        assert kernel["signature"] == without[hash_]["signature"]
        if script == "many":
            assert kernel["launches"] == without[hash_]["launches"], kernel["name"]


@pytest.mark.slow
def test_two_captures_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = captured("many", "sm_90", tmp_path / "first", False, monkeypatch)
    second = captured("many", "sm_90", tmp_path / "second", False, monkeypatch)
    assert len(first) >= FEWEST
    assert first == second
