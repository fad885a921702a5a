"""How much of a kernel fits an SM, when builds are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.comparison.measures import residency, resources_of
from ptxlint.comparison.records import load

PTX = """\
.version 9.0
.target {arch}
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 128
{{
    ret;
}}
"""
LOG = """\
ptxas info    : Compiling entry function 'k' for '{arch}'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used {barriers} barriers
"""


@pytest.mark.parametrize(
    ("arch", "barriers", "ctas", "limiter"),
    [
        ("sm_80", 16, 16, "registers"),
        ("sm_90", 1, 16, "registers"),
        ("sm_90", 16, 4, "barriers"),
        ("sm_120", 5, 4, "barriers"),
    ],
)
def test_barriers_limit_what_fits(
    arch: str, barriers: int, ctas: int, limiter: str, tmp_path: Path
) -> None:
    (tmp_path / "k.ptx").write_text(PTX.format(arch=arch))
    (tmp_path / "k.log").write_text(LOG.format(arch=arch, barriers=barriers))
    (kernel,) = load([str(tmp_path / "k.ptx")]).kernels
    found = residency(kernel, resources_of(kernel, None, []))
    assert found is not None
    assert (found.ctas_per_sm, found.limiter) == (ctas, limiter)
