"""`ptxlint diff` of machine code: cubins, listings, fat binaries, and PTX against them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from ptxlint import check
from ptxlint.cli import main
from ptxlint.comparison import tolerance
from ptxlint.comparison.changes import constants
from ptxlint.comparison.difference import Difference
from ptxlint.comparison.report import compare
from ptxlint.frontends import toolkit
from ptxlint.frontends.discovery import Input, discover
from ptxlint.reporters.diff_words import lines
from tests.comparison.machine_builds import assembled, cubin, dump, fatbin, fixture, listing
from tests.comparison.schemas import diff_data

BODY = (
    "7: S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x40, PT", "@P0 BRA `(.L_x_1)",
    "8: LDG.E R4, desc[UR4][R2.64]", "FMUL R4, R4, 0.0099999997764825820923", ".L_x_1:",
    "9: STG.E desc[UR4][R2.64], R4", "EXIT",
)  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main(["diff", *words])
    out, err = capsys.readouterr()
    assert isinstance(raised.value.code, int)
    assert "Traceback" not in err
    return raised.value.code, out, err


def of(old: str, new: str, ptxas: str | None = None) -> Difference:
    report = compare([old], [new], ptxas=ptxas)
    assert report.faults == ()
    diff_data(report)
    (found,) = report.differences
    return found


def files(folder: Path, *texts: str) -> list[str]:
    paths = [folder / f"{number}.sass" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return list(map(str, paths))


def changed(old: str, new: str) -> tuple[str, ...]:
    """The body with one thing in it replaced."""
    found = tuple(line.replace(old, new) for line in BODY)
    assert found != BODY
    return found


def renumbered(text: str) -> str:
    """Other registers, predicates, labels and lines."""
    text = re.sub(r"\bR(\d+)", lambda m: f"R{int(m[1]) + 8}", text)
    text = re.sub(r"\bP(\d)", lambda m: f"P{int(m[1]) + 2}", text)
    text = re.sub(r"line (\d+)", lambda m: f"line {int(m[1]) + 30}", text)
    return text.replace(".L_x_", ".L_y_").replace("a.py", "b.py")


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    base = listing(*BODY)
    moved = renumbered(base)
    assert moved != base
    cases = {
        "identical": listing(*BODY, path="other.py"),
        "renamed": moved,
        "constants": listing(*changed("0.0099999997764825820923", "0.10000000149011611938")),
        "structural": listing(*changed("ISETP.GE", "ISETP.GT")),
    }
    for kind, text in cases.items():
        old, new = files(tmp_path, base, text)
        found = of(old, new)
        assert (found.kind, found.code.level) == (kind, "sass")


def test_padding_at_the_end_is_no_difference(tmp_path: Path) -> None:
    old, new = files(tmp_path, listing(*BODY, "NOP"), listing(*BODY, "NOP", "NOP", "NOP"))
    assert of(old, new).kind == "identical"
    old, new = files(tmp_path, listing(*BODY, "NOP"), listing("NOP", *BODY))
    assert of(old, new).kind == "structural"


def test_constants_of_machine_code_have_values_and_lines(tmp_path: Path) -> None:
    other = changed("0.0099999997764825820923", "0.10000000149011611938")
    old, new = files(tmp_path, listing(*BODY), listing(*other, path="b.py"))
    (change,) = constants(of(old, new).code)
    assert (change.old, change.new, change.mnemonic) == ("0.01", "0.1", "FMUL")
    assert (str(change.old_where), str(change.new_where)) == ("a.py:8", "b.py:8")


def test_f64_constants_keep_their_digits(tmp_path: Path) -> None:
    texts = (listing(f"7: DMUL R4, R2, {x}", "EXIT") for x in ("0.10000000000000001", "0.125"))
    (change,) = constants(of(*files(tmp_path, *texts)).code)
    assert (change.old, change.new) == ("0.1", "0.125")


def test_words_that_come_as_halves_are_told_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 0x3f80 and 0 are the halves of 1.0, 0x3dcc and 0xcccd those of 0.1.
    texts = [
        listing(f"7: HFMA2.MMA R5, -RZ, RZ, {halves}", "EXIT")
        for halves in ("1.875, 0", "1.44921875, -19.203125")
    ]
    old, new = files(tmp_path, *texts)
    (change,) = constants(of(old, new).code)
    assert (change.old, change.new, change.times) == ("1", "0.1", 1)
    _, out, _ = run(capsys, old, new, "--no-verdicts", "--format", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    assert result["message"]["text"].startswith("a constant is 0.1, was 1 in machine code")
    product = listing("7: HFMA2.MMA R5, R6, RZ, 1.875, 0", "EXIT")
    other = listing("7: HFMA2.MMA R5, R6, RZ, 1.5, 0", "EXIT")
    (change,) = constants(of(*files(tmp_path, product, other)).code)
    assert (change.old, change.new) == ("1.875", "1.5")


def test_a_cubin_of_a_fixture_names_the_python_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (cubin(tmp_path, name) for name in ("leaky_relu", "leaky_relu_buggy"))
    code, out, _ = run(capsys, old, new, "--fail-on", "constants", "--no-verdicts")
    assert code == 1
    assert "leaky_relu_kernel (sm_90a, machine code): constants only" in out
    assert re.search(
        r"0\.01 → 0\.1 at fixtures/kernels/leaky_relu\.py:15 → "
        r"fixtures/kernels/leaky_relu_buggy\.py:15 \(8 times\)",
        out,
    )
    assert "1 pair: 1 constants only (1 of machine code); 0 removed, 0 added" in out


def test_a_fill_shows_as_what_one_side_has_alone(tmp_path: Path) -> None:
    old, new = (cubin(tmp_path, name, "sm_80") for name in ("softmax", "softmax_buggy"))
    told = diff_data(compare([old], [new], ptxas=None))
    (pair,) = told["pairs"]
    assert (pair["level"], pair["kind"], pair["old"]["arch"]) == ("sass", "structural", "sm_80")
    fill = {
        "instruction": "MOV", "constant": "-inf", "times": 8,
        "place": {"path": "fixtures/kernels/softmax.py", "line": 15},
    }  # fmt: skip
    assert fill in pair["removed"]
    assert {"name": "move", "old": 15, "new": 11} in pair["instructions"]


def test_all_forms_of_one_kernel_are_identical(tmp_path: Path) -> None:
    path = cubin(tmp_path, "leaky_relu", "sm_80")
    data = Path(path).read_bytes()
    other = assembled("leaky_relu", "sm_90").cubin
    both = tmp_path / "both.fatbin"
    both.write_bytes(fatbin((80, data), (90, other)))
    forms = {"both.fatbin": both.read_bytes()}
    for name, options in {"g": ("-c", "-g"), "json": ("-json",)}.items():
        forms[f"{name}.sass"] = toolkit.disassemble(data, *options).encode()
    for name, found in forms.items():
        target = tmp_path / name
        target.write_bytes(found)
        report = compare([path], [str(target)], ptxas=None)
        assert [d.kind for d in report.differences] == ["identical"]
        assert [k.arch for k in report.added] == (["sm_90a"] if name == "both.fatbin" else [])


def test_a_dump_of_several_architectures_is_taken_apart(tmp_path: Path) -> None:
    body = ("FADD R4, R2, R3", "EXIT")
    text = dump(("sm_80", "k", body), ("sm_90a", "k", (*body, "NOP")), ("sm_90a", "other", body))
    (path,) = files(tmp_path, text)
    assert [i.target for i in discover([path], True) if isinstance(i, Input)] == ["sm_80", "sm_90a"]
    assert [i.path for i in discover([str(tmp_path)], machine_code=True)] == [path, path]
    report = check(path)
    assert [(k.name, k.arch) for k in report.kernels] == [
        ("k", "sm_80"), ("k", "sm_90a"), ("other", "sm_90a"),
    ]  # fmt: skip
    # Lines are those of the file.
    lines = text.split("\n")
    assert all(f"Function : {k.name}" in lines[k.line - 1] for k in report.kernels)
    assert report.summary.files == 1
    changed_text = text.replace("FADD R4, R2, R3", "FADD R4, R2, -R3", 1)
    (new,) = files(tmp_path, changed_text)
    (tmp_path / "old.sass").write_text(text)
    found = compare([str(tmp_path / "old.sass")], [new], ptxas=None)
    assert [(d.old.arch, d.kind) for d in found.differences] == [
        ("sm_80", "structural"), ("sm_90a", "identical"), ("sm_90a", "identical"),
    ]  # fmt: skip


def test_ptx_against_a_cubin_is_compared_as_machine_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = cubin(tmp_path, "leaky_relu")
    code, out, _ = run(capsys, fixture("leaky_relu_buggy"), built, "--no-verdicts")
    assert code == 0
    assert "(sm_90a, machine code): constants only" in out
    assert "0.1 → 0.01 at " in out
    note = "machine code is compared, since the old side is PTX and the new one is not: "
    assert f"{note}{fixture('leaky_relu_buggy')} was assembled for that" in out
    code, out, _ = run(capsys, built, fixture("leaky_relu"), "--no-exact")
    assert code == 2
    assert "not compared: leaky_relu_kernel (sm_90a): " in out
    assert "is PTX without a cubin beside it, and no assembler is run" in out
    assert "0 pairs: none" in out


def test_ptx_with_a_cubin_beside_it_needs_no_assembler(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    cubin(beside, "leaky_relu", stem="k")
    shutil.copy(fixture("leaky_relu"), beside / "k.ptx")
    other = cubin(tmp_path, "leaky_relu_buggy")
    found = of(str(beside), other)
    assert (found.kind, found.code.level) == ("constants", "sass")
    assert f"it is that of {beside / 'k.cubin'}" in found.notes[0]


def both_levels(folder: Path, ptx: str, machine: str) -> str:
    cubin(folder, machine, stem="k")
    shutil.copy(fixture(ptx), folder / "k.ptx")
    return str(folder)


def test_ptx_with_cubins_on_both_sides_is_compared_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = both_levels(tmp_path / "old", "leaky_relu", "leaky_relu")
    new = both_levels(tmp_path / "new", "leaky_relu_buggy", "leaky_relu_buggy")
    found = of(old, new)
    assert [(code.level, code.kind) for code in found.levels] == [
        ("ptx", "constants"), ("sass", "constants"),
    ]  # fmt: skip
    _, out, _ = run(capsys, old, new, "--no-verdicts")
    assert "(sm_90a): PTX constants only, machine code constants only" in out
    assert re.search(r"machine code .*\n +constant: 0\.01 → 0\.1 at ", out)
    assert "1 constants only (1 of both levels)" in out


def test_other_machine_code_of_the_same_ptx_is_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = both_levels(tmp_path / "old", "leaky_relu", "leaky_relu")
    new = both_levels(tmp_path / "new", "leaky_relu", "leaky_relu_buggy")
    words = (old, new, "--no-verdicts", "--fail-on")
    code, out, _ = run(capsys, *words, "constants,structural")
    assert code == 0
    assert "PTX identical, machine code constants only" in out
    code, out, _ = run(capsys, *words, "machine-code")
    assert code == 1
    assert "fails on machine-code" in out
    shutil.copy(tmp_path / "old" / "k.cubin", tmp_path / "new" / "k.cubin")
    assert [code.level for code in of(old, new).levels] == ["ptx"]


def test_a_cubin_on_one_side_alone_is_told(tmp_path: Path) -> None:
    old = both_levels(tmp_path / "old", "leaky_relu", "leaky_relu")
    found = of(old, fixture("leaky_relu_buggy"))
    assert [code.level for code in found.levels] == ["ptx"]
    missing = fixture("leaky_relu_buggy")
    assert f"only PTX is compared: no cubin lies beside {missing}" in found.notes


def test_each_level_is_paired_with_its_own(tmp_path: Path) -> None:
    for side, stem in (("old", "z"), ("new", "a")):
        folder = tmp_path / side
        cubin(folder, "leaky_relu", stem="machine")
        shutil.copy(fixture("leaky_relu"), folder / f"{stem}.ptx")
    report = compare([str(tmp_path / "old")], [str(tmp_path / "new")], ptxas=None)
    assert [(d.code.level, d.kind) for d in report.differences] == [
        ("sass", "identical"), ("ptx", "identical"),
    ]  # fmt: skip


def test_spills_of_machine_code_are_counted_in_it(tmp_path: Path) -> None:
    spilling = listing("7: STL.128 [R1], R4", "8: LDL.64 R4, [R1]", "EXIT")
    old, new = files(tmp_path, listing("7: FADD R4, R5, R6", "EXIT"), spilling)
    found = of(old, new)
    told = {d.name: (d.old, d.new, d.source) for d in found.resources}
    assert told == {"spill_stores": (0, 16, "SASS"), "spill_loads": (0, 8, "SASS")}
    assert (found.old_spills, [(p.where.line, p.stored, p.loaded) for p in found.new_spills]) == (
        (), [(7, 16, 0), (8, 0, 8)],
    )  # fmt: skip
    assert ("spills", "new at a.py:7 (16 B stored), a.py:8 (8 B loaded)") in lines(found)
    assert tolerance.failed(found, tolerance.read("spills")) == ["spills"]
    assert tolerance.failed(of(new, old), tolerance.read("spills")) == []
    arrays = listing("7: STL.128 [R1], R4", "8: LDL R4, [R9]", "EXIT")
    (note,) = of(*files(tmp_path, spilling, arrays)).notes
    assert note == f"spills are not known: local memory of {new} holds arrays, too"


@pytest.mark.slow
def test_resources_of_a_cubin_say_where_they_are_from(tmp_path: Path) -> None:
    old, new = (cubin(tmp_path, name, "sm_80") for name in ("flash_fwd_spill", "flash_fwd"))
    shutil.copy(old, tmp_path / "renamed.cubin")
    found = of(str(tmp_path / "renamed.cubin"), new)
    logged = next(iter(assembled("flash_fwd_spill", "sm_80").resources.values()))
    assert logged.spill_stores is not None
    assert logged.spill_loads is not None
    told = {d.name: (d.old, d.new, d.source) for d in found.resources}
    assert told["spill_stores"] == (logged.spill_stores.value, 0, "SASS")
    assert told["spill_loads"] == (logged.spill_loads.value, 0, "SASS")
    assert told["stack"][2] == "cubin"
    back = of(new, old)
    assert tolerance.failed(back, tolerance.read("spills,structural")) == ["spills", "structural"]
    assert tolerance.failed(found, tolerance.read("spills")) == []


def test_a_cubin_that_was_cut_off_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("old", "new"):
        for name in ("leaky_relu", "softmax"):
            cubin(tmp_path / side, name)
    broken = tmp_path / "new" / "softmax.cubin"
    broken.write_bytes(broken.read_bytes()[:4000])
    (tmp_path / "new" / "noise.cubin").write_bytes(b"\x7fELF" + bytes(60))
    code, out, _ = run(capsys, str(tmp_path / "old"), str(tmp_path / "new"), "--no-verdicts")
    assert code == 2
    assert f"not compared: {broken}: the cubin is damaged or cut off" in out
    assert f"not compared: {tmp_path / 'new' / 'noise.cubin'}: " in out
    assert "softmax_kernel (sm_90a, machine code): only old" in out
    assert "1 pair: 1 identical (1 of machine code); 1 removed, 0 added" in out


def test_code_without_lines_says_so(tmp_path: Path) -> None:
    bare = tuple(line.partition(": ")[2] or line for line in BODY)
    old, new = files(tmp_path, listing(*bare), listing(*BODY))
    (note,) = of(old, new).notes
    assert note == f"{old} names no lines of a source: places are those of its listing"


def test_markdown_and_sarif_tell_the_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = both_levels(tmp_path / "old", "leaky_relu", "leaky_relu")
    new = both_levels(tmp_path / "new", "leaky_relu", "leaky_relu_buggy")
    words = (old, new, "--no-verdicts", "--fail-on", "machine-code", "--format")
    _, out, _ = run(capsys, *words, "markdown")
    row = "PTX identical, machine code constants only | machine-code |"
    assert f"| `leaky_relu_kernel (sm_90a)` | {row}" in out
    _, out, _ = run(capsys, *words, "sarif")
    results = json.loads(out)["runs"][0]["results"]
    (result,) = results
    assert (result["ruleId"], result["level"]) == ("DIF801", "error")
    assert result["message"]["text"].startswith("a constant is 0.1, was 0.01 in machine code\n")
