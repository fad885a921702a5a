"""What Triton 3.6 made of products among the twins runs and is right: on sm_90 by `wgmma`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.run import run
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"

OLDER = FIXTURES / "ptx-triton-3.6"
SHARED = 227 << 10
"""Bytes of dynamic shared memory: all there is, since nothing beside these files tells."""


def older(arch: str, stem: str) -> Path:
    return OLDER / arch / f"{stem}.ptx"


M, N, K = 128, 64, 96
A, B = (
    np.random.default_rng(i).standard_normal(s).astype("f2") for i, s in ((1, (M, K)), (2, (K, N)))
)
ROUNDS = 3
"""Of K, 32 a round."""
TILES = {"dot_even_k", "dot_fill_infinity", "dot_overwritten", "dot_sum"}
GROUPED = {"bare", "clamped", "masked", "selected_bare"}
PRODUCTS = [
    "guards-product_bare_store", "guards-product_masked_store", "masks-product_inner_mask",
    *(f"loops-{name}" for name in sorted(TILES)),
    *(f"masks-grouped_{name}_store" for name in sorted(GROUPED)),
]  # fmt: skip


def product_of(path: Path, out: NDArray[Any], grid: tuple[int, int, int], *numbers: int) -> None:
    module = parse(path.read_text(encoding="utf-8"), path.name)
    arguments = [out, A.copy(), B.copy(), *numbers]
    outcome = run(module, module.kernels()[0], grid, arguments, dynamic_shared=SHARED)
    assert not outcome.faults, outcome.faults


@pytest.mark.parametrize("arch", ["sm_90", "sm_80"])
@pytest.mark.parametrize("stem", PRODUCTS)
def test_products_of_whole_tiles(arch: str, stem: str) -> None:
    """Where nothing is masked all of these are right, but for the one that keeps its last round."""
    is_single = stem.startswith("guards")
    out = np.zeros((M, N), dtype=np.float32 if is_single else np.float16)
    grid = (2, 1, 1)
    product_of(older(arch, stem), out, grid, M, N, K, K, N, N)
    wanted = A.astype(np.float64) @ B.astype(np.float64)
    if stem.endswith("overwritten"):
        wanted = A[:, 64:].astype(np.float64) @ B[64:].astype(np.float64)
    assert np.abs(out - wanted).max() < (1e-4 if is_single else 0.02)


@pytest.mark.parametrize("arch", ["sm_90", "sm_80"])
def test_sums_that_programs_share(arch: str) -> None:
    wanted = A.astype(np.float64) @ B.astype(np.float64)
    for stem, grid, more in (
        ("serving-split_product", (2, 1, 2), ()),
        ("serving-stream_product", (2, 1, 1), (4, 2 * ROUNDS)),
    ):
        total = np.zeros((M, N), dtype=np.float32)
        product_of(older(arch, stem), total, grid, M, N, K, K, N, N, *more)
        assert np.abs(total - wanted).max() < 1e-4
