"""The part of the bench that compares two caches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ptxlint.comparison.report import compare

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "comparing"))
    import caches

    return caches


def test_a_cache_is_rebuilt_with_other_names_and_changes(
    tmp_path: Path, caches: ModuleType
) -> None:
    old, renamed, changed = (tmp_path / name for name in ("old", "renamed", "changed"))
    assert caches.write(old, 11) == 11
    caches.write(renamed, 11, renames=True)
    caches.write(changed, 11, renames=True, changes=True)
    same = compare([str(old)], [str(renamed)], ptxas=None)
    assert [d.kind for d in same.differences] == ["renamed"] * 11
    assert len({d.old.name for d in same.differences}) == 11
    other = compare([str(old)], [str(changed)], ptxas=None)
    assert [d.kind for d in other.changed] == ["constants", "constants"]
    assert [d.old.name.rpartition("_")[2] for d in other.changed] == ["0", "10"]


@pytest.mark.slow
def test_comparing_is_measured_alone(tmp_path: Path) -> None:
    (tmp_path / "results.md").write_text("# Speed\n\nchecks\n\n## The emulator\n\nfast\n")
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--only", "comparing", "--quick"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], check=True, capture_output=True, text=True
    )
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert page.startswith("# Speed\n\nchecks\n\n## Comparing two builds\n\n")
    assert page.endswith("\n\n## The emulator\n\nfast\n")
    assert done.stdout.count("CPU time, times checking both") == 3
