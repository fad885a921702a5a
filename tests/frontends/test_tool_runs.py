"""Programs that are no assembler, or do not do their work: a word on it, in time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxlint.cli import main
from ptxlint.frontends import tool_runs, toolkit
from ptxlint.frontends.tool_runs import ToolError

SOFTMAX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx" / "sm_80" / "softmax.ptx"
SAYS = 'test "$1" = --version && { echo "release 12.8, V12.8"; exit 0; }\n'
PROGRAMS = {
    "is silent": ("exit 0\n", "does not say which release it is: is it a ptxas?"),
    "is another program": ("echo ls 9.1\n", "does not say which release it is"),
    "crashes when asked": ("kill -SEGV $$\n", "--version: tool failed: ended by SIGSEGV"),
    "prints noise": ("head -c 5000 /dev/urandom\n", "does not say which release it is"),
    "floods": ("exec yes\n", "prints more than 1 MiB"),
    "writes nothing": (SAYS + "exit 0\n", "ran and wrote no cubin: is it a ptxas?"),
    "writes noise": (
        SAYS + 'for a; do last=$a; done\nhead -c 900 /dev/urandom > "$last"\n',
        "ran and wrote no cubin",
    ),
    "crashes at work": (SAYS + "kill -ABRT $$\n", "tool failed: ended by SIGABRT"),
    "fails in other words": (SAYS + "printf '\\377\\376 no' >&2; exit 3\n", "tool failed: \ufffd"),
}


def program(folder: Path, text: str) -> str:
    path = folder / "tool"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("what", PROGRAMS)
def test_what_is_no_assembler_is_told_and_the_rest_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    text, words = PROGRAMS[what]
    with pytest.raises(SystemExit) as raised:
        main(["check", str(SOFTMAX), "--ptxas", program(tmp_path, text)])
    assert raised.value.code == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert words in out
    assert "(13 proved; " in out


def test_a_name_that_is_no_program_says_why(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("words")
    for given, words in (
        (tmp_path, "is a directory"), (plain, "is not executable"),
        (tmp_path / "gone", "there is no such program"),
    ):  # fmt: skip
        with pytest.raises(ToolError, match=words):
            toolkit.find_assembler((8, 0), str(given))


def test_a_program_that_hangs_ends_with_its_children(tmp_path: Path) -> None:
    witness = tmp_path / "alive"
    hanging = program(tmp_path, f"(sleep 1; touch {witness}) &\nsleep 60\n")
    start = time.monotonic()
    with pytest.raises(ToolError, match="tool took longer than 0 seconds"):
        tool_runs.run([hanging], 0.3)
    assert time.monotonic() - start < 1
    time.sleep(max(0.0, start + 1.3 - time.monotonic()))
    assert not witness.exists()


def test_an_assembler_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    silent = program(tmp_path, f"echo once >> {asked}\n")
    for _ in range(3):
        with pytest.raises(ToolError, match="does not say"):
            toolkit.find_assembler((8, 0), silent)
    assert asked.read_text() == "once\n"


def test_a_broken_one_is_no_obstacle_while_another_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tmp_path / "good"
    good.mkdir()
    broken = program(tmp_path, "exit 1\n")
    right = program(good, SAYS + "exit 0\n")
    monkeypatch.setattr(toolkit, "_candidates", lambda: iter([broken, right]))
    assert toolkit.find_assembler((8, 0)).path == right
    monkeypatch.setattr(toolkit, "_candidates", lambda: iter([broken]))
    with pytest.raises(ToolError, match="exit status 1; is it a ptxas"):
        toolkit.find_assembler((8, 0))


def test_a_temporary_directory_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit.tempfile, "tempdir", str(tmp_path / "gone"))
    assembler = toolkit.Assembler(program(tmp_path, SAYS), (8, 0))
    with pytest.raises(ToolError, match=r"cannot write .*gone.*TMPDIR names another directory"):
        toolkit.assemble("", "sm_80", assembler)
