"""Bad input: a clear message, exit status 2, and the other files of the call still checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlint.frontends.discovery import InputFault, decode, discover

GOOD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry stray(.param .u64 out)
{
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [out];
    mov.f32 %f0, 0f3F800000;
    cvt.f64.f32 %rd2, %f0;
    mul.f64 %rd3, %rd2, %rd2;
    cvt.rn.f32.f64 %f1, %rd3;
    st.global.f32 [%rd1], %f1;
    ret;
}
"""
BADLY = GOOD.replace("entry stray", "entry bad")
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BAD: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "INPUT", "the file is empty"),
    "blank": (b" \n\t\n", "INPUT", "the file is empty"),
    "cubin": (b"\x7fELF\x02\x01\x01" + bytes(64), "INPUT", "an ELF file"),
    "fatbin": (b"\x50\xed\x55\xba" + bytes(64), "INPUT", "cannot be extracted"),
    "utf16": (BADLY.encode("utf-16"), "INPUT", "UTF-16 text"),
    "utf16-no-mark": (BADLY.encode("utf-16-le"), "INPUT", "binary data"),
    "noise": (bytes((i * 73 + i * i) % 256 for i in range(5000)), "INPUT", "binary data"),
    "nul-inside": (BADLY.replace("ret;", "ret\0;").encode(), "PARSE", "1 NUL byte in the text"),
    "nul-at-end": (BADLY.encode() + bytes(8), "PARSE", "8 NUL bytes in the text"),
    "truncated": (BADLY[: BADLY.index("cvt.rn")].encode(), "PARSE", ""),
    "cut-in-a-word": (BADLY[: BADLY.index("f64.f32 %rd2")].encode(), "PARSE", ""),
    "long-line": (
        (HEAD + ".entry k() { " + "mov.u32 %q, 1; " * 26_700 + "ret; }\n").encode(),
        "PARSE",
        "%q",
    ),
    "long-word": ((HEAD + ".entry k() { mov.u32 " + "a" * 400_000).encode(), "PARSE", ""),
    "deep": ((HEAD + ".entry k() " + "{" * 10_000).encode(), "PARSE", ""),
    "lost-label": ((HEAD + ".entry k() { bra nowhere; ret; }\n").encode(), "PARSE", "nowhere"),
    "twice": ((HEAD + ".entry k() { .reg .u32 a; .reg .u32 a; ret; }\n").encode(), "PARSE", "a"),
    "python": (b"import triton\n\n@triton.jit\ndef f(x):\n    return x\n", "PARSE", ""),
}


def _check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ptxlint", "check", *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "[INTERNAL]" not in done.stdout
    assert '"rule": "INTERNAL"' not in done.stdout
    return done


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    data, rule, words = BAD[name]
    Path("bad.ptx").write_bytes(data)
    Path("good.ptx").write_text(GOOD)
    done = _check("bad.ptx", "good.ptx")
    assert done.returncode == 2
    faults = [line for line in done.stdout.splitlines() if line.startswith("bad.ptx:")]
    assert any(f"error[{rule}] " in line and words in line for line in faults), faults
    for line in faults:
        path, row, column, _ = line.split(":", 3)
        assert (path, int(row) >= 1, int(column) >= 1) == ("bad.ptx", True, True)
    assert "good.ptx:11:5: warning[NUM407]" in done.stdout


def test_missing_and_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.ptx").write_text(GOOD)
    Path("folder").mkdir()
    Path("broken.ptx").symlink_to("nowhere.ptx")
    done = _check("gone.ptx", "folder", "broken.ptx", "good.ptx", "")
    assert done.returncode == 2
    for words in (
        "gone.ptx:1:1: error[INPUT] no such file or directory",
        "folder:1:1: error[INPUT] no PTX in this directory",
        "broken.ptx:1:1: error[INPUT] cannot read: No such file",
        "error[INPUT] this is no path",
        "good.ptx:11:5: warning[NUM407]",
    ):
        assert words in done.stdout


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.ptx").write_text(GOOD)
    Path("closed.ptx").write_text(GOOD)
    Path("closed.ptx").chmod(0)
    if os.access("closed.ptx", os.R_OK):
        pytest.skip("this user may read everything")
    done = _check(".")
    assert done.returncode == 2
    assert "closed.ptx:1:1: error[INPUT] cannot read: Permission denied" in done.stdout
    assert "good.ptx:11:5: warning[NUM407]" in done.stdout


def test_an_unreadable_file_through_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a user who may read everything: reading itself fails."""
    from ptxlint.frontends import discovery

    path = tmp_path / "k.ptx"
    path.write_text(GOOD)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(discovery, "open", refuse, raising=False)
    (item,) = discover([str(path)])
    assert discovery.read(item) == InputFault(str(path), "cannot read: Permission denied")


def test_the_first_nul_byte_is_pointed_at(tmp_path: Path) -> None:
    path = tmp_path / "nul.ptx"
    path.write_bytes(GOOD.replace("ret;", "\0ret;\0").encode())
    done = _check(path)
    assert f"{path}:14:5: error[PARSE] 2 NUL bytes" in done.stdout
    assert "warning[NUM407]" in done.stdout


def test_odd_names_and_odd_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"caf\xe9.ptx")
    Path(odd).write_text(GOOD)
    Path("a b,c:%.PTX").write_text(GOOD.replace("stray", "other"))
    Path("folder.ptx").mkdir()
    os.mkfifo("pipe.ptx")
    Path("loop").symlink_to(".")
    for format_ in ("text", "json", "sarif", "github"):
        done = _check(".", "--format", format_)
        assert done.returncode == 1, done.stdout + done.stderr
        assert done.stderr == ""


def test_a_device_named_by_the_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    os.mkfifo(tmp_path / "k.py")
    named = GOOD.replace("    cvt.f64", "    .loc 1 1 1\n    cvt.f64")
    path.write_text(named + f'.file 1 "{tmp_path}/k.py"\n.file 2 "/dev/zero"\n')
    assert _check(path).returncode == 1


def test_escape_sequences_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(HEAD + ".entry k() { mov.u32 \x1b[2J%q\x1b[31m, 1; ret; }\n")
    done = _check(path)
    assert done.returncode == 2
    assert "\x1b" not in done.stdout


def test_latin_1_in_a_comment_is_let_through() -> None:
    text = decode(b"// caf\xe9\n" + GOOD.encode(), "k.ptx")
    assert isinstance(text, str)
    assert text.startswith("// caf\u00e9\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_bad_files_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, (data, _, _) in BAD.items():
        Path(f"{name}.ptx").write_bytes(data)
    Path("good.ptx").write_text(GOOD)
    done = _check(".", "--jobs", jobs)
    assert done.returncode == 2
    for name in BAD:
        assert f"{name}.ptx:" in done.stdout
    assert "good.ptx:11:5: warning[NUM407]" in done.stdout
