"""Kernels that are right have no race, Triton's own reductions and scans among them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.emulator.inputs import RandomInputs
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.launch.binding import bind

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import launches as LAUNCHES  # noqa: E402, N812

QUICK = ("welford", "cumsum", "argmax", "matmul_dot_fp16", "layer_norm_fwd", "histogram")
ADDED_TO = ("ticket_sum", "segment_sum")
"""Kernels whose programs hand results on through atomics: not judged."""


def builds() -> list[Any]:
    """All right builds, the first ones always, the others slowly."""
    out = []
    for arch in ("sm_80", "sm_90"):
        for name in LAUNCHES.emulated.names(arch):
            if "_buggy" not in name and name not in ADDED_TO:
                is_slow = arch != "sm_80" or name not in QUICK
                marks = [pytest.mark.slow] if is_slow else []
                out.append(pytest.param(name, arch, id=f"{arch}-{name}", marks=marks))
    return out


@pytest.mark.parametrize(("name", "arch"), builds())
def test_a_right_kernel_has_no_race(name: str, arch: str) -> None:
    build = LAUNCHES.emulated.build(name, arch)
    emulator = LAUNCHES.emulated.emulator(build.path)
    for launch in list(LAUNCHES.launches(build, 0))[:1]:
        bound = bind(emulator.kernel, launch, {}, LAUNCHES.metadata(build))
        ran = run_launch(emulator, bound, RandomInputs(1), sanitize=Sanitize(races=True))
        assert [f for f in ran.outcome.faults if f.kind == "race"] == []
