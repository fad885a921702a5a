"""What kernels do, counted alike in PTX and machine code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.frontends.sass import parse as parse_sass
from ptxlint.structure.profile import Access, class_of, profile

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"


def test_a_softmax_counts_what_its_text_has() -> None:
    found = profile(parse((FIXTURES / "sm_80" / "softmax.ptx").read_text()).kernels()[0])
    assert found.classes["special"] == 8
    assert found.classes["warp"] == 14 - found.classes["control"] + 1
    assert found.accesses[Access("load", "global", True)] == 8
    assert found.accesses[Access("store", "global", True)] == 8
    assert found.barriers == 3
    assert not found.tensor
    assert not found.copies
    assert found.instructions == sum(found.classes.values())


@pytest.mark.parametrize(
    ("arch", "name", "tensor", "copy"),
    [
        ("sm_80", "flash_fwd", "mma", "cp"),
        ("sm_90", "flash_fwd", "wgmma", "cp"),
        ("sm_100", "flash_fwd", "tcgen05", "cp"),
    ],
)
def test_products_and_copies_are_counted_by_opcode(
    arch: str, name: str, tensor: str, copy: str
) -> None:
    found = profile(parse((FIXTURES / arch / f"{name}.ptx").read_text()).kernels()[0])
    assert set(found.tensor) == {tensor}
    assert set(found.copies) == {copy}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("HMMA.16816.F32 R4, R8, R12, R4", "tensor"),
        ("LDG.E R4, [R2.64]", "load"),
        ("LDC R1, c[0x0][0x28]", "constant"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier"),
        ("DFMA R4, R2, R4, R6", "double"),
        ("HFMA2 R4, R2, R4, R6", "half"),
        ("MUFU.EX2 R4, R2", "special"),
        ("ISETP.GE.AND P1, PT, R2, UR9, PT", "int"),
        ("PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x8", "logic"),
        ("LDGSTS.E [R1], [R2.64]", "async"),
        ("NOP", "padding"),
    ],
)
def test_classes_of_machine_code(line: str, name: str) -> None:
    text = f".target sm_80\n.section .text.k\n.text.k:\n  /*0000*/  {line} ;\n"
    (instr,) = parse_sass(text).functions[0].instrs
    assert class_of(instr) == name
