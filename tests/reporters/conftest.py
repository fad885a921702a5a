"""A report made by hand, with a Python file and a PTX file to quote."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.diagnostics import Finding, Place, Related
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.engine.result import KernelSummary
from ptxlint.obligations import Obligation
from ptxlint.source import SourceFrame

PYTHON = [f"# line {number}" for number in range(1, 10)] + [
    "    x = tl.load(ptr + col, mask=col < n, other=0.0)",
    "    m = tl.max(x, axis=0)",
    "    e = tl.exp(x - m)",
    "    y = e / tl.sum(e, axis=0)",
]
PTX = [f"// line {number}" for number in range(1, 67)] + [
    "\t@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];",
    "\tadd.f64 %rd2, %rd2, %rd3;",
]


def frame(line: int, column: int, path: str = "softmax.py") -> SourceFrame:
    """A place in the Python file."""
    return SourceFrame(path, line, column)


LEAK = Finding(
    rule="MSK201",
    name="fill-not-neutral",
    severity="error",
    confidence="high",
    family="tail-mask",
    message="padding lanes hold 0.0 when they reach `max` and `exp → sum`",
    kernel="softmax_kernel",
    arch="sm_90",
    place=Place("softmax.ptx", 67, 2, frame(10, 9), (frame(10, 9),)),
    related=(
        Related(
            "here each padding lane adds exp(0 - max) > 0",
            Place("softmax.ptx", 68, 2, frame(13, 13)),
        ),
    ),
    breaks_when="n is not a multiple of 1024 (n = 1000: 24 lanes leak)",
    help='other=-float("inf")',
    witness={"ctaid": [3, 0, 0], "tid": [97, 0, 0], "values": {"n": 1000}},
    fingerprint="0123456789abcdef",
    archs=("sm_90",),
    paths=("softmax.ptx",),
    label="fill 0.0, guard `col < n`",
)
STRAY = LEAK._replace(
    rule="NUM407",
    name="stray-f64",
    severity="warning",
    family="precision",
    message="1 f64 operation: 100% stray,\nreally",
    place=Place("softmax.ptx", 68, 2),
    related=(),
    breaks_when="",
    help="cast it",
    witness=None,
    fingerprint="fedcba9876543210",
    archs=("sm_80", "sm_90"),
    paths=("softmax.ptx", "old/softmax.ptx"),
    occurrences=(Place("old/softmax.ptx", 68, 2),),
    label="",
)
MISSING = Finding(
    "INPUT", "input", "error", "high", "input", "no such file or directory", "", "",
    Place("gone.ptx", 1, 1), paths=("gone.ptx",), fingerprint="00000000000000aa",
)  # fmt: skip


def make_report(*findings: Finding) -> Report:
    """A report of these findings in one kernel."""
    kernels = [KernelSummary("softmax_kernel", "sm_90", "softmax.ptx", 12, 608, {"b32": 104})]
    verdicts = [
        Obligation("tail-mask", "softmax_kernel", "refuted", "24 lanes leak", "MSK201", "sm_90"),
        Obligation("bounds", "softmax_kernel", "proved", "all offsets below n", archs=("sm_90",)),
        Obligation("overflow", "softmax_kernel", "open", "stride unknown", suggest={"n": [1023]}),
    ]
    summary = Summary(1, 1, *count_severities(findings), 0.03, lines=68)
    return Report(findings, verdicts, kernels, summary)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report whose files lie in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.py").write_text("\n".join(PYTHON) + "\n")
    (tmp_path / "softmax.ptx").write_text("\n".join(PTX) + "\n")
    return make_report(LEAK, STRAY, MISSING)
