"""What `ptxlint check` and `show facts` print, as a whole: `PTXLINT_UPDATE_SNAPSHOTS=1 pytest`.

The kernel lies in a Triton cache as the compiler leaves it: PTX, its IR, its metadata, and the
Python file that the debug information names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"
PYTHON = """\
@triton.jit
def row_max(out_ptr, x_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=FILL)
    tl.store(out_ptr + row, tl.max(x, axis=0))
"""
IR = """\
#loc = loc("row_max.py":2:1)
module {
  tt.func public @row_max(%out_ptr: !tt.ptr<f32> loc("out_ptr"(#loc)), %x_ptr: !tt.ptr<f32> \
loc("x_ptr"(#loc)), %stride: i32 loc("stride"(#loc)), %n_cols: i32 loc("n_cols"(#loc))) {
"""
PTX = """\
.version 8.4
.target sm_90a
.address_size 64
.visible .entry row_max(
    .param .u64 .ptr .global .align 1 row_max_param_0,
    .param .u64 .ptr .global .align 1 row_max_param_1,
    .param .u32 row_max_param_2,
    .param .u32 row_max_param_3,
    .param .u64 .ptr .global .align 1 row_max_param_4,
    .param .u64 .ptr .global .align 1 row_max_param_5
)
.reqntid 32
{
    .reg .pred %p<2>;
    .reg .b32 %r<30>;
    .reg .b64 %rd<9>;
    .loc 1 2 0
    ld.param.b64 %rd1, [row_max_param_0];
    ld.param.b64 %rd2, [row_max_param_1];
    ld.param.b32 %r1, [row_max_param_2];
    ld.param.b32 %r2, [row_max_param_3];
    .loc 1 3 11
    mov.u32 %r3, %ctaid.x;
    .loc 1 4 12
    mov.u32 %r4, %tid.x;
    .loc 1 5 9
    setp.lt.s32 %p1, %r4, %r2;
    mad.lo.s32 %r5, %r3, %r1, %r4;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    mov.b32 %r6, FILL;
    @%p1 ld.global.b32 %r6, [%rd4];
    .loc 1 6 29
    shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;
    max.f32 %r8, %r6, %r7;
    shfl.sync.bfly.b32 %r9, %r8, 8, 31, -1;
    max.f32 %r10, %r8, %r9;
    shfl.sync.bfly.b32 %r11, %r10, 4, 31, -1;
    max.f32 %r12, %r10, %r11;
    shfl.sync.bfly.b32 %r13, %r12, 2, 31, -1;
    max.f32 %r14, %r12, %r13;
    shfl.sync.bfly.b32 %r15, %r14, 1, 31, -1;
    max.f32 %r16, %r14, %r15;
    .loc 1 6 5
    mul.wide.u32 %rd5, %r3, 4;
    add.s64 %rd6, %rd1, %rd5;
    st.global.b32 [%rd6], %r16;
    ret;
}
    .file 1 "row_max.py"
"""


def cache(folder: Path, fill: str, bits: str, *, exchange: bool = False) -> None:
    """A cache entry of the kernel with a fill; with `exchange` a lane takes another's maximum."""
    entry = folder / "cache" / "KEY"
    entry.mkdir(parents=True)
    ptx = PTX.replace("FILL", bits)
    if exchange:
        ptx = ptx.replace("shfl.sync.bfly.b32 %r7, %r6, 16", "shfl.sync.idx.b32 %r7, %r6, %r4")
    (entry / "row_max.ptx").write_text(ptx)
    (entry / "row_max.ttir").write_text(IR)
    (entry / "row_max.json").write_text('{"name": "row_max", "num_warps": 1, "shared": 0}')
    (folder / "row_max.py").write_text(PYTHON.replace("FILL", fill))


def printed(*arguments: str) -> str:
    """What a command prints, with its exit status, without times."""
    done = subprocess.run(
        [sys.executable, "-m", "ptxlint", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    shown = re.sub(r"\d+\.\d+ s\)", "0.00 s)", done.stdout)
    return f"$ ptxlint {' '.join(arguments)}\n{shown}[exit status {done.returncode}]\n"


ONLY = ("--no-config", "--select", "MSK201")
CASES = {
    "clean": ("-float('inf')", "0xFF800000", False, ("check", *ONLY, "cache")),
    "finding": ("0.0", "0", False, ("check", *ONLY, "cache")),
    "open": ("0.0", "0", True, ("check", *ONLY, "cache")),
    "obligations": ("0.0", "0", False, ("check", *ONLY, "-v", "cache")),
    "facts": ("-1e9", "0xCE6E6B28", False, (
        "show", "facts", "cache/KEY/row_max.ptx", "--line", "5",
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_snapshot(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill, bits, exchange, arguments = CASES[name]
    monkeypatch.chdir(tmp_path)
    cache(tmp_path, fill, bits, exchange=exchange)
    text = printed(*arguments)
    if name == "facts":
        # What other rules say of the kernel is not at stake here.
        text = "".join(
            line
            for line in text.splitlines(keepends=True)
            if not re.match(r"(proved|open)\[(?!MSK201)", line)
        )
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("PTXLINT_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
