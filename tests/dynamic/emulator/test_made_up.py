"""Findings that made-up contents of tensors may be behind: these are named, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.diagnostics import Finding
from ptxlint.dynamic.emulator.inputs import GivenInputs, Inputs, RandomInputs, ZeroInputs
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.dynamic.emulator.session import emulate
from ptxlint.frontends.launch_file import read_launch_file

START = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global x, .param .u64 .ptr .global index,
                  .param .u64 .ptr .global out)
.reqntid 32
{
  .shared .align 4 .b8 tile[128];
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [index];
  ld.param.u64 %rd2, [out];
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, tile;
  add.u32 %r2, %r2, %r1;
  cvt.u64.u32 %rd3, %r1;
  add.u64 %rd4, %rd0, %rd3;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd3;
"""
READ = "mad.wide.u32 %rd7, %r5, 4, %rd0; ld.global.b32 %r6, [%rd7]; st.global.b32 [%rd6], %r6;"
CASES: dict[str, tuple[str, str, str, str]] = {
    "an index": (
        "ld.global.u32 %r5, [%rd5];" + READ, "EMU901", "index", "random between 1,000 and 2,000",
    ),
    "through shared memory": (
        "ld.global.u32 %r5, [%rd5]; st.shared.u32 [%r2], %r5; bar.sync 0; ld.shared.u32 %r5, [%r2];"
        + READ, "EMU901", "index", "random between 1,000 and 2,000",
    ),
    "copied to shared memory": (
        "cp.async.ca.shared.global [%r2], [%rd5], 4; cp.async.commit_group;"
        "cp.async.wait_group 0; bar.sync 0; ld.shared.u32 %r5, [%r2];"
        + READ, "EMU901", "index", "random between 1,000 and 2,000",
    ),
    "a guard": (
        "ld.global.u32 %r5, [%rd5]; setp.gt.u32 %p1, %r5, 9; @%p1 st.global.b32 [%rd6+4096], %r0;",
        "EMU901", "index", "random between 1,000 and 2,000",
    ),
    "a way": (
        "ld.global.u32 %r5, [%rd5]; setp.lt.u32 %p1, %r5, 9; @%p1 bra $end; trap; $end:",
        "EMU908", "index", "random between 1,000 and 2,000",
    ),
    "how often": (
        "ld.global.u32 %r5, [%rd1]; $next: add.u64 %rd6, %rd6, 128; sub.u32 %r5, %r5, 1;"
        "setp.ne.u32 %p1, %r5, 0; @%p1 bra $next; st.global.b32 [%rd6], %r0;",
        "EMU901", "index", "random between 1,000 and 2,000",
    ),
    "one place for all": (
        "ld.global.u32 %r5, [%rd5]; and.b32 %r5, %r5, 8; mad.wide.u32 %rd7, %r5, 4, %rd2;"
        "st.global.b32 [%rd7], %r0;", "EMU905", "index", "random between 1,000 and 2,000",
    ),
    "numbers": (
        "ld.global.b32 %r5, [%rd4]; mov.b32 %r6, 0f7F000000; mul.f32 %r6, %r6, %r5;"
        "mul.f32 %r6, %r6, %r6; st.global.b32 [%rd6], %r6;", "EMU915", "x", "random",
    ),
}  # fmt: skip
"""What a kernel does, what is found, and the tensor that decides with what it holds."""
SURE: dict[str, tuple[str, str]] = {
    "no number decides": ("ld.global.b32 %r5, [%rd5+4096]; st.global.b32 [%rd6], %r5;", "EMU901"),
    "only what is written is read": (
        "ld.global.b32 %r5, [%rd5]; st.global.b32 [%rd6+4096], %r5;", "EMU901",
    ),
    "floating-point numbers pass through shared memory": (
        "ld.global.b32 %r5, [%rd4]; st.shared.b32 [%r2], %r5; bar.sync 0; mov.u32 %r7, 4096;"
        "st.shared.u32 [%r2], %r7; bar.sync 0; ld.shared.u32 %r5, [%r2];" + READ, "EMU901",
    ),
    "a masked load is stored": (
        "setp.lt.u32 %p1, %r0, 9; @%p1 ld.global.b32 %r5, [%rd5]; st.global.b32 [%rd6], %r5;",
        "EMU912",
    ),
    "a masked load decides on a way": (
        "setp.lt.u32 %p1, %r0, 9; @%p1 ld.global.b32 %r5, [%rd5]; setp.gt.u32 %p2, %r5, 9;"
        "@%p2 bra $end; st.global.b32 [%rd6], %r0; $end:", "EMU912",
    ),
}  # fmt: skip
"""What a kernel does, and what is found and not due to any contents."""


def run(tmp_path: Path, body: str, inputs: Inputs, **changes: Any) -> list[Finding]:
    """What is found in a kernel of 32 threads, watched for all, with 32 numbers of each tensor."""
    arguments: dict[str, Any] = {
        "x": "float32[32]",
        "index": {"kind": "tensor", "dtype": "int32", "shape": [32], "values": [1000, 2000]},
        "out": "int32[32]",
    }
    kernel, file = tmp_path / "k.ptx", tmp_path / "launch.json"
    kernel.write_text(f"{START}{body}\n  ret;\n}}\n")
    file.write_text(json.dumps({"launches": [{"grid": 1, "arguments": arguments | changes}]}))
    found = emulate(
        [str(kernel)],
        launches=read_launch_file(str(file)),
        inputs=inputs,
        sanitize=chosen("all"),
    )
    assert not found.left_out
    return found.report.findings


def doubts(finding: Finding) -> list[str]:
    """What is said of made-up contents."""
    return [related.message for related in finding.related if "made-up" in related.message]


@pytest.mark.parametrize("case", CASES)
def test_the_tensor_that_decides_is_named(tmp_path: Path, case: str) -> None:
    body, rule, name, how = CASES[case]
    told = [f for f in run(tmp_path, body, RandomInputs()) if f.rule == rule]
    assert told
    for finding in told:
        assert finding.confidence == "low"
        assert finding.severity in ("error", "warning")
        (doubt,) = doubts(finding)
        assert f"`{name}` holds made-up contents ({how})" in doubt


@pytest.mark.parametrize("case", SURE)
def test_what_no_contents_decide_on_stands(tmp_path: Path, case: str) -> None:
    body, rule = SURE[case]
    told = [f for f in run(tmp_path, body, RandomInputs()) if f.rule == rule]
    assert told
    for finding in told:
        assert finding.confidence == "high"
        assert not doubts(finding)


def test_contents_that_are_given_or_told_are_not_doubted(tmp_path: Path) -> None:
    body = CASES["an index"][0]
    given = GivenInputs({"index": np.full(32, 1000, dtype=np.int32)}, RandomInputs(), "in.npz")
    for inputs, changes in (
        (given, {}),
        (
            RandomInputs(),
            {"index": {"kind": "tensor", "dtype": "int32", "shape": [32], "contents": [1000] * 32}},
        ),
    ):
        (finding,) = run(tmp_path, body, inputs, **changes)
        assert (finding.rule, finding.confidence, doubts(finding)) == ("EMU901", "high", [])


def test_zeros_are_made_up_too(tmp_path: Path) -> None:
    body = CASES["one place for all"][0]
    for inputs, changes in ((ZeroInputs(), {}), (RandomInputs(), {"index": "int32[32]"})):
        (finding,) = run(tmp_path, body, inputs, **changes)
        assert "(zeros)" in doubts(finding)[0]
