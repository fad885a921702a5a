"""Builds for other architectures than sm_80 and sm_90: each runs and gives what its reference says,
or is refused for tensor memory (`tcgen05`) before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ptxlint.dynamic.emulator.semantics import UnsupportedError

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated  # noqa: E402

ARCHS = ("sm_86", "sm_89", "sm_100", "sm_120")
RUN = {"sm_86": 67, "sm_89": 69, "sm_100": 52, "sm_120": 71}
"""So many builds run; all others use tensor memory."""
SAMPLE = 6
"""Each so-manieth build is held to its reference always."""


def builds() -> list[object]:
    """A parameter set a build; those out of the sample are slow."""
    out = []
    for arch in ARCHS:
        for at, name in enumerate(emulated.names(arch)):
            marks = [] if at % SAMPLE == 0 else [pytest.mark.slow]
            out.append(pytest.param(arch, name, id=f"{arch}-{name}", marks=marks))
    return out


def uses_tensor_memory(build: emulated.Build) -> bool:
    return "tcgen05" in build.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("arch", "name"), builds())
def test_gives_what_the_reference_says(arch: str, name: str) -> None:
    build = emulated.build(name, arch)
    if uses_tensor_memory(build):
        with pytest.raises(UnsupportedError, match="compile for sm_90") as caught:
            emulated.emulator(build.path)
        assert caught.value.instr.opcode == "tcgen05"
        return
    runs = [emulated.hold(build, sizes) for sizes in build.reference.sizes(build.constants)[:3]]
    assert not any(run.faults or run.stray for run in runs), [run.faults for run in runs]
    is_right = all(miss.worst <= 1 for run in runs for miss in run.misses.values())
    assert is_right != ("_buggy" in name), [run.misses for run in runs]


@pytest.mark.parametrize("arch", ARCHS)
def test_how_many_run(arch: str) -> None:
    found = [emulated.build(name, arch) for name in emulated.names(arch)]
    assert sum(not uses_tensor_memory(build) for build in found) == RUN[arch]
