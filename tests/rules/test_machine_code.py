"""Rules on machine code, held to what ptxas makes of the fixtures and to what it says of that."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from ptxlint import check
from ptxlint.diagnostics import Finding
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.cubin import read_cubin
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.toolkit import (
    Assembled,
    ToolError,
    assemble,
    disassemble,
    find_assembler,
    find_tool,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@cache
def _assembled(path: str) -> Assembled:
    text = (FIXTURES / path).read_text()
    try:
        find_tool("nvdisasm")
        module = parse(text)
        return assemble(text, module.arch, find_assembler(module.version), path)
    except ToolError as error:
        pytest.skip(str(error))


def found(path: str, rule: str = "") -> list[Finding]:
    item = Input("k.cubin", cubin=_assembled(path).cubin)
    options = Options(select=(rule,)) if rule else Options()
    return [f for f in run([item], options).findings if not rule or f.rule == rule]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_spills_are_those_of_the_log_with_their_lines(arch: str) -> None:
    path = f"ptx/{arch}/flash_fwd_spill.ptx"
    (finding,) = found(path, "RES106")
    numbers = re.search(r"([\d,]+) bytes stored, ([\d,]+) bytes loaded", finding.message)
    assert numbers is not None
    stored, loaded = (int(n.replace(",", "")) for n in numbers.groups())
    (logged,) = _assembled(path).resources.values()
    assert logged.spill_stores is not None
    assert logged.spill_loads is not None
    assert (stored, loaded) == (logged.spill_stores.value, logged.spill_loads.value)
    assert finding.severity == "warning"
    assert finding.message.startswith("registers spill")
    source = finding.place.source
    assert source is not None
    assert source.path.endswith("flash_attention_dot.py")
    lines = {source.line, *(r.place.source.line for r in finding.related if r.place.source)}
    assert len(lines) == 5


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_stray_f64_is_seen_in_machine_code(arch: str) -> None:
    (finding,) = found(f"ptx/{arch}/rmsnorm_eps_fp64.ptx", "PRF701")
    assert finding.place.source is not None
    assert finding.place.source.line == 18


@pytest.mark.parametrize(
    "name", ["softmax", "matmul_dot_fp16", "grid_stride_sincos", "layer_norm_fwd", "cumsum"]
)
def test_right_kernels_are_silent(name: str) -> None:
    assert found(f"ptx/sm_90/{name}.ptx") == []


def test_an_array_that_is_indexed_is_told_from_spills() -> None:
    findings = found("ptx-nvcc/sm_90/local_arrays.ptx")
    assert "RES107" in {f.rule for f in findings}
    assert not any("spill to" in f.message for f in findings)


def test_f64_in_memory_is_meant() -> None:
    # The file has a kernel whose f64 is stray, and two with f64 in memory.
    kernels = {f.kernel for f in found("ptx-nvcc/sm_90/doubles.ptx", "PRF701")}
    assert kernels == {"stray_double"}


def test_products_are_looked_for_in_the_ptx_beside(tmp_path: Path) -> None:
    text = (FIXTURES / "ptx/sm_90/matmul_dot_fp16.ptx").read_text()
    (tmp_path / "k.ptx").write_text(text)
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(_assembled("ptx/sm_90/matmul_dot_fp16.ptx").cubin)
    assert not check(cubin, select="PRF702").findings
    name = parse(text).kernels()[0].name
    listing = tmp_path / "k.sass"
    listing.write_text(
        f'\t.target\tsm_90\n\t.section\t.text.{name},"ax",@progbits\n'
        f'\t.other\t{name},@"STO_CUDA_ENTRY"\n.text.{name}:\n'
        '\t//## File "a.py", line 7\n        /*0000*/   EXIT ;\n'
    )
    (finding,) = check(listing, select="PRF702").findings
    assert re.search(r"PTX has \d+ matrix product", finding.message)
    (tmp_path / "k.ptx").write_text(text.replace(name, "other"))
    assert not check(listing, select="PRF702").findings


def test_what_a_kernel_takes_of_an_sm_is_said_of_its_cubin() -> None:
    metadata = KernelMetadata(num_warps=4, shared=33_280)
    cubin = _assembled("ptx/sm_80/flash_bwd_dkdv.ptx").cubin
    (kernel,) = read_cubin(cubin).kernels.values()
    assert kernel.registers is not None
    assert kernel.threads == 128
    select = ("RES101", "RES104", "RES105")
    report = run([Input("k.cubin", cubin=cubin, metadata=metadata)], Options(select=select))
    assert [(f.rule, f.message, f.exact) for f in report.findings] == [
        (
            "RES101",
            f"{kernel.registers.value} registers a thread (cubin k.cubin): no more than 2 CTAs of "
            "128 threads fit an SM of sm_80, 12 % of its warps",
            True,
        )
    ]
    (verdict,) = [o for o in report.obligations if o.rule == "RES104"]
    assert (verdict.status, verdict.reason) == (
        "proved",
        "32.5 KiB of shared memory fit the 163 KiB that sm_80 has (32.5 KiB dynamic: Triton's "
        "metadata)",
    )


def test_another_cta_that_would_nearly_fit_is_said_of_a_cubin() -> None:
    (finding,) = found("ptx/sm_90/layer_norm_bwd.ptx", "RES105")
    assert finding.message == (
        "7 CTAs of 128 threads fit an SM of sm_90, 44 % of its warps: 67 registers a thread admit "
        "no more (cubin k.cubin)"
    )
    assert finding.place.source is not None


def test_a_listing_that_names_no_registers_is_no_ground_for_estimates() -> None:
    cubin = _assembled("ptx/sm_80/flash_bwd_dkdv.ptx").cubin
    lines = [f for f in disassemble(cubin, "-c").splitlines() if "SHI_REGISTERS" not in f]
    item = Input("k.sass", "\n".join(lines), KernelMetadata(num_warps=4, shared=33_280))
    report = run([item], Options(select=("RES101", "RES104", "RES105")))
    assert not [f for f in report.findings if f.rule.startswith("RES")]
    assert not [o for o in report.obligations if o.rule]
