"""Resources that somebody knows: an assembler that is run, a log or a cubin beside the file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import ptxlint
from ptxlint.engine.resources import resources_beside, resources_in
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler
from ptxlint.resources import CUBIN, LOG, SASS, Amount

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
    assert re.fullmatch(
        r"RES102 registers spill to local memory: 2,232 bytes of stores and 2,200 bytes of loads "
        r"\(ptxas \d+\.\d run here\)",
        told,
    )


SPILLED = {
    "sm_80": (
        "20,200 bytes of stores and 23,236 bytes of loads",
        [
            (52, "5,344 bytes stored, 6,636 bytes loaded", "2080 instructions, all in loops"),
            (42, "3,444 bytes stored, 4,788 bytes loaded", "1362 instructions, all in loops"),
            (49, "3,140 bytes stored, 3,392 bytes loaded", "1278 instructions, all in loops"),
            (50, "1,736 bytes stored, 2,212 bytes loaded", "859 instructions, all in loops"),
        ],
    ),
    "sm_90": (
        "2,232 bytes of stores and 2,200 bytes of loads",
        [
            (42, "1,172 bytes stored, 680 bytes loaded", "273 instructions, all in loops"),
            (46, "272 bytes stored, 484 bytes loaded", "189 instructions, all in loops"),
            (52, "8 bytes stored, 424 bytes loaded", "104 instructions, all in loops"),
            (45, "104 bytes stored, 120 bytes loaded", "56 instructions, all in loops"),
        ],
    ),
}


@pytest.mark.parametrize("arch", SPILLED)
def test_the_lines_that_spill_are_ranked(built: Path, arch: str) -> None:
    path = FIXTURES / arch / "flash_fwd_spill.ptx"
    (found,) = ptxlint.check(path, select="RES102", exact=True).findings
    total, lines = SPILLED[arch]
    assert total in found.message
    told = [
        (note.place.source.line, note.message)
        for note in found.related
        if note.place.source and "machine code" in note.message
    ]
    assert told == [
        (line, f"{bytes_} by machine code of this line ({how_many})")
        for line, bytes_, how_many in lines
    ]


def test_without_a_log_spills_are_counted_in_the_cubin(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    shutil.copy(built / "kernel.cubin", tmp_path / "kernel.cubin")
    (told,) = [text for text in messages(tmp_path / "kernel.ptx") if text.startswith("RES102")]
    assert told.endswith(
        "2,232 bytes of stores and 2,200 bytes of loads (SASS of cubin kernel.cubin)"
    )
    # The same is said of the path of the cubin, and the log's word goes first.
    (known,) = resources_beside(str(tmp_path / "kernel.cubin"), "sm_90a", []).values()
    assert known.spill_stores == Amount(2232, SASS, "SASS of cubin kernel.cubin")
    assert known.registers == Amount(255, CUBIN, "cubin kernel.cubin")
    shutil.copy(built / "kernel.log", tmp_path / "kernel.log")
    (known,) = resources_beside(str(tmp_path / "kernel.cubin"), "sm_90a", []).values()
    assert known.spill_stores == Amount(2232, LOG, "log kernel.log")
    assert known.spill_loads == Amount(2200, LOG, "log kernel.log")


def test_a_kernel_without_a_frame_spills_nothing() -> None:
    text = (FIXTURES / "sm_80" / "softmax.ptx").read_text()
    cubin = assemble(text, "sm_80", find_assembler((9, 4))).cubin
    (known,) = resources_in(cubin).values()
    assert (known.stack, known.spill_stores) == (Amount(0, CUBIN), Amount(0, CUBIN))


def test_a_log_beside_the_file_is_read_for_nothing(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    shutil.copy(built / "kernel.log", tmp_path / "kernel.log")
    found = messages(tmp_path / "kernel.ptx")
    assert [text for text in found if text.startswith("RES102")] == [
        "RES102 registers spill to local memory: 2,232 bytes of stores and 2,200 bytes of loads "
        "(log kernel.log)"
    ]


def test_the_report_holds_what_is_known_of_each_kernel(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    (kernel,) = ptxlint.check(tmp_path / "kernel.ptx").to_dict()["kernels"]
    assert kernel["resources"] == {}
    shutil.copy(built / "kernel.log", tmp_path / "kernel.log")
    (kernel,) = ptxlint.check(tmp_path / "kernel.ptx").to_dict()["kernels"]
    assert {name: part["value"] for name, part in kernel["resources"].items()} == {
        "registers": 255, "stack": 1392, "spill_stores": 2232, "spill_loads": 2200, "shared": 0,
        "cumulative_stack": 1392, "barriers": 1,
    }  # fmt: skip
    said = {"value": 255, "source": "assembler log", "said": "log kernel.log"}
    assert kernel["resources"]["registers"] == said


def test_a_cubin_beside_the_file_tells_registers(built: Path, tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    shutil.copy(built / "kernel.cubin", tmp_path / "kernel.cubin")
    found = messages(tmp_path / "kernel.ptx")
    assert any("255 registers a thread (cubin kernel.cubin)" in text for text in found)


def test_a_damaged_cubin_beside_the_file_does_no_harm(tmp_path: Path) -> None:
    shutil.copy(SPILLS, tmp_path / "kernel.ptx")
    (tmp_path / "kernel.cubin").write_bytes(b"\x7fELF and then nothing")
    first, *others = messages(tmp_path / "kernel.ptx")
    assert "kernel.cubin: the cubin is damaged or cut off" in first
    assert others == messages(SPILLS)


def local_arrays(path: Path, **named: object) -> list[str]:
    report = ptxlint.check(path, select="RES103", **named)  # type: ignore[arg-type]
    return [re.sub(r"\d+\.\d run", "X.Y run", f.message) for f in report.findings]


@pytest.mark.usefixtures("built")
def test_the_assembler_knows_the_stack_of_arrays() -> None:
    path = FIXTURES.parent / "ptx-nvcc" / "sm_90" / "local_arrays.ptx"
    assert local_arrays(path) == [
        "96 bytes of local memory a thread in 1 array (counted in the PTX, an estimate)",
        "256 bytes of local memory a thread in 1 array (counted in the PTX, an estimate)",
    ]
    assert local_arrays(path, exact=True) == [
        "1 array of 96 bytes in local memory: 96 bytes of stack a thread (ptxas X.Y run here)",
        "1 array of 256 bytes in local memory: 256 bytes of stack a thread (ptxas X.Y run here)",
    ]


@pytest.mark.usefixtures("built")
def test_an_array_that_the_assembler_keeps_in_registers_is_none() -> None:
    path = FIXTURES / "sm_90" / "grid_stride_sincos.ptx"
    assert local_arrays(path) == [
        "28 bytes of local memory a thread in 1 array (counted in the PTX, an estimate)"
    ]
    assert local_arrays(path, exact=True) == []


def test_an_assembler_that_is_not_there_is_told(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "sm_80" / "softmax.ptx", tmp_path / "kernel.ptx")
    report = ptxlint.check(tmp_path / "kernel.ptx", ptxas="/no/such/ptxas")
    (finding,) = [f for f in report.findings if f.rule == "INPUT"]
    assert finding.message == "/no/such/ptxas: there is no such program"
    assert report.exit_code == 2
    assert report.kernels
