"""Twins in Triton: each defect is found on its Python line, and the mended kernel is silent.

The kernels lie in fixtures/kernels/twins/ and are compiled here. A line to be reported ends in
`#~ RULE`. Whatever the tile, the number of warps and the architecture, the findings are the same.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest

import ptxlint
from ptxlint.source import SourceText

TWINS = Path(__file__).resolve().parents[2] / "fixtures" / "kernels" / "twins"
TYPES = {"out_ptr": "*fp32", "x_ptr": "*fp32", "c_ptr": "*fp32", "a_ptr": "*fp16", "b_ptr": "*fp16"}
SHAPES = [(128, 4), (64, 2), (256, 8), (128, 1)]
CAPABILITIES = [80, 90, 100]
SELECT = "ALL,MSK202,MSK204,BND306"


def names() -> list[tuple[str, str]]:
    """(module, kernel) of every twin, without importing Triton."""
    return [
        (path.stem, name)
        for path in sorted(TWINS.glob("*.py"))
        for name in re.findall(r"@triton\.jit\ndef (\w+)\(", path.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def kernel(module: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"twins_{module}", TWINS / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name)


def compiled(triton: Any, function: Any, capability: int, block: int, warps: int) -> str:
    """The PTX of a kernel; tiles of two dimensions are kept small."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = {
        "BLOCK": min(block, 64) if "BLOCK_K" in function.arg_names else block,
        "BLOCK_K": 32,
    }
    signature, values, attributes = {}, {}, {}
    for at, argument in enumerate(function.arg_names):
        signature[argument] = TYPES.get(argument, "i32")
        if argument in constants:
            signature[argument] = "constexpr"
            values[(at,)] = constants[argument]
        elif argument.endswith("ptr"):
            attributes[(at,)] = [["tt.divisibility", 16]]
    source = ASTSource(function, signature, values, attributes)
    target = GPUTarget("cuda", capability, 32)
    return str(triton.compile(source, target=target, options={"num_warps": warps}).asm["ptx"])


def marked(function: Any) -> set[tuple[str, int]]:
    lines, start = inspect.getsourcelines(function.fn)
    marks = ((re.search(r"#~ (\w+)", line), start + at) for at, line in enumerate(lines))
    return {(mark[1], number) for mark, number in marks if mark is not None}


def found(ptx: str) -> set[tuple[str, int]]:
    report = ptxlint.check(SourceText(ptx, "twin.ptx"), select=SELECT)
    assert report.exit_code != 2
    return {
        (f.rule, f.place.source.line)
        for f in report.findings
        if f.severity != "note" and f.place.source is not None
    }


def check(triton: Any, module: str, name: str, capability: int, block: int, warps: int) -> None:
    function = kernel(module, name)
    if warps == 1 and "BLOCK_K" in function.arg_names:
        pytest.skip("one warp cannot hold a whole tile of a product: it spills, and RES101 says so")
    assert found(compiled(triton, function, capability, block, warps)) == marked(function)


@pytest.mark.parametrize(("module", "name"), names())
def test_a_twin(triton: Any, module: str, name: str) -> None:
    check(triton, module, name, 90, *SHAPES[0])


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize(("block", "warps"), SHAPES)
@pytest.mark.parametrize(("module", "name"), names())
def test_all_builds_of_a_twin(
    triton: Any, module: str, name: str, capability: int, block: int, warps: int
) -> None:
    check(triton, module, name, capability, block, warps)


def test_every_defect_is_marked_and_every_twin_has_its_mended_form() -> None:
    text = (TWINS / "guards.py").read_text(encoding="utf-8")
    assert len(re.findall("#~ ", text)) == 5
    assert len(re.findall("@triton.jit", text)) == 9
