"""`ptxlint emulate` on files and launches: outputs, findings, counts, what cannot be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.cli import main
from ptxlint.dynamic.emulator.inputs import InputError, Inputs, RandomInputs, ZeroInputs
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize, chosen
from ptxlint.launches import Tensor

ROOT = Path(__file__).resolve().parents[3]
SOFTMAX = ROOT / "fixtures/ptx/sm_80/softmax.ptx"


def launch(tmp_path: Path, columns: int = 781, **changes: Any) -> str:
    """A file with one launch of the softmax kernel on 8 rows."""
    arguments = {
        "out_ptr": f"float32[8, {columns}]", "x_ptr": f"float32[8, {columns}]",
        "stride_out": columns, "stride_x": columns, "n_cols": columns,
    }  # fmt: skip
    path = tmp_path / "launch.json"
    path.write_text(json.dumps({"launches": [{"grid": 8, "arguments": arguments | changes}]}))
    return str(path)


def emulate(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a command line."""
    with pytest.raises(SystemExit) as end:
        main(["emulate", *words])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_outputs_are_written_and_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).standard_normal((8, 781)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x_ptr=x)
    saved = str(tmp_path / "out.npz")
    words = [str(SOFTMAX), "--launch", launch(tmp_path), "--inputs", str(tmp_path / "in.npz")]
    code, out, _ = emulate(capsys, *words, "--save", saved)
    assert code == 0, out
    assert "softmax_kernel" in out
    assert "8 CTAs" in out
    got = np.load(saved)["out_ptr"].view(np.float32)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.abs(got - wide / wide.sum(axis=1, keepdims=True)).max() < 1e-7
    # What is there is not overwritten.
    code, _, err = emulate(capsys, *words, "--save", saved)
    assert code == 2
    assert "--force" in err


def test_an_output_that_is_too_short_is_one_finding_on_the_python_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = launch(tmp_path, out_ptr="float32[6247]")
    code, out, _ = emulate(capsys, str(SOFTMAX), "--launch", short, "--format", "json")
    assert code == 1
    (finding,) = json.loads(out)["findings"]
    assert finding["rule"] == "EMU901"
    assert finding["source"]["line"] == 20
    assert finding["witness"]["ctaid"] == [7, 0, 0]
    # The one element that is missing is the last of its row.
    assert "writes 4 bytes, right behind the end of out_ptr" in finding["message"]
    code, out, _ = emulate(capsys, str(SOFTMAX), "--launch", launch(tmp_path))
    assert code == 0, out


def test_a_tensor_whose_memory_was_freed_is_not_to_be_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"kind": "tensor", "dtype": "float32", "shape": [8, 781], "freed": True}
    freed = launch(tmp_path, x_ptr=gone)
    code, out, _ = emulate(capsys, str(SOFTMAX), "--launch", freed, "--format", "json")
    assert code == 1
    (finding,) = json.loads(out)["findings"]
    assert (finding["rule"], finding["source"]["line"]) == ("EMU916", 15)
    assert "reads 4 bytes at byte 0 of x_ptr, whose memory was freed" in finding["message"]
    # The checks say so of every launch of that kind: no size of it is right.
    with pytest.raises(SystemExit) as end:
        main(["check", str(SOFTMAX), "--launch", freed])
    out = capsys.readouterr().out
    assert end.value.code == 1
    assert "BND302" in out
    assert "its memory was freed before the launch" in out
    assert "breaks when: this launch" in out


def test_counts_are_those_of_the_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "heat.svg"
    code, out, _ = emulate(
        capsys, str(SOFTMAX), "--launch", launch(tmp_path), "--counters", "--heat-svg", str(svg),
        "--format", "json",
    )  # fmt: skip
    assert code == 0
    (run,) = json.loads(out)["runs"]
    by_line = {line["line"]: line for line in run["lines"] if line["path"].endswith("softmax.py")}
    # Each element is read and written once, in rows of 781 floats that start anywhere.
    assert by_line[15]["bytes"] == by_line[20]["bytes"] == 8 * 781 * 4
    sectors = sum((4 * 781 * (r + 1) - 1) // 32 - 4 * 781 * r // 32 + 1 for r in range(8))
    assert by_line[20]["sectors"] >= sectors
    assert by_line[15]["divergent"] == 0
    assert svg.read_text().startswith("<svg")
    code, out, _ = emulate(capsys, str(SOFTMAX), "--launch", launch(tmp_path), "--counters")
    assert "tl.max(x, axis=0)" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([str(SOFTMAX)], "there is no launch"),
        ([str(SOFTMAX), "--launch", "nowhere.json"], "nowhere.json"),
        (["nowhere.ptx", "--launch", "LAUNCH"], "nowhere.ptx"),
        ([str(SOFTMAX), "--launch", "LAUNCH", "--inputs", "none.npz"], "none.npz"),
        (
            [str(SOFTMAX), "--launch", "LAUNCH", "--kernel", "softmax"],
            "did you mean softmax_kernel?",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    given = [launch(tmp_path) if word == "LAUNCH" else word for word in words]
    code, _, err = emulate(capsys, *given)
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_an_array_of_another_shape_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", x_ptr=np.zeros((8, 780), dtype=np.float32))
    words = ["--launch", launch(tmp_path), "--inputs", str(tmp_path / "in.npz")]
    code, _, err = emulate(capsys, str(SOFTMAX), *words)
    assert code == 2
    assert "`x_ptr` has shape [8, 780], the launch has [8, 781]" in err


def test_an_instruction_that_is_not_run_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 8.7\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n  .reg .b32 %r<4>;\n"
        "  mov.u32 %r1, %tid.x;\n  vadd.s32.s32.s32 %r2, %r1, %r1;\n  ret;\n}\n"
    )
    file = tmp_path / "launch.json"
    file.write_text('{"launches": [{"grid": 1, "block": 32, "arguments": {"p": "float32[4]"}}]}')
    code, _, err = emulate(capsys, str(path), "--launch", str(file))
    assert code == 2
    assert f"{path}:8:3: `vadd.s32.s32.s32`" in err


def test_a_large_grid_is_sampled_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 8.7\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n.reqntid 1, 1, 1\n{\n  .reg .b32 %r<4>;\n"
        "  mov.u32 %r1, %ctaid.x;\n  ret;\n}\n"
    )
    file = tmp_path / "launch.json"
    file.write_text('{"launches": [{"grid": 1000000, "arguments": {"p": "float32[4]"}}]}')
    code, out, _ = emulate(capsys, str(path), "--launch", str(file))
    assert code == 0
    assert "16,384 of 1,000,000 CTAs" in out


def test_a_loop_without_end_is_a_finding_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 8.7\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n.reqntid 32, 1, 1\n{\n  .reg .b32 %r<4>;\n"
        "  .reg .b64 %rd<4>;\n  .reg .pred %p<2>;\n  ld.param.u64 %rd1, [p];\n"
        "wait:\n  ld.volatile.global.u32 %r1, [%rd1];\n  setp.eq.u32 %p1, %r1, 0;\n"
        "  @%p1 bra wait;\n  ret;\n}\n"
    )
    file = tmp_path / "launch.json"
    file.write_text('{"launches": [{"grid": 2, "arguments": {"p": "int32[4]"}}]}')
    words = [str(path), "--launch", str(file), "--inputs", "zeros", "--most-turns", "2000"]
    code, out, _ = emulate(capsys, *words)
    assert code == 2
    assert "EMU909" in out


@pytest.mark.parametrize("inputs", [RandomInputs(3), ZeroInputs()])
def test_integers_that_the_launch_tells_are_what_is_run_on(inputs: Inputs) -> None:
    ids = Tensor("int64", (3,), (1,), 0, 32, 8, contents=(7, -1, 5, 2))
    found = inputs.contents("ids", ids, 32)
    assert found is not None
    assert found.view(np.int64).tolist() == [7, -1, 5, 2]
    # What nobody wrote since it was allocated is told by that.
    assert inputs.contents("ids", ids._replace(fresh="uninitialised"), 32) is None


@pytest.mark.parametrize("inputs", [RandomInputs(3), ZeroInputs()])
def test_more_numbers_than_a_storage_holds_are_refused(inputs: Inputs) -> None:
    ids = Tensor("int64", (3,), (1,), 0, 24, contents=(7, -1, 5, 2))
    with pytest.raises(InputError, match=r"tells 4 numbers of `ids`, 32 bytes, .* has 24"):
        inputs.contents("ids", ids, 24)


def test_kinds_to_watch_for_may_be_several_and_a_wrong_one_is_named() -> None:
    assert chosen("memory") == Sanitize()
    assert chosen("memory, races") == Sanitize(races=True)
    assert all(chosen("all"))
    with pytest.raises(ValueError, match="'rases' is none of memory, races"):
        chosen("races,rases")
