"""`ptxlint diff`: pairs, what has changed in them, what fails, in each format."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from ptxlint.cli import main
from ptxlint.cli.comparing import opinions
from ptxlint.comparison import tolerance
from ptxlint.comparison.changes import values
from ptxlint.comparison.pairing import pair
from ptxlint.comparison.records import load
from ptxlint.comparison.report import NothingError, compare
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler
from ptxlint.ir.operand import Immediate
from tests.comparison.schemas import diff_data, valid
from tests.comparison.two_rows import NEUTRAL, two_rows

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "ptx"
PAIRS = {
    "attention": "attention", "flash_attention": "flash_attention", "gelu": "gelu",
    "l2norm": "l2norm", "leaky_relu": "leaky_relu", "matmul": "matmul", "rmsnorm": "rmsnorm",
    "silu": "silu", "softmax": "softmax",
}  # fmt: skip


def path(name: str, arch: str = "sm_80") -> str:
    return str(FIXTURES / arch / f"{name}.ptx")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main(["diff", *words])
    out, err = capsys.readouterr()
    code = raised.value.code
    assert isinstance(code, int)
    return code, out, err


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_a_fault_that_was_seeded_is_told_apart(name: str, arch: str) -> None:
    report = compare([path(name, arch)], [path(f"{name}_buggy", arch)], ptxas=None)
    diff_data(report)
    (found,) = report.differences
    assert found.kind in ("constants", "structural")
    if name in ("softmax", "leaky_relu"):
        assert found.kind == "constants"


def test_constants_are_told_as_floats_at_python_lines(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, path("softmax"), path("softmax_buggy"), "--no-exact")
    assert (
        "-inf → 0 at fixtures/kernels/softmax.py:15 → fixtures/kernels/softmax_buggy.py:15" in out
    )
    _, out, _ = run(capsys, path("leaky_relu"), path("leaky_relu_buggy"), "--no-exact")
    assert re.search(r"0\.01 → 0\.1 at fixtures/kernels/leaky_relu\.py:\d+ .* \(8 times\)", out)


def test_a_verdict_that_gets_worse_is_a_regression(capsys: pytest.CaptureFixture[str]) -> None:
    words = (path("softmax"), path("softmax_buggy"), "--no-exact", "--fail-on", "verdicts")
    code, out, _ = run(capsys, *words)
    assert code == 1
    assert "worse: MSK201 1 proved → 1 refuted" in out
    code, out, _ = run(capsys, path("softmax_buggy"), path("softmax"), *words[2:])
    assert code == 0
    assert "worse" not in out


def test_a_kernel_against_itself_is_identical(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, path("softmax"), path("softmax"), "--fail-on", "structural,constants"
    )
    assert code == 0
    assert "1 pair: 1 identical; 0 removed, 0 added" in out


def renamed(text: str, seed: int) -> str:
    """A rebuild with other names, shifted lines and another file name."""
    text = re.sub(r"%(rd|rs|r|p|f|fd)(\d+)", lambda m: f"%{m[1]}{int(m[2]) + seed}", text)
    text = re.sub(r"%(\w+)<(\d+)>", lambda m: f"%{m[1]}<{int(m[2]) + seed}>", text)
    text = re.sub(r"\.loc\t(\d+) (\d+)", lambda m: f".loc\t{m[1]} {int(m[2]) + seed}", text)
    text = text.replace("$L__BB", f"$L__B{seed}_").replace("_param_", f"_p{seed}_")
    return re.sub(r'"[^"]*\.py"', f'"v{seed}.py"', text)


@pytest.mark.parametrize("name", ["flash_fwd", "matmul_dot_fp16", "layer_norm_fwd"])
def test_ten_rebuilds_are_renamed_only(tmp_path: Path, name: str) -> None:
    text = Path(path(name)).read_text()
    for seed in range(1, 11):
        (tmp_path / f"{name}.ptx").write_text(renamed(text, seed))
        report = compare([path(name)], [str(tmp_path)], ptxas=None)
        assert [d.kind for d in report.differences] == ["renamed"]


def test_kernels_are_paired_by_name_then_by_what_they_do(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, names in ((old, ("softmax", "gelu", "silu")), (new, ("softmax", "silu", "argmax"))):
        folder.mkdir()
        for name in names:
            shutil.copy(path(name), folder / f"{name}.ptx")
    text = (old / "gelu.ptx").read_text()
    (new / "other.ptx").write_text(text.replace("gelu_kernel", "another"))
    found = pair(load([str(old)]).kernels, load([str(new)]).kernels)
    assert [(a.name, b.name) for a, b in found.pairs] == [
        ("gelu_kernel", "another"), ("silu_kernel", "silu_kernel"),
        ("softmax_kernel", "softmax_kernel"),
    ]  # fmt: skip
    assert found.removed == []
    assert [k.name for k in found.added] == ["argmax_kernel"]


def test_of_several_builds_of_one_name_the_equal_ones_go_together(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, order in ((old, "abc"), (new, "cab")):
        folder.mkdir()
        for at, letter in enumerate(order):
            source = {"a": "matmul_dot_fp16", "b": "matmul_dot_bf16", "c": "matmul_dot_tf32"}[
                letter
            ]
            shutil.copy(path(source), folder / f"{at}.ptx")
    report = compare([str(old)], [str(new)], ptxas=None)
    assert [d.kind for d in report.differences] == ["identical"] * 3


def test_resources_come_from_the_assembler_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        find_assembler((8, 8))
    except ToolError as error:
        pytest.skip(str(error))
    _, out, _ = run(capsys, path("matmul"), path("matmul_buggy"), "--no-verdicts")
    assert re.search(r"registers \d+ → \d+ \(assembler log\)", out)


def test_cubins_beside_the_files_are_used_and_compared(tmp_path: Path) -> None:
    try:
        assembler = find_assembler((8, 8))
    except ToolError as error:
        pytest.skip(str(error))
    for name in ("leaky_relu", "leaky_relu_buggy"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(path(name), folder / "kernel.ptx")
        done = assemble(Path(path(name)).read_text(), "sm_80", assembler)
        (folder / "kernel.cubin").write_bytes(done.cubin)
    report = compare(
        [str(tmp_path / "leaky_relu")], [str(tmp_path / "leaky_relu_buggy")], ptxas=None
    )
    (found,) = report.differences
    assert found.machine is not None
    assert found.machine.kind == "constants"
    assert found.old.resources([]).registers is not None
    assert found.old.resources([]).registers.source == "cubin"  # type: ignore[union-attr]


def test_json_markdown_and_sarif_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    words = (path("softmax"), path("softmax_buggy"), "--no-exact", "--fail-on", "constants")
    code, out, _ = run(capsys, *words, "--format", "json")
    assert code == 1
    (told,) = valid("diff", out)["pairs"]
    assert told["kind"] == "constants"
    assert told["fails_on"] == ["constants"]
    assert [(c["old"], c["new"]) for c in told["constants"]] == [("-inf", "0")]
    assert told["constants"][0]["new_place"] == {
        "path": "fixtures/kernels/softmax_buggy.py", "line": 15,
    }  # fmt: skip
    _, out, _ = run(capsys, *words, "--format", "markdown")
    assert "### ptxlint diff: **fails**" in out
    assert "| `softmax_kernel (sm_80)` | constants only | constants |" in out
    _, out, _ = run(capsys, *words, "--format", "sarif")
    results = json.loads(out)["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("DIF801", "error"), ("DIF804", "note")]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("structural", []), ("constants", ["constants"]), ("registers+1", []),
        ("verdicts, constants", ["constants"]), ("", []),
    ],
)  # fmt: skip
def test_what_fails_is_what_was_named(words: str, names: list[str]) -> None:
    report = compare([path("leaky_relu")], [path("leaky_relu_buggy")], ptxas=None)
    (found,) = report.differences
    limits = tolerance.read(words)
    assert tolerance.failed(found, limits) == names


def test_measures_may_grow_by_so_much() -> None:
    report = compare([path("l2norm_buggy")], [path("l2norm")], ptxas=None)
    (found,) = report.differences
    assert tolerance.failed(found, tolerance.read("instructions+1")) == ["instructions+1"]
    assert tolerance.failed(found, tolerance.read("instructions+2")) == []
    assert tolerance.failed(found, tolerance.read("instructions+10%")) == []
    with pytest.raises(tolerance.ToleranceError, match="'speed' is none of structural"):
        tolerance.read("speed")


def test_constants_with_the_bits_of_floats_are_told_as_floats() -> None:
    (mov,) = (
        parse(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r;\n"
            "mov.b32 %r, 1;\n}\n"
        )
        .kernels()[0]
        .instrs
    )
    bits = Immediate("0x3f800000", "int", 0x3F800000)
    assert values(bits, Immediate("0", "int", 0), mov) == ("1", "0")
    assert values(Immediate("-8388608", "int", -8388608), bits, mov) == ("-inf", "1")
    assert values(Immediate("128", "int", 128), Immediate("0x40", "int", 64), mov) == (
        "128",
        "0x40",
    )


def test_constants_that_are_close_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    (mov,) = (
        parse(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 %f;\n"
            "mov.f32 %f, 0f3F800000;\n}\n"
        )
        .kernels()[0]
        .instrs
    )

    def told(old: int, new: int) -> tuple[str, str]:
        pair = (Immediate(f"0f{bits:08X}", "f32", bits) for bits in (old, new))
        return values(*pair, mov)

    assert told(0x3F800000, 0x3F000000) == ("1", "0.5")
    assert told(0x3F800000, 0x3F800001) == ("1", "1.00000012")
    assert told(0x3FB8AA3B, 0x3FB8AA3C) == ("1.44269502", "1.44269514")
    assert told(0x7FC00000, 0x7FC00001) == ("nan (0f7FC00000)", "nan (0f7FC00001)")
    assert told(0x00000000, 0x80000000) == ("0", "-0")


def test_nothing_to_compare_and_unreadable_sides_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    code, _, err = run(capsys, path("softmax"), str(empty))
    assert code == 2
    assert f"{empty}: there is nothing to compare" in err
    assert "Traceback" not in err
    with pytest.raises(NothingError):
        compare([str(tmp_path / "nowhere")], [path("softmax")])
    both = tmp_path / "both"
    both.mkdir()
    shutil.copy(path("softmax"), both / "a.ptx")
    (both / "b.ptx").write_text("this is no PTX at all {\n")
    code, out, _ = run(capsys, path("softmax"), str(both), "--no-exact")
    assert code == 2
    assert "1 identical" in out
    assert "not compared: " in out


def test_sides_with_nothing_in_common_list_both(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, path("softmax"), path("argmax"), "--no-exact")
    assert code == 2
    assert "softmax_kernel (sm_80): only old" in out
    assert "argmax_kernel (sm_80): only new" in out
    assert "not compared: no kernel of one side has the name and architecture of one of" in out


def test_an_assembler_that_is_named_and_cannot_do_it_is_a_fault_and_the_rest_is_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (path("matmul"), path("matmul_buggy"), "--no-verdicts", "--ptxas", "/no/such/ptxas")
    code, out, _ = run(capsys, *words)
    assert code == 2
    assert "resources are not exact: /no/such/ptxas: there is no such program" in out
    assert out.count("not compared: ") == 1
    assert "only old" in out


def test_no_assembler_at_all_is_a_note(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptxlint.frontends.toolkit._candidates", lambda: iter(()))
    code, out, _ = run(capsys, path("softmax"), path("softmax_buggy"), "--no-verdicts")
    assert code == 0
    assert "note         resources are not exact: no ptxas is found" in out
    assert "not compared" not in out


def test_a_folder_that_cannot_be_listed_is_told_and_the_rest_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a user who may read everything, too: listing itself fails."""
    for side, name in (("a", "softmax"), ("b", "softmax_buggy")):
        (tmp_path / side / "closed").mkdir(parents=True)
        shutil.copy(path(name), tmp_path / side / "k.ptx")
        shutil.copy(path("gelu"), tmp_path / side / "closed" / "k.ptx")
    scan = os.scandir

    def refuse(folder: str) -> object:
        if str(folder).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    words = (str(tmp_path / "a"), str(tmp_path / "b"), "--no-exact", "--no-verdicts")
    code, out, _ = run(capsys, *words)
    assert code == 2
    assert "1 pair: 1 constants only" in out
    assert f"not compared: {tmp_path}/a/closed: cannot list: Permission denied" in out
    code, out, _ = run(capsys, *words, "--format", "json")
    assert [f.split(": ", 1)[1] for f in json.loads(out)["faults"]] == [
        "cannot list: Permission denied"
    ] * 2


def test_standard_input_is_one_side_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "-", "-")
    assert (code, out) == (2, "")
    assert "standard input can be one side alone" in err


def test_what_gets_worse_at_one_line_is_told_though_another_gets_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.ptx", tmp_path / "new.ptx"
    old.write_text(two_rows("0", NEUTRAL))
    new.write_text(two_rows(NEUTRAL, "0", line=20))
    words = (str(old), str(new), "--no-exact", "--fail-on", "verdicts")
    code, out, _ = run(capsys, *words)
    assert code == 1
    assert "worse: MSK201 at two_rows.py:21 1 proved → 1 refuted" in out
    assert "MSK201" not in out.split("worse: MSK201", 1)[1]
    (found,) = diff_data(compare([str(old)], [str(new)], opinions=opinions(), ptxas=None))["pairs"]
    (change,) = (v for v in found["verdicts"] if v["rule"] == "MSK201")
    assert change["place"] == {"path": "two_rows.py", "line": 21}
    new.write_text(two_rows("1", NEUTRAL, line=20))
    code, out, _ = run(capsys, *words)
    assert (code, "worse: " in out) == (0, False)


def test_a_guard_that_the_assembler_lost_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = two_rows(NEUTRAL, NEUTRAL)
    for side, code_of in (("old", text), ("new", re.sub(r"@%p1 (?=ld)", "", text))):
        (tmp_path / side).mkdir()
        (tmp_path / side / "k.ptx").write_text(text)
        try:
            found = assemble(code_of, "sm_80", find_assembler((8, 8)))
        except ToolError as error:
            pytest.skip(str(error))
        (tmp_path / side / "k.cubin").write_bytes(found.cubin)
    words = ("--fail-on", "guards,verdicts,structural")
    code, out, _ = run(capsys, str(tmp_path / "old"), str(tmp_path / "new"), *words)
    assert code == 1
    assert "PTX identical, machine code structural" in out
    assert "guarded global load 2 → 0" in out
    assert "worse: MSK206 none → " in out
    assert "fails on guards, verdicts: two_rows" in out
    code, out, _ = run(capsys, str(tmp_path / "new"), str(tmp_path / "old"), *words)
    assert (code, "worse: " in out) == (0, False)


def test_resources_that_another_log_or_metadata_says_of_the_same_code_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = (
        "ptxas info    : Compiling entry function 'softmax_kernel' for 'sm_80'\n"
        "ptxas info    : Function properties for softmax_kernel\n"
        "    {0} bytes stack frame, {0} bytes spill stores, {0} bytes spill loads\n"
        "ptxas info    : Used {1} registers, 376 bytes cmem[0]\n"
    )
    for side, numbers in (("old", (0, 25)), ("new", (16, 33))):
        (tmp_path / side).mkdir()
        for suffix in ("ptx", "json"):
            shutil.copy(FIXTURES / "sm_80" / f"softmax.{suffix}", tmp_path / side)
        (tmp_path / side / "softmax.log").write_text(log.format(*numbers))
    sides = str(tmp_path / "old"), str(tmp_path / "new")
    words = ("--no-exact", "--fail-on", "registers+8,spills,stack,structural")
    code, out, _ = run(capsys, *sides, *words)
    assert code == 1
    assert "softmax_kernel (sm_80): identical" in out
    assert "registers 25 → 33 (assembler log)" in out
    assert "fails on registers+8, spills, stack: softmax_kernel" in out
    assert run(capsys, *reversed(sides), *words)[0] == 0
    shutil.copy(tmp_path / "old" / "softmax.log", tmp_path / "new")
    data = json.loads((tmp_path / "new" / "softmax.json").read_text())
    (tmp_path / "new" / "softmax.json").write_text(json.dumps(data | {"shared": 90_000}))
    code, out, _ = run(capsys, *sides, "--no-exact", "--fail-on", "shared,occupancy,registers")
    assert code == 1
    assert "fails on shared, occupancy: softmax_kernel" in out
