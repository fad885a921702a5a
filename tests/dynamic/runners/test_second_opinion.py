"""What compute-sanitizer prints, read; and a case run under a program in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.second_opinion import (
    OpinionError,
    problems_in,
    program,
    second_opinion,
)

SPEC = Path(__file__).parents[1] / "specs" / "misbehaving.py"
REPORT = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at unmasked_kernel+0x1a0 in on_triton.py:20
=========     by thread (1,0,0) in block (1,0,0)
=========     Address 0x7f0000000104 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f0000000000 of size 260 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2d3] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at unmasked_kernel+0x1a0 in on_triton.py:20
=========     by thread (2,0,0) in block (1,0,0)
=========     Address 0x7f0000000108 is out of bounds
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x90 in sum_kernel
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 3 errors
"""


def test_problems_of_a_report_come_once_with_their_place() -> None:
    assert problems_in(REPORT) == (
        "Invalid __global__ write of size 4 bytes at unmasked_kernel+0x1a0 in on_triton.py:20, "
        "first by thread (1,0,0) of block (1,0,0)",
        "Uninitialized __global__ memory read of size 4 bytes at sum_kernel, "
        "first by thread (0,0,0) of block (0,0,0)",
    )
    assert problems_in("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == ()


def placed(folder: Path, text: str) -> None:
    file = folder / "compute-sanitizer"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def test_a_case_is_run_under_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert program() is None
    plan = Plan(str(SPEC), "good", runner="numpy")
    with pytest.raises(OpinionError, match="part of CUDA's toolkit"):
        second_opinion(plan, Case("", "float32", {"n": 5}))
    placed(
        tmp_path,
        "#!/bin/sh\n[ $1 = --tool ] && [ $PYTORCH_NO_CUDA_MEMORY_CACHING = 1 ] || exit 3\n"
        'echo "========= Invalid $2 access"; shift 2; exec "$@"\n',
    )
    opinion = second_opinion(plan, Case("", "float32", {"n": 5}), "racecheck")
    assert opinion.problems == ("Invalid racecheck access",)
    assert opinion.outcome is not None
    assert opinion.outcome.status == "pass"


def test_a_process_that_does_not_end_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    placed(tmp_path, "#!/bin/sh\nsleep 60\n")
    with pytest.raises(OpinionError, match=r"no end under compute-sanitizer after 0\.2 s"):
        second_opinion(Plan(str(SPEC), "good"), Case("", "float32", {"n": 5}), seconds=0.2)
