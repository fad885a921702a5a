"""Kernels compiled again from sources with other names and lines are not called changed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "rebuilds"
MACHINE = "machine code"
SOURCE = '''"""Some text."""


@triton.jit
def helper(x, scale):
    """What it
    does."""
    return x * scale


@triton.jit
def kernel(out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = helper(at, scale=n)
    tl.store(out + at, value, mask=at < n)
'''


@pytest.fixture
def rewriting(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    import rewriting

    return rewriting


def test_all_names_and_lines_are_others_and_the_rest_is_the_same(rewriting: ModuleType) -> None:
    found = rewriting.rewritten(SOURCE, Random(1))
    assert found.text == rewriting.rewritten(SOURCE, Random(1)).text
    assert found.text != rewriting.rewritten(SOURCE, Random(2)).text
    names = {n.id for n in ast.walk(ast.parse(found.text)) if isinstance(n, ast.Name)}
    assert names.isdisjoint({"helper", "kernel", "x", "scale", "out", "n", "BLOCK", "at", "value"})
    assert {"tl", "triton"} <= names
    # With the old names and in one layout it is the source that it was.
    back = found.text
    pairs = list(found.functions.items())
    pairs += [pair for each in found.arguments.values() for pair in each.items()]
    tree = ast.parse(SOURCE)
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    others = [n.id for n in ast.walk(ast.parse(back)) if isinstance(n, ast.Name)]
    pairs += zip(stored, others, strict=True)
    for old, new in pairs:
        back = back.replace(new, old)
    assert ast.dump(ast.parse(back)) == ast.dump(tree)
    lines = found.text.splitlines()
    assert any(line.strip() == "# moved" for line in lines)
    assert len(lines) > len(SOURCE.splitlines())


def rebuilt(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_rebuild_is_renamed_only() -> None:
    (line,) = rebuilt("--arch", "sm_90", "--only", "softmax")
    assert line in [f"1 sm_90: PTX renamed, {MACHINE} {kind}" for kind in ("identical", "renamed")]


@pytest.mark.slow
def test_ten_rebuilds_are_renamed_only() -> None:
    names = ("softmax", "matmul_dot_fp16", "cumsum", "rmsnorm_eps_fp64")
    for line in rebuilt("--arch", "sm_80", "sm_90", "--rounds", "10", "--only", *names):
        words = line.split(": ")[1]
        assert words in [f"PTX renamed, {MACHINE} {kind}" for kind in ("identical", "renamed")]


@pytest.mark.slow
def test_no_fixture_kernel_is_called_changed() -> None:
    for line in rebuilt("--arch", "sm_80", "sm_90", "sm_100"):
        assert "constants" not in line
        assert "structural" not in line
