"""The study of faults in Triton sources: what its operators change, and that it runs.

The operators are tried on one kernel; the whole way, with the interpreter and the compiler, runs
for one kernel with `--run-slow`. The committed page must report no wrong proof.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(o_ptr, x_ptr, v_ptr, stride, n, eps, BLOCK: tl.constexpr):
    m = -float("inf")
    z = 0.0
    acc = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        ok = at < n
        x = tl.load(x_ptr + at * stride, mask=ok, other=-float("inf"))
        v = tl.load(v_ptr + at, mask=ok & (at > 0), other=0.0)
        new = tl.maximum(m, tl.max(x))
        alpha = tl.exp(m - new)
        p = tl.where(ok, tl.exp(x - new), 0.0)
        z = z * alpha + tl.sum(p)
        acc *= alpha
        acc += tl.sum(p * v)
        m = new
    tl.store(o_ptr + tl.arange(0, BLOCK), acc / (z + eps), mask=tl.arange(0, BLOCK) < n)
"""


def operators() -> ModuleType:
    path = BENCHMARKS / "source_operators.py"
    spec = importlib.util.spec_from_file_location("source_operators", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["source_operators"] = module
    spec.loader.exec_module(module)
    return module


def test_every_operator_finds_its_places() -> None:
    found = operators().mutations(KERNEL, "kernel")
    places = {(m.operator, m.line, m.change) for m in found}
    wanted = {
        ("off by one", 12, "`at < n` to `at <= n`"),
        ("drop stride", 13, "`at * stride` to `(at)`"),
        ("change fill", 13, '`-float("inf")` to `0.0`'),
        ("drop conjunct", 14, "`ok & (at > 0)` to `ok`"),
        ("drop conjunct", 14, "`ok & (at > 0)` to `at > 0`"),
        ("change fill", 14, "`0.0` to `1.0`"),
        ("change re-mask", 17, '`0.0` to `-float("inf")`'),
        ("drop re-mask", 17, "`tl.where(ok, tl.exp(x - new), 0.0)` to `(tl.exp(x - new))`"),
        ("overwrite", 18, "`z * alpha + tl.sum(p)` to `tl.sum(p)`"),
        ("drop rescale", 18, "`z * alpha` to `z`"),
        ("drop rescale", 19, "`acc *= alpha` to `pass`"),
        ("overwrite", 20, "`acc += tl.sum(p * v)` to `acc = tl.sum(p * v)`"),
        ("drop eps", 22, "`z + eps` to `(z)`"),
    }
    assert wanted <= places
    assert {m.operator for m in found} == set(operators().OPERATORS)
    assert len(places) == len(found) == len({m.text for m in found})


def test_an_edit_changes_one_place_and_leaves_valid_code() -> None:
    before = KERNEL.split("\n")
    for mutation in operators().mutations(KERNEL, "kernel"):
        compile(mutation.text, "mutant", "exec")
        after = mutation.text.split("\n")
        changed = [number for number, pair in enumerate(zip(before, after, strict=True), 1)
                   if pair[0] != pair[1]]  # fmt: skip
        assert changed == [mutation.line]


def test_what_goes_by_a_replaced_expression() -> None:
    found = operators().mutations(KERNEL, "kernel")
    (stride,) = [m for m in found if m.operator == "drop stride"]
    assert stride.arrays == set()
    (stride,) = [
        m
        for m in operators().mutations(KERNEL.replace("v_ptr + at,", "x_ptr + at,"), "kernel")
        if m.operator == "drop stride"
    ]
    assert stride.arrays == {"x_ptr"}
    bounds = {m.line: (m.guards, m.selects) for m in found if m.operator == "off by one"}
    assert bounds == {12: (True, True), 22: (True, False)}


def test_the_committed_page_reports_no_wrong_proof() -> None:
    text = (BENCHMARKS / "mutants.md").read_text(encoding="utf-8")
    counts = re.search(r"; ([\d,]+) of them change results.* (\d+) proved", text)
    assert counts is not None
    assert int(counts[1].replace(",", "")) >= 200
    assert int(counts[2]) == 0
    share = re.search(r"rescales: \d+ of \d+ found \((\d+) %\)", text)
    assert share is not None
    assert int(share[1]) >= 80


@pytest.mark.slow
def test_the_study_runs() -> None:
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    pytest.importorskip("torch", reason="needs torch: install ptxlint[dev]")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "source_mutants.py"), "--only", "softmax_fill_infinity"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"change fill .* to `0.0`: changed sm_\d+, \d warps refuted", done.stdout)
