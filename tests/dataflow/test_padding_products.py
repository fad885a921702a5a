"""Padding through tensor-core products: attention with the right mask, a wrong one and none."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dataflow.padding import Padding, PaddingAnalysis
from ptxlint.dataflow.padding_values import DATA
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOADS = ("q", "k", "v")
"""In the order of their lines."""
KEYS, ROWS, NONE = 1, 2, 0
"""Where the scores are masked."""


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def verdicts(triton: Any, masked: int, warps: int, block: int) -> dict[str, str]:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = Path(__file__).with_name("attention_masks.py")
    spec = importlib.util.spec_from_file_location("attention_masks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["attention_masks"] = module
    spec.loader.exec_module(module)
    names = module.attention.arg_names
    signature: dict[str, str] = dict.fromkeys(names[:3], "*fp16")
    signature |= {names[3]: "*fp32", "n": "i32", "scale": "fp32"}
    signature |= dict.fromkeys(names[6:], "constexpr")
    source = ASTSource(
        module.attention, signature, {(6,): masked, (7,): block, (8,): 64},
        {(at,): [["tt.divisibility", 16]] for at in range(4)},
    )  # fmt: skip
    compiled = triton.compile(
        source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps}
    )
    ptx = parse(compiled.asm["ptx"], "attention.ptx")
    facts = Facts(ptx, ptx.functions[0])
    found = {}
    for verdict in facts.get(PaddingAnalysis).verdicts:
        assert verdict.at.loc is not None
        frame = ptx.python_frame(verdict.at.loc)
        assert frame is not None
        found[frame.line] = verdict.status
    return dict(zip(LOADS, [found[line] for line in sorted(found)], strict=True))


SHAPES = [(4, 64), (8, 128)]


@pytest.mark.parametrize(("warps", "block"), SHAPES)
def test_keys_that_are_masked_again_are_proved(triton: Any, warps: int, block: int) -> None:
    assert verdicts(triton, KEYS, warps, block) == dict.fromkeys(LOADS, "proved")


@pytest.mark.parametrize(("warps", "block"), SHAPES)
def test_a_mask_along_the_wrong_axis_proves_nothing_of_keys(
    triton: Any, warps: int, block: int
) -> None:
    # Both axes have the same bound and the same size.
    assert verdicts(triton, ROWS, warps, block)["k"] != "proved"


@pytest.mark.parametrize(("warps", "block"), SHAPES)
def test_keys_that_are_not_masked_again_are_refuted(triton: Any, warps: int, block: int) -> None:
    found = verdicts(triton, NONE, warps, block)
    assert found["k"] == "refuted"
    assert found["v"] == "proved"


@pytest.mark.parametrize(
    "name",
    ["sm_80/matmul_dot_bf16", "sm_80/flash_bwd_dq", "sm_80/matmul_dot_tf32", "sm_90/flash_fwd"],
)
def test_a_product_of_data_is_data(name: str) -> None:
    # Rows and columns are found in other threads' elements, with other maps than the result's.
    text = (FIXTURES / "ptx" / f"{name}.ptx").read_text()
    module = parse(text, name)
    (function,) = module.functions
    padding = Padding(Facts(module, function))
    words = {
        repr(padding.words.free(value))
        for instr in padding.reductions.contractions
        for value in padding.ssa.def_values[instr.index]
    }
    assert words == {repr(DATA)}


BLOCKS = """.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
    .param .u32 n) .reqntid 64
{
.reg .pred %p<9>;
.reg .b32 %r<60>;
.reg .b64 %d<9>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
ld.param.u32 %r3, [n];
ld.param.u64 %d1, [a];
ld.param.u64 %d2, [b];
mul.wide.u32 %d3, %r1, 4;
add.s64 %d1, %d1, %d3;
shr.u32 %r4, %r1, 5;
MASKS
LOADS
ld.global.b32 %r14, [%d1+64];
ld.global.b32 %r15, [%d1+68];
mov.b32 %r30, START;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%r20, %r21, %r22, %r23}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r30, %r30, %r30, %r30};
MORE
st.global.v4.b32 [%d2], {%r20, %r21, %r22, %r23};
ret;
}
"""
AGAIN = """mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%r20, %r21, %r22, %r23}, {A}, {%r14, %r15}, {%r20, %r21, %r22, %r23};"""
DATA_BEYOND = "ld.global.b32 %r31, [%d1+128];\n"
BY_K = (
    "shl.b32 %r5, %r2, 1;\nor.b32 %r6, %r5, 1;\nsetp.lt.s32 %p1, %r5, %r3;\n"
    "setp.lt.s32 %p2, %r6, %r3;"
)
BY_CTA = "setp.lt.s32 %p1, %r2, %r3;\nmov.pred %p2, %p1;"
BY_WARP = "setp.lt.s32 %p1, %r4, %r3;\nmov.pred %p2, %p1;"
SAME, OTHER = "%r10, %r11, %r12, %r13", "%r31, %r31, %r31, %r31"

ELSEWHERE = "".join(
    line.replace("%r20, %r21, %r22, %r23", "%r40, %r41, %r42, %r43")
    for line in (
        AGAIN.replace("{%r20, %r21, %r22, %r23};", "{%r30, %r30, %r30, %r30};").replace("A", SAME),
        AGAIN.replace("A", OTHER),
        "st.global.v4.b32 [%d2+16], {%r20, %r21, %r22, %r23};",
    )
)
"""A second sum, which the same factor goes into first."""


@pytest.mark.parametrize(
    ("masks", "fill", "start", "more", "is_proved"),
    [
        # Two blocks of k, of which the CTA's number tells whether they are beyond.
        (BY_K, "0", "0", "", True),
        (BY_K, "0x3C003C00", "0", "", False),
        (BY_CTA, "0x3C003C00", "0", "", True),
        (BY_CTA, "0x3C003C00", "0", AGAIN.replace("A", SAME), True),
        (BY_CTA, "0x3C003C00", "0", DATA_BEYOND + AGAIN.replace("A", OTHER), False),
        (BY_WARP, "0", "0", DATA_BEYOND + AGAIN.replace("A", OTHER), True),
        (BY_WARP, "0x3C003C00", "0", "", True),
        (BY_WARP, "0x3C003C00", "0", AGAIN.replace("A", SAME), True),
        (BY_WARP, "0x3C003C00", "0", DATA_BEYOND + AGAIN.replace("A", OTHER), False),
        (BY_WARP, "0x3C003C00", "0f3F800000", "", False),
        # What holds in one sum says nothing of another one with the same factor.
        (BY_CTA, "0x3C003C00", "0", DATA_BEYOND + ELSEWHERE, False),
    ],
)  # fmt: skip
def test_blocks_that_no_lane_of_a_product_tells_apart(
    masks: str, fill: str, start: str, more: str, is_proved: bool
) -> None:
    loads = "".join(
        f"mov.b32 %r{at}, {fill};\n@%p{1 + at // 12} ld.global.b32 %r{at}, [%d1+{4 * at}];\n"
        for at in range(10, 14)
    )
    text = BLOCKS.replace("MASKS", masks).replace("LOADS", loads)
    module = parse(text.replace("START", start).replace("MORE", more), "k.ptx")
    facts = Facts(module, module.kernels()[0])
    found = {verdict.status for verdict in facts.get(PaddingAnalysis).verdicts}
    assert found
    assert (found == {"proved"}) == is_proved
