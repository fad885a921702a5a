"""RES105: what is said of occupancy, and that RES101 does not say it, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ptxlint
from ptxlint.arch import ARCHS, get, most_barriers, most_registers, most_shared, occupancy
from ptxlint.diagnostics import Finding
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import Node

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
LOG = """\
ptxas info    : Compiling entry function 'k' for '{arch}'
ptxas info    : Function properties for k
    0 bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads
ptxas info    : Used {registers} registers, used {barriers} barriers, {shared} bytes smem
"""


def module(arch: str, directive: str = "", body: str = "st.global.u32 [%rd1], 1;") -> str:
    return f"""
        .version 9.0
        .target {arch}
        .address_size 64
        .extern .shared .align 16 .b8 tile[];
        .visible .entry k(.param .u64 .ptr .global out)
        {directive}
        {{
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            {body}
            ret;
        }}
        """


def found(text: str, launches: tuple[dict[str, object], ...] = (), **known: int) -> list[Finding]:
    given = tuple(read_launch(Node(launch), "") for launch in launches)
    item = Input("k.ptx", text, KernelMetadata(**known) if known else None, given)  # type: ignore[arg-type]
    report = run([item], Options(select=("RES101", "RES105")))
    assert report.exit_code != 2 or known == {}, report.findings
    return list(report.findings)


def said(text: str, **known: int) -> list[tuple[str, str]]:
    return [(f.message, f.help) for f in found(text, **known)]


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)
@pytest.mark.parametrize("ctas", [1, 2, 3, 5, 8, 16])
def test_the_most_that_fit_are_the_most(arch, ctas: int) -> None:  # type: ignore[no-untyped-def]
    shared = most_shared(arch, ctas)
    assert shared is not None
    assert occupancy(arch, 0, 32, shared).limits.shared >= ctas  # type: ignore[operator]
    assert occupancy(arch, 0, 32, shared + 1).limits.shared < ctas  # type: ignore[operator]
    registers = most_registers(arch, 128, ctas)
    assert registers is not None
    assert occupancy(arch, registers, 128, 0).limits.registers >= ctas  # type: ignore[operator]
    assert occupancy(arch, registers + 1, 128, 0).limits.registers < ctas  # type: ignore[operator]
    barriers = most_barriers(arch, ctas)
    if arch.barriers_per_sm is None:
        assert barriers is None
    else:
        assert barriers == arch.barriers_per_sm // ctas


def test_more_shared_memory_than_ever_fits_so_often() -> None:
    # 64 CTAs would have 2,624 bytes each, of which 1,024 are the driver's; 256 would have less.
    assert most_shared(get("sm_80"), 64) == 1536
    assert most_shared(get("sm_80"), 256) is None


def test_shared_memory_just_over_the_step() -> None:
    text = module("sm_90", ".reqntid 128")
    assert said(text, shared=57368, registers=58, barriers=1) == [
        (
            "3 CTAs of 128 threads fit an SM of sm_90, 19 % of its warps: 57,368 bytes of shared "
            "memory a CTA admit no more (Triton's metadata); 58 registers a thread would admit 8 "
            "(Triton's metadata)",
            "57,344 bytes of shared memory or fewer let 4 CTAs in, 24 less",
        )
    ]
    assert said(text, shared=57344, registers=58) == []


@pytest.mark.parametrize(("excess", "speaks"), [(1, True), (1848, True), (1850, False)])
def test_how_near_shared_memory_must_be(excess: int, speaks: bool) -> None:
    # 57,344 + 1,848 is 59,192, of which 1/32 is 1,849.75.
    found_ = said(module("sm_90", ".reqntid 128"), shared=57344 + excess, registers=32)
    assert bool(found_) is speaks


def test_without_an_assembler_shared_memory_is_exact_and_registers_are_an_estimate() -> None:
    (finding,) = found(module("sm_90", ".reqntid 128"), shared=57368)
    assert not finding.exact
    assert finding.message.endswith(
        "admit no more (Triton's metadata); registers would admit 16 or more (an estimate)"
    )


@pytest.mark.parametrize(
    ("registers", "speaks"), [(64, False), (66, True), (69, True), (70, False)]
)
def test_how_near_registers_must_be(registers: int, speaks: bool) -> None:
    text = module("sm_90", ".reqntid 128")
    got = said(text, shared=0, registers=registers)
    assert (
        got
        == [
            (
                f"7 CTAs of 128 threads fit an SM of sm_90, 44 % of its warps: {registers} "
                "registers a thread admit no more (Triton's metadata)",
                f"64 registers or fewer let 8 CTAs in, {registers - 64} less (`maxnreg=64`)",
            )
        ]
        * speaks
    )


def test_wgmma_holds_its_registers() -> None:
    body = "wgmma.fence.sync.aligned;"
    assert said(module("sm_90a", ".reqntid 128", body), shared=0, registers=66) == []


def test_a_limit_that_is_set_is_left_alone() -> None:
    assert said(module("sm_90", ".reqntid 128\n.maxnreg 66"), shared=0, registers=66) == []


def test_a_kernel_that_spills_needs_no_second_word() -> None:
    text = module("sm_90", ".reqntid 128")
    assert said(text, shared=57368, registers=58, spills=8) == []


@pytest.mark.parametrize("registers", range(16, 256, 3))
@pytest.mark.parametrize("shared", [0, 16_000, 40_000])
def test_the_two_rules_never_speak_of_one_kernel(registers: int, shared: int) -> None:
    text = module("sm_80", ".reqntid 128")
    rules = [f.rule for f in found(text, shared=shared, registers=registers)]
    assert len(rules) <= 1
    now = occupancy(get("sm_80"), registers, 128, shared)
    if now.limiters == ("registers",) and now.fraction <= 1 / 3:
        assert rules == ["RES101"]


def test_barriers_that_limit() -> None:
    assert said(module("sm_90", ".reqntid 128"), shared=0, registers=32, barriers=16) == [
        (
            "4 CTAs of 128 threads fit an SM of sm_90, 25 % of its warps: 16 barriers a CTA admit "
            "no more (Triton's metadata); 32 registers a thread would admit 16 (Triton's metadata)",
            "12 barriers or fewer let 5 CTAs in",
        )
    ]
    assert said(module("sm_80", ".reqntid 128"), shared=0, registers=32, barriers=16) == []


def test_two_resources_that_limit_alike() -> None:
    # 16 barriers and 49,264 bytes admit four CTAs each; five take 12 and 45,568.
    text = module("sm_90", ".reqntid 128")
    assert said(text, shared=49264, registers=32, barriers=16) == []
    (message, help_) = said(text, shared=45616, registers=32, barriers=16)[0]
    assert "45,616 bytes of shared memory a CTA admit no more (Triton's metadata) and 16" in message
    assert help_ == (
        "45,568 bytes of shared memory or fewer let 5 CTAs in, 48 less and 12 barriers or fewer "
        "let 5 CTAs in"
    )


def test_places_for_ctas() -> None:
    assert [m for m, _ in said(module("sm_86", ".reqntid 32"), shared=0, registers=32)] == [
        "16 CTAs of 32 threads fit an SM of sm_86, 33 % of its warps: an SM has 16 places for "
        "CTAs, which have 1 warp each; 32 registers a thread would admit 64 (Triton's metadata)"
    ]
    assert said(module("sm_90", ".reqntid 32"), shared=0, registers=32) == []


def launch(block: int, shared: int | None = None) -> dict[str, object]:
    given = {"grid": 4, "block": block, "arguments": {"out": "int32[1]"}}
    return given if shared is None else {**given, "shared": shared}


def test_a_launch_brings_its_block_and_shared_memory() -> None:
    text = module("sm_90")
    assert found(text) == []
    (finding,) = found(text, (launch(128, 57368), launch(128, 57368)))
    assert finding.message.startswith(
        "3 CTAs of 128 threads fit an SM of sm_90, 19 % of its warps: 57,368 bytes of shared "
        "memory a CTA admit no more (the launch)"
    )
    assert finding.launch is not None
    assert (finding.launch["block"], finding.launch["more"]) == ([128, 1, 1], 1)


def test_a_launch_that_has_all_threads_that_are_allowed() -> None:
    text = module("sm_90", ".maxntid 128")
    (finding,) = found(text, (launch(128, 57368),), shared=57368, registers=32)
    assert finding.launch is not None
    assert finding.message.startswith("3 CTAs of 128 threads fit")
    (finding,) = found(text, (launch(64, 57368),), shared=57368, registers=32)
    assert finding.message.startswith("3 CTAs of 64 threads fit")


def test_a_launch_as_compiled_says_nothing_new() -> None:
    text = module("sm_90", ".reqntid 128")
    (finding,) = found(text, (launch(128, 57368),), shared=57368, registers=32)
    assert finding.launch is None


def test_a_block_for_which_registers_do_not_last() -> None:
    text = module("sm_80")
    (finding,) = found(text, (launch(1024, 0),), registers=80, num_warps=4)
    assert finding.rule == "RES105"
    assert finding.severity == "error"
    assert finding.message == (
        "no CTA of 1024 threads fits an SM of sm_80: 80 registers a thread (Triton's metadata) "
        "allow 768 threads: the launch fails"
    )
    assert finding.help.endswith("(`.maxntid 1024`, or `.maxnreg 64`)")
    assert found(text, (launch(768, 0),), registers=80, num_warps=4) == []


def test_a_log_beside_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(module("sm_120", ".reqntid 128"))
    log = LOG.format(arch="sm_120", registers=40, barriers=5, shared=1024, spilled=0)
    (tmp_path / "k.ptxas").write_text(log)
    (tmp_path / "k.json").write_text('{"num_warps": 4, "shared": 32}')
    (finding,) = ptxlint.check(tmp_path / "k.ptx", select="RES105").findings
    assert finding.exact
    assert finding.message == (
        "4 CTAs of 128 threads fit an SM of sm_120, 33 % of its warps: 5 barriers a CTA admit no "
        "more (log k.ptxas); 40 registers a thread would admit 12 (log k.ptxas)"
    )


def test_a_real_kernel_and_a_real_assembler(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs the ptxas that Triton ships")
    for suffix in (".ptx", ".json"):
        shutil.copy(FIXTURES / "sm_90" / f"layer_norm_bwd{suffix}", tmp_path / f"k{suffix}")
    assert ptxlint.check(tmp_path / "k.ptx", select="RES105").findings == ()
    (finding,) = ptxlint.check(tmp_path / "k.ptx", select="RES105", exact=True).findings
    assert finding.message.startswith(
        "7 CTAs of 128 threads fit an SM of sm_90, 44 % of its warps: 67 registers a thread admit "
        "no more (ptxas "
    )
    assert finding.help == "64 registers or fewer let 8 CTAs in, 3 less (`maxnreg=64`)"
