"""Verdicts on masks against what random Triton kernels compute.

A kernel whose masks are all proved stores the same whatever its tile is; one with a refuted mask
has a reduction or a product that padding changes.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import ptxlint
from ptxlint.source import SourceText

SAMPLE = 20
WHOLE = 600
ONCE_WRONG = (
    (192, 80, 1, 16),
    (400, 80, 2, 16),
    (422, 80, 4, 16),
    (175, 90, 4, 64),
    (96, 80, 1, 64),
    (172, 90, 2, 64),
    (101, 100, 2, 64),
    (139, 90, 4, 64),
)
"""Kernels that once were proved or had no verdict, and must not be."""
CAPABILITIES = (80, 90, 100)
WARPS = (1, 2, 4, 8)
TILES = (16, 16, 64)
"""Tiles of 64 and four warps make sm_90 multiply in warp groups."""
STEP = 10
"""Seeds of one test."""


def load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tiles = load(Path(__file__).with_name("random_tiles.py"), "random_tiles")


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def compiled(triton: Any, function: Any, capability: int, warps: int, tile: int) -> str:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, attributes = {}, {}, {}
    for at, argument in enumerate(function.arg_names):
        if argument.endswith("_ptr"):
            signature[argument] = "*fp32"
            attributes[(at,)] = [["tt.divisibility", 16]]
        elif argument in ("n", "m", "p"):
            signature[argument] = "i32"
        else:
            signature[argument] = "constexpr"
            constants[(at,)] = tile
    source = ASTSource(function, signature, constants, attributes)
    target = GPUTarget("cuda", capability, 32)
    options = {"num_warps": warps}
    return str(triton.compile(source, target=target, options=options).asm["ptx"])


@pytest.mark.parametrize(
    "first",
    [
        first if first < SAMPLE else pytest.param(first, marks=pytest.mark.slow)
        for first in range(0, WHOLE, STEP)
    ],
)
def test_verdicts_hold(first: int, triton: Any, tmp_path: Path) -> None:
    for seed in range(first, first + STEP):
        hold(seed, *build(seed), triton, tmp_path)


@pytest.mark.parametrize("which", ONCE_WRONG, ids=str)
def test_mended_faults(which: tuple[int, int, int, int], triton: Any, tmp_path: Path) -> None:
    hold(*which, triton, tmp_path)


def build(seed: int) -> tuple[int, int, int]:
    """The architecture, the warps and the tile that a seed stands for."""
    return CAPABILITIES[seed % 3], WARPS[seed // 3 % 4], TILES[seed // 12 % 3]


def hold(seed: int, capability: int, warps: int, tile: int, triton: Any, tmp_path: Path) -> None:
    """Hold the verdicts on one kernel to what it computes."""
    kernel = tiles.Generator(seed).kernel()
    path = tmp_path / f"kernel{seed}.py"
    path.write_text(kernel.source, encoding="utf-8")
    function = load(path, f"random_kernel_{seed}").kernel
    text = compiled(triton, function, capability, warps, tile)
    report = ptxlint.check(SourceText(text))
    assert [k.name for k in report.kernels] == ["kernel"]
    found = {o.status for o in report.obligations if o.rule == "MSK201"}
    if "refuted" in found:
        assert not tiles.is_neutral(kernel, seed, tile, inside=True), f"refuted: {kernel.source}"
    elif found <= {"proved"}:
        assert tiles.is_neutral(kernel, seed, tile), f"{found}: {kernel.source}"


def test_the_judge_sees_padding() -> None:
    """What the evaluation itself says of two kernels that are known."""
    verdicts = {tiles.is_neutral(tiles.Generator(seed).kernel(), seed, 16) for seed in range(40)}
    assert verdicts == {True, False}
