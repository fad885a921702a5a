"""What `ptxlint emulate` says of what it cannot run, and what it keeps of runs without an end."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.cli import main

ROOT = Path(__file__).resolve().parents[3]
SOFTMAX = ROOT / "fixtures/ptx/sm_80/softmax.ptx"
HEAD = ".version 8.7\n.target sm_80\n.address_size 64\n"


def kernel(body: str, name: str = "k", before: str = "") -> str:
    """A kernel of one warp with a pointer; `%rd1` holds it."""
    return f"""{HEAD}{before}
.visible .entry {name}(.param .u64 .ptr p)
.reqntid 32, 1, 1
{{
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [p];
{body}
  ret;
}}
"""


SEVEN = "  mov.u32 %r2, 7;\n  st.global.b32 [%rd1], %r2;\n"
FOREVER = SEVEN + "again:\n  add.u32 %r3, %r3, 1;\n  bra again;"
SPIN = (
    SEVEN + "again:\n  ld.volatile.global.b32 %r1, [%rd1+4];\n"
    "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra again;"
)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def emulate(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["emulate", *words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "internal error" not in err
    return int(end.value.code or 0), out, err


def put(at: Path, text: str, **launch: Any) -> list[str]:
    """A kernel and a launch of it; the words of the command line that name them."""
    (at / "k.ptx").write_text(text)
    given = {"grid": 1, "arguments": {"p": "int32[8]"}} | launch
    (at / "l.json").write_text(json.dumps({"launches": [given]}))
    return ["k.ptx", "--launch", "l.json"]


# What is not run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (kernel("  vadd.s32.s32.s32 %r2, %r1, %r1;"), "k.ptx:12:3: `vadd.s32.s32.s32` is not run"),
        (
            kernel("  call.uni f;", before=".func f();\n.func g() { call.uni f; ret; }\n"
                   ".func f() { call.uni g; ret; }\n"),
            "recursion",
        ),
        (
            kernel("  mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                   "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r5, %r6}, {%r1, %r2, %r3, %r4}, %r7, 0;"),
            "mma of sparse matrices",
        ),
        (kernel("  mov.u33 %r1, 5;"), "k.ptx:12:3: "),
        (kernel("  mov.u32 %r99, 5;"), "k.ptx:12:11: "),
        ("", "the file is empty"),
        ("\x7fELF\x00\x01", "an ELF file"),
        (HEAD + ".func f() { ret; }\n", "there is no kernel (.entry) in it"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_named_with_its_place(
    at: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    code, out, err = emulate(capsys, *put(at, text))
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        ({"arguments": {}}, "launch of k: no argument for parameter `p`"),
        ({"arguments": {"p": 5}}, "is a pointer; give the tensor"),
        ({"arguments": {"p": "int32[8]", "q": 1}}, "`q` is no parameter"),
        ({"arguments": {"p": "int33[8]"}}, "did you mean `int32`?"),
        ({"arguments": {"p": f"int32[{1 << 40}]"}}, "4,096.0 GiB of tensors; at most 4 GiB"),
        ({"block": 64}, "compiled for (32, 1, 1)"),
        ({"kernel": "kk"}, "l.json:1: no kernel is called 'kk'; did you mean k?"),
        ({"kernel": "f"}, "l.json:1: 'f' is a device function"),
        ({"grid": 0, "arguments": {"p": "int32[8]", "p2": 0}}, "`p2` is no parameter"),
        ({"cluster": 2}, "only clusters of one"),
    ],
)
def test_a_launch_that_does_not_fit_is_told(
    at: Path, capsys: pytest.CaptureFixture[str], launch: dict[str, Any], says: str
) -> None:
    text = kernel(SEVEN, before=".func f() { ret; }\n")
    code, _, err = emulate(capsys, *put(at, text, **launch))
    assert code == 2
    assert says in err


def test_a_missing_argument_is_named(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = json.loads((ROOT / "docs/softmax-launch.json").read_text())
    del launch["launches"][0]["arguments"]["n_cols"]
    (at / "l.json").write_text(json.dumps(launch))
    code, out, err = emulate(capsys, str(SOFTMAX), "--launch", "l.json")
    assert (code, out) == (2, "")
    assert "no argument for parameter `n_cols`" in err


def test_a_kernel_that_is_not_there_is_told_with_those_that_are_like_it(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = put(at, kernel(SEVEN, before=".func dev() { ret; }\n"))
    code, _, err = emulate(capsys, *words, "--kernel", "kk")
    assert code == 2
    assert "no kernel is called 'kk'; did you mean k?" in err
    code, _, err = emulate(capsys, *words, "--kernel", "dev")
    assert "'dev' is a device function; only kernels (.entry) are launched" in err
    code, _, err = emulate(capsys, *words, "--launch", "7")
    assert code == 2
    assert "there is no launch" in err


def test_a_launch_without_a_name_needs_one_kernel_or_a_choice(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = kernel(SEVEN) + kernel(SEVEN, "other").removeprefix(HEAD)
    words = put(at, two)
    code, _, err = emulate(capsys, *words)
    assert code == 2
    assert "the launch names no `kernel`, and the file has 2" in err
    code, out, _ = emulate(capsys, *words, "--kernel", "other")
    assert code == 0
    assert out.startswith("other l.json:1: 1 CTA")


# Contents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"q": np.zeros(8, np.int32)}, "no tensor of the launch is called `q`; they are p"),
        ({"pp": np.zeros(8, np.int32)}, "did you mean `p`?"),
        ({"p": np.zeros(7, np.int32)}, "`p` has shape [7], the launch has [8]"),
        ({"p": np.zeros((8, 1), np.int32)}, "`p` has shape [8, 1], the launch has [8]"),
        ({"p": np.zeros(8, np.float32)}, "`p` is float32, the launch has int32"),
        ({"p": np.full(8, 1 << 40)}, "`p` is int64, the launch has int32"),
        ({"p": np.array(["a"] * 8)}, "`p` is <U1"),
        ({"p": np.array([{}] * 8, dtype=object)}, "Object arrays cannot be loaded"),
    ],
)
def test_arrays_that_do_not_fit_are_told(
    at: Path, capsys: pytest.CaptureFixture[str], arrays: dict[str, Any], says: str
) -> None:
    np.savez(at / "in.npz", **arrays)
    code, _, err = emulate(capsys, *put(at, kernel(SEVEN)), "--inputs", "in.npz")
    assert code == 2
    assert says in err
    assert "in.npz" in err


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "npy", "directory", "missing", "bits"])
def test_a_file_that_is_no_npz_is_told(
    at: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    path = at / "in.npz"
    np.savez_compressed(path, p=np.arange(8, dtype=np.int32))
    data = bytearray(path.read_bytes())
    if damage == "directory":
        path.unlink()
        path.mkdir()
    elif damage == "missing":
        path.unlink()
    elif damage == "npy":
        with path.open("wb") as stream:
            np.save(stream, np.zeros(8))
    else:
        data[60:90] = bytes(30)
        held = {"cut": data[:50], "text": b"hello", "empty": b"", "bits": data}
        path.write_bytes(held[damage])
    code, _, err = emulate(capsys, *put(at, kernel(SEVEN)), "--inputs", "in.npz")
    assert code == 2
    assert "--inputs in.npz: " in err


def test_inputs_that_are_neither_a_word_nor_a_file(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = emulate(capsys, *put(at, kernel(SEVEN)), "--inputs", "recordd")
    assert code == 2
    assert "--inputs: 'recordd' is none of random, zeros, recorded, nor a file" in err


@pytest.mark.parametrize(
    "given",
    [
        np.arange(8),
        np.arange(8, dtype=np.uint8),
        np.arange(8, dtype=np.int32)[::-1][::-1],
        np.arange(8) != 0,
    ],
)
def test_whole_numbers_of_another_width_are_taken_if_they_fit(
    at: Path, capsys: pytest.CaptureFixture[str], given: Any
) -> None:
    np.savez(at / "in.npz", p=given)
    words = put(at, kernel(SEVEN))
    code, out, err = emulate(capsys, *words, "--inputs", "in.npz", "--save", "out.npz")
    assert (code, err) == (0, ""), out
    found = np.load(at / "out.npz")["p"]
    assert found.dtype == np.int32
    assert found.tolist() == [7, *given.tolist()[1:]]


# Runs that do not end ----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [FOREVER, SPIN])
def test_what_was_written_before_a_hang_is_saved(
    at: Path, capsys: pytest.CaptureFixture[str], body: str
) -> None:
    words = [*put(at, kernel(body), grid=3), "--inputs", "zeros", "--most-turns", "3000"]
    code, out, _ = emulate(capsys, *words, "--save", "out.npz", "--counters")
    assert code == 2
    assert "0 CTAs, not to its end" in out
    assert "EMU909" in out
    assert np.load(at / "out.npz")["p"].tolist() == [7, *[0] * 7]
    code, out, _ = emulate(capsys, *words, "--format", "json")
    assert code == 2
    (run,) = json.loads(out)["runs"]
    assert not run["complete"]


def test_an_interrupt_leaves_what_was_written(at: Path) -> None:
    words = [*put(at, kernel(FOREVER)), "--inputs", "zeros", "--most-turns", "1000000000"]
    command = [sys.executable, "-m", "ptxlint", "emulate", *words, "--save", "out.npz"]
    # A group of its own, whose handler is Python's: a shell in the background ignores Ctrl-C.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    code += f"import sys; sys.argv = {command[2:]!r}; import runpy;"
    code += "runpy.run_module('ptxlint', run_name='__main__')"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(6)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "interrupted; this is what it came to until then" in err
    assert "not to its end" in out
    assert np.load(at / "out.npz")["p"].tolist() == [7, *[0] * 7]


def test_a_grid_that_is_sampled_is_so_each_time(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "  mov.u32 %r1, %ctaid.x;\n  mul.wide.u32 %rd2, %r1, 4;\n  add.u64 %rd2, %rd1, %rd2;\n"
        "  mov.u32 %r2, 7;\n  st.global.b32 [%rd2], %r2;"
    )
    words = put(at, kernel(body), grid=1_000_000, arguments={"p": "int32[1000000]"})
    kept = []
    for name in ("a.npz", "b.npz"):
        code, out, _ = emulate(capsys, *words, "--inputs", "zeros", "--save", name)
        assert code == 0
        assert "16,384 of 1,000,000 CTAs, evenly spread" in out
        kept.append(np.load(at / name)["p"])
    assert (kept[0] == kept[1]).all()
    ran = np.flatnonzero(kept[0])
    assert len(ran) == 16384
    assert (ran[0], ran[-1]) == (0, 999_999)
    assert np.diff(ran).max() <= 62


# Files that are written --------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--save", "--heat-svg"])
def test_where_nothing_can_be_written_nothing_is_run(
    at: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    words = put(at, kernel(SEVEN))
    (at / "there").write_text("mine")
    for path, says in (
        ("there", "is there already; --force overwrites it"),
        ("none/out", "there is no directory"),
        (".", "it is a directory"),
    ):
        code, out, err = emulate(capsys, *words, option, path)
        assert (code, out) == (2, "")
        assert says in err
    assert (at / "there").read_text() == "mine"
    code, _, _ = emulate(capsys, *words, option, "there", "--force")
    assert code == 0
    assert (at / "there").read_bytes() != b"mine"
    assert sorted(p.name for p in at.iterdir()) == ["k.ptx", "l.json", "there"]


# Bundles ------------------------------------------------------------------------------------------


@pytest.fixture
def bundle(at: Path) -> Path:
    """Two kernels with a launch each."""
    out = at / "b"
    (out / "sm_80").mkdir(parents=True)
    kernels = []
    for name in ("one", "two"):
        (out / "sm_80" / f"{name}.ptx").write_text(kernel(SEVEN, name))
        tensor = {
            "kind": "tensor", "dtype": "int32", "shape": [8], "strides": [1], "storage": 0,
            "storage_bytes": 32, "offset": 0, "alignment": 16, "fresh": "",
        }  # fmt: skip
        launch = {
            "grid": [1, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1], "shared": 0,
            "count": 1, "place": "a.py:1", "arguments": {"p": tensor},
        }  # fmt: skip
        kernels.append(
            {
                "name": name, "arch": "sm_80", "hash": name, "ptx": f"sm_80/{name}.ptx",
                "signature": {"p": "*i32"}, "launches": [launch],
            }
        )  # fmt: skip
    manifest = {"version": 1, "tool": "ptxlint 0", "kernels": kernels, "problems": []}
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


def test_what_is_left_of_a_bundle_is_run(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = emulate(capsys, str(bundle))
    assert (code, err) == (0, ""), out
    (bundle / "sm_80" / "one.ptx").unlink()
    code, out, err = emulate(capsys, str(bundle))
    assert code == 2
    assert "one.ptx: the bundle names this file, and it is not there" in err
    assert "two a.py:1: 1 CTA" in out
    (bundle / "sm_80" / "one.ptx").write_text(kernel("  mov.u33 %r1, 5;", "one"))
    code, out, err = emulate(capsys, str(bundle))
    assert code == 2
    assert "one.ptx:12:3: " in err
    assert "two a.py:1: 1 CTA" in out


def test_a_bundle_without_launches_or_manifest(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    for entry in manifest["kernels"]:
        entry["launches"] = []
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = emulate(capsys, str(bundle))
    assert code == 2
    assert "there is no launch: give one with --launch FILE" in err
    (bundle / "manifest.json").write_text('{"tool": "ptxlint", ')
    code, _, err = emulate(capsys, str(bundle))
    assert code == 2
    assert "manifest.json:1:" in err.replace(str(bundle), "") or "no valid JSON" in err
    shutil.rmtree(bundle)
    code, _, err = emulate(capsys, str(bundle))
    assert "no such file or directory" in err


def test_a_fixture_with_everything_right_is_clean(
    at: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = str(ROOT / "docs/softmax-launch.json")
    code, _, err = emulate(capsys, str(SOFTMAX), "--launch", launch, "--inputs", "zeros")
    assert (code, err) == (0, "")
