"""The README's examples do what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptxlint
from ptxlint.config import FORMATS, load_config
from ptxlint.engine.registry import default_registry
from ptxlint.engine.selection import enabled_rules

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, mark: str, page: str = README) -> str:
    """The one block of code of a language that contains a mark."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (code,) = [code for code in found if mark in code]
    return str(code)


def test_the_findings_are_printed_as_a_whole() -> None:
    """tests/docs/test_pages.py compares them with what the commands print now."""
    shown = block("console", "$ ptxlint check fixtures/ptx/sm_90/softmax_buggy.ptx\n")
    assert "fixtures/kernels/softmax_buggy.py:15:9: error[MSK201]" in shown
    assert re.search(r"^   15 \|     x = tl\.load\(.*other=0\.0\)", shown, re.M)
    assert re.search(r"1 error.* in 1 kernel of 1 file", shown)
    shown = block("console", "$ ptxlint check fixtures/ptx/sm_90/rmsnorm_eps_fp64.ptx\n")
    assert "fixtures/kernels/rmsnorm.py:18:21: warning[NUM407]" in shown
    assert re.search(r"^   18 \|     y = x / tl\.sqrt\(mean_square \+ eps\) \* w$", shown, re.M)
    assert re.search(r"1 warning.* in 1 kernel of 1 file", shown)


def test_the_python_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("python", "import ptxlint")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("fixtures/kernels/rmsnorm.py:18: ")


def test_the_example_of_the_emulator_runs() -> None:
    page = (ROOT / "docs" / "emulator.md").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", block("python", "import emulate", page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *rows = done.stdout.splitlines()
    assert first == "[1. 1. 1. 1. 1. 1. 1. 1.] True"
    assert any(row.startswith("20 ") and f" {8 * 781 * 4} " in row for row in rows)
    assert not any("EMU" in row for row in rows)


def test_the_settings_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(block("toml", "[tool.ptxlint]"), encoding="utf-8")
    config = load_config(str(file))
    assert config.per_path_ignores == (("kernels/legacy/*", ("NUM407",)),)
    enabled = enabled_rules(default_registry(), config.select, config.ignore)
    assert "NUM407" in enabled
    assert not [rule for rule in enabled if rule.startswith("RES1")]


def test_the_suppression_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the comment of the README put on the line of the finding, nothing is left."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "fixtures" / "kernels"
    folder.mkdir(parents=True)
    source = (ROOT / "fixtures" / "kernels" / "rmsnorm.py").read_text(encoding="utf-8")
    comment = block("python", "ptxlint: ignore").partition("  #")[2].strip()
    lines = source.splitlines(keepends=True)
    for with_comment in (False, True):
        if with_comment:
            lines[17] = f"{lines[17].rstrip()}  # {comment}\n"
        (folder / "rmsnorm.py").write_text("".join(lines), encoding="utf-8")
        ptx = ROOT / "fixtures" / "ptx" / "sm_90" / "rmsnorm_eps_fp64.ptx"
        text = ptx.read_text(encoding="utf-8")
        (tmp_path / "kernel.ptx").write_text(text, encoding="utf-8")
        report = ptxlint.check(tmp_path / "kernel.ptx", select="NUM407")
        assert report.summary.warnings == (0 if with_comment else 1)
        assert report.summary.suppressed == (1 if with_comment else 0)


def test_every_format_is_named() -> None:
    assert [name for name in FORMATS if f"`{name}`" not in README.replace("--format ", "")] == []
