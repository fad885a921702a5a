"""Right kernels stay silent on every architecture: nothing above a note."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxlint

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
FAULTY = ("_buggy", "_eps_fp64")
"""Endings of the variants with a fault."""
CLEAN = [p for p in sorted(FIXTURES.rglob("*.ptx")) if not p.stem.endswith(FAULTY)]
SAMPLE = {
    "argmax",
    "flash_bwd_dkdv",
    "flash_fwd_spill",
    "grid_stride_sincos",
    "matmul_tma_persistent",
    "moe_gemm",
    "quantise_fp8",
    "ticket_sum",
    "welford",
    "wrapped_matmul",
}
"""The variants with most of what naive rules flag."""


def loud(path: Path) -> list[str]:
    """The errors and warnings in a file."""
    return [
        f"{f.place.line}: {f.severity} {f.rule} {f.message}"
        for f in ptxlint.check(path).findings
        if f.severity != "note"
    ]


def _identifier(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def test_there_are_kernels_of_every_architecture() -> None:
    assert {p.parent.name for p in CLEAN} >= {
        "sm_80",
        "sm_86",
        "sm_89",
        "sm_90",
        "sm_100",
        "sm_120",
    }
    assert {p.stem for p in CLEAN} >= SAMPLE


@pytest.mark.parametrize("path", [p for p in CLEAN if p.stem in SAMPLE], ids=_identifier)
def test_sample_is_silent(path: Path) -> None:
    assert loud(path) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in CLEAN if p.stem not in SAMPLE], ids=_identifier)
def test_all_are_silent(path: Path) -> None:
    assert loud(path) == []
