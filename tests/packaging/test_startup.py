"""What `ptxlint check` loads: the interpreter's start is most of the time of a small file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "triton", "numpy", "networkx", "lark", "rich", "asyncio", "multiprocessing"}
# Triton's own output, whose statement shapes are all among the shipped templates.
FILES = (
    "fixtures/ptx/sm_80/softmax.ptx",
    "fixtures/ptx/sm_90/flash_fwd.ptx",
    "fixtures/ptx/sm_100/matmul_dot_fp16.ptx",
)


def loaded_by(*arguments: str) -> set[str]:
    """Top-level names of all modules that a ptxlint command imports."""
    return {name.partition(".")[0] for name in modules_of(*arguments)}


def modules_of(*arguments: str) -> set[str]:
    """All modules that a ptxlint command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ptxlint", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("format_", ["text", "json"])
def test_check_loads_nothing_heavy(path: str, format_: str) -> None:
    loaded = loaded_by("check", "--format", format_, path)
    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_check_of_a_folder_loads_nothing_heavy() -> None:
    assert loaded_by("check", "--exit-zero", "fixtures/ptx/sm_86") & HEAVY == set()


def test_what_looks_at_launches_is_loaded_for_a_launch_alone(tmp_path: Path) -> None:
    launches = tmp_path / "l.json"
    launches.write_text(
        '{"launches": [{"grid": 8, "arguments": ["float32[64]", "float32[64]", 8, 8, 8]}]}'
    )
    loaded = modules_of("check", "--exit-zero", FILES[0])
    names = {name.removeprefix("ptxlint.launch") for name in loaded if "ptxlint.launch" in name}
    thin = {".analysis", ".bound", ".coverage", ".coverage.analysis", ".questions"}
    assert names == {"", *thin}
    loaded = modules_of("check", "--exit-zero", "--launch", str(launches), FILES[0])
    assert {"ptxlint.launches", "ptxlint.launch.binding", "ptxlint.launch.under"} <= loaded


def test_the_half_of_a_capture_that_runs_no_script_loads_neither_torch_nor_triton() -> None:
    code = (
        "import sys, ptxlint.cli.capture, ptxlint.dynamic.capture.session; "
        "print({'torch', 'triton', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_measurement_sees_a_heavy_module() -> None:
    assert "lark" in loaded_by("check", "--parser", "lark", FILES[0])


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, ptxlint; print([m for m in sys.modules if m.startswith('ptxlint.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
