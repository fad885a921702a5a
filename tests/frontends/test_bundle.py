"""Captured bundles as `check` reads them: kernels, their launches, and all that may be amiss."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ptxlint
from ptxlint.frontends.bundle import is_bundle
from ptxlint.frontends.discovery import Found, Input, InputFault, discover

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TENSOR = {
    "kind": "tensor",
    "dtype": "float32",
    "shape": [16, 1000],
    "strides": [1000, 1],
    "storage": 0,
    "storage_bytes": 64000,
    "offset": 0,
    "alignment": 64,
    "fresh": "",
}
LAUNCH = {
    "grid": [16, 1, 1],
    "block": [128, 1, 1],
    "cluster": [1, 1, 1],
    "shared": 16,
    "scratch": [0, 0],
    "count": 2,
    "place": {"path": "train.py", "line": 31},
    "autotuned": None,
    "arguments": {
        "out_ptr": TENSOR,
        "x_ptr": {**TENSOR, "storage": 1},
        "stride_out": {"kind": "scalar", "type": "i32", "value": 1000},
        "stride_x": {"kind": "scalar", "type": "i32", "value": 1000},
        "n_cols": {"kind": "scalar", "type": "i32", "value": 1000},
        "BLOCK": {"kind": "constant", "value": "1024"},
    },
}
KERNEL = {
    "name": "softmax_kernel",
    "arch": "sm_90",
    "hash": "0" * 64,
    "ptx": "sm_90/softmax.ptx",
    "cubin": "sm_90/softmax.cubin",
    "ttir": "sm_90/softmax.ttir",
    "metadata": "sm_90/softmax.json",
    "source": {"path": "softmax.py", "line": 11},
    "signature": {
        "out_ptr": "*fp32",
        "x_ptr": "*fp32",
        "stride_out": "i32",
        "stride_x": "i32",
        "n_cols": "i32",
        "BLOCK": "constexpr",
    },
    "launches": [LAUNCH],
}
MANIFEST = {
    "version": 1,
    "tool": "ptxlint 0.1.0",
    "command": ["train.py"],
    "runs": [],
    "kernels": [KERNEL],
    "problems": [],
}
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a bundle whose manifest, kernel or launch differs from a good one; returns it."""
    bundle = tmp_path / "bundle"

    def written(
        manifest: dict[str, Any] | None = None,
        kernel: dict[str, Any] | None = None,
        launch: dict[str, Any] | None = None,
    ) -> Path:
        (bundle / "sm_90").mkdir(parents=True, exist_ok=True)
        for suffix in (".ptx", ".json"):
            shutil.copy(FIXTURES / "ptx/sm_90" / f"softmax{suffix}", bundle / "sm_90")
        full = {**KERNEL, "launches": [{**LAUNCH, **(launch or {})}], **(kernel or {})}
        data = {**MANIFEST, "kernels": [full], **(manifest or {})}
        text = json.dumps(data, indent=1)
        (bundle / "manifest.json").write_text(text, encoding="utf-8")
        return bundle

    return written


def found(path: Path) -> list[Found]:
    return discover([str(path)])


def test_a_kernel_comes_with_its_launches(write: Write) -> None:
    path = write()
    (item,) = found(path)
    assert isinstance(item, Input)
    assert item.path == str(path / "sm_90/softmax.ptx")
    (launch,) = item.launches
    assert launch.kernel == "softmax_kernel"
    assert (launch.place, launch.times, launch.scratch) == ("train.py:31", 2, (0, 0))
    assert launch.is_ordered
    assert launch.autotuned is None


def test_check_uses_the_launches(write: Write) -> None:
    path = write()
    report = ptxlint.check(path)
    assert report.findings == ()
    assert (report.summary.launches, report.summary.launched) == (1, 1)
    # A folder above the bundle, and one file of it.
    assert ptxlint.check(path.parent).summary.launches == 1
    assert ptxlint.check(path / "sm_90/softmax.ptx").summary.launches == 0


def test_builds_of_one_text_share_their_launches(write: Write) -> None:
    (item,) = found(write(manifest={"kernels": [KERNEL, KERNEL]}))
    assert isinstance(item, Input)
    assert len(item.launches) == 2


def test_what_is_no_bundle_is_a_directory(tmp_path: Path) -> None:
    assert not is_bundle(str(FIXTURES))
    (tmp_path / "manifest.json").write_text('{"name": "a web application"}')
    shutil.copy(FIXTURES / "ptx/sm_90/softmax.ptx", tmp_path)
    note, item = found(tmp_path)
    assert isinstance(item, Input)
    assert note == InputFault(
        str(tmp_path / "manifest.json"),
        "no bundle of ptxlint's, so that no launches are taken from it",
        is_note=True,
    )
    report = ptxlint.check(tmp_path)
    assert report.exit_code == 0
    assert [(f.severity, f.rule) for f in report.findings] == [("note", "INPUT")]


def test_a_strange_manifest_is_told_of_the_folder_that_was_named(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "manifest.json").write_text("[]")
    shutil.copy(FIXTURES / "ptx/sm_90/softmax.ptx", below)
    assert len(found(tmp_path)) == 1
    (below / "softmax.ptx").unlink()
    assert [f.message for f in found(below) if isinstance(f, InputFault)] == [
        "no PTX in this directory",
        "no bundle of ptxlint's, so that no launches are taken from it",
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"manifest": {"version": 2}}, "2: version: version 2 is not known, this ptxlint reads 1"),
        ({"manifest": {"kernels": {}}}, "kernels: expected a list of kernels, found {}"),
        ({"kernel": {"ptx": "../k.ptx"}}, "kernels[0].ptx: '../k.ptx' does not lie in the bundle"),
        ({"kernel": {"cubin": "/k.cubin"}}, "kernels[0].cubin: '/k.cubin' does not lie in the"),
        ({"kernel": {"ptx": "sm_90/gone.ptx"}}, "it is not there (kernel softmax_kernel)"),
        ({"launch": {"grid": [2, 1]}}, None),
        ({"launch": {"gird": [1, 2]}}, "kernels[0].launches[0].gird: `gird` is no key of a launch"),
        (
            {"launch": {"arguments": {**LAUNCH["arguments"], "m": 1}}},  # type: ignore[dict-item]
            "kernels[0].launches[0].arguments: `m` is not in the kernel's signature",
        ),
        (
            {"kernel": {"signature": {**KERNEL["signature"], "m": "i32"}}},  # type: ignore[dict-item]
            "no argument for `m`, which the signature has",
        ),
        (
            {"kernel": {"signature": dict(reversed(KERNEL["signature"].items()))}},  # type: ignore[attr-defined]
            "the arguments are in another order than the signature",
        ),
        ({"manifest": {"kernels": []}}, "no kernel was captured in this bundle"),
    ],
)
def test_what_is_amiss_is_told(
    write: Write, change: dict[str, dict[str, Any]], says: str | None
) -> None:
    items = found(write(**change))
    messages = [item.message for item in items if isinstance(item, InputFault)]
    assert [says in message for message in messages] == ([True] if says else [])  # type: ignore[operator]
    assert ptxlint.check(write(**change)).exit_code == (2 if says else 0)


def test_a_broken_manifest_is_told(write: Write) -> None:
    path = write()
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    (fault,) = found(path)
    assert isinstance(fault, InputFault)
    assert "no valid JSON" in fault.message
    assert "capture it again" in fault.hint


def test_a_bundle_in_which_nothing_was_captured_says_why(write: Write) -> None:
    problem = {"arch": "sm_90", "what": "k", "reason": "it needs a real result", "count": 1}
    (fault,) = found(write(manifest={"kernels": [], "problems": [problem]}))
    assert isinstance(fault, InputFault)
    assert fault.hint == "the capture says: k (sm_90): it needs a real result"


def test_what_the_capture_left_out_is_a_note(write: Write) -> None:
    problem = {"arch": "sm_90", "what": "k", "reason": "it needs a real result", "count": 1}
    failed = {"arch": "sm_80", "status": "timeout", "message": "stopped after 10 s"}
    done = {"arch": "sm_90", "status": "complete", "message": ""}
    path = write(manifest={"problems": [problem] * 3, "runs": [failed, done]})
    report = ptxlint.check(path)
    (finding,) = report.findings
    assert (finding.severity, report.exit_code) == ("note", 0)
    assert finding.message == (
        "the capture left something out: the run for sm_80 ran out of time: stopped after 10 s; "
        "k (sm_90): it needs a real result; k (sm_90): it needs a real result; and 1 more"
    )
    assert report.summary.launches == 1


def test_arguments_that_are_not_the_kernels_are_told(write: Write) -> None:
    arguments: dict[str, Any] = dict(LAUNCH["arguments"])  # type: ignore[call-overload]
    arguments["n_cols"] = {"kind": "scalar", "type": "i64", "value": 1000}
    report = ptxlint.check(write(launch={"arguments": arguments}))
    (finding,) = report.findings
    assert report.exit_code == 2
    assert finding.message.startswith("train.py:31: launch of softmax_kernel: `n_cols` is a scalar")
    assert (report.summary.launches, report.summary.launched) == (0, 0)
