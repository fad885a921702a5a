"""Comments hold back what a run finds, where they stand and with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ptxlint
from ptxlint.cli import main
from ptxlint.dynamic.emulator import emulate
from ptxlint.dynamic.emulator.kernel_call import Result
from ptxlint.engine.emulated import memory

PYTHON = """\
def kernel(out_ptr):
    store(
        out_ptr + 64,
    ){first}
    store(out_ptr + 64, 2){second}
"""
PTX = """\
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .b64 %rd<4>;
    .loc 1 2 5
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1+64], 1;{one}
    st.global.u32 [%rd1+68], 1;{two}
    .loc 1 5 5
    st.global.u32 [%rd1+72], 2;
    ret;
}}
.file 1 "kernel.py"
"""
WHY = "ptxlint: ignore[EMU901] the allocator rounds up"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **comments: str) -> None:
    """The kernel of 16 words, with these comments."""
    filled = {"first": "", "second": "", "one": "", "two": "", **comments}
    (folder / "kernel.py").write_text(PYTHON.format(**filled))
    (folder / "k.ptx").write_text(PTX.format(**filled))


def run() -> tuple[list[tuple[int, int]], Result]:
    """The lines of Python and PTX of what is found."""
    found = emulate("k.ptx", 1, [np.zeros(16, np.uint32)], block=1)
    assert all(finding.rule == "EMU901" for finding in found.findings)
    places = [f.place for f in found.findings]
    return [(p.source.line if p.source else 0, p.line) for p in places], found


def test_a_python_comment_holds_for_its_statement(folder: Path) -> None:
    write(folder)
    assert run()[0] == [(2, 8), (5, 11)]
    write(folder, first=f"  # {WHY}")
    lines, found = run()
    assert lines == [(5, 11)]
    assert found.suppressed == 1
    # What else is told is called what it was.
    number = found.findings[0].fingerprint
    write(folder)
    assert [f.fingerprint for f in run()[1].findings][1] == number


def test_a_comment_in_ptx_holds_for_its_instruction_alone(folder: Path) -> None:
    write(folder, one=f" // {WHY}")
    assert run()[0] == [(2, 9), (5, 11)]
    write(folder, one=f" // {WHY}", two=f" // {WHY}")
    lines, found = run()
    assert lines == [(5, 11)]
    assert found.suppressed == 1


@pytest.mark.parametrize("rules", [memory.OUTSIDE.name, "EMU901, NUM407", "emu901"])
def test_it_may_be_named_as_rules_are(folder: Path, rules: str) -> None:
    write(folder, first=f"  # ptxlint: ignore[{rules}] checked", second=f"  # {WHY}")
    assert run()[0] == []


@pytest.mark.parametrize(
    "comment", ["ignore[EMU901]", "ignore[EMU902] another", "ignore[EMU901, EMU999] unknown"]
)
def test_what_does_not_hold_there_does_not_hold_here(folder: Path, comment: str) -> None:
    write(folder, first=f"  # ptxlint: {comment}")
    lines, found = run()
    assert lines == [(2, 8), (5, 11)]
    assert found.suppressed == 0


def test_the_command_counts_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = {"grid": 1, "block": 1, "arguments": {"out": "uint32[16]"}}
    (folder / "l.json").write_text(json.dumps({"launches": [launch]}))
    words = ["emulate", "k.ptx", "--launch", "l.json"]
    write(folder, first=f"  # {WHY}")
    with pytest.raises(SystemExit) as end:
        main(words)
    out = capsys.readouterr().out
    assert end.value.code == 1
    assert out.count("EMU901") == 1
    assert "1 suppressed" in out
    write(folder, first=f"  # {WHY}", second=f"  # {WHY}")
    with pytest.raises(SystemExit) as end:
        main([*words, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert not end.value.code
    assert report["findings"] == []
    assert report["summary"]["suppressed"] == 2


def test_a_check_takes_them_for_neither_unknown_nor_unused(folder: Path) -> None:
    write(folder, first=f"  # {WHY}", one=f" // {WHY}")
    assert not [f for f in ptxlint.check("k.ptx").findings if f.rule.startswith("SUP")]
    write(folder, first="  # ptxlint: ignore[EMU901]", one=" // ptxlint: ignore[EMU951] why")
    said = [f.message for f in ptxlint.check("k.ptx").findings if f.rule == "SUP002"]
    assert len(said) == 2
    assert any("gives no reason" in message for message in said)
    assert any("'EMU951'; did you mean EMU9" in message for message in said)
