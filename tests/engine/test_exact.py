"""Resources that somebody knows: an assembler that is run, a log or a cubin beside the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ptxlint
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
SPILLS = FIXTURES / "sm_90" / "flash_fwd_spill.ptx"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel that spills, with what its assembler wrote and said in `cubin` and `log`."""
    try:
        assembler = find_assembler((9, 4))
    except ToolError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("built")
    done = assemble(SPILLS.read_text(), "sm_90a", assembler)
    (folder / "kernel.cubin").write_bytes(done.cubin)
    (folder / "kernel.log").write_text(done.log)
    return folder


def messages(path: Path, **named: object) -> list[str]:
    report = ptxlint.check(path, select="RES", **named)  # type: ignore[arg-type]
    return [f"{f.rule} {f.message}" for f in report.findings if f.rule != "RES104"]


def test_without_an_assembler_there_is_an_estimate_alone(tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    found = messages(tmp_path / "kernel.ptx")
    assert all("RES102" not in text for text in found)


def test_an_assembler_is_run_when_it_is_asked_for(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    found = messages(tmp_path / "kernel.ptx", exact=True)
    (told,) = [text for text in found if text.startswith("RES102")]
    assert "(assembler log)" in told
    assert "bytes of stores and" in told


def test_a_log_beside_the_file_is_read_for_nothing(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    shutil.copy(built / "kernel.log", tmp_path / "kernel.log")
    found = messages(tmp_path / "kernel.ptx")
    assert [text for text in found if text.startswith("RES102")]


def test_a_cubin_beside_the_file_tells_registers(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    shutil.copy(built / "kernel.cubin", tmp_path / "kernel.cubin")
    found = messages(tmp_path / "kernel.ptx")
    assert any("255 registers a thread (cubin)" in text for text in found)


def test_a_damaged_cubin_beside_the_file_does_no_harm(tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    (tmp_path / "kernel.cubin").write_bytes(b"\x7fELF and then nothing")
    assert messages(tmp_path / "kernel.ptx") == messages(SPILLS)


def test_an_assembler_that_is_not_there_is_told(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "sm_80" / "softmax.ptx", tmp_path / "kernel.ptx")
    report = ptxlint.check(tmp_path / "kernel.ptx", ptxas="/no/such/ptxas")
    (finding,) = [f for f in report.findings if f.rule == "INPUT"]
    assert finding.message == "/no/such/ptxas: there is no such program"
    assert report.exit_code == 2
    assert report.kernels
