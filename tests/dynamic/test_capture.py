"""`ptxlint capture`: child processes, bundles, and scripts that misbehave."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ptxlint.cli.capture import sort_arguments

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
SCHEMA = json.loads((ROOT / "docs" / "bundle.schema.json").read_text(encoding="utf-8"))
COMMAND = [sys.executable, "-m", "ptxlint", "capture"]
MISBEHAVING = str(SCRIPTS / "misbehaving.py")


class Done:
    """A finished command."""

    def __init__(self, out: Path, process: subprocess.CompletedProcess[str]) -> None:
        self.out = out
        self.code = process.returncode
        self.printed = process.stdout
        self.told = process.stderr

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, which fits its schema and whose files are there."""
        found: dict[str, Any] = json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))
        jsonschema.validate(found, SCHEMA)
        for kernel in found["kernels"]:
            for part in ("ptx", "cubin", "ttir", "metadata"):
                assert (self.out / kernel[part]).is_file()
        for run in found["runs"]:
            assert (self.out / run["output"]).is_file()
        return found

    def output(self) -> str:
        """What the script printed."""
        return (self.out / "sm_90" / "output.txt").read_text(encoding="utf-8")


Capture = Callable[..., Done]


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    def run(*arguments: str, out: Path | None = None, archs: str = "sm_90") -> Done:
        out = out or tmp_path / "bundle"
        process = subprocess.run(
            [*COMMAND, *arguments, "--arch", archs, "--out", str(out)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Done(out, process)

    return run


def only_launch(done: Done) -> dict[str, Any]:
    """The launch that all misbehaving scripts make."""
    (kernel,) = done.manifest["kernels"]
    launch: dict[str, Any] = kernel["launches"][0]
    assert kernel["name"] == "fill"
    return launch


def test_a_bundle(capture: Capture) -> None:
    done = capture(str(SCRIPTS / "vector_add.py"), archs="sm_80,sm_90")
    assert done.code == 0, done.told
    manifest = done.manifest
    assert [run["arch"] for run in manifest["runs"]] == ["sm_80", "sm_90"]
    assert [kernel["arch"] for kernel in manifest["kernels"]] == ["sm_80"] * 2 + ["sm_90"] * 2
    assert manifest["problems"] == []
    assert done.output().splitlines()[-1] == "done"
    assert "sm_90: 2 kernels, 3 launches" in done.printed
    checked = subprocess.run(
        [sys.executable, "-m", "ptxlint", "check", "--no-config", str(done.out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # 2^33 elements are more than the index of 32 bits can count.
    assert checked.returncode == 1, checked.stdout + checked.stderr
    # The column depends on the version of Triton.
    assert re.search(r"vector_add\.py:10:\d+: error\[BND301\]", checked.stdout)
    assert "4 launches of 4 kernels" in checked.stdout


@pytest.mark.slow
def test_indices_of_one_kernel_are_those_of_the_next(capture: Capture) -> None:
    """What a kernel makes of 99 is 100, which the next one takes for a row of 100."""
    done = capture(str(SCRIPTS / "indices.py"))
    assert done.code == 0, done.told
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "ptxlint",
            "check",
            "--no-config",
            "--format",
            "json",
            str(done.out),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.loads(checked.stdout)
    findings = [f for f in report["findings"] if f["rule"].startswith("BND")]
    assert [f["rule"] for f in findings] == ["BND302"] * len(findings)
    assert {f["witness"]["element"][0] for f in findings} == {100}
    verdicts = [v for v in report["obligations"] if v["rule"] == "BND302"]
    assert {v["status"] for v in verdicts} == {"proved", "refuted"}


@pytest.mark.slow
def test_the_example_is_what_is_captured(capture: Capture) -> None:
    example = json.loads((ROOT / "tests/data/bundle/manifest.json").read_text(encoding="utf-8"))
    jsonschema.validate(example, SCHEMA)
    made = capture(str(SCRIPTS / "vector_add.py")).manifest
    for old, new in zip(example["kernels"], made["kernels"], strict=True):
        for key in ("name", "arch", "source", "signature", "launches"):
            assert old[key] == new[key]


@pytest.mark.slow
def test_identical_launches_are_counted(capture: Capture) -> None:
    done = capture(MISBEHAVING, "well")
    assert done.code == 0, done.told
    assert only_launch(done)["count"] == 1000


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("fail", "failed", "AssertionError: needs what the kernel wrote"),
        pytest.param("leave", "exited", "left with 3", marks=pytest.mark.slow),
        pytest.param("vanish", "exited", "the process with status 4", marks=pytest.mark.slow),
        pytest.param("crash", "crashed", "SIGABRT", marks=pytest.mark.slow),
    ],
)
def test_what_was_captured_until_then(capture: Capture, how: str, status: str, said: str) -> None:
    done = capture(MISBEHAVING, how)
    assert done.code == 2
    assert only_launch(done)["count"] == 1
    (run,) = done.manifest["runs"]
    assert run["status"] == status
    assert said in run["message"]
    assert said in done.told
    if status == "failed":
        assert "kernels do not run here" in run["message"]
        assert "misbehaving.py:" in run["message"]


@pytest.mark.slow
def test_a_script_that_hangs(capture: Capture) -> None:
    done = capture(MISBEHAVING, "hang", "--timeout", "45")
    assert done.code == 2
    assert only_launch(done)["count"] == 1
    (run,) = done.manifest["runs"]
    assert run["status"] == "timeout"
    assert "stopped after 45 s" in done.told


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_capture_that_is_ended(ending: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    process = subprocess.Popen(
        [*COMMAND, MISBEHAVING, "hang", "--arch", "sm_90", "--out", str(out)],
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 100
    while not list(out.glob("sm_90/*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(ending)
    assert process.wait(60) == (130 if ending == signal.SIGINT else -ending)
    assert (out / "manifest.json").exists() == (ending == signal.SIGINT)
    while time.monotonic() < deadline:
        running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        if f"{sys.executable} -m ptxlint.dynamic.capture.child" not in running:
            break
        time.sleep(0.5)
    else:
        pytest.fail("the script goes on")


@pytest.mark.slow
def test_a_script_that_forks(capture: Capture) -> None:
    done = capture(MISBEHAVING, "fork")
    assert done.code == 2
    assert only_launch(done)["count"] == 1000
    (problem,) = done.manifest["problems"]
    assert problem["what"] == "fill"
    assert "forked" in problem["reason"]


@pytest.mark.slow
def test_a_script_that_starts_others(capture: Capture) -> None:
    done = capture(MISBEHAVING, "start")
    assert done.code == 2
    (problem,) = done.manifest["problems"]
    assert problem["what"].endswith("-c import triton, time; time.sleep(3)")
    assert "is not captured" in problem["reason"]
    assert problem["reason"] in done.told


def test_processes_of_the_session(tmp_path: Path) -> None:
    from ptxlint.dynamic.capture.processes import Strays

    def process(number: int, session: int, command: str, maps: str = "") -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "stat").write_text(f"{number} (a) b) S 1 {session} {session} 0 -1")
        (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        (folder / "maps").write_text(f"7f00-7f01 r-xp 0 00:00 0 {maps}\n")

    triton = "/x/triton/_C/libtriton.so"
    process(7, 7, "python child.py", triton)
    process(8, 7, "python child.py", triton)
    process(9, 7, "python -c spawn_main", triton)
    process(10, 7, "python -c spawn_main", triton)
    process(11, 7, "python other.py", "/x/torch/libtorch.so")
    process(12, 1, "python elsewhere.py", triton)
    process(13, 7, "python torch/_inductor/compile_worker/__main__.py", triton)
    (tmp_path / "self").mkdir()
    (tmp_path / "14").mkdir()
    strays = Strays(7, tmp_path)
    strays.look()
    strays._looked = 0.0
    strays.look()
    assert strays.found == {"python -c spawn_main": 2}


@pytest.mark.slow
def test_a_script_that_prints_a_lot(capture: Capture) -> None:
    done = capture(MISBEHAVING, "print")
    assert done.code == 0, done.told
    printed = done.output()
    assert len(printed) < 300_000
    assert "line 0\n" in printed
    assert printed.endswith("line 999999\n")
    assert "bytes left out" in printed
    assert len(done.told) + len(done.printed) < 2000


@pytest.mark.slow
def test_a_kernel_that_does_not_compile(capture: Capture) -> None:
    done = capture(MISBEHAVING, "refused")
    assert done.code == 2
    (problem,) = done.manifest["problems"]
    assert problem["what"] == "fill"
    assert "does not compile" in problem["reason"]
    assert only_launch(done)["count"] == 1


def test_nothing_is_overwritten(capture: Capture, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for options in ((), ("--force",)):
        done = capture(*options, MISBEHAVING, "leave", out=out)
        assert done.code == 2
        assert "not empty" in done.told
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


def test_an_older_bundle_is_replaced_when_asked(tmp_path: Path) -> None:
    from ptxlint.dynamic.capture.session import CaptureError, _claimed

    (tmp_path / "sm_90").mkdir()
    for name in ("sm_90/k.ptx", "sm_90/mine.txt", "outside.txt"):
        (tmp_path / name).write_text("")
    kernel = dict.fromkeys(("ptx", "cubin", "ttir", "metadata"), "sm_90/k.ptx")
    manifest = {"kernels": [kernel], "runs": [{"output": "../outside.txt"}]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CaptureError, match="--force"), _claimed(tmp_path, force=False):
        pass
    with _claimed(tmp_path, force=True):
        left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert left == ["outside.txt", "sm_90", "sm_90/mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arch", "sm_90", "--out", "x", "no_such.py"), "no_such.py: no such file"),
        (("--arch", "sm_9", "--out", "x", MISBEHAVING), "sm_9"),
        (("--arch", "sm_90a", "--out", "x", MISBEHAVING), "write sm_90"),
        (("--arch", "sm_90", MISBEHAVING), "--out"),
        (("--out", "x", MISBEHAVING), "--arch"),
        (("--arhc", "sm_90", "--out", "x", MISBEHAVING), "--arhc"),
        (("--arch", "sm_90", "--out", "x"), "SCRIPT"),
        (("--arch", "sm_90", "--out", MISBEHAVING, MISBEHAVING), "no directory"),
    ],
)
def test_captures_that_cannot_begin(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_is_sorted() -> None:
    takes = {"--arch": True, "--out": True, "--force": False, "-m": False, "-h": False}

    def sorted_(line: str) -> str:
        return " ".join(sort_arguments(line.split(), takes))

    assert sorted_("s.py --lr 1 --arch sm_90 -m x --out=D") == (
        "--arch sm_90 --out=D -- s.py --lr 1 -m x"
    )
    assert sorted_("--out D -m pkg.mod -x --force") == "--out D -m --force -- pkg.mod -x"
    assert sorted_("--out D -- s.py --out E") == "--out D -- s.py --out E"
    assert sorted_("-h") == "-h"


def test_a_module_and_its_arguments(capture: Capture, tmp_path: Path) -> None:
    package = tmp_path / "captured_package"
    package.mkdir()
    source = (SCRIPTS / "misbehaving.py").read_text(encoding="utf-8")
    (package / "__main__.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "--arch=sm_90", "--out=bundle", "-m", "captured_package", "well"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    manifest = Done(tmp_path / "bundle", done).manifest
    assert manifest["command"] == ["-m", "captured_package", "well"]
    assert manifest["kernels"][0]["source"]["path"] == "captured_package/__main__.py"
