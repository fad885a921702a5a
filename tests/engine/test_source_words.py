"""What the source calls things: parameters and masks, and when the PTX name stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ptxlint
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_ir import IrParameter, parse_parameters

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "ptx" / "sm_90"
POINTER = ".param .u64 .ptr .global .align 1"
IR = """\
#loc = loc("k.py":3:1)
#loc4 = loc(unknown)
#loc7 = loc("size"(#loc))
module {
  tt.func public @other(%x: i32 loc("wrong"(#loc))) attributes {noinline = false} {
  tt.func public @k(ARGUMENTS) attributes {noinline = false} {
"""
X, N, S = (
    '%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc))',
    "%arg1: i32 loc(#loc7)",
    '%s: f16 loc("s"(#loc))',
)
PYTHON = """\
import triton.language as tl

@triton.jit
def k(x_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    tl.store(x_ptr + i, x * scale, i < n)
"""


def words(folder: Path, *types: str, line: int = 4, body: str = "") -> KernelWords:
    """The words of a kernel with parameters of these types, at a line of `k.py`."""
    params = ", ".join(
        f"{kind} k_param_{at}{dims}" for at, (kind, dims) in enumerate(map(_type, types))
    )
    text = (
        f".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k({params})\n{{\n"
        f'    .reg .b64 %rd<2>;\n    .loc 1 {line} 0\n{body}    ret;\n}}\n.file 1 "k.py"\n'
    )
    module = parse(text, str(folder / "k.ptx"))
    assert not module.problems
    return KernelWords(module, module.functions[0], PythonReader(PythonSources()))


def _type(text: str) -> tuple[str, str]:
    kind, bracket, dims = text.partition("[")
    return kind, bracket + dims


def names(found: KernelWords, count: int) -> list[str]:
    """What the first parameters are called."""
    return [found.parameter(f"k_param_{at}") for at in range(count)]


def write_ir(folder: Path, *arguments: str, suffix: str = ".ttir") -> None:
    """The IR beside the kernel."""
    text = IR.replace("ARGUMENTS", ", ".join(arguments))
    (folder / "k").with_suffix(suffix).write_text(text)


U32, F32, HALF = ".param .u32", ".param .f32", ".param .align 2 .b8[2]"
PTX = ["k_param_0", "k_param_1", "k_param_2"]


@pytest.mark.parametrize("suffix", [".ttir", ".source", ".ttgir"])
@pytest.mark.parametrize("scratch", [0, 1, 2])
def test_names_come_from_the_ir_beside_the_ptx(tmp_path: Path, suffix: str, scratch: int) -> None:
    write_ir(tmp_path, X, N, S, suffix=suffix)
    found = words(tmp_path, POINTER, U32, HALF, *[POINTER] * scratch)
    assert names(found, 5) == ["x_ptr", "size", "s", "k_param_3", "k_param_4"]


@pytest.mark.parametrize(
    "types",
    [
        (POINTER, F32, HALF, U32),
        (POINTER, ".param .u64", HALF),
        (U32, U32, HALF),
        (POINTER, U32),
        (POINTER, U32, HALF, POINTER, POINTER, POINTER),
        (POINTER, U32, ".param .u32"),
    ],
    ids=["no scratch pointer", "64 bits", "no pointer", "one fewer", "three more", "no half"],
)
def test_names_of_another_build_are_not_taken(tmp_path: Path, types: tuple[str, ...]) -> None:
    write_ir(tmp_path, X, N, S)
    assert names(words(tmp_path, *types), 3) == PTX


def test_two_parameters_of_one_name_stay_as_they_are(tmp_path: Path) -> None:
    write_ir(tmp_path, X, X)
    assert names(words(tmp_path, POINTER, POINTER), 2) == PTX[:2]


def test_parts_of_tuples_and_descriptors_are_named_as_in_python() -> None:
    text = IR.replace(
        "ARGUMENTS",
        '%t.1: f32 loc("t.1"(#loc)), %d: !tt.tensordesc<64x64xf32> loc("d"(#loc)), '
        '%d.shape.0: i32 loc("d.shape.0"(#loc))',
    )
    assert parse_parameters(text, "k") == (
        IrParameter("t[1]", "f32"),
        IrParameter("d", "!tt.tensordesc<64x64xf32>"),
        IrParameter("d.shape[0]", "i32"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tt.func public @k(",
        'tt.func public @k(%x: i32 loc("x"',
        "tt.func public @k(%x: i32)",
        "tt.func public @k(%x: i32 loc(#loc9))",
        "tt.func public @k(%x: i32 loc(unknown))",
        'tt.func public @k(%x: i32 loc("a b; c"(#loc)))',
        'tt.func public @kk(%x: i32 loc("x"(#loc)))',
        "tt.func public @k(" + "((" * 5000,
        'tt.func public @k("' + '"' * 5001,
    ],
)
def test_an_ir_that_does_not_name_all_is_none(text: str) -> None:
    assert parse_parameters(text, "k") is None


def test_names_come_from_the_signature_in_python(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(PYTHON)
    assert names(words(tmp_path, POINTER, U32, F32, POINTER, POINTER), 4) == [
        "x_ptr", "n", "scale", "k_param_3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "types", "line"),
    [
        ("", "", (POINTER, U32, POINTER, POINTER), 4),
        ("", "", (POINTER, U32, F32, POINTER), 4),
        ("", "", (POINTER, U32, F32, U32, POINTER), 4),
        ("", "", (POINTER, POINTER, F32, POINTER, POINTER), 4),
        ("", "", (POINTER, U32, F32, POINTER, POINTER), 5),
        ("def k(", "def other(", (POINTER, U32, F32, POINTER, POINTER), 4),
        ("def k(", "def k(:", (POINTER, U32, F32, POINTER, POINTER), 4),
        ("scale, BLOCK", "*scale, BLOCK", (POINTER, U32, F32, POINTER, POINTER), 4),
        ("x * scale", "x * scale[0]", (POINTER, U32, F32, POINTER, POINTER), 4),
        ("x_ptr + i, mask", "x_ptr, mask", (U32, POINTER, F32, POINTER, POINTER), 4),
    ],
    ids=[
        "an argument was dropped", "one scratch pointer", "a scratch number", "a number compared",
        "another line", "another name", "no Python", "any number", "a tuple", "an address loaded",
    ],
)  # fmt: skip
def test_a_signature_that_is_not_certainly_the_kernels_gives_no_names(
    tmp_path: Path, old: str, new: str, types: tuple[str, ...], line: int
) -> None:
    (tmp_path / "k.py").write_text(PYTHON.replace(old, new) if old else PYTHON)
    assert names(words(tmp_path, *types, line=line), 3) == PTX


@pytest.mark.parametrize("annotation", ["tl.constexpr", "constexpr", '"tl.constexpr"'])
def test_constants_take_no_parameter(tmp_path: Path, annotation: str) -> None:
    (tmp_path / "k.py").write_text(PYTHON.replace("tl.constexpr", annotation))
    assert names(words(tmp_path, POINTER, U32, F32, POINTER, POINTER), 1) == ["x_ptr"]


def test_texts_are_translated_by_whole_names(tmp_path: Path) -> None:
    arguments = [f'%a{at}: i32 loc("a{at}"(#loc))' for at in range(11)]
    write_ir(tmp_path, *arguments)
    found = words(tmp_path, *[U32] * 11)
    text = "`k_param_1`, k_param_10+4 and my_k_param_1, k_param_99"
    assert found.translate(text) == "`a1`, a10+4 and my_k_param_1, k_param_99"


def mask(folder: Path, source: str, line: int, column: int) -> str:
    """The mask of the load at a place of `k.py`."""
    (folder / "k.py").write_text(source)
    body = f"    .loc 1 {line} {column}\n    ld.global.b64 %rd1, [%rd1];\n"
    found = words(folder, POINTER, body=body)
    return found.mask(found._function.instrs[0])


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "expected"),
    [
        ("", "", 7, 9, "i < n"),
        ("", "", 7, 17, "i < n"),
        ("x_ptr + i, mask=mask", "tl.load(x_ptr, i > 0) + i, mask=mask", 7, 17, "i > 0"),
        ("x_ptr + i, mask=mask", "tl.load(x_ptr, i > 0) + i, mask=mask", 7, 18, ""),
        ("", "", 8, 5, ""),
        ("", "", 6, 5, ""),
        ("mask=mask, ", "", 7, 9, ""),
        ("mask=mask", "mask=mask & (i > 0)", 7, 9, "mask & (i > 0)"),
        ("mask=mask", "mask=(i\n        < n)", 7, 9, "i < n"),
        ("mask=mask", "mask=(i  # lanes\n        < n)", 7, 9, ""),
        ("tl.load(", "tl.load(*", 7, 9, "i < n"),
        ("    x = ", "    mask = mask & (i > 0)\n    x = ", 8, 9, "mask"),
        ("    mask = i < n\n    x =", "    for mask in y:\n      x =", 7, 11, "mask"),
        ("other=0.0)", "other=0.0).to(tl.float32)", 7, 9, "i < n"),
    ],
)
def test_masks_are_quoted(
    tmp_path: Path, old: str, new: str, line: int, column: int, expected: str
) -> None:
    source = PYTHON.replace(old, new, 1) if old else PYTHON
    assert mask(tmp_path, source, line, column) == expected


def test_a_mask_that_is_a_parameter_is_called_by_its_name(tmp_path: Path) -> None:
    source = PYTHON.replace("    mask = i < n\n", "").replace("scale, BLOCK", "mask, BLOCK")
    assert mask(tmp_path, source, 6, 9) == "mask"


def test_findings_and_verdicts_name_the_sources_parameters() -> None:
    report = ptxlint.check(FIXTURES / "softmax_buggy.ptx")
    text = report.to_json()
    assert "n_cols" in text
    assert "softmax_kernel_param" not in text


def test_names_do_not_change_a_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = ptxlint.check(FIXTURES / "softmax_buggy.ptx")
    monkeypatch.chdir(tmp_path)
    bare = tmp_path / "softmax_buggy.ptx"
    shutil.copy(FIXTURES / "softmax_buggy.ptx", bare)
    alone = ptxlint.check(bare)
    assert [f.fingerprint for f in alone.findings] == [f.fingerprint for f in named.findings]
    assert "softmax_kernel_param_4" in alone.to_json()


def test_files_named_in_debug_information_are_only_read(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{PYTHON}")
    found = words(tmp_path, POINTER, U32, F32, POINTER, POINTER, line=5)
    assert names(found, 1) == ["x_ptr"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["x = " + "(" * 50_000, "\0", "def k(x):\n" + " " * 99 + "\n\tx"])
def test_a_source_that_cannot_be_parsed_gives_no_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.py").write_text(text)
    assert names(words(tmp_path, POINTER, U32, F32, POINTER, POINTER), 3) == PTX
