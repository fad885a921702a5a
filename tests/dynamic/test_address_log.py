"""Records of addresses in PTX: each global access has one, and the text still assembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dynamic.address_log import VARIABLE, Touched, logged
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def every() -> list[Path]:
    folders = (FIXTURES / "ptx" / "sm_80", FIXTURES / "ptx" / "sm_90")
    return [path for folder in folders for path in sorted(folder.glob("*.ptx"))]


def test_each_global_access_is_recorded() -> None:
    count = 0
    for path in every():
        module = parse(path.read_text(encoding="utf-8"), str(path))
        (kernel,) = module.kernels()
        log = logged(module, kernel)
        accesses = Facts(module, kernel).get(AccessAnalysis).in_global
        assert set(log.sites) >= {a.instr.index for a in accesses}, path
        assert log.left_out == []
        count += len(log.sites)
    assert count > 1000


@pytest.mark.parametrize("path", every()[::9], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_text_assembles(path: Path, assemblers: list[Any], tmp_path: Path) -> None:
    module = parse(path.read_text(encoding="utf-8"), str(path))
    log = logged(module, module.kernels()[0])
    assert log.text.count(f"[{VARIABLE}+") == 2 * len(log.sites)
    said = [a.errors(log.text, module.arch, tmp_path) for a in assemblers]
    assert [] in said, said


@pytest.mark.parametrize(
    ("copy", "condition"),
    [
        (
            "cp.async.cg.shared.global [%r1], [%rd1+32], 16, %r2;",
            "setp.ne.b32 %ptxlint_on, %r2, 0;",
        ),
        (
            "@!%p1 cp.async.ca.shared.global.L2::cache_hint [%r1], [ %rd1 + 32 ], 0x4, %r2, %rd2;",
            "@!%p1 setp.ne.b32 %ptxlint_on, %r2, 0;",
        ),
        ("cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1+32], 16, %rd2;", ""),
        ("cp.async.ca.shared.global [%r1], [%rd1+32], 8;", ""),
    ],
)
def test_a_copy_of_no_bytes_is_no_access(copy: str, condition: str) -> None:
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<2>;\n"
        f".reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n{copy}\nret;\n}}\n"
    )
    module = parse(text, "k.ptx")
    log = logged(module, module.kernels()[0])
    before = log.text[: log.text.index(copy)]
    assert "add.s64 %ptxlint_at, %rd1, 32;" in before
    said = [line for line in before.splitlines() if "setp" in line and "0, 0" not in line]
    assert said == ([condition] if condition else [])
    guard = "@%ptxlint_on " if condition else ""
    assert f"{guard}red.relaxed.gpu.global.min.u64" in before


def test_what_is_read_back() -> None:
    text = (FIXTURES / "ptx" / "sm_90" / "softmax.ptx").read_text(encoding="utf-8")
    module = parse(text, "k.ptx")
    log = logged(module, module.kernels()[0])
    assert log.read(log.blank) == {}
    data = (7).to_bytes(8, "little") + (9).to_bytes(8, "little") + log.blank[16:]
    assert log.read(data) == {log.sites[0]: Touched(7, 9)}
    assert len(log.blank) == 16 * len(log.sites)


def test_addresses_of_32_bits_are_refused() -> None:
    module = parse(".version 8.0\n.target sm_80\n.address_size 32\n.entry k()\n{\nret;\n}\n", "k")
    with pytest.raises(ValueError, match="64 bits"):
        logged(module, module.kernels()[0])
