"""What nvcc and LLVM made of CUDA C++ and LLVM IR runs as the sources say, at the edges of blocks,
too; what is not run is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import native  # noqa: E402

KERNELS = [
    pytest.param(path, kernel, id=f"{path.parent.name}-{path.stem}-{kernel}")
    for path in native.files()
    for kernel in native.kernels(path)
]
RUN = [p for p in KERNELS if p.values[1] not in native.REFUSED]
NOT_RUN = [p for p in KERNELS if p.values[1] in native.REFUSED]


@pytest.mark.parametrize(("path", "kernel"), RUN)
def test_runs_as_the_source_says(path: Path, kernel: str) -> None:
    case = native.case_of(path, kernel)
    found = {str(sizes): native.hold(path, case, sizes) for sizes in case.sizes}
    assert {sizes: wrong for sizes, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(("path", "kernel"), NOT_RUN)
def test_refused_by_name(path: Path, kernel: str) -> None:
    with pytest.raises(UnsupportedError, match=native.REFUSED[kernel].replace("(", r"\(")):
        native.emulator(path, kernel)


def test_all_sources_are_built_and_all_cases_met() -> None:
    met = {(p.values[0].stem.removesuffix("_debug"), p.values[1]) for p in RUN}
    assert met == {(case.source, case.kernel) for case in native.CASES}
    assert {p.values[1] for p in NOT_RUN} == set(native.REFUSED)
    assert {path.parent.name for path in native.files()} == {"sm_75", "sm_80", "sm_90"}


TEXTURES = ("isa_textures", "isa_texmode_independent", "isa_video", "isa_multimem", "isa_tcgen05")


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("syntax/*.ptx")), ids=lambda p: p.stem)
def test_what_is_not_run_is_refused_by_name(path: Path) -> None:
    module = parse(path.read_text(encoding="utf-8"), str(path))
    refused = []
    for kernel in module.kernels():
        try:
            Emulator(module, kernel)
        except UnsupportedError as error:
            refused.append((error.instr.opcode, str(error)))
    assert all(why for _, why in refused)
    if path.stem in TEXTURES:
        assert refused
        assert {opcode for opcode, _ in refused} <= {"tex", "vadd", "multimem", "tcgen05"}


def test_a_form_that_reads_more_bits_than_a_register_has_is_refused() -> None:
    text = """
.version 9.0
.target sm_100
.address_size 64
.visible .entry k()
{
  .reg .b16 %rs<2>;
  .reg .b32 %r<3>;
  mul.f32 %r1, %rs1, %r2;
  ret;
}
"""
    module = parse(text, "snippet.ptx")
    with pytest.raises(UnsupportedError, match=r"%rs1 of 16 bits read as \.f32"):
        Emulator(module, module.kernels()[0])
