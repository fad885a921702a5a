"""What lies beside PTX and cannot be used is told, and its numbers are nobody's."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from ptxlint import check
from ptxlint.comparison.architectures import compare_architectures
from ptxlint.comparison.records import load
from ptxlint.comparison.report import compare
from ptxlint.engine.resources import resources_beside
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"


@pytest.fixture(scope="module")
def cubins() -> dict[str, bytes]:
    found = {}
    for arch in ("sm_80", "sm_90"):
        text = (FIXTURES / arch / "softmax.ptx").read_text()
        try:
            target = arch if arch == "sm_80" else "sm_90a"
            found[arch] = assemble(text, target, find_assembler((9, 4))).cubin
        except ToolError as error:
            pytest.skip(str(error))
    return found


def beside(tmp_path: Path, cubin: bytes, name: str = "softmax") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "k.ptx"
    shutil.copy(FIXTURES / "sm_80" / f"{name}.ptx", path)
    (folder / "k.cubin").write_bytes(cubin)
    return path


def told(path: Path) -> list[str]:
    report = check(path)
    assert report.exit_code == 0
    return [f.message for f in report.findings if f.rule == "INPUT" and f.severity == "note"]


def test_a_cubin_for_another_architecture_is_not_used(
    tmp_path: Path, cubins: dict[str, bytes]
) -> None:
    path = beside(tmp_path, cubins["sm_90"])
    words = "the cubin k.cubin beside is for sm_90, and not for sm_80: it is not used"
    assert told(path) == [words]
    paths = [str(path), str(FIXTURES / "sm_90" / "softmax.ptx")]
    (family,) = compare_architectures(paths, ptxas=None).families
    ours = family.portraits[0]
    assert ours.resources.registers is None
    assert ours.machine is None
    assert f"sm_80: {words}" in family.notes
    assert any("is for sm_90a, and the PTX beside it for sm_80" in note for note in family.notes)


def test_a_log_for_another_architecture_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    (tmp_path / "k.log").write_text(
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Used 40 registers\n"
    )
    faults: list[str] = []
    assert resources_beside(str(path), "sm_80", faults) == {}
    assert faults == ["the log k.log beside is for sm_90a, and not for sm_80: it is not used"]
    (registers,) = (r.registers for r in resources_beside(str(path), "sm_90", faults).values())
    assert registers is not None
    assert registers.value == 40


def test_a_damaged_cubin_is_told_and_the_rest_done(
    tmp_path: Path, cubins: dict[str, bytes]
) -> None:
    cubin = cubins["sm_80"]
    old = beside(tmp_path, cubin[: len(cubin) // 2])
    new = beside(tmp_path, cubin, "softmax_buggy")
    (words,) = told(old)
    assert "k.cubin: the cubin is damaged or cut off" in words
    (found,) = compare([str(old)], [str(new)], ptxas=None).differences
    assert found.kind == "constants"
    assert found.machine is None
    assert any("only PTX is compared" in note and "damaged" in note for note in found.notes)


def test_a_stripped_cubin_does_not_pass_for_one_without_kernels(
    tmp_path: Path, cubins: dict[str, bytes]
) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(without_symbols(cubins["sm_80"]))
    report = check(path)
    assert report.exit_code == 2
    (finding,) = (f for f in report.findings if f.severity == "error")
    assert finding.message.startswith("the symbols are stripped")
    assert load([str(path)]).kernels == []
    assert "stripped" in load([str(path)]).faults[0]


def without_symbols(cubin: bytes) -> bytes:
    """A cubin with nothing but its code and its constants, as `objcopy --strip-all` leaves it."""
    (headers,) = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    sections = [list(struct.unpack_from("<IIQQQQIIQQ", cubin, headers + 64 * at))
                for at in range(count)]  # fmt: skip
    texts = sections[names][4]
    kept = []
    for at, section in enumerate(sections):
        start = texts + section[0]
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if not at or at == names or name.startswith((".text.", ".nv.constant0.", ".nv.shared.")):
            kept.append([*section[:6], 0, section[7] & 0xFF000000, *section[8:]])
    head = bytearray(cubin[:64])
    shifted = [name for name, s in enumerate(kept) if s[4] == texts]
    struct.pack_into("<Q", head, 40, len(cubin))
    struct.pack_into("<HHHHH", head, 54, 0, 0, 64, len(kept), shifted[0])
    struct.pack_into("<Q", head, 32, 0)
    return bytes(head) + cubin[64:] + b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in kept)
