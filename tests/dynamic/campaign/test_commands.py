"""The commands: exit statuses and files. Campaigns share one server, so that torch loads once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ptxlint.cli.gating as gating
from ptxlint.cli import main
from ptxlint.dynamic.campaign import campaign, machine
from ptxlint.dynamic.runners.supervisor import ForkServer

ROOT = Path(__file__).resolve().parents[3]
SPEC = """
from ptxlint.dynamic.operators import Dim, Operator, Tensor

def spec(factor, **more):
    return Operator(
        kernel=lambda x: x * factor, reference=lambda x: x * 2, dims={"n": Dim(1, 64)},
        inputs={"x": Tensor("n")}, runs_on="numpy", **more,
    )

"""


@pytest.fixture
def folder(tmp_path: Path, triton_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(campaign, "ForkServer", lambda runner: triton_server)
    monkeypatch.setattr(triton_server, "close", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right.py").write_text(SPEC + "right = spec(2)\n")
    (tmp_path / "wrong.py").write_text(SPEC + "wrong = spec(3)\n")
    return tmp_path


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def test_exit_statuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("gate", "right.py", "--runner", "emulator") == 0
    assert capsys.readouterr().out.startswith("pass      right (numpy, no PTX): 2 cases")
    assert status("gate", "right.py", "wrong.py", "--runner", "emulator") == 1
    assert "2 operators: 1 pass, 1 fail" in capsys.readouterr().out
    assert status("gate", "wrong.py", "missing.py", "right.py", "--runner", "emulator") == 2
    assert "3 operators: 1 pass, 1 fail, 1 problem" in capsys.readouterr().out


def test_stress_runs_the_families_that_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("stress", "right.py", "--runner", "emulator", "--format", "json")
    assert status(*given, "--family", "exp-range,zero-rows", "--cases", "2") == 0
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdict["cases"] == 2 + 2 * 2
    assert status(*given, "--family", "luck") == 2
    assert "--family: 'luck' is none of semantics, " in capsys.readouterr().err


def test_the_first_operator_of_the_page_is_told_as_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    section = page.partition("## The first operator\n")[2].partition("\n## ")[0]
    (spec,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    printed = re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    right, wrong = (text.removeprefix("$ ptxlint gate rmsnorm.py --runner emulator\n")
                    for text in printed)  # fmt: skip
    file = folder / "rmsnorm.py"
    file.write_text(spec)
    assert status("gate", file.name, "--runner", "emulator") == 0
    assert capsys.readouterr().out == right
    root, rootless = re.search(r"`(root = .*)`", section), "tl.sum(x * x, axis=0) / n + 1e-5"
    assert root is not None
    assert root[1] == f"root = {rootless}"
    file.write_text(spec.replace(f"root = tl.sqrt({rootless})", root[1]))
    assert status("gate", file.name, "--runner", "emulator") == 1
    # Digits are those of a version of Triton.
    digits = re.compile(r"-?\d[\d.]*(?:e[+-]\d+)?")
    assert digits.sub("N", capsys.readouterr().out) == digits.sub("N", wrong)


def test_a_reason_goes_with_the_inputs_that_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("gate", "wrong.py", "--runner", "emulator", "--format", "json") == 1
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    (failure,) = verdict["failures"]
    assert failure["inputs"]["shape"] == {"n": 1}
    assert failure["seen"]["case"]["dims"]["n"] > 1
    assert failure["reason"].startswith("1 of 1 elements")


def test_a_gpu_that_is_asked_for_must_be_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "gpus", lambda: ())
    assert status("gate", "right.py", "--runner", "cuda") == 2
    assert "no CUDA device was found" in capsys.readouterr().err
    assert gating.chosen_runner("auto") == ("emulator", ())
    monkeypatch.setattr(machine, "gpus", lambda: (0, 1))
    assert gating.chosen_runner("auto") == ("cuda", (0, 1))
    assert gating.chosen_runner("emulator") == ("emulator", ())


def test_bad_words_end_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("gate", "right.py", "--arch", "volta") == 2
    assert "'volta' is no architecture" in capsys.readouterr().err
    assert status("gate", "right.py", "--arch", "sm_80,sm_90") == 2
    assert status("gate", "right.py", "--arch", "sm_70") == 2
    assert "--arch: 'sm_70' has no known limits" in capsys.readouterr().err
    (folder / "store.db").write_text("no database at all" * 100)
    assert status("gate", "right.py", "--store", "store.db") == 2
    assert "store.db: not a campaign file" in capsys.readouterr().err
    assert (folder / "store.db").read_text().startswith("no database")


def test_what_cannot_be_written_is_told_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign.Campaign, "run", lambda *_: pytest.fail("it ran"))
    given = ("gate", "right.py", "--runner", "emulator")
    (folder / "file").write_text("")
    assert status(*given, "--replays", "file/replays") == 2
    assert "cannot write to file/replays: Not a directory" in capsys.readouterr().err
    assert status(*given, "--output", "gone/report.txt") == 2
    assert "cannot write gone/report.txt: no directory gone" in capsys.readouterr().err
    assert status(*given, "--output", ".") == 2
    assert "cannot write .: it is a directory" in capsys.readouterr().err
    assert status("calibrate", "right.py", "--out", "gone/t.json") == 2


def test_tolerances_come_from_a_right_kernel_and_hold_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = """
import numpy as np

def spec(factor):
    return Operator(
        kernel=lambda x: (x.sum(axis=1, dtype=np.float64) * factor).astype(np.float32),
        reference=lambda x: x.sum(axis=1),
        dims={"rows": Dim(1, 8), "n": Dim(1, 512)}, inputs={"x": Tensor("rows", "n")},
        runs_on="numpy", name="sum",
    )
"""
    (folder / "known.py").write_text(SPEC + body + "known = spec(1)\n")
    (folder / "new.py").write_text(SPEC + body + "new = spec(1 + 2e-6)\n")
    assert status("calibrate", "known.py", "--out", "tolerances.json", "--runner", "emulator") == 0
    told: dict[str, Any] = json.loads((folder / "tolerances.json").read_text())
    (tolerance,) = told["tolerances"]
    assert (tolerance["operator"], tolerance["sample"]["cases"]) == ("sum", 24)
    assert tolerance["scale"] == pytest.approx(1.5 * tolerance["sample"]["p95"])
    assert tolerance["scale"] < 0.5
    assert status("calibrate", "known.py", "--out", "tolerances.json") == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert status("gate", "new.py", "--runner", "emulator") == 0
    held = ("gate", "new.py", "--runner", "emulator", "--tolerances", "tolerances.json")
    assert status(*held) == 1
    assert status("calibrate", "wrong.py", "gone.py", "--out", "none.json") == 2
    told_of = capsys.readouterr().err
    assert "not calibrated: gone.py: no such file" in told_of
    assert "note: wrong (float32) errs" in told_of


def test_replay_of_a_failure(
    folder: Path, triton_server: ForkServer, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from ptxlint.dynamic.runners import supervisor

    monkeypatch.setattr(supervisor, "ForkServer", lambda runner: triton_server)
    assert status("gate", "wrong.py", "--runner", "emulator", "--replays", "replays") == 1
    (file,) = (folder / "replays").iterdir()
    capsys.readouterr()
    assert status("replay", str(file)) == 1
    told = capsys.readouterr()
    assert "inputs and outputs are those of the file, byte for byte" in told.out
    assert told.err == ""
    (folder / "wrong.py").write_text(SPEC + "wrong = spec(2)\n")
    assert status("replay", str(file)) == 0
    assert "not as it was: the operator's code has changed since" in capsys.readouterr().err
    (folder / "wrong.py").unlink()
    assert status("replay", str(file)) == 2
