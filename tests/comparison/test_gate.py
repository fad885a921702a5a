"""`ptxlint diff` in continuous integration: nothing that was asked for passes unanswered."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ptxlint.cli import main

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "ptx" / "sm_80"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main(["diff", *map(str, words)])
    out, err = capsys.readouterr()
    assert isinstance(raised.value.code, int)
    return raised.value.code, out, err


def put(folder: Path, name: str, pattern: str = "", by: str = "", log: str = "") -> Path:
    """A fixture with one thing changed, and a log of the assembler beside it."""
    folder.mkdir(exist_ok=True)
    text = (FIXTURES / f"{name}.ptx").read_text()
    changed = re.sub(pattern, by, text, count=1) if pattern else text
    assert changed != text or not pattern
    path = folder / f"{name}.ptx"
    path.write_text(changed)
    if log:
        kernel = re.search(r"\.entry (\w+)", text)[1]  # type: ignore[index]
        (folder / f"{name}.log").write_text(
            f"ptxas info    : Compiling entry function '{kernel}' for 'sm_80'\n"
            f"ptxas info    : Function properties for {kernel}\n    {log}\n"
        )
    return path


LOG = (
    "0 bytes stack frame, {spills} bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used {registers} registers, used 1 barriers"
)
CHANGED = (r"sub\.f32 \t(%\w+), (%\w+), (%\w+);", r"sub.f32 \t\1, \3, \2;")


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("registers", 1), ("registers+4", 1), ("registers+5", 0), ("registers+10%", 1),
        ("registers+11%", 0), ("spills", 1), ("structural", 1), ("constants", 0), ("stack", 0),
        ("guards", 0), ("registers+5,spills", 1), ("removed,added", 0),
    ],
)  # fmt: skip
def test_each_word_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, code: int
) -> None:
    old = put(tmp_path / "a", "softmax", log=LOG.format(spills=0, registers=40))
    new = put(tmp_path / "b", "softmax", *CHANGED, log=LOG.format(spills=8, registers=44))
    words = (old, new, "--no-verdicts", "--no-exact", "--fail-on", word)
    assert run(capsys, *words)[0] == code


@pytest.mark.parametrize(
    "word", ["registers+8", "spills", "stack", "occupancy", "barriers", "machine-code", "shared"]
)
def test_a_word_that_cannot_be_answered_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    old, new = put(tmp_path / "a", "softmax"), put(tmp_path / "b", "softmax", *CHANGED)
    words = (old, new, "--no-verdicts", "--no-exact", "--fail-on")
    code, out, _ = run(capsys, *words, word)
    assert code == 2
    assert f"not known: {word} of softmax_kernel (sm_80): one side or both do not say" in out
    code, out, _ = run(capsys, *words, f"structural,{word}", "--format", "json")
    assert code == 2
    told = json.loads(out)
    assert told["undecided"] == [{"kernel": "softmax_kernel", "arch": "sm_80", "words": [word]}]
    assert told["pairs"][0]["fails_on"] == ["structural"]
    # The same code takes the same, whoever knows how much.
    code, out, _ = run(capsys, old, old, "--no-verdicts", "--no-exact", "--fail-on", word)
    assert (code, "not known" in out) == (0, False)


def test_dynamic_shared_memory_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for folder, shared in (("a", 1024), ("b", 4096)):
        log = LOG.format(spills=0, registers=40)
        path = put(tmp_path / folder, "softmax", *(CHANGED if folder == "b" else ()), log=log)
        path.with_suffix(".json").write_text(
            json.dumps({"name": "softmax_kernel", "num_warps": 4, "shared": shared, "hash": "x"})
        )
        paths.append(path)
    words = (*paths, "--no-verdicts", "--no-exact", "--fail-on")
    assert run(capsys, *words, "shared+3072")[0] == 1
    assert run(capsys, *words, "shared+3073")[0] == 0


def test_kernels_of_one_side_alone_can_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "a", "softmax")
    put(tmp_path / "a", "argmax")
    put(tmp_path / "b", "softmax")
    put(tmp_path / "b", "gelu")
    words = (tmp_path / "a", tmp_path / "b", "--no-verdicts", "--no-exact", "--fail-on")
    assert run(capsys, *words, "structural")[0] == 0
    code, out, _ = run(capsys, *words, "removed")
    assert code == 1
    assert "fails on removed: argmax_kernel (sm_80)" in out
    assert "fails on added" not in out
    code, out, _ = run(capsys, *words, "added", "--format", "sarif")
    assert code == 1
    results = json.loads(out)["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("DIF805", "note"), ("DIF805", "error")]
    assert results[1]["message"]["text"].startswith("this kernel is in the new build alone")
    code, out, _ = run(capsys, *words, "removed", "--format", "markdown")
    assert "### ptxlint diff: **fails**" in out
    assert "Fails on removed: `argmax_kernel` (sm_80)" in out


def test_words_that_are_none_and_words_that_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = FIXTURES / "softmax.ptx"
    for words, message in (
        (("--fail-on", "speed"), "'speed' is none of structural"),
        (("--fail-on", "registers-8"), "'registers-8' is none of"),
        (("--fail-on", "registers+"), "'registers+' is none of"),
        (("--fail-on", "spills+8"), "'spills+8' is none of"),
        (("--fail-on", "verdicts", "--no-verdicts"), "exclude each other"),
    ):
        code, out, err = run(capsys, path, path, *words)
        assert (code, out) == (2, "")
        assert message in err


@pytest.fixture(scope="module")
def schema() -> Any:
    text = (ROOT / "tests" / "data" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8")
    return jsonschema.Draft7Validator(json.loads(text))


def test_sarif_is_valid_and_has_an_error_for_what_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: Any
) -> None:
    old, new = tmp_path / "a", tmp_path / "b"
    put(old, "softmax")
    put(new, "softmax", *CHANGED)
    put(old, "leaky_relu")
    shutil.copy(FIXTURES / "leaky_relu_buggy.ptx", new / "leaky_relu.ptx")
    put(old, "gelu")
    put(new, "gelu", r"@%p1 ld\.global", "ld.global")
    put(old, "argmax")
    (new / "odd.ptx").write_text("this is no PTX\n")
    words = (old, new, "--no-exact", "--fail-on", "structural,constants,guards,registers+8,removed")
    code, out, _ = run(capsys, *words, "--format", "sarif")
    assert code == 2
    log = json.loads(out)
    assert [e.message for e in schema.iter_errors(log)] == []
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert any("odd.ptx:1:" in n for n in notes)
    assert any(n.startswith("not known: registers+8 of softmax_kernel") for n in notes)
    errors = {
        (r["ruleId"], r["message"]["text"].split(",")[0].split("\n")[0])
        for r in log["runs"][0]["results"]
        if r["level"] == "error"
    }
    assert ("DIF802", "1 instruction with other operands") in errors
    assert ("DIF803", "fails on guards") in errors
    assert ("DIF805", "this kernel is in the old build alone") in errors
    assert any(rule == "DIF801" for rule, _ in errors)


def test_markdown_keeps_names_in_their_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = (
        "\tFunction : {name}\n        /*0000*/                   MOV R1, {value} ;\n"
        "        /*0010*/                   EXIT ;\n"
    )
    paths = []
    for folder, value in (("a|`b", "0x1"), ("c\nd|<b>", "0x2")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "k.sass"
        path.write_text("code for sm_80\n" + listing.format(name="op<a|b>", value=value))
        paths.append(path)
    code, out, _ = run(capsys, *paths, "--format", "markdown", "--no-verdicts")
    assert code == 0
    rows = [line for line in out.splitlines() if line.startswith("|")]
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert "| `op<a\\|b> (sm_80, machine code)` | constants only |" in rows[2]
    assert "<summary>op&lt;a|b&gt; (sm_80, machine code)</summary>" in out
    assert "<b>" not in out


def test_a_kernel_that_may_spill_does_not_pass_over_architectures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [FIXTURES / "softmax.ptx", FIXTURES.parent / "sm_90" / "softmax.ptx"]

    def compare(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as raised:
            main(["compare", *map(str, paths), "--no-verdicts", *words])
        out, err = capsys.readouterr()
        assert isinstance(raised.value.code, int)
        return raised.value.code, out, err

    code, out, _ = compare("--no-exact", "--fail-on", "spills")
    assert code == 2
    assert "softmax_kernel on sm_90a: it is not known whether it spills" in out
    assert compare("--no-exact", "--fail-on", "surprises")[0] == 0
    assert compare("--ptxas", "/no/such/ptxas", "--fail-on", "surprises")[0] == 2
    assert compare("--no-exact", "--fail-on", "tensor")[0] == 0
    code, out, err = compare("--fail-on", "verdicts")
    assert (code, out) == (2, "")
    assert "exclude each other" in err
    # A log says it.
    for arch, path in zip(("80", "90"), paths, strict=True):
        put(tmp_path / arch, "softmax", log=LOG.format(spills=int(arch) - 80, registers=40))
        shutil.copy(path, tmp_path / arch / "softmax.ptx")
        said = tmp_path / arch / "softmax.log"
        said.write_text(said.read_text().replace("sm_80", "sm_80" if arch == "80" else "sm_90a"))
    paths = [tmp_path / "80", tmp_path / "90"]
    assert compare("--no-exact", "--fail-on", "spills")[0] == 1
