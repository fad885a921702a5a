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
