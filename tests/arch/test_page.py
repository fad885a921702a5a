"""The page docs/arch.md and the cost of importing the package."""

import subprocess
import sys
from pathlib import Path

from ptxlint.arch import ARCHS

ROOT = Path(__file__).parents[2]


def _printed() -> str:
    command = [sys.executable, "-m", "ptxlint.arch"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_page_is_what_the_data_prints() -> None:
    printed = _printed()
    assert (ROOT / "docs" / "arch.md").read_text() == printed
    for name, arch in ARCHS.items():
        row = f"| {name} | {arch.warps_per_sm} | {arch.threads_per_sm} | {arch.ctas_per_sm} |"
        assert row in printed


def test_import_brings_nothing_heavy() -> None:
    code = (
        "import sys, typing; before = set(sys.modules); import ptxlint.arch; "
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('ptxlint')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not set(done.stdout.split()) & {"re", "json", "dataclasses", "enum", "inspect", "numpy"}
