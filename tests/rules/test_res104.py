"""RES104: what counts as shared memory, and against which limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.arch import ARCHS
from ptxlint.engine.options import Options
from ptxlint.engine.report import Report
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input

KIB = 1024


def module(declarations: str, body: str, target: str = "sm_80") -> str:
    return f"""
        .version 9.0
        .target {target}
        .address_size 64
        {declarations}
        .visible .entry k(.param .u64 .ptr .global out) {{
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            {body}
            ret;
        }}
        """


def check(text: str, shared: int | None = None) -> Report:
    metadata = None if shared is None else KernelMetadata(shared=shared)
    report = run([Input("k.ptx", text, metadata)], Options(select=("RES104",)))
    assert report.exit_code != 2, report.findings
    return report


def messages(report: Report) -> list[str]:
    return [f"{f.severity}: {f.message}" for f in report.findings]


def statuses(report: Report) -> list[str]:
    return [o.status for o in report.obligations if o.rule == "RES104"]


DYNAMIC = ".extern .shared .align 16 .b8 tile[];"
USE_DYNAMIC = "ld.shared.u32 %r1, [tile]; st.global.u32 [%rd1], %r1;"


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)
def test_the_limit_of_each_architecture_is_exact(arch) -> None:  # type: ignore[no-untyped-def]
    text = module(DYNAMIC, USE_DYNAMIC, arch.name)
    assert messages(check(text, arch.shared_optin_limit)) == []
    (finding,) = check(text, arch.shared_optin_limit + 1).findings
    assert finding.severity == "error"
    assert finding.breaks_when == "every launch"
    fits = {a.name for a in ARCHS.values() if a.shared_optin_limit > arch.shared_optin_limit}
    assert all(name in finding.help for name in fits)
    assert arch.name not in finding.help


def test_static_memory_over_48_kib() -> None:
    text = module(
        ".shared .align 4 .b8 a[40000];\n.shared .align 4 .b8 b[9153];",
        "ld.shared.u32 %r1, [a]; ld.shared.u32 %r2, [b]; st.global.u32 [%rd1], %r1;",
    )
    report = check(text)
    assert messages(report) == [
        "error: 49153 bytes of static shared memory, the limit is 49152 bytes on every "
        "architecture (48 KiB static: counted in the PTX, an estimate)"
    ]
    assert not report.findings[0].exact
    assert report.findings[0].label == "`a` takes 39.1 KiB"
    assert statuses(report) == ["refuted"]


def test_what_a_callee_uses_counts() -> None:
    text = module(
        """
        .shared .align 4 .b8 a[40000];
        .func helper() {
            .reg .b32 %r<2>;
            ld.shared.u32 %r1, [a];
            st.shared.u32 [a+4], %r1;
            ret;
        }
        """,
        ".shared .align 4 .b8 own[20000];\nld.shared.u32 %r1, [own];\n"
        "st.global.u32 [%rd1], %r1;\ncall helper;",
    )
    assert len(check(text).findings) == 1


def test_what_only_others_use_does_not_count() -> None:
    text = module(
        ".shared .align 4 .b8 a[60000];\n.visible .entry other() {\n.reg .b32 %r<2>;\n"
        "ld.shared.u32 %r1, [a];\nst.shared.u32 [a+4], %r1;\nret;\n}",
        "st.global.u32 [%rd1], 1;",
    )
    assert {f.kernel for f in check(text).findings} == {"other"}


def test_dynamic_memory_of_unknown_size_is_left_open() -> None:
    assert statuses(check(module(DYNAMIC, USE_DYNAMIC))) == ["open"]
    assert statuses(check(module(DYNAMIC, USE_DYNAMIC), 1024)) == ["proved"]


def test_without_shared_memory_there_is_nothing_to_say() -> None:
    assert statuses(check(module("", "st.global.u32 [%rd1], 1;"))) == []


def test_a_target_without_limits_is_left_alone() -> None:
    text = module(DYNAMIC, USE_DYNAMIC, "sm_52")
    assert statuses(check(text, 10**6)) == []


TWO = ".shared .align 1 .b8 a[101];\n.shared .align 16 .b8 b[{size}];"
USE_TWO = "ld.shared.u8 %r1, [a]; ld.shared.u32 %r2, [b]; st.global.u32 [%rd1], %r1;"
LOG = """\
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, {shared} bytes smem, 360 bytes cmem[0]
"""


def reasons(report: Report) -> list[tuple[str, str]]:
    return [(o.status, o.reason) for o in report.obligations if o.rule == "RES104"]


def test_padding_that_nobody_knows_is_no_proof() -> None:
    limit = 48 * KIB
    # Behind 101 bytes that need no alignment, 16 may need none to 15 bytes.
    size = limit - 101
    assert reasons(check(module(TWO.format(size=size - 15), USE_TWO)))[0][0] == "proved"
    assert reasons(check(module(TWO.format(size=size), USE_TWO))) == [
        (
            "open",
            "48 KiB of shared memory are counted, and padding between variables may take 15 bytes "
            "more",
        )
    ]


def test_a_callee_that_nobody_knows_is_no_proof() -> None:
    text = module(
        ".shared .align 4 .b8 a[64];\n.func unknown();",
        "ld.shared.u32 %r1, [a]; st.global.u32 [%rd1], %r1;\n{BODY}",
    )
    system = text.replace(".func unknown();", ".func (.param .b32 r) vprintf"
                          "(.param .b64 a, .param .b64 b);")  # fmt: skip
    assert statuses(check(text.replace("{BODY}", ""))) == ["proved"]
    assert statuses(check(text.replace("{BODY}", "call unknown;"))) == ["open"]
    printing = """
        { .param .b32 result;
        .param .b64 first;
        .param .b64 second;
        call (result), vprintf, (first, second); }
    """
    assert statuses(check(system.replace("{BODY}", printing))) == ["proved"]


def test_a_log_beside_the_file_says_how_much_is_static(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(
        module(TWO.replace("align 16", "align 1024").format(size=48128), USE_TWO)
    )
    (tmp_path / "k.log").write_text(LOG.format(shared=49152))
    (tmp_path / "k.json").write_text('{"num_warps": 4, "shared": 2048}')
    report = run([Input(str(tmp_path / "k.ptx"))], Options(select=("RES104",)))
    assert reasons(report) == [
        (
            "proved",
            "50 KiB of shared memory fit the 163 KiB that sm_80 has (48 KiB static: log k.log; "
            "2 KiB dynamic: Triton's metadata)",
        )
    ]
