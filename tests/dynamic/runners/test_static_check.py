"""What the static half says of a bundle, by kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ptxlint.dynamic.runners.static_check import check_bundle

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def tensor(storage: int) -> dict[str, Any]:
    return {
        "kind": "tensor", "dtype": "float32", "shape": [37, 1000], "strides": [1000, 1],
        "storage": storage, "storage_bytes": 148000, "offset": 0, "alignment": 256, "fresh": "",
    }  # fmt: skip


def bundle(folder: Path) -> Path:
    """A bundle of one kernel with one launch: softmax with fill 0, 37 rows of 1000."""
    (folder / "sm_80").mkdir(parents=True)
    for ending in ("ptx", "json"):
        shutil.copy(
            FIXTURES / "ptx" / "sm_80" / f"softmax_buggy.{ending}", folder / "sm_80" / f"k.{ending}"
        )
    scalar = {"kind": "scalar", "type": "i32", "value": 1000}
    launch = {
        "grid": [37, 1, 1], "block": [128, 1, 1], "cluster": [1, 1, 1], "shared": 0,
        "scratch": [0, 0], "count": 1, "place": "",
        "arguments": {
            "out_ptr": tensor(0), "x_ptr": tensor(1), "stride_out": scalar, "stride_x": scalar,
            "n_cols": scalar, "BLOCK": {"kind": "constant", "value": "1024"},
        },
    }  # fmt: skip
    kernel = {
        "name": "softmax_kernel", "arch": "sm_80", "hash": "00", "ptx": "sm_80/k.ptx",
        "cubin": "sm_80/k.cubin", "ttir": "sm_80/k.ttir", "metadata": "sm_80/k.json",
        "source": {"path": "softmax.py", "line": 11},
        "signature": {
            "out_ptr": "*fp32", "x_ptr": "*fp32", "stride_out": "i32", "stride_x": "i32",
            "n_cols": "i32", "BLOCK": "constexpr",
        },
        "launches": [launch],
    }  # fmt: skip
    manifest = {"version": 1, "tool": "ptxlint", "command": [], "runs": [], "kernels": [kernel],
                "problems": []}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_kernel_is_known_with_its_launches_and_verdicts(tmp_path: Path) -> None:
    (known,) = check_bundle(str(bundle(tmp_path / "bundle")))
    assert known.constants == {"BLOCK": "1024"}
    assert known.num_warps == 4
    assert known.grids == ((37, 1, 1),)
    assert known.scalars == (1000,)
    assert (known.path, known.line) == ("softmax.py", 11)
    assert [f["rule"] for f in known.findings if f["severity"] == "error"] == ["MSK201"]
    verdicts = {(o["family"], o["status"]) for o in known.obligations}
    assert {("tail-mask", "refuted"), ("bounds", "proved"), ("semantics", "open")} <= verdicts


def test_a_bundle_without_kernels_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"version": 1, "kernels": []}')
    assert check_bundle(str(tmp_path)) == ()
