"""Matrix shapes are numbers in a word: any size may come, so no list of words decides them."""

from __future__ import annotations

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.verifier import verify


@pytest.mark.parametrize("columns", range(8, 257, 8))
@pytest.mark.parametrize(("kind", "depth"), [("tf32", 8), ("f16", 16), ("e4m3", 32)])
def test_every_wgmma_shape_is_taken(columns: int, kind: str, depth: int) -> None:
    count = columns // 2
    vector = ", ".join(f"%f{at}" for at in range(count))
    transposed = ", 0, 0" if kind == "f16" else ""
    module = parse(
        f".version 8.0\n.target sm_90a\n.entry k()\n{{\n.reg .f32 %f<{count}>;\n.reg .b64 %rd<2>;\n"
        f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{kind}.{kind} "
        f"{{{vector}}}, %rd0, %rd1, 0, 1, 1{transposed};\nret;\n}}\n"
    )
    assert module.problems == []
    assert verify(module) == []
