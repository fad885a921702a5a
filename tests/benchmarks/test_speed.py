"""The part of the bench on the emulator: measured alone, it leaves the rest of the page alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "emulator"))
    import speed

    return speed


def test_one_part_takes_the_place_of_the_one_before(speed: ModuleType) -> None:
    first = speed.replaced("# Speed\n\nchecks\n", f"{speed.HEADING}\n\none\n")
    assert first == f"# Speed\n\nchecks\n\n{speed.HEADING}\n\none\n"
    assert speed.replaced(first, f"{speed.HEADING}\n\ntwo\n") == first.replace("one", "two")
    assert speed.replaced("", f"{speed.HEADING}\n") == f"{speed.HEADING}\n"


def test_the_page_has_a_part_on_the_emulator(speed: ModuleType) -> None:
    page = (BENCHMARKS / "results.md").read_text(encoding="utf-8")
    assert page.startswith("# Speed and memory")
    assert page.count(speed.HEADING) == 1


def test_times_of_one_launch(speed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS.parent / "fixtures"))
    assert speed.milliseconds("softmax", {"rows": 1, "columns": 1024}, 2) > 0
    assert speed.rates(("relu",), 4096, 2)["relu"] > 0


@pytest.mark.slow
def test_the_emulator_is_measured_alone(tmp_path: Path) -> None:
    (tmp_path / "results.md").write_text("# Speed\n\nchecks\n", encoding="utf-8")
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--only", "emulator", "--quick"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], check=True, capture_output=True, text=True
    )
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert page.startswith("# Speed\n\nchecks\n\n## The emulator\n")
    rows = done.stdout.splitlines()
    assert len(rows) == 5
    assert all(row.endswith((" | met", " | missed")) for row in rows)
    assert all(row in page for row in rows)
