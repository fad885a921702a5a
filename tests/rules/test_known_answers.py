"""What the rules say about nvcc's and LLVM's PTX of sources with known faults."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import ptxlint
from ptxlint.diagnostics import Finding
from ptxlint.engine.report import Report

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NVCC = sorted((FIXTURES / "ptx-nvcc").rglob("*.ptx"))
LLVM = sorted((FIXTURES / "ptx-llvm").rglob("*.ptx"))
ARCHS = ("sm_75", "sm_90")
FAULTS = {
    ("barriers", "divergent_barrier"): {("SYN501", "warning")},
    ("barriers_debug", "divergent_barrier"): {("SYN501", "warning")},
    ("warp", "divergent_shuffle"): {("SYN502", "warning")},
    ("doubles", "stray_double"): {("NUM407", "warning")},
}
"""By file and kernel, the errors and warnings; every other kernel has none."""


@cache
def report(path: Path) -> Report:
    return ptxlint.check(path)


def of(path: Path, kernel: str) -> list[Finding]:
    return [f for f in report(path).findings if f.kernel == kernel]


def status(path: Path, kernel: str, rule: str) -> set[str]:
    """The verdicts of a rule on a kernel."""
    found = report(path).obligations
    return {o.status for o in found if (o.kernel, o.rule) == (kernel, rule)}


def nvcc(arch: str, name: str) -> Path:
    return FIXTURES / "ptx-nvcc" / arch / f"{name}.ptx"


@pytest.mark.parametrize("path", NVCC + LLVM, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_errors_and_warnings_are_just_the_known_ones(path: Path) -> None:
    kernels = {k.name for k in report(path).kernels}
    assert kernels
    for kernel in kernels:
        loud = {(f.rule, f.severity) for f in of(path, kernel) if f.severity != "note"}
        assert loud == FAULTS.get((path.stem, kernel), set()), kernel


@pytest.mark.parametrize("arch", ARCHS)
def test_a_barrier_behind_each_threads_own_data(arch: str) -> None:
    (finding,) = of(nvcc(arch, "barriers"), "divergent_barrier")
    assert finding.place.source is not None
    assert finding.place.source.path.endswith("barriers.cu")
    assert [r.message for r in finding.related] == [
        "threads part here",
        "each thread reads a value of its own",
    ]
    assert status(nvcc(arch, "barriers"), "divergent_barrier", "SYN501") == {"open"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["barriers", "barriers_debug"])
def test_an_early_return_before_a_barrier_is_a_note(arch: str, name: str) -> None:
    (finding,) = [f for f in of(nvcc(arch, name), "early_exit_barrier") if f.rule == "SYN501"]
    assert finding.severity == "note"
    assert "left the kernel" in finding.message
    assert status(nvcc(arch, name), "early_exit_barrier", "SYN501") == {"open"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", ["block_sum", "uniform_barrier", "transpose_tile"])
def test_barriers_that_all_threads_reach_are_proved(arch: str, kernel: str) -> None:
    assert status(nvcc(arch, "barriers"), kernel, "SYN501") == {"proved"}


@pytest.mark.parametrize("arch", ARCHS)
def test_a_shuffle_from_lanes_that_left(arch: str) -> None:
    (finding,) = [f for f in of(nvcc(arch, "warp"), "divergent_shuffle") if f.rule == "SYN502"]
    assert finding.breaks_when == (
        "divergent_shuffle_param_2 = 65 in a CTA of 128 threads: "
        "thread 64 gets what is left of thread 65"
    )
    assert status(nvcc(arch, "warp"), "divergent_shuffle", "SYN502") == {"refuted"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", ["warp_sum", "warp_scan", "masked_shuffle", "votes_and_matches"])
def test_warp_operations_of_whole_warps_are_proved(arch: str, kernel: str) -> None:
    assert status(nvcc(arch, "warp"), kernel, "SYN502") == {"proved"}


@pytest.mark.parametrize("arch", ARCHS)
def test_float_atomics_are_noted_and_integer_ones_not(arch: str) -> None:
    findings = report(nvcc(arch, "atomics")).findings
    noted = {f.kernel for f in findings if f.rule == "NUM408"}
    source = (FIXTURES / "cuda" / "atomics.cu").read_text(encoding="utf-8")
    assert noted
    assert {f.severity for f in findings if f.rule == "NUM408"} == {"note"}
    for kernel in noted:
        body = source.split(f" {kernel}(")[1].split("\n}\n")[0]
        assert "float" in body or "half" in body or "double" in body


@pytest.mark.parametrize("path", NVCC, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_registers_are_always_written(path: Path) -> None:
    assert {o.status for o in report(path).obligations if o.rule == "RES110"} == {"proved"}
