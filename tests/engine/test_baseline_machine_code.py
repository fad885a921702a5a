"""Baselines of directories that hold machine code alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxlint import check
from ptxlint.cli import main
from tests.comparison.machine_builds import assembled, cubin, listing

BODY = (
    "7: S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x40, PT",
    "8: @!P0 LDG.E R4, desc[UR4][R2.64]", "11: @P0 EXIT", "12: STG.E desc[UR4][R2.64], R4", "EXIT",
)  # fmt: skip
LOOP = (".L_x_0:", "9: STL.64 [R1], R4", "LDL.64 R4, [R1]", "@P1 BRA `(.L_x_0)")


def baseline(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> str:
    path = folder.with_name("baseline.json")
    with pytest.raises(SystemExit) as raised:
        main(["baseline", str(folder), "--output", str(path), "--no-config", *words])
    out, _ = capsys.readouterr()
    assert raised.value.code == 0, out
    return str(path)


def found(folder: Path, base: str) -> list[tuple[str, str, str]]:
    report = check(folder, baseline=base)
    return [(f.rule, f.severity, f.message) for f in report.findings if f.rule != "INPUT"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "k.sass").write_text(listing(*BODY))
    return folder


def test_what_is_known_of_cubins_is_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "kernels"
    cubin(folder, "leaky_relu")
    cubin(folder, "leaky_relu", "sm_80", stem="other")
    base = baseline(capsys, folder)
    kernels = json.loads(Path(base).read_text())["kernels"]
    assert [(k["arch"], k["machine"]) for k in kernels] == [("sm_80", True), ("sm_90a", True)]
    for kernel, arch in zip(kernels, ("sm_80", "sm_90"), strict=True):
        (known,) = assembled("leaky_relu", arch).resources.values()
        assert known.registers is not None
        assert (kernel["registers"], kernel["spills"]) == (known.registers.value, 0)
        assert kernel["accesses"] == kernel["guarded"] == 16
    assert found(folder, base) == []


def test_renamed_registers_and_moved_lines_change_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.sass").write_text(listing(*LOOP, *BODY))
    base = baseline(capsys, folder)
    text = re.sub(r"\bR(4|0)\b", lambda m: f"R{int(m[1]) + 20}", listing(*LOOP, *BODY, path="b.py"))
    text = re.sub(r"line (\d+)", lambda m: f"line {int(m[1]) + 90}", text)
    (folder / "k.sass").unlink()
    (folder / "elsewhere.sass").write_text(text + " " * 20 + "/*0f00*/   NOP ;\n")
    assert found(folder, base) == []


def test_spills_that_are_new_are_worse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = baseline(capsys, folder)
    (folder / "k.sass").write_text(listing(*LOOP, *BODY))
    worse, new = sorted(found(folder, base))
    assert worse[:2] == ("BAS902", "warning")
    assert "bytes of spills 0 → 16" in worse[2]
    assert new[:2] == ("RES106", "warning")


def test_a_guard_may_become_an_early_exit_and_not_be_lost(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = baseline(capsys, folder)
    early = (*BODY[:2], "@P0 EXIT", "8: LDG.E R4, desc[UR4][R2.64]", *BODY[4:])
    (folder / "k.sass").write_text(listing(*early))
    assert found(folder, base) == []
    (folder / "k.sass").write_text(listing(*early[:2], *early[3:]))
    ((rule, severity, message),) = found(folder, base)
    assert (rule, severity) == ("BAS902", "note")
    assert "guarded accesses 2 → 0" in message


def test_ptx_of_the_same_kernel_is_another_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.sass").write_text(listing(*LOOP, *BODY))
    base = baseline(capsys, folder)
    assert [f["rule"] for f in json.loads(Path(base).read_text())["findings"]] == ["RES106"]
    (folder / "k.sass").unlink()
    (folder / "k.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    )
    ((rule, severity, message),) = found(folder, base)
    assert (rule, severity) == ("BAS903", "warning")
    assert message == "no kernel of this baseline was checked: it is of k (machine code)"
    (folder / "other.sass").write_text(listing(*BODY, name="other"))
    (folder / "k.sass").write_text(listing(*LOOP, *BODY))
    (folder / "k.ptx").rename(folder / "k.txt")
    base = baseline(capsys, folder)
    (folder / "k.sass").unlink()
    (folder / "k.txt").rename(folder / "k.ptx")
    # Nothing is said of what a rule for machine code found there.
    assert found(folder, base) == [
        ("BAS903", "note", "1 kernel of the baseline not checked: k sm_90 (machine code)")
    ]


def test_a_cubin_that_was_cut_off_is_told_and_the_rest_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder / "broken.cubin"
    broken.write_bytes(b"\x7fELF" + bytes(14) + b"\xbe\x00" + bytes(80))
    path = tmp_path / "baseline.json"
    with pytest.raises(SystemExit) as raised:
        main(["baseline", str(folder), "--output", str(path), "--no-config"])
    out, err = capsys.readouterr()
    assert raised.value.code == 2
    assert f"{path}: 1 kernel, 0 findings" in out
    assert str(broken) in err
    assert "Traceback" not in err
