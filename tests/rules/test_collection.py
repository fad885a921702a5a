"""A rule that does not load cannot be hidden by `-k`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_rule_that_does_not_load_fails_the_collection(tmp_path: Path) -> None:
    (tmp_path / "house_rules.py").write_text("raise ValueError('no such field')\n")
    info = tmp_path / "house_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ptxlint.rules]\nhouse = house_rules\n")
    samples = Path(__file__).with_name("test_samples.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(samples), "-k", "NUM407"],
        cwd=samples.parents[2],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "house_rules.py:1: cannot load the rules of house_rules" in done.stdout
    assert "1 error in" in done.stdout
