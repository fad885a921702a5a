"""RES101: the estimate, the note and the warning, the warning held against a real ptxas."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import ptxlint
from ptxlint.diagnostics import Finding
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input
from ptxlint.source import SourceText

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


def fours(values: int, text: str) -> list[str]:
    return [
        text.format(at=4 * k, v=f"{{%f{k}, %f{k + 1}, %f{k + 2}, %f{k + 3}}}")
        for k in range(0, values, 4)
    ]


def module(lines: list[str], values: int, directive: str, target: str = "sm_80") -> str:
    """A kernel over a pointer and a count, with so many f32 registers."""
    head = f"""
        .version 8.0
        .target {target}
        .address_size 64
        .visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n)
        {directive}
        {{
        .reg .pred %p<2>;
        .reg .b32 %r<6>;
        .reg .f32 %f<{values}>;
        .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [x];
        """
    return head + "\n".join([*lines, "ret;", "}"]) + "\n"


def products(
    values: int,
    directive: str,
    count: str = "ld.param.u32 %r0, [n];",
    *,
    fresh: bool = True,
    by_lane: bool = True,
) -> str:
    """Accumulators carried round a loop of matrix products, of fresh operands or of the same.

    With `by_lane` each lane reads from an address of its own.
    """
    load = [
        "ld.global.v2.b32 {%r1, %r2}, [%rd1];",
        "ld.global.b32 %r3, [%rd1+8];",
        "add.s64 %rd1, %rd1, 16;",
    ]
    address = ["mov.u32 %r5, %tid.x;", "mad.wide.u32 %rd1, %r5, 4096, %rd1;"]
    lines = [
        *(address if by_lane else []),
        *fours(values, "ld.global.v4.f32 {v}, [%rd1+{at}];"),
        count,
        *(["again:", *load] if fresh else [*load, "again:"]),
        *fours(values, MMA + " {v}, {{%r1, %r2}}, {{%r3}}, {v};"),
        "sub.u32 %r0, %r0, 1;",
        "setp.ne.u32 %p1, %r0, 0;",
        "@%p1 bra again;",
        *fours(values, "st.global.v4.f32 [%rd1+{at}], {v};"),
    ]
    return module(lines, values, directive)


def counters(values: int, directive: str) -> str:
    """Integers that only count: each can be had from the first at any time."""
    lines = ["ld.param.u32 %r0, [n];"]
    lines += [f"mov.u32 %c{i}, {i};" for i in range(values)]
    lines.append("again:")
    lines += [f"st.global.u32 [%rd1+{4 * i}], %c{i};" for i in range(values)]
    lines += [f"add.u32 %d{i}, %c{i}, 1;" for i in range(values)]
    lines += [f"mov.u32 %c{i}, %d{i};" for i in range(values)]
    lines += ["sub.u32 %r0, %r0, 1;", "setp.ne.u32 %p1, %r0, 0;", "@%p1 bra again;"]
    declared = f".reg .b32 %c<{values}>;\n.reg .b32 %d<{values}>;"
    return module([declared, *lines], 1, directive)


def straight(values: int, directive: str, target: str = "sm_80") -> str:
    """All values live at once at a barrier."""
    lines = [
        *fours(values, "ld.global.v4.f32 {v}, [%rd1+{at}];"),
        "bar.sync 0;",
        *fours(values, "st.global.v4.f32 [%rd1+{at}], {v};"),
    ]
    return module(lines, values, directive, target)


def res101(text: str, metadata: KernelMetadata | None = None) -> list[Finding]:
    report = run([Input("k.ptx", text, metadata)], Options(select=("RES101",)))
    assert report.exit_code != 2, report.findings
    return list(report.findings)


def severities(text: str) -> list[str]:
    return [f.severity for f in res101(text)]


@pytest.mark.parametrize(
    ("values", "directive", "expected"),
    [
        (36, ".maxnreg 32", ["warning"]),
        (32, ".maxnreg 32", []),
        (160, "", []),
        (260, "", ["warning"]),
        (260, ".maxntid 128", ["warning"]),
        (132, ".maxntid 512", ["warning"]),
        (120, ".maxntid 512", []),
        (132, ".maxntid 128\n.minnctapersm 4", ["warning"]),
    ],
)
def test_a_loop_that_carries_more_than_a_thread_has(
    values: int, directive: str, expected: list[str]
) -> None:
    assert [s for s in severities(products(values, directive)) if s != "note"] == expected


def test_a_fixed_number_of_rounds_may_be_unrolled_and_reordered() -> None:
    assert "warning" not in severities(products(36, ".maxnreg 32", "mov.u32 %r0, 8;"))


def test_what_can_be_computed_again_is_not_carried() -> None:
    assert "warning" not in severities(counters(48, ".maxnreg 32"))


def spilled(text: str, program: Path, scratch: Path) -> int:
    """Bytes of spill stores that ptxas reports."""
    source = scratch / "k.ptx"
    source.write_text(text)
    target = re.search(r"\.target (\w+)", text)
    assert target is not None
    done = subprocess.run(
        [str(program), "-v", f"-arch={target[1]}", "-o", str(scratch / "k.cubin"), str(source)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"(\d+) bytes spill stores", done.stderr)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        (products(36, ".maxnreg 32"), True),
        (products(132, ".maxntid 512"), True),
        (products(36, ".maxnreg 32", fresh=False), True),
        (products(36, ".maxnreg 32", fresh=False, by_lane=False), False),
        (products(36, ".maxnreg 32", "mov.u32 %r0, 100;", fresh=False), False),
        (counters(48, ".maxnreg 32"), False),
    ],
    ids=[
        "products",
        "of 512 threads",
        "of the same operands",
        "the same in all lanes",
        "fixed count",
        "counters",
    ],
)
def test_the_assembler_agrees_on_what_must_spill(
    text: str, is_certain: bool, tmp_path: Path
) -> None:
    triton = pytest.importorskip("triton", reason="needs the ptxas that Triton ships")
    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    assert ("warning" in severities(text)) is is_certain
    assert (spilled(text, program, tmp_path) > 0) is is_certain


def test_the_note_counts_ctas_and_names_the_next_step() -> None:
    (finding,) = res101(straight(72, ".reqntid 640"))
    assert finding.severity == "note"
    assert not finding.exact
    assert finding.message == (
        "about 74 live registers (an estimate): even with 51 no more than 1 CTA of 640 threads "
        "fits an SM of sm_80, 31 % of its warps"
    )
    assert finding.help.startswith("48 registers or fewer let 2 CTAs in")


def test_registers_from_the_assembler_are_exact() -> None:
    known = KernelMetadata(registers=56)
    (finding,) = res101(straight(72, ".reqntid 640"), known)
    assert finding.exact
    assert finding.message.startswith("56 registers a thread (Triton's metadata): no more than 1")
    assert res101(straight(72, ".reqntid 640"), KernelMetadata(registers=48)) == []


def test_shared_memory_that_limits_more_makes_registers_no_matter() -> None:
    assert res101(straight(72, ".reqntid 640"), KernelMetadata(shared=150_000)) == []


def test_threads_that_nobody_knows_give_no_occupancy() -> None:
    assert res101(straight(72, "")) == []


def test_an_architecture_without_limits_gives_nothing() -> None:
    assert res101(straight(400, "", "sm_52")) == []


def test_a_peak_far_over_the_limit_is_a_note_without_a_loop() -> None:
    (finding,) = res101(straight(400, ""))
    assert finding.severity == "note"
    assert "far more than the 255" in finding.message


def test_the_python_lines_with_most_registers_are_named() -> None:
    path = FIXTURES / "sm_80" / "flash_fwd.ptx"
    (finding,) = ptxlint.check(path, select="RES101").findings
    assert len(finding.related) == 3
    sources = [related.place.source for related in finding.related]
    assert all(source is not None and source.path.endswith(".py") for source in sources)
    counts = [int(related.message.split()[0]) for related in finding.related]
    assert counts == sorted(counts, reverse=True)
    peak = re.search(r"about (\d+) live", finding.message)
    assert peak is not None
    assert 0 < sum(counts) <= int(peak[1])


def test_the_estimate_is_the_number_of_live_words() -> None:
    text = module(
        [
            ".reg .b64 %q<3>;",
            ".reg .b16 %h<3>;",
            "ld.global.v2.b64 {%q1, %q2}, [%rd1];",
            "ld.global.v2.b16 {%h1, %h2}, [%rd1+16];",
            *fours(392, "ld.global.v4.f32 {v}, [%rd1+{at}];"),
            "st.global.v2.b64 [%rd1], {%q1, %q2};",
            "st.global.v2.b16 [%rd1+16], {%h1, %h2};",
            *fours(392, "st.global.v4.f32 [%rd1+{at}], {v};"),
        ],
        392,
        "",
    )
    (finding,) = res101(text)
    # Two 64-bit values, the pointer, two halves in a register each, and 392 words.
    assert "about 400 live registers" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.ptx")), ids=lambda p: p.stem)
def test_no_fixture_is_sure_to_spill(path: Path) -> None:
    findings = ptxlint.check(SourceText(path.read_text(), str(path)), select="RES101").findings
    assert [f for f in findings if f.severity != "note"] == []
