"""Two builds of a kernel side by side: identical, renamed, other constants, other structure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function
from ptxlint.structure.alignment import Alignment, align
from ptxlint.structure.canonical import canonical

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
KERNELS = ("softmax", "matmul_dot_fp16", "flash_fwd", "welford", "cumsum")


def text_of(name: str, arch: str = "sm_80") -> str:
    return (FIXTURES / arch / f"{name}.ptx").read_text()


def kernel(text: str) -> Function:
    return parse(text).kernels()[0]


def aligned(old: str, new: str) -> Alignment:
    return align(kernel(old), kernel(new))


def renamed(text: str) -> str:
    """Other registers, labels, parameters, kernel name, file names and lines."""
    text = re.sub(r"%(rd|rs|r|p|f|fd|b)(\d+)", lambda m: f"%{m[1]}{int(m[2]) + 7}", text)
    text = re.sub(r"%(\w+)<(\d+)>", lambda m: f"%{m[1]}<{int(m[2]) + 7}>", text)
    text = text.replace("$L__BB", "$L__other").replace("_param_", "_argument_")
    text = re.sub(r"(\w+)_kernel\b", r"\1_renamed", text)
    text = re.sub(r"\.loc\t(\d+) (\d+)", lambda m: f".loc\t{m[1]} {int(m[2]) + 40}", text)
    return re.sub(r'"[^"]*\.py"', '"elsewhere/other.py"', text)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_identical_to_itself_and_renamed_otherwise(name: str) -> None:
    text = text_of(name)
    assert aligned(text, text) == Alignment("identical", (), (), ())
    other = renamed(text)
    assert other != text
    assert aligned(text, other) == Alignment("renamed", (), (), ())
    # Debugging information alone changes no name.
    moved = re.sub(r"\.loc\t(\d+) (\d+)", lambda m: f".loc\t{m[1]} {int(m[2]) + 40}", text)
    assert aligned(text, moved).kind == "identical"


def test_another_constant_is_named_with_both_values() -> None:
    found = aligned(text_of("leaky_relu"), text_of("leaky_relu_buggy"))
    assert found.kind == "constants"
    values = {(c.old_constant.as_float(), c.new_constant.as_float()) for c in found.changed}
    assert {(round(a, 6), round(b, 6)) for a, b in values} == {(0.01, 0.1)}
    assert found.removed == found.added == ()


def test_a_fill_is_a_constant_whatever_its_sign() -> None:
    found = aligned(text_of("softmax"), text_of("softmax_buggy"))
    assert found.kind == "constants"
    assert {c.new_constant.value for c in found.changed} == {0}
    assert {c.old_constant.value & 0xFFFFFFFF for c in found.changed} == {0xFF800000}


def test_a_missing_operation_is_structure() -> None:
    found = aligned(text_of("l2norm"), text_of("l2norm_buggy"))
    assert found.kind == "structural"
    assert [i.shape.mnemonic for i in found.removed] == ["sqrt.approx.ftz.f32"]
    assert found.added == ()
    assert found.changed == ()


def test_registers_that_are_exchanged_are_no_renaming() -> None:
    text = text_of("softmax")
    first = re.search(r"sub\.f32 \t(%\w+), (%\w+), (%\w+);", text)
    assert first is not None
    turned = f"sub.f32 \t{first[1]}, {first[3]}, {first[2]};"
    found = aligned(text, text.replace(first[0], turned, 1))
    assert found.kind == "structural"


def test_parameters_count_by_place_and_type() -> None:
    two = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b32 a, "
        ".param .b32 b)\n{\n  .reg .b32 %r<2>;\n  ld.param.b32 %r1, [a];\n  ret;\n}\n"
    )
    assert aligned(two, two.replace("[a]", "[b]")).kind == "structural"
    assert aligned(two, two.replace("b32 a", "b32 x").replace("[a]", "[x]")).kind == "renamed"
    assert aligned(two, two.replace(".b32 b", ".b64 b")).kind == "structural"


def test_hashes_of_different_fixtures_differ() -> None:
    texts = {path.stem: path.read_text() for path in sorted((FIXTURES / "sm_80").glob("*.ptx"))}
    hashes = {name: canonical(kernel(text)).identity for name, text in texts.items()}
    groups: dict[str, list[str]] = {}
    for name, value in hashes.items():
        groups.setdefault(value, []).append(name)
    # Nothing but kernels that are compiled alike share one.
    assert len(groups) > 0.9 * len(texts), [g for g in groups.values() if len(g) > 1]
