"""Machine code on the command line: cubins, listings, files of cubins, and bad ones."""

from __future__ import annotations

import io
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from ptxlint import check
from ptxlint.cli.show_pressure import show_pressure
from ptxlint.frontends import machine_code, toolkit
from ptxlint.frontends.discovery import Input, InputFault, discover, read, read_code
from ptxlint.frontends.toolkit import ToolError, disassemble
from tests.frontends.sass.conftest import FIXTURES, Build

SOFTMAX = Build("sm_90", "softmax")
LISTING = (
    '\t.target\tsm_90\n\t.section\t.text.k,"ax",@progbits\n\t.other\tk,@"STO_CUDA_ENTRY"\n'
    '.text.k:\n\t//## File "a.py", line 7\n        /*0000*/   EXIT ;\n'
)


@pytest.fixture
def cubin(assembled: Callable[[Build], Any]) -> bytes:
    """A small kernel's."""
    data: bytes = assembled(SOFTMAX).cubin
    return data


def _fatbin(*cubins: tuple[int, bytes]) -> bytes:
    """A fat binary: a header, and each cubin behind one of its own."""
    body = b""
    for arch, data in cubins:
        data += bytes(-len(data) % 8)
        head = (2, 0x101, 64, len(data), 0, 0, 0, 0, arch, 0, 0x11, 0, 0)
        body += struct.pack("<HHIQIIHHIQQQQ", *head) + data
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_a_cubin_is_read_as_its_listing(tmp_path: Path, cubin: bytes) -> None:
    path = tmp_path / "k.bin"
    path.write_bytes(cubin)
    code = read_code(Input(str(path)))
    assert not isinstance(code, InputFault)
    assert code.is_machine
    assert code.text == disassemble(cubin, "-c", "-gi")
    report = check(path)
    assert report.exit_code == 0
    assert [(k.name, k.arch, k.path) for k in report.kernels] == [
        ("softmax_kernel", "sm_90a", str(path))
    ]
    assert not [f for f in report.findings if f.rule == "INPUT"]


@pytest.mark.parametrize("options", [("-c", "-g"), ("-c", "-hex"), ("-json",)])
def test_a_listing_is_told_by_what_is_in_it(
    tmp_path: Path, cubin: bytes, options: tuple[str, ...]
) -> None:
    path = tmp_path / "k.txt"
    path.write_text(disassemble(cubin, *options))
    report = check(path)
    assert report.exit_code == 0
    assert [k.name for k in report.kernels] == ["softmax_kernel"]
    without = [f for f in report.findings if "no lines of a source" in f.message]
    assert [f.severity for f in without] == ([] if "-g" in options else ["note"])


def test_ptx_is_no_listing() -> None:
    assert machine_code.is_listing(LISTING)
    assert not machine_code.is_listing(".version 8.0\n" + LISTING)
    assert not any(
        machine_code.is_listing(path.read_text()) for path in (FIXTURES / "sm_90").glob("*.ptx")
    )


def test_all_cubins_of_a_fat_binary_are_checked(
    tmp_path: Path, cubin: bytes, assembled: Callable[[Build], Any]
) -> None:
    other = assembled(Build("sm_120", "softmax")).cubin
    path = tmp_path / "two.fatbin"
    path.write_bytes(_fatbin((90, cubin), (120, other)))
    found = discover([str(path)], machine_code=True)
    assert [item.path for item in found] == [
        f"{path}:1.sm_90a.cubin", f"{path}:2.sm_120a.cubin",
    ]  # fmt: skip
    report = check(path)
    assert [k.arch for k in report.kernels] == ["sm_90a", "sm_120a"]
    assert [k.arch for k in check(path, arch="sm_120a").kernels] == ["sm_120a"]
    assert check(path, jobs=2).exit_code == 0


def test_of_a_damaged_fat_binary_what_lies_before_the_damage_is_checked(
    tmp_path: Path, cubin: bytes, assembled: Callable[[Build], Any]
) -> None:
    other = assembled(Build("sm_120", "softmax")).cubin
    path = tmp_path / "two.fatbin"
    path.write_bytes(_fatbin((90, cubin), (120, other[: len(other) // 2])))
    report = check(path)
    assert report.exit_code == 2
    assert [k.arch for k in report.kernels] == ["sm_90a"]
    ((rule, message),) = [(f.rule, f.message) for f in report.findings]
    assert rule == "INPUT"
    assert message.startswith("behind the first cubin nothing can be extracted: cuobjdump failed")
    # `show pressure` draws one alone.
    path.write_bytes(_fatbin((90, cubin), (120, other)))
    with pytest.raises(click.ClickException, match=r"2 cubins.*1\.sm_90a\.cubin, 2\.sm_120a"):
        show_pressure(str(path), None, "text", None)


def test_a_library_that_was_cut_off_is_not_called_empty(tmp_path: Path) -> None:
    # The header of an ELF file of 64 bits for x86-64, whose 3 sections are to be at 4096.
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    fields = (3, 62, 1, 0, 0, 4096, 0, 64, 56, 0, 64, 3, 1)
    data = ident + struct.pack("<HHIQQQIHHHHHH", *fields) + bytes(1000)
    code, [(rule, message)] = _bad(tmp_path / "k.so", data)
    assert (code, rule) == (2, "INPUT")
    assert message == "the file is damaged or cut off"


def test_standard_input_may_be_a_cubin(monkeypatch: pytest.MonkeyPatch, cubin: bytes) -> None:
    class Stream:
        buffer = io.BytesIO(cubin)

    monkeypatch.setattr(sys, "stdin", Stream())
    assert [k.name for k in check("-").kernels] == ["softmax_kernel"]


def test_a_directory_gives_each_kernel_once(tmp_path: Path) -> None:
    for name in ("a.ptx", "a.cubin", "b.cubin", "b.sass", "c.sass", "d.so", "e.txt"):
        (tmp_path / name).write_text(LISTING)
    names = [Path(i.path).name for i in discover([str(tmp_path)], machine_code=True)]
    assert names == ["a.ptx", "b.cubin", "c.sass"]
    assert [Path(i.path).name for i in discover([str(tmp_path)])] == ["a.ptx"]


def test_rules_of_ptx_do_not_run_on_machine_code(tmp_path: Path) -> None:
    path = tmp_path / "k.sass"
    # Unreachable code, which RES111 reports in PTX.
    path.write_text(LISTING + "        /*0010*/   FADD R1, R2, R3 ;\n        /*0020*/   EXIT ;\n")
    assert not check(path, select="ALL").findings


def _bad(path: Path, data: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Checked beside a good file, which must be checked too."""
    path.write_bytes(data)
    good = path.with_name("good.sass")
    good.write_text(LISTING)
    report = check([path, good])
    assert [k.name for k in report.kernels if k.path == str(good)] == ["k"]
    return report.exit_code, [(f.rule, f.message) for f in report.findings]


def test_a_cubin_that_was_cut_off(tmp_path: Path, cubin: bytes) -> None:
    for length in (25, 200, 4000, len(cubin) - 100):
        code, [(rule, message)] = _bad(tmp_path / "k.cubin", cubin[:length])
        assert (code, rule) == (2, "INPUT")
        assert "damaged or cut off" in message or "invalid ELF file" in message
        assert str(tempfile.gettempdir()) not in message.replace(str(tmp_path), "")


def test_an_elf_file_without_machine_code_for_a_gpu(tmp_path: Path) -> None:
    code, [(rule, message)] = _bad(tmp_path / "k.so", Path(sys.executable).read_bytes())
    assert (code, rule) == (2, "INPUT")
    assert message == "there is no machine code for a GPU in this file"


def test_a_cubin_for_an_unknown_architecture(tmp_path: Path, cubin: bytes) -> None:
    flags = 0x30
    (old,) = struct.unpack_from("<I", cubin, flags)
    shift = 8 if cubin[8] >= 8 else 0
    strange = old & ~(0xFF << shift) | 200 << shift
    data = cubin[:flags] + struct.pack("<I", strange) + cubin[flags + 4 :]
    code, [(rule, message)] = _bad(tmp_path / "k.cubin", data)
    assert (code, rule) == (2, "INPUT")
    assert "nvdisasm failed" in message


def test_no_disassembler(tmp_path: Path, cubin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise ToolError(f"{name} is needed and not found")

    monkeypatch.setattr(toolkit, "find_tool", missing)
    for name, data in (("k.cubin", cubin), ("k.fatbin", _fatbin((90, cubin)))):
        code, [(rule, message)] = _bad(tmp_path / name, data)
        assert (code, rule) == (2, "INPUT")
        assert "is needed and not found" in message


def test_json_that_is_cut_off(tmp_path: Path, cubin: bytes) -> None:
    text = disassemble(cubin, "-json")
    code, [(rule, message)] = _bad(tmp_path / "k.json", text[: len(text) // 2].encode())
    assert (code, rule) == (2, "INPUT")
    assert "no output of nvdisasm -json" in message


def test_commands_for_ptx_alone_say_so(tmp_path: Path, cubin: bytes) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(cubin)
    (item,) = discover([str(path)])
    assert isinstance(item, Input)
    fault = read(item)
    assert isinstance(fault, InputFault)
    assert "an ELF file" in fault.message
