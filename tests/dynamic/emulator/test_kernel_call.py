"""A call from Python: arrays of numpy, ml_dtypes and torch in, outputs, findings and counts out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptxlint.dynamic.emulator import EmulationError, emulate
from ptxlint.frontends.ptx import parse

ROOT = Path(__file__).resolve().parents[3]
SOFTMAX = ROOT / "fixtures/ptx/sm_80/softmax.ptx"
HEAD = ".version 8.7\n.target sm_80\n.address_size 64\n"


def copy_text(kind: str = "b32", name: str = "k") -> str:
    """A kernel of one warp that copies 32 elements and adds nothing."""
    size = int(kind[1:]) // 8
    register = {1: "rs", 2: "rs", 4: "r", 8: "rd"}[size]
    return f"""{HEAD}
.visible .entry {name}(.param .u64 .ptr {name}_param_0, .param .u64 .ptr {name}_param_1)
.reqntid 32, 1, 1
{{
  .reg .b16 %rs<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<9>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd2, [{name}_param_0];
  ld.param.u64 %rd3, [{name}_param_1];
  mad.wide.u32 %rd4, %r1, {size}, %rd2;
  mad.wide.u32 %rd5, %r1, {size}, %rd3;
  ld.global.{kind} %{register}1, [%rd5];
  st.global.{kind} [%rd4], %{register}1;
  ret;
}}
"""


def rows(columns: int = 781) -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal((5, columns)).astype(np.float32)


def softmax(x: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return np.asarray(wide / wide.sum(axis=1, keepdims=True))


def arguments(x: Any, out: Any) -> dict[str, Any]:
    n = x.shape[1]
    return {"out_ptr": out, "x_ptr": x, "stride_out": n, "stride_x": n, "n_cols": n}


def test_outputs_counts_and_no_findings_and_arrays_are_left_alone() -> None:
    x, out = rows(), np.full((5, 781), 7, dtype=np.float32)
    found = emulate(SOFTMAX, 5, arguments(x, out))
    assert np.abs(found.outputs["out_ptr"] - softmax(x)).max() < 1e-6
    assert (out == 7).all()
    assert (found.outputs["x_ptr"] == x).all()
    assert found.findings == ()
    assert found.is_complete
    assert (found.kernel, found.ctas, found.sampled) == ("softmax_kernel", 5, 0)
    store = next(line for line in found.counters if line.line == 20)
    assert store.path.endswith("softmax.py")
    assert store.count.bytes == 4 * x.size


def test_arrays_are_changed_if_that_is_asked_for() -> None:
    x, out = rows(), np.zeros((5, 781), dtype=np.float32)
    found = emulate(SOFTMAX, (5,), list(arguments(x, out).values()), in_place=True, count=False)
    assert np.abs(out - softmax(x)).max() < 1e-6
    assert found.counters == ()
    assert list(found.outputs) == ["out_ptr", "x_ptr"]


@pytest.mark.parametrize("form", ["text", "path", "module", "compiled"])
def test_kernels_come_in_many_forms(form: str) -> None:
    text = SOFTMAX.read_text()
    kernel: Any = {
        "text": text,
        "path": str(SOFTMAX),
        "module": parse(text, "softmax.ptx"),
        "compiled": SimpleNamespace(
            asm={"ptx": text},
            metadata=SimpleNamespace(num_warps=4, shared=16, name="softmax_kernel"),
            src=SimpleNamespace(
                signature={
                    "out_ptr": "*fp32", "x_ptr": "*fp32", "stride_out": "i32", "stride_x": "i32",
                    "n_cols": "i32", "BLOCK": "constexpr",
                }
            ),
        ),
    }[form]  # fmt: skip
    x, out = rows(), np.zeros((5, 781), dtype=np.float32)
    given = list(arguments(x, out).values())
    shared = None if form in ("path", "compiled") else 16
    found = emulate(kernel, 5, given, dynamic_shared=shared)
    first = next(iter(found.outputs.values()))
    assert np.abs(first - softmax(x)).max() < 1e-6
    assert found.findings == ()
    if form == "compiled":
        again = emulate(kernel, 5, [*given, 1024])
        assert (again.outputs["out_ptr"] == first).all()
        named = emulate(kernel, 5, dict(reversed(arguments(x, out).items())))
        assert (named.outputs["out_ptr"] == first).all()


@pytest.mark.parametrize(
    "kind", ["bfloat16", "float8_e4m3fn", "float16", "int8", "bool", "uint32", "complex64", "int64"]
)
def test_elements_of_many_types(kind: str) -> None:
    width = np.dtype(getattr(ml_dtypes, kind, kind)).itemsize
    x = np.random.default_rng(1).integers(0, 2, 32).astype(getattr(ml_dtypes, kind, kind))
    found = emulate(copy_text(f"b{8 * width}"), 1, [np.zeros_like(x), x])
    out = found.outputs["k_param_0"]
    assert out.dtype == x.dtype
    assert (out == x).all()
    if kind != "uint32":
        tensor = torch.tensor(x.real.astype(np.int64)).to(getattr(torch, kind))
        there = emulate(copy_text(f"b{8 * width}"), 1, [torch.zeros_like(tensor), tensor])
        moved = there.outputs["k_param_0"]
        assert moved.dtype == tensor.dtype
        assert torch.equal(moved.to(torch.complex64), tensor.to(torch.complex64))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_views_of_one_memory_are_views_of_one_memory(library: str) -> None:
    """The kernel copies the second half of an array into its first."""
    whole: Any = np.arange(64, dtype=np.int32)
    if library == "torch":
        whole = torch.arange(64, dtype=torch.int32)
    found = emulate(copy_text(), 1, [whole[:32], whole[32:]])
    assert [int(n) for n in found.outputs["k_param_0"]] == list(range(32, 64))
    assert int(whole[0]) == 0
    # One element further the two overlap, and the end of the array is left.
    short = emulate(copy_text(), 1, [whole[33:], whole[:32]])
    (finding,) = short.findings
    assert finding.rule == "EMU901"
    assert finding.witness is not None
    assert finding.witness["tid"] == [31, 0, 0]
    emulate(copy_text(), 1, [whole[1:33], whole[:32]], in_place=True)
    assert [int(n) for n in whole[:34]] == [0, *range(32), 33]


def test_strides_of_all_signs() -> None:
    base = np.arange(64, dtype=np.int32)
    found = emulate(copy_text(), 1, [np.zeros((4, 4, 2), np.int32), base[::-1]])
    # The kernel reads upwards from the first element, which is the last one in memory.
    assert [f.rule for f in found.findings] == ["EMU901"]
    out = found.outputs["k_param_0"]
    assert out.shape == (4, 4, 2)
    assert out.ravel()[0] == 63
    assert (found.outputs["k_param_1"] == base[::-1]).all()


def test_what_is_not_writeable_must_not_be_written() -> None:
    out = np.zeros(32, dtype=np.int32)
    out.flags.writeable = False
    found = emulate(copy_text(), 1, [out, np.ones(32, dtype=np.int32)])
    assert [f.rule for f in found.findings] == ["EMU903"]
    assert not found.outputs["k_param_0"].any()


def test_numbers_of_all_kinds_and_null_pointers() -> None:
    text = f"""{HEAD}
.visible .entry k(.param .u64 .ptr k_param_0, .param .u32 k_param_1, .param .f32 k_param_2,
  .param .u8 k_param_3, .param .u64 .ptr k_param_4, .param .f64 k_param_5)
{{
  .reg .b16 %rs<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [k_param_0];
  ld.param.b32 %r1, [k_param_1];
  st.global.b32 [%rd1], %r1;
  ld.param.b32 %r2, [k_param_2];
  st.global.b32 [%rd1+4], %r2;
  ld.param.b8 %rs1, [k_param_3];
  st.global.b8 [%rd1+8], %rs1;
  ld.param.u64 %rd2, [k_param_4];
  st.global.b64 [%rd1+16], %rd2;
  ld.param.b64 %rd3, [k_param_5];
  st.global.b64 [%rd1+24], %rd3;
  ret;
}}
"""
    out = np.full(32, 255, dtype=np.uint8)
    for number, real, flag in (
        (-3, 0.1, True), (np.int64(-3), np.float32(0.1), np.True_), (-3, np.float64(0.1), 1),
    ):  # fmt: skip
        found = emulate(text, 1, [out, number, real, flag, None, 0.1], block=1)
        data = found.outputs["k_param_0"]
        assert data[:4].view(np.int32) == -3
        assert data[4:8].view(np.float32) == np.float32(0.1)
        assert data[8] == 1
        assert data[16:24].view(np.uint64) == 0
        assert data[24:].view(np.float64) == pytest.approx(0.1, abs=1e-7)


def test_a_race_is_found_where_it_is_watched_for() -> None:
    text = (
        copy_text()
        .replace("reqntid 32", "reqntid 64")
        .replace("%tid.x", "%tid.x;\n  and.b32 %r1, %r1, 31")
    )
    text = text.replace(
        "st.global.b32 [%rd4], %r1", "mov.u32 %r2, %tid.x;\n  st.global.b32 [%rd4], %r2"
    )
    given = [np.zeros(32, np.int32), np.ones(32, np.int32)]
    assert emulate(text, 1, given).findings == ()
    assert [f.rule for f in emulate(text, 1, given, sanitize="races").findings] == ["EMU905"]


def test_a_hang_leaves_what_was_written() -> None:
    text = copy_text().replace("  ret;", "again:\n  bra again;")
    found = emulate(text, 1, [np.zeros(32, np.int32), np.ones(32, np.int32)], most_turns=100)
    assert not found.is_complete
    assert [f.rule for f in found.findings] == ["EMU909"]
    assert found.outputs["k_param_0"].all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernel": 7}, "a int is no kernel"),
        ({"kernel": "nowhere.ptx"}, "nowhere.ptx: cannot read"),
        ({"kernel": SimpleNamespace(asm={"cubin": b""})}, "has no PTX"),
        ({"kernel": copy_text().replace("ld.global.b32", "ld.global.b33")}, "kernel.ptx:16:3"),
        ({"kernel": HEAD}, "there is no kernel"),
        ({"name": "kk"}, "no kernel is called 'kk'; did you mean k?"),
        ({"grid": (1, 2, 3, 4)}, "the grid is (1, 2, 3, 4); give 1 to 3 numbers"),
        ({"grid": -1}, "the grid is -1"),
        ({"grid": "8"}, "the grid is '8'"),
        ({"block": 0}, "the block is 0"),
        ({"block": 64}, "compiled for (32, 1, 1)"),
        ({"args": [np.zeros(32, np.int32)]}, "1 argument"),
        ({"args": np.zeros(32, np.int32)}, "give a list or a dict"),
        ({"args": [np.zeros(32, np.int32), [1, 2]]}, "argument `1` is a list"),
        ({"args": [np.zeros(32, np.int32), np.zeros(3, "U4")]}, "argument `1` has elements of <U4"),
        ({"args": [np.zeros(32, np.int32), np.zeros(3, ">i4")]}, "`1` has elements of >i4"),
        ({"args": [np.zeros(32, np.int32), torch.zeros(3, device="meta")]}, "without memory"),
        ({"args": [np.zeros(32, np.int32), 5]}, "`k_param_1` is a number"),
        ({"args": {"out": np.zeros(32), "x": np.zeros(3)}}, "give `arguments` as a list"),
        ({"sanitize": "rases"}, "'rases' is none of memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_said(change: dict[str, Any], says: str) -> None:
    given = {
        "kernel": copy_text(), "grid": 1,
        "args": [np.zeros(32, np.int32), np.zeros(32, np.int32)], **change,
    }  # fmt: skip
    with pytest.raises(EmulationError) as error:
        emulate(given.pop("kernel"), given.pop("grid"), given.pop("args"), **given)
    assert says in str(error.value)


def test_one_of_several_kernels_is_named() -> None:
    text = copy_text() + copy_text(name="other").removeprefix(HEAD)
    given = [np.zeros(32, np.int32), np.ones(32, np.int32)]
    assert emulate(text, 1, given, name="other").kernel == "other"
    with pytest.raises(EmulationError, match="there are 2 kernels, name one: k, other"):
        emulate(text, 1, given)


def test_torch_is_not_loaded_for_arrays() -> None:
    code = (
        "import sys, numpy as np\nfrom ptxlint.dynamic.emulator import emulate\n"
        f"emulate({copy_text()!r}, 1, [np.zeros(32, np.int32), np.ones(32, np.int32)])\n"
        "assert 'torch' not in sys.modules and 'triton' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
