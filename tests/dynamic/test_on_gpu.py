"""Capturing on a machine with a GPU: real launches, and the same bundle as without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.capture import capture
from ptxlint.dynamic.capture.session import _own_architecture

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def arch() -> str:
    own = _own_architecture()
    if own is None:
        pytest.skip("no GPU: nvidia-smi names none")
    return own


def captured(
    script: str, arch: str, out: Path, *, gpu: bool, **options: Any
) -> tuple[Any, dict[str, Any], str]:
    """The capture, its manifest, and what the script printed."""
    done = capture([str(SCRIPTS / f"{script}.py")], [arch], out, gpu=gpu, **options)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return done, manifest, (out / arch / "output.txt").read_text(encoding="utf-8")


def test_what_is_captured_ran(arch: str, tmp_path: Path) -> None:
    done, manifest, printed = captured("real", arch, tmp_path / "bundle", gpu=True)
    (run,) = manifest["runs"]
    assert (run["status"], run["message"]) == ("complete", ""), printed
    assert printed.splitlines()[-1] == "all of it ran"
    assert run["device"] != "none"
    assert done.complete, done.problems
    kernels = manifest["kernels"]
    assert {"add", "accumulate"} <= {kernel["name"] for kernel in kernels}
    assert any(kernel["name"].startswith("triton_") for kernel in kernels), "those of torch"
    tuned = [k for k in kernels if k["name"] == "accumulate"]
    assert len(tuned) == 3
    (add,) = (k for k in kernels if k["name"] == "add")
    assert sum(launch["count"] for launch in add["launches"]) == 3


def test_without_the_gpu_the_same_script_fails(arch: str, tmp_path: Path) -> None:
    """What the test above rests on: the script knows whether kernels ran."""
    done, manifest, _ = captured("real", arch, tmp_path / "bundle", gpu=False)
    assert not done.complete
    assert manifest["runs"][0]["status"] == "failed"
    assert "kernels do not run here" in manifest["runs"][0]["message"]


def launches(manifest: dict[str, Any], *, tuned: bool) -> set[str]:
    """Kernels with grids and arguments. What is measured repeats launches as often as it likes, and
    then launches the configuration that was best. Numbers are drawn at random, on a GPU others."""
    return {
        json.dumps([kernel["name"], kernel["signature"], _without_numbers(launch)], sort_keys=True)
        for kernel in manifest["kernels"]
        for launch in kernel["launches"]
        if "autotuned" in launch or not tuned
    }


def _without_numbers(launch: dict[str, Any]) -> dict[str, Any]:
    drawn = ("contents", "values")
    arguments = {
        name: {key: value for key, value in argument.items() if key not in drawn}
        for name, argument in launch["arguments"].items()
    }
    return launch | {"count": 1, "arguments": arguments}


@pytest.mark.parametrize("script", ["arguments", "many", "tuned"])
def test_the_same_launches_are_recorded(script: str, arch: str, tmp_path: Path) -> None:
    _, real, printed = captured(script, arch, tmp_path / "real", gpu=True)
    _, without, _ = captured(script, arch, tmp_path / "without", gpu=False, autotune="all")
    assert real["runs"][0]["status"] == "complete", printed
    tuned = script == "tuned"
    one, other = launches(real, tuned=tuned), launches(without, tuned=tuned)
    assert one
    assert one ^ other == set(), "\n".join(sorted(one ^ other))
    assert real["problems"] == without["problems"] == []


@pytest.mark.parametrize("script", ["library", "generated"])
def test_operators_and_what_torch_generates(script: str, arch: str, tmp_path: Path) -> None:
    done, manifest, printed = captured(script, arch, tmp_path / "real", gpu=True)
    assert done.complete, (done, printed)
    assert any(kernel["name"].startswith("triton_") for kernel in manifest["kernels"])
