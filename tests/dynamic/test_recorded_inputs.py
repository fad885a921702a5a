"""What tensors hold before a launch: recorded while capturing, and run on in the emulator."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from ptxlint.cli import main
from ptxlint.dynamic.capture import Options, Recording, recording
from ptxlint.launches import Launch, Recorded, Tensor

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/dynamic/scripts/held.py"
SCHEMA = json.loads((ROOT / "docs/bundle.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def record() -> Recording:
    with recording("sm_80", Options(record_inputs=1 << 20)) as found:
        runpy.run_path(str(SCRIPT))
    return found


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("held") / "bundle"
    command = [sys.executable, "-m", "ptxlint", "capture", "--arch", "sm_80", "--out", str(out)]
    done = subprocess.run(
        [*command, "--record-inputs", str(SCRIPT)], capture_output=True, text=True, check=True
    )
    assert f"ptxlint emulate {out} --inputs recorded" in done.stdout
    return out


def launches(record: Recording, signature: str = "*fp32") -> list[Launch]:
    return [g for k in record.kernels if k.signature["x"] == signature for g in k.launches]


def tensor(launch: Launch, name: str) -> Tensor:
    found = launch.arguments[name]
    assert isinstance(found, Tensor)
    return found


def held(launch: Launch, name: str) -> Recorded:
    found = tensor(launch, name).recorded
    assert found is not None
    return found


def values(record: Recording, found: Recorded, kind: Any = np.float32) -> Any:
    return np.frombuffer(record.contents[found.key], dtype=kind)


def test_views_of_one_memory_are_recorded_as_that_memory(record: Recording) -> None:
    first, second = launches(record)[:2]
    out, x = held(first, "out"), held(first, "x")
    assert out == x
    assert x.known
    assert (values(record, x) == np.arange(300)).all()
    # The kernel has not run, so that a GPU would hold something else by now.
    assert held(second, "x") == x._replace(known=False)


def test_narrow_formats_are_their_bits(record: Recording) -> None:
    (launch,) = launches(record, "*bf16")
    bits = values(record, held(launch, "x"), np.uint16)
    wanted = np.linspace(-2, 2, 100, dtype=np.float32)
    assert np.abs((bits.astype(np.uint32) << 16).view(np.float32) - wanted).max() < 0.01


def test_what_the_launch_tells_itself_is_not_recorded(record: Recording) -> None:
    for launch in launches(record):
        for tensor in launch.arguments.values():
            if isinstance(tensor, Tensor) and tensor.fresh:
                assert tensor.recorded is None


def of_size(record: Recording, elements: int) -> list[Recorded]:
    every = [g for g in launches(record) if tensor(g, "x").shape == (elements,)]
    return [held(launch, "x") for launch in every]


def test_what_is_large_or_too_much_is_left_out_with_the_reason(record: Recording) -> None:
    (large,) = of_size(record, 1 << 21)
    assert large.reason == "8,388,608 bytes, more than 1,048,576"
    (huge,) = of_size(record, 1 << 33)
    assert huge.reason == "34,359,738,368 bytes, more than 1,048,576"
    # Of a small view of large memory, the view.
    (view,) = of_size(record, 4096)
    assert (values(record, view) == np.ones(4096)).all()
    # Six launches on random numbers after one of these.
    reasons = [found.reason for found in of_size(record, 100) if not found.key]
    assert reasons == ["4 launches that are like it are recorded"]


def test_alike_bytes_are_kept_once(record: Recording, bundle: Path) -> None:
    keys = {
        tensor.recorded.key
        for kernel in record.kernels
        for launch in kernel.launches
        for tensor in launch.arguments.values()
        if isinstance(tensor, Tensor) and tensor.recorded is not None and tensor.recorded.key
    }
    assert keys <= set(record.contents)
    manifest = json.loads((bundle / "manifest.json").read_text())
    jsonschema.validate(manifest, SCHEMA)
    assert manifest["recordings"] == "recordings.npz"
    with np.load(bundle / "recordings.npz", allow_pickle=False) as file:
        assert all(file[key].dtype == np.uint8 for key in file.files)
        whole = [key for key in file.files if file[key].nbytes == 1200]
        assert len(whole) == 1


def test_nothing_is_recorded_unless_that_is_asked_for() -> None:
    with recording("sm_80") as found:
        runpy.run_path(str(ROOT / "tests/dynamic/scripts/vector_add.py"))
    assert found.contents == {}
    assert "recorded=Recorded" not in repr(found.kernels[0].launches)


def emulated(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["emulate", *words])
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def only(bundle: Path, tmp_path: Path, number: int, launches: slice = slice(None)) -> Path:
    """A copy with one kernel and some of its launches."""
    out = tmp_path / "one"
    shutil.copytree(bundle, out)
    manifest = json.loads((out / "manifest.json").read_text())
    kernel = manifest["kernels"][number]
    kernel["launches"] = kernel["launches"][launches]
    manifest["kernels"] = [kernel]
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


def test_a_kernel_runs_on_what_was_recorded(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = only(bundle, tmp_path, 0, slice(1))
    saved = str(tmp_path / "out.npz")
    code, out, err = emulated(capsys, str(one), "--inputs", "recorded", "--save", saved)
    assert (code, err) == (0, ""), out
    assert "  inputs: out, x recorded\n" in out
    with np.load(saved) as file:
        # Both lie in one memory: the copy goes from its middle to its beginning.
        assert (file["out"] == np.arange(150, 250)).all()
        assert (file["x"] == np.arange(150, 250)).all()
    _, out, _ = emulated(capsys, str(one), "--inputs", "recorded", "--format", "json")
    (run,) = json.loads(out)["runs"]
    assert run["inputs"] == {"out": "recorded", "x": "recorded"}


def test_the_report_says_what_was_not_recorded(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = emulated(capsys, str(only(bundle, tmp_path, 2)), "--inputs", "recorded")
    assert "x recorded, not as a GPU would hold it" in out
    assert "out uninitialised; x random (4 launches that are like it are recorded)" in out


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("strip", "nothing is recorded"),
        ("delete", "recordings.npz: No such file"),
        ("corrupt", "recordings.npz: no .npz file that can be read"),
        ("other", "what `out` held is not in it; capture it again"),
        ("long", "2,000 bytes for `out` from byte 0 on, and its memory has 1,200"),
        ("pickle", "recordings.npz: no .npz file that can be read: Object arrays"),
        ("outside", "does not lie in the bundle"),
    ],
)
def test_recordings_that_cannot_be_used_are_told(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, says: str
) -> None:
    one = only(bundle, tmp_path, 0, slice(1))
    manifest = json.loads((one / "manifest.json").read_text())
    arguments = manifest["kernels"][0]["launches"][0]["arguments"]
    key, file = arguments["x"]["recorded"]["key"], one / "recordings.npz"
    contents: Any = {
        "other": {"a": np.zeros(4)}, "long": {key: np.zeros(2000, np.uint8)},
        "pickle": {key: np.array([{}], dtype=object)},
    }.get(damage)  # fmt: skip
    if damage == "strip":
        for name in ("x", "out"):
            del arguments[name]["recorded"]
    elif damage == "outside":
        manifest["recordings"] = "../recordings.npz"
    elif damage == "delete":
        file.unlink()
    elif damage == "corrupt":
        file.write_bytes(file.read_bytes()[:100])
    else:
        np.savez(file, **contents)
    (one / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = emulated(capsys, str(one), "--inputs", "recorded")
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_a_launch_file_has_no_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "launch.json"
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [4], "recorded": {"key": "0" * 32}}
    given = {"grid": 1, "arguments": {"x": tensor}}
    file.write_text(json.dumps({"launches": [given]}))
    ptx = str(ROOT / "fixtures/ptx/sm_80/softmax.ptx")
    code, _, err = emulated(capsys, ptx, "--launch", str(file))
    assert code == 2
    assert "only a captured bundle has recordings" in err


@pytest.mark.parametrize("word", ["0", "x", "4T", "M"])
def test_a_limit_that_is_none_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(
            [
                "capture",
                "--arch",
                "sm_80",
                "--out",
                str(tmp_path / "b"),
                f"--record-inputs={word}",
                str(SCRIPT),
            ]
        )
    assert end.value.code == 2
    assert "give a number of bytes, as 4096 or 4M" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
