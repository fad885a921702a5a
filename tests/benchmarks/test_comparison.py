"""The comparison of the emulator with a GPU, as far as it goes without one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "emulator"))

from comparison import captured, instructions, judged, page, sides  # noqa: E402
from comparison.disturbed import disturbed  # noqa: E402
from comparison.errors import last_place  # noqa: E402
from comparison.fixtures import FixtureCase, emulated  # noqa: E402
from comparison.operands import WIDTHS, operands  # noqa: E402
from comparison.operations import GROUPS  # noqa: E402
from comparison.store import kept, load, of_case, save  # noqa: E402

from ptxlint.dynamic.emulator.elements import to_numbers  # noqa: E402


def output(arch: str, name: str) -> Any:
    """What the first output of a build's first launch holds, as numbers."""
    case = FixtureCase(arch, name, 0)
    emulated.emulator.cache_clear()
    found = case.in_emulator()
    first = next(iter(found))
    kind = case.build.constants[first]
    return to_numbers(found[first], emulated.TORCH_NAMES[kind])


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("sm_80", "matmul_dot_tf32"),  # mma
        ("sm_90", "matmul_dot_tf32"),  # wgmma
        ("sm_90", "matmul_dot_fp8e5"),
        ("sm_90", "softmax"),  # ex2.approx, div.full
        ("sm_90", "l2norm"),  # sqrt.approx, sums that may be fused
    ],
)
def test_runs_that_err_miss_a_little_and_in_their_direction(arch: str, name: str) -> None:
    plain = output(arch, name)
    found = []
    for seed in (0, 1, 2):
        with disturbed(seed):
            found.append(output(arch, name))
    scale = np.abs(plain).max()
    for other in found:
        apart = np.abs(other - plain).max()
        assert 0 < apart < 0.01 * scale
    if "dot" in name:
        # Toward zero and away from it are on both sides.
        assert np.abs(found[0]).sum() < np.abs(plain).sum() < np.abs(found[1]).sum()
    assert np.array_equal(output(arch, name), plain), "the errors stay behind"


def test_every_instruction_is_run() -> None:
    """One lane in 64 of each: all of them run, and on a GPU they are compared."""
    left_out = []
    for group in ("floating", "bits"):
        for at, operation in enumerate(GROUPS[group]()):
            found = instructions.in_emulator(group, at, operation)
            if isinstance(found, str):
                left_out.append((operation.name, found))
    assert left_out == []


def test_operands_are_the_same_each_time_and_fill_whole_blocks() -> None:
    for operations in GROUPS.values():
        for operation in operations():
            first = operands(operation.kinds, operation.text)
            assert all(len(a) == len(first[0]) for a in first)
            assert len(first[0]) % instructions.THREADS == 0
            assert [8 * a.dtype.itemsize for a in first] == [WIDTHS[k] for k in operation.kinds]
    again = operands(operation.kinds, operation.text)
    assert all(map(np.array_equal, first, again))


def test_outputs_are_kept_in_part_and_told_apart_as_a_whole(tmp_path: Path) -> None:
    large = np.arange(100_000, dtype=np.int32)
    other = large.copy()
    other[1] = 0
    save(tmp_path, "emulate", {f"k|{n}": a for n, a in kept("x", large).items()})
    found = of_case(load(tmp_path, "emulate"), "k")
    assert len(found["x"]) < len(large) / 6
    assert np.array_equal(found["x"], kept("x", other)["x"])
    assert (found["x#"] != kept("x", other)["x#"]).any()


def test_what_lies_further_apart_than_allowed_is_told() -> None:
    values = np.linspace(1, 2, 1000, dtype=np.float32)
    spread = np.full(1000, 1e-6, dtype=np.float32)

    def told(theirs: Any) -> dict[str, Any]:
        mine = {**kept("x", values), **kept("x~", spread)}
        return judged._output("x", "float32", mine, kept("x", theirs))

    same = told(values)
    assert (same["differ"], same["equal"], same["apart"], same["beyond"]) == (0, True, 0, 0)
    off = values.copy()
    off[500] += 1e-4
    found = told(off)
    assert (found["differ"], found["equal"], found["beyond"]) == (1, False, 1)
    assert found["apart"] > found["allowed"]
    off[500] = np.nan
    assert told(off)["apart"] == np.inf
    assert judged._output("x", "float32", {}, kept("x", values)) == {"only": "the GPU"}


def test_whole_numbers_may_differ_only_where_errors_show_in_them() -> None:
    values = np.arange(10, dtype=np.int8)
    other = values.copy()
    other[3] += 1
    for spread, is_allowed in ((0, False), (1, True)):
        mine = {**kept("x", values), **kept("x~", np.full(10, spread, dtype=np.float32))}
        found = judged._output("x", "int8", mine, kept("x", other))
        assert (found["apart"] <= found["allowed"]) == is_allowed


def test_units_in_the_last_place() -> None:
    at = np.array([1.0, 1.99, 2.0, 0.0, 2.0**-130])
    assert last_place(at, "f32").tolist() == [2.0**-23, 2.0**-23, 2.0**-22, 2.0**-149, 2.0**-149]
    assert last_place(np.array([448.0]), "bf16x2").tolist() == [2.0]


def test_approximate_instructions_are_within_the_manuals_bound() -> None:
    for at, operation in enumerate(GROUPS["approximate"]()):
        found = instructions.in_emulator("approximate", at, operation)
        assert not isinstance(found, str)
        mine = kept(operation.text, found)
        record = judged._instruction(operation, mine, mine)
        assert record["emulator"] <= 1, operation.name
        assert record["named"] or record["bound"] == "none", operation.name


def test_launches_of_a_bundle_are_taken_if_they_are_small(tmp_path: Path) -> None:
    text = (ROOT / "fixtures/ptx/sm_90/relu.ptx").read_text(encoding="utf-8")
    (tmp_path / "sm_90").mkdir()
    (tmp_path / "sm_90/relu_kernel_0123abcd.ptx").write_text(text, encoding="utf-8")
    size = 1000
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [size], "strides": [1],
              "storage_bytes": 4 * size, "offset": 0, "alignment": 256, "fresh": ""}  # fmt: skip
    arguments = {
        "relu_kernel_param_0": tensor | {"storage": 0},
        "relu_kernel_param_1": tensor | {"storage": 1},
        "relu_kernel_param_2": {"kind": "scalar", "type": "i32", "value": size},
    }  # fmt: skip
    launch = {"block": [128, 1, 1], "cluster": [1, 1, 1], "shared": 0, "count": 1,
              "place": "a.py:1", "arguments": arguments}  # fmt: skip
    launches = [launch | {"grid": [grid, 1, 1]} for grid in (1, 1000)]
    signature = dict.fromkeys(arguments, "*fp32")
    kernel = {
        "name": "relu_kernel",
        "signature": signature,
        "ptx": "sm_90/relu_kernel_0123abcd.ptx",
        "launches": launches,
    }
    manifest = {"version": 1, "tool": "ptxlint", "kernels": [kernel]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (case,) = captured.cases(str(tmp_path))
    assert case.kernel == "relu_kernel"
    found = sides.emulate(("", ((str(tmp_path),), [case.key])))
    names = {name.rpartition("|")[2].rstrip("#~") for name in found}
    assert "checksum" in names
    assert len(names) == 2, "only what is written is an output"


def test_the_page_says_what_was_compared() -> None:
    output = {"elements": 4, "seen": 4, "differ": 0, "share_of_bound": 0.0, "emulator": 0.1,
              "gpu": 0.2}  # fmt: skip
    fixture = {"arch": "sm_90", "build": "relu", "number": 0, "outputs": {"y": output}}
    tensor = {"elements": 9, "seen": 9, "differ": 1, "equal": False, "beyond": 0, "apart": 1e-7,
              "allowed": 1e-6}  # fmt: skip
    launch = {"library": "lib", "kernel": "k", "build": "0", "number": 0, "atomics": False}
    found = {
        "device": "a GPU", "fixtures": [fixture],
        "captured": [launch | {"outputs": {"y": tensor}}, launch | {"left_out": "writes nothing"}],
        "instructions": [
            {"group": "bits", "name": "popc.b32", "lanes": 8, "seen": 8, "differ": 3,
             "other_nan": 0, "equal": False},
        ],
    }  # fmt: skip
    text = page.text(found)
    assert "| relu | sm_90 | 1 | 1 | 0 of 4 | 0.000 | 0.100 | 0.200 |" in text
    assert "| lib | `k` | 1 | 0 | 1 of 9 | 1.0e-07 | 1.0e-06 | 0 |" in text
    assert "Launches left out: writes nothing: 1." in text
    assert "`popc.b32` differs in 3 of 8 lanes." in text
    assert "1 of 1 without atomics are within what is allowed." in text
