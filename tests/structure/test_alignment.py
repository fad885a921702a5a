"""Two builds of a kernel side by side: identical, renamed, other constants, other structure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.structure.alignment import Alignment, Redeclared, align
from ptxlint.structure.canonical import Kernel, canonical

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
KERNELS = ("softmax", "matmul_dot_fp16", "flash_fwd", "welford", "cumsum")


def text_of(name: str, arch: str = "sm_80") -> str:
    return (FIXTURES / arch / f"{name}.ptx").read_text()


def kernel(text: str) -> Kernel:
    module = parse(text)
    return Kernel(module.kernels()[0], module)


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
    assert found.removed == found.added == ()
    ((old, new),) = found.rewired
    assert old.shape.mnemonic == "sub.f32"
    assert text[old.offset :].startswith(first[0])
    assert [old.uses[0].name, old.uses[1].name] == [new.uses[1].name, new.uses[0].name]


def test_parameters_count_by_place_and_type() -> None:
    two = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b32 a, "
        ".param .b32 b)\n{\n  .reg .b32 %r<2>;\n  ld.param.b32 %r1, [a];\n  ret;\n}\n"
    )
    assert aligned(two, two.replace("[a]", "[b]")).kind == "structural"
    assert aligned(two, two.replace("b32 a", "b32 x").replace("[a]", "[x]")).kind == "renamed"
    found = aligned(two, two.replace(".b32 b", ".b64 b"))
    assert found.kind == "structural"
    assert found.declared == (Redeclared("parameter 2", ".param .b32", ".param .b64"),)


CALLING = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 4 .b32 table[3] = {1, 2, 3};
.func (.param .b32 r) helper (.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.s32 %r2, %r1, 5;
  st.param.b32 [r], %r2;
  ret;
}
.visible .entry k(.param .b32 a)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 tile[64];
  .param .b32 x;
  .param .b32 y;
  ld.param.b32 %r1, [a];
  mov.b64 %rd1, table;
  st.shared.b32 [tile], %r1;
  st.param.b32 [x], %r1;
  call.uni (y), helper, (x);
  ld.param.b32 %r2, [y];
  ret;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("%r1, 5;", "%r1, 6;", "constants"), ("add.s32 %r2", "sub.s32 %r2", "structural"),
        ("{1, 2, 3}", "{1, 2, 4}", "constants"), ("tile[64]", "tile[96]", "structural"),
        (".shared .align 4", ".shared .align 16", "structural"),
        ("helper", "assistant", "renamed"), ("table", "numbers", "renamed"),
        ("tile", "cells", "renamed"), ("vprintf", "malloc", "identical"),
        (".visible .entry", ".entry", "identical"),
    ],
)  # fmt: skip
def test_what_a_kernel_calls_and_names_belongs_to_it(old: str, new: str, kind: str) -> None:
    found = aligned(CALLING, CALLING.replace(old, new))
    assert found.kind == kind
    if kind == "constants":
        assert found.changed or found.declared == (Redeclared("array `table`, number 3", "3", "4"),)
    if kind == "structural":
        assert found.added or found.declared


def test_a_function_without_a_body_is_its_name() -> None:
    text = CALLING.replace("call.uni (y), helper, (x);", "call.uni (y), vprintf, (x, x);")
    other = text.replace("vprintf", "malloc")
    assert aligned(text, other).kind == "structural"
    assert len(aligned(text, other).rewired) == 1
    # Nobody calls it here.
    assert aligned(text, text.replace("%r1, 5;", "%r1, 6;")).kind == "identical"


def test_hashes_of_different_fixtures_differ() -> None:
    texts = {path.stem: path.read_text() for path in sorted((FIXTURES / "sm_80").glob("*.ptx"))}
    hashes = {name: canonical(kernel(text)).identity for name, text in texts.items()}
    groups: dict[str, list[str]] = {}
    for name, value in hashes.items():
        groups.setdefault(value, []).append(name)
    # Nothing but kernels that are compiled alike share one.
    assert len(groups) > 0.9 * len(texts), [g for g in groups.values() if len(g) > 1]
